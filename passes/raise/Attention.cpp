// Attention.cpp - softmax(q k^T * scale + mask + bias) v, with dropout, as one
// op.
//
// The match begins at the product with v and walks back: through dropout to the
// softmax, through masks and factors to the product of q and k, through views
// to the projections. nn.attention reads [B, T, H, D], the layout of
// projections in memory, so that the exporter's transposes disappear.

#include "passes/raise/AttentionMask.h"
#include "passes/raise/Matchers.h"
#include "passes/raise/ViewMap.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <memory>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {

/// The names of the scores' dimensions, here and below: batch, heads, queries
/// (T), keys (S); `size` is the size of a head (D).
struct Matched {
  MatmulOp scores, product;
  int64_t batch, heads, queries, keys, size;
  double scale = 1, softcap = 0;
  std::optional<AttentionMask> mask;
  RandomOp random; // Null without dropout.
  double dropout = 0;
  std::optional<ViewMap> q, k, v; // [B, T, H, D], [B, S, G, D].
};

/// An op between scores and probabilities. The parts are collected from the
/// last to the first, before the shape is known.
struct MaskPart {
  Value value;
  bool isSelect;
  bool keep;     // For a select.
  double number; // For a select, the fill; else the factor.
};

class Matcher {
public:
  explicit Matcher(AttentionMask::Cache &cache) : cache(cache) {}
  /// Matches the attention whose last product is `product`. If there is none,
  /// returns nothing, and `why` names the part that doesn't match.
  std::optional<Matched> match(MatmulOp product);
  std::string why;

private:
  bool refuse(std::string reason) {
    why = std::move(reason);
    return false;
  }
  bool walkProbabilities(Value value, Matched &result);
  bool walkScores(Value value, Matched &result);
  bool takeDropout(Matched &result);
  bool takeShape(Matched &result);
  bool takeOperands(Matched &result);
  /// Records a shape with separate leading dimensions.
  void see(Value value) {
    ArrayRef<int64_t> shape = tensorType(value).getShape();
    if (shape.size() > widest.size())
      widest.assign(shape.begin(), shape.end());
    if (shape.size() == 4 && (plain.empty() || shape[0] > plain[0]))
      plain.assign(shape.begin(), shape.end());
  }

  AttentionMask::Cache &cache;
  SoftmaxOp softmax;
  Value gate;            // The i1 of dropout, or null.
  bool gateKeeps = true; // True if the gate is true for kept elements.
  double gateScale = 1;  // The factor of kept elements.
  SmallVector<MaskPart> parts;
  SmallVector<int64_t> widest, plain; // Plain: like [B, H, T, S].
};

} // namespace

/// True for a change of shape that doesn't change the matrices.
static bool keepsMatrices(ReshapeOp op) {
  ArrayRef<int64_t> from = tensorType(op.getInput()).getShape();
  ArrayRef<int64_t> to = tensorType(op.getResult()).getShape();
  return from.size() >= 2 && to.size() >= 2 &&
         from.take_back(2) == to.take_back(2);
}

/// If `value` is a number c where an i1 is true and zero elsewhere: the i1 and
/// c.
static std::pair<Value, double> asGate(Value value) {
  value = skipCasts(value);
  if (auto cast = value.getDefiningOp<arith::UIToFPOp>())
    return {cast.getIn(), 1};
  if (auto choice = value.getDefiningOp<arith::SelectOp>()) {
    auto yes = constantNumber(choice.getTrueValue());
    auto no = constantNumber(choice.getFalseValue());
    if (yes && no && *no == 0)
      return {choice.getCondition(), *yes};
  }
  double factor = 1;
  Value inner = skipFactor(value, factor);
  if (inner == value)
    return {};
  auto [gate, number] = asGate(inner);
  return {gate, number * factor};
}

