//===- AttentionGrad.cu - gradients of attention on cuda ------------------===//
//
// Probabilities are recomputed from the saved log-sum-exp. There are three
// launches, five with a bias. Each result is added up by one block, in order:
//
//   dots:    for each query, the sum over channels of dout * out
//   keys:  a block per tile of keys and key head: dk, dv
//            for each head that reads them, for each tile of queries
//   queries: a block per tile of queries and head: dq
//            for each tile of keys
//   bias:    a block per tile of a bias and slice of the batch: dbias of it
//            for each sample and head, and tile of queries, that share it
//   slices:  their sum
//
// For a tile of scores, the middle three launches compute
//
//   P = exp(cap(scale q k^T) + mask + bias - lse);  dP = dout v^T
//   dS = P (drop(dP) - dots);                 dv += drop(P)^T dout
//   dbias += dS;                              dS = scale dS cap'
//   dk += dS^T q;                             dq += dS k
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Attention.h"

#include "runtime/cuda/AttentionHidden.h"
#include "runtime/cuda/AttentionTile.h"
#include "runtime/cuda/TensorAttention.h"

namespace tmc {

namespace cuda {

Status checkAttention(const char *name, const AttentionParams &p);

namespace {

/// Four operand tiles and one of scores.
template <typename Shape> constexpr int64_t sharedBytes() {
  return (4 * Shape::kOperandFloats + Shape::kScoreFloats) *
         int64_t(sizeof(float));
}

constexpr int kDotBlock = 256;

constexpr int kDotElements = 8; // of a lane's part of a row

/// sum + the products of kDotElements elements, in order.
template <typename T>
__device__ float addProducts(const T *x, const T *y, float sum) {
  constexpr int kLoads = kDotElements * int(sizeof(T)) / 16;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const uint4 a4 = reinterpret_cast<const uint4 *>(x)[i];
    const uint4 b4 = reinterpret_cast<const uint4 *>(y)[i];
    const uint32_t a[4] = {a4.x, a4.y, a4.z, a4.w};
    const uint32_t b[4] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if constexpr (sizeof(T) == 4) {
        sum = fmaf(__uint_as_float(a[w]), __uint_as_float(b[w]), sum);
      } else {
        sum =
            fmaf(widenBits<T>(a[w] & 0xffff), widenBits<T>(b[w] & 0xffff), sum);
        sum = fmaf(widenBits<T>(a[w] >> 16), widenBits<T>(b[w] >> 16), sum);
      }
  }
  return sum;
}

/// dots[b, h, t]. Each row (t, h) of sample blockIdx.y has `lanes` lanes, a
/// power of two. Lane i adds up elements [8 i, 8 i + 8) of every 8 * lanes, in
/// order. The sums of lanes are added at distances lanes / 2, .., 1. The order
/// is the same for all types. Without `vectors`, the same holds with 1 element
/// in place of 8.
template <typename T>
__global__ void __launch_bounds__(kDotBlock)
    rowDots(AttentionParams p, GradOperands o, int lanes, bool vectors) {
  const int rows = int(p.queries) * int(p.heads), heads = int(p.heads);
  const int row =
      int(blockIdx.x) * (kDotBlock / lanes) + int(threadIdx.x) / lanes;
  const int lane = int(threadIdx.x) % lanes;
  const int end = row < rows ? int(p.headDim) : 0;
  const int64_t at =
      (int64_t(blockIdx.y) * rows + (row < rows ? row : 0)) * p.headDim;
  const T *dout = static_cast<const T *>(o.dout) + at;
  const T *out = static_cast<const T *>(o.out) + at;
  float sum = 0;
  if (vectors)
    for (int d = lane * kDotElements; d < end; d += lanes * kDotElements)
      sum = addProducts(dout + d, out + d, sum);
  else
    for (int d = lane; d < end; d += lanes)
      sum = fmaf(loadLanes<1>(dout + d), loadLanes<1>(out + d), sum);
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (lane == 0 && row < rows)
    o.dots[(int64_t(blockIdx.y) * heads + row % heads) * p.queries +
           row / heads] = sum;
}

void launchDots(Queue &queue, const AttentionParams &p, const GradOperands &o) {
  const bool vectors = p.headDim % kDotElements == 0 &&
                       reinterpret_cast<uintptr_t>(o.out) % 16 == 0 &&
                       reinterpret_cast<uintptr_t>(o.dout) % 16 == 0;
  const int64_t parts = vectors ? p.headDim / kDotElements : p.headDim;
  int lanes = 1;
  while (lanes < parts && lanes < kWarp)
    lanes *= 2;
  withStored(p.type, [&](auto stored) {
    launch(queue, rowDots<decltype(stored)>,
           dim3(unsigned(ceilDivide(p.queries * p.heads * lanes, kDotBlock)),
                unsigned(p.batch)),
           dim3(kDotBlock), 0, p, o, lanes, vectors);
  });
}

/// The shared memory of a block.
template <typename Shape> struct Tiles {
  float *q, *k, *v, *dout, *scores;
  __device__ explicit Tiles(unsigned char *memory)
      : q(reinterpret_cast<float *>(memory)), k(q + Shape::kOperandFloats),
        v(k + Shape::kOperandFloats), dout(v + Shape::kOperandFloats),
        scores(dout + Shape::kOperandFloats) {}
};

/// Loads the tiles of a head's queries and of dout.
template <typename Shape>
__device__ void loadQueries(const AttentionParams &p, const GradOperands &o,
                            int64_t batch, int64_t head, int64_t query0,
                            const Tiles<Shape> &tiles) {
  const int64_t stride = p.heads * p.headDim; // of dout
  loadTile<Shape>(
      StoredIn{o.q, p.type}.shifted(batch * p.q.batch + head * p.q.head),
      query0, p.queries, p.q.time, p.headDim, tiles.q);
  loadTile<Shape>(StoredIn{o.dout, p.type}.shifted(batch * p.queries * stride +
                                                   head * p.headDim),
                  query0, p.queries, stride, p.headDim, tiles.dout);
}

/// Loads the tiles of a head's keys and values.
template <typename Shape>
__device__ void loadKeys(const AttentionParams &p, const GradOperands &o,
                         int64_t batch, int64_t kvHead, int64_t key0,
                         const Tiles<Shape> &tiles) {
  loadTile<Shape>(
      StoredIn{o.k, p.type}.shifted(batch * p.k.batch + kvHead * p.k.head),
      key0, p.keys, p.k.time, p.headDim, tiles.k);
  loadTile<Shape>(
      StoredIn{o.v, p.type}.shifted(batch * p.v.batch + kvHead * p.v.head),
      key0, p.keys, p.v.time, p.headDim, tiles.v);
}

/// This thread's scores of a tile: `kept` is drop(P), and `slope` is dS with
/// respect to the product, or if OfBias, to the bias. If the kernel has
/// dropout, tiles.scores holds the kept elements.
template <typename Shape, bool OfBias = false>
__device__ void gradientScores(const AttentionParams &p, const GradOperands &o,
                               const Tiles<Shape> &tiles, int64_t batch,
                               int64_t head, int64_t query0, int64_t key0,
                               float (&kept)[Shape::kPer][Shape::kPer],
                               float (&slope)[Shape::kPer][Shape::kPer]) {
  constexpr int kPer = Shape::kPer;
  const int tx = int(threadIdx.x), row0 = int(threadIdx.y) * kPer;
  const bool drops = p.dropout > 0;
  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
  dotRows<Shape>(tiles.q, tiles.k, kept);
  dotRows<Shape>(tiles.dout, tiles.v, slope);
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int64_t query = query0 + row0 + i;
    const int64_t at = (batch * p.heads + head) * p.queries + query;
    const bool exists = query < p.queries;
    const float lse = exists ? o.lse[at] : -INFINITY;
    const float dot = exists ? o.dots[at] : 0.0f;
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int column = tx + kSide * j;
      float capSlope;
      const float score = maskedScore(p, o.extras, batch, head, query,
                                      key0 + column, kept[i][j], capSlope);
      const float probability = lse == -INFINITY ? 0.0f : expf(score - lse);
      float factor = 1;
      if (drops)
        factor =
            tiles.scores[(row0 + i) * Shape::kScoreStride + column] * dropScale;
      kept[i][j] = probability * factor;
      if constexpr (OfBias)
        slope[i][j] = probability * (slope[i][j] * factor - dot);
      else
        slope[i][j] = float(p.scale) * probability *
                      (slope[i][j] * factor - dot) * capSlope;
    }
  }
}

