// Conv.cpp - convolutions, pools and their gradients.

#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Conv.h"
#include "runtime/kernels/Pool.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {
/// The dimensions of an activation, for both layouts.
struct Image {
  int64_t n, c, h, w;

  static Image of(RankedTensorType type, bool channelsLast) {
    ArrayRef<int64_t> s = type.getShape();
    return channelsLast ? Image{s[0], s[3], s[1], s[2]}
                        : Image{s[0], s[1], s[2], s[3]};
  }
  RankedTensorType type(Type element, bool channelsLast) const {
    return channelsLast ? RankedTensorType::get({n, h, w, c}, element)
                        : RankedTensorType::get({n, c, h, w}, element);
  }
};

/// The common attributes of the ops in this file.
struct Spatial {
  ArrayRef<int64_t> strides, padding, dilations;
  bool channelsLast;

  template <typename OpTy> static Spatial of(OpTy op) {
    return {op.getStrides(), op.getPadding(), op.getDilations(),
            op.getChannelsLast()};
  }
};
} // namespace

/// C3: two positive entries each, and four nonnegative entries of padding.
static LogicalResult checkSpatial(std::optional<Location> loc, const Spatial &s,
                                  ArrayRef<int64_t> window) {
  auto isPositivePair = [](ArrayRef<int64_t> v) {
    return v.size() == 2 && v[0] > 0 && v[1] > 0;
  };
  if (!isPositivePair(s.strides) || !isPositivePair(s.dilations) ||
      !isPositivePair(window) || s.padding.size() != 4 ||
      llvm::any_of(s.padding, [](int64_t p) { return p < 0; }))
    return emitOptionalError(
        loc, "has strides [", s.strides, "], dilations [", s.dilations,
        "], window [", window, "] and padding [", s.padding,
        "], where two positive numbers each, and four of padding, are due");
  return success();
}

/// Output size of one spatial dimension, or nothing if the window (C4) is
/// larger than the padded input.
static std::optional<int64_t> outSize(const Spatial &s, int dim, int64_t in,
                                      int64_t window) {
  int64_t padded = in + s.padding[dim] + s.padding[dim + 2];
  int64_t reach = (window - 1) * s.dilations[dim] + 1;
  if (reach > padded)
    return std::nullopt;
  return (padded - reach) / s.strides[dim] + 1;
}

/// The result type of sliding `window` over `input`, with `channels` channels.
static FailureOr<RankedTensorType>
slide(std::optional<Location> loc, RankedTensorType input, const Spatial &s,
      ArrayRef<int64_t> window, std::optional<int64_t> channels) {
  if (input.getRank() != 4) // C1
    return emitOptionalError(loc, input, " is no activation of rank 4");
  if (failed(checkSpatial(loc, s, window)))
    return failure();
  Image image = Image::of(input, s.channelsLast);
  std::optional<int64_t> h = outSize(s, 0, image.h, window[0]);
  std::optional<int64_t> w = outSize(s, 1, image.w, window[1]);
  if (!h || !w) // C4
    return emitOptionalError(loc, "a window of [", window,
                             "] doesn't fit in an input of ", image.h, " by ",
                             image.w, " with padding [", s.padding, "]");
  Image out{image.n, channels.value_or(image.c), *h, *w};
  return out.type(input.getElementType(), s.channelsLast);
}

/// The type of a convolution's result.
static FailureOr<RankedTensorType> convType(std::optional<Location> loc,
                                            RankedTensorType input,
                                            RankedTensorType filter,
                                            const Spatial &s, int64_t groups) {
  bool isRounded =
      filter.getElementType().isF32() && input.getElementTypeBitWidth() == 16;
  if (input.getRank() != 4 || filter.getRank() != 4 ||
      (input.getElementType() != filter.getElementType() && !isRounded)) // C1
    return emitOptionalError(loc, "wants an input and a filter of rank 4 and ",
                             "one element type, and has ", input, " and ",
                             filter);
  int64_t channels = Image::of(input, s.channelsLast).c;
  if (groups <= 0 || channels % groups || filter.getDimSize(0) % groups ||
      filter.getDimSize(1) * groups != channels) // C2
    return emitOptionalError(loc, groups, " groups of ", channels,
                             " channels don't meet a filter of type ", filter);
  return slide(loc, input, s, filter.getShape().drop_front(2),
               filter.getDimSize(0));
}

