//===- Ranks.cpp - values of the ranks of a mesh, on cpu ------------------===//

#include "runtime/kernels/Ranks.h"

#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/RankGroup.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {

/// The elements that a thread adds at a time.
constexpr int64_t kTile = 1 << 14;

/// Calls body(begin, end) for the tiles of [0, count).
template <typename F> void eachTile(Stream &stream, int64_t count, F &&body) {
  parallelFor(stream, (count + kTile - 1) / kTile, [&](int64_t tile, int64_t) {
    body(tile * kTile, std::min(count, (tile + 1) * kTile));
  });
}

template <typename T>
void sumFloats(Stream &stream, const T *x, T *y, int64_t pieces,
               int64_t count) {
  eachTile(stream, count, [&](int64_t begin, int64_t end) {
    eachVector(end - begin, [&](auto lanes, int64_t i) {
      const T *from = x + begin + i;
      simd::V sum = lanes.load(from);
      for (int64_t r = 1; r < pieces; ++r)
        sum += lanes.load(from + r * count);
      lanes.store(y + begin + i, sum);
    });
  });
}

template <typename T>
void sumIntegers(Stream &stream, const T *x, T *y, int64_t pieces,
                 int64_t count) {
  eachTile(stream, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T sum = x[i];
      for (int64_t r = 1; r < pieces; ++r)
        sum += x[r * count + i];
      y[i] = sum;
    }
  });
}

} // namespace

struct ExchangeRanks::State : cpu::RankGroup {};
ExchangeRanks::ExchangeRanks(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ExchangeRanks::~ExchangeRanks() = default;

Status ExchangeRanks::prepare(Device &device) {
  return state_->find(device, params_.axis, params_.ranks);
}

void ExchangeRanks::run(Stream &stream, In ins, Out outs, void *, bool) {
  if (!stream.failure)
    return;
  char *to = static_cast<char *>(result(outs, 0));
  stream.failure = state_->peers->exchange(params_.axis, to, operand(ins, 0),
                                           params_.bytes, params_.total);
  const int64_t own = ownBytes(params_, state_->peers->place(params_.axis));
  for (int64_t r = 0; r < params_.ranks && own < params_.bytes; ++r)
    std::memset(to + r * params_.bytes + own, 0, size_t(params_.bytes - own));
}

struct GatherRanks::State : cpu::RankGroup {};
GatherRanks::GatherRanks(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
GatherRanks::~GatherRanks() = default;

Status GatherRanks::prepare(Device &device) {
  return state_->find(device, params_.axis, params_.ranks);
}

void GatherRanks::run(Stream &stream, In ins, Out outs, void *, bool) {
  if (stream.failure)
    stream.failure =
        state_->peers->gather(params_.axis, result(outs, 0), operand(ins, 0),
                              params_.bytes, params_.total);
}

struct ShardOf::State : cpu::RankGroup {};
ShardOf::ShardOf(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
ShardOf::~ShardOf() = default;

Status ShardOf::prepare(Device &device) {
  return state_->find(device, params_.axis, params_.ranks);
}

void ShardOf::run(Stream &stream, In ins, Out outs, void *, bool) {
  const int64_t place = state_->peers->place(params_.axis);
  const char *from =
      static_cast<const char *>(operand(ins, 0)) + place * params_.bytes;
  char *to = static_cast<char *>(result(outs, 0));
  const int64_t own = ownBytes(params_, place);
  eachTile(stream, params_.bytes, [&](int64_t begin, int64_t end) {
    const int64_t some = std::clamp<int64_t>(own - begin, 0, end - begin);
    if (some > 0)
      std::memcpy(to + begin, from + begin, size_t(some));
    std::memset(to + begin + some, 0, size_t(end - begin - some));
  });
}

struct SumPieces::State {};
SumPieces::SumPieces(const Params &params) : params_(params) {}
SumPieces::~SumPieces() = default;

Status SumPieces::prepare(Device &) { return Status::ok(); }

void SumPieces::run(Stream &stream, In ins, Out outs, void *, bool) {
  const void *x = operand(ins, 0);
  void *y = result(outs, 0);
  const int64_t pieces = params_.pieces, count = params_.count;
  switch (params_.type) {
  case DType::BF16:
    return sumFloats(stream, static_cast<const bf16 *>(x),
                     static_cast<bf16 *>(y), pieces, count);
  case DType::F16:
    return sumFloats(stream, static_cast<const f16 *>(x), static_cast<f16 *>(y),
                     pieces, count);
  case DType::I32:
    return sumIntegers(stream, static_cast<const int32_t *>(x),
                       static_cast<int32_t *>(y), pieces, count);
  case DType::I64:
    return sumIntegers(stream, static_cast<const int64_t *>(x),
                       static_cast<int64_t *>(y), pieces, count);
  default:
    return sumFloats(stream, static_cast<const float *>(x),
                     static_cast<float *>(y), pieces, count);
  }
}

} // namespace tmc
