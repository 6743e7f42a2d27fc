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
#include "runtime/kernels/Adam.h"

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

double squaresOf(const float *grad, int64_t begin, int64_t end) {
  Wide sum = simd::splatWide(0);
  eachVector(begin, end, {grad}, [&](int64_t i, int part, int64_t n) {
    const V g = loadSome(grad + i, n);
    sum.part[part] = simd::fma(g, g, sum.part[part]);
  });
  return double(simd::sum(sum));
}

/// adam::Factors in every lane.
struct AdamFactors {
  V decay, w1, b2, w2, root, epsilon, size, scale;

  explicit AdamFactors(const adam::Factors &f)
      : decay(simd::splat(f.decay)), w1(simd::splat(f.w1)),
        b2(simd::splat(f.b2)), w2(simd::splat(f.w2)), root(simd::splat(f.root)),
        epsilon(simd::splat(f.epsilon)), size(simd::splat(f.size)),
        scale(simd::splat(f.scale)) {}
};

float *floats(void *p) { return static_cast<float *>(p); }
const float *floats(const void *p) { return static_cast<const float *>(p); }
const int64_t *longs(const void *p) { return static_cast<const int64_t *>(p); }

} // namespace

struct AdamW::State {};
AdamW::AdamW(const Params &params) : params_(params) {}
AdamW::~AdamW() = default;

Status AdamW::prepare(Device &) {
  return cpu::requireScratch("adamw", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void AdamW::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const float *grad = floats(operand(ins, 1));
  const AdamFactors f(adam::factors(params_, floats(operand(ins, 4)),
                                    longs(operand(ins, 5)),
                                    floats(operand(ins, 6))));
  float *param = floats(result(outs, 0));
  float *first = floats(result(outs, 1));
  float *second = floats(result(outs, 2));
  float *squares = floats(result(outs, 3));

  updateTiles(
      stream, params_.count, scratch, squares, [&](int64_t begin, int64_t end) {
        Wide sum = simd::splatWide(0);
        eachVector(begin, end, {grad, param, first, second},
                   [&](int64_t i, int part, int64_t n) {
                     const V g = loadSome(grad + i, n);
                     sum.part[part] = simd::fma(g, g, sum.part[part]);
                     V m = loadSome(first + i, n);
                     V v = loadSome(second + i, n);
                     storeSome(param + i,
                               adam::update(f, g, loadSome(param + i, n), m, v,
                                            simd::sqrt),
                               n);
                     storeSome(first + i, m, n);
                     storeSome(second + i, v, n);
                   });
        return double(simd::sum(sum));
      });
}

namespace {

/// The codes of one moment, and the way from a float to the nearest: floats
/// that begin with the same 16 bits have two neighbouring codes at most.
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
      // The least of them has the largest bits where they are negative.
      const uint32_t bits = top << 16 | (top >> 15 ? 0xffffu : 0u);
      float x;
      std::memcpy(&x, &bits, sizeof x);
      least[top] = uint8_t(adam::nearestCode(x, above));
    }
  }
  /// |x| <= 1.
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

/// A block's moments as floats, and back; zeros behind the last.
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
  (void)codesOf(true), (void)codesOf(false); // Made before the first step.
  return cpu::requireScratch("adamw8bit", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void AdamW8bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const CodeTable &first = codesOf(true), &second = codesOf(false);
  const float *grad = floats(operand(ins, 1));
  const AdamFactors f(adam::factors(params_, floats(operand(ins, 6)),
                                    longs(operand(ins, 7)),
                                    floats(operand(ins, 8))));
  float *param = floats(result(outs, 0));
  auto *firstCodes = static_cast<uint8_t *>(result(outs, 1));
  float *firstMost = floats(result(outs, 2));
  auto *secondCodes = static_cast<uint8_t *>(result(outs, 3));
  float *secondMost = floats(result(outs, 4));
  static_assert(kUpdateTile % adam::kCodeBlock == 0);

  updateTiles(
      stream, params_.count, scratch, floats(result(outs, 5)),
      [&](int64_t begin, int64_t end) {
        Moments m, v;
        for (int64_t at = begin; at < end; at += adam::kCodeBlock) {
          const int64_t count = std::min<int64_t>(adam::kCodeBlock, end - at);
          const int64_t block = at / adam::kCodeBlock;
          m.read(first, firstCodes + at, firstMost[block], count);
          v.read(second, secondCodes + at, secondMost[block], count);
          eachVector(0, count, {}, [&](int64_t i, int, int64_t n) {
            const V g = loadSome(grad + at + i, n);
            const V p = loadSome(param + at + i, n);
            const V oldM = simd::load(m.x + i), oldV = simd::load(v.x + i);
            V newM = oldM, newV = oldV;
            const V moved = adam::update(f, g, p, newM, newV, simd::sqrt);
            const auto moves = g - g == V{}; // as adam::isFinite
            storeSome(param + at + i, moves ? moved : p, n);
            simd::store(m.x + i, moves ? newM : oldM);
            simd::store(v.x + i, moves ? newV : oldV);
          });
          m.write(first, firstCodes + at, firstMost + block, count);
          v.write(second, secondCodes + at, secondMost + block, count);
        }
        return squaresOf(grad, begin, end);
      });
}

struct Sgd::State {};
Sgd::Sgd(const Params &params) : params_(params) {}
Sgd::~Sgd() = default;

Status Sgd::prepare(Device &) {
  return cpu::requireScratch("sgd", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void Sgd::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const Params &q = params_;
  const float *grad = floats(operand(ins, 1));
  const float lr = *floats(operand(ins, 3));
  const int64_t t = *longs(operand(ins, 4));
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
  return cpu::requireScratch("square_sum", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void SquareSum::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  const float *grad = floats(operand(ins, 0));
  updateTiles(
      stream, params_.count, scratch, floats(result(outs, 0)),
      [&](int64_t begin, int64_t end) { return squaresOf(grad, begin, end); });
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
