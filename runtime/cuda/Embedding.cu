//===- Embedding.cu - rows of a table by index, on cuda -------------------===//
//
// The gradient sorts (index, row) pairs. Then one block adds up each run of
// equal indices, in the order of the rows. Other rows of the table are zeroed,
// or left unchanged. Of a table that ranks keep as shards it adds what lies in
// this rank's.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Embedding.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/RadixPass.h"
#include "runtime/cuda/RankTransfers.h"
#include "runtime/kernels/ShardedEmbedding.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kBlock = 256;

/// Moves rows as Words: elements, or the widest words that the row's size
/// allows.
template <typename Word>
__global__ void __launch_bounds__(kBlock)
    lookUp(EmbeddingParams p, int64_t words, const Word *__restrict__ table,
           const void *__restrict__ index, Word *__restrict__ out,
           DeviceFault *fault) {
  const int64_t row = blockIdx.x;
  int64_t i = indexAt(index, p.indexType, row);
  if (i < 0 || i >= p.vocabulary) {
    if (threadIdx.x == 0)
      reportFault(fault, row, i, p.vocabulary);
    i = 0;
  }
  for (int64_t c = threadIdx.x; c < words; c += kBlock)
    out[row * words + c] = table[i * words + c];
}

/// Bits of -0 in a type.
template <typename T> constexpr T kMinusZero = T(T(1) << (8 * sizeof(T) - 1));

/// Makes the rows of all ranks as far as they lie in shard `place`
/// (ShardedEmbedding.h). A block has a row; blocks beyond the rows have the
/// padding of a piece each. T has an element's bits.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    lookUpInShard(ShardedEmbeddingParams p, int64_t place,
                  const T *__restrict__ shard, const void *__restrict__ index,
                  T *__restrict__ out, DeviceFault *fault) {
  const int64_t row = blockIdx.x;
  if (row >= p.ranks * p.rows) {
    T *piece = out + (row - p.ranks * p.rows) * p.piece;
    for (int64_t c = p.rows * p.channels + threadIdx.x; c < p.piece;
         c += kBlock)
      piece[c] = 0;
    return;
  }
  int64_t i = indexAt(index, p.indexType, row);
  if (i < 0 || i >= p.vocabulary) {
    if (threadIdx.x == 0 && row / p.rows == place)
      reportFault(fault, row % p.rows, i, p.vocabulary);
    i = 0;
  }
  T *to = out + row / p.rows * p.piece + row % p.rows * p.channels;
  for (int64_t c = threadIdx.x; c < p.channels; c += kBlock) {
    const int64_t own = i * p.channels + c - place * p.shard;
    to[c] = own >= 0 && own < p.shard ? shard[own] : kMinusZero<T>;
  }
}

/// The elements of a table that a kernel adds to.
struct TablePart {
  int64_t first, count;
};

/// The pair (index, row) of each row; a row with a bad index sorts after all
/// others. `fault` is null if the index is another rank's.
__global__ void __launch_bounds__(kBlock)
    makePairs(EmbeddingParams p, const void *__restrict__ index,
              SortPair *pairs, DeviceFault *fault) {
  const int64_t row = globalThread();
  if (row >= p.rows)
    return;
  int64_t i = indexAt(index, p.indexType, row);
  if (i < 0 || i >= p.vocabulary) {
    if (fault)
      reportFault(fault, row, i, p.vocabulary);
    i = p.vocabulary;
  }
  pairs[row] = {int32_t(i), int32_t(row)};
}

__global__ void __launch_bounds__(kDigits)
    countDigits(const SortPair *__restrict__ pairs, int64_t count, int pass,
                int32_t *counts) {
  __shared__ unsigned char digits[kSortTile];
  const int64_t begin = int64_t(blockIdx.x) * kSortTile;
  const int here = int(begin + kSortTile < count ? kSortTile : count - begin);
  for (int i = int(threadIdx.x); i < here; i += kDigits)
    digits[i] = (unsigned char)(digitOf(pairs[begin + i].key, pass));
  __syncthreads();
  int32_t found = 0;
  for (int i = 0; i < here; ++i)
    found += digits[i] == threadIdx.x;
  counts[int64_t(threadIdx.x) * gridDim.x + blockIdx.x] = found;
}

