//===- Conv.cpp - two-dimensional convolution on cpu ----------------------===//
//
// oneDNN on NHWC activations, with the filter in whatever layout the library
// likes best: it is repacked into scratch on each run. The batch is cut into
// parts that depend on the shape alone; each part is a one-threaded primitive
// with a scratchpad of its own. Parts of a filter gradient have a gradient
// each, which are added in order.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Conv.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Depthwise.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>
#include <dnnl.hpp>
#include <string>
#include <vector>

extern "C" void omp_set_num_threads(int);

namespace tmc {

namespace {

using Tag = dnnl::memory::format_tag;

enum class Pass { Forward, GradInput, GradFilter };

/// One convolution in one direction, cut into parts.
class Convolution {
public:
  Convolution(const ConvParams &p, Pass pass) : p_(p), pass_(pass) {}

  Status prepare(const char *name, int64_t planned, int64_t cap) {
    if (Status s = cpu::requireType(name, p_.type); !s)
      return s;
    if (Status s = cpu::requireScratch(name, cap, planned); !s)
      return s;
    // The library fixes the number of threads when it makes a primitive.
    omp_set_num_threads(1);
    try {
      build();
    } catch (const dnnl::error &error) {
      return {Code::Unsupported,
              std::string(name) + " on cpu: oneDNN says: " + error.message};
    }
    return cpu::requireScratch(name, scratchBytes_, planned);
  }

  void run(Stream &stream, const float *in0, const float *in1,
           const float *bias, float *out, char *scratch, bool accumulate) {
    float *packed = reinterpret_cast<float *>(scratch);
    // Forward and input gradient: one packed filter, then the scratchpads.
    // Filter gradient: one packed gradient per part, then the scratchpads.
    const int64_t filters =
        pass_ == Pass::GradFilter ? int64_t(parts_.size()) : 1;
    char *pads = scratch + filters * filterBytes_;
    if (pass_ != Pass::GradFilter)
      reorder(packIn_, in1, packed, pads);
    parallelFor(stream, int64_t(parts_.size()), [&](int64_t number, int64_t) {
      Part &part = parts_[size_t(number)];
      const Direction &direction = directions_[part.direction];
      const float *x = in0 + part.sample * imageIn_;
      void *pad = pads + number * padBytes_;
      if (pass_ == Pass::GradFilter)
        part.execute(direction,
                     {x, in1 + part.sample * imageOther_,
                      packed + number * filterBytes_ / 4, nullptr, pad});
      else
        part.execute(direction,
                     {x, packed, out + part.sample * imageOut_, bias, pad});
    });
    if (pass_ == Pass::GradFilter)
      finishFilter(stream, packed, out, pads, accumulate);
  }

private:
  struct Operands {
    const void *first, *second;
    void *third;
    const void *bias;
    void *pad;
  };

  /// A primitive for parts of one size.
  struct Direction {
    dnnl::primitive primitive;
    dnnl::memory::desc first, second, third, bias, pad;
    int firstArg, secondArg, thirdArg;
  };

  /// A slice of the batch, with memory objects of its own.
  struct Part {
    int64_t sample;
    size_t direction;
    dnnl::memory first, second, third, bias, pad;
    dnnl::stream stream;

    void execute(const Direction &d, const Operands &o) {
      first.set_data_handle(const_cast<void *>(o.first));
      second.set_data_handle(const_cast<void *>(o.second));
      third.set_data_handle(o.third);
      pad.set_data_handle(o.pad);
      dnnl_exec_arg_t args[5] = {{d.firstArg, first.get()},
                                 {d.secondArg, second.get()},
                                 {d.thirdArg, third.get()},
                                 {DNNL_ARG_SCRATCHPAD, pad.get()},
                                 {DNNL_ARG_BIAS, nullptr}};
      int count = 4;
      if (o.bias) {
        bias.set_data_handle(const_cast<void *>(o.bias));
        args[4].memory = bias.get();
        count = 5;
      }
      // It can't fail any more: shapes and memory were checked when it was
      // made.
      (void)dnnl_primitive_execute(d.primitive.get(), stream.get(), count,
                                   args);
    }
  };