template <typename Shape>
__device__ void writeScores(const float (&s)[Shape::kPer][Shape::kPer],
                            float *scores) {
  const int tx = int(threadIdx.x), row0 = int(threadIdx.y) * Shape::kPer;
#pragma unroll
  for (int i = 0; i < Shape::kPer; ++i)
#pragma unroll
    for (int j = 0; j < Shape::kPer; ++j)
      scores[(row0 + i) * Shape::kScoreStride + tx + kSide * j] = s[i][j];
}

template <typename Shape>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    gradientOfKeys(AttentionParams p, GradOperands o) {
  constexpr int kPer = Shape::kPer, Rows = Shape::Rows;
  TMC_DYNAMIC_SHARED(memory);
  const Tiles<Shape> tiles(memory);
  const int64_t key0 = int64_t(blockIdx.x) * Rows;
  const int64_t kvHead = blockIdx.y, batch = blockIdx.z;
  const int row0 = int(threadIdx.y) * kPer;
  const int64_t queryStride = p.heads * p.headDim;

  loadKeys<Shape>(p, o, batch, kvHead, key0, tiles);
  Share<Shape> dk, dv;
  dk.zero();
  dv.zero();

  const int64_t perKey = p.heads / p.kvHeads;
  const int64_t firstTile = firstQuery(p, o.extras, batch, key0) / Rows;
  const int64_t queryEnd = queryEndOf(p, key0 + Rows);
  for (int64_t head = kvHead * perKey; head < (kvHead + 1) * perKey; ++head) {
    // Outside of the loop; inside it, registers spill.
    const StoredIn qHead =
        StoredIn{o.q, p.type}.shifted(batch * p.q.batch + head * p.q.head);
    const StoredIn doutHead = StoredIn{o.dout, p.type}.shifted(
        batch * p.queries * queryStride + head * p.headDim);
    for (int64_t query0 = firstTile * Rows; query0 < queryEnd; query0 += Rows) {
      __syncthreads(); // the tiles of the last round have been read
      loadTile<Shape>(qHead, query0, p.queries, p.q.time, p.headDim, tiles.q);
      loadTile<Shape>(doutHead, query0, p.queries, queryStride, p.headDim,
                      tiles.dout);
      if (p.dropout > 0)
        fillKept<Shape>(p, o.extras, batch, head, query0, key0, tiles.scores);
      __syncthreads();
      float kept[kPer][kPer], slope[kPer][kPer];
      gradientScores<Shape>(p, o, tiles, batch, head, query0, key0, kept,
                            slope);
      // Each thread overwrites only scores that it alone has read.
      writeScores<Shape>(kept, tiles.scores);
      __syncthreads();
      dv.template add<true>(tiles.scores, tiles.dout);
      __syncthreads();
      writeScores<Shape>(slope, tiles.scores);
      __syncthreads();
      dk.template add<true>(tiles.scores, tiles.q);
    }
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int64_t key = key0 + row0 + i;
    if (key >= p.keys)
      continue;
    const int64_t at = dkAt(p, batch, key, kvHead);
    dk.writeRow(i, StoredOut{o.dk, p.type}.shifted(at), p.headDim);
    dv.writeRow(i, StoredOut{o.dv, p.type}.shifted(at), p.headDim);
  }
}