/// C1 of the gradients: the forward op on `input` (and `filter`) has the type
/// of `grad`.
static LogicalResult
checkAdjoint(Operation *op, FailureOr<RankedTensorType> forward, Value grad) {
  if (failed(forward))
    return failure();
  if (grad.getType() != *forward)
    return op->emitOpError("takes a gradient of type ")
           << grad.getType() << " where the forward result is " << *forward;
  return success();
}

template <typename Kernel>
static KernelCall convKernel(Operation *op, RankedTensorType input,
                             RankedTensorType filter, RankedTensorType result,
                             const Spatial &s, int64_t groups,
                             Backend backend) {
  assert(s.channelsLast && "the layout pass comes before kernels");
  Image in = Image::of(input, true), out = Image::of(result, true);
  const ConvParams p{.type = runtimeType(input),
                     .filter = runtimeType(filter),
                     .batch = in.n,
                     .inHeight = in.h,
                     .inWidth = in.w,
                     .inChannels = in.c,
                     .outHeight = out.h,
                     .outWidth = out.w,
                     .outChannels = out.c,
                     .kernelHeight = filter.getDimSize(2),
                     .kernelWidth = filter.getDimSize(3),
                     .strideHeight = s.strides[0],
                     .strideWidth = s.strides[1],
                     .padTop = s.padding[0],
                     .padLeft = s.padding[1],
                     .padBottom = s.padding[2],
                     .padRight = s.padding[3],
                     .dilationHeight = s.dilations[0],
                     .dilationWidth = s.dilations[1],
                     .groups = groups};
  auto call = KernelCall::of<Kernel>(op->getContext(), p, backend);
  call.products = p.type;
  if (backend == Backend::Cpu)
    call.flops = Kernel::cpuFlops(p);
  return call;
}

template <typename Kernel>
static KernelCall poolKernel(Operation *op, RankedTensorType input,
                             RankedTensorType result, const Spatial &s,
                             ArrayRef<int64_t> window, bool countPadding,
                             Backend backend) {
  assert(s.channelsLast && "the layout pass comes before kernels");
  Image in = Image::of(input, true), out = Image::of(result, true);
  return KernelCall::of<Kernel>(op->getContext(),
                                {.type = runtimeType(input),
                                 .batch = in.n,
                                 .inHeight = in.h,
                                 .inWidth = in.w,
                                 .channels = in.c,
                                 .outHeight = out.h,
                                 .outWidth = out.w,
                                 .kernelHeight = window[0],
                                 .kernelWidth = window[1],
                                 .strideHeight = s.strides[0],
                                 .strideWidth = s.strides[1],
                                 .padTop = s.padding[0],
                                 .padLeft = s.padding[1],
                                 .padBottom = s.padding[2],
                                 .padRight = s.padding[3],
                                 .dilationHeight = s.dilations[0],
                                 .dilationWidth = s.dilations[1],
                                 .countIncludePad = countPadding},
                                backend);
}

/// The flops of a convolution with these types; a multiply-add counts as two.
static int64_t convFlops(RankedTensorType result, RankedTensorType filter) {
  return 2 * result.getNumElements() *
         llvm::product_of(filter.getShape().drop_front());
}

/// The dimension of an activation's channels.
template <typename OpTy> static int64_t channelDim(OpTy op) {
  return op.getChannelsLast() ? 3 : 1;
}

/// The cut of an activation or filter along the three extents of a convolution,
/// each a dimension or whole.
struct ConvSide {
  int64_t images, inChannels, outChannels;

