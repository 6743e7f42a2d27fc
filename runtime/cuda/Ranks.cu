//===- Ranks.cu - values of the ranks of a mesh, on cuda ------------------===//
//
// Sums take eight neighbouring elements a thread and read the pieces one after
// the other, in the order of the ranks: the same additions as on the cpu, so
// the same bits. Copies and padding take words of up to 16 bytes. Each kernel
// is one launch. Exchange and gather run on the network's stream, and an
// exchange clears the padding of what came there, if there is any.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Ranks.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/RankTransfers.h"
#include "runtime/cuda/Stored.h"
#include "runtime/cuda/Vector.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

/// y[i] = ((x[0, i] + x[1, i]) + ...) in f32, rounded once. x is [pieces,
/// count].
template <bool Whole, typename T>
__global__ void __launch_bounds__(kBlock)
    sumFloats(int64_t pieces, int64_t count, const T *__restrict__ x,
              T *__restrict__ y) {
  const int64_t i = globalThread() * kVector;
  if (i >= count)
    return;
  const int some = int(count - i < kVector ? count - i : kVector);
  float sum[kVector], next[kVector];
  loadVector<Whole>(x + i, some, sum);
  for (int64_t r = 1; r < pieces; ++r) {
    loadVector<Whole>(x + r * count + i, some, next);
#pragma unroll
    for (int k = 0; k < kVector; ++k)
      sum[k] += next[k];
  }
  storeVector<Whole>(y + i, some, sum);
}

/// The same of integers.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    sumIntegers(int64_t pieces, int64_t count, const T *__restrict__ x,
                T *__restrict__ y) {
  const int64_t i = globalThread();
  if (i >= count)
    return;
  T sum = x[i];
  for (int64_t r = 1; r < pieces; ++r)
    sum += x[r * count + i];
  y[i] = sum;
}

/// Copies `own` words, and clears the rest of `count`.
template <typename Word>
__global__ void __launch_bounds__(kBlock)
    copyPadded(int64_t own, int64_t count, const Word *__restrict__ from,
               Word *__restrict__ to) {
  const int64_t i = globalThread();
  if (i < count)
    to[i] = i < own ? from[i] : Word{};
}

/// Clears the last `padding` words of each piece of `count` words.
template <typename Word>
__global__ void __launch_bounds__(kBlock)
    clearPadding(int64_t pieces, int64_t count, int64_t padding, Word *to) {
  const int64_t i = globalThread();
  if (i < pieces * padding)
    to[i / padding * count + count - padding + i % padding] = Word{};
}

/// 16 bytes.
using Quad = Lanes<uint32_t, 4>;

/// Calls body with a value of the longest type of 16, 4 or 1 bytes of which all
/// of `bits`, sizes and addresses that are joined by `|`, are multiples.
template <typename F> void withWord(uint64_t bits, F &&body) {
  if (bits % sizeof(Quad) == 0)
    body(Quad{});
  else if (bits % sizeof(uint32_t) == 0)
    body(uint32_t{});
  else
    body(uint8_t{});
}
uint64_t bitsOf(const void *p) { return reinterpret_cast<uintptr_t>(p); }

template <typename T>
void queueSum(Queue &queue, int64_t pieces, int64_t count, const void *x,
              void *y) {
  const bool whole = areWhole(count, {x, y});
  launch(queue, whole ? sumFloats<true, T> : sumFloats<false, T>,
         blocksFor(ceilDivide(count, kVector), kBlock), dim3(kBlock), 0, pieces,
         count, static_cast<const T *>(x), static_cast<T *>(y));
}

template <typename T>
void queueIntegers(Queue &queue, int64_t pieces, int64_t count, const void *x,
                   void *y) {
  launch(queue, sumIntegers<T>, blocksFor(count, kBlock), dim3(kBlock), 0,
         pieces, count, static_cast<const T *>(x), static_cast<T *>(y));
}

/// A kernel that makes calls on the network.
struct Calling : Prepared {
  Calling(HostCall::Kind kind, const RankPiecesParams &params)
      : call(kind, params) {}
  HostCall call;
};

/// The error of a call becomes the step's.
void keep(CudaDevice &device, const Status &status) {
  if (!status)
    device.fail(status.code(), status.message());
}

} // namespace
} // namespace cuda

