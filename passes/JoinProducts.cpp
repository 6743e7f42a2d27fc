// JoinProducts.cpp - -tmc-join-products: products of one value by several
// parameters become one product.
//
//     q = x Wq^T + bq     [R, 768]          y = x W^T + b     [R, 2304]
//     k = x Wk^T + bk     [R, 768]    =>    q = y[:, 0:768]
//     v = x Wv^T + bv     [R, 768]          k = y[:, 768:1536]
//                                           v = y[:, 1536:2304]
//
// W is one parameter of the step: the rows of Wq, Wk and Wv, one after another.
// `train.parts` says which rows are whose, so files, messages and the runtime
// know the model's own tensors and nothing else. One product has more work for
// a card's processors at once, reads x once, and gives the gradient of x
// without adding up three.
//
// Rows are joined only where their update doesn't depend on the rows beside
// them: the optimizer's rule decides, by `OptimizerRule::mayJoin`. Columns are
// read where they lie. So products are joined only if each reader of a result
// can do that: attention, and kernels of pointwise ops (fuse/Windows.h).
//
// A rotary embedding may stand between queries and keys and their attention. It
// then rotates the first heads of the one result, and values stay:
//
//     rotary(q [B, T, H, D])                 rotary(y [B, T, H + 2 G, D])
//     rotary(k [B, T, G, D])           =>      {heads = H + G}
//     v        [B, T, G, D]
//
// So both ways the rotation takes place in the one buffer of all three: its
// gradient is that of attention (nn.packed_attention_grad), rotated back.

#include "passes/BaseSpec.h"
#include "passes/Passes.h"

#include "compiler/analysis/StepProblem.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"
#include "passes/Optimizers.h"
#include "passes/Precision.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/Passes.h.inc"

namespace {
using namespace nn;
using train::TrainDialect;

/// Columns of a part begin at a multiple of this, as accesses of 16 bytes want
/// it.
constexpr int64_t kAlignedColumns = 8;

/// The readers of a product's rows.
enum class Readers { Attention, Pointwise, Others };

/// The kind of reader that takes the columns of `rows` where they lie, directly
/// or behind reshapes: attention, which takes heads, or kernels that are made
/// of pointwise ops.
Readers readersOf(Value rows) {
  std::optional<Readers> all;
  for (OpOperand &use : rows.getUses()) {
    Operation *user = use.getOwner();
    Readers its = Readers::Others;
    if (isa<ReshapeOp>(user))
      its = readersOf(user->getResult(0));
    else if (isa<AttentionOp>(user) && use.getOperandNumber() < 3)
      its = Readers::Attention;
    else if (isa<PointwiseOpInterface>(user))
      its = Readers::Pointwise;
    if (all && *all != its)
      return Readers::Others;
    all = its;
  }
  return all.value_or(Readers::Others);
}

/// The name of tensors whose names are `names`: "attn.{q,k,v}.weight".
std::string joinedName(ArrayRef<StringRef> names) {
  SmallVector<SmallVector<StringRef>> words(names.size());
  size_t least = SIZE_MAX;
  for (auto [name, list] : llvm::zip_equal(names, words)) {
    name.split(list, '.');
    least = std::min(least, list.size());
  }
  auto isCommon = [&](auto wordOf) {
    return llvm::all_of(
        words, [&](auto &list) { return wordOf(list) == wordOf(words[0]); });
  };
  size_t before = 0, behind = 0;
  while (before + 1 < least &&
         isCommon([&](auto &list) { return list[before]; }))
    ++before;
  while (before + behind + 1 < least &&
         isCommon([&](auto &list) { return list[list.size() - 1 - behind]; }))
    ++behind;
  std::string text;
  for (StringRef word : ArrayRef(words[0]).take_front(before))
    text += word.str() + ".";
  text += "{";
  for (auto [i, list] : llvm::enumerate(words))
    text +=
        (i ? "," : "") +
        llvm::join(ArrayRef(list).drop_front(before).drop_back(behind), ".");
  text += "}";
  for (StringRef word : ArrayRef(words[0]).take_back(behind))
    text += "." + word.str();
  return text;
}

/// The heads [B, T, G, D] of a product's rows that attention reads, rotated or
/// not.
struct Heads {
  MatmulOp product;
  ReshapeOp reshape;
  RotaryEmbeddingOp rotary; // Null if they aren't rotated.
  RankedTensorType type;