  static ConvSide filter() { return {OpCut::kWhole, 1, 0}; }
  template <typename OpTy> static ConvSide input(OpTy op) {
    return {0, channelDim(op), OpCut::kWhole};
  }
  template <typename OpTy> static ConvSide output(OpTy op) {
    return {0, OpCut::kWhole, channelDim(op)};
  }
};

/// The cuts of a convolution or of a gradient of one. A piece of channels would
/// have fewer groups.
template <typename OpTy>
static OpCuts convCuts(OpTy op, ConvSide lhs, ConvSide rhs, ConvSide result) {
  OpCuts cuts(op, "its filter depends on the batch, or its images don't hold "
                  "the batch in front");
  for (int64_t ConvSide::*side :
       {&ConvSide::images, &ConvSide::inChannels, &ConvSide::outChannels})
    if (side == &ConvSide::images || op.getGroups() == 1)
      cuts.add({lhs.*side, rhs.*side},
               result.*side < 0 ? Rejoin::sum() : Rejoin::concat(result.*side));
  return cuts;
}

/// The cuts of a pool or of the gradient of one: images and channels, of all
/// operands.
template <typename OpTy> static OpCuts poolCuts(OpTy op) {
  OpCuts cuts(op, "its images don't hold the batch in front");
  for (int64_t dim : {int64_t(0), channelDim(op)})
    cuts.add(SmallVector<int64_t>(op->getNumOperands(), dim),
             Rejoin::concat(dim));
  return cuts;
}

//===----------------------------------------------------------------------===//
// nn.conv
//===----------------------------------------------------------------------===//

LogicalResult ConvOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc, Adaptor op,
                                       SmallVectorImpl<Type> &results) {
  FailureOr<RankedTensorType> type =
      convType(loc, cast<RankedTensorType>(op.getInput().getType()),
               cast<RankedTensorType>(op.getFilter().getType()),
               Spatial::of(op), op.getGroups());
  if (failed(type))
    return failure();
  results.push_back(*type);
  return success();
}

int64_t ConvOp::getFlops() {
  return convFlops(tensorType(getResult()), tensorType(getFilter()));
}

SmallVector<Value> ConvOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                    ArrayRef<bool> wanted) {
  SmallVector<Value> result(2);
  if (wanted[0])
    result[0] = ConvGradInputOp::create(b, getLoc(), getInput().getType(),
                                        grads[0], getFilter(), getStridesAttr(),
                                        getPaddingAttr(), getDilationsAttr(),
                                        getChannelsLastAttr(), getGroupsAttr());
  if (wanted[1])
    result[1] = ConvGradFilterOp::create(
        b, getLoc(), getFilter().getType(), getInput(), grads[0],
        getStridesAttr(), getPaddingAttr(), getDilationsAttr(),
        getChannelsLastAttr(), getGroupsAttr());
  return result;
}

OpCuts ConvOp::getCuts() {
  return convCuts(*this, ConvSide::input(*this), ConvSide::filter(),
                  ConvSide::output(*this));
}

KernelCall ConvOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  return convKernel<Conv>(*this, tensorType(getInput()),
                          tensorType(getFilter()), tensorType(getResult()),
                          Spatial::of(*this), getGroups(), backend);
}

SmallVector<unsigned> ConvOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> ConvOp::getRoundedResults() { return {0}; }
bool ConvOp::roundsAsRead(unsigned factor, bool onCard) { return factor == 1; }

//===----------------------------------------------------------------------===//
// nn.conv_grad_input
//===----------------------------------------------------------------------===//

LogicalResult ConvGradInputOp::verify() {
  return checkAdjoint(*this,
                      convType(getLoc(), tensorType(getResult()),
                               tensorType(getFilter()), Spatial::of(*this),
                               getGroups()),
                      getGrad()); // C1
}

int64_t ConvGradInputOp::getFlops() {
  return convFlops(tensorType(getGrad()), tensorType(getFilter()));
}