  struct Reorder {
    dnnl::primitive primitive;
    dnnl::memory from, to, pad;
  };

  static dnnl::primitive_attr attributes() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
  }

  Direction direction(int64_t batch) {
    using dnnl::memory;
    const auto type = memory::data_type::f32;
    const memory::desc x({batch, p_.inChannels, p_.inHeight, p_.inWidth}, type,
                         Tag::nhwc);
    const memory::desc y({batch, p_.outChannels, p_.outHeight, p_.outWidth},
                         type, Tag::nhwc);
    const int64_t perGroup = p_.inChannels / p_.groups;
    memory::dims shape = {p_.outChannels, perGroup, p_.kernelHeight,
                          p_.kernelWidth};
    if (p_.groups > 1)
      shape = {p_.groups, p_.outChannels / p_.groups, perGroup, p_.kernelHeight,
               p_.kernelWidth};
    const memory::desc any(shape, type, Tag::any);
    plainFilter_ =
        memory::desc(shape, type, p_.groups > 1 ? Tag::goihw : Tag::oihw);
    const memory::desc bias = p_.bias && pass_ == Pass::Forward
                                  ? memory::desc({p_.outChannels}, type, Tag::a)
                                  : memory::desc();
    const memory::dims strides = {p_.strideHeight, p_.strideWidth};
    const memory::dims dilations = {p_.dilationHeight - 1,
                                    p_.dilationWidth - 1};
    const memory::dims low = {p_.padTop, p_.padLeft};
    const memory::dims high = {p_.padBottom, p_.padRight};
    const auto algorithm = dnnl::algorithm::convolution_direct;

    const dnnl::convolution_forward::desc forward(
        dnnl::prop_kind::forward_training, algorithm, x, any, bias, y, strides,
        dilations, low, high);
    const dnnl::convolution_forward::primitive_desc hint(forward, attributes(),
                                                         engine_);
    Direction d;
    auto take = [&](const auto &desc, const memory::desc &first,
                    const memory::desc &second, const memory::desc &third) {
      d.pad = desc.scratchpad_desc();
      d.first = first;
      d.second = second;
      d.third = third;
      d.bias = bias;
    };
    switch (pass_) {
    case Pass::Forward:
      take(hint, x, hint.weights_desc(), y);
      d.primitive = dnnl::convolution_forward(hint);
      packedFilter_ = hint.weights_desc();
      d.firstArg = DNNL_ARG_SRC;
      d.secondArg = DNNL_ARG_WEIGHTS;
      d.thirdArg = DNNL_ARG_DST;
      break;
    case Pass::GradInput: {
      const dnnl::convolution_backward_data::desc desc(
          algorithm, x, any, y, strides, dilations, low, high);
      const dnnl::convolution_backward_data::primitive_desc made(
          desc, attributes(), engine_, hint);
      take(made, y, made.weights_desc(), x);
      d.primitive = dnnl::convolution_backward_data(made);
      packedFilter_ = made.weights_desc();
      d.firstArg = DNNL_ARG_DIFF_DST;
      d.secondArg = DNNL_ARG_WEIGHTS;
      d.thirdArg = DNNL_ARG_DIFF_SRC;
      break;
    }
    case Pass::GradFilter: {
      const dnnl::convolution_backward_weights::desc desc(
          algorithm, x, any, y, strides, dilations, low, high);
      const dnnl::convolution_backward_weights::primitive_desc made(
          desc, attributes(), engine_, hint);
      take(made, x, y, made.diff_weights_desc());
      d.primitive = dnnl::convolution_backward_weights(made);
      packedFilter_ = made.diff_weights_desc();
      d.firstArg = DNNL_ARG_SRC;
      d.secondArg = DNNL_ARG_DIFF_DST;
      d.thirdArg = DNNL_ARG_DIFF_WEIGHTS;
      break;
    }
    }
    return d;
  }

