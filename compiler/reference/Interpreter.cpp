#include "compiler/reference/Interpreter.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace tmc::reference;

namespace tmc::reference {
/// The values of a running block, and those of the blocks around it.
struct Scope {
  const Scope *parent = nullptr;
  llvm::DenseMap<Value, Tensor> values;

  /// Null where `value` isn't defined (yet).
  const Tensor *find(Value value) const {
    for (const Scope *scope = this; scope; scope = scope->parent)
      if (auto it = scope->values.find(value); it != scope->values.end())
        return &it->second;
    return nullptr;
  }
};

/// Runs blocks; holds the state that all of them share.
class Interpreter {
public:
  explicit Interpreter(const InterpreterOptions &options) : options(options) {}

  FailureOr<SmallVector<Tensor>>
  run(Operation *op, ArrayRef<const Tensor *> inputs, const Scope *scope);
  FailureOr<SmallVector<Tensor>>
  run(Block &block, SmallVector<Tensor> arguments, const Scope *parent);
  bool isRounded(Element element) const {
    return options.rounding == Rounding::ToType ||
           (options.rounding == Rounding::Narrow && isNarrow(element));
  }

  Meetings *meetings() const { return options.meetings; }

private:
  const InterpreterOptions &options;
};
} // namespace tmc::reference

OpCall::OpCall(Interpreter &interpreter, const Scope *scope, Operation *op,
               ArrayRef<const Tensor *> inputs)
    : interpreter(interpreter), scope(scope), op(op), inputs(inputs) {
  for (Type type : op->getResultTypes())
    outputs.emplace_back(cast<ShapedType>(type));
}

const Tensor &OpCall::in(Value operand) const {
  for (OpOperand &candidate : op->getOpOperands())
    if (candidate.get() == operand)
      return *inputs[candidate.getOperandNumber()];
  llvm::report_fatal_error("asked for a value that isn't an operand");
}

FailureOr<SmallVector<Tensor>> OpCall::run(Block &block,
                                           SmallVector<Tensor> arguments) {
  return interpreter.run(block, std::move(arguments), scope);
}

const OpTable::Function *OpTable::find(StringRef opName) const {
  auto it = functions.find(opName);
  return it == functions.end() ? nullptr : &it->second;
}

const OpTable &OpTable::all() {
  static const OpTable table = [] {
    OpTable table;
    addArith(table);
    addMath(table);
    addProducts(table);
    addQuantize(table);
    addPools(table);
    addAttention(table);
    addNorms(table);
    addLookups(table);
    addLosses(table);
    addRandom(table);
    addRanks(table);
    addRotary(table);
    addShapes(table);
    addFrozen(table);
    addFused(table);
    addTrain(table);
    return table;
  }();
  return table;
}

Tensor OpCall::factor(Value operand, Type type) const {
  Tensor value = in(operand);
  if (value.element == Element::F32 && !type.isF32() &&
      isRounded(Element::BF16))
    for (double &x : value.floats)
      x = roundTo(type, x);
  return value;
}

bool OpCall::isRounded(Element element) const {
  return interpreter.isRounded(element);
}

FailureOr<std::vector<Tensor>> OpCall::fromRanks(tmc::Axis axis, int64_t ranks,
                                                 const Tensor &mine) {
  Meetings *meetings = interpreter.meetings();
  if (!meetings)
    return std::vector<Tensor>(ranks, mine);
  std::vector<Tensor> all = meetings->exchange(axis, ranks, mine);
  if (all.empty())
    return op->emitOpError("doesn't meet ")
           << ranks << " ranks along " << nameOf(axis);
  return all;
}

int64_t OpCall::placeOn(tmc::Axis axis) const {
  Meetings *meetings = interpreter.meetings();
  return meetings ? meetings->place(axis) : 0;
}