SmallVector<Value> ConvGradInputOp::buildVjp(OpBuilder &b,
                                             ArrayRef<Value> grads,
                                             ArrayRef<bool> wanted) {
  // The op is linear in both operands; its adjoint in `grad` is the
  // convolution.
  SmallVector<Value> result(2);
  if (wanted[0])
    result[0] = ConvOp::create(b, getLoc(), grads[0], getFilter(), getStrides(),
                               getPadding(), getDilations(), getChannelsLast(),
                               getGroups());
  if (wanted[1])
    result[1] = ConvGradFilterOp::create(
        b, getLoc(), getFilter().getType(), grads[0], getGrad(),
        getStridesAttr(), getPaddingAttr(), getDilationsAttr(),
        getChannelsLastAttr(), getGroupsAttr());
  return result;
}

OpCuts ConvGradInputOp::getCuts() {
  return convCuts(*this, ConvSide::output(*this), ConvSide::filter(),
                  ConvSide::input(*this));
}

KernelCall ConvGradInputOp::getKernel(ArrayRef<MemRefType> inputs,
                                      Backend backend) {
  return convKernel<ConvGradInput>(
      *this, tensorType(getResult()), tensorType(getFilter()),
      tensorType(getGrad()), Spatial::of(*this), getGroups(), backend);
}

SmallVector<unsigned> ConvGradInputOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> ConvGradInputOp::getRoundedResults() { return {0}; }
bool ConvGradInputOp::roundsAsRead(unsigned factor, bool onCard) {
  return factor == 1;
}

//===----------------------------------------------------------------------===//
// nn.conv_grad_filter
//===----------------------------------------------------------------------===//

LogicalResult ConvGradFilterOp::verify() {
  return checkAdjoint(*this,
                      convType(getLoc(), tensorType(getInput()),
                               tensorType(getResult()), Spatial::of(*this),
                               getGroups()),
                      getGrad()); // C1
}

int64_t ConvGradFilterOp::getFlops() {
  return convFlops(tensorType(getGrad()), tensorType(getResult()));
}

SmallVector<Value> ConvGradFilterOp::buildVjp(OpBuilder &b,
                                              ArrayRef<Value> grads,
                                              ArrayRef<bool> wanted) {
  SmallVector<Value> result(2);
  if (wanted[0])
    result[0] = ConvGradInputOp::create(b, getLoc(), getInput().getType(),
                                        getGrad(), grads[0], getStridesAttr(),
                                        getPaddingAttr(), getDilationsAttr(),
                                        getChannelsLastAttr(), getGroupsAttr());
  if (wanted[1])
    result[1] = ConvOp::create(b, getLoc(), getInput(), grads[0], getStrides(),
                               getPadding(), getDilations(), getChannelsLast(),
                               getGroups());
  return result;
}

OpCuts ConvGradFilterOp::getCuts() {
  return convCuts(*this, ConvSide::input(*this), ConvSide::output(*this),
                  ConvSide::filter());
}

KernelCall ConvGradFilterOp::getKernel(ArrayRef<MemRefType> inputs,
                                       Backend backend) {
  return convKernel<ConvGradFilter>(
      *this, tensorType(getInput()), tensorType(getResult()),
      tensorType(getGrad()), Spatial::of(*this), getGroups(), backend);
}

SmallVector<unsigned> ConvGradFilterOp::getFactors() { return {0, 1}; }
SmallVector<unsigned> ConvGradFilterOp::getRoundedResults() { return {0}; }
bool ConvGradFilterOp::mayKeepSums() { return true; }

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

template <typename Adaptor>
static LogicalResult inferPool(std::optional<Location> loc, Adaptor op,
                               SmallVectorImpl<Type> &results) {
  FailureOr<RankedTensorType> type =
      slide(loc, cast<RankedTensorType>(op.getInput().getType()),
            Spatial::of(op), op.getWindow(), std::nullopt);
  if (failed(type))
    return failure();
  results.push_back(*type);
  return success();
}

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  return inferPool(loc, op, results);
}

int64_t MaxPoolOp::getFlops() {
  return tensorType(getResult()).getNumElements() *
         llvm::product_of(getWindow());
}

