//===- RotaryEmbedding.cu - rotation of pairs on cuda ---------------------===//
//
// A thread has kVector pairs of a row (Vector.h): two vectors of the halves, or
// one vector of neighbours and half as many pairs. Threads behind these copy a
// vector of the columns that aren't rotated. In rows that aren't rotated all
// threads copy. A thread reads both elements of a pair before it writes them,
// so that the result may take the operand's place. Then there are no threads
// that copy.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/RotaryEmbedding.h"

#include "runtime/cuda/Divisor.h"
#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Vector.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

struct Rotation {
  Divisor parts, inner, middle; // parts: threads of a row
  RotaryDims strides, tableStrides;
  int64_t items;                 // threads
  int columns, rotated, turning; // turning: threads of a row that rotate
  uint32_t heads;
  bool interleaved, transposed, inPlace;

  Rotation(const RotaryEmbedding::Params &p, bool inPlace)
      : strides(p.strides), tableStrides(p.tableStrides),
        columns(int(p.columns)), rotated(int(p.rotated)),
        heads(uint32_t(p.heads)), interleaved(p.interleaved),
        transposed(p.transposed), inPlace(inPlace) {
    const int64_t span = interleaved ? p.rotated : p.rotated / 2;
    turning = int(ceilDivide(span, kVector));
    const int64_t copying =
        inPlace ? 0 : ceilDivide(p.columns - p.rotated, int64_t(kVector));
    const int64_t ofRow = turning + copying;
    const int64_t perMiddle = inPlace ? p.heads : p.rows.inner;
    items = p.rows.outer * p.rows.middle * perMiddle * ofRow;
    if (items == 0)
      return;
    parts = Divisor(ofRow);
    inner = Divisor(perMiddle);
    middle = Divisor(p.rows.middle);
  }

  /// True if all vectors are whole in x, of rows that begin at these strides,
  /// in the tables and in the result.
  bool isWhole(std::initializer_list<const void *> buffers) const {
    const int64_t ends = strides.outer | strides.middle | strides.inner |
                         columns | (interleaved ? rotated : rotated / 2);
    return areWhole(ends, buffers);
  }
};

/// The places of a thread's row, and the number of its part.
struct Place {
  int64_t x, table, y;
  int part;
  bool turns;

  __device__ Place(const Rotation &r, int64_t item) {
    uint32_t of, inner, middle;
    const uint32_t row = r.parts.divide(uint32_t(item), of);
    const uint32_t outer = r.middle.divide(r.inner.divide(row, inner), middle);
    x = at(r.strides, outer, middle, inner);
    table = at(r.tableStrides, outer, middle, inner);
    y = r.inPlace ? x : int64_t(row) * r.columns;
    part = int(of);
    turns = inner < r.heads;
  }

private:
  __device__ static int64_t at(const RotaryDims &strides, int64_t outer,
                               int64_t middle, int64_t inner) {
    return outer * strides.outer + middle * strides.middle +
           inner * strides.inner;
  }
};

/// Rotates one pair. The adjoint is the rotation by the negative sines of the
/// other elements.
__device__ __forceinline__ void turn(float &first, float &second,
                                     float cosFirst, float cosSecond,
                                     float sinFirst, float sinSecond,
                                     bool transposed) {
  const float a = first, b = second;
  first = a * cosFirst - b * (transposed ? -sinSecond : sinFirst);
  second = b * cosSecond + a * (transposed ? -sinFirst : sinSecond);
}

