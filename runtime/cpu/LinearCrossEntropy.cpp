//===- LinearCrossEntropy.cpp - the loss of a product, in chunks, on cpu --===//
//
// Scratch holds the logits of one chunk of rows at a time, or of a part of it.
// The gradient recomputes them, or continues with the logits of the loss. It
// turns them into their own gradient, rounds that to its place, and multiplies.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/CrossEntropyRows.h"
#include "runtime/cpu/GemmTyped.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/FusedShape.h"

#include <algorithm>

namespace tmc {

namespace {

Status prepareChunked(const char *name, const LinearCrossEntropyParams &p,
                      int64_t scratchBytes) {
  return cpu::requireScratch(name, scratchBytes, p.scratchBytes);
}

/// The pieces of the scratch region.
struct Scratch {
  int64_t logitsRows;
  float *logits, *losses, *partial;
  void *gradient; // of the logits, in the type of x; f32: in place
  void *product;
  Scratch(const LinearCrossEntropyParams &p, void *base)
      : logitsRows(tmc::logitsRows(p, Backend::Cpu)) {
    char *at = static_cast<char *>(base);
    logits = reinterpret_cast<float *>(at);
    at += alignScratch(logitsRows * p.vocabulary * 4);
    gradient = p.type == DType::F32 ? logits : static_cast<void *>(at);
    at += gradientScratch(p, Backend::Cpu);
    losses = reinterpret_cast<float *>(at);
    at += alignScratch(p.rows * 4);
    partial = reinterpret_cast<float *>(at);
    product = at + biasScratch(p, Backend::Cpu);
  }
};

/// The operands of every chunk.
struct Operands {
  gemm::Matrix x, w; // row by row
  const void *labels;
  const float *bias; // or nullptr

