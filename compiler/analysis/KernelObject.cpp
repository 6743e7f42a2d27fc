#include "compiler/analysis/KernelObject.h"

#include "compiler/analysis/StepProblem.h"
#include "dialects/nn/FusedPlan.h"
#include "dialects/nn/NN.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tmc;

std::string tmc::parameterText(Attribute value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto flag = dyn_cast<BoolAttr>(value))
    os << (flag.getValue() ? "true" : "false");
  else if (auto integer = dyn_cast<IntegerAttr>(value))
    os << integer.getInt();
  else if (auto real = dyn_cast<FloatAttr>(value))
    os << llvm::format("%.17g", real.getValueAsDouble());
  else if (auto type = dyn_cast<TypeAttr>(value))
    os << StringRef(nameOf(runtimeType(type.getValue()))).upper();
  else if (auto word = dyn_cast<StringAttr>(value))
    os << word.getValue();
  else if (auto list = dyn_cast<DenseI64ArrayAttr>(value)) {
    os << "{";
    llvm::interleaveComma(list.asArrayRef(), os);
    os << "}";
  } else {
    llvm_unreachable("a kernel's parameter of a kind that isn't printed");
  }
  return text;
}

/// True for a parameter that doesn't change a kernel's speed.
static bool isIdle(StringRef name) {
  return name == "scratchBytes" || name == "stream" || name == "streams";
}

std::string tmc::objectOf(StringRef symbol,
                          ArrayRef<std::pair<std::string, Attribute>> params) {
  std::string text = symbol.str();
  for (const auto &[name, value] : params) {
    if (isIdle(name))
      continue;
    std::string word = parameterText(value);
    llvm::erase(word, ' ');
    text += " " + name + "=" + word;
  }
  return text;
}

/// The ops of a body with their operands by number: equal for equal bodies.
static std::string textOfBody(Block &body) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) {
    unsigned next = unsigned(numbers.size());
    numbers.try_emplace(value, next);
  };
  for (BlockArgument argument : body.getArguments()) {
    number(argument);
    os << argument.getType() << ";";
  }
  for (Operation &op : body) {
    // The terminator is nn's or mem's.
    if (!op.hasTrait<OpTrait::IsTerminator>())
      os << op.getName();
    for (Value operand : op.getOperands())
      os << " " << numbers.lookup(operand);
    for (NamedAttribute attribute : op.getAttrs())
      if (!isIdle(attribute.getName()))
        os << " " << attribute.getName() << "=" << attribute.getValue();
    for (Value result : op.getResults()) {
      number(result);
      os << ":" << result.getType();
    }
    os << ";";
  }
  return text;
}

std::string tmc::objectOfFused(Block &body) {
  std::string text = "Fused";
  llvm::raw_string_ostream os(text);
  if (std::optional<nn::FusedPlan> plan = nn::planFused(body)) {
    const FusedShape &shape = plan->shape;
    os << " rows=" << shape.rows << " cols=" << shape.cols
       << " wholeRows=" << (shape.wholeRows ? "true" : "false")
       << " columnSums=" << shape.columnSums << " totals=" << shape.totals
       << " finish=" << (shape.finish ? "true" : "false")
       << " kept=" << shape.kept;
  }
  os << " body="
     << llvm::format_hex_no_prefix(llvm::xxh3_64bits(textOfBody(body)), 16);
  return text;
}

/// The results that a run makes, by their places in the kernel's order.
static Wanted wantedOf(KernelOpInterface op, const KernelCall &call) {
  uint64_t places = 0;
  SmallVector<int64_t> outs(call.outs);
  if (outs.empty())
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      outs.push_back(i);
  for (auto [place, out] : llvm::enumerate(outs))
    if (place < 64 && out >= 0 && isWritten(op->getResult(unsigned(out))))
      places |= uint64_t(1) << place;
  return Wanted(places);
}

KernelWork tmc::kernelWork(KernelOpInterface op, const KernelCall &call) {
  auto cost = cast<CostOpInterface>(op.getOperation());
  KernelWork work;
  auto fused = dyn_cast<nn::FusedOp>(op.getOperation());
  work.family = fused ? "Fused" : call.symbol;
  work.products = productTypeOf(call.products.value_or(DType::F32));
  work.hasProducts = call.products.has_value();
  work.flops = call.flops < 0 ? cost.getFlops() : call.flops;
  work.bytes = cost.getBytesMoved();
  if (call.deviceLaunches)
    work.launches = call.deviceLaunches(wantedOf(op, call));
  work.object = fused ? objectOfFused(fused.getBlock())
                      : objectOf(call.symbol, call.params);
  return work;
}
