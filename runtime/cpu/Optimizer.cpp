//===- Optimizer.cpp - updates of parameters on cpu -----------------------===//
//
// One pass over the memory of each tensor. Scalar factors are computed in f64
// and rounded once, as in PyTorch.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/AdamFactors.h"
#include "runtime/cpu/Updates.h"
#include "runtime/kernels/Adam.h"

namespace tmc {

using namespace updates;

struct AdamW::State {};
AdamW::AdamW(const Params &params) : params_(params) {}
AdamW::~AdamW() = default;

Status AdamW::prepare(Device &) {
  return cpu::requireScratch("adamw", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad, typename Moment>
void adamw(Stream &stream, const AdamParams &q, In ins, Out outs,
           void *scratch) {
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 5));
  if (isSkipped(&step, floats(operand(ins, 6))))
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 3)));
  const AdamFactors f(adam::factors(q, floats(operand(ins, 4)), &step,
                                    floats(operand(ins, 6))));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *first = static_cast<Moment *>(result(outs, 1));
  auto *second = static_cast<Moment *>(result(outs, 2));
  const RoundedCopy copy(q.copy, result(outs, 4));

  updateTiles(stream, q.count, grad, scratch, floats(result(outs, 3)),
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, Moment, 2>> chance(q.stream, step);
                Wide sum = simd::splatWide(0);
                eachVector(begin, end, {grad, param, first, second},
                           [&](int64_t i, int part, int64_t n) {
                             chance.moveTo(i);
                             const V g = loadSome(grad + i, n);
                             sum.part[part] = simd::fma(g, g, sum.part[part]);
                             V m = loadSome(first + i, n);
                             V v = loadSome(second + i, n);
                             const V p =
                                 adam::update(f, g, loadSome(param + i, n), m,
                                              v, simd::sqrt);
                             chance.store(0, param + i, p, n);
                             if constexpr (!isNarrow<Param>)
                               storeSome(copy, i, p, n);
                             chance.store(1, first + i, m, n);
                             chance.store(2, second + i, v, n);
                           });
                return double(simd::sum(sum));
              });
}

} // namespace

void AdamW::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, params_.moment,
              [&](auto param, auto grad, auto moment) {
                adamw<decltype(param), decltype(grad), decltype(moment)>(
                    stream, params_, ins, outs, scratch);
              });
}

namespace {

/// The codes of one moment, and a table for the nearest code: floats with the
/// same first 16 bits have at most two different codes, which are neighbours.
struct CodeTable {
  float value[adam::kCodes], above[adam::kCodes];
  uint8_t least[1 << 16];

  explicit CodeTable(bool isSigned) {
    for (int c = 0; c < adam::kCodes; ++c)
      value[c] = adam::codeValue(isSigned, c);
    for (int c = 0; c + 1 < adam::kCodes; ++c)
      above[c] = adam::boundBetween(value[c], value[c + 1]);
    above[adam::kCodes - 1] = 1;
    for (uint32_t top = 0; top < 1 << 16; ++top) {
      // If they are negative, the smallest one has the largest bits.
      const uint32_t bits = top << 16 | (top >> 15 ? 0xffffu : 0u);
      float x;
      std::memcpy(&x, &bits, sizeof x);
      least[top] = uint8_t(adam::nearestCode(x, above));
    }
  }
  /// Requires |x| <= 1.
  uint8_t nearest(float x) const {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const uint8_t code = least[bits >> 16];
    return uint8_t(code + (x > above[code]));
  }
};

const CodeTable &codesOf(bool isSigned) {
  static const CodeTable first(true), second(false);
  return isSigned ? first : second;
}

/// Converts a block's moments to floats and back; zeros after the last.
struct Moments {
  alignas(64) float x[adam::kCodeBlock];

  void read(const CodeTable &table, const uint8_t *codes, float most,
            int64_t count) {
    const float *value = table.value;
    for (int64_t i = 0; i < count; ++i)
      x[i] = value[codes[i]] * most;
    std::fill(x + count, x + adam::kCodeBlock, 0.0f);
  }
  void write(const CodeTable &table, uint8_t *codes, float *most,
             int64_t count) {
    V largest{};
    for (int64_t i = 0; i < adam::kCodeBlock; i += kWidth) {
      const V v = simd::load(x + i);
      largest = simd::max(largest, simd::max(v, -v));
    }
    float lanes[kWidth];
    simd::store(lanes, largest);
    *most = *std::max_element(lanes, lanes + kWidth);
    const V divisor = simd::splat(adam::divisorOf(*most));
    for (int64_t i = 0; i < adam::kCodeBlock; i += kWidth)
      simd::store(x + i, simd::load(x + i) / divisor);
    for (int64_t i = 0; i < count; ++i)
      codes[i] = table.nearest(x[i]);
  }
};

} // namespace

struct AdamW8bit::State {};
AdamW8bit::AdamW8bit(const Params &params) : params_(params) {}
AdamW8bit::~AdamW8bit() = default;

