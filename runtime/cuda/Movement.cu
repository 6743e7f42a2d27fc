//===- Movement.cu - kernels that move elements, on cuda ------------------===//
//
// A move whose fastest dimension is the same in both buffers takes words of up
// to 16 bytes, two a thread (Strided.h). One whose fastest dimensions differ
// transposes tiles in shared memory.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Movement.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Strided.h"
#include "runtime/kernels/Storage.h"

#include <type_traits>

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;
/// Rows of threads in a block that transposes a tile.
constexpr int kTileRows = 8;

/// Words that a thread reads before it writes them.
constexpr int kItems = 2;

struct Put {
  template <typename T> __device__ T operator()(const T *, T value) const {
    return value;
  }
};
struct AddTo {
  __device__ float operator()(const float *at, float value) const {
    return *at + value;
  }
  __device__ Floats<4> operator()(const Floats<4> *at, Floats<4> value) const {
    return *at + value;
  }
};

/// Writes op(place, word) to the places of a block's words. Places: Move or
/// PreparedMove.
template <typename Op, typename Places, typename Word>
__device__ __forceinline__ void moveWords(const Places &move, int64_t count,
                                          const Word *in, Word *out, Op op) {
  const int64_t first = int64_t(blockIdx.x) * (kBlock * kItems) + threadIdx.x;
  Word words[kItems];
  int64_t to[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (first + k * kBlock < count) {
      int64_t from;
      move.locate(first + k * kBlock, from, to[k]);
      words[k] = op(out + to[k], in[from]);
    }
#pragma unroll
  for (int k = 0; k < kItems; ++k)
    if (first + k * kBlock < count)
      out[to[k]] = words[k];
}

template <typename Word, typename Places>
__global__ void __launch_bounds__(kBlock)
    moveElements(Places move, int64_t count, const Word *__restrict__ in,
                 Word *out) {
  moveWords(move, count, in, out, Put{});
}

template <typename Word, typename Places>
__global__ void __launch_bounds__(kBlock)
    addElements(Places move, int64_t count, const Word *__restrict__ in,
                Word *out) {
  moveWords(move, count, in, out, AddTo{});
}

template <typename T>
__global__ void __launch_bounds__(int(kTransposeTile) * kTileRows)
    transposeTiles(Transposition t, const T *__restrict__ in, T *out) {
  __shared__ T tile[kTransposeTile][kTransposeTile + 1];
  int64_t block = blockIdx.x;
  const int64_t b0 = block % t.bTiles * kTransposeTile;
  block /= t.bTiles;
  const int64_t a0 = block % t.aTiles * kTransposeTile;
  int64_t from, to;
  t.rest.locate(block / t.aTiles, from, to);
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (int row = y; row < kTransposeTile; row += kTileRows)
    if (a0 + row < t.a && b0 + x < t.b)
      tile[row][x] = in[from + (a0 + row) * t.inStride + b0 + x];
  __syncthreads();
  for (int row = y; row < kTransposeTile; row += kTileRows)
    if (a0 + x < t.a && b0 + row < t.b)
      out[to + (b0 + row) * t.outStride + a0 + x] = tile[x][row];
}

/// y[o, j, i] = x[o, index[j], i]
template <typename T>
__global__ void __launch_bounds__(kBlock)
    gatherElements(Gather::Params p, int64_t count, const T *__restrict__ x,
                   const void *__restrict__ index, T *__restrict__ y,
                   DeviceFault *fault) {
  const int64_t e = globalThread();
  if (e >= count)
    return;
  const int64_t i = e % p.inner, j = e / p.inner % p.count;
  const int64_t o = e / p.inner / p.count;
  const int64_t given = indexAt(index, p.indexType, j);
  int64_t at = given < 0 ? given + p.axis : given;
  if (at < 0 || at >= p.axis) {
    reportFault(fault, j, given, p.axis);
    at = 0;
  }
  y[e] = x[(o * p.axis + at) * p.inner + i];
}

/// A thread owns dx[o, :, i] and adds to it in the order of the indices.
__global__ void __launch_bounds__(kBlock)
    scatterAdd(GatherGrad::Params p, const void *__restrict__ index,
               const float *__restrict__ dy, float *dx, DeviceFault *fault) {
  const int64_t e = globalThread();
  if (e >= p.outer * p.inner)
    return;
  const int64_t o = e / p.inner, i = e % p.inner;
  for (int64_t j = 0; j < p.count; ++j) {
    const int64_t given = indexAt(index, p.indexType, j);
    const int64_t at = given < 0 ? given + p.axis : given;
    if (at < 0 || at >= p.axis) {
      if (e == 0)
        reportFault(fault, j, given, p.axis);
      continue;
    }
    dx[(o * p.axis + at) * p.inner + i] += dy[(o * p.count + j) * p.inner + i];
  }
}

/// A thread owns one element of dx and scans all indices: the same sums, for
/// shapes with few columns.
__global__ void __launch_bounds__(kBlock)
    scatterScan(GatherGrad::Params p, const void *__restrict__ index,
                const float *__restrict__ dy, float *dx, DeviceFault *fault) {
  const int64_t e = globalThread();
  if (e >= p.outer * p.axis * p.inner)
    return;
  const int64_t i = e % p.inner, a = e / p.inner % p.axis;
  const int64_t o = e / p.inner / p.axis;
  float sum = dx[e];
  for (int64_t j = 0; j < p.count; ++j) {
    const int64_t given = indexAt(index, p.indexType, j);
    const int64_t at = given < 0 ? given + p.axis : given;
    if (at < 0 || at >= p.axis) {
      if (e == 0)
        reportFault(fault, j, given, p.axis);
      continue;
    }
    if (at == a)
      sum += dy[(o * p.count + j) * p.inner + i];
  }
  dx[e] = sum;
}
/// With this many columns, each column gets its own thread.
constexpr int64_t kManyColumns = 1024;

/// 16 bytes.
using Quad = Lanes<uint32_t, 4>;

/// Calls body with a value of the unsigned type of a word's size.
template <typename F> void withBytes(int64_t bytes, F &&body) {
  switch (bytes) {
  case 16:
    return body(Quad{});
  case 8:
    return body(uint64_t{});
  case 4:
    return body(uint32_t{});
  case 2:
    return body(uint16_t{});
  default:
    return body(uint8_t{});
  }
}
template <typename F> void withWord(DType type, F &&body) {
  switch (sizeOf(type)) {
  case 8:
    return body(uint64_t{});
  case 4:
    return body(uint32_t{});
  case 2:
    return body(uint16_t{});
  default:
    return body(uint8_t{});
  }
}

Status tooManyDimensions(const char *name) {
  return {Code::Unsupported, std::string(name) + " on cuda takes at most " +
                                 std::to_string(kMoveRank) +
                                 " dimensions that can't be merged"};
}

/// Joins elements of `bytes` bytes to the longest words in which the move and
/// both buffers allow it. Returns the bytes of a word.
int64_t joinToWords(const Move &move, int64_t bytes, const void *in, void *out,
                    Move &joined) {
  const uintptr_t both =
      reinterpret_cast<uintptr_t>(in) | reinterpret_cast<uintptr_t>(out);
  for (int64_t word = sizeof(Quad); word > bytes; word /= 2)
    if (both % uintptr_t(word) == 0 && joinElements(move, word / bytes, joined))
      return word;
  joined = move;
  return bytes;
}

/// Calls body(places, count) with a PreparedMove, or with the move itself if it
/// has too many elements.
template <typename F> void withPlaces(const Move &move, F &&body) {
  if (move.count() < kDividends)
    body(PreparedMove(move), move.count());
  else
    body(move, move.count());
}

void queueMove(Queue &queue, DType type, const Move &move, const void *in,
               void *out) {
  Transposition t;
  if (asTransposition(move, t)) {
    withWord(type, [&](auto word) {
      using Word = decltype(word);
      launch(queue, transposeTiles<Word>, dim3(unsigned(t.blocks())),
             dim3(kTransposeTile, kTileRows), 0, t,
             static_cast<const Word *>(in), static_cast<Word *>(out));
    });
    return;
  }
  Move joined;
  withBytes(joinToWords(move, sizeOf(type), in, out, joined), [&](auto word) {
    using Word = decltype(word);
    withPlaces(joined, [&](const auto &places, int64_t count) {
      launch(queue, moveElements<Word, std::decay_t<decltype(places)>>,
             blocksFor(count, kBlock * kItems), dim3(kBlock), 0, places, count,
             static_cast<const Word *>(in), static_cast<Word *>(out));
    });
  });
}

/// Adds f32.
void queueAdd(Queue &queue, const Move &move, const void *in, void *out) {
  Move joined;
  const int64_t bytes = joinToWords(move, sizeof(float), in, out, joined);
  auto queueWords = [&](auto word, const Move &words) {
    using Word = decltype(word);
    withPlaces(words, [&](const auto &places, int64_t count) {
      launch(queue, addElements<Word, std::decay_t<decltype(places)>>,
             blocksFor(count, kBlock * kItems), dim3(kBlock), 0, places, count,
             static_cast<const Word *>(in), static_cast<Word *>(out));
    });
  };
  if (bytes == sizeof(Quad))
    queueWords(Floats<4>{}, joined);
  else
    queueWords(float{}, move);
}

} // namespace
} // namespace cuda

