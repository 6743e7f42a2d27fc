// Attention.cpp - nn.attention and its gradient.

#include "dialects/nn/AttentionFill.h"
#include "dialects/nn/AttentionLibrary.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Attention.h"
#include "runtime/kernels/CudnnAttention.h"

#include "llvm/ADT/TypeSwitch.h"

#include <array>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

/// A number for each position of a sample, or for each sample: [B or 1, rest].
/// All samples may share it.
static bool isPerSample(Value x, int64_t batch, ArrayRef<int64_t> rest) {
  RankedTensorType type = tensorType(x);
  return type.getElementType().isInteger(64) &&
         type.getRank() == int64_t(rest.size()) + 1 &&
         (type.getDimSize(0) == 1 || type.getDimSize(0) == batch) &&
         type.getShape().drop_front() == rest;
}

/// Whether `type`, of a mask or bias, can be broadcast to the `scores` [B, H,
/// T, S].
static bool broadcastsTo(RankedTensorType type, ArrayRef<int64_t> scores) {
  if (type.getRank() != 4 || type.getDimSize(3) != scores[3])
    return false;
  return llvm::all_of(llvm::seq(3), [&](int dim) {
    return type.getDimSize(dim) == 1 || type.getDimSize(dim) == scores[dim];
  });
}

/// C1 to C4 and C6 to C8, shared by both ops.
template <typename Adaptor>
static LogicalResult checkAttention(std::optional<Location> loc, Adaptor op) {
  Value q = op.getQ(), k = op.getK(), v = op.getV(), mask = op.getMask();
  Value seed = op.getSeed(), samples = op.getSamples();
  double dropout = op.getDropout().convertToDouble();
  RankedTensorType tq = tensorType(q), tk = tensorType(k);
  if (tq.getRank() != 4 || tk.getRank() != 4 || v.getType() != tk ||
      tq.getElementType() != tk.getElementType() ||
      tq.getDimSize(0) != tk.getDimSize(0) ||
      tq.getDimSize(3) != tk.getDimSize(3)) // C1
    return emitOptionalError(loc, "wants q [B, T, H, D] and k, v [B, S, G, D],",
                             " and has ", tq, ", ", tk, " and ", v.getType());
  if (tk.getDimSize(2) == 0 || tq.getDimSize(2) % tk.getDimSize(2) != 0) // C2
    return emitOptionalError(loc, tk.getDimSize(2), " key heads don't divide ",
                             tq.getDimSize(2), " query heads");
  const int64_t scores[] = {tq.getDimSize(0), tq.getDimSize(2),
                            tq.getDimSize(1), tk.getDimSize(1)};
  auto isSum = [&](RankedTensorType type) {
    return type.getElementType() == accumulationType(tq.getElementType());
  };
  if (mask) { // C3
    RankedTensorType tm = tensorType(mask);
    if (!broadcastsTo(tm, scores) ||
        !(tm.getElementType().isInteger(1) || isSum(tm)))
      return emitOptionalError(loc, "a mask of type ", tm,
                               " doesn't broadcast to scores of [",
                               ArrayRef<int64_t>(scores), "]");
  }
  if (Value bias = op.getBias()) { // C7
    RankedTensorType tb = tensorType(bias);
    if (!broadcastsTo(tb, scores) || !isSum(tb))
      return emitOptionalError(loc, "a bias of type ", tb,
                               " doesn't broadcast to scores of [",
                               ArrayRef<int64_t>(scores), "]");
  }
  if (dropout < 0 || dropout >= 1 || (dropout > 0) != bool(seed) ||
      bool(seed) != bool(samples)) // C4
    return emitOptionalError(loc, "dropout of ", dropout,
                             seed ? " with" : " without", " random operands");
  if (seed && tensorType(seed).getShape() != ArrayRef<int64_t>{2}) // C4
    return emitOptionalError(loc, "wants a seed and a step, and has ",
                             seed.getType());
  if (samples) { // C4
    RankedTensorType ts = tensorType(samples);
    if (ts.getRank() != 1 || ts.getDimSize(0) == 0 ||
        tq.getDimSize(0) % ts.getDimSize(0) != 0)
      return emitOptionalError(loc, "the samples ", ts, " don't divide the ",
                               tq.getDimSize(0), " rows of the batch");
  }
  double softcap = op.getSoftcap().convertToDouble();
  int64_t window = op.getWindow(), batch = tq.getDimSize(0);
  if (!(softcap >= 0) || window < 0) // C6
    return emitOptionalError(loc, "a soft cap of ", softcap,
                             " and a window of ", window);
  int64_t keys = tk.getDimSize(1);
  if (Value groups = op.getGroups(); // C6
      groups && (!isPerSample(groups, batch, keys) || tq.getDimSize(1) > keys))
    return emitOptionalError(loc, "groups of type ", groups.getType(), " for ",
                             tq.getDimSize(1), " queries and ", keys, " keys");
  if (op.getTf32() && !tq.getElementType().isF32()) // C8
    return emitOptionalError(loc, "multiplies ", tq.getElementType(),
                             " as tf32");
  if (Value prefix = op.getPrefix(); // C6
      prefix && (!op.getCausal() || !isPerSample(prefix, batch, {})))
    return emitOptionalError(loc, "a prefix of type ", prefix.getType(),
                             op.getCausal() ? "" : " without causal");
  return success();
}