/// True if `condition` tests whether `value` is NaN.
static bool isNaNTest(Value condition, Value value) {
  auto cmp = condition.getDefiningOp<arith::CmpFOp>();
  return cmp && cmp.getLhs() == value && cmp.getRhs() == value &&
         (cmp.getPredicate() == arith::CmpFPredicate::UNO ||
          cmp.getPredicate() == arith::CmpFPredicate::UNE);
}

/// Whether a batched product computes `value` through factors, masks and views.
static bool leadsToProduct(Value value, int depth = 8) {
  if (value.getDefiningOp<MatmulOp>())
    return tensorType(value).getRank() > 2;
  double factor;
  Value next = skipFactor(skipCasts(value), factor);
  if (auto tanh = value.getDefiningOp<math::TanhOp>())
    next = tanh.getOperand();
  if (next != value)
    return leadsToProduct(next, depth);
  if (auto view = value.getDefiningOp<ReshapeOp>(); view && keepsMatrices(view))
    return leadsToProduct(view.getInput(), depth);
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !isa_and_nonnull<arith::AddFOp, arith::SelectOp>(op))
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return leadsToProduct(operand, depth - 1);
  });
}

bool Matcher::walkProbabilities(Value value, Matched &result) {
  while (true) {
    see(value);
    if ((softmax = value.getDefiningOp<SoftmaxOp>()))
      return !softmax.getLog() || refuse("its softmax is a logarithm");
    Value next = skipFactor(skipCasts(value), gateScale);
    if (auto view = value.getDefiningOp<ReshapeOp>();
        view && keepsMatrices(view))
      next = view.getInput();
    if (auto choice = value.getDefiningOp<arith::SelectOp>()) {
      Value condition = choice.getCondition();
      Value yes = choice.getTrueValue(), no = choice.getFalseValue();
      bool zeroIf = constantNumber(yes) == 0,
           zeroElse = constantNumber(no) == 0;
      // Rows that see no key are zeros in nn.attention too.
      if (zeroIf && isNaNTest(condition, no)) {
        next = no;
      } else if (!gate && (zeroIf || zeroElse)) {
        gate = condition;
        gateKeeps = zeroElse;
        next = zeroElse ? yes : no;
      }
    }
    for (auto [x, factor] : bothWays<arith::MulFOp>(value))
      if (auto [condition, number] = asGate(factor); condition && !gate) {
        gate = condition;
        gateScale *= number;
        next = x;
      }
    if (next == value)
      return refuse(
          "between its softmax and its last product stands what isn't "
          "dropout");
    value = next;
  }
}

bool Matcher::walkScores(Value value, Matched &result) {
  double factor = 1; // The product of all earlier factors.
  size_t masked = 0; // Parts that come after a soft cap.
  while (true) {
    see(value);
    // The factor of a tanh is its cap: no score is larger.
    if (auto tanh = value.getDefiningOp<math::TanhOp>();
        tanh && result.softcap == 0 && factor > 0) {
      result.softcap = factor;
      masked = parts.size();
      value = tanh.getOperand();
      continue;
    }
    if ((result.scores = value.getDefiningOp<MatmulOp>())) {
      if (result.softcap != 0 && parts.size() > masked)
        return refuse("its scores are masked before they are capped");
      result.scale = factor;
      return (!result.scores.getBias() && !result.scores.getAcc()) ||
             refuse("its scores have a bias of their own");
    }
    Value next = skipFactor(skipCasts(value), factor);
    if (auto view = value.getDefiningOp<ReshapeOp>();
        view && keepsMatrices(view))
      next = view.getInput();
    if (auto choice = value.getDefiningOp<arith::SelectOp>()) {
      for (bool keep : {true, false}) {
        Value fill = keep ? choice.getFalseValue() : choice.getTrueValue();
        auto number = constantNumber(fill);
        if (!number || next != value)
          continue;
        parts.push_back({choice.getCondition(), true, keep, *number * factor});
        next = keep ? choice.getTrueValue() : choice.getFalseValue();
      }
    }
    // In a sum, the scores are the operand that comes from a batched product.
    for (auto [x, mask] : bothWays<arith::AddFOp>(value))
      if (next == value && leadsToProduct(x)) {
        parts.push_back({mask, false, true, factor});
        next = x;
      }
    if (auto difference = value.getDefiningOp<arith::SubFOp>();
        difference && constantNumber(difference.getRhs()))
      next = difference.getLhs(); // A softmax is invariant to it.
    if (next == value)
      return refuse("its scores are more than a product, a factor and a mask");
    value = next;
  }
}

