//===- Strided.h - index arithmetic of element moves ------------*- C++ -*-===//
//
// A move: for each index below `shape`, element
//   out[outOffset + sum i_d outStrides[d]] = in[inOffset + sum i_d
//   inStrides[d]]
// Transpose, concat, pad and strided copies all become one move. Before a
// launch the move is simplified: dimensions of size 1 are removed, and
// neighbouring dimensions that are contiguous in both in and out are merged, so
// that few divisions per element remain. If the last dimension is contiguous in
// both, elements are joined to words of up to 16 bytes. Divisions are those of
// Divisor.h, unless there are 2^31 words or more.
//
// Plain C++, so that tests can run it on the host.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_STRIDED_H
#define TMC_RUNTIME_CUDA_STRIDED_H

#include "runtime/cuda/Divisor.h"
#include "runtime/kernels/Portable.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tmc::cuda {

constexpr int kMoveRank = 8;

struct Move {
  int rank = 0;
  int64_t shape[kMoveRank] = {};
  int64_t inStrides[kMoveRank] = {}, outStrides[kMoveRank] = {};
  int64_t inOffset = 0, outOffset = 0;

  TMC_HD int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d)
      n *= shape[d];
    return n;
  }

  /// The places of element number `i`, row-major over `shape`.
  TMC_HD void locate(int64_t i, int64_t &in, int64_t &out) const {
    in = inOffset;
    out = outOffset;
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t rest = i / shape[d], index = i - rest * shape[d];
      in += index * inStrides[d];
      out += index * outStrides[d];
      i = rest;
    }
  }
};

/// A move of less than 2^31 elements, with its divisions prepared.
struct PreparedMove {
  int rank = 0;
  Divisor shape[kMoveRank];
  int64_t inStrides[kMoveRank] = {}, outStrides[kMoveRank] = {};
  int64_t inOffset = 0, outOffset = 0;

  explicit PreparedMove(const Move &move)
      : rank(move.rank), inOffset(move.inOffset), outOffset(move.outOffset) {
    for (int d = 0; d < rank; ++d) {
      shape[d] = Divisor(move.shape[d] > 0 ? move.shape[d] : 1);
      inStrides[d] = move.inStrides[d];
      outStrides[d] = move.outStrides[d];
    }
  }

  TMC_HD void locate(int64_t i, int64_t &in, int64_t &out) const {
    in = inOffset;
    out = outOffset;
    uint32_t left = uint32_t(i);
    for (int d = rank - 1; d > 0; --d) {
      uint32_t index;
      left = shape[d].divide(left, index);
      in += index * inStrides[d];
      out += index * outStrides[d];
    }
    if (rank > 0) {
      in += left * inStrides[0];
      out += left * outStrides[0];
    }
  }
};

/// Joins runs of `count` elements of the last dimension to one. False if a run
/// isn't contiguous, or may begin at another place than a multiple of `count`.
inline bool joinElements(const Move &move, int64_t count, Move &joined) {
  const int last = move.rank - 1;
  if (last < 0 || move.inStrides[last] != 1 || move.outStrides[last] != 1 ||
      move.shape[last] % count || move.inOffset % count ||
      move.outOffset % count)
    return false;
  joined = move;
  joined.shape[last] /= count;
  joined.inOffset /= count;
  joined.outOffset /= count;
  for (int d = 0; d < last; ++d) {
    if (move.inStrides[d] % count || move.outStrides[d] % count)
      return false;
    joined.inStrides[d] /= count;
    joined.outStrides[d] /= count;
  }
  return true;
}

/// Row-major strides of a shape.
inline std::vector<int64_t> rowMajor(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d];
  }
  return strides;
}

/// The simplified move, or false if more than kMoveRank dimensions remain.
inline bool makeMove(const std::vector<int64_t> &shape,
                     const std::vector<int64_t> &inStrides,
                     const std::vector<int64_t> &outStrides, int64_t inOffset,
                     int64_t outOffset, Move &move) {
  move = {};
  move.inOffset = inOffset;
  move.outOffset = outOffset;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1)
      continue;
    if (move.rank > 0) {
      const int last = move.rank - 1;
      if (move.inStrides[last] == inStrides[d] * shape[d] &&
          move.outStrides[last] == outStrides[d] * shape[d]) {
        move.shape[last] *= shape[d];
        move.inStrides[last] = inStrides[d];
        move.outStrides[last] = outStrides[d];
        continue;
      }
    }
    if (move.rank == kMoveRank)
      return false;
    move.shape[move.rank] = shape[d];
    move.inStrides[move.rank] = inStrides[d];
    move.outStrides[move.rank] = outStrides[d];
    ++move.rank;
  }
  return true;
}

/// Side of the square tiles of a transposition.
constexpr int64_t kTransposeTile = 32;

/// A move whose fastest dimension in `in` isn't the fastest in `out`: element
/// (a, b) of a matrix is at in[a * inStride + b] and out[a + b * outStride];
/// `rest` moves from one matrix to the next.
struct Transposition {
  int64_t a, b, inStride, outStride;
  Move rest;
  int64_t aTiles, bTiles;

  TMC_HD int64_t blocks() const { return aTiles * bTiles * rest.count(); }
};

/// False if the move isn't of that kind, or so small in one dimension that
/// tiles would be mostly empty.
inline bool asTransposition(const Move &move, Transposition &t) {
  int in = -1, out = -1;
  for (int d = 0; d < move.rank; ++d) {
    if (move.inStrides[d] == 1)
      in = d;
    if (move.outStrides[d] == 1)
      out = d;
  }
  if (in < 0 || out < 0 || in == out)
    return false;
  t = {};
  t.a = move.shape[out];
  t.b = move.shape[in];
  t.inStride = move.inStrides[out];
  t.outStride = move.outStrides[in];
  t.aTiles = (t.a + kTransposeTile - 1) / kTransposeTile;
  t.bTiles = (t.b + kTransposeTile - 1) / kTransposeTile;
  t.rest.inOffset = move.inOffset;
  t.rest.outOffset = move.outOffset;
  for (int d = 0; d < move.rank; ++d) {
    if (d == in || d == out)
      continue;
    const int r = t.rest.rank++;
    t.rest.shape[r] = move.shape[d];
    t.rest.inStrides[r] = move.inStrides[d];
    t.rest.outStrides[r] = move.outStrides[d];
  }
  return t.a >= 8 && t.b >= 8;
}

/// The part of a padded dimension that lands inside: indices [first, first +
/// count) of the `size` elements placed at low, low + step, ...
struct PadRange {
  int64_t first, count;
};
inline PadRange padRange(int64_t size, int64_t outSize, int64_t low,
                         int64_t step) {
  int64_t first = low < 0 ? (-low + step - 1) / step : 0;
  // The last i with low + i * step < outSize.
  int64_t end = outSize > low ? (outSize - low + step - 1) / step : 0;
  end = end < size ? end : size;
  first = first < end ? first : end;
  return {first, end - first};
}

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_STRIDED_H
