//===- CrossEntropy.cpp - the loss over a vocabulary, on cpu --------------===//

#include "runtime/kernels/CrossEntropy.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/CrossEntropyRows.h"
#include "runtime/cpu/Parallel.h"

#include <limits>

namespace tmc {

namespace cpu {
using simd::kLanes;
using simd::kParts;
using simd::kWidth;
using simd::V;
using simd::Wide;

/// log sum exp of a row: the maximum first, then the sum of exponentials. The
/// second pass finds the row in the cache.
float rowLogSumExp(const float *row, int64_t count) {
  Wide top = simd::splatWide(-std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int p = 0; p < kParts; ++p)
      top.part[p] = simd::max(top.part[p], simd::load(row + i + p * kWidth));
  float m = simd::max(top);
  for (int64_t j = i; j < count; ++j)
    m = m > row[j] ? m : row[j];
  if (m == -std::numeric_limits<float>::infinity())
    return m;

  Wide total = simd::splatWide(0);
  const V shift = simd::splat(m);
  for (i = 0; i + kLanes <= count; i += kLanes)
    for (int p = 0; p < kParts; ++p)
      total.part[p] += simd::exp(simd::load(row + i + p * kWidth) - shift);
  for (int p = 0; i < count; ++p, i += kWidth) {
    const int64_t rest = count - i < kWidth ? count - i : kWidth;
    total.part[p] += simd::exp(
        simd::loadPart(row + i, rest, -std::numeric_limits<float>::infinity()) -
        shift);
  }
  return m + std::log(simd::sum(total));
}

void rowSoftmaxGrad(const float *row, float *out, int64_t count, float lse,
                    float scale) {
  const V shift = simd::splat(lse), factor = simd::splat(scale);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth)
    simd::store(out + i, factor * simd::exp(simd::load(row + i) - shift));
  if (i < count)
    simd::storePart(
        out + i, factor * simd::exp(simd::loadPart(row + i, count - i) - shift),
        count - i);
}

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
  // In f64, in the order of the rows: no threads, no rounding to speak of.
  double total = 0;
  for (int64_t r = 0; r < rows; ++r)
    if (labelCounts(stream, rule, r, indexAt(labels, rule.type, r)))
      total += losses[r];
  return float(total * weight);
}
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
  const float *logits = static_cast<const float *>(operand(ins, 0));
  const void *labels = operand(ins, 1);
  const float weight = *static_cast<const float *>(operand(ins, 2));
  float *loss = static_cast<float *>(result(outs, 0));
  float *lse = static_cast<float *>(result(outs, 1));
  float *losses = static_cast<float *>(scratch);
  const cpu::LabelRule rule{p.labelType, p.vocabulary, p.ignoreIndex};
  parallelFor(stream, p.rows, [&](int64_t r, int64_t) {
    const float *row = logits + r * p.vocabulary;
    lse[r] = cpu::rowLogSumExp(row, p.vocabulary);
    const int64_t label = cpu::indexAt(labels, p.labelType, r);
    if (label >= 0 && label < p.vocabulary)
      losses[r] = lse[r] - row[label];
  });
  const float total =
      cpu::weightedLoss(stream, rule, labels, p.rows, losses, weight);
  *loss = accumulate ? *loss + total : total;
}

struct CrossEntropyGrad::State {};
CrossEntropyGrad::CrossEntropyGrad(const Params &params) : params_(params) {}
CrossEntropyGrad::~CrossEntropyGrad() = default;

Status CrossEntropyGrad::prepare(Device &) { return Status::ok(); }

void CrossEntropyGrad::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  const float *logits = static_cast<const float *>(operand(ins, 0));
  const void *labels = operand(ins, 1);
  const float *lse = static_cast<const float *>(operand(ins, 2));
  const float scale = *static_cast<const float *>(operand(ins, 3));
  float *dlogits = static_cast<float *>(result(outs, 0));
  parallelFor(stream, p.rows, [&](int64_t r, int64_t) {
    const int64_t label = cpu::indexAt(labels, p.labelType, r);
    float *out = dlogits + r * p.vocabulary;
    if (label == p.ignoreIndex || label < 0 || label >= p.vocabulary) {
      std::memset(out, 0, size_t(p.vocabulary) * 4);
      return;
    }
    cpu::rowSoftmaxGrad(logits + r * p.vocabulary, out, p.vocabulary, lse[r],
                        scale);
    out[label] -= scale;
  });
}

} // namespace tmc