template <bool Whole, typename T>
__device__ __forceinline__ void turnHalves(const Rotation &r, const T *x,
                                           const float *cos, const float *sin,
                                           int part, bool turns, T *y) {
  const int half = r.rotated / 2, i = part * kVector, j = half + i;
  const int count = half - i < kVector ? half - i : kVector;
  float first[kVector], second[kVector], cosFirst[kVector], cosSecond[kVector],
      sinFirst[kVector], sinSecond[kVector];
  loadVector<Whole>(x + i, count, first);
  loadVector<Whole>(x + j, count, second);
  if (turns) {
    loadVector<Whole>(cos + i, count, cosFirst);
    loadVector<Whole>(cos + j, count, cosSecond);
    loadVector<Whole>(sin + i, count, sinFirst);
    loadVector<Whole>(sin + j, count, sinSecond);
#pragma unroll
    for (int k = 0; k < kVector; ++k)
      turn(first[k], second[k], cosFirst[k], cosSecond[k], sinFirst[k],
           sinSecond[k], r.transposed);
  }
  storeVector<Whole>(y + i, count, first);
  storeVector<Whole>(y + j, count, second);
}

template <bool Whole, typename T>
__device__ __forceinline__ void
turnNeighbours(const Rotation &r, const T *x, const float *cos,
               const float *sin, int part, bool turns, T *y) {
  const int i = part * kVector;
  const int count = r.rotated - i < kVector ? r.rotated - i : kVector;
  float row[kVector], cosines[kVector], sines[kVector];
  loadVector<Whole>(x + i, count, row);
  if (turns) {
    loadVector<Whole>(cos + i, count, cosines);
    loadVector<Whole>(sin + i, count, sines);
#pragma unroll
    for (int k = 0; k < kVector; k += 2)
      turn(row[k], row[k + 1], cosines[k], cosines[k + 1], sines[k],
           sines[k + 1], r.transposed);
  }
  storeVector<Whole>(y + i, count, row);
}

template <bool Whole, typename T>
__device__ __forceinline__ void turnPart(const Rotation &r, const T *x,
                                         const float *cos, const float *sin,
                                         T *y) {
  const int64_t item = globalThread();
  if (item >= r.items)
    return;
  const Place at(r, item);
  x += at.x;
  y += at.y;
  cos += at.table;
  sin += at.table;
  if (at.part >= r.turning) {
    const int i = r.rotated + (at.part - r.turning) * kVector;
    float row[kVector];
    const int count = r.columns - i < kVector ? r.columns - i : kVector;
    loadVector<Whole>(x + i, count, row);
    storeVector<Whole>(y + i, count, row);
  } else if (r.interleaved) {
    turnNeighbours<Whole>(r, x, cos, sin, at.part, at.turns, y);
  } else {
    turnHalves<Whole>(r, x, cos, sin, at.part, at.turns, y);
  }
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    rotaryEmbedding(Rotation r, bool whole, const T *x,
                    const float *__restrict__ cos,
                    const float *__restrict__ sin, T *y) {
  if (whole)
    turnPart<true>(r, x, cos, sin, y);
  else
    turnPart<false>(r, x, cos, sin, y);
}

} // namespace
} // namespace cuda

struct RotaryEmbedding::State : cuda::Prepared {};
RotaryEmbedding::RotaryEmbedding(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
RotaryEmbedding::~RotaryEmbedding() = default;

Status RotaryEmbedding::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  // The columns first: a Rotation counts them in 32 bits.
  if (params_.columns < cuda::kDividends &&
      cuda::Rotation(params_, /*inPlace=*/false).items < cuda::kDividends)
    return Status::ok();
  return {Code::Unsupported, "rotary_embedding on cuda takes less than 2^31 "
                             "vectors of " +
                                 std::to_string(cuda::kVector) + " pairs"};
}

void RotaryEmbedding::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "rotary_embedding");
  const void *x = operand(ins, 0), *cos = operand(ins, 1),
             *sin = operand(ins, 2);
  void *y = result(outs, 0);
  const cuda::Rotation rotation(params_, /*inPlace=*/x == y);
  cuda::withStored(params_.type, [&](auto element) {
    using T = decltype(element);
    launch(queue, cuda::rotaryEmbedding<T>,
           cuda::blocksFor(rotation.items, cuda::kBlock), dim3(cuda::kBlock), 0,
           rotation, rotation.isWhole({x, cos, sin, y}),
           static_cast<const T *>(x), static_cast<const float *>(cos),
           static_cast<const float *>(sin), static_cast<T *>(y));
  });
}

} // namespace tmc
