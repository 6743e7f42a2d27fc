//===- FrozenCodes.cu - frozen weights back from codes on cuda ------------===//
//
// A thread loads 16 bytes of codes of nf4 and passes them on through shared
// memory, four bytes to a thread, so that neighbours in a warp write neighbours
// in memory: 16 bytes of bf16 each.
//
//     load    thread t     16 bytes of codes     numbers 32 t .. 32 t + 31
//     store   pass p, thread t     word p * kThreads + t, its 8 numbers
//
// The levels stand in shared memory once for each lane of a warp, in a bank of
// its own, so that lanes with different codes don't wait for each other.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/FrozenCodes.h"
#include "runtime/cuda/Vector.h"
#include "runtime/kernels/Dequantize.h"
#include "runtime/kernels/Storage.h"

namespace tmc::cuda {
namespace {

using namespace frozen;

constexpr int kThreads = 256;
/// Numbers of a load, and of a word that a thread stores.
constexpr int kLoaded = 32, kStored = 8;
constexpr int kTile = kThreads * kLoaded;
constexpr int kBlocks = kTile / kBlock;
static_assert(kStored == kVector && kTile % kBlock == 0);

/// The tables of the kernels of nf4.
struct Tables {
  Table<kLevels> levels = frozen::levels();
  Table<kMapped> map = dynamicMap();
};

/// The maximum of a block of numbers.
__device__ float absmaxOf(const CodedTensor &from, const Table<kMapped> &map,
                          int64_t block) {
  if (from.absmax)
    return from.absmax[block];
  const int64_t last = nestedFloats(from.count / kBlock) - 1;
  return nestedAbsmax(map.value[from.maxima[block]],
                      from.nested[block / kNestedBlock], from.nested[last]);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    decodeBlocks(CodedTensor from, Tables tables, T *__restrict__ out) {
  __shared__ uint4 loaded[kThreads];
  __shared__ float absmax[kBlocks], level[kLevels * kWarp];
  const int t = int(threadIdx.x), lane = t % kWarp;
  const int64_t first = int64_t(blockIdx.x) * kTile;
  for (int i = t; i < kLevels * kWarp; i += kThreads)
    level[i] = tables.levels.value[i / kWarp];
  if (first + int64_t(t) * kLoaded < from.count)
    loaded[t] =
        reinterpret_cast<const uint4 *>(from.codes)[first / kLoaded + t];
  if (t < kBlocks && first + int64_t(t) * kBlock < from.count)
    absmax[t] = absmaxOf(from, tables.map, first / kBlock + t);
  __syncthreads();
  const auto *words = reinterpret_cast<const uint32_t *>(loaded);
  for (int pass = 0; pass < kLoaded / kStored; ++pass) {
    const int word = pass * kThreads + t;
    const int64_t number = first + int64_t(word) * kStored;
    if (number >= from.count)
      return;
    const uint32_t codes = words[word];
    const float scale = absmax[word * kStored / kBlock];
    float values[kStored];
#pragma unroll
    for (int i = 0; i < kStored; ++i) {
      // The first of two codes is in the high bits of its byte.
      const uint32_t code = codes >> (i / 2 * 8 + (i % 2 ? 0 : 4)) & 15u;
      values[i] = level[code * kWarp + uint32_t(lane)] * scale;
    }
    storeVector<true>(out + number, kStored, values);
  }
}

/// Codes that a thread of decodeCodes takes.
constexpr int kCodes = 16;

/// `Whole`: rows are whole vectors of 16 codes; else a thread takes one code.
template <bool Whole, typename T>
__global__ void __launch_bounds__(kThreads)
    decodeCodes(const int8_t *__restrict__ codes,
                const float *__restrict__ absmax, int64_t count,
                int64_t columns, T *__restrict__ out) {
  const int64_t i = globalThread() * (Whole ? kCodes : 1);
  if (i >= count)
    return;
  const float scale = absmax[i / columns];
  if constexpr (Whole) {
    const uint4 loaded = *reinterpret_cast<const uint4 *>(codes + i);
    const uint32_t words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
#pragma unroll
    for (int half = 0; half < kCodes / kStored; ++half) {
      float values[kStored];
#pragma unroll
      for (int k = 0; k < kStored; ++k) {
        const int at = half * kStored + k;
        values[k] = rowValue(int8_t(words[at / 4] >> (at % 4 * 8)), scale);
      }
      storeVector<true>(out + i + half * kStored, kStored, values);
    }
  } else {
    storeLanes<1>(out + i, rowValue(codes[i], scale));
  }
}

} // namespace

template <typename T>
void decode(Queue &queue, const CodedTensor &from, T *out) {
  launch(queue, decodeBlocks<T>, blocksFor(from.count, kTile), kThreads, 0,
         from, Tables(), out);
}

template <typename T>
void decodeRows(Queue &queue, const int8_t *codes, const float *absmax,
                int64_t rows, int64_t columns, T *out) {
  const int64_t count = rows * columns;
  if (columns % kCodes == 0 && isAligned(codes) && isAligned(out))
    launch(queue, decodeCodes<true, T>, blocksFor(count, kThreads * kCodes),
           kThreads, 0, codes, absmax, count, columns, out);
  else
    launch(queue, decodeCodes<false, T>, blocksFor(count, kThreads), kThreads,
           0, codes, absmax, count, columns, out);
}

#define TMC_FROZEN_TYPE(T)                                                     \
  template void decode(Queue &, const CodedTensor &, T *);                     \
  template void decodeRows(Queue &, const int8_t *, const float *, int64_t,    \
                           int64_t, T *);
TMC_FROZEN_TYPE(float)
TMC_FROZEN_TYPE(bf16)
TMC_FROZEN_TYPE(f16)
#undef TMC_FROZEN_TYPE

} // namespace tmc::cuda

namespace tmc {

struct Dequantize::State : cuda::Prepared {};
Dequantize::Dequantize(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Dequantize::~Dequantize() = default;

Status Dequantize::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Dequantize::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "dequantize");
  auto decodeAs = [&](auto like) {
    auto *out = static_cast<decltype(like) *>(result(outs, 0));
    if (p.byRows)
      return cuda::decodeRows(
          queue, static_cast<const int8_t *>(operand(ins, 0)),
          static_cast<const float *>(operand(ins, 1)), p.rows, p.columns, out);
    cuda::CodedTensor from{};
    from.codes = static_cast<const uint8_t *>(operand(ins, 0));
    from.count = p.rows * p.columns;
    if (p.nested) {
      from.maxima = static_cast<const uint8_t *>(operand(ins, 1));
      from.nested = static_cast<const float *>(operand(ins, 2));
    } else {
      from.absmax = static_cast<const float *>(operand(ins, 1));
    }
    cuda::decode(queue, from, out);
  };
  if (p.out == DType::BF16)
    return decodeAs(bf16());
  if (p.out == DType::F16)
    return decodeAs(f16());
  decodeAs(float());
}

} // namespace tmc