/// counts[i] = the sum of all counts before it, in one block: each thread adds
/// up a stretch, then the stretches' sums are added up in order.
__global__ void __launch_bounds__(kBlock)
    sumBefore(int32_t *counts, int64_t count) {
  __shared__ int32_t sums[kBlock];
  const int64_t stretch = ceilDivide(count, kBlock);
  const int64_t begin = threadIdx.x * stretch;
  const int64_t end = begin + stretch < count ? begin + stretch : count;
  int32_t sum = 0;
  for (int64_t i = begin; i < end; ++i)
    sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  int32_t before = 0;
  for (int i = 0; i < int(threadIdx.x); ++i)
    before += sums[i];
  for (int64_t i = begin; i < end; ++i) {
    const int32_t here = counts[i];
    counts[i] = before;
    before += here;
  }
}

__global__ void __launch_bounds__(kDigits)
    movePairs(const SortPair *__restrict__ from, SortPair *__restrict__ to,
              int64_t count, int pass, const int32_t *__restrict__ starts) {
  __shared__ SortPair pairs[kSortTile];
  const int64_t begin = int64_t(blockIdx.x) * kSortTile;
  const int here = int(begin + kSortTile < count ? kSortTile : count - begin);
  for (int i = int(threadIdx.x); i < here; i += kDigits)
    pairs[i] = from[begin + i];
  __syncthreads();
  int64_t at = starts[int64_t(threadIdx.x) * gridDim.x + blockIdx.x];
  for (int i = 0; i < here; ++i)
    if (digitOf(pairs[i].key, pass) == int(threadIdx.x))
      to[at++] = pairs[i];
}

/// Rows of a run that a thread has on their way at once.
constexpr int kAhead = 16;

/// A block per pair and kBlock columns: the first pair of a run adds up the
/// run, in order. A frequent index has a long run, so its rows are loaded
/// before they are added.
__global__ void __launch_bounds__(kBlock)
    addRuns(EmbeddingParams p, TablePart part,
            const SortPair *__restrict__ pairs, const float *__restrict__ dout,
            float *table) {
  const int64_t first = blockIdx.x;
  const int32_t index = pairs[first].key;
  if (index >= p.vocabulary || (first > 0 && pairs[first - 1].key == index))
    return;
  const int64_t c = int64_t(blockIdx.y) * kBlock + threadIdx.x;
  const int64_t own = index * p.channels + c - part.first;
  if (c >= p.channels || own < 0 || own >= part.count)
    return;
  float sum = table[own];
  bool isLast = false;
  for (int64_t i = first; !isLast; i += kAhead) {
    int32_t rows[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      const SortPair pair =
          i + k < p.rows ? pairs[i + k] : SortPair{index + 1, 0};
      rows[k] = pair.key == index ? pair.value : -1;
    }
    float values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      values[k] = rows[k] < 0 ? 0.0f : dout[rows[k] * p.channels + c];
#pragma unroll
    for (int k = 0; k < kAhead; ++k)
      if (rows[k] >= 0)
        sum += values[k];
    isLast = rows[kAhead - 1] < 0;
  }
  table[own] = sum;
}

/// Adds rows of `dout` to a part of a table, which is zeroed before unless
/// `accumulate`.
void queueGradient(Queue &queue, const EmbeddingParams &p, TablePart part,
                   const void *index, const float *dout, float *table,
                   void *scratch, bool accumulate, DeviceFault *fault) {
  if (!accumulate)
    queue.fill(table, 0, part.count * 4);
  const SortScratch places(p.rows);
  char *memory = static_cast<char *>(scratch);
  auto *from = reinterpret_cast<SortPair *>(memory + places.first);
  auto *to = reinterpret_cast<SortPair *>(memory + places.second);
  auto *counts = reinterpret_cast<int32_t *>(memory + places.counts);
  launch(queue, makePairs, blocksFor(p.rows, kBlock), dim3(kBlock), 0, p, index,
         from, fault);
  const dim3 tiles{unsigned(places.tiles)};
  // Keys are 0 to the vocabulary's size, which marks a bad index.
  for (int pass = 0; pass < sortPasses(p.vocabulary + 1); ++pass) {
    launch(queue, countDigits, tiles, dim3(kDigits), 0, from, p.rows, pass,
           counts);
    launch(queue, sumBefore, dim3(p.rows > 0), dim3(kBlock), 0, counts,
           places.tiles * kDigits);
    launch(queue, movePairs, tiles, dim3(kDigits), 0, from, to, p.rows, pass,
           counts);
    std::swap(from, to);
  }
  launch(queue, addRuns,
         dim3(unsigned(p.rows), unsigned(ceilDivide(p.channels, kBlock))),
         dim3(kBlock), 0, p, part, from, dout, table);
}