template <typename Shape>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    gradientOfQueries(AttentionParams p, GradOperands o) {
  constexpr int kPer = Shape::kPer, Rows = Shape::Rows;
  TMC_DYNAMIC_SHARED(memory);
  const Tiles<Shape> tiles(memory);
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * Rows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const int row0 = int(threadIdx.y) * kPer;

  // Outside of the loop; inside it, registers spill.
  const StoredIn kHead =
      StoredIn{o.k, p.type}.shifted(batch * p.k.batch + kvHead * p.k.head);
  const StoredIn vHead =
      StoredIn{o.v, p.type}.shifted(batch * p.v.batch + kvHead * p.v.head);

  loadQueries<Shape>(p, o, batch, head, query0, tiles);
  Share<Shape> dq;
  dq.zero();

  const int64_t queryEnd =
      query0 + Rows < p.queries ? query0 + Rows : p.queries;
  const int64_t keyEnd = keyEndOf(p, o.extras, batch, queryEnd);
  for (int64_t key0 = firstKey(p, query0) / Rows * Rows; key0 < keyEnd;
       key0 += Rows) {
    __syncthreads(); // the tiles of the last round have been read
    loadTile<Shape>(kHead, key0, p.keys, p.k.time, p.headDim, tiles.k);
    loadTile<Shape>(vHead, key0, p.keys, p.v.time, p.headDim, tiles.v);
    if (p.dropout > 0)
      fillKept<Shape>(p, o.extras, batch, head, query0, key0, tiles.scores);
    __syncthreads();
    float kept[kPer][kPer], slope[kPer][kPer];
    gradientScores<Shape>(p, o, tiles, batch, head, query0, key0, kept, slope);
    writeScores<Shape>(slope, tiles.scores);
    __syncthreads();
    dq.template add<false>(tiles.scores, tiles.k);
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int64_t query = query0 + row0 + i;
    if (query < p.queries)
      dq.writeRow(i,
                  StoredOut{o.dq, p.type}.shifted(dqAt(p, batch, query, head)),
                  p.headDim);
  }
}