FailureOr<SmallVector<Tensor>> Interpreter::run(Operation *op,
                                                ArrayRef<const Tensor *> inputs,
                                                const Scope *scope) {
  const OpTable::Function *function =
      OpTable::all().find(op->getName().getStringRef());
  if (!function)
    return op->emitOpError("has no entry in the reference interpreter");
  for (Type type : op->getResultTypes())
    if (!isa<RankedTensorType>(type))
      return op->emitOpError("has a result that isn't a tensor, ") << type;

  OpCall call(*this, scope, op, inputs);
  if (failed((*function)(call)))
    return failure();
  for (Tensor &output : call.outputs)
    if (isRounded(output.element))
      output.roundToElement();
  if (options.observe)
    options.observe(op, call.outputs);
  return std::move(call.outputs);
}

/// The last op of `block` that uses `value`, itself or in a region of it; null
/// if there is none.
static Operation *lastUser(Value value, Block &block) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *here = block.findAncestorOpInBlock(*user);
    if (!last || last->isBeforeInBlock(here))
      last = here;
  }
  return last;
}

FailureOr<SmallVector<Tensor>> Interpreter::run(Block &block,
                                                SmallVector<Tensor> arguments,
                                                const Scope *parent) {
  Scope scope;
  scope.parent = parent;
  llvm::DenseMap<Operation *, SmallVector<Value>> diesAfter;
  auto define = [&](Value value, Tensor tensor) {
    Operation *last = lastUser(value, block);
    if (!last)
      return;
    diesAfter[last].push_back(value);
    scope.values[value] = std::move(tensor);
  };
  for (auto [argument, tensor] :
       llvm::zip_equal(block.getArguments(), arguments))
    define(argument, std::move(tensor));

  for (Operation &op : block.without_terminator()) {
    SmallVector<const Tensor *> inputs;
    for (Value operand : op.getOperands()) {
      const Tensor *input = scope.find(operand);
      if (!input)
        return op.emitOpError("uses a value that the interpreter can't see");
      inputs.push_back(input);
    }
    FailureOr<SmallVector<Tensor>> results = run(&op, inputs, &scope);
    if (failed(results))
      return failure();
    for (Value value : diesAfter.lookup(&op))
      scope.values.erase(value);
    for (auto [result, tensor] : llvm::zip_equal(op.getResults(), *results))
      define(result, std::move(tensor));
  }

  // The results of a step are as large as its parameters: a value of this block
  // is moved, not copied, if it is a result only once.
  SmallVector<Tensor> results;
  OperandRange yielded = block.getTerminator()->getOperands();
  llvm::DenseMap<Value, int64_t> times;
  for (Value value : yielded)
    ++times[value];
  for (Value value : yielded)
    if (auto it = scope.values.find(value);
        it != scope.values.end() && times[value] == 1)
      results.push_back(std::move(it->second));
    else
      results.push_back(*scope.find(value));
  return results;
}

FailureOr<SmallVector<Tensor>>
tmc::reference::interpret(Operation *function, SmallVector<Tensor> inputs,
                          const InterpreterOptions &options) {
  if (function->getNumRegions() != 1 ||
      !llvm::hasSingleElement(function->getRegion(0)))
    return function->emitError("the interpreter wants a function of one block");
  Block &block = function->getRegion(0).front();
  if (inputs.size() != block.getNumArguments())
    return function->emitError("takes ")
           << block.getNumArguments() << " arguments, but is given "
           << inputs.size();
  for (auto [argument, tensor] :
       llvm::zip_equal(block.getArguments(), inputs)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getShape() != ArrayRef<int64_t>(tensor.shape) ||
        elementOf(type.getElementType()) != tensor.element)
      return function->emitError("argument ")
             << argument.getArgNumber() << " is a " << argument.getType()
             << ", but is given another type";
  }
  Interpreter interpreter(options);
  for (Tensor &input : inputs)
    if (options.roundsInputs && interpreter.isRounded(input.element))
      input.roundToElement();
  return interpreter.run(block, std::move(inputs), nullptr);
}

FailureOr<SmallVector<Tensor>>
tmc::reference::interpretOp(Operation *op, ArrayRef<const Tensor *> inputs,
                            const InterpreterOptions &options) {
  return Interpreter(options).run(op, inputs, nullptr);
}