/// An error if the sort's scratch memory or its integers don't suffice.
Status checkGradient(const char *kernel, const EmbeddingParams &p,
                     int64_t scratchBytes) {
  if (p.rows >= INT32_MAX || p.vocabulary >= INT32_MAX)
    return {Code::Unsupported,
            std::string(kernel) +
                " on cuda takes fewer than 2^31 - 1 rows and indices"};
  return requireScratch(kernel, SortScratch(p.rows).bytes, scratchBytes);
}

} // namespace
} // namespace cuda

struct Embedding::State : cuda::Prepared {};
Embedding::Embedding(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Embedding::~Embedding() = default;

Status Embedding::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void Embedding::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "embedding");
  const void *table = operand(ins, 0), *index = operand(ins, 1);
  void *out = result(outs, 0);
  const int64_t rowBytes = p.channels * sizeOf(p.type);
  const uintptr_t places = reinterpret_cast<uintptr_t>(table) |
                           reinterpret_cast<uintptr_t>(out) |
                           uintptr_t(rowBytes);
  auto move = [&](auto word) {
    using Word = decltype(word);
    launch(queue, cuda::lookUp<Word>, dim3(unsigned(p.rows)),
           dim3(cuda::kBlock), 0, p, rowBytes / int64_t(sizeof(Word)),
           static_cast<const Word *>(table), index, static_cast<Word *>(out),
           state_->device->fault());
  };
  if (places % 16 == 0)
    move(int4{});
  else if (places % 4 == 0)
    move(int32_t{});
  else
    move(char{});
}

struct EmbeddingGrad::State : cuda::Prepared {};
EmbeddingGrad::EmbeddingGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
EmbeddingGrad::~EmbeddingGrad() = default;

Status EmbeddingGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::checkGradient("embedding_grad", params_, params_.scratchBytes);
}

void EmbeddingGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                        bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "embedding_grad");
  cuda::queueGradient(queue, p, {0, p.vocabulary * p.channels}, operand(ins, 0),
                      static_cast<const float *>(operand(ins, 1)),
                      static_cast<float *>(result(outs, 0)), scratch,
                      accumulate, state_->device->fault());
}

struct EmbeddingPieces::State : cuda::Prepared {};
EmbeddingPieces::EmbeddingPieces(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
EmbeddingPieces::~EmbeddingPieces() = default;

Status EmbeddingPieces::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return state_->device->transfers->find(params_.axis, params_.ranks);
}

void EmbeddingPieces::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "embedding_pieces");
  const int64_t place = state_->device->transfers->place(p.axis);
  auto look = [&](auto bits) {
    using T = decltype(bits);
    launch(queue, cuda::lookUpInShard<T>,
           dim3(unsigned(p.ranks * (p.rows + 1))), dim3(cuda::kBlock), 0, p,
           place, static_cast<const T *>(operand(ins, 0)), operand(ins, 1),
           static_cast<T *>(result(outs, 0)), state_->device->fault());
  };
  if (p.type == DType::F32)
    look(uint32_t{});
  else
    look(uint16_t{});
}

/// The rows of all ranks.
static EmbeddingParams rowsOfAll(const ShardedEmbeddingParams &p) {
  return {.type = p.type,
          .indexType = p.indexType,
          .vocabulary = p.vocabulary,
          .channels = p.channels,
          .rows = p.ranks * p.rows};
}

struct EmbeddingGradShard::State : cuda::Prepared {};
EmbeddingGradShard::EmbeddingGradShard(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
EmbeddingGradShard::~EmbeddingGradShard() = default;

Status EmbeddingGradShard::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  if (Status found =
          state_->device->transfers->find(params_.axis, params_.ranks);
      !found)
    return found;
  return cuda::checkGradient("embedding_grad_shard", rowsOfAll(params_),
                             params_.scratchBytes);
}

void EmbeddingGradShard::run(Stream &stream, In ins, Out outs, void *scratch,
                             bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "embedding_grad_shard");
  const int64_t place = state_->device->transfers->place(p.axis);
  cuda::queueGradient(queue, rowsOfAll(p), {place * p.shard, p.shard},
                      operand(ins, 0),
                      static_cast<const float *>(operand(ins, 1)),
                      static_cast<float *>(result(outs, 0)), scratch,
                      accumulate, /*fault=*/nullptr);
}

} // namespace tmc