SmallVector<Value> MaxPoolOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  return {MaxPoolGradOp::create(b, getLoc(), getInput().getType(), getInput(),
                                grads[0], getStridesAttr(), getPaddingAttr(),
                                getDilationsAttr(), getChannelsLastAttr(),
                                getWindowAttr())};
}

OpCuts MaxPoolOp::getCuts() { return poolCuts(*this); }

KernelCall MaxPoolOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  return poolKernel<MaxPool>(*this, tensorType(getInput()),
                             tensorType(getResult()), Spatial::of(*this),
                             getWindow(), false, backend);
}

LogicalResult MaxPoolGradOp::verify() {
  if (getResult().getType() != getInput().getType()) // C1
    return emitOpError("makes a gradient of type ")
           << getResult().getType() << " for an input of type "
           << getInput().getType();
  return checkAdjoint(*this,
                      slide(getLoc(), tensorType(getInput()),
                            Spatial::of(*this), getWindow(), std::nullopt),
                      getGrad()); // C1
}

int64_t MaxPoolGradOp::getFlops() {
  return tensorType(getGrad()).getNumElements() * llvm::product_of(getWindow());
}

OpCuts MaxPoolGradOp::getCuts() { return poolCuts(*this); }

KernelCall MaxPoolGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                    Backend backend) {
  return poolKernel<MaxPoolGrad>(*this, tensorType(getInput()),
                                 tensorType(getGrad()), Spatial::of(*this),
                                 getWindow(), false, backend);
}

LogicalResult AvgPoolOp::inferReturnTypes(MLIRContext *context,
                                          std::optional<Location> loc,
                                          Adaptor op,
                                          SmallVectorImpl<Type> &results) {
  return inferPool(loc, op, results);
}

int64_t AvgPoolOp::getFlops() {
  return tensorType(getResult()).getNumElements() *
         llvm::product_of(getWindow());
}

SmallVector<Value> AvgPoolOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                       ArrayRef<bool> wanted) {
  return {AvgPoolGradOp::create(b, getLoc(), getInput().getType(), grads[0],
                                getStridesAttr(), getPaddingAttr(),
                                getDilationsAttr(), getChannelsLastAttr(),
                                getWindowAttr(), getCountPaddingAttr())};
}

OpCuts AvgPoolOp::getCuts() { return poolCuts(*this); }

KernelCall AvgPoolOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  return poolKernel<AvgPool>(*this, tensorType(getInput()),
                             tensorType(getResult()), Spatial::of(*this),
                             getWindow(), getCountPadding(), backend);
}

LogicalResult AvgPoolGradOp::verify() {
  return checkAdjoint(*this,
                      slide(getLoc(), tensorType(getResult()),
                            Spatial::of(*this), getWindow(), std::nullopt),
                      getGrad()); // C1
}

int64_t AvgPoolGradOp::getFlops() {
  return tensorType(getGrad()).getNumElements() * llvm::product_of(getWindow());
}

SmallVector<Value> AvgPoolGradOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                           ArrayRef<bool> wanted) {
  return {AvgPoolOp::create(b, getLoc(), grads[0], getStridesAttr(),
                            getPaddingAttr(), getDilationsAttr(),
                            getChannelsLastAttr(), getWindowAttr(),
                            getCountPaddingAttr())};
}

OpCuts AvgPoolGradOp::getCuts() { return poolCuts(*this); }

KernelCall AvgPoolGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                    Backend backend) {
  return poolKernel<AvgPoolGrad>(*this, tensorType(getResult()),
                                 tensorType(getGrad()), Spatial::of(*this),
                                 getWindow(), getCountPadding(), backend);
}

SmallVector<unsigned> MaxPoolOp::getActivations() { return {0}; }
SmallVector<unsigned> MaxPoolGradOp::getActivations() { return {0, 1}; }
SmallVector<unsigned> AvgPoolOp::getActivations() { return {0}; }
SmallVector<unsigned> AvgPoolGradOp::getActivations() { return {0}; }
