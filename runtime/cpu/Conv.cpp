//===- Conv.cpp - two-dimensional convolution on cpu ----------------------===//
//
// Products of matrices (Matmul for windows of one pixel, Winograd.h for those
// of 3 x 3, ConvProduct.h), or where each channel has a filter of its own,
// vectors of channels (Depthwise.h). prepare() lists the windows of a pass; all
// memory that run() needs is in the planned scratch.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/ConvProduct.h"
#include "runtime/cpu/Depthwise.h"
#include "runtime/cpu/Winograd.h"

#include <optional>

namespace tmc {

namespace {

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

template <typename Kernel> Status check(const char *name, const ConvParams &p) {
  return cpu::requireScratch(name, Kernel::scratchCap(p, Backend::Cpu),
                             p.scratchBytes);
}

void runProduct(Stream &stream, const ConvParams &p, bool gradInput,
                const conv::Windows &windows, const float *from,
                const float *filter, const float *bias, float *to,
                void *scratch) {
  char *bytes = static_cast<char *>(scratch);
  if (isDepthwise(p))
    conv::depthwise(stream, p, gradInput, windows, from, filter, bias, to,
                    bytes);
  else if (conv::isWinograd(p, gradInput))
    conv::winograd(stream, p, gradInput, from, filter, bias, to, bytes);
  else
    conv::product(stream, p, gradInput, windows, from, filter, bias, to, bytes);
}

/// What a pass needs to know, beside its parameters.
struct Pass {
  conv::Windows windows;
  std::optional<Matmul> product; ///< All of the pass, where it is one.

  Pass(const ConvParams &p, bool gradInput, Matmul::Params product)
      : windows(p, gradInput) {
    product.scratchBytes = p.scratchBytes;
    if (conv::isPointwiseProduct(p, product))
      this->product.emplace(product);
  }
};

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
  runProduct(stream, params_, false, state_->windows, floats(operand(ins, 0)),
             floats(operand(ins, 1)),
             params_.bias ? floats(operand(ins, 2)) : nullptr,
             floats(result(outs, 0)), scratch);
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
  runProduct(stream, params_, true, state_->windows, floats(operand(ins, 0)),
             floats(operand(ins, 1)), nullptr, floats(result(outs, 0)),
             scratch);
}

struct ConvGradFilter::State : Pass {
  using Pass::Pass;
};
ConvGradFilter::ConvGradFilter(const Params &params) : params_(params) {}
ConvGradFilter::~ConvGradFilter() = default;
Status ConvGradFilter::prepare(Device &) {
  state_.reset(
      new State(params_, false, conv::pointwiseFilterGradient(params_)));
  return check<ConvGradFilter>("conv_grad_filter", params_);
}
void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
  if (state_->product)
    return state_->product->run(stream, {operand(ins, 1), operand(ins, 0)},
                                outs, scratch, accumulate);
  const float *x = floats(operand(ins, 0)), *dy = floats(operand(ins, 1));
  float *out = floats(result(outs, 0));
  char *bytes = static_cast<char *>(scratch);
  if (isDepthwise(params_))
    conv::depthwiseGradFilter(stream, params_, x, dy, out, bytes, accumulate);
  else if (conv::isWinogradFilter(params_))
    conv::winogradFilterGradient(stream, params_, x, dy, out, bytes,
                                 accumulate);
  else
    conv::filterGradient(stream, params_, state_->windows.grids[0], x, dy, out,
                         bytes, accumulate);
}

} // namespace tmc