/// Log-sum-exps of the rows of the scores: [B, H, T].
static RankedTensorType lseType(RankedTensorType q) {
  return RankedTensorType::get(
      {q.getDimSize(0), q.getDimSize(2), q.getDimSize(1)},
      accumulationType(q.getElementType()));
}

/// Operations for each score: `products` matrix products and `others` on the
/// score itself.
static int64_t perScore(RankedTensorType q, int64_t products, int64_t others) {
  return products * 2 * q.getDimSize(3) + others;
}

/// Computed scores, including all heads and the batch.
template <typename OpTy> static int64_t scoreCount(OpTy op) {
  RankedTensorType q = tensorType(op.getQ()), k = tensorType(op.getK());
  int64_t queries = q.getDimSize(1), keys = k.getDimSize(1);
  int64_t window = op.getWindow();
  int64_t pairs = 0;
  for (int64_t t = 0; t < queries; ++t) {
    int64_t at = t + keys - queries;
    int64_t first = window ? std::max<int64_t>(0, at - window + 1) : 0;
    int64_t end = op.getCausal() ? at + 1 : keys;
    if (window)
      end = std::min(end, at + window);
    pairs += std::max<int64_t>(0, std::min(end, keys) - first);
  }
  return pairs * q.getDimSize(0) * q.getDimSize(2);
}

/// Adds the cut along dimension `dim` of the scores [B, H, T, S]. Heads of q
/// are cut with the head of k and v that they read. Keys aren't cut: the
/// softmax of a row sees all of them.
template <typename OpTy>
static void addScoreCut(OpCuts &cuts, OpTy op, int64_t dim) {
  constexpr int64_t whole = OpCut::kWhole, batch = 0, heads = 1, queries = 2;
  const int64_t ofQ = dim == batch ? 0 : dim == queries ? 1 : 2;
  const int64_t ofK = dim == queries ? whole : ofQ;
  auto onScores = [&](Value x) { // A mask or bias may be broadcast.
    return tensorType(x).getDimSize(dim) == 1 ? whole : dim;
  };
  auto onBatch = [&](Value x) {
    return dim == batch && tensorType(x).getDimSize(0) != 1 ? 0 : whole;
  };
  SmallVector<int64_t> operands{ofQ, ofK, ofK};
  if constexpr (!std::is_same_v<OpTy, AttentionOp>)
    operands.append({ofQ, dim, ofQ}); // out, lse and grad
  if (Value mask = op.getMask())
    operands.push_back(onScores(mask));
  for (Value each : {op.getGroups(), op.getPrefix()})
    if (each)
      operands.push_back(onBatch(each));
  // The heads of a sample are those of as many samples as there are pieces.
  if (op.getSeed())
    operands.append({whole, dim == batch   ? 0
                            : dim == heads ? OpCut::kNumbered
                                           : whole});
  if (Value bias = op.getBias())
    operands.push_back(onScores(bias));

  auto joined = [](int64_t cut) {
    return cut == whole ? Rejoin::sum() : Rejoin::concat(cut);
  };
  SmallVector<Rejoin> results{joined(ofQ)};
  if constexpr (std::is_same_v<OpTy, AttentionOp>)
    results.push_back(joined(dim));
  if constexpr (std::is_same_v<OpTy, AttentionGradOp>) {
    results.append({joined(ofK), joined(ofK)});
    if (Value bias = op.getBias())
      results.push_back(joined(onScores(bias)));
  }
  cuts.add(operands, results);
}

template <typename OpTy> static OpCuts attentionCuts(OpTy op) {
  OpCuts cuts(op, "it mixes what it finds in the batch");
  addScoreCut(cuts, op, 0);
  // Packed heads of q, k and v don't lie side by side in a piece.
  if (std::is_same_v<OpTy, PackedAttentionGradOp>)
    return cuts;
  addScoreCut(cuts, op, 1);
  // The place of a query counts from the last one, and the numbers of dropout
  // depend on it.
  if (!op.getCausal() && !op.getWindow() && !op.getGroups() && !op.getSeed())
    addScoreCut(cuts, op, 2);
  return cuts;
}

