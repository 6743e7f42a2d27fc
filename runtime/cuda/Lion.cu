//===- Lion.cu - Lion's updates on cuda -----------------------------------===//

#include "runtime/cuda/Updates.h"
#include "runtime/kernels/Lion.h"

namespace tmc {

namespace cuda {
namespace {

template <typename Param, typename Grad, typename Moment>
__global__ void __launch_bounds__(kBlock) moveByLion(
    UpdateTable<Lion::Params, MomentOperands<Param, Grad, Moment>> table) {
  const auto row = table.row();
  const Piece piece(row.count, blockIdx.x - row.firstBlock);
  const Grad *__restrict__ grad = row.to.grad;
  squarePart(grad, piece, row.squares);
  if (isSkipped(table.step, table.clip))
    return;
  __shared__ lion::Factors<float> shared;
  if (threadIdx.x == 0)
    shared = lion::factors(table.of(row), table.rate, table.clip);
  __syncthreads();
  const lion::Factors<float> f = shared;
  Param *param = row.to.param;
  Moment *moment = row.to.moment;
  const RoundedCopy copy(table.q.copy, row.to.copy);
  constexpr int kDrawn = kDrawnValues<Param, Moment, 1>,
                N = Chance<kDrawn>::kRun;
  eachRun<kDrawn>(
      piece, row.stream, table.step,
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
  runJoined(stream, {{*this, ins, outs, scratch}});
}

void Lion::runJoined(Stream &stream,
                     std::initializer_list<UpdateRun<Lion>> runs) {
  const UpdateRun<Lion> &one = *runs.begin();
  const Params &q = one.update.params_;
  cuda::Queue queue(*one.update.state_->device, stream, "lion");
  withUpdated(q.param, q.grad, q.moment, [&](auto p, auto g, auto m) {
    cuda::launchJoined(
        queue, cuda::moveByLion<decltype(p), decltype(g), decltype(m)>, runs);
  });
}

} // namespace tmc
