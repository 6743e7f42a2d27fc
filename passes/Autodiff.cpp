// Autodiff.cpp - -tmc-autodiff: from the forward function to the training step.

#include "passes/Passes.h"

#include "dialects/interfaces/Fault.h"
#include "dialects/nn/Builders.h"
#include "dialects/train/Train.h"
#include "passes/Gradient.h"
#include "passes/LossScale.h"
#include "passes/Optimizers.h"
#include "passes/Pieces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

namespace tmc {
#define GEN_PASS_DEF_AUTODIFF
#include "passes/Passes.h.inc"

namespace {

/// True if rows of `table` are looked up.
bool isGathered(Value table) {
  return llvm::any_of(table.getUses(), [](OpOperand &use) {
    auto lookup = dyn_cast<nn::EmbeddingOp>(use.getOwner());
    return lookup && lookup.getTable() == use.get();
  });
}

/// One trained param of the step under construction.
struct Trained {
  unsigned arg; // In the forward function, and in the step.
  TrainedParam param;
  SmallVector<unsigned> slots; // Arguments of the step.
  Value grad;
};

struct Autodiff : impl::AutodiffBase<Autodiff> {
  using AutodiffBase::AutodiffBase;

  void runOnOperation() override {
    forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward) {
      getOperation().emitError(
          "there is no function @forward to differentiate");
      return signalPassFailure();
    }
    llvm::Expected<std::unique_ptr<OptimizerRule>> made =
        OptimizerRule::create(optimizer.getValue());
    if (!made) {
      emitFault(forward.getLoc(), FailureKind::Usage)
          << llvm::toString(made.takeError());
      return signalPassFailure();
    }
    rule = std::move(*made);
    llvm::Expected<std::optional<LossScale>> scale =
        LossScale::parse(lossScaleSpec.getValue());
    if (!scale) {
      emitFault(forward.getLoc(), FailureKind::Usage)
          << llvm::toString(scale.takeError());
      return signalPassFailure();
    }
    lossScale = *scale;
    lossIndex = train::lossResult(forward);
    if (!lossIndex) {
      emitFault(forward.getLoc(), FailureKind::Input)
          << "no result is marked as the loss";
      return signalPassFailure();
    }
    if (failed(declare()) || failed(fill()))
      return signalPassFailure();
    step.walk([](Operation *op) {
      if (isa<nn::DetachOp, nn::SpreadOp>(op)) {
        op->getResult(0).replaceAllUsesWith(op->getOperand(0));
        op->erase();
      }
    });
    pieces->eraseOthers();
    forward.erase();
  }

private:
  func::FuncOp forward;
  std::optional<Pieces> pieces;
  std::shared_ptr<OptimizerRule> rule; // Passes are copied.
  std::optional<LossScale> lossScale;
  std::optional<unsigned> lossIndex;
  train::StepOp step;
  SmallVector<Trained> trained;
  unsigned lrArg = 0, stepArg = 0;
  SmallVector<unsigned> scaleArgs; // The loss scale's states.
  Value seed;                      // The loss's gradient; null: 1.
  // Results of the step, in the order of their creation.
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;

  NamedAttribute named(StringRef name, Attribute value) {
    return {StringAttr::get(&getContext(), name), value};
  }
  NamedAttribute roleAttr(train::Role role) {
    return named(TrainDialect::kRole,
                 train::RoleAttr::get(&getContext(), role));
  }
  NamedAttribute nameAttr(StringRef name) {
    return named(TrainDialect::kName, StringAttr::get(&getContext(), name));
  }

  /// Adds to the attributes of a tensor beside param `index` that it holds the
  /// same tensors of the model.
  void addParts(SmallVector<NamedAttribute> &attrs, unsigned index,
                RankedTensorType type, const Twine &suffix) {
    auto parts =
        forward.getArgAttrOfType<ArrayAttr>(index, TrainDialect::kParts);
    if (parts)
      attrs.push_back(
          named(TrainDialect::kParts,
                train::partsBeside(
                    parts,
                    cast<RankedTensorType>(forward.getArgumentTypes()[index])
                        .getDimSize(0),
                    type.getDimSize(0), suffix)));
  }