bool Matcher::takeDropout(Matched &result) {
  if (!gate)
    return isNear(gateScale, 1) ||
           refuse("its probabilities are multiplied by a number");
  while (true) { // Views of the condition change only its shape.
    ViewMap view = ViewMap::of(gate);
    if (!isReshape(view))
      break;
    gate = view.getSource();
    bool negated = false;
    for (auto [x, ones] : bothWays<arith::XOrIOp>(gate))
      if (!negated && constantNumber(ones) == 1) {
        gate = x;
        gateKeeps = !gateKeeps;
        negated = true;
      }
    if (!negated)
      break;
  }
  auto cmp = gate.getDefiningOp<arith::CmpFOp>();
  if (!cmp)
    return refuse("its probabilities are gated by no comparison");
  using P = arith::CmpFPredicate;
  P keeps = cmp.getPredicate();
  Value uniform = cmp.getLhs(), rate = cmp.getRhs();
  auto number = constantNumber(rate);
  if (!number) {
    std::swap(uniform, rate);
    number = constantNumber(rate);
    keeps = keeps == P::OLE || keeps == P::ULE   ? P::OGE
            : keeps == P::OGT || keeps == P::UGT ? P::OLT
                                                 : P::AlwaysFalse;
  }
  ViewMap view = ViewMap::of(skipCasts(uniform));
  result.random = view.getSource().getDefiningOp<RandomOp>();
  bool isRule = gateKeeps ? keeps == P::OGE || keeps == P::UGE
                          : keeps == P::OLT || keeps == P::ULT;
  if (!number || !result.random || !isReshape(view) || !isRule)
    return refuse(
        "its dropout isn't that of a uniform number at least its rate");
  result.dropout = *number;
  if (!(result.dropout > 0 && result.dropout < 1) ||
      !isNear(gateScale * (1 - result.dropout), 1))
    return refuse("its dropout doesn't scale by one over the rate it keeps");
  return true;
}

bool Matcher::takeShape(Matched &result) {
  RankedTensorType scores = tensorType(result.scores.getResult());
  RankedTensorType out = tensorType(result.product.getResult());
  result.queries = scores.getShape().drop_back().back();
  result.keys = scores.getShape().back();
  result.size = out.getShape().back();
  see(result.product.getResult());
  int64_t lead = llvm::product_of(scores.getShape().drop_back(2));
  if (widest.size() > 3) {
    result.batch = widest[0];
    // Image windows are separate only for the mask. They share a bias, so they
    // can't become heads.
    if (widest.size() > 4 && !plain.empty() && !result.random &&
        plain[0] % result.batch == 0 && plain[0] * plain[1] == lead &&
        llvm::any_of(parts, [](const MaskPart &part) {
          return !part.isSelect && dependsOnParameter(part.value);
        }))
      result.batch = plain[0];
    result.heads = result.batch ? lead / result.batch : 0;
  } else {
    // One dimension for both: the parts inside a query in memory are heads.
    result.batch = lead;
    result.heads = 1;
    ViewMap q = ViewMap::of(result.scores.getLhs());
    auto strides = q.getStrides();
    auto queries = strides[result.scores.getTransposeLhs() ? 2 : 1];
    if (!queries.empty())
      for (auto [size, stride] : strides[0])
        if (stride < queries[0].second) {
          result.batch /= size;
          result.heads *= size;
        }
  }
  RankedTensorType q = tensorType(result.scores.getLhs());
  int64_t qSize = result.scores.getTransposeLhs()
                      ? q.getShape().drop_back().back()
                      : q.getShape().back();
  if (qSize != result.size)
    return refuse("its values have heads of " + std::to_string(result.size) +
                  ", its keys of " + std::to_string(qSize));
  if (out.getElementType() != scores.getElementType())
    return refuse("its two products have different element types");
  if (result.random) {
    if (tensorType(result.random.getSamples()).getNumElements() != result.batch)
      return refuse("its dropout doesn't count samples as its batch does");
    // No other op may have changed the shape of the random numbers.
    if (tensorType(result.random.getResult()).getNumElements() !=
        scores.getNumElements())
      return refuse("its dropout drops more than single probabilities");
  }
  return true;
}

