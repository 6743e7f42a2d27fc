// MergeRows.h - the arithmetic of a merge: W + s B A, rounded once.
//
// A piece of W is read, summed up and written; no other matrix of W's size
// exists. Sums are in double, in the order of the rank: a product of two floats
// is exact there, and the result is rounded once to the type that is written.
//
//     W [rows, columns]       piece: elements [begin, begin + count)
//     left  [rows, rank]      B, or A transposed
//     right [rank, columns]   A, or B transposed

#ifndef TMC_DRIVER_MERGE_MERGEROWS_H
#define TMC_DRIVER_MERGE_MERGEROWS_H

#include "runtime/kernels/DType.h"

#include <cstdint>
#include <vector>

namespace tmc {

/// s B A, laid out for the rows of W.
struct LowRank {
  int64_t rank = 0, columns = 0;
  double scale = 0;
  std::vector<float> left, right;
};

/// Types of numbers that a merge reads and writes.
constexpr bool isMergeable(DType type) {
  return type == DType::F32 || isHalf(type) || type == DType::F64;
}

/// `values` of a type that is mergeable, as floats.
void widenTo(DType type, const void *values, int64_t count, float *out);

/// out = in + product, for elements [begin, begin + count) of a tensor; without
/// a product the type alone changes. `in` and `out` are those of the piece. The
/// work is shared by `threads` threads; their number changes no bit. Returns
/// how many finite sums are too large for the type of `out`.
int64_t mergeRows(DType inType, const void *in, DType outType, void *out,
                  int64_t begin, int64_t count, const LowRank *product,
                  int threads);

} // namespace tmc

#endif // TMC_DRIVER_MERGE_MERGEROWS_H