bool AttentionOp::takesTF32() { return true; }
bool AttentionGradOp::takesTF32() { return true; }
SmallVector<unsigned> AttentionOp::getFactors() { return {0, 1, 2}; }
SmallVector<unsigned> AttentionOp::getRoundedResults() { return {0}; }
SmallVector<unsigned> AttentionGradOp::getFactors() { return {0, 1, 2, 3, 5}; }
SmallVector<unsigned> AttentionGradOp::getRoundedResults() { return {0, 1, 2}; }
bool PackedAttentionGradOp::takesTF32() { return true; }
SmallVector<unsigned> PackedAttentionGradOp::getFactors() {
  return {0, 1, 2, 3, 5};
}
SmallVector<unsigned> PackedAttentionGradOp::getRoundedResults() { return {0}; }

/// Elements from one batch, head and query of a mask or bias to the next; 0 if
/// it is broadcast.
static std::array<int64_t, 3> stridesOnScores(Value x) {
  std::array<int64_t, 3> strides = {0, 0, 0};
  if (!x)
    return strides;
  RankedTensorType type = tensorType(x);
  int64_t stride = type.getDimSize(3);
  for (int dim = 2; dim >= 0; --dim) {
    strides[dim] = type.getDimSize(dim) == 1 ? 0 : stride;
    stride *= type.getDimSize(dim);
  }
  return strides;
}

/// Elements from one batch, time and head to the next.
static AttentionStrides stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  return {.batch = strides[0], .time = strides[1], .head = strides[2]};
}

template <typename OpTy>
static AttentionParams attentionParams(OpTy op, ArrayRef<MemRefType> inputs) {
  MemRefType q = inputs[0], k = inputs[1];
  MaskKind mask = MaskKind::None;
  if (Value given = op.getMask())
    mask = tensorType(given).getElementType().isInteger(1) ? MaskKind::Boolean
                                                           : MaskKind::Additive;
  const auto maskStrides = stridesOnScores(op.getMask());
  const auto biasStrides = stridesOnScores(op.getBias());
  const AttentionFill fill = fillOf(op);
  // Elements from one sample to the next; 0 if all samples share it.
  auto batchStride = [](Value x) -> int64_t {
    if (!x || tensorType(x).getDimSize(0) == 1)
      return 0;
    return tensorType(x).getNumElements() / tensorType(x).getDimSize(0);
  };
  const double dropout = op.getDropout().convertToDouble();
  const int64_t batch = q.getDimSize(0);
  return {.type = runtimeType(q),
          .batch = batch,
          .heads = q.getDimSize(2),
          .kvHeads = k.getDimSize(2),
          .queries = q.getDimSize(1),
          .keys = k.getDimSize(1),
          .headDim = q.getDimSize(3),
          .q = stridesOf(q),
          .k = stridesOf(k),
          .v = stridesOf(inputs[2]),
          .causal = op.getCausal(),
          .scale = op.getScale().convertToDouble(),
          .softcap = op.getSoftcap().convertToDouble(),
          .window = int64_t(op.getWindow()),
          .mask = mask,
          .maskBatchStride = maskStrides[0],
          .maskHeadStride = maskStrides[1],
          .maskQueryStride = maskStrides[2],
          .bias = bool(op.getBias()),
          .biasBatchStride = biasStrides[0],
          .biasHeadStride = biasStrides[1],
          .biasQueryStride = biasStrides[2],
          .fill = fill.number,
          .fillKind = fill.kind,
          .groupsBatchStride = batchStride(op.getGroups()),
          .prefixBatchStride = batchStride(op.getPrefix()),
          .dropout = dropout,
          .exact = op.getExact(),
          .tf32 = op.getTf32(),
          .packed = std::is_same_v<OpTy, PackedAttentionGradOp>,
          .rowsPerSample =
              dropout > 0 ? batch / tensorType(op.getSamples()).getDimSize(0)
                          : 1,
          .stream = uint32_t(op.getStream())};
}