/// A block: a tile of keys of a bias, and of queries if the bias has them; a
/// head if the bias has heads; and a slice of the batch.
template <typename Shape>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    gradientOfBias(AttentionParams p, GradOperands o, int64_t perSlice,
                   int64_t elements) {
  constexpr int kPer = Shape::kPer, Rows = Shape::Rows;
  TMC_DYNAMIC_SHARED(memory);
  const Tiles<Shape> tiles(memory);
  const int64_t keyTiles = (p.keys + Rows - 1) / Rows;
  const int64_t key0 = int64_t(blockIdx.x) % keyTiles * Rows;
  const int64_t ownQuery0 = int64_t(blockIdx.x) / keyTiles * Rows;
  const int tx = int(threadIdx.x), row0 = int(threadIdx.y) * kPer;
  float sum[kPer][kPer];
#pragma unroll
  for (int i = 0; i < kPer; ++i)
#pragma unroll
    for (int j = 0; j < kPer; ++j)
      sum[i][j] = 0;

  // The samples and heads that share this tile of a bias.
  const int64_t slice = blockIdx.z, ownHead = blockIdx.y;
  const int64_t batchEnd =
      (slice + 1) * perSlice < p.batch ? (slice + 1) * perSlice : p.batch;
  const int64_t headEnd = p.biasHeadStride ? ownHead + 1 : p.heads;
  const int64_t queryEnd = p.biasQueryStride && ownQuery0 + Rows < p.queries
                               ? ownQuery0 + Rows
                               : p.queries;
  for (int64_t batch = slice * perSlice; batch < batchEnd; ++batch)
    for (int64_t head = ownHead; head < headEnd; ++head)
      for (int64_t query0 = ownQuery0; query0 < queryEnd; query0 += Rows) {
        const int64_t tileEnd =
            query0 + Rows < p.queries ? query0 + Rows : p.queries;
        if (key0 >= keyEndOf(p, o.extras, batch, tileEnd) ||
            key0 + Rows <= firstKey(p, query0))
          continue; // the whole block
        const int64_t kvHead = head / (p.heads / p.kvHeads);
        __syncthreads(); // the tiles of the last round have been read
        loadQueries<Shape>(p, o, batch, head, query0, tiles);
        loadKeys<Shape>(p, o, batch, kvHead, key0, tiles);
        if (p.dropout > 0)
          fillKept<Shape>(p, o.extras, batch, head, query0, key0, tiles.scores);
        __syncthreads();
        float kept[kPer][kPer], slope[kPer][kPer];
        gradientScores<Shape, true>(p, o, tiles, batch, head, query0, key0,
                                    kept, slope);
#pragma unroll
        for (int i = 0; i < kPer; ++i)
#pragma unroll
          for (int j = 0; j < kPer; ++j)
            sum[i][j] += slope[i][j];
      }

  const int64_t ownSlice = p.biasBatchStride ? 0 : slice;
  float *to = (ownSlice == 0 ? o.dbias : o.slices + (ownSlice - 1) * elements) +
              (p.biasBatchStride ? slice * p.biasBatchStride : 0) +
              ownHead * p.biasHeadStride;
  if (p.biasQueryStride) {
#pragma unroll
    for (int i = 0; i < kPer; ++i)
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        const int64_t query = ownQuery0 + row0 + i, key = key0 + tx + kSide * j;
        if (query < p.queries && key < p.keys)
          to[query * p.biasQueryStride + key] = sum[i][j];
      }
    return;
  }
  // All queries share a row: sums over a thread's queries, then over threads.
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kPer; ++j) {
    float total = sum[0][j];
#pragma unroll
    for (int i = 1; i < kPer; ++i)
      total += sum[i][j];
    tiles.scores[int(threadIdx.y) * Shape::kScoreStride + tx + kSide * j] =
        total;
  }
  __syncthreads();
  const int column = int(threadIdx.y) * kSide + tx;
  if (column >= Rows || key0 + column >= p.keys)
    return;
  float total = 0;
  for (int y = 0; y < kSide; ++y)
    total += tiles.scores[y * Shape::kScoreStride + column];
  to[key0 + column] = total;
}

