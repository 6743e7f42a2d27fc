//===- CrossEntropy.cpp - the loss over a vocabulary, on cpu --------------===//

#include "runtime/kernels/CrossEntropy.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/CrossEntropyRows.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <limits>

namespace tmc {

namespace cpu {
using simd::kLanes;
using simd::kParts;
using simd::kWidth;
using simd::V;
using simd::Wide;

namespace {
/// The first `count` < kWidth elements; the other lanes are `rest`.
template <typename T> V loadPart(const T *row, int64_t count, float rest) {
  float part[kWidth];
  std::fill(part, part + kWidth, rest);
  for (int64_t i = 0; i < count; ++i)
    part[i] = loadLanes<1>(row + i);
  return simd::load(part);
}
} // namespace

/// Computes the maximum first, then the sum of exponentials. The second pass
/// finds the row in the cache.
template <typename T> float rowLogSumExp(const T *row, int64_t count) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Wide top = simd::splatWide(kNone);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int p = 0; p < kParts; ++p)
      top.part[p] =
          simd::max(top.part[p], loadLanes<kWidth>(row + i + p * kWidth));
  float m = simd::max(top);
  for (int64_t j = i; j < count; ++j) {
    const float x = loadLanes<1>(row + j);
    m = m > x ? m : x;
  }
  if (m == kNone)
    return m;

  Wide total = simd::splatWide(0);
  const V shift = simd::splat(m);
  for (i = 0; i + kLanes <= count; i += kLanes)
    for (int p = 0; p < kParts; ++p)
      total.part[p] +=
          simd::exp(loadLanes<kWidth>(row + i + p * kWidth) - shift);
  for (int p = 0; i < count; ++p, i += kWidth) {
    const int64_t rest = std::min<int64_t>(count - i, kWidth);
    total.part[p] += simd::exp(loadPart(row + i, rest, kNone) - shift);
  }
  return m + std::log(simd::sum(total));
}

template <typename T>
void rowGradient(const T *row, T *out, int64_t count, int64_t label, float lse,
                 float scale) {
  const V shift = simd::splat(lse), factor = simd::splat(scale);
  float part[kWidth];
  simd::store(
      part, factor * simd::exp(simd::splat(loadLanes<1>(row + label)) - shift));
  const float atLabel = part[0] - scale;
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    storeLanes<kWidth>(out + i,
                       factor * simd::exp(loadLanes<kWidth>(row + i) - shift));
  if (i < count) {
    simd::store(part,
                factor * simd::exp(loadPart(row + i, count - i, 0) - shift));
    for (int64_t j = i; j < count; ++j)
      storeLanes<1>(out + j, part[j - i]);
  }
  storeLanes<1>(out + label, atLabel);
}

template float rowLogSumExp(const float *, int64_t);
template void rowGradient(const float *, float *, int64_t, int64_t, float,
                          float);

bool labelCounts(Stream &stream, const LabelRule &rule, int64_t row,
                 int64_t label) {
  if (label == rule.ignoreIndex)
    return false;
  if (label >= 0 && label < rule.vocabulary)
    return true;
  if (!stream.fault.set)
    stream.fault = {true, row, label, rule.vocabulary};
  return false;
}

float weightedLoss(Stream &stream, const LabelRule &rule, const void *labels,
                   int64_t rows, const float *losses, float weight) {
  // In f64, in the order of the rows: without threads, and with negligible
  // rounding.
  double total = 0;
  for (int64_t r = 0; r < rows; ++r)
    if (labelCounts(stream, rule, r, indexAt(labels, rule.type, r)))
      total += losses[r];
  return float(total * weight);
}
namespace {
bool isCounted(const CrossEntropyParams &p, int64_t label) {
  return label != p.ignoreIndex && label >= 0 && label < p.vocabulary;
}

/// Calls f with a value of the type of the logits.
template <typename F> void withLogits(DType type, F &&f) {
  if (type == DType::F32)
    f(float());
  else if (type == DType::BF16)
    f(bf16());
  else
    f(f16());
}
} // namespace
} // namespace cpu

struct CrossEntropy::State {};
CrossEntropy::CrossEntropy(const Params &params) : params_(params) {}
CrossEntropy::~CrossEntropy() = default;