  void build() {
    const int64_t size = convPartSamples(p_);
    directions_.push_back(direction(size));
    if (const int64_t rest = p_.batch % size)
      directions_.push_back(direction(rest));
    for (int64_t at = 0; at < p_.batch; at += size) {
      Part part;
      part.sample = at;
      part.direction = p_.batch - at >= size ? 0 : 1;
      const Direction &d = directions_[part.direction];
      auto empty = [&](const dnnl::memory::desc &desc) {
        return dnnl::memory(desc, engine_, DNNL_MEMORY_NONE);
      };
      part.first = empty(d.first);
      part.second = empty(d.second);
      part.third = empty(d.third);
      part.pad = empty(d.pad);
      if (p_.bias && pass_ == Pass::Forward)
        part.bias = empty(d.bias);
      part.stream = dnnl::stream(engine_);
      padBytes_ = std::max(padBytes_, alignScratch(int64_t(d.pad.get_size())));
      parts_.push_back(std::move(part));
    }
    filterBytes_ = std::max(alignScratch(int64_t(packedFilter_.get_size())),
                            alignScratch(int64_t(plainFilter_.get_size())));
    auto makeReorder = [&](const dnnl::memory::desc &from,
                           const dnnl::memory::desc &to) {
      const dnnl::reorder::primitive_desc desc(engine_, from, engine_, to,
                                               attributes());
      padBytes_ = std::max(
          padBytes_, alignScratch(int64_t(desc.scratchpad_desc().get_size())));
      return Reorder{
          dnnl::reorder(desc), dnnl::memory(from, engine_, DNNL_MEMORY_NONE),
          dnnl::memory(to, engine_, DNNL_MEMORY_NONE),
          dnnl::memory(desc.scratchpad_desc(), engine_, DNNL_MEMORY_NONE)};
    };
    if (pass_ == Pass::GradFilter)
      packOut_ = makeReorder(packedFilter_, plainFilter_);
    else
      packIn_ = makeReorder(plainFilter_, packedFilter_);
    const int64_t filters = pass_ == Pass::GradFilter
                                ? std::max<int64_t>(2, int64_t(parts_.size()))
                                : 1;
    scratchBytes_ = filters * filterBytes_ + int64_t(parts_.size()) * padBytes_;

    const int64_t image = p_.inHeight * p_.inWidth * p_.inChannels;
    const int64_t result = p_.outHeight * p_.outWidth * p_.outChannels;
    imageIn_ = pass_ == Pass::GradInput ? result : image;
    imageOther_ = result;
    imageOut_ = pass_ == Pass::GradInput ? image : result;
  }

  void reorder(Reorder &r, const void *from, void *to, void *pad) {
    r.from.set_data_handle(const_cast<void *>(from));
    r.to.set_data_handle(to);
    r.pad.set_data_handle(pad);
    const dnnl_exec_arg_t args[3] = {{DNNL_ARG_FROM, r.from.get()},
                                     {DNNL_ARG_TO, r.to.get()},
                                     {DNNL_ARG_SCRATCHPAD, r.pad.get()}};
    (void)dnnl_primitive_execute(r.primitive.get(), parts_[0].stream.get(), 3,
                                 args);
  }