constexpr int kSliceBlock = 256;

/// dbias += the other slices' sums.
__global__ void __launch_bounds__(kSliceBlock)
    addSlices(float *dbias, const float *slices, int64_t elements,
              int64_t others) {
  const int64_t i = globalThread();
  if (i >= elements)
    return;
  float sum = dbias[i];
  for (int64_t slice = 0; slice < others; ++slice)
    sum += slices[slice * elements + i];
  dbias[i] = sum;
}

/// Calls body with the largest tiles for this headDim that fit the device's
/// shared memory. The widest heads have no tiles for 64 KiB; prepare() reports
/// that.
template <typename F>
Status withShape(const CudaDevice &device, const AttentionParams &p, F &&body) {
  const bool large = device.sharedBytes() >= sharedBytes<TileShape<64, 64>>();
  if (p.headDim <= 64)
    return large ? body(TileShape<64, 64>{}) : body(TileShape<32, 64>{});
  if (p.headDim <= 128)
    return large ? body(TileShape<32, 128>{}) : body(TileShape<16, 128>{});
  return body(TileShape<16, 256>{});
}

} // namespace
} // namespace cuda

struct AttentionGrad::State : cuda::Prepared {};
AttentionGrad::AttentionGrad(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AttentionGrad::~AttentionGrad() = default;

Status AttentionGrad::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  if (Status s = cuda::checkAttention("attention_grad", params_); !s)
    return s;
  if (Status s = cuda::requireScratch(
          "attention_grad", AttentionGrad::scratchCap(params_, Backend::Cuda),
          params_.scratchBytes);
      !s)
    return s;
  const cuda::CudaDevice &own = *state_->device;
  const bool byTensorCores = cuda::takesTensorCores(own, params_);
  if (byTensorCores)
    if (Status s = cuda::prepareTensorGradients(own, params_); !s)
      return s;
  return cuda::withShape(own, params_, [&](auto shape) {
    using Shape = decltype(shape);
    const int64_t bytes = cuda::sharedBytes<Shape>();
    const std::string name = "attention_grad of heads of " +
                             std::to_string(params_.headDim) + " channels";
    if (!byTensorCores) {
      if (Status s =
              cuda::allowShared(own, name, cuda::gradientOfKeys<Shape>, bytes);
          !s)
        return s;
      if (Status s = cuda::allowShared(own, name,
                                       cuda::gradientOfQueries<Shape>, bytes);
          !s)
        return s;
    }
    return cuda::allowShared(own, name, cuda::gradientOfBias<Shape>, bytes);
  });
}