  Operands(const LinearCrossEntropyParams &p, In ins, size_t biasIndex)
      : x{operand(ins, 0), p.channels, 1, p.type, p.readAs()},
        w{operand(ins, 1), p.channels, 1, p.table, p.readAs()},
        labels(operand(ins, 2)),
        bias(p.bias ? static_cast<const float *>(operand(ins, biasIndex))
                    : nullptr) {}
};

/// logits = x[r0 .. r0 + rows) w^T (+ bias)
void makeLogits(Stream &stream, const LinearCrossEntropyParams &p,
                const Operands &in, int64_t r0, int64_t rows,
                const Scratch &scratch) {
  gemm::run(stream,
            {.m = rows,
             .n = p.vocabulary,
             .k = p.channels,
             .a = in.x.at(r0, 0),
             .b = in.w.transposed(),
             .bias = in.bias,
             .c = scratch.logits,
             .ldc = p.vocabulary,
             .accumulate = false},
            scratch.product);
}

/// Computes the logits of rows [r0, r0 + rows), as many as fit at a time, and
/// calls f with the number of each row and its logits.
template <typename F>
void eachRow(Stream &stream, const LinearCrossEntropyParams &p,
             const Operands &in, int64_t r0, int64_t rows,
             const Scratch &scratch, F &&f) {
  for (int64_t i0 = 0; i0 < rows; i0 += scratch.logitsRows) {
    const int64_t some = std::min(scratch.logitsRows, rows - i0);
    makeLogits(stream, p, in, r0 + i0, some, scratch);
    parallelFor(stream, some, [&](int64_t i, int64_t) {
      f(r0 + i0 + i, scratch.logits + i * p.vocabulary);
    });
  }
}

/// Rows of the logits' gradient, in the type of x.
gemm::Matrix gradientRows(const LinearCrossEntropyParams &p,
                          const Scratch &scratch) {
  return {scratch.gradient, p.vocabulary, 1, p.type, p.readAs()};
}

/// sums[v] (+)= the sum over all rows of element v of the logits' gradient.
/// Scratch has rows [r0, r0 + rows) of it. Rows are added in the order of a
/// fused kernel, so any chunk size gives the bits of the whole gradient.
void addRows(Stream &stream, const LinearCrossEntropyParams &p, int64_t r0,
             int64_t rows, const Scratch &scratch, float *sums,
             bool accumulate) {
  constexpr int64_t kColumns = 1024;
  const int64_t tileRows =
      tilingOf({.rows = p.rows, .cols = p.vocabulary, .columnSums = 1},
               Backend::Cpu)
          .rowsPerTile;
  float *partial = scratch.partial;
  parallelFor(
      stream, ceilDiv(p.vocabulary, kColumns), [&](int64_t tile, int64_t) {
        const int64_t first = tile * kColumns;
        const int64_t last = std::min(p.vocabulary, first + kColumns);
        for (int64_t r = r0; r < r0 + rows; ++r) {
          if (r % tileRows == 0)
            std::fill(partial + first, partial + last, 0.0f);
          const gemm::Matrix row = gradientRows(p, scratch).at(r - r0, first);
          const float *values = row.floats();
          float widened[kColumns];
          if (p.type != DType::F32) {
            widenRows({row.data, 0, p.type}, 1, last - first, widened, 0);
            values = widened;
          }
          for (int64_t v = first; v < last; ++v)
            partial[v] += values[v - first];
          if ((r + 1) % tileRows != 0 && r + 1 != p.rows)
            continue;
          if (r < tileRows && !accumulate)
            std::copy(partial + first, partial + last, sums + first);
          else
            for (int64_t v = first; v < last; ++v)
              sums[v] += partial[v];
        }
      });
}

/// The log-sum-exp of a row of logits, and its loss if the label is valid.
float takeLoss(const LinearCrossEntropyParams &p, const void *labels, int64_t r,
               const float *row, float *losses) {
  const float lse = cpu::rowLogSumExp(row, p.vocabulary);
  const int64_t label = cpu::indexAt(labels, p.labelType, r);
  if (label >= 0 && label < p.vocabulary)
    losses[r] = lse - row[label];
  return lse;
}

/// Turns the logits of row r into their gradient, and rounds it to its place
/// among the rows from r0 on.
void takeGradient(const LinearCrossEntropyParams &p, const void *labels,
                  int64_t r0, int64_t r, float *row, float lse, float scale,
                  const Scratch &scratch) {
  const int64_t label = cpu::indexAt(labels, p.labelType, r);
  if (label == p.ignoreIndex || label < 0 || label >= p.vocabulary)
    std::memset(row, 0, size_t(p.vocabulary) * 4);
  else
    cpu::rowGradient(row, row, p.vocabulary, label, lse, scale);
  if (p.type != DType::F32)
    narrowRows(row, 0, 1, p.vocabulary,
               {gradientRows(p, scratch).at(r - r0, 0).data, 0, p.type});
}

/// The requested gradients; null: not requested.
struct Gradients {
  void *dx; // of the type of x
  float *dw, *dbias;
};

/// Multiplies by a chunk's gradient of logits, which is in scratch.
void addGradients(Stream &stream, const LinearCrossEntropyParams &p,
                  const Operands &in, int64_t r0, int64_t rows,
                  const Scratch &scratch, const Gradients &to,
                  bool accumulate) {
  if (to.dbias)
    addRows(stream, p, r0, rows, scratch, to.dbias, accumulate);
  if (to.dx)
    gemm::runTyped(
        stream,
        {.m = rows,
         .n = p.channels,
         .k = p.vocabulary,
         .a = gradientRows(p, scratch),
         .b = in.w,
         .bias = nullptr,
         .c = static_cast<char *>(to.dx) + r0 * p.channels * sizeOf(p.type),
         .ldc = p.channels,
         .out = p.type,
         .accumulate = false},
        scratch.product);
  if (to.dw)
    gemm::run(stream,
              {.m = p.vocabulary,
               .n = p.channels,
               .k = rows,
               .a = gradientRows(p, scratch).transposed(),
               .b = in.x.at(r0, 0),
               .bias = nullptr,
               .c = to.dw,
               .ldc = p.channels,
               .accumulate = accumulate || r0 > 0},
              scratch.product);
}

} // namespace

struct LinearCrossEntropy::State {};
LinearCrossEntropy::LinearCrossEntropy(const Params &params)
    : params_(params) {}
LinearCrossEntropy::~LinearCrossEntropy() = default;

Status LinearCrossEntropy::prepare(Device &) {
  return prepareChunked("linear_cross_entropy", params_,
                        scratchCap(params_, Backend::Cpu));
}

void LinearCrossEntropy::run(Stream &stream, In ins, Out outs, void *memory,
                             bool accumulate) {
  const Params &p = params_;
  const Operands in(p, ins, 4);
  const float weight = *static_cast<const float *>(operand(ins, 3));
  float *loss = static_cast<float *>(result(outs, 0));
  float *lse = static_cast<float *>(result(outs, 1));
  const Scratch scratch(p, memory);
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    eachRow(stream, p, in, r0, rows, scratch, [&](int64_t r, float *row) {
      lse[r] = takeLoss(p, in.labels, r, row, scratch.losses);
    });
  }
  const float total =
      cpu::weightedLoss(stream, {p.labelType, p.vocabulary, p.ignoreIndex},
                        in.labels, p.rows, scratch.losses, weight);
  *loss = accumulate ? *loss + total : total;
}

