//===- Attention.cu - scaled dot-product attention on cuda ----------------===//
//
// A block takes one tile of queries of one head, and walks the keys:
//
//   q tile                                       once
//   for each tile of keys that the queries see:
//     k tile;  s = cap(scale q k^T) + mask
//     top, sum and out are rescaled to the new maximum
//     p = exp(s - top), with dropout, to shared memory
//     v tile, in k's place;  out += p v
//   out /= sum;  lse = top + log sum
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Attention.h"

#include "runtime/cuda/AttentionHidden.h"
#include "runtime/cuda/AttentionTile.h"
#include "runtime/cuda/TensorAttention.h"

namespace tmc {

namespace cuda {
namespace {

template <typename Shape> constexpr int64_t sharedBytes() {
  return (2 * Shape::kOperandFloats + Shape::kScoreFloats) *
         int64_t(sizeof(float));
}

template <typename Shape>
__global__ void __launch_bounds__(kAttentionThreads, kAttentionBlocks)
    attention(AttentionParams p, const void *__restrict__ q,
              const void *__restrict__ k, const void *__restrict__ v,
              AttentionExtras extras, void *__restrict__ out,
              float *__restrict__ lse) {
  constexpr int kPer = Shape::kPer, Rows = Shape::Rows;
  TMC_DYNAMIC_SHARED(memory);
  float *qTile = reinterpret_cast<float *>(memory);
  float *kvTile = qTile + Shape::kOperandFloats;
  float *scores = kvTile + Shape::kOperandFloats;

  // The last queries see the most keys, so they start first.
  const int64_t query0 = int64_t(gridDim.x - 1 - blockIdx.x) * Rows;
  const int64_t head = blockIdx.y, batch = blockIdx.z;
  const int64_t kvHead = head / (p.heads / p.kvHeads);
  const StoredIn qHead =
      StoredIn{q, p.type}.shifted(batch * p.q.batch + head * p.q.head);
  const StoredIn kHead =
      StoredIn{k, p.type}.shifted(batch * p.k.batch + kvHead * p.k.head);
  const StoredIn vHead =
      StoredIn{v, p.type}.shifted(batch * p.v.batch + kvHead * p.v.head);
  const int tx = int(threadIdx.x), row0 = int(threadIdx.y) * kPer;
  const bool drops = p.dropout > 0;

  loadTile<Shape>(qHead, query0, p.queries, p.q.time, p.headDim, qTile);
  Share<Shape> sum;
  sum.zero();
  float top[kPer], total[kPer];
  for (int i = 0; i < kPer; ++i) {
    top[i] = -INFINITY;
    total[i] = 0;
  }

  const int64_t queryEnd =
      query0 + Rows < p.queries ? query0 + Rows : p.queries;
  const int64_t keyEnd = keyEndOf(p, extras, batch, queryEnd);
  for (int64_t key0 = firstKey(p, query0) / Rows * Rows; key0 < keyEnd;
       key0 += Rows) {
    __syncthreads(); // the tiles of the last round have been read
    loadTile<Shape>(kHead, key0, p.keys, p.k.time, p.headDim, kvTile);
    if (drops)
      fillKept<Shape>(p, extras, batch, head, query0, key0, scores);
    __syncthreads();
    float s[kPer][kPer];
    dotRows<Shape>(qTile, kvTile, s);
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      float largest = top[i];
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        float slope;
        s[i][j] = maskedScore(p, extras, batch, head, query0 + row0 + i,
                              key0 + tx + kSide * j, s[i][j], slope);
        largest = largest > s[i][j] ? largest : s[i][j];
      }
      largest = overRow(largest, MaxOp{});
      // If a row has seen no key yet, any finite shift gives exp(-inf) = 0.
      const float shift = largest == -INFINITY ? 0.0f : largest;
      const float shrink = expf(top[i] - shift);
      top[i] = largest;
      float rowSum = 0;
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        float *at = scores + (row0 + i) * Shape::kScoreStride + tx + kSide * j;
        const float e = expf(s[i][j] - shift);
        rowSum += e;
        *at = drops ? e * *at : e;
      }
      total[i] = total[i] * shrink + overRow(rowSum, AddOp{});
      sum.scaleRow(i, shrink);
    }
    __syncthreads(); // k has been read, the scores are written
    loadTile<Shape>(vHead, key0, p.keys, p.v.time, p.headDim, kvTile);
    __syncthreads();
    sum.template add<false>(scores, kvTile);
  }

