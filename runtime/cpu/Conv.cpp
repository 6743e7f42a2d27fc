//===- Conv.cpp - two-dimensional convolution on cpu ----------------------===//
//
// Convolutions are products of matrices (Matmul or ConvPointwise.h for 1 x 1
// windows, Winograd.h for 3 x 3 windows, else ConvProduct.h), or if each
// channel has its own filter, vectors of channels (Depthwise.h). prepare()
// lists the windows of a pass; all memory of run() is in the planned scratch.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/ConvPointwise.h"
#include "runtime/cpu/ConvProduct.h"
#include "runtime/cpu/Depthwise.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Winograd.h"

#include <optional>

namespace tmc {

namespace {

template <typename Kernel> Status check(const char *name, const ConvParams &p) {
  return cpu::requireScratch(name, Kernel::scratchCap(p, Backend::Cpu),
                             p.scratchBytes);
}

/// The forward pass or the input gradient.
void runProduct(Stream &stream, const ConvParams &p, bool gradInput,
                const conv::Windows &windows, const void *from,
                const void *filter, void *to, void *scratch) {
  char *bytes = static_cast<char *>(scratch);
  withFloats(p.type, [&](auto like) {
    using T = decltype(like);
    const T *source = static_cast<const T *>(from);
    T *result = static_cast<T *>(to);
    if (isDepthwise(p))
      conv::depthwise(stream, p, gradInput, windows, source, filter, result,
                      bytes);
    else if (conv::isWinograd(p, gradInput))
      conv::winograd(stream, p, gradInput, source, filter, result, bytes);
    else
      conv::product(stream, p, gradInput, windows, source, filter, result,
                    bytes);
  });
}

/// The prepared state of a pass.
struct Pass {
  conv::Windows windows;
  std::optional<Matmul> product; ///< the pass, if it is a single product
  std::optional<conv::PointwisePieces> pieces; ///< or pieces of one

  Pass(const ConvParams &p, bool gradInput, Matmul::Params product,
       bool isSum = false)
      : windows(p, gradInput) {
    product.scratchBytes = p.scratchBytes;
    if (conv::isPointwiseProduct(p, product))
      this->product.emplace(product);
    const conv::PointwiseCut cut =
        isSum ? conv::cutSums(p, product) : conv::cutRows(p, product);
    if (cut.pieces > 0)
      pieces.emplace(product, cut, isSum);
  }
};

/// The filter gradient in f32.
void runFilterGradient(Stream &stream, const ConvParams &p, Pass &pass,
                       const void *from, const void *grad, float *out,
                       char *scratch, bool accumulate) {
  if (pass.pieces)
    return pass.pieces->runSums(stream, grad, from, out, scratch, accumulate);
  withFloats(p.type, [&](auto like) {
    using T = decltype(like);
    const T *x = static_cast<const T *>(from);
    const T *dy = static_cast<const T *>(grad);
    if (isDepthwise(p))
      conv::depthwiseGradFilter(stream, p, x, dy, out, scratch, accumulate);
    else if (conv::isWinogradFilter(p))
      conv::winogradFilterGradient(stream, p, x, dy, out, scratch, accumulate);
    else
      conv::filterGradient(stream, p, pass.windows.grids[0], x, dy, out,
                           scratch, accumulate);
  });
}

} // namespace

struct Conv::State : Pass {
  using Pass::Pass;
};
Conv::Conv(const Params &params) : params_(params) {}
Conv::~Conv() = default;
Status Conv::prepare(Device &) {
  state_.reset(
      new State(params_, false, conv::pointwiseProduct(params_, false)));
  return check<Conv>("conv", params_);
}
void Conv::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  if (state_->product)
    return state_->product->run(stream, ins, outs, scratch);
  if (state_->pieces)
    return state_->pieces->runRows(stream, operand(ins, 0), operand(ins, 1),
                                   result(outs, 0),
                                   static_cast<char *>(scratch));
  runProduct(stream, params_, false, state_->windows, operand(ins, 0),
             operand(ins, 1), result(outs, 0), scratch);
}

struct ConvGradInput::State : Pass {
  using Pass::Pass;
};
ConvGradInput::ConvGradInput(const Params &params) : params_(params) {}
ConvGradInput::~ConvGradInput() = default;
Status ConvGradInput::prepare(Device &) {
  state_.reset(new State(params_, true, conv::pointwiseProduct(params_, true)));
  return check<ConvGradInput>("conv_grad_input", params_);
}
void ConvGradInput::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  if (state_->product)
    return state_->product->run(stream, ins, outs, scratch);
  if (state_->pieces)
    return state_->pieces->runRows(stream, operand(ins, 0), operand(ins, 1),
                                   result(outs, 0),
                                   static_cast<char *>(scratch));
  runProduct(stream, params_, true, state_->windows, operand(ins, 0),
             operand(ins, 1), result(outs, 0), scratch);
}

struct ConvGradFilter::State : Pass {
  using Pass::Pass;
};
ConvGradFilter::ConvGradFilter(const Params &params) : params_(params) {}
ConvGradFilter::~ConvGradFilter() = default;
Status ConvGradFilter::prepare(Device &) {
  state_.reset(
      new State(params_, false, conv::pointwiseFilterGradient(params_), true));
  return check<ConvGradFilter>("conv_grad_filter", params_);
}
void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
  if (state_->product)
    return state_->product->run(stream, {operand(ins, 1), operand(ins, 0)},
                                outs, scratch, accumulate);
  const ConvParams &p = params_;
  const void *x = operand(ins, 0), *dy = operand(ins, 1);
  char *bytes = static_cast<char *>(scratch);
  if (p.filter == DType::F32)
    return runFilterGradient(stream, p, *state_, x, dy,
                             static_cast<float *>(result(outs, 0)), bytes,
                             accumulate);
  // A narrow gradient is rounded once, from f32 sums.
  const int64_t count = conv::forwardProduct(p).columns *
                        conv::forwardProduct(p).depth * p.groups;
  float *sums = static_cast<float *>(scratch);
  const StoredRows out{result(outs, 0), count, p.filter};
  if (accumulate)
    widenRows(out, 1, count, sums, count);
  runFilterGradient(stream, p, *state_, x, dy, sums,
                    bytes + conv::filterSumBytes(p), accumulate);
  narrowRows(sums, count, 1, count, out);
}

} // namespace tmc