struct LinearCrossEntropyGrad::State {};
LinearCrossEntropyGrad::LinearCrossEntropyGrad(const Params &params)
    : params_(params) {}
LinearCrossEntropyGrad::~LinearCrossEntropyGrad() = default;

Status LinearCrossEntropyGrad::prepare(Device &) {
  return prepareChunked("linear_cross_entropy_grad", params_,
                        scratchCap(params_, Backend::Cpu));
}

void LinearCrossEntropyGrad::run(Stream &stream, In ins, Out outs, void *memory,
                                 bool accumulate) {
  const Params &p = params_;
  const Operands in(p, ins, 5);
  const float *lse = static_cast<const float *>(operand(ins, 3));
  const float scale = *static_cast<const float *>(operand(ins, 4));
  const Gradients to{result(outs, 0), static_cast<float *>(result(outs, 1)),
                     p.bias ? static_cast<float *>(result(outs, 2)) : nullptr};
  const Scratch scratch(p, memory);
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    eachRow(stream, p, in, r0, rows, scratch, [&](int64_t r, float *row) {
      takeGradient(p, in.labels, r0, r, row, lse[r], scale, scratch);
    });
    addGradients(stream, p, in, r0, rows, scratch, to, accumulate);
  }
}

struct LinearCrossEntropyWithGrad::State {};
LinearCrossEntropyWithGrad::LinearCrossEntropyWithGrad(const Params &params)
    : params_(params) {}
LinearCrossEntropyWithGrad::~LinearCrossEntropyWithGrad() = default;

Status LinearCrossEntropyWithGrad::prepare(Device &) {
  return prepareChunked("linear_cross_entropy_with_grad", params_,
                        scratchCap(params_, Backend::Cpu));
}

void LinearCrossEntropyWithGrad::run(Stream &stream, In ins, Out outs,
                                     void *memory, bool accumulate) {
  const Params &p = params_;
  const Operands in(p, ins, 5);
  const float weight = *static_cast<const float *>(operand(ins, 3));
  const float scale = *static_cast<const float *>(operand(ins, 4));
  const Gradients to{result(outs, 1), static_cast<float *>(result(outs, 2)),
                     p.bias ? static_cast<float *>(result(outs, 3)) : nullptr};
  const Scratch scratch(p, memory);
  for (int64_t r0 = 0; r0 < p.rows; r0 += p.chunkRows) {
    const int64_t rows = std::min(p.chunkRows, p.rows - r0);
    eachRow(stream, p, in, r0, rows, scratch, [&](int64_t r, float *row) {
      const float lse = takeLoss(p, in.labels, r, row, scratch.losses);
      takeGradient(p, in.labels, r0, r, row, lse, scale, scratch);
    });
    addGradients(stream, p, in, r0, rows, scratch, to, accumulate);
  }
  *static_cast<float *>(result(outs, 0)) =
      cpu::weightedLoss(stream, {p.labelType, p.vocabulary, p.ignoreIndex},
                        in.labels, p.rows, scratch.losses, weight);
}

} // namespace tmc
