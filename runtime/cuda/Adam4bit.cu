//===- Adam4bit.cu - AdamW with moments in 4 bits on cuda -----------------===//
//
// A thread takes a byte of codes, two elements; kGroup threads take a block.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Updates.h"
#include "runtime/kernels/Adam4bit.h"

namespace tmc {

namespace cuda {
namespace {

constexpr int kGroup = adam::kNibbleBlock / 2;
static_assert(kBlock % kGroup == 0 && kPiece % (2 * kBlock) == 0);

/// The codes of one moment, in a block's shared memory.
struct NibbleTable {
  float value[adam::kNibbles], bounds[adam::kNibbles - 1];

  /// Called by all threads; a barrier must follow.
  __device__ void fill(bool isSigned) {
    const int code = int(threadIdx.x);
    if (code < adam::kNibbles)
      value[code] = adam::nibbleValue(isSigned, code);
    if (code + 1 < adam::kNibbles)
      bounds[code] = adam::nibbleBound(isSigned, code);
  }
  __device__ uint32_t nearest(float x) const {
    uint32_t code = 0;
    for (float bound : bounds)
      code += x >= bound;
    return code;
  }
};

/// The largest of a group's values, returned to each of its threads.
__device__ float groupMax(float value, float *shared) {
  const int i = int(threadIdx.x);
  __syncthreads(); // of an earlier use of `shared`
  shared[i] = value;
  __syncthreads();
  for (int step = kGroup / 2; step > 0; step /= 2) {
    if (i % kGroup < step)
      shared[i] = MaxOp{}(shared[i], shared[i + step]);
    __syncthreads();
  }
  return shared[i - i % kGroup];
}

/// One thread's part of a moment: two elements, and their block's scale.
struct NibbleMoment {
  float x[2];

  __device__ void read(const NibbleTable &table, uint8_t byte, float scale) {
    x[0] = table.value[byte >> 4] * scale;
    x[1] = table.value[byte & 15] * scale;
  }
  __device__ float largest() const { return MaxOp{}(fabsf(x[0]), fabsf(x[1])); }
  __device__ uint8_t coded(const NibbleTable &table, float scale) const {
    return uint8_t(table.nearest(x[0] / scale) << 4 |
                   table.nearest(x[1] / scale));
  }
};

template <typename Param, typename Grad>
__global__ void __launch_bounds__(kBlock)
    adamw4bit(UpdateTable<AdamParams, CodedOperands<Param, Grad>> table) {
  const auto row = table.row();
  const Piece piece(row.count, blockIdx.x - row.firstBlock);
  const Grad *__restrict__ grad = row.to.grad;
  squarePart(grad, piece, row.squares);
  if (isSkipped(table.step, table.clip))
    return;
  __shared__ adam::Factors f;
  __shared__ NibbleTable firstTable, secondTable;
  __shared__ float reduced[kBlock];
  if (threadIdx.x == 0)
    f = adam::factors(table.of(row), table.rate, table.step, table.clip);
  firstTable.fill(true);
  secondTable.fill(false);
  __syncthreads();
  Param *param = row.to.param;
  const auto [firstCodes, firstScales] = row.to.first;
  const auto [secondCodes, secondScales] = row.to.second;
  const RoundedCopy copy(table.q.copy, row.to.copy);
  [[maybe_unused]] const Philox draws = roundingDraws(row.stream, *table.step);
  const int64_t end = piece.end;
  for (int64_t from = piece.begin; from < end; from += 2 * kBlock) {
    // A group is completely inside or outside the tensor.
    const int64_t at = from + 2 * threadIdx.x, block = at / adam::kNibbleBlock;
    NibbleMoment m{}, v{};
    if (at < end) {
      m.read(firstTable, firstCodes[at / 2], firstScales[block]);
      v.read(secondTable, secondCodes[at / 2], secondScales[block]);
      for (int k = 0; k < 2; ++k) {
        const int64_t i = at + k;
        const float g = loadLanes<1>(grad + i);
        float p = loadLanes<1>(param + i);
        if (adam::isFinite(g)) {
          p = adam::update(f, g, p, m.x[k], v.x[k], Root{});
          if constexpr (isNarrow<Param>)
            param[i].bits =
                uint16_t(stochasticBits(p, roundingBits(draws, i, 0)));
          else
            param[i] = p;
        }
        if constexpr (!isNarrow<Param>)
          copy.store<1>(i, p);
      }
    }
    // All threads have read the scales: groupMax begins with a barrier.
    const float scaleM = adam::scaleOf(groupMax(m.largest(), reduced));
    const float scaleV = adam::scaleOf(groupMax(v.largest(), reduced));
    if (at >= end)
      continue;
    firstCodes[at / 2] = m.coded(firstTable, scaleM);
    secondCodes[at / 2] = v.coded(secondTable, scaleV);
    if (threadIdx.x % kGroup == 0) {
      firstScales[block] = scaleM;
      secondScales[block] = scaleV;
    }
  }
}

} // namespace
} // namespace cuda

struct AdamW4bit::State : cuda::Prepared {};
AdamW4bit::AdamW4bit(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AdamW4bit::~AdamW4bit() = default;

Status AdamW4bit::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("adamw4bit", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void AdamW4bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runJoined(stream, {{*this, ins, outs, scratch}});
}

void AdamW4bit::runJoined(Stream &stream,
                          std::initializer_list<UpdateRun<AdamW4bit>> runs) {
  const UpdateRun<AdamW4bit> &one = *runs.begin();
  const Params &q = one.update.params_;
  cuda::Queue queue(*one.update.state_->device, stream, "adamw4bit");
  withUpdated(q.param, q.grad, DType::F32, [&](auto p, auto g, auto) {
    cuda::launchJoined(queue, cuda::adamw4bit<decltype(p), decltype(g)>, runs);
  });
}

} // namespace tmc