  /// The heads that `operand` is, if nothing else reads a value on the way from
  /// the product to it.
  static std::optional<Heads> of(Value operand) {
    Heads heads;
    heads.type = tensorType(operand);
    heads.rotary = operand.getDefiningOp<RotaryEmbeddingOp>();
    Value rows = heads.rotary ? heads.rotary.getInput() : operand;
    heads.reshape = rows.getDefiningOp<ReshapeOp>();
    if (!operand.hasOneUse() || !rows.hasOneUse() || !heads.reshape ||
        (heads.rotary && heads.rotary.getHeads()))
      return std::nullopt;
    heads.product = heads.reshape.getInput().getDefiningOp<MatmulOp>();
    if (!heads.product || !heads.product->hasOneUse() ||
        tensorType(heads.product.getResult()).getShape().back() !=
            heads.type.getDimSize(2) * heads.type.getDimSize(3))
      return std::nullopt;
    return heads;
  }
};

/// True if one rotation of the heads of both does the same as `a` and `b`.
bool rotateAlike(RotaryEmbeddingOp a, RotaryEmbeddingOp b) {
  return a.getCos() == b.getCos() && a.getSin() == b.getSin() &&
         tensorType(a.getCos()).getDimSize(2) == 1 &&
         a.getInterleaved() == b.getInterleaved() &&
         a.getTransposed() == b.getTransposed();
}

struct JoinProducts : impl::JoinProductsBase<JoinProducts> {
  using JoinProductsBase::JoinProductsBase;

  void runOnOperation() override {
    forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || failed(parse()))
      return;
    // Results name arguments by their numbers, which change.
    SmallVector<std::pair<unsigned, BlockArgument>> updates;
    for (unsigned i = 0; i < forward.getNumResults(); ++i)
      if (std::optional<unsigned> updated = train::updatedArg(forward, i))
        updates.push_back({i, forward.getArgument(*updated)});
    forward.walk([&](AttentionOp attention) { joinRotated(attention); });
    // Products by what they read, in the order of the first one.
    llvm::MapVector<Value, SmallVector<MatmulOp>> readers;
    forward.walk([&](MatmulOp product) {
      if (mayBeJoined(product) &&
          readersOf(product.getResult()) != Readers::Others)
        readers[product.getLhs()].push_back(product);
    });
    for (auto &[lhs, products] : readers)
      while (!products.empty()) {
        SmallVector<MatmulOp> group = takeGroup(products);
        if (group.size() > 1)
          join(group);
      }
    Builder b(&getContext());
    for (auto [result, argument] : updates)
      forward.setResultAttr(result, TrainDialect::kUpdates,
                            b.getI64IntegerAttr(argument.getArgNumber()));
  }

private:
  func::FuncOp forward;
  std::shared_ptr<OptimizerRule> rule; // Passes are copied.
  std::optional<PrecisionSpec> spec;
  std::optional<BaseSpec> storage;

  /// Reads the options. Texts that can't be read are other passes' errors.
  LogicalResult parse() {
    auto parsedRule = OptimizerRule::create(optimizer);
    if (parsedRule)
      rule = std::move(*parsedRule);
    else
      llvm::consumeError(parsedRule.takeError());
    spec = PrecisionSpec::ifValid(precision);
    if (auto parsed = BaseSpec::parse(base))
      storage = std::move(*parsed);
    else
      llvm::consumeError(parsed.takeError());
    return success(rule && spec && storage);
  }

  /// The argument of the forward function that `value` is, if it is a parameter
  /// under one name that nothing else reads; null if it isn't.
  BlockArgument parameterIn(Value value) {
    auto argument = dyn_cast_or_null<BlockArgument>(value);
    if (!argument || argument.getOwner() != &forward.getBody().front() ||
        !argument.hasOneUse())
      return {};
    const unsigned index = argument.getArgNumber();
    if (train::roleOf(forward, index) != train::Role::Param ||
        forward.getArgAttr(index, TrainDialect::kAliases) ||
        forward.getArgAttr(index, TrainDialect::kParts))
      return {};
    // The other functions of a step in pieces may read it, too.
    StringRef name = train::argName(forward, index);
    for (auto other : getOperation().getOps<func::FuncOp>())
      for (BlockArgument its : other.getArguments())
        if (other != forward && !its.use_empty() &&
            train::argName(other, its.getArgNumber()) == name)
          return {};
    return argument;
  }

  bool mayBeJoined(MatmulOp product) {
    return !product.getTransposeLhs() && product.getTransposeRhs() &&
           !product.getAcc() && !product.getLhsScale() &&
           !product.getRhsScale() &&
           tensorType(product.getRhs()).getRank() == 2 &&
           parameterIn(product.getRhs()) &&
           (!product.getBias() || parameterIn(product.getBias()));
  }

  /// The names by which exceptions of --precision know a product.
  std::string exceptionOf(MatmulOp product) {
    SmallVector<std::string> names = {tmc::nameOf(product)};
    for (Value operand : {product.getRhs(), product.getBias()})
      if (operand)
        names.push_back(argName(operand).str());
    return spec->choose(names, &getContext()).exception;
  }