/// `value` with matrices of [rows, columns], or [columns, rows] if
/// `transposed`, as [B, rows, H, columns].
static std::optional<ViewMap> perHead(const Matched &a, Value value,
                                      int64_t rows, int64_t columns,
                                      bool transposed, double *scale) {
  SmallVector<int64_t> shape = {a.batch, a.heads, transposed ? columns : rows,
                                transposed ? rows : columns};
  double found = 1;
  ViewMap view = ViewMap::of(value, scale ? &found : nullptr);
  if (!view.reshape(shape)) {
    found = 1;
    view = ViewMap::identity(value);
    if (!view.reshape(shape))
      return std::nullopt;
  }
  if (scale)
    *scale *= found;
  view.transpose(transposed ? ArrayRef<int64_t>{0, 3, 1, 2}
                            : ArrayRef<int64_t>{0, 2, 1, 3});
  return view;
}

bool Matcher::takeOperands(Matched &result) {
  MatmulOp scores = result.scores, product = result.product;
  result.q = perHead(result, scores.getLhs(), result.queries, result.size,
                     scores.getTransposeLhs(), &result.scale);
  result.k = perHead(result, scores.getRhs(), result.keys, result.size,
                     !scores.getTransposeRhs(), &result.scale);
  result.v = perHead(result, product.getRhs(), result.keys, result.size,
                     product.getTransposeRhs(), nullptr);
  if (!result.q || !result.k || !result.v)
    return refuse("its operands don't divide into " +
                  std::to_string(result.heads) + " heads");
  int64_t repeats = result.k->getInnerRepeats(2);
  if (repeats > 1 && repeats == result.v->getInnerRepeats(2)) {
    result.k->dropInnerRepeats(2);
    result.v->dropInnerRepeats(2);
  }
  return true;
}