  /// Adds to the attributes of a state of param `index` which piece of it each
  /// rank has: the one that belongs to its piece of the param.
  void addCut(SmallVector<NamedAttribute> &attrs, unsigned index,
              const TrainedParam &param, unsigned number) {
    auto cut =
        forward.getArgAttrOfType<train::CutAttr>(index, TrainDialect::kCut);
    if (!cut)
      return;
    const TrainedParam whole{param.type.clone(cut.getWhole().getShape()),
                             param.isGathered};
    const RankedTensorType all = rule->slotsOf(whole)[number].type,
                           own = rule->slotsOf(param)[number].type;
    if (own.getShape() == param.type.getShape())
      cut =
          train::CutAttr::get(&getContext(), all, cut.getDim(), cut.getRuns());
    else // An element for several, which lie side by side.
      cut = train::CutAttr::get(&getContext(), all, 0,
                                param.type.getNumElements() /
                                    train::chunkOf(cut, param.type));
    attrs.push_back(named(TrainDialect::kCut, cut));
  }

  /// An error if the update of param `index`, of which each rank has a piece,
  /// isn't that of a piece.
  LogicalResult checkCut(unsigned index, const TrainedParam &param) {
    auto cut =
        forward.getArgAttrOfType<train::CutAttr>(index, TrainDialect::kCut);
    if (!cut)
      return success();
    const TrainedParam whole{param.type.clone(cut.getWhole().getShape()),
                             param.isGathered};
    const int64_t chunk = train::chunkOf(cut, param.type);
    if (rule->mayCut(whole, param, chunk))
      return success();
    return emitFault(forward.getArgument(index).getLoc(),
                     FailureKind::Unsupported)
           << "is cut over ranks, " << chunk
           << " elements side by side, and the optimizer can't update such "
              "pieces";
  }

  void addResult(Value value, ArrayRef<NamedAttribute> attrs) {
    results.push_back(value);
    resultAttrs.push_back(DictionaryAttr::get(&getContext(), attrs));
  }

  void addUpdate(Value value, unsigned arg) {
    Builder b(&getContext());
    addResult(value, {nameAttr(train::argName(step, arg)),
                      named(TrainDialect::kUpdates, b.getI64IntegerAttr(arg))});
  }

