//===- Lion.cu - Lion's updates on cuda -----------------------------------===//

#include "runtime/cuda/Updates.h"
#include "runtime/kernels/Lion.h"

namespace tmc {

namespace cuda {
namespace {

template <typename Param, typename Grad, typename Moment>
__global__ void __launch_bounds__(kBlock)
    moveByLion(Lion::Params q, const Grad *__restrict__ grad,
               const float *__restrict__ rate, const int64_t *__restrict__ step,
               const float *__restrict__ clip, Param *param, Moment *moment,
               RoundedCopy copy, Squares squares) {
  squarePart(grad, q.count, squares);
  if (isSkipped(step, clip))
    return;
  __shared__ lion::Factors<float> shared;
  if (threadIdx.x == 0)
    shared = lion::factors(q, rate, clip);
  __syncthreads();
  const lion::Factors<float> f = shared;
  constexpr int kDrawn = kDrawnValues<Param, Moment, 1>,
                N = Chance<kDrawn>::kRun;
  eachRun<kDrawn>(
      q.count, q.stream, step,
      isAligned(grad) && isAligned(param) && isAligned(moment) &&
          isAligned(copy.address()),
      [&](const auto &chance, int64_t i) {
        Floats<N> m = loadLanes<N, true>(moment + i);
        const Floats<N> g = loadLanes<N, true>(grad + i);
        Floats<N> p = loadLanes<N, true>(param + i);
#pragma unroll
        for (int e = 0; e < N; ++e)
          p[e] = lion::update(f, g[e], p[e], m[e]);
        chance.storeRun(0, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<N, true>(i, p);
        chance.storeRun(1, moment + i, m);
      },
      [&](const auto &chance, int64_t i, int element) {
        float m = loadLanes<1>(moment + i);
        const float p =
            lion::update(f, loadLanes<1>(grad + i), loadLanes<1>(param + i), m);
        chance.store(0, element, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<1>(i, p);
        chance.store(1, element, moment + i, m);
      });
}

} // namespace
} // namespace cuda

using cuda::floats;
using cuda::longs;

struct Lion::State : cuda::Prepared {};
Lion::Lion(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Lion::~Lion() = default;

Status Lion::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("lion", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void Lion::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "lion");
  withUpdated(
      params_.param, params_.grad, params_.moment, [&](auto p, auto g, auto m) {
        using Param = decltype(p);
        using Grad = decltype(g);
        using Moment = decltype(m);
        const auto *grad = static_cast<const Grad *>(operand(ins, 1));
        launch(queue, cuda::moveByLion<Param, Grad, Moment>,
               cuda::blocksFor(params_.count, cuda::kPiece), dim3(cuda::kBlock),
               0, params_, grad, floats(operand(ins, 3)),
               longs(operand(ins, 4)), floats(operand(ins, 5)),
               static_cast<Param *>(result(outs, 0)),
               static_cast<Moment *>(result(outs, 1)),
               RoundedCopy(params_.copy, result(outs, 3)),
               cuda::Squares(scratch, result(outs, 2)));
        cuda::addSquareParts(queue, params_.count, scratch,
                             floats(result(outs, 2)));
      });
}

} // namespace tmc