std::optional<Matched> Matcher::match(MatmulOp product) {
  Matched result;
  result.product = product;
  if (tensorType(product.getResult()).getRank() < 3 || product.getBias() ||
      product.getAcc() || product.getTransposeLhs()) {
    why = "its last product isn't a plain batched one";
    return std::nullopt;
  }
  if (!walkProbabilities(product.getLhs(), result) ||
      !walkScores(softmax.getInput(), result) || !takeDropout(result) ||
      !takeShape(result) || !takeOperands(result))
    return std::nullopt;
  result.mask.emplace(ArrayRef<int64_t>{result.batch, result.heads,
                                        result.queries, result.keys},
                      tensorType(product.getResult()).getElementType(), cache);
  for (const MaskPart &part : parts)
    if (part.isSelect
            ? !result.mask->select(part.value, part.keep, part.number, why)
            : !result.mask->add(part.value, part.number, why))
      return std::nullopt;
  if (!result.mask->settle(why))
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

/// `view` as a permutation of the source's dimensions, if it is one.
static std::optional<SmallVector<int64_t>> asPermutation(const ViewMap &view) {
  int64_t rank = tensorType(view.getSource()).getRank();
  if (rank != int64_t(view.getRank()) || view.hasRepeats())
    return std::nullopt;
  SmallVector<int64_t> perm;
  for (unsigned dim = 0; dim < view.getRank(); ++dim)
    for (int64_t from = 0; from < rank; ++from)
      if (view.isDimOfSource(dim, from) && !llvm::is_contained(perm, from)) {
        perm.push_back(from);
        break;
      }
  if (int64_t(perm.size()) != rank)
    return std::nullopt;
  return perm;
}

static Value buildOperand(OpBuilder &b, Location loc, const ViewMap &view) {
  if (view.needsTranspose())
    if (auto perm = asPermutation(view);
        perm && canTransposeFreely(view.getSource(), *perm))
      return transposeFreely(b, view.getSource(), *perm);
  return view.build(b, loc);
}

namespace {

struct RaiseAttention : OpRewritePattern<MatmulOp> {
  RaiseAttention(MLIRContext *context,
                 std::shared_ptr<AttentionMask::Cache> cache)
      : OpRewritePattern(context), cache(std::move(cache)) {}
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &b) const override {
    std::optional<Matched> found = Matcher(*cache).match(op);
    if (!found)
      return failure();
    Location loc = op.getLoc();
    Value q = buildOperand(b, loc, *found->q);
    Value k = buildOperand(b, loc, *found->k);
    Value v = buildOperand(b, loc, *found->v);
    Value mask = found->mask->build(b, loc);
    Value bias = found->mask->buildBias(b, loc);
    for (Value *added : {&mask, &bias})
      if (*added && isa<FloatType>(tensorType(*added).getElementType()))
        *added = convertTo(b, loc, *added,
                           accumulationType(tensorType(q).getElementType()));
    Value seed, samples;
    int64_t stream = 0;
    if (found->random) {
      seed = found->random.getSeed();
      samples = found->random.getSamples();
      stream = found->random.getStream();
    }
    Value prefix = found->mask->buildPrefix(b, loc);
    Value groups = found->mask->buildGroups(b, loc);
    auto attention = AttentionOp::create(
        b, loc, q, k, v, mask, groups, prefix, seed, samples, bias,
        APFloat(found->scale), found->mask->isCausal(), APFloat(found->softcap),
        found->mask->getWindow(), APFloat(found->dropout), stream,
        /*exact=*/false, /*tf32=*/false);
    setFill(attention, found->mask->getFill());
    Value out = TransposeOp::create(b, loc, attention.getOut(),
                                    ArrayRef<int64_t>{0, 2, 1, 3});
    b.replaceOp(
        op, nn::reshapeTo(b, loc, out, tensorType(op.getResult()).getShape()));
    return success();
  }

  std::shared_ptr<AttentionMask::Cache> cache;
};

/// Simplifies a mask or bias table of an attention that was one op in the file:
/// flags, groups and a prefix replace parts of the table. Parts of a bias that
/// aren't trained become the mask.
struct SimplifyMask : OpRewritePattern<AttentionOp> {
  SimplifyMask(MLIRContext *context,
               std::shared_ptr<AttentionMask::Cache> cache)
      : OpRewritePattern(context), cache(std::move(cache)) {}
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &b) const override {
    Value mask = op.getMask(), bias = op.getBias();
    if (bool(mask) == bool(bias) || op.getGroups() || op.getPrefix() ||
        op.getWindow() || fillOf(op).number != 0)
      return failure();
    Value table = mask ? mask : bias;
    RankedTensorType q = tensorType(op.getQ()), type = tensorType(table);
    if (type.getDimSize(2) != q.getDimSize(1))
      return failure();
    AttentionMask parts(type.getShape(), accumulationType(q.getElementType()),
                        *cache);
    bool isCausal = op.getCausal();
    if (isCausal)
      parts.addCausal();
    std::string why;
    if (!addWhole(parts, table, why) || !parts.settle(why))
      return failure();
    const bool isNew = bias
                           ? parts.hasUntrained(isCausal) || !parts.hasTrained()
                           : parts.saysMore(isCausal) || parts.hasTrained();
    // A prefix would show keys that the causal flag hides.
    if (!isNew || (isCausal && parts.isPrefixed()))
      return failure();
    Location loc = op.getLoc();
    Value left = parts.build(b, loc);
    Value trained = parts.buildBias(b, loc);
    Value prefix = parts.buildPrefix(b, loc);
    Value groups = parts.buildGroups(b, loc);
    auto simpler = b.replaceOpWithNewOp<AttentionOp>(
        op, op.getQ(), op.getK(), op.getV(), left, groups, prefix, op.getSeed(),
        op.getSamples(), trained, op.getScale(), isCausal || parts.isCausal(),
        op.getSoftcap(), parts.getWindow(), op.getDropout(), op.getStream(),
        op.getExact(), op.getTf32());
    setFill(simpler, parts.getFill());
    return success();
  }

  std::shared_ptr<AttentionMask::Cache> cache;
};