struct Transpose::State : cuda::Prepared {
  cuda::Move move;
};
Transpose::Transpose(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Transpose::~Transpose() = default;

Status Transpose::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  const Params &p = params_;
  const std::vector<int64_t> inStrides = cuda::rowMajor(p.shape);
  std::vector<int64_t> shape, strides;
  for (int64_t d : p.perm) {
    shape.push_back(p.shape[size_t(d)]);
    strides.push_back(inStrides[size_t(d)]);
  }
  return cuda::makeMove(shape, strides, cuda::rowMajor(shape), 0, 0,
                        state_->move)
             ? Status::ok()
             : cuda::tooManyDimensions("transpose");
}

void Transpose::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "transpose");
  cuda::queueMove(queue, params_.type, state_->move, operand(ins, 0),
                  result(outs, 0));
}

struct Concat::State : cuda::Prepared {};
Concat::Concat(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Concat::~Concat() = default;

Status Concat::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Concat::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "concat");
  int64_t width = 0, at = 0;
  for (int64_t inner : params_.inner)
    width += inner;
  for (size_t i = 0; i < params_.inner.size(); ++i) {
    const int64_t inner = params_.inner[i];
    cuda::Move move;
    move.rank = 2;
    move.shape[0] = params_.outer;
    move.shape[1] = inner;
    move.inStrides[0] = inner;
    move.outStrides[0] = width;
    move.inStrides[1] = move.outStrides[1] = 1;
    move.outOffset = at;
    cuda::queueMove(queue, params_.type, move, operand(ins, i),
                    result(outs, 0));
    at += inner;
  }
}

