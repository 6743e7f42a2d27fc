//===- Embedding.cu - rows of a table by index, on cuda -------------------===//
//
// The gradient sorts (index, row) pairs. Then one block adds up each run of
// equal indices, in the order of the rows. Other rows of the table are zeroed,
// or left unchanged.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Embedding.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/RadixPass.h"

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

/// The pair (index, row) of each row; a row with a bad index sorts after all
/// others.
__global__ void __launch_bounds__(kBlock)
    makePairs(EmbeddingParams p, const void *__restrict__ index,
              SortPair *pairs, DeviceFault *fault) {
  const int64_t row = globalThread();
  if (row >= p.rows)
    return;
  int64_t i = indexAt(index, p.indexType, row);
  if (i < 0 || i >= p.vocabulary) {
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
    addRuns(EmbeddingParams p, const SortPair *__restrict__ pairs,
            const float *__restrict__ dout, float *table) {
  const int64_t first = blockIdx.x;
  const int32_t index = pairs[first].key;
  if (index >= p.vocabulary || (first > 0 && pairs[first - 1].key == index))
    return;
  const int64_t c = int64_t(blockIdx.y) * kBlock + threadIdx.x;
  if (c >= p.channels)
    return;
  float sum = table[index * p.channels + c];
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
  table[index * p.channels + c] = sum;
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
  const Params &p = params_;
  state_->device = &cuda::deviceOf(device);
  if (p.rows >= INT32_MAX || p.vocabulary >= INT32_MAX)
    return {
        Code::Unsupported,
        "embedding_grad on cuda takes fewer than 2^31 - 1 rows and indices"};
  return cuda::requireScratch("embedding_grad", cuda::SortScratch(p.rows).bytes,
                              p.scratchBytes);
}

void EmbeddingGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                        bool accumulate) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "embedding_grad");
  float *table = static_cast<float *>(result(outs, 0));
  if (!accumulate)
    queue.fill(table, 0, p.vocabulary * p.channels * 4);
  const cuda::SortScratch places(p.rows);
  char *memory = static_cast<char *>(scratch);
  auto *from = reinterpret_cast<cuda::SortPair *>(memory + places.first);
  auto *to = reinterpret_cast<cuda::SortPair *>(memory + places.second);
  auto *counts = reinterpret_cast<int32_t *>(memory + places.counts);
  launch(queue, cuda::makePairs, cuda::blocksFor(p.rows, cuda::kBlock),
         dim3(cuda::kBlock), 0, p, operand(ins, 0), from,
         state_->device->fault());
  const dim3 tiles{unsigned(places.tiles)};
  // Keys are 0 to the vocabulary's size, which marks a bad index.
  for (int pass = 0; pass < sortPasses(p.vocabulary + 1); ++pass) {
    launch(queue, cuda::countDigits, tiles, dim3(cuda::kDigits), 0, from,
           p.rows, pass, counts);
    launch(queue, cuda::sumBefore, dim3(p.rows > 0), dim3(cuda::kBlock), 0,
           counts, places.tiles * cuda::kDigits);
    launch(queue, cuda::movePairs, tiles, dim3(cuda::kDigits), 0, from, to,
           p.rows, pass, counts);
    std::swap(from, to);
  }
  launch(queue, cuda::addRuns,
         dim3(unsigned(p.rows),
              unsigned(cuda::ceilDivide(p.channels, cuda::kBlock))),
         dim3(cuda::kBlock), 0, p, from,
         static_cast<const float *>(operand(ins, 1)), table);
}

} // namespace tmc
