//===- Optimizer.cpp - updates of parameters on cpu -----------------------===//
//
// One pass over the memory of each tensor. Scalar factors are computed in f64
// and rounded once, as PyTorch's are.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Optimizer.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tmc {

using simd::kLanes;
using simd::kParts;
using simd::kWidth;
using simd::V;
using simd::Wide;

namespace {

/// Elements between what is updated and what is asked for: a page, at which the
/// hardware's own looking ahead ends.
constexpr int64_t kAhead = 1024;

/// Calls body(i, part, count) for the vectors of [begin, end): `part` is the
/// register of a Wide that vector i belongs to, `count` < kWidth only at the
/// very end. The memory of `streams` is asked for ahead.
template <typename F>
void eachVector(int64_t begin, int64_t end,
                std::initializer_list<const float *> streams, F &&body) {
  constexpr int64_t line = 64 / sizeof(float);
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (const float *stream : streams)
      for (int64_t j = 0; j < kLanes; j += line)
        __builtin_prefetch(stream + i + kAhead + j);
    for (int p = 0; p < kParts; ++p)
      body(i + p * kWidth, p, int64_t(kWidth));
  }
  for (int p = 0; i < end; ++p, i += kWidth)
    body(i, p, std::min<int64_t>(kWidth, end - i));
}

V loadSome(const float *p, int64_t count) {
  return count == kWidth ? simd::load(p) : simd::loadPart(p, count);
}
void storeSome(float *p, V v, int64_t count) {
  if (count == kWidth)
    simd::store(p, v);
  else
    simd::storePart(p, v, count);
}

int64_t tilesOf(int64_t count) {
  return (count + kUpdateTile - 1) / kUpdateTile;
}

/// Runs body(begin, end) -> sum of squares over the parts of an update, and
/// adds their sums in order.
template <typename F>
void updateTiles(Stream &stream, int64_t count, void *scratch, float *squares,
                 F &&body) {
  double *partial = static_cast<double *>(scratch);
  const int64_t tiles = tilesOf(count);
  parallelFor(stream, tiles, [&](int64_t tile, int64_t) {
    const double sum =
        body(tile * kUpdateTile, std::min(count, (tile + 1) * kUpdateTile));
    if (squares)
      partial[tile] = sum;
  });
  if (!squares)
    return;
  double total = 0;
  for (int64_t tile = 0; tile < tiles; ++tile)
    total += partial[tile];
  *squares = float(total);
}

float *floats(void *p) { return static_cast<float *>(p); }
const float *floats(const void *p) { return static_cast<const float *>(p); }

} // namespace

struct AdamW::State {};
AdamW::AdamW(const Params &params) : params_(params) {}
AdamW::~AdamW() = default;

