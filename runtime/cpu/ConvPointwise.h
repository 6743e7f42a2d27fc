//===- ConvPointwise.h - 1 x 1 windows with few columns ---------*- C++ -*-===//
//
// A pass that is one product of bf16 matrices (runtime/kernels/Conv.h), cut
// into pieces for threads, since Gemm.h cuts only columns. Each piece is a
// product on one thread.
//
//   forward, input gradient   rows, in Gemm.h's order of additions
//   filter gradient           parts of the sum, which are added in order
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_CONVPOINTWISE_H
#define TMC_RUNTIME_CPU_CONVPOINTWISE_H

#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/Conv.h"

namespace tmc::conv {

class PointwisePieces {
public:
  /// `product` is cut by `cut`; it is a filter gradient if `isSum`.
  PointwisePieces(const Matmul::Params &product, const PointwiseCut &cut,
                  bool isSum);

  /// to = rows of `from` times the filter. scratch: cutRowsScratch().
  void runRows(Stream &stream, const void *from, const void *filter, void *to,
               char *scratch);
  /// out [m, n] (+)= dy^T x, in f32. scratch: cutSumsScratch().
  void runSums(Stream &stream, const void *dy, const void *x, float *out,
               char *scratch, bool accumulate);

private:
  Matmul &piece(int64_t number) {
    return number + 1 < cut.pieces ? whole : last;
  }
  Matmul::Params product;
  PointwiseCut cut;
  Matmul whole, last;
  int64_t workerBytes;
  ThreadPool alone{1};
};

} // namespace tmc::conv

#endif // TMC_RUNTIME_CPU_CONVPOINTWISE_H