  /// Adds the parts' gradients in order, unpacks the sum, adds it to what was
  /// there if asked to.
  void finishFilter(Stream &stream, float *packed, float *out, char *pads,
                    bool accumulate) {
    const int64_t floats = filterBytes_ / 4;
    constexpr int64_t tile = 1 << 14;
    const int64_t used = int64_t(packedFilter_.get_size()) / 4;
    if (parts_.size() > 1)
      parallelFor(stream, (used + tile - 1) / tile, [&](int64_t t, int64_t) {
        const int64_t end = std::min(used, (t + 1) * tile);
        for (size_t part = 1; part < parts_.size(); ++part) {
          const float *from = packed + int64_t(part) * floats;
          for (int64_t i = t * tile; i < end; ++i)
            packed[i] += from[i];
        }
      });
    if (!accumulate) {
      reorder(packOut_, packed, out, pads);
      return;
    }
    // The second gradient's place is free by now; with one part it lies where
    // the scratchpads begin, whose own place follows.
    float *plain = packed + floats;
    reorder(packOut_, packed, plain,
            parts_.size() > 1 ? pads : pads + filterBytes_);
    const int64_t count = int64_t(plainFilter_.get_size()) / 4;
    for (int64_t i = 0; i < count; ++i)
      out[i] += plain[i];
  }

  const ConvParams p_;
  const Pass pass_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::vector<Direction> directions_;
  std::vector<Part> parts_;
  Reorder packIn_, packOut_;
  dnnl::memory::desc packedFilter_, plainFilter_;
  int64_t filterBytes_ = 0, padBytes_ = 0, scratchBytes_ = 0;
  int64_t imageIn_ = 0, imageOther_ = 0, imageOut_ = 0; // floats per sample
};

const float *floats(const void *p) { return static_cast<const float *>(p); }
float *floats(void *p) { return static_cast<float *>(p); }

} // namespace

struct Conv::State {
  Convolution convolution;
};
Conv::Conv(const Params &params) : params_(params) {}
Conv::~Conv() = default;
Status Conv::prepare(Device &) {
  state_.reset(new State{Convolution(params_, Pass::Forward)});
  return state_->convolution.prepare("conv", params_.scratchBytes,
                                     scratchCap(params_, Backend::Cpu));
}
void Conv::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  state_->convolution.run(
      stream, floats(operand(ins, 0)), floats(operand(ins, 1)),
      params_.bias ? floats(operand(ins, 2)) : nullptr, floats(result(outs, 0)),
      static_cast<char *>(scratch), false);
}

struct ConvGradInput::State {
  Convolution convolution;
};
ConvGradInput::ConvGradInput(const Params &params) : params_(params) {}
ConvGradInput::~ConvGradInput() = default;
Status ConvGradInput::prepare(Device &) {
  state_.reset(new State{Convolution(params_, Pass::GradInput)});
  return state_->convolution.prepare("conv_grad_input", params_.scratchBytes,
                                     scratchCap(params_, Backend::Cpu));
}
void ConvGradInput::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  state_->convolution.run(
      stream, floats(operand(ins, 0)), floats(operand(ins, 1)), nullptr,
      floats(result(outs, 0)), static_cast<char *>(scratch), false);
}

struct ConvGradFilter::State {
  Convolution convolution;
};
ConvGradFilter::ConvGradFilter(const Params &params) : params_(params) {}
ConvGradFilter::~ConvGradFilter() = default;
Status ConvGradFilter::prepare(Device &) {
  if (isDepthwise(params_)) {
    if (Status s = cpu::requireType("conv_grad_filter", params_.type); !s)
      return s;
    return cpu::requireScratch("conv_grad_filter",
                               scratchCap(params_, Backend::Cpu),
                               params_.scratchBytes);
  }
  state_.reset(new State{Convolution(params_, Pass::GradFilter)});
  return state_->convolution.prepare("conv_grad_filter", params_.scratchBytes,
                                     scratchCap(params_, Backend::Cpu));
}
void ConvGradFilter::run(Stream &stream, In ins, Out outs, void *scratch,
                         bool accumulate) {
  const float *x = floats(operand(ins, 0)), *dy = floats(operand(ins, 1));
  float *out = floats(result(outs, 0));
  char *bytes = static_cast<char *>(scratch);
  if (isDepthwise(params_))
    cpu::depthwiseGradFilter(stream, params_, x, dy, out, bytes, accumulate);
  else
    state_->convolution.run(stream, x, dy, nullptr, out, bytes, accumulate);
}

} // namespace tmc