  StringRef argName(Value argument) {
    return train::argName(forward,
                          cast<BlockArgument>(argument).getArgNumber());
  }
  bool isFrozen(Value argument) {
    return bool(forward.getArgAttr(cast<BlockArgument>(argument).getArgNumber(),
                                   TrainDialect::kFrozen));
  }

  bool isAdapter(Value argument) {
    return bool(forward.getArgAttr(cast<BlockArgument>(argument).getArgNumber(),
                                   TrainDialect::kAdapter));
  }

  /// True if `a` and `b` are read alike, and may be rows of one product.
  bool goTogether(MatmulOp a, MatmulOp b) {
    Readers readers = readersOf(a.getResult());
    if (readers != readersOf(b.getResult()))
      return false;
    // A kernel walks over the columns of all parts at once.
    const int64_t columns = tensorType(a.getRhs()).getDimSize(0);
    if (readers == Readers::Pointwise &&
        (tensorType(b.getRhs()).getDimSize(0) != columns ||
         columns % kAlignedColumns != 0))
      return false;
    return computeAlike(a, b);
  }
  /// True if `a` and `b` compute alike, and their parameters are updated as
  /// rows of one.
  bool computeAlike(MatmulOp a, MatmulOp b) {
    return a->getBlock() == b->getBlock() && a.getTf32() == b.getTf32() &&
           bool(a.getBias()) == bool(b.getBias()) &&
           exceptionOf(a) == exceptionOf(b) &&
           mayJoin(a.getRhs(), b.getRhs()) &&
           (!a.getBias() || mayJoin(a.getBias(), b.getBias()));
  }
  train::CutAttr cutOf(Value argument) {
    return forward.getArgAttrOfType<train::CutAttr>(
        cast<BlockArgument>(argument).getArgNumber(), TrainDialect::kCut);
  }
  /// True if ranks have all of both, or a piece of the rows of both.
  bool areCutAlike(Value a, Value b) {
    auto areRows = [](train::CutAttr cut) {
      return cut.getDim() == 0 && cut.getRuns() == 1;
    };
    train::CutAttr first = cutOf(a), second = cutOf(b);
    return bool(first) == bool(second) &&
           (!first || (areRows(first) && areRows(second)));
  }
  /// True if `value` is a parameter that may be stored as codes.
  bool mayBeCoded(Value value) {
    return isFrozen(value) &&
           isCoded(storage->choose({argName(value).str()}).format);
  }
  bool mayJoin(Value a, Value b) {
    RankedTensorType first = tensorType(a), second = tensorType(b);
    if (mayBeCoded(a) || mayBeCoded(b))
      return false;
    if (!areCutAlike(a, b))
      return false;
    if (first.getElementType() != second.getElementType() ||
        isFrozen(a) != isFrozen(b) || isAdapter(a) != isAdapter(b))
      return false;
    return isFrozen(a) ||
           rule->mayJoin({argName(a), first}, {argName(b), second});
  }

  /// Removes the first product, and those that go with it, from `products`.
  SmallVector<MatmulOp> takeGroup(SmallVector<MatmulOp> &products) {
    SmallVector<MatmulOp> group, others;
    for (MatmulOp product : products)
      if (group.empty() || goTogether(group.front(), product))
        group.push_back(product);
      else
        others.push_back(product);
    products = std::move(others);
    return group;
  }

  /// Joins the products of queries, keys and values of which queries and keys
  /// are rotated on their way to attention.
  void joinRotated(AttentionOp attention) {
    std::optional<Heads> q = Heads::of(attention.getQ()),
                         k = Heads::of(attention.getK()),
                         v = Heads::of(attention.getV());
    // The gradient of attention with a bias isn't packed.
    if (attention.getBias() || !q || !k || !v || !q->rotary || !k->rotary ||
        v->rotary || !rotateAlike(q->rotary, k->rotary))
      return;
    Heads parts[] = {*q, *k, *v};
    for (Heads &part : parts)
      if (part.product.getLhs() != q->product.getLhs() ||
          !mayBeJoined(part.product) || !computeAlike(q->product, part.product))
        return;
    Value whole = makeWhole({q->product, k->product, v->product});
    OpBuilder b(attention);
    SmallVector<int64_t> shape(q->type.getShape());
    const int64_t rotated = shape[2] + k->type.getDimSize(2);
    shape[2] = rotated + v->type.getDimSize(2);
    whole = reshapeTo(b, whole.getLoc(), whole, shape);
    whole = RotaryEmbeddingOp::create(
        b, joinedLoc({q->rotary, k->rotary}), whole, q->rotary.getCos(),
        q->rotary.getSin(), q->rotary.getInterleaved(),
        q->rotary.getTransposed(), rotated);
    SmallVector<int64_t> offsets(shape.size(), 0), steps(shape.size(), 1);
    for (auto &&[i, part] : llvm::enumerate(parts)) {
      attention->setOperand(i,
                            SliceOp::create(b, part.product.getLoc(), part.type,
                                            whole, offsets, steps));
      offsets[2] += part.type.getDimSize(2);
      if (part.rotary)
        part.rotary->erase();
      part.reshape->erase();
    }
    eraseUnread({q->product, k->product, v->product});
  }

