//===- Conv.cpp - two-dimensional convolution on cpu ----------------------===//
//
// Products of matrices (ConvProduct.h, Winograd.h for windows of 3 x 3), or
// where each channel has a filter of its own, vectors of channels
// (Depthwise.h). prepare() lists the windows of a pass; all memory that run()
// needs is in the planned scratch.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/ConvProduct.h"
#include "runtime/cpu/Depthwise.h"
#include "runtime/cpu/Winograd.h"

namespace tmc {

namespace {

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

template <typename Kernel> Status check(const char *name, const ConvParams &p) {
  if (Status s = cpu::requireType(name, p.type); !s)
    return s;
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

} // namespace

struct Conv::State {
  conv::Windows windows;
};
Conv::Conv(const Params &params) : params_(params) {}
Conv::~Conv() = default;
Status Conv::prepare(Device &) {
  state_.reset(new State{{params_, false}});
  return check<Conv>("conv", params_);
}
void Conv::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runProduct(stream, params_, false, state_->windows, floats(operand(ins, 0)),
             floats(operand(ins, 1)),
             params_.bias ? floats(operand(ins, 2)) : nullptr,
             floats(result(outs, 0)), scratch);
}

struct ConvGradInput::State {
  conv::Windows windows;
};
ConvGradInput::ConvGradInput(const Params &params) : params_(params) {}
ConvGradInput::~ConvGradInput() = default;
Status ConvGradInput::prepare(Device &) {
  state_.reset(new State{{params_, true}});
  return check<ConvGradInput>("conv_grad_input", params_);
}
void ConvGradInput::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runProduct(stream, params_, true, state_->windows, floats(operand(ins, 0)),
             floats(operand(ins, 1)), nullptr, floats(result(outs, 0)),
             scratch);
}

struct ConvGradFilter::State {
  conv::Windows windows;
};
ConvGradFilter::ConvGradFilter(const Params &params) : params_(params) {}
ConvGradFilter::~ConvGradFilter() = default;
Status ConvGradFilter::prepare(Device &) {
  state_.reset(new State{{params_, false}});
  return check<ConvGradFilter>("conv_grad_filter", params_);
}
void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
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