struct Pad::State : cuda::Prepared {
  cuda::Move move;
  int64_t outCount = 1;
};
Pad::Pad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Pad::~Pad() = default;

Status Pad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  const Params &p = params_;
  std::vector<int64_t> shape, inStrides = cuda::rowMajor(p.shape);
  std::vector<int64_t> outStrides = cuda::rowMajor(p.outShape);
  int64_t inOffset = 0, outOffset = 0;
  state_->outCount = 1;
  for (size_t d = 0; d < p.shape.size(); ++d) {
    const cuda::PadRange range =
        cuda::padRange(p.shape[d], p.outShape[d], p.low[d], p.step[d]);
    shape.push_back(range.count);
    inOffset += range.first * inStrides[d];
    outOffset += (p.low[d] + range.first * p.step[d]) * outStrides[d];
    outStrides[d] *= p.step[d];
    state_->outCount *= p.outShape[d];
  }
  return cuda::makeMove(shape, inStrides, outStrides, inOffset, outOffset,
                        state_->move)
             ? Status::ok()
             : cuda::tooManyDimensions("pad");
}

void Pad::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "pad");
  queue.fill(result(outs, 0), 0, state_->outCount * sizeOf(params_.type));
  cuda::queueMove(queue, params_.type, state_->move, operand(ins, 0),
                  result(outs, 0));
}

struct Copy::State : cuda::Prepared {
  cuda::Move move;
};
Copy::Copy(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Copy::~Copy() = default;

Status Copy::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  const Params &p = params_;
  return cuda::makeMove(p.shape, p.inStrides, p.outStrides, p.inOffset,
                        p.outOffset, state_->move)
             ? Status::ok()
             : cuda::tooManyDimensions("copy");
}

void Copy::run(Stream &stream, In ins, Out outs, void *, bool accumulate) {
  cuda::Queue queue(*state_->device, stream, "copy");
  if (!accumulate) {
    cuda::queueMove(queue, params_.type, state_->move, operand(ins, 0),
                    result(outs, 0));
    return;
  }
  if (params_.type != DType::F32) {
    state_->device->fail(Code::Unsupported,
                         std::string("copy on cuda adds only f32, not ") +
                             nameOf(params_.type));
    return;
  }
  cuda::queueAdd(queue, state_->move, operand(ins, 0), result(outs, 0));
}

struct Gather::State : cuda::Prepared {};
Gather::Gather(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Gather::~Gather() = default;

Status Gather::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Gather::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "gather");
  const int64_t count = p.outer * p.count * p.inner;
  cuda::withWord(p.type, [&](auto word) {
    using Word = decltype(word);
    launch(queue, cuda::gatherElements<Word>,
           cuda::blocksFor(count, cuda::kBlock), dim3(cuda::kBlock), 0, p,
           count, static_cast<const Word *>(operand(ins, 0)), operand(ins, 1),
           static_cast<Word *>(result(outs, 0)), state_->device->fault());
  });
}

struct GatherGrad::State : cuda::Prepared {};
GatherGrad::GatherGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
GatherGrad::~GatherGrad() = default;

Status GatherGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void GatherGrad::run(Stream &stream, In ins, Out outs, void *,
                     bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "gather_grad");
  float *dx = static_cast<float *>(result(outs, 0));
  const int64_t columns = p.outer * p.inner;
  if (!accumulate)
    queue.fill(dx, 0, columns * p.axis * 4);
  const bool many = columns >= cuda::kManyColumns;
  launch(queue, many ? cuda::scatterAdd : cuda::scatterScan,
         cuda::blocksFor(many ? columns : columns * p.axis, cuda::kBlock),
         dim3(cuda::kBlock), 0, p, operand(ins, 0),
         static_cast<const float *>(operand(ins, 1)), dx,
         state_->device->fault());
}

struct Fill::State : cuda::Prepared {};
Fill::Fill(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Fill::~Fill() = default;

Status Fill::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Fill::run(Stream &stream, In, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "fill");
  queue.fill(result(outs, 0), 0, params_.bytes);
}

} // namespace tmc
