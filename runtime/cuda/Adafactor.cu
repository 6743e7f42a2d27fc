//===- Adafactor.cu - Adafactor's updates on cuda -------------------------===//
//
// A warp takes a line: a row, or a piece of a tensor without rows. The sums
// have the order of the cpu backend's sums (runtime/kernels/Adafactor.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Updates.h"
#include "runtime/kernels/Adafactor.h"

namespace tmc {

namespace cuda {
namespace {

using adafactor::Sums;

constexpr int64_t kWarps = kBlock / kWarp;

/// The operands of every kernel of an update.
struct AdafactorStep {
  Adafactor::Params q;
  const float *rate;
  const int64_t *step;
  const float *clip;
  float *first, *second, *paramLines, *updateLines, *columns, *means, *move;
  int64_t lines, tileRows, tiles;
};

/// Computes the factors of a step, by all threads of a block; false if the
/// update is skipped. `shared` is in the block's shared memory.
__device__ bool begins(const AdafactorStep &s, adafactor::Factors &shared) {
  if (threadIdx.x == 0)
    shared = adafactor::factors(s.q, s.rate, s.step, s.clip);
  __syncthreads();
  return !isSkipped(s.step, s.clip);
}

/// The line number of this warp.
__device__ int64_t lineOfWarp() {
  return int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
}

/// Calls add(i, the lane's sum so far) over [0, count) and returns the line's
/// sum in every lane.
template <typename F> __device__ float sumLine(int64_t count, F &&add) {
  static_assert(adafactor::kLineLanes == 2 * kWarp);
  const int lane = int(threadIdx.x) % kWarp;
  float low = 0, high = 0;
  for (int64_t i = lane; i < count; i += 2 * kWarp) {
    low = add(i, low);
    if (i + kWarp < count)
      high = add(i + kWarp, high);
  }
  float sum = low + high;
  for (int distance = kWarp / 2; distance; distance /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  return sum;
}

/// The squares of each row of gradients and of parameters; rows' moments.
template <typename Param, typename Grad>
__global__ void __launch_bounds__(kBlock)
    adafactorRows(AdafactorStep s, const Grad *__restrict__ grad,
                  const Param *__restrict__ param) {
  __shared__ adafactor::Factors f;
  const int64_t r = lineOfWarp();
  if (!begins(s, f) || r >= s.lines)
    return;
  const int64_t at = r * s.q.columns;
  const float squares = sumLine(s.q.columns, [&](int64_t i, float sum) {
    const float g = loadLanes<1>(grad + at + i) * f.scale;
    return fmaf(g, g, sum);
  });
  const float size = sumLine(s.q.columns, [&](int64_t i, float sum) {
    const float p = loadLanes<1>(param + at + i);
    return fmaf(p, p, sum);
  });
  if (threadIdx.x % kWarp != 0)
    return;
  s.first[r] = adafactor::moved(s.first[r], squares / float(s.q.columns), f);
  s.paramLines[r] = size;
}

/// The squares of each column of each tile.
template <typename Grad>
__global__ void __launch_bounds__(kBlock)
    adafactorTiles(AdafactorStep s, const Grad *__restrict__ grad) {
  __shared__ adafactor::Factors f;
  const int64_t i = globalThread();
  if (!begins(s, f) || i >= s.q.batch * s.tiles * s.q.columns)
    return;
  const int64_t column = i % s.q.columns, tile = i / s.q.columns;
  const int64_t matrix = tile / s.tiles;
  const int64_t from = tile % s.tiles * s.tileRows;
  const int64_t to =
      from + s.tileRows < s.q.rows ? from + s.tileRows : s.q.rows;
  float sum = 0;
  for (int64_t row = from; row < to; ++row) {
    const int64_t at = (matrix * s.q.rows + row) * s.q.columns + column;
    const float g = loadLanes<1>(grad + at) * f.scale;
    sum = fmaf(g, g, sum);
  }
  s.columns[i] = sum;
}

/// The moments of columns.
__global__ void __launch_bounds__(kBlock) adafactorColumns(AdafactorStep s) {
  __shared__ adafactor::Factors f;
  const int64_t i = globalThread();
  if (!begins(s, f) || i >= s.q.batch * s.q.columns)
    return;
  const int64_t column = i % s.q.columns, matrix = i / s.q.columns;
  float sum = 0;
  for (int64_t tile = 0; tile < s.tiles; ++tile)
    sum = sum + s.columns[(matrix * s.tiles + tile) * s.q.columns + column];
  s.second[i] = adafactor::moved(s.second[i], sum / float(s.q.rows), f);
}

/// The means of row moments, for each matrix.
__global__ void __launch_bounds__(kBlock) adafactorMeans(AdafactorStep s) {
  __shared__ adafactor::Factors f;
  const int64_t matrix = lineOfWarp();
  if (!begins(s, f) || matrix >= s.q.batch)
    return;
  const float sum = sumLine(s.q.rows, [&](int64_t i, float before) {
    return before + s.first[matrix * s.q.rows + i];
  });
  if (threadIdx.x % kWarp == 0)
    s.means[matrix] = adafactor::divisorOf(f, sum, s.q.rows);
}

/// The update of element c of row r; i is its index in the tensor.
template <typename Grad>
__device__ float updateOf(const AdafactorStep &s, const adafactor::Factors &f,
                          const Grad *grad, int64_t r, int64_t c, int64_t i) {
  const int64_t matrix = r / s.q.rows;
  const float moment =
      s.first[r] * s.second[matrix * s.q.columns + c] / s.means[matrix];
  return adafactor::updateOf(loadLanes<1>(grad + i) * f.scale, moment,
                             f.leastSquare, Root{});
}
/// The same for tensors with a moment for each element.
template <typename Grad>
__device__ float updateOf(const AdafactorStep &s, const adafactor::Factors &f,
                          const Grad *grad, int64_t i) {
  return adafactor::updateOf(loadLanes<1>(grad + i) * f.scale, s.first[i],
                             f.leastSquare, Root{});
}

/// The squares of each row of updates.
template <typename Grad>
__global__ void __launch_bounds__(kBlock)
    adafactorUpdates(AdafactorStep s, const Grad *__restrict__ grad) {
  __shared__ adafactor::Factors f;
  const int64_t r = lineOfWarp();
  if (!begins(s, f) || r >= s.lines)
    return;
  const float squares = sumLine(s.q.columns, [&](int64_t c, float sum) {
    const float u = updateOf(s, f, grad, r, c, r * s.q.columns + c);
    return fmaf(u, u, sum);
  });
  if (threadIdx.x % kWarp == 0)
    s.updateLines[r] = squares;
}

/// Moments of a tensor without rows, and the squares of each line of updates
/// and of parameters.
template <typename Param, typename Grad>
__global__ void __launch_bounds__(kBlock)
    adafactorElements(AdafactorStep s, const Grad *__restrict__ grad,
                      const Param *__restrict__ param) {
  __shared__ adafactor::Factors f;
  const int64_t r = lineOfWarp();
  if (!begins(s, f) || r >= s.lines)
    return;
  const int64_t at = r * adafactor::kLine, left = s.q.count - at;
  const int64_t count = left < adafactor::kLine ? left : adafactor::kLine;
  const float size = sumLine(count, [&](int64_t i, float sum) {
    const float p = loadLanes<1>(param + at + i);
    return fmaf(p, p, sum);
  });
  const float squares = sumLine(count, [&](int64_t i, float sum) {
    const float g = loadLanes<1>(grad + at + i) * f.scale;
    s.first[at + i] = adafactor::moved(s.first[at + i], g * g, f);
    const float u = updateOf(s, f, grad, at + i);
    return fmaf(u, u, sum);
  });
  if (threadIdx.x % kWarp != 0)
    return;
  s.paramLines[r] = size;
  s.updateLines[r] = squares;
}

/// The factor of the updates; one block.
__global__ void __launch_bounds__(adafactor::kTotalLanes)
    adafactorMove(AdafactorStep s) {
  if (isSkipped(s.step, s.clip))
    return;
  __shared__ double shared[adafactor::kTotalLanes];
  double params = 0, updates = 0;
  for (int64_t i = threadIdx.x; i < s.lines; i += adafactor::kTotalLanes) {
    params += double(s.paramLines[i]);
    updates += double(s.updateLines[i]);
  }
  params = blockReduce(params, shared, AddOp{});
  updates = blockReduce(updates, shared, AddOp{});
  if (threadIdx.x == 0)
    *s.move = adafactor::moveOf(s.q, *s.rate, *s.step, params, updates);
}

template <bool IsFactored, typename Param, typename Grad>
__global__ void __launch_bounds__(kBlock)
    adafactorApply(AdafactorStep s, const Grad *__restrict__ grad, Param *param,
                   RoundedCopy copy) {
  __shared__ adafactor::Factors f;
  if (!begins(s, f))
    return;
  const float move = *s.move;
  auto moved = [&](int64_t i) {
    float u;
    if constexpr (IsFactored)
      u = updateOf(s, f, grad, i / s.q.columns, i % s.q.columns, i);
    else
      u = updateOf(s, f, grad, i);
    return loadLanes<1>(param + i) * f.decay + u * move;
  };
  constexpr int kDrawn = kDrawnValues<Param, float, 0>,
                N = Chance<kDrawn>::kRun;
  eachRun<kDrawn>(
      Piece(s.q.count, blockIdx.x), s.q.stream, s.step,
      isAligned(param) && isAligned(copy.address()),
      [&](const auto &chance, int64_t i) {
        Floats<N> p;
#pragma unroll
        for (int e = 0; e < N; ++e)
          p[e] = moved(i + e);
        chance.storeRun(0, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<N, true>(i, p);
      },
      [&](const auto &chance, int64_t i, int element) {
        const float p = moved(i);
        chance.store(0, element, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<1>(i, p);
      });
}

template <typename Param, typename Grad>
void runAdafactor(Queue &queue, const AdafactorStep &s, const Grad *grad,
                  Param *param, const RoundedCopy &copy) {
  const dim3 lines = blocksFor(s.lines, kWarps), block(kBlock);
  const dim3 pieces = blocksFor(s.q.count, kPiece);
  const bool isFactored = s.q.rows > 0;
  if (isFactored) {
    launch(queue, adafactorRows<Param, Grad>, lines, block, 0, s, grad, param);
    launch(queue, adafactorTiles<Grad>,
           blocksFor(s.q.batch * s.tiles * s.q.columns, kBlock), block, 0, s,
           grad);
    launch(queue, adafactorColumns, blocksFor(s.q.batch * s.q.columns, kBlock),
           block, 0, s);
    launch(queue, adafactorMeans, blocksFor(s.q.batch, kWarps), block, 0, s);
    launch(queue, adafactorUpdates<Grad>, lines, block, 0, s, grad);
  } else {
    launch(queue, adafactorElements<Param, Grad>, lines, block, 0, s, grad,
           param);
  }
  launch(queue, adafactorMove, dim3(1), dim3(adafactor::kTotalLanes), 0, s);
  if (isFactored)
    launch(queue, adafactorApply<true, Param, Grad>, pieces, block, 0, s, grad,
           param, copy);
  else
    launch(queue, adafactorApply<false, Param, Grad>, pieces, block, 0, s, grad,
           param, copy);
}

} // namespace
} // namespace cuda

using cuda::floats;
using cuda::longs;

struct Adafactor::State : cuda::Prepared {};
Adafactor::Adafactor(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Adafactor::~Adafactor() = default;

Status Adafactor::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("adafactor", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void Adafactor::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "adafactor");
  const cuda::Sums sums(params_);
  const cuda::AdafactorStep step{
      .q = params_,
      .rate = floats(operand(ins, 4)),
      .step = longs(operand(ins, 5)),
      .clip = floats(operand(ins, 6)),
      .first = floats(result(outs, 1)),
      .second = floats(result(outs, 2)),
      .paramLines = cuda::Sums::at(scratch, sums.params),
      .updateLines = cuda::Sums::at(scratch, sums.updates),
      .columns = cuda::Sums::at(scratch, sums.columns),
      .means = cuda::Sums::at(scratch, sums.means),
      .move = cuda::Sums::at(scratch, sums.move),
      .lines = sums.lines,
      .tileRows = sums.tileRows,
      .tiles = sums.tiles};
  withUpdated(
      params_.param, params_.grad, DType::F32, [&](auto p, auto g, auto) {
        const auto *grad = static_cast<const decltype(g) *>(operand(ins, 1));
        cuda::squareSum(queue, grad, params_.count, scratch,
                        floats(result(outs, 3)));
        cuda::runAdafactor(queue, step, grad,
                           static_cast<decltype(p) *>(result(outs, 0)),
                           RoundedCopy(params_.copy, result(outs, 4)));
      });
}

} // namespace tmc