template <typename Kernel, typename OpTy>
static KernelCall attentionKernel(OpTy op, ArrayRef<MemRefType> inputs,
                                  unsigned maskIndex, Backend backend) {
  const AttentionParams p = attentionParams(op, inputs);
  auto call = KernelCall::of<Kernel>(op->getContext(), p, backend);
  call.supported &= p.stream == uint64_t(op.getStream());
  // If cuda's kernels don't use tensor cores, they widen the factors and
  // multiply in f32.
  call.products = backend == Backend::Cuda && !isForTensorCores(p) ? DType::F32
                  : backend == Backend::Cuda && p.tf32             ? DType::TF32
                                                                   : p.type;
  // Operands before the mask are always present; those after it are optional.
  for (unsigned i = 0; i < maskIndex; ++i)
    call.ins.push_back(i);
  int64_t next = maskIndex;
  for (Value operand : {op.getMask(), op.getGroups(), op.getPrefix(),
                        op.getSeed(), op.getSamples()})
    call.ins.push_back(operand ? next++ : -1);
  if (op.getBias())
    call.ins.push_back(next);
  return call;
}

/// The library's kernel. It has the operands before the mask alone. The
/// runtime refuses what its parameters say of others; they don't say all of
/// groups and prefixes.
template <typename Kernel, typename OpTy>
static KernelCall cudnnKernel(OpTy op, ArrayRef<MemRefType> inputs,
                              unsigned maskIndex) {
  const AttentionParams p = attentionParams(op, inputs);
  auto call = KernelCall::of<Kernel>(op->getContext(), p, Backend::Cuda);
  call.supported &= !op.getGroups() && !op.getPrefix();
  call.products = p.type;
  for (unsigned i = 0; i < maskIndex; ++i)
    call.ins.push_back(i);
  return call;
}

template <typename OpTy>
static std::string whyNot(OpTy op, ArrayRef<MemRefType> layouts,
                          int capability) {
  if (op.getGroups() || op.getPrefix())
    return "groups of keys and prefixes aren't given to it";
  // Views may begin anywhere in a buffer, whose own address is aligned.
  for (MemRefType layout : layouts.take_front(3)) {
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (!layout || failed(layout.getStridesAndOffset(strides, offset)) ||
        ShapedType::isDynamic(offset) || offset % kCudnnStrideElements != 0)
      return "q, k or v begins at no multiple of 16 bytes";
  }
  const char *why = whyNotCudnn(
      attentionParams(op, layouts),
      /*isGradient=*/!std::is_same_v<OpTy, AttentionOp>, capability);
  return why ? why : "";
}

std::string tmc::nn::whyNotByCudnn(Operation *op, ArrayRef<MemRefType> layouts,
                                   int capability) {
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<AttentionOp, AttentionGradOp, PackedAttentionGradOp>(
          [&](auto each) { return whyNot(each, layouts, capability); })
      .Default([](Operation *) { return "it is no attention"; });
}

//===----------------------------------------------------------------------===//
// nn.attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor op,
                                            SmallVectorImpl<Type> &results) {
  if (failed(checkAttention(loc, op)))
    return failure();
  results.push_back(op.getQ().getType());
  results.push_back(lseType(cast<RankedTensorType>(op.getQ().getType())));
  return success();
}

static int64_t outFlops(AttentionOp op, int64_t products) {
  return scoreCount(op) * perScore(tensorType(op.getQ()), products, 5);
}

int64_t AttentionOp::getFlops() { return outFlops(*this, 2); }

SmallVector<Value> AttentionOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                         ArrayRef<bool> wanted) {
  assert(!grads[1] && "the log-sum-exp is no output of a model");
  SmallVector<Value> result(getNumOperands());
  // The bias, if any, is the last operand.
  if (!wanted[0] && !wanted[1] && !wanted[2] && !(getBias() && wanted.back()))
    return result;
  auto grad = AttentionGradOp::create(
      b, getLoc(), getQ(), getK(), getV(), getOut(), getLse(), grads[0],
      getMask(), getGroups(), getPrefix(), getSeed(), getSamples(), getBias(),
      getScaleAttr(), getCausalAttr(), getSoftcapAttr(), getWindowAttr(),
      getDropoutAttr(), getStreamAttr(), getExactAttr(), getTf32Attr());
  setFill(grad, fillOf(*this));
  for (unsigned i = 0; i < 3; ++i)
    result[i] = grad.getResult(i);
  if (getBias())
    result.back() = grad.getDbias();
  return result;
}

OpCuts AttentionOp::getCuts() { return attentionCuts(*this); }

bool AttentionOp::acceptsStrides(unsigned index) { return index < 3; }