Status AdamW::prepare(Device &) {
  if (Status s = cpu::requireType("adamw", params_.type); !s)
    return s;
  return cpu::requireScratch("adamw", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void AdamW::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &q = params_;
  const float *grad = floats(operand(ins, 1));
  const double lr = *floats(operand(ins, 4));
  const double t = double(*static_cast<const int64_t *>(operand(ins, 5)));
  const float *clip = floats(operand(ins, 6));
  float *param = floats(result(outs, 0));
  float *first = floats(result(outs, 1));
  float *second = floats(result(outs, 2));
  float *squares = floats(result(outs, 3));

  const double correction1 = 1 - std::pow(q.beta1, t);
  const double correction2 = std::sqrt(1 - std::pow(q.beta2, t));
  const V decay = simd::splat(float(1 - lr * q.weightDecay));
  const V w1 = simd::splat(float(1 - q.beta1));
  const V b2 = simd::splat(float(q.beta2));
  const V w2 = simd::splat(float(1 - q.beta2));
  const V root = simd::splat(float(correction2));
  const V epsilon = simd::splat(float(q.epsilon));
  const V size = simd::splat(float(-lr / correction1));
  const V scale = simd::splat(clip ? *clip : 1.0f);

  updateTiles(
      stream, q.count, scratch, squares, [&](int64_t begin, int64_t end) {
        Wide sum = simd::splatWide(0);
        eachVector(begin, end, {grad, param, first, second},
                   [&](int64_t i, int part, int64_t n) {
                     V g = loadSome(grad + i, n);
                     sum.part[part] = simd::fma(g, g, sum.part[part]);
                     g = g * scale;
                     V p = loadSome(param + i, n) * decay;
                     V m = loadSome(first + i, n);
                     V v = loadSome(second + i, n);
                     m = m + w1 * (g - m);
                     v = v * b2 + w2 * g * g;
                     const V denominator = simd::sqrt(v) / root + epsilon;
                     p = p + size * m / denominator;
                     storeSome(param + i, p, n);
                     storeSome(first + i, m, n);
                     storeSome(second + i, v, n);
                   });
        return double(simd::sum(sum));
      });
}

struct Sgd::State {};
Sgd::Sgd(const Params &params) : params_(params) {}
Sgd::~Sgd() = default;

Status Sgd::prepare(Device &) {
  if (Status s = cpu::requireType("sgd", params_.type); !s)
    return s;
  return cpu::requireScratch("sgd", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void Sgd::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &q = params_;
  const float *grad = floats(operand(ins, 1));
  const float lr = *floats(operand(ins, 3));
  const int64_t t = *static_cast<const int64_t *>(operand(ins, 4));
  const float *clip = floats(operand(ins, 5));
  float *param = floats(result(outs, 0));
  float *buffer = floats(result(outs, 1));
  float *squares = floats(result(outs, 2));

  const bool hasMomentum = q.momentum != 0 && buffer;
  const bool firstStep = t <= 1;
  const V decay = simd::splat(float(q.weightDecay));
  const V momentum = simd::splat(float(q.momentum));
  const V damped = simd::splat(float(1 - q.dampening));
  const V rate = simd::splat(-lr);
  const V scale = simd::splat(clip ? *clip : 1.0f);

  updateTiles(
      stream, q.count, scratch, squares, [&](int64_t begin, int64_t end) {
        Wide sum = simd::splatWide(0);
        eachVector(begin, end, {grad, param, hasMomentum ? buffer : param},
                   [&](int64_t i, int part, int64_t n) {
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
                       storeSome(buffer + i, b, n);
                       g = q.nesterov ? g + momentum * b : b;
                     }
                     storeSome(param + i, p + rate * g, n);
                   });
        return double(simd::sum(sum));
      });
}

struct SquareSum::State {};
SquareSum::SquareSum(const Params &params) : params_(params) {}
SquareSum::~SquareSum() = default;

Status SquareSum::prepare(Device &) {
  if (Status s = cpu::requireType("square_sum", params_.type); !s)
    return s;
  return cpu::requireScratch("square_sum", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void SquareSum::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const float *grad = floats(operand(ins, 0));
  updateTiles(stream, params_.count, scratch, floats(result(outs, 0)),
              [&](int64_t begin, int64_t end) {
                Wide sum = simd::splatWide(0);
                eachVector(begin, end, {grad},
                           [&](int64_t i, int part, int64_t n) {
                             const V g = loadSome(grad + i, n);
                             sum.part[part] = simd::fma(g, g, sum.part[part]);
                           });
                return double(simd::sum(sum));
              });
}

struct GradNorm::State {};
GradNorm::GradNorm(const Params &params) : params_(params) {}
GradNorm::~GradNorm() = default;
Status GradNorm::prepare(Device &) { return Status::ok(); }

void GradNorm::run(Stream &, In ins, Out outs, void *, bool) {
  double total = 0;
  for (const void *square : ins)
    total += *floats(square);
  const double norm = std::sqrt(total);
  if (float *out = floats(result(outs, 0)))
    *out = float(norm);
  if (float *clip = floats(result(outs, 1)))
    *clip = params_.maxNorm > 0
                ? float(std::min(1.0, params_.maxNorm / (norm + 1e-6)))
                : 1.0f;
}

} // namespace tmc