struct ExchangeRanks::State : cuda::Calling {
  using Calling::Calling;
};
ExchangeRanks::ExchangeRanks(const Params &params)
    : params_(params),
      state_(std::make_unique<State>(cuda::HostCall::Kind::Exchange, params)) {}
ExchangeRanks::~ExchangeRanks() = default;

Status ExchangeRanks::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return state_->device->transfers->prepare(params_, state_->call);
}

void ExchangeRanks::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::CudaDevice &device = *state_->device;
  cuda::RankTransfers &transfers = *device.transfers;
  void *to = result(outs, 0);
  cuda::keep(device, transfers.exchange(cuda::nativeOf(stream), params_,
                                        state_->call, to, operand(ins, 0)));
  const int64_t padding =
      params_.bytes - ownBytes(params_, transfers.place(params_.axis));
  cuda::Queue queue(device, stream, "exchange");
  const uint64_t bits =
      cuda::bitsOf(to) | uint64_t(padding) | uint64_t(params_.bytes);
  cuda::withWord(bits, [&](auto word) {
    using Word = decltype(word);
    constexpr int64_t size = sizeof(Word);
    launch(queue, cuda::clearPadding<Word>,
           cuda::blocksFor(params_.ranks * padding / size, cuda::kBlock),
           dim3(cuda::kBlock), 0, params_.ranks, params_.bytes / size,
           padding / size, static_cast<Word *>(to));
  });
}

struct GatherRanks::State : cuda::Calling {
  using Calling::Calling;
};
GatherRanks::GatherRanks(const Params &params)
    : params_(params),
      state_(std::make_unique<State>(cuda::HostCall::Kind::Gather, params)) {}
GatherRanks::~GatherRanks() = default;

Status GatherRanks::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return state_->device->transfers->prepare(params_, state_->call);
}

void GatherRanks::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::CudaDevice &device = *state_->device;
  cuda::keep(device, device.transfers->gather(cuda::nativeOf(stream), params_,
                                              state_->call, result(outs, 0),
                                              operand(ins, 0)));
}

struct ShardOf::State : cuda::Prepared {};
ShardOf::ShardOf(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ShardOf::~ShardOf() = default;

Status ShardOf::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return state_->device->transfers->find(params_.axis, params_.ranks);
}

void ShardOf::run(Stream &stream, In ins, Out outs, void *, bool) {
  const int64_t place = state_->device->transfers->place(params_.axis);
  const int64_t own = ownBytes(params_, place);
  const char *from =
      static_cast<const char *>(operand(ins, 0)) + place * params_.bytes;
  void *to = result(outs, 0);
  cuda::Queue queue(*state_->device, stream, "shard_of");
  const uint64_t bits = cuda::bitsOf(from) | cuda::bitsOf(to) | uint64_t(own) |
                        uint64_t(params_.bytes);
  cuda::withWord(bits, [&](auto word) {
    using Word = decltype(word);
    constexpr int64_t size = sizeof(Word);
    launch(queue, cuda::copyPadded<Word>,
           cuda::blocksFor(params_.bytes / size, cuda::kBlock),
           dim3(cuda::kBlock), 0, own / size, params_.bytes / size,
           reinterpret_cast<const Word *>(from), static_cast<Word *>(to));
  });
}

struct SumPieces::State : cuda::Prepared {};
SumPieces::SumPieces(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
SumPieces::~SumPieces() = default;

Status SumPieces::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void SumPieces::run(Stream &stream, In ins, Out outs, void *, bool) {
  const void *x = operand(ins, 0);
  void *y = result(outs, 0);
  const int64_t pieces = params_.pieces, count = params_.count;
  cuda::Queue queue(*state_->device, stream, "sum_pieces");
  switch (params_.type) {
  case DType::I32:
    return cuda::queueIntegers<int32_t>(queue, pieces, count, x, y);
  case DType::I64:
    return cuda::queueIntegers<int64_t>(queue, pieces, count, x, y);
  default:
    cuda::withStored(params_.type, [&](auto stored) {
      cuda::queueSum<decltype(stored)>(queue, pieces, count, x, y);
    });
  }
}

} // namespace tmc
