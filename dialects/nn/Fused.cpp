// Fused.cpp - nn.fused: a region that becomes one kernel.

#include "dialects/nn/Builders.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"

#include "runtime/kernels/Generated.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

YieldOp FusedOp::getYield() {
  return cast<YieldOp>(getBlock().getTerminator());
}

ParseResult FusedOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  llvm::SMLoc at = parser.getCurrentLocation();
  auto parsePair = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parsePair) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != operands.size())
    return parser.emitError(at, "has ")
           << operands.size() << " operands and " << type.getNumInputs()
           << " types for them";
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    argument.type = input;
  result.addTypes(type.getResults());
  return failure(
      parser.resolveOperands(operands, type.getInputs(), at, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments));
}

void FusedOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBlock().getArguments(), getInputs()),
                        printer, [&](auto pair) {
                          printer << std::get<0>(pair) << " = "
                                  << std::get<1>(pair);
                        });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << " : ";
  printer.printFunctionalType(*this);
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult FusedOp::verify() {
  if (TypeRange(getBlock().getArgumentTypes()) !=
      TypeRange(getInputs().getTypes())) // C1
    return emitOpError("hands operands of types ")
           << getInputs().getTypes() << " to a region that takes "
           << getBlock().getArgumentTypes();
  if (TypeRange(getYield().getOperandTypes()) != getResultTypes()) // C1
    return emitOpError("yields ")
           << getYield().getOperandTypes() << " as results of types "
           << getResultTypes();
  return success();
}

int64_t FusedOp::getFlops() {
  int64_t flops = 0;
  for (Operation &op : getBlock().without_terminator())
    if (auto cost = dyn_cast<CostOpInterface>(op))
      flops += cost.getFlops();
  return flops;
}

int64_t FusedOp::getBytesMoved() {
  int64_t bytes = sumOfTensorBytes(*this);
  // An operand that is read in slices may be read in part.
  for (BlockArgument argument : getBlock().getArguments()) {
    if (argument.use_empty() ||
        !llvm::all_of(argument.getUsers(),
                      [](Operation *user) { return isa<SliceOp>(user); }))
      continue;
    int64_t slices = 0;
    for (Operation *slice : argument.getUsers())
      slices += sizeInBytes(slice->getResult(0).getType());
    bytes -= std::max<int64_t>(sizeInBytes(argument.getType()) - slices, 0);
  }
  return bytes;
}

SmallVector<Value> FusedOp::buildVjp(OpBuilder &b, ArrayRef<Value> grads,
                                     ArrayRef<bool> wanted) {
  // The chain rule inside the group: its ops are cloned at the insertion point
  // and differentiated.
  IRMapping map;
  map.map(getBlock().getArguments(), getInputs());
  SmallVector<Operation *> clones;
  for (Operation &op : getBlock().without_terminator())
    clones.push_back(b.clone(op, map));
  DenseMap<Value, Value> gradOf;
  auto accumulate = [&](Value value, Value grad) {
    if (!grad)
      return;
    Value &sum = gradOf[value];
    sum = sum ? add(b, getLoc(), sum, grad) : grad;
  };
  for (auto [value, grad] : llvm::zip(getYield().getValues(), grads))
    accumulate(map.lookupOrDefault(value), grad);
  for (Operation *op : llvm::reverse(clones)) {
    SmallVector<Value> resultGrads;
    for (Value result : op->getResults())
      resultGrads.push_back(gradOf.lookup(result));
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable ||
        llvm::none_of(resultGrads, [](Value v) { return bool(v); }))
      continue;
    SmallVector<bool> all(op->getNumOperands(), true);
    SmallVector<Value> operandGrads =
        differentiable.buildVjp(b, resultGrads, all);
    for (auto [operand, grad] : llvm::zip(op->getOperands(), operandGrads))
      accumulate(operand, grad);
  }
  SmallVector<Value> result;
  for (Value input : getInputs())
    result.push_back(gradOf.lookup(input));
  return result;
}

/// Its ops have the whole's types. They are cut before they are put together.
OpCuts FusedOp::getCuts() { return {*this, "its ops are fused by now"}; }

SmallVector<std::pair<unsigned, unsigned>> FusedOp::getOverwrites() {
  if (auto plan = planFused(getBlock()))
    return overwritesOf(getBlock(), *plan);
  return {};
}

KernelCall FusedOp::getKernel(ArrayRef<MemRefType> inputs, Backend backend) {
  // Outlining the region sets the symbol of the generated kernel.
  std::optional<FusedPlan> plan = planFused(getBlock());
  KernelCall call(plan.has_value());
  // Kernels that differ only by their streams share their code.
  SmallVector<int64_t> streams;
  for (auto random : getBlock().getOps<RandomOp>())
    streams.push_back(random.getStream());
  if (!streams.empty())
    call.params.emplace_back(
        TMC_FIELD_NAME(FusedParams, streams),
        kernelParam(getContext(), ArrayRef<int64_t>(streams)));
  if (plan)
    call.scratchBytes = tilingOf(plan->shape, backend).scratchBytes();
  if (plan && plan->shape.finish && backend == Backend::Cuda)
    call.deviceLaunches = [](Wanted) { return 2; };
  return call;
}
