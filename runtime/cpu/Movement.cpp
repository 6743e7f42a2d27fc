//===- Movement.cpp - kernels that move elements on cpu -------------------===//
//
// Strided copies of one, two, four or eight bytes. Transposes of the innermost
// dimension use square blocks; all other copies end in runs of contiguous
// elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Movement.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/TransposeBlock.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace tmc {

namespace {

/// The smallest number of elements in one part of a copy.
constexpr int64_t kTileElements = 1 << 15;
constexpr int kMaxDims = 8;

/// A box of elements read and written by strides (in elements).
struct Box {
  int rank = 0;
  int64_t shape[kMaxDims], in[kMaxDims], out[kMaxDims];

  void push(int64_t size, int64_t inStride, int64_t outStride) {
    if (size == 1 && rank > 0)
      return;
    // A dimension that continues the one outside it is merged into it.
    if (rank > 0 && in[rank - 1] == inStride * size &&
        out[rank - 1] == outStride * size) {
      shape[rank - 1] *= size;
      in[rank - 1] = inStride;
      out[rank - 1] = outStride;
      return;
    }
    shape[rank] = size;
    in[rank] = inStride;
    out[rank] = outStride;
    ++rank;
  }
};

template <typename T, bool Accumulate>
void line(const T *from, int64_t fromStride, T *to, int64_t toStride,
          int64_t count) {
  if (!Accumulate && fromStride == 1 && toStride == 1) {
    std::memcpy(to, from, size_t(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    if (Accumulate)
      to[i * toStride] = to[i * toStride] + from[i * fromStride];
    else
      to[i * toStride] = from[i * fromStride];
}

/// Square blocks of elements of 2 and 4 bytes.
template <typename T> constexpr int kBlock = 0; // none
template <> constexpr int kBlock<uint16_t> = simd::kHalves;
template <> constexpr int kBlock<uint32_t> = simd::kWidth;
template <> constexpr int kBlock<float> = simd::kWidth;
void transposeBlock(const uint16_t *from, int64_t fromStride, uint16_t *to,
                    int64_t toStride) {
  simd::transposeHalves(from, fromStride, to, toStride);
}
template <typename T>
void transposeBlock(const T *from, int64_t fromStride, T *to,
                    int64_t toStride) {
  static_assert(sizeof(T) == sizeof(float));
  simd::transposeBlock(reinterpret_cast<const float *>(from), fromStride,
                       reinterpret_cast<float *>(to), toStride);
}

/// The block of at most kBlock x kBlock elements at (r, c).
template <typename T>
void crossedBlock(const T *from, int64_t rows, int64_t fromStride, T *to,
                  int64_t columns, int64_t toStride, int64_t r, int64_t c) {
  constexpr int block = kBlock<T>;
  const int64_t rs = std::min<int64_t>(block, rows - r);
  const int64_t cs = std::min<int64_t>(block, columns - c);
  from += r + c * fromStride;
  to += r * toStride + c;
  if (rs == block && cs == block)
    return transposeBlock(from, fromStride, to, toStride);
  for (int64_t j = 0; j < rs; ++j)
    for (int64_t i = 0; i < cs; ++i)
      to[j * toStride + i] = from[j + i * fromStride];
}

/// Two innermost dimensions whose unit strides cross: copied in blocks. Lines
/// of the result that are far apart are written one at a time: those a power of
/// two apart push each other out of the cache.
template <typename T>
void crossed(const T *from, int64_t rows, int64_t fromStride, T *to,
             int64_t columns, int64_t toStride) {
  // from[r + c * fromStride] -> to[r * toStride + c]
  constexpr int64_t block = kBlock<T>;
  const int64_t wide =
      toStride > fromStride ? std::max<int64_t>(block, 64 / sizeof(T)) : block;
  for (int64_t c0 = 0; c0 < columns; c0 += wide) {
    const int64_t end = std::min(columns, c0 + wide);
    for (int64_t r = 0; r < rows; r += block)
      for (int64_t c = c0; c < end; c += block)
        crossedBlock(from, rows, fromStride, to, columns, toStride, r, c);
  }
}

template <typename T, bool Accumulate>
void copyBox(Stream &stream, Box box, const T *from, T *to) {
  if (box.rank == 0)
    box.push(1, 1, 1);
  const int last = box.rank - 1;
  const bool cross = kBlock<T> > 0 && !Accumulate && box.rank >= 2 &&
                     box.in[last - 1] == 1 && box.out[last] == 1;
  const int inner = cross ? 2 : 1;
  int64_t lines = 1, innerElements = 1;
  for (int d = 0; d < box.rank - inner; ++d)
    lines *= box.shape[d];
  for (int d = box.rank - inner; d < box.rank; ++d)
    innerElements *= box.shape[d];
  if (innerElements == 0 || lines == 0)
    return;
  const int64_t perTile = std::max<int64_t>(1, kTileElements / innerElements);
  parallelFor(stream, (lines + perTile - 1) / perTile,
              [&](int64_t tile, int64_t) {
                const int64_t end = std::min(lines, (tile + 1) * perTile);
                for (int64_t l = tile * perTile; l < end; ++l) {
                  int64_t rest = l, in = 0, out = 0;
                  for (int d = box.rank - inner - 1; d >= 0; --d) {
                    const int64_t i = rest % box.shape[d];
                    rest /= box.shape[d];
                    in += i * box.in[d];
                    out += i * box.out[d];
                  }
                  if constexpr (kBlock < T >> 0) {
                    if (cross) {
                      crossed(from + in, box.shape[last - 1], box.in[last],
                              to + out, box.shape[last], box.out[last - 1]);
                      continue;
                    }
                  }
                  line<T, Accumulate>(from + in, box.in[last], to + out,
                                      box.out[last], box.shape[last]);
                }
              });
}

void zero(Stream &stream, void *to, int64_t bytes) {
  constexpr int64_t tile = 1 << 20;
  parallelFor(stream, (bytes + tile - 1) / tile, [&](int64_t i, int64_t) {
    std::memset(static_cast<char *>(to) + i * tile, 0,
                size_t(std::min(tile, bytes - i * tile)));
  });
}

/// Dispatches on the size of an element.
void copyBox(Stream &stream, DType type, const Box &box, const void *from,
             int64_t inOffset, void *to, int64_t outOffset) {
  auto go = [&](auto example) {
    using T = decltype(example);
    copyBox<T, false>(stream, box, static_cast<const T *>(from) + inOffset,
                      static_cast<T *>(to) + outOffset);
  };
  switch (sizeOf(type)) {
  case 1:
    return go(uint8_t());
  case 2:
    return go(uint16_t());
  case 4:
    return go(uint32_t());
  default:
    return go(uint64_t());
  }
}

Status requireRank(const char *kernel, size_t rank) {
  if (rank <= kMaxDims)
    return Status::ok();
  return {Code::Unsupported, std::string(kernel) + " on cpu takes at most " +
                                 std::to_string(kMaxDims) +
                                 " dimensions, not " + std::to_string(rank)};
}

std::vector<int64_t> contiguous(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

/// A gather's index, counted from the end if negative; -1 if it is out of
/// range.
int64_t gatherIndex(const void *index, DType type, int64_t i, int64_t axis) {
  int64_t at = cpu::indexAt(index, type, i);
  at = at < 0 ? at + axis : at;
  return at >= 0 && at < axis ? at : -1;
}
void gatherFaults(Stream &stream, const void *index, DType type, int64_t count,
                  int64_t axis) {
  for (int64_t i = 0; i < count && !stream.fault.set; ++i)
    if (gatherIndex(index, type, i, axis) < 0)
      stream.fault = {true, i, cpu::indexAt(index, type, i), axis};
}

} // namespace

/// Prepared, so that run() allocates nothing.
struct Transpose::State {
  Box box;
};
Transpose::Transpose(const Params &params) : params_(params) {}
Transpose::~Transpose() = default;

Status Transpose::prepare(Device &) {
  if (Status s = requireRank("transpose", params_.shape.size()); !s)
    return s;
  state_ = std::make_unique<State>();
  const std::vector<int64_t> in = contiguous(params_.shape);
  std::vector<int64_t> shape;
  for (int64_t d : params_.perm)
    shape.push_back(params_.shape[size_t(d)]);
  const std::vector<int64_t> out = contiguous(shape);
  for (size_t i = 0; i < shape.size(); ++i)
    state_->box.push(shape[i], in[size_t(params_.perm[i])], out[i]);
  return Status::ok();
}
void Transpose::run(Stream &stream, In ins, Out outs, void *, bool) {
  copyBox(stream, params_.type, state_->box, operand(ins, 0), 0,
          result(outs, 0), 0);
}

struct Concat::State {};
Concat::Concat(const Params &params) : params_(params) {}
Concat::~Concat() = default;
Status Concat::prepare(Device &) { return Status::ok(); }
void Concat::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  int64_t whole = 0, at = 0;
  for (int64_t inner : p.inner)
    whole += inner;
  for (size_t i = 0; i < p.inner.size(); ++i) {
    Box box;
    box.push(p.outer, p.inner[i], whole);
    box.push(p.inner[i], 1, 1);
    copyBox(stream, p.type, box, operand(ins, i), 0, result(outs, 0), at);
    at += p.inner[i];
  }
}

struct Pad::State {
  Box box;
  int64_t offset = 0, zeroBytes = 0;
};
Pad::Pad(const Params &params) : params_(params) {}
Pad::~Pad() = default;

Status Pad::prepare(Device &) {
  const Params &p = params_;
  if (Status s = requireRank("pad", p.shape.size()); !s)
    return s;
  state_ = std::make_unique<State>();
  const std::vector<int64_t> in = contiguous(p.shape);
  const std::vector<int64_t> out = contiguous(p.outShape);
  state_->zeroBytes = sizeOf(p.type);
  for (size_t d = 0; d < p.shape.size(); ++d) {
    state_->box.push(p.shape[d], in[d], out[d] * p.step[d]);
    state_->offset += p.low[d] * out[d];
    state_->zeroBytes *= p.outShape[d];
  }
  return Status::ok();
}
void Pad::run(Stream &stream, In ins, Out outs, void *, bool) {
  void *to = result(outs, 0);
  zero(stream, to, state_->zeroBytes);
  copyBox(stream, params_.type, state_->box, operand(ins, 0), 0, to,
          state_->offset);
}

struct Copy::State {
  Box box;
};
Copy::Copy(const Params &params) : params_(params) {}
Copy::~Copy() = default;

Status Copy::prepare(Device &) {
  if (Status s = requireRank("copy", params_.shape.size()); !s)
    return s;
  state_ = std::make_unique<State>();
  for (size_t d = 0; d < params_.shape.size(); ++d)
    state_->box.push(params_.shape[d], params_.inStrides[d],
                     params_.outStrides[d]);
  return Status::ok();
}
void Copy::run(Stream &stream, In ins, Out outs, void *, bool accumulate) {
  const Params &p = params_;
  if (accumulate && p.type == DType::F32)
    copyBox<float, true>(stream, state_->box,
                         static_cast<const float *>(operand(ins, 0)) +
                             p.inOffset,
                         static_cast<float *>(result(outs, 0)) + p.outOffset);
  else
    copyBox(stream, p.type, state_->box, operand(ins, 0), p.inOffset,
            result(outs, 0), p.outOffset);
}

struct Gather::State {};
Gather::Gather(const Params &params) : params_(params) {}
Gather::~Gather() = default;
Status Gather::prepare(Device &) { return Status::ok(); }
void Gather::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const char *x = static_cast<const char *>(operand(ins, 0));
  const void *index = operand(ins, 1);
  char *y = static_cast<char *>(result(outs, 0));
  const int64_t bytes = p.inner * sizeOf(p.type);
  gatherFaults(stream, index, p.indexType, p.count, p.axis);
  parallelFor(stream, p.outer, [&](int64_t o, int64_t) {
    for (int64_t i = 0; i < p.count; ++i) {
      const int64_t at =
          std::max<int64_t>(0, gatherIndex(index, p.indexType, i, p.axis));
      std::memcpy(y + (o * p.count + i) * bytes, x + (o * p.axis + at) * bytes,
                  size_t(bytes));
    }
  });
}

struct GatherGrad::State {};
GatherGrad::GatherGrad(const Params &params) : params_(params) {}
GatherGrad::~GatherGrad() = default;
Status GatherGrad::prepare(Device &) { return Status::ok(); }
void GatherGrad::run(Stream &stream, In ins, Out outs, void *,
                     bool accumulate) {
  const Params &p = params_;
  const void *index = operand(ins, 0);
  const float *dy = static_cast<const float *>(operand(ins, 1));
  float *dx = static_cast<float *>(result(outs, 0));
  gatherFaults(stream, index, p.indexType, p.count, p.axis);
  parallelFor(stream, p.outer, [&](int64_t o, int64_t) {
    float *to = dx + o * p.axis * p.inner;
    if (!accumulate)
      std::fill_n(to, p.axis * p.inner, 0.0f);
    for (int64_t i = 0; i < p.count; ++i) {
      const int64_t at = gatherIndex(index, p.indexType, i, p.axis);
      const float *from = dy + (o * p.count + i) * p.inner;
      for (int64_t j = 0; at >= 0 && j < p.inner; ++j)
        to[at * p.inner + j] += from[j];
    }
  });
}

struct Fill::State {};
Fill::Fill(const Params &params) : params_(params) {}
Fill::~Fill() = default;
Status Fill::prepare(Device &) { return Status::ok(); }
void Fill::run(Stream &stream, In, Out outs, void *, bool) {
  zero(stream, result(outs, 0), params_.bytes);
}

} // namespace tmc