Status CrossEntropy::prepare(Device &) {
  return cpu::requireScratch("cross_entropy", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void CrossEntropy::run(Stream &stream, In ins, Out outs, void *scratch,
                       bool accumulate) {
  const Params &p = params_;
  const void *labels = operand(ins, 1);
  const float weight = *static_cast<const float *>(operand(ins, 2));
  float *loss = static_cast<float *>(result(outs, 0));
  float *lse = static_cast<float *>(result(outs, 1));
  float *losses = static_cast<float *>(scratch);
  const cpu::LabelRule rule{p.labelType, p.vocabulary, p.ignoreIndex};
  cpu::withLogits(p.type, [&](auto like) {
    const auto *logits = static_cast<const decltype(like) *>(operand(ins, 0));
    parallelFor(stream, p.rows, [&](int64_t r, int64_t) {
      const auto *row = logits + r * p.width();
      lse[r] = cpu::rowLogSumExp(row, p.vocabulary);
      const int64_t label = cpu::indexAt(labels, p.labelType, r);
      if (label >= 0 && label < p.vocabulary)
        losses[r] = lse[r] - loadLanes<1>(row + label);
    });
  });
  const float total =
      cpu::weightedLoss(stream, rule, labels, p.rows, losses, weight);
  *loss = accumulate ? *loss + total : total;
}

struct CrossEntropyWithGrad::State {};
CrossEntropyWithGrad::CrossEntropyWithGrad(const Params &params)
    : params_(params) {}
CrossEntropyWithGrad::~CrossEntropyWithGrad() = default;

Status CrossEntropyWithGrad::prepare(Device &) {
  return cpu::requireScratch("cross_entropy_with_grad",
                             scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void CrossEntropyWithGrad::run(Stream &stream, In ins, Out outs, void *scratch,
                               bool) {
  const Params &p = params_;
  const void *labels = operand(ins, 1);
  const float weight = *static_cast<const float *>(operand(ins, 2));
  const float scale = *static_cast<const float *>(operand(ins, 3));
  float *losses = static_cast<float *>(scratch);
  cpu::withLogits(p.type, [&](auto like) {
    using T = decltype(like);
    const T *logits = static_cast<const T *>(operand(ins, 0));
    T *dlogits = static_cast<T *>(result(outs, 1));
    parallelFor(stream, p.rows, [&](int64_t r, int64_t) {
      const T *row = logits + r * p.width();
      T *out = dlogits + r * p.width();
      const int64_t label = cpu::indexAt(labels, p.labelType, r);
      const bool counts = cpu::isCounted(p, label);
      if (counts) {
        const float lse = cpu::rowLogSumExp(row, p.vocabulary);
        losses[r] = lse - loadLanes<1>(row + label);
        cpu::rowGradient(row, out, p.vocabulary, label, lse, scale);
      }
      std::fill(counts ? out + p.vocabulary : out, out + p.width(), T{});
    });
  });
  const cpu::LabelRule rule{p.labelType, p.vocabulary, p.ignoreIndex};
  *static_cast<float *>(result(outs, 0)) =
      cpu::weightedLoss(stream, rule, labels, p.rows, losses, weight);
}

struct CrossEntropyGrad::State {};
CrossEntropyGrad::CrossEntropyGrad(const Params &params) : params_(params) {}
CrossEntropyGrad::~CrossEntropyGrad() = default;

Status CrossEntropyGrad::prepare(Device &) { return Status::ok(); }

void CrossEntropyGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const void *labels = operand(ins, 1);
  const float *lse = static_cast<const float *>(operand(ins, 2));
  const float scale = *static_cast<const float *>(operand(ins, 3));
  cpu::withLogits(p.type, [&](auto like) {
    using T = decltype(like);
    const T *logits = static_cast<const T *>(operand(ins, 0));
    T *dlogits = static_cast<T *>(result(outs, 0));
    parallelFor(stream, p.rows, [&](int64_t r, int64_t) {
      const int64_t label = cpu::indexAt(labels, p.labelType, r);
      T *out = dlogits + r * p.width();
      const bool counts = cpu::isCounted(p, label);
      if (counts)
        cpu::rowGradient(logits + r * p.width(), out, p.vocabulary, label,
                         lse[r], scale);
      std::fill(counts ? out + p.vocabulary : out, out + p.width(), T{});
    });
  });
}

} // namespace tmc