  /// Builds the empty step, whose arguments are the forward function's (with
  /// the whole batch), the optimizer's states, the learning rate and the step's
  /// number.
  LogicalResult declare() {
    MLIRContext *c = &getContext();
    Builder b(c);
    pieces.emplace(getOperation(), forward);
    unsigned kept = forward.getNumArguments() - pieces->factCount();

    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attrs;
    SmallVector<Location> locs;
    auto addArg = [&](Type type, DictionaryAttr attr, Location loc) {
      types.push_back(type);
      attrs.push_back(attr);
      locs.push_back(loc);
      return unsigned(types.size() - 1);
    };
    for (unsigned i = 0; i < kept; ++i) {
      Type type = forward.getArgumentTypes()[i];
      if (train::roleOf(forward, i) == train::Role::Batch)
        type = pieces->batchType(i);
      if (isTrained(i))
        type = rule->storedType(cast<RankedTensorType>(type));
      addArg(type, forward.getArgAttrDict(i), forward.getArgument(i).getLoc());
    }
    for (unsigned i = 0; i < kept; ++i) {
      if (!isTrained(i))
        continue;
      Trained entry{i,
                    {cast<RankedTensorType>(types[i]),
                     isGathered(forward.getArgument(i))},
                    {},
                    {}};
      if (failed(checkCut(i, entry.param)))
        return failure();
      StringRef name = train::argName(forward, i);
      for (const OptimizerSlot &slot : rule->slotsOf(entry.param)) {
        std::string slotName = (name + "." + slot.suffix).str();
        SmallVector<NamedAttribute> slotAttrs = {
            roleAttr(train::Role::State), nameAttr(slotName),
            named(TrainDialect::kSlot, b.getStringAttr(name)),
            named(TrainDialect::kInit, b.getStringAttr("zeros"))};
        addParts(slotAttrs, i, slot.type, "." + slot.suffix);
        addCut(slotAttrs, i, entry.param, entry.slots.size());
        entry.slots.push_back(addArg(slot.type, b.getDictionaryAttr(slotAttrs),
                                     NameLoc::get(b.getStringAttr(slotName))));
      }
      trained.push_back(std::move(entry));
    }
    if (trained.empty())
      return emitFault(forward.getLoc(), FailureKind::Input)
             << "there is no parameter to train";
    llvm::StringSet<> taken; // The model may have an input `step`.
    for (DictionaryAttr attr : attrs)
      taken.insert(attr.getAs<StringAttr>(TrainDialect::kName).getValue());
    auto scalar = [&](StringRef feed, Type element) {
      std::string name = feed.str();
      while (taken.contains(name))
        name = "optimizer." + name;
      return addArg(RankedTensorType::get({}, element),
                    b.getDictionaryAttr(
                        {roleAttr(train::Role::Scalar), nameAttr(name),
                         named(TrainDialect::kFeed, b.getStringAttr(feed))}),
                    NameLoc::get(b.getStringAttr(name)));
    };
    lrArg = scalar("lr", b.getF32Type());
    stepArg = scalar("step", b.getI64Type());
    if (lossScale)
      for (const LossScale::State &state : lossScale->states(b))
        scaleArgs.push_back(
            addArg(state.type,
                   b.getDictionaryAttr(
                       {roleAttr(train::Role::State), nameAttr(state.name),
                        named(TrainDialect::kSlot, b.getStringAttr("")),
                        named(TrainDialect::kInit, state.init)}),
                   NameLoc::get(b.getStringAttr(state.name))));

    // A checkpoint holds the parameters and their states, each by its name.
    llvm::StringSet<> saved;
    for (DictionaryAttr attr : attrs) {
      auto role = attr.getAs<train::RoleAttr>(TrainDialect::kRole);
      StringRef name = attr.getAs<StringAttr>(TrainDialect::kName).getValue();
      bool isSaved = role && (role.getValue() == train::Role::Param ||
                              role.getValue() == train::Role::State);
      if (isSaved && !saved.insert(name).second)
        return emitFault(forward.getLoc(), FailureKind::Input)
               << "a checkpoint would have two tensors named '" << name
               << "', one of them a state of the optimizer";
    }

    OpBuilder builder(forward);
    step = train::StepOp::create(
        builder, forward.getLoc(), "step", b.getFunctionType(types, {}),
        b.getArrayAttr(SmallVector<Attribute>(attrs.begin(), attrs.end())),
        ArrayAttr());
    for (StringRef ranks : {TrainDialect::kRanks, TrainDialect::kTensorRanks})
      if (Attribute number = forward->getAttr(ranks))
        step->setAttr(ranks, number);
    step.getBody().emplaceBlock().addArguments(types, locs);
    return success();
  }

  /// Whether argument `i` of the forward function is a param to be trained.
  bool isTrained(unsigned i) {
    return train::roleOf(forward, i) == train::Role::Param &&
           !forward.getArgAttr(i, TrainDialect::kFrozen);
  }