  void join(ArrayRef<MatmulOp> group) {
    MatmulOp whole = makeWhole(group);
    OpBuilder b(group.front());
    const int64_t rank = tensorType(whole.getResult()).getRank();
    SmallVector<int64_t> offsets(rank, 0), steps(rank, 1);
    for (MatmulOp product : group) {
      RankedTensorType part = tensorType(product.getResult());
      product.replaceAllUsesWith(
          SliceOp::create(b, product.getLoc(), part, whole, offsets, steps)
              .getResult());
      offsets.back() += part.getShape().back();
    }
    eraseUnread(group);
  }

  /// The place of what several ops become.
  Location joinedLoc(ArrayRef<Operation *> ops) {
    Builder b(&getContext());
    SmallVector<Location> locs;
    SmallVector<std::string> names;
    for (Operation *op : ops) {
      locs.push_back(op->getLoc());
      names.push_back(tmc::nameOf(op));
    }
    return NameLoc::get(b.getStringAttr(joinedName(SmallVector<StringRef>(
                            names.begin(), names.end()))),
                        b.getFusedLoc(locs));
  }

  /// A product by the rows of all parameters of `group`, in its order.
  MatmulOp makeWhole(ArrayRef<MatmulOp> group) {
    SmallVector<Value> tables, biases;
    for (MatmulOp product : group) {
      tables.push_back(product.getRhs());
      if (product.getBias())
        biases.push_back(product.getBias());
    }
    Value table = joinArguments(tables);
    Value bias = biases.empty() ? Value() : joinArguments(biases);

    MatmulOp first = group.front();
    OpBuilder b(first);
    RankedTensorType type = tensorType(first.getResult());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = tensorType(table).getDimSize(0);
    auto whole = MatmulOp::create(
        b, joinedLoc(SmallVector<Operation *>(group.begin(), group.end())),
        type.clone(shape), first.getLhs(), table, bias, Value(), Value(),
        Value(), first.getTransposeLhsAttr(), first.getTransposeRhsAttr(),
        first.getTf32Attr());
    whole->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    return whole;
  }

  /// An argument with the rows of `parts`, in the place of the first one.
  BlockArgument joinArguments(ArrayRef<Value> parts) {
    Builder b(&getContext());
    SmallVector<StringRef> names;
    SmallVector<Attribute> attrs;
    RankedTensorType type = tensorType(parts[0]);
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 0;
    for (Value part : parts) {
      const unsigned index = cast<BlockArgument>(part).getArgNumber();
      const int64_t rows = tensorType(part).getDimSize(0);
      names.push_back(train::argName(forward, index));
      attrs.push_back(train::PartAttr::get(
          b.getContext(), b.getStringAttr(names.back()), rows,
          forward.getArgAttr(index, TrainDialect::kInit)));
      shape[0] += rows;
    }
    const unsigned index = cast<BlockArgument>(parts[0]).getArgNumber();
    std::string name = joinedName(names);
    NamedAttrList all(forward.getArgAttrDict(index));
    all.erase(TrainDialect::kInit);
    if (train::CutAttr cut = cutOf(parts[0])) {
      SmallVector<int64_t> whole(shape);
      whole[0] *= cut.getWhole().getDimSize(0) / type.getDimSize(0);
      all.set(TrainDialect::kCut,
              train::CutAttr::get(b.getContext(), type.clone(whole), 0, 1));
    }
    all.set(TrainDialect::kName, b.getStringAttr(name));
    all.set(TrainDialect::kParts, b.getArrayAttr(attrs));
    LogicalResult inserted = forward.insertArgument(
        index, type.clone(shape), all.getDictionary(&getContext()),
        NameLoc::get(b.getStringAttr(name)));
    assert(succeeded(inserted) && "a function takes any argument");
    (void)inserted;
    return forward.getArgument(index);
  }

  /// Erases products that nothing reads, and their parameters.
  void eraseUnread(ArrayRef<MatmulOp> products) {
    SmallVector<Value> arguments;
    for (MatmulOp product : products) {
      arguments.push_back(product.getRhs());
      if (product.getBias())
        arguments.push_back(product.getBias());
      product->erase();
    }
    llvm::BitVector unread(forward.getNumArguments());
    for (Value argument : arguments)
      unread.set(cast<BlockArgument>(argument).getArgNumber());
    LogicalResult erased = forward.eraseArguments(unread);
    assert(succeeded(erased) && "nothing reads them");
    (void)erased;
  }
};

} // namespace
} // namespace tmc
