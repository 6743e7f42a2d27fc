//===- RotaryEmbedding.cpp - rotation of pairs on cpu ---------------------===//
//
// A tile is some rows. Both elements of a pair are read before either is
// written, so that the result may take the operand's place.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/RotaryEmbedding.h"

#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc {

namespace {

using simd::kWidth;
using simd::V;

/// The smallest number of elements in a tile, of rows as long.
constexpr int64_t kTileElements = 1 << 14;

int64_t offsetOf(const RotaryDims &strides, int64_t outer, int64_t middle,
                 int64_t inner) {
  return outer * strides.outer + middle * strides.middle +
         inner * strides.inner;
}

/// The sines that the two elements of pairs are multiplied by. The adjoint is
/// the rotation by the negative sines of the other elements.
struct Sines {
  V first, second;

  Sines(V ofFirst, V ofSecond, bool transposed)
      : first(transposed ? -ofSecond : ofFirst),
        second(transposed ? -ofFirst : ofSecond) {}
};

template <typename T>
void turnHalves(const T *x, const float *cos, const float *sin, int64_t half,
                bool transposed, T *y) {
  for (int64_t i = 0; i < half; i += kWidth) {
    const int64_t count = std::min<int64_t>(kWidth, half - i), j = half + i;
    const V first = loadSome(x + i, count), second = loadSome(x + j, count);
    const Sines sines(loadSome(sin + i, count), loadSome(sin + j, count),
                      transposed);
    const V cosFirst = loadSome(cos + i, count),
            cosSecond = loadSome(cos + j, count);
    storeSome(y + i, first * cosFirst - second * sines.first, count);
    storeSome(y + j, second * cosSecond + first * sines.second, count);
  }
}

/// Neighbouring lanes in one integer, the first one in its lower half.
using Pairs = uint64_t __attribute__((vector_size(kWidth * 4)));
constexpr uint64_t kSignOfFirst = uint64_t(1) << 31;
constexpr uint64_t kSignOfSecond = uint64_t(1) << 63;

V exchanged(V v) { return (V)((Pairs)v >> 32 | (Pairs)v << 32); }
V negated(V v, uint64_t sign) { return (V)((Pairs)v ^ sign); }

/// Signs are changed as bits: g++ 12 contracts products that it finds added in
/// odd lanes and subtracted in even ones, despite -ffp-contract=off.
template <typename T>
void turnNeighbours(const T *x, const float *cos, const float *sin,
                    int64_t rotated, bool transposed, T *y) {
  for (int64_t i = 0; i < rotated; i += kWidth) {
    const int64_t count = std::min<int64_t>(kWidth, rotated - i);
    const V row = loadSome(x + i, count), sines = loadSome(sin + i, count);
    const V across = transposed ? negated(exchanged(sines), kSignOfSecond)
                                : negated(sines, kSignOfFirst);
    storeSome(y + i, row * loadSome(cos + i, count) + exchanged(row) * across,
              count);
  }
}

} // namespace

struct RotaryEmbedding::State {};
RotaryEmbedding::RotaryEmbedding(const Params &params) : params_(params) {}
RotaryEmbedding::~RotaryEmbedding() = default;

Status RotaryEmbedding::prepare(Device &) { return Status::ok(); }

void RotaryEmbedding::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const float *cos = static_cast<const float *>(operand(ins, 1));
  const float *sin = static_cast<const float *>(operand(ins, 2));
  const int64_t rows = p.rows.outer * p.rows.middle * p.rows.inner;
  if (rows == 0 || p.columns == 0)
    return;
  const int64_t perTile = std::max<int64_t>(1, kTileElements / p.columns);
  withFloats(p.type, [&](auto like) {
    using T = decltype(like);
    const T *x = static_cast<const T *>(operand(ins, 0));
    T *y = static_cast<T *>(result(outs, 0));
    auto turnRow = [&](int64_t row) {
      const int64_t inner = row % p.rows.inner, rest = row / p.rows.inner;
      const int64_t middle = rest % p.rows.middle, outer = rest / p.rows.middle;
      const T *from = x + offsetOf(p.strides, outer, middle, inner);
      const int64_t angles = offsetOf(p.tableStrides, outer, middle, inner);
      T *to = y + row * p.columns;
      const int64_t rotated = inner < p.heads ? p.rotated : 0;
      if (p.interleaved)
        turnNeighbours(from, cos + angles, sin + angles, rotated, p.transposed,
                       to);
      else
        turnHalves(from, cos + angles, sin + angles, rotated / 2, p.transposed,
                   to);
      if (from != to)
        std::copy(from + rotated, from + p.columns, to + rotated);
    };
    parallelFor(stream, (rows + perTile - 1) / perTile,
                [&](int64_t tile, int64_t) {
                  const int64_t end = std::min(rows, (tile + 1) * perTile);
                  for (int64_t row = tile * perTile; row < end; ++row)
                    turnRow(row);
                });
  });
}

} // namespace tmc
