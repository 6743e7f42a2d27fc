//===- CudnnGraph.h - what the stand-in of cuDNN's graphs wants -*- C++ -*-===//
#ifndef TMC_TEST_CUDA_EMULATOR_CUDNNGRAPH_H
#define TMC_TEST_CUDA_EMULATOR_CUDNNGRAPH_H

#include <cstdint>

namespace tmc::emulator {

/// The workspace of graphs that are prepared from now on; -1: most of what is
/// planned for an attention of their shape, and a little for a convolution.
extern int64_t cudnnWorkspaceBytes;
/// The graphs of convolutions that were run.
extern int64_t cudnnConvolutions;

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_CUDNNGRAPH_H