  LogicalResult fill() {
    Block &block = step.getBody().front();
    OpBuilder b = OpBuilder::atBlockEnd(&block);
    SmallVector<Value> args(block.getArguments().begin(),
                            block.getArguments().end());
    // The model's type of each param that is stored in another type.
    SmallVector<Value> reads = args;
    for (Trained &entry : trained)
      reads[entry.arg] = nn::convertTo(
          b, args[entry.arg].getLoc(), args[entry.arg],
          getElementTypeOrSelf(forward.getArgumentTypes()[entry.arg]));
    SmallVector<Value> squares(trained.size());
    Value loss;
    if (lossScale)
      seed = args[scaleArgs[0]];

    bool isFinal = rule->clipNorm() == 0 && !lossScale;
    // If no op needs all gradients first, each update directly follows its
    // gradient, which frees the gradient. A loop yields all gradients at once.
    bool early = isFinal && (!pieces->isSplit() || pieces->hasRest());
    auto onGradient = [&](unsigned index, Value grad) {
      trained[index].grad = overRanks(b, grad);
      if (early)
        squares[index] = buildUpdate(b, args, index, {}, args[stepArg]);
    };
    SmallVector<Value> returned;
    if (failed(pieces->isSplit()
                   ? buildPieces(b, reads, returned, onGradient)
                   : buildBody(b, forward, reads, returned, onGradient)))
      return failure();
    for (auto [i, value] : llvm::enumerate(returned))
      if (!value)
        continue;
      else if (std::optional<unsigned> arg = train::updatedArg(forward, i))
        addUpdate(value, *arg);
      else if (i == *lossIndex)
        loss = overRanks(b, value);
      else if (llvm::is_contained(*outputs, train::resultName(forward, i)))
        addResult(value, {nameAttr(train::resultName(forward, i))});

    Value clip, number = args[stepArg];
    if (!isFinal) {
      for (auto [entry, square] : llvm::zip(trained, squares))
        square = train::SquareSumOp::create(b, entry.grad.getLoc(), entry.grad);
      auto norm = buildNorm(b, squares);
      clip = norm.getClip();
      addResult(norm.getNorm(), {nameAttr("grad_norm")});
      if (lossScale)
        number = moveScale(b, args, norm.getNorm());
    }
    if (!early)
      for (unsigned i = 0; i < trained.size(); ++i) {
        Value square = buildUpdate(b, args, i, clip, number);
        if (isFinal)
          squares[i] = square;
      }
    if (isFinal)
      addResult(buildNorm(b, squares).getNorm(), {nameAttr("grad_norm")});
    addResult(loss, {nameAttr(train::resultName(forward, *lossIndex)),
                     named(TrainDialect::kLoss, b.getUnitAttr())});
    if (keepGradients)
      for (Trained &entry : trained) {
        SmallVector<NamedAttribute> attrs = {
            nameAttr((train::argName(step, entry.arg) + ".grad").str())};
        addParts(attrs, entry.arg, entry.param.type, ".grad");
        addResult(unscaled(b, entry.grad), attrs);
      }

    train::ReturnOp::create(b, step.getLoc(), results);
    step.setFunctionType(b.getFunctionType(step.getFunctionType().getInputs(),
                                           ValueRange(results).getTypes()));
    step.setResAttrsAttr(b.getArrayAttr(
        SmallVector<Attribute>(resultAttrs.begin(), resultAttrs.end())));
    return success();
  }

  /// The sum of `value`, of this rank's samples, over all ranks.
  Value overRanks(OpBuilder &b, Value value) {
    auto ranks = forward->getAttrOfType<IntegerAttr>(TrainDialect::kRanks);
    return ranks ? nn::SumOverOp::create(b, value.getLoc(), value,
                                         nn::Axis::Data, ranks.getInt())
                 : value;
  }

  /// The squares of params of which each rank has a piece are those of all
  /// ranks' pieces. Other params are counted once.
  SmallVector<Value> squaresOfAll(OpBuilder &b, ArrayRef<Value> squares) {
    SmallVector<Value> all(squares), pieces;
    SmallVector<unsigned> numbers;
    for (auto [i, entry] : llvm::enumerate(trained))
      if (forward.getArgAttr(entry.arg, TrainDialect::kCut)) {
        numbers.push_back(i);
        pieces.push_back(nn::reshapeTo(b, step.getLoc(), squares[i], {1}));
      }
    if (pieces.empty())
      return all;
    auto ranks =
        forward->getAttrOfType<IntegerAttr>(TrainDialect::kTensorRanks);
    Location loc = NameLoc::get(b.getStringAttr("squares of pieces"));
    Value sums = nn::SumOverOp::create(
        b, loc, nn::ConcatOp::create(b, loc, pieces, /*dim=*/0),
        nn::Axis::Tensor, ranks.getInt());
    for (auto [at, number] : llvm::enumerate(numbers)) {
      Value its = nn::SliceOp::create(b, loc, pieces[at].getType(), sums,
                                      ArrayRef<int64_t>{int64_t(at)},
                                      ArrayRef<int64_t>{1});
      all[number] = nn::reshapeTo(b, loc, its, {});
    }
    return all;
  }

  train::GradNormOp buildNorm(OpBuilder &b, ArrayRef<Value> squares) {
    return train::GradNormOp::create(b, step.getLoc(), squaresOfAll(b, squares),
                                     seed, b.getF64FloatAttr(rule->clipNorm()));
  }

