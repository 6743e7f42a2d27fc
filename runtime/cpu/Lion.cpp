//===- Lion.cpp - Lion's updates on cpu -----------------------------------===//

#include "runtime/kernels/Lion.h"
#include "runtime/cpu/Updates.h"

namespace tmc {

using namespace updates;

struct Lion::State {};
Lion::Lion(const Params &params) : params_(params) {}
Lion::~Lion() = default;

Status Lion::prepare(Device &) {
  return cpu::requireScratch("lion", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad, typename Moment>
void moveByLion(Stream &stream, const Lion::Params &q, In ins, Out outs,
                void *scratch) {
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 4));
  float *squares = floats(result(outs, 2));
  if (isSkipped(&step, floats(operand(ins, 5))))
    return reportSquares(stream, grad, q.count, scratch, squares);
  const auto f =
      lion::factors(q, floats(operand(ins, 3)), floats(operand(ins, 5)))
          .template as<V>(simd::splat);
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *moment = static_cast<Moment *>(result(outs, 1));
  const RoundedCopy copy(q.copy, result(outs, 3));

  updateTiles(
      stream, q.count, grad, scratch, squares, [&](int64_t begin, int64_t end) {
        Chance<kDrawnValues<Param, Moment, 1>> chance(q.stream, step);
        Wide sum = simd::splatWide(0);
        eachVector(begin, end, {grad, param, moment},
                   [&](int64_t i, int part, int64_t n) {
                     chance.moveTo(i);
                     const V g = loadSome(grad + i, n);
                     sum.part[part] = simd::fma(g, g, sum.part[part]);
                     V m = loadSome(moment + i, n);
                     const V p = lion::update(f, g, loadSome(param + i, n), m);
                     chance.store(0, param + i, p, n);
                     if constexpr (!isNarrow<Param>)
                       storeSome(copy, i, p, n);
                     chance.store(1, moment + i, m, n);
                   });
        return double(simd::sum(sum));
      });
}

} // namespace

void Lion::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, params_.moment,
              [&](auto param, auto grad, auto moment) {
                moveByLion<decltype(param), decltype(grad), decltype(moment)>(
                    stream, params_, ins, outs, scratch);
              });
}

} // namespace tmc