void AttentionGrad::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "attention_grad");
  float *const slices = reinterpret_cast<float *>(
      static_cast<char *>(scratch) +
      alignScratch(p.batch * p.heads * p.queries * 4));
  char *const hidden =
      reinterpret_cast<char *>(slices) + attentionBiasBytes(p, Backend::Cuda);
  uint32_t *const dropped =
      attentionDroppedBytes(p) > 0
          ? reinterpret_cast<uint32_t *>(hidden + attentionHiddenBytes(p))
          : nullptr;
  const AttentionGradResults results(p, outs);
  const cuda::GradOperands operands{operand(ins, 0),
                                    operand(ins, 1),
                                    operand(ins, 2),
                                    operand(ins, 3),
                                    operand(ins, 5),
                                    static_cast<const float *>(operand(ins, 4)),
                                    AttentionExtras::of(ins, 6),
                                    static_cast<float *>(scratch),
                                    results.dq,
                                    results.dk,
                                    results.dv,
                                    static_cast<float *>(result(outs, 3)),
                                    slices,
                                    dropped};
  cuda::launchDots(queue, p, operands);
  const bool byTensorCores = cuda::takesTensorCores(*state_->device, p);
  if (byTensorCores)
    cuda::runTensorGradients(queue, p, operands);
  (void)cuda::withShape(*state_->device, p, [&](auto shape) {
    using Shape = decltype(shape);
    const dim3 block(cuda::kSide, cuda::kSide);
    if (!byTensorCores) {
      launch(queue, cuda::gradientOfKeys<Shape>,
             dim3(unsigned(cuda::ceilDivide(p.keys, Shape::Rows)),
                  unsigned(p.kvHeads), unsigned(p.batch)),
             block, cuda::sharedBytes<Shape>(), p, operands);
      launch(queue, cuda::gradientOfQueries<Shape>,
             dim3(unsigned(cuda::ceilDivide(p.queries, Shape::Rows)),
                  unsigned(p.heads), unsigned(p.batch)),
             block, cuda::sharedBytes<Shape>(), p, operands);
    }
    if (!p.bias)
      return Status::ok();
    const int64_t parts = attentionBiasSlices(p, Backend::Cuda);
    const int64_t elements = attentionBiasElements(p);
    const int64_t queryTiles =
        p.biasQueryStride ? cuda::ceilDivide(p.queries, Shape::Rows) : 1;
    launch(queue, cuda::gradientOfBias<Shape>,
           dim3(unsigned(queryTiles * cuda::ceilDivide(p.keys, Shape::Rows)),
                unsigned(p.biasHeadStride ? p.heads : 1), unsigned(parts)),
           block, cuda::sharedBytes<Shape>(), p, operands,
           cuda::ceilDivide(p.batch, parts), elements);
    if (!p.biasBatchStride && parts > 1)
      launch(queue, cuda::addSlices,
             cuda::blocksFor(elements, cuda::kSliceBlock),
             dim3(cuda::kSliceBlock), 0, operands.dbias,
             static_cast<const float *>(slices), elements, parts - 1);
    return Status::ok();
  });
  if (mayHideRows(p))
    cuda::addHiddenGradients(queue, p, operands, hidden);
}

} // namespace tmc
