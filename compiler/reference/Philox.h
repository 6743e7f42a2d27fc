// Philox.h - the counter-based random numbers of nn.random and of dropout.
//
// Philox4x32-10 turns a 128-bit counter and a 64-bit key into four random
// words, without any state: the number of an element depends only on the seed,
// the step, the op's stream and the element. The runtime has an implementation
// of its own, and tests compare the two.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011.

#ifndef TMC_COMPILER_REFERENCE_PHILOX_H
#define TMC_COMPILER_REFERENCE_PHILOX_H

#include <array>
#include <cstdint>

namespace tmc::reference {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key);

/// The uniform number in [0, 1) of element `index` (the sample's index in the
/// whole batch, times the elements per sample, plus the element in the sample)
/// of `stream` in the given step of the run with the given seed.
double uniform(int64_t seed, int64_t step, int64_t stream, int64_t index);

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_PHILOX_H