  const float dropScale = drops ? float(1 / (1 - p.dropout)) : 1.0f;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int64_t query = query0 + row0 + i;
    if (query >= p.queries)
      continue;
    sum.scaleRow(i, total[i] > 0 ? dropScale / total[i] : 0.0f);
    const int64_t row = (batch * p.queries + query) * p.heads + head;
    sum.writeRow(i, StoredOut{out, p.type}.shifted(row * p.headDim), p.headDim);
    if (tx == 0)
      lse[(batch * p.heads + head) * p.queries + query] =
          total[i] > 0 ? markHidden(p, top[i] + logf(total[i])) : -INFINITY;
  }
}

/// Calls body with the largest tiles for this headDim that fit the device's
/// shared memory.
template <typename F>
Status withShape(const CudaDevice &device, const AttentionParams &p, F &&body) {
  if (p.headDim <= 64)
    return body(TileShape<64, 64>{});
  const bool large = device.sharedBytes() >= sharedBytes<TileShape<64, 128>>();
  if (p.headDim <= 128)
    return large ? body(TileShape<64, 128>{}) : body(TileShape<32, 128>{});
  return large ? body(TileShape<32, 256>{}) : body(TileShape<16, 256>{});
}

} // namespace

Status checkAttention(const char *name, const AttentionParams &p) {
  if (p.headDim > 256)
    return {Code::Unsupported, std::string(name) +
                                   " on cuda takes heads of at most 256 "
                                   "channels, not " +
                                   std::to_string(p.headDim)};
  if (p.heads > 65535 || p.batch > 65535)
    return {Code::Unsupported,
            std::string(name) +
                " on cuda takes at most 65535 heads and samples"};
  return Status::ok();
}

} // namespace cuda

struct Attention::State : cuda::Prepared {};
Attention::Attention(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Attention::~Attention() = default;

Status Attention::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  if (Status s = cuda::checkAttention("attention", params_); !s)
    return s;
  const cuda::CudaDevice &own = *state_->device;
  if (cuda::takesTensorCores(own, params_))
    return cuda::prepareTensorAttention(own, params_);
  return cuda::withShape(own, params_, [&](auto shape) {
    using Shape = decltype(shape);
    return cuda::allowShared(own, "attention", cuda::attention<Shape>,
                             cuda::sharedBytes<Shape>());
  });
}

void Attention::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  cuda::Queue queue(*state_->device, stream, "attention");
  const auto extras = AttentionExtras::of(ins, 3);
  if (cuda::takesTensorCores(*state_->device, p)) {
    cuda::runTensorAttention(queue, p, operand(ins, 0), operand(ins, 1),
                             operand(ins, 2), extras, result(outs, 0),
                             static_cast<float *>(result(outs, 1)));
  } else {
    (void)cuda::withShape(*state_->device, p, [&](auto shape) {
      using Shape = decltype(shape);
      launch(queue, cuda::attention<Shape>,
             dim3(unsigned(cuda::ceilDivide(p.queries, Shape::Rows)),
                  unsigned(p.heads), unsigned(p.batch)),
             dim3(cuda::kSide, cuda::kSide), cuda::sharedBytes<Shape>(), p,
             operand(ins, 0), operand(ins, 1), operand(ins, 2), extras,
             result(outs, 0), static_cast<float *>(result(outs, 1)));
      return Status::ok();
    });
  }
  if (p.fill != 0)
    cuda::attendHidden(
        queue, p, operand(ins, 0), operand(ins, 1), operand(ins, 2), extras,
        static_cast<const float *>(result(outs, 1)), result(outs, 0));
}

} // namespace tmc