KernelCall AttentionOp::getKernel(ArrayRef<MemRefType> inputs,
                                  Backend backend) {
  if (backend == Backend::Cuda && isByCudnn(*this))
    return cudnnKernel<CudnnAttention>(*this, inputs, 3);
  KernelCall call = attentionKernel<Attention>(*this, inputs, 3, backend);
  // Tensor cores get exact probabilities as two bf16 numbers
  // (runtime/cuda/TensorTile.h).
  if (backend == Backend::Cuda && call.products == DType::BF16 && getExact())
    call.flops = outFlops(*this, 3);
  return call;
}

//===----------------------------------------------------------------------===//
// nn.attention_grad
//===----------------------------------------------------------------------===//

/// The constraints of both forms.
template <typename Adaptor>
static LogicalResult checkAttentionGrad(std::optional<Location> loc,
                                        Adaptor op) {
  if (failed(checkAttention(loc, op)))
    return failure();
  auto q = cast<RankedTensorType>(op.getQ().getType());
  if (op.getOut().getType() != q || op.getGrad().getType() != q ||
      op.getLse().getType() != lseType(q)) // C5
    return emitOptionalError(
        loc, "wants out and its gradient of type ", q, " and lse of type ",
        lseType(q), ", and has ", op.getOut().getType(), ", ",
        op.getGrad().getType(), " and ", op.getLse().getType());
  return success();
}

LogicalResult
AttentionGradOp::inferReturnTypes(MLIRContext *context,
                                  std::optional<Location> loc, Adaptor op,
                                  SmallVectorImpl<Type> &results) {
  if (failed(checkAttentionGrad(loc, op)))
    return failure();
  results.append(
      {op.getQ().getType(), op.getK().getType(), op.getV().getType()});
  if (Value bias = op.getBias())
    results.push_back(bias.getType());
  return success();
}

template <typename OpTy> static int64_t gradFlops(OpTy op, int64_t products) {
  return scoreCount(op) * perScore(tensorType(op.getQ()), products, 8);
}

int64_t AttentionGradOp::getFlops() { return gradFlops(*this, 5); }

OpCuts AttentionGradOp::getCuts() { return attentionCuts(*this); }

bool AttentionGradOp::acceptsStrides(unsigned index) { return index < 3; }

template <typename OpTy>
static KernelCall gradKernel(OpTy op, ArrayRef<MemRefType> inputs,
                             Backend backend) {
  if (backend == Backend::Cuda && isByCudnn(op)) {
    KernelCall call = cudnnKernel<CudnnAttentionGrad>(op, inputs, 6);
    // As the own kernels', whose rates it has until it is measured.
    call.flops = gradFlops(op, 7);
    return call;
  }
  KernelCall call = attentionKernel<AttentionGrad>(op, inputs, 6, backend);
  if (backend != Backend::Cuda)
    return call;
  // On cuda, dk and dv come from one pass over the scores, dq from a second and
  // dbias from a third; each pass computes its own products q k^T and dout v^T.
  // Tensor cores get exact P and dS as two bf16 numbers. The third pass has no
  // kernel for tensor cores, and takes the longest.
  if (op.getBias())
    call.products = DType::F32;
  const bool isSplit = call.products == DType::BF16 && op.getExact();
  call.flops = gradFlops(op, op.getBias() ? 9 : isSplit ? 10 : 7);
  return call;
}

KernelCall AttentionGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                      Backend backend) {
  return gradKernel(*this, inputs, backend);
}

//===----------------------------------------------------------------------===//
// nn.packed_attention_grad
//===----------------------------------------------------------------------===//

LogicalResult
PackedAttentionGradOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc, Adaptor op,
                                        SmallVectorImpl<Type> &results) {
  if (failed(checkAttentionGrad(loc, op)))
    return failure();
  RankedTensorType q = tensorType(op.getQ()), k = tensorType(op.getK());
  if (q.getDimSize(1) != k.getDimSize(1) || op.getBias()) // C9
    return emitOptionalError(loc, "wants as many queries as keys and no bias, ",
                             "and has ", q, " and ", k,
                             op.getBias() ? " and a bias" : "");
  SmallVector<int64_t> shape(q.getShape());
  shape[2] += 2 * k.getDimSize(2);
  results.push_back(q.clone(shape));
  return success();
}

int64_t PackedAttentionGradOp::getFlops() { return gradFlops(*this, 5); }

OpCuts PackedAttentionGradOp::getCuts() { return attentionCuts(*this); }

bool PackedAttentionGradOp::acceptsStrides(unsigned index) { return index < 3; }

KernelCall PackedAttentionGradOp::getKernel(ArrayRef<MemRefType> inputs,
                                            Backend backend) {
  KernelCall call = gradKernel(*this, inputs, backend);
  call.outs = {0, -1, -1, -1};
  return call;
}