/// Reads each key head once, for an attention that was one op in the file and
/// has the heads repeated for the queries that share them.
struct ShareHeads : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &b) const override {
    constexpr unsigned kHeads = 2;
    ViewMap k = ViewMap::of(op.getK()), v = ViewMap::of(op.getV());
    int64_t repeats = k.getInnerRepeats(kHeads);
    if (repeats == 1 || repeats != v.getInnerRepeats(kHeads))
      return failure();
    k.dropInnerRepeats(kHeads);
    v.dropInnerRepeats(kHeads);
    Value keys = buildOperand(b, op.getLoc(), k),
          values = buildOperand(b, op.getLoc(), v);
    b.modifyOpInPlace(op, [&] {
      op.getKMutable().assign(keys);
      op.getVMutable().assign(values);
    });
    return success();
  }
};

/// Drops the dimensions along which a mask or bias is constant, for an
/// attention that was one op in the file.
struct NarrowTables : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &b) const override {
    bool isNew = false;
    for (MutableOperandRange table : {op.getMaskMutable(), op.getBiasMutable()})
      if (!table.empty())
        if (Value narrow = narrowTable(b, table[0].get())) {
          b.modifyOpInPlace(op, [&] { table.assign(narrow); });
          isNew = true;
        }
    return success(isNew);
  }
};

} // namespace

void tmc::populateRaiseAttention(RewritePatternSet &patterns) {
  auto cache = std::make_shared<AttentionMask::Cache>();
  patterns.add<RaiseAttention, SimplifyMask>(patterns.getContext(), cache);
  patterns.add<ShareHeads, NarrowTables>(patterns.getContext());
}

//===----------------------------------------------------------------------===//
// Attention that isn't raised
//===----------------------------------------------------------------------===//

/// The nearest `OpTy` before `value`, through pointwise ops and views.
template <typename OpTy> static OpTy findBefore(Value value, int depth = 10) {
  Operation *op = value.getDefiningOp();
  if (auto found = dyn_cast_or_null<OpTy>(op))
    return found;
  if (depth == 0 || !op ||
      !(isPointwise(op) || isa<ReshapeOp, TransposeOp>(op)))
    return {};
  for (Value operand : op->getOperands())
    if (OpTy found = findBefore<OpTy>(operand, depth - 1))
      return found;
  return {};
}

static bool isBatched(MatmulOp op) {
  return op && tensorType(op.getResult()).getRank() > 2;
}

void tmc::warnAboutUnraisedAttention(Operation *root) {
  AttentionMask::Cache cache;
  root->walk([&](MatmulOp op) {
    if (!isBatched(op))
      return;
    auto softmax = findBefore<SoftmaxOp>(op.getLhs());
    if (!softmax || !isBatched(findBefore<MatmulOp>(softmax.getInput())))
      return;
    Matcher matcher(cache);
    if (!matcher.match(op))
      emitWarning(op.getLoc())
          << "looks like attention, but stays in pieces: " << matcher.why;
  });
}