  /// Updates the loss's scale; returns the number of this update, or 0.
  Value moveScale(OpBuilder &b, ArrayRef<Value> args, Value norm) {
    SmallVector<Value> states;
    for (unsigned arg : scaleArgs)
      states.push_back(args[arg]);
    LossScale::Step moved = lossScale->build(b, step.getLoc(), norm, states);
    for (auto [arg, value] : llvm::zip(scaleArgs, moved.moved))
      addUpdate(value, arg);
    return moved.number;
  }

  /// The gradient of the loss, given one of the scaled loss.
  Value unscaled(OpBuilder &b, Value grad) {
    if (!lossScale)
      return grad;
    Value scale = nn::convertTo(b, grad.getLoc(), seed,
                                getElementTypeOrSelf(grad.getType()));
    return nn::div(
        b, grad.getLoc(), grad,
        nn::broadcastLeading(b, grad.getLoc(), scale, grad.getType()));
  }

  /// Updates trained param `index` from its gradient; returns the gradient's
  /// sum of squares.
  Value buildUpdate(OpBuilder &b, ArrayRef<Value> args, unsigned index,
                    Value clip, Value number) {
    Trained &entry = trained[index];
    UpdateInputs in{train::argName(step, entry.arg),
                    entry.param,
                    args[entry.arg],
                    entry.grad,
                    {},
                    args[lrArg],
                    number,
                    clip,
                    int64_t(index)};
    for (unsigned slot : entry.slots)
      in.slots.push_back(args[slot]);
    Location loc = NameLoc::get(b.getStringAttr(in.name));
    UpdateOutputs out = rule->build(b, loc, in);
    addUpdate(out.param, entry.arg);
    for (auto [slot, value] : llvm::zip(entry.slots, out.slots))
      addUpdate(value, slot);
    return out.square;
  }

  /// Clones `function` onto `inputs`, and differentiates it. Appends the
  /// function's results to `returned`.
  LogicalResult
  buildBody(OpBuilder &b, func::FuncOp function, ArrayRef<Value> inputs,
            SmallVector<Value> &returned,
            llvm::function_ref<void(unsigned, Value)> onGradient) {
    IRMapping map;
    for (auto [argument, input] : llvm::zip(function.getArguments(), inputs))
      map.map(argument, input);
    SmallVector<Operation *> clones;
    Block &body = function.getBody().front();
    for (Operation &op : body.without_terminator())
      clones.push_back(b.clone(op, map));
    for (Value value : body.getTerminator()->getOperands())
      returned.push_back(map.lookupOrDefault(value));

    SmallVector<Value> roots;
    DenseMap<Value, unsigned> indexOf;
    for (auto [i, entry] : llvm::enumerate(trained)) {
      roots.push_back(inputs[entry.arg]);
      indexOf[inputs[entry.arg]] = i;
    }
    SmallVector<bool> seen(trained.size(), false);
    Gradient gradient(b, clones, roots);
    if (failed(gradient.run(returned[*lossIndex], seed, lossScaleSpec != "none",
                            [&](Value root, Value grad) {
                              unsigned i = indexOf.at(root);
                              seen[i] = true;
                              onGradient(i, grad ? grad : zeros(b, root));
                            })))
      return failure();
    for (auto [i, root] : llvm::enumerate(roots))
      if (!seen[i]) // Unused by the forward function.
        onGradient(i, zeros(b, root));
    return success();
  }

  LogicalResult buildPieces(OpBuilder &b, ArrayRef<Value> args,
                            SmallVector<Value> &returned,
                            Pieces::OnGradient onGradient) {
    SmallVector<unsigned> params;
    for (Trained &entry : trained)
      params.push_back(entry.arg);
    auto body = [&](OpBuilder &at, func::FuncOp function,
                    ArrayRef<Value> inputs, SmallVector<Value> &results,
                    Pieces::OnGradient onPart) {
      return buildBody(at, function, inputs, results, onPart);
    };
    return pieces->build(b,
                         {step.getLoc(), args, params, *lossIndex,
                          ArrayRef<std::string>(*outputs), body, onGradient},
                         returned);
  }

  Value zeros(OpBuilder &b, Value like) {
    return nn::splat(b, like.getLoc(), like.getType(), 0);
  }
};

} // namespace
} // namespace tmc