Status AdamW8bit::prepare(Device &) {
  (void)codesOf(true), (void)codesOf(false); // Built before the first step.
  return cpu::requireScratch("adamw8bit", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad>
void adamw8bit(Stream &stream, const AdamParams &q, In ins, Out outs,
               void *scratch) {
  const CodeTable &first = codesOf(true), &second = codesOf(false);
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 7));
  if (isSkipped(&step, floats(operand(ins, 8))))
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 5)));
  const AdamFactors f(adam::factors(q, floats(operand(ins, 6)), &step,
                                    floats(operand(ins, 8))));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *firstCodes = static_cast<uint8_t *>(result(outs, 1));
  float *firstMost = floats(result(outs, 2));
  auto *secondCodes = static_cast<uint8_t *>(result(outs, 3));
  float *secondMost = floats(result(outs, 4));
  const RoundedCopy copy(q.copy, result(outs, 6));
  static_assert(kUpdateTile % adam::kCodeBlock == 0);

  updateTiles(stream, q.count, grad, scratch, floats(result(outs, 5)),
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, float, 0>> chance(q.stream, step);
                Moments m, v;
                for (int64_t at = begin; at < end; at += adam::kCodeBlock) {
                  const int64_t count =
                      std::min<int64_t>(adam::kCodeBlock, end - at);
                  const int64_t block = at / adam::kCodeBlock;
                  m.read(first, firstCodes + at, firstMost[block], count);
                  v.read(second, secondCodes + at, secondMost[block], count);
                  eachVector(0, count, {}, [&](int64_t i, int, int64_t n) {
                    updateFinite(f, chance, grad, param, copy, at + i, n,
                                 m.x + i, v.x + i);
                  });
                  m.write(first, firstCodes + at, firstMost + block, count);
                  v.write(second, secondCodes + at, secondMost + block, count);
                }
                return squaresOf(grad, begin, end);
              });
}

} // namespace

void AdamW8bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, DType::F32,
              [&](auto param, auto grad, auto) {
                adamw8bit<decltype(param), decltype(grad)>(stream, params_, ins,
                                                           outs, scratch);
              });
}

struct Sgd::State {};
Sgd::Sgd(const Params &params) : params_(params) {}
Sgd::~Sgd() = default;

Status Sgd::prepare(Device &) {
  return cpu::requireScratch("sgd", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad, typename Moment>
void sgd(Stream &stream, const Sgd::Params &q, In ins, Out outs,
         void *scratch) {
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const float lr = *floats(operand(ins, 3));
  const int64_t t = *longs(operand(ins, 4));
  const float *clip = floats(operand(ins, 5));
  if (isSkipped(&t, clip))
    return reportSquares(stream, grad, q.count, scratch,
                         floats(result(outs, 2)));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *buffer = static_cast<Moment *>(result(outs, 1));
  const RoundedCopy copy(q.copy, result(outs, 3));

  const bool hasMomentum = q.momentum != 0 && buffer;
  const bool firstStep = t <= 1;
  const V decay = simd::splat(float(q.weightDecay));
  const V momentum = simd::splat(float(q.momentum));
  const V damped = simd::splat(float(1 - q.dampening));
  const V rate = simd::splat(-lr);
  const V scale = simd::splat(clip ? *clip : 1.0f);

  updateTiles(stream, q.count, grad, scratch, floats(result(outs, 2)),
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, Moment, 1>> chance(q.stream, t);
                Wide sum = simd::splatWide(0);
                auto update = [&](int64_t i, int part, int64_t n) {
                  chance.moveTo(i);
                  V g = loadSome(grad + i, n);
                  sum.part[part] = simd::fma(g, g, sum.part[part]);
                  g = g * scale;
                  V p = loadSome(param + i, n);
                  if (q.weightDecay != 0)
                    g = g + decay * p;
                  if (hasMomentum) {
                    V b = g;
                    if (!firstStep)
                      b = loadSome(buffer + i, n) * momentum + damped * g;
                    chance.store(1, buffer + i, b, n);
                    g = q.nesterov ? g + momentum * b : b;
                  }
                  p = p + rate * g;
                  chance.store(0, param + i, p, n);
                  if constexpr (!isNarrow<Param>)
                    storeSome(copy, i, p, n);
                };
                if (hasMomentum)
                  eachVector(begin, end, {grad, param, buffer}, update);
                else
                  eachVector(begin, end, {grad, param}, update);
                return double(simd::sum(sum));
              });
}

} // namespace

void Sgd::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, params_.moment,
              [&](auto param, auto grad, auto moment) {
                sgd<decltype(param), decltype(grad), decltype(moment)>(
                    stream, params_, ins, outs, scratch);
              });
}

struct SquareSum::State {};
SquareSum::SquareSum(const Params &params) : params_(params) {}
SquareSum::~SquareSum() = default;

Status SquareSum::prepare(Device &) {
  return cpu::requireScratch("square_sum", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void SquareSum::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withGradient(params_.type, [&](auto type) {
    reportSquares(stream, static_cast<const decltype(type) *>(operand(ins, 0)),
                  params_.count, scratch, floats(result(outs, 0)));
  });
}

struct GradNorm::State {};
GradNorm::GradNorm(const Params &params) : params_(params) {}
GradNorm::~GradNorm() = default;
Status GradNorm::prepare(Device &) { return Status::ok(); }

void GradNorm::run(Stream &, In ins, Out outs, void *, bool) {
  double total = 0;
  for (int64_t i = 0; i < params_.count; ++i)
    total += *floats(operand(ins, i));
  const double scale =
      params_.isScaled ? *floats(operand(ins, params_.count)) : 1.0;
  const double norm = std::sqrt(total) / scale;
  if (float *out = floats(result(outs, 0)))
    *out = float(norm);
  if (float *clip = floats(result(outs, 1)))
    *clip = clipScaleOf(norm, params_.maxNorm, scale);
}

struct LossScale::State {};
LossScale::LossScale(const Params &params) : params_(params) {}
LossScale::~LossScale() = default;
Status LossScale::prepare(Device &) { return Status::ok(); }

void LossScale::run(Stream &, In ins, Out outs, void *, bool) {
  const float norm = *floats(operand(ins, 0));
  *longs(result(outs, 3)) =
      moveLossScale(params_, norm, *floats(result(outs, 0)),
                    *longs(result(outs, 1)), *longs(result(outs, 2)));
}

} // namespace tmc
