#include "passes/LossScale.h"

#include "compiler/analysis/StepProblem.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/train/Train.h"
#include "passes/Spec.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace tmc {

llvm::Expected<std::optional<LossScale>> LossScale::parse(StringRef text) {
  if (text.empty())
    return std::nullopt;
  llvm::Expected<Spec> spec = Spec::parse("loss scale", text);
  if (!spec)
    return spec.takeError();
  LossScale scale;
  double interval = 0;
  if (spec->name == "dynamic") {
    scale.start = spec->number("start", scale.start);
    scale.growth = spec->number("growth", scale.growth);
    scale.backoff = spec->number("backoff", scale.backoff);
    interval = spec->number("interval", double(scale.interval));
    if (!(interval >= 1 && interval <= 1e9) || interval != std::floor(interval))
      return spec->error("interval is a number of steps, 1 at least");
  } else if (spec->name != "none" &&
             StringRef(spec->name).getAsDouble(scale.start)) {
    return spec->error("'" + text +
                       "' is none of auto, none, dynamic and a number");
  }
  if (llvm::Error error = spec->finish())
    return error;
  if (spec->name == "none")
    return std::nullopt;
  scale.interval = int64_t(interval);
  // A float, and so is its inverse.
  if (!(scale.start >= 0x1p-126 && scale.start <= 0x1p126))
    return spec->error("a scale is a positive number");
  if (!(scale.growth >= 1 && std::isfinite(scale.growth)) ||
      !(scale.backoff > 0 && scale.backoff <= 1))
    return spec->error("growth is 1 at least, backoff between 0 and 1");
  return scale;
}

std::array<LossScale::State, 3> LossScale::states(Builder &b) const {
  auto real = RankedTensorType::get({}, b.getF32Type());
  auto count = RankedTensorType::get({}, b.getI64Type());
  return {State{"loss_scale", real, b.getF32FloatAttr(float(start))},
          State{"loss_scale.clean_steps", count, b.getI64IntegerAttr(0)},
          State{"optimizer.step", count, b.getI64IntegerAttr(0)}};
}

LossScale::Step LossScale::build(OpBuilder &b, Location loc, Value norm,
                                 ArrayRef<Value> states) const {
  auto op = train::LossScaleOp::create(
      b, loc, norm, states[0], states[1], states[2], b.getF64FloatAttr(growth),
      b.getF64FloatAttr(backoff), b.getI64IntegerAttr(interval));
  return {op.getStep(), {op.getNewScale(), op.getNewClean(), op.getNewCount()}};
}

LogicalResult emitUnscaled(ArrayRef<Operation *> ops) {
  llvm::SetVector<StringRef> names;
  std::vector<std::string> all;
  for (Operation *op : ops)
    all.push_back(nameOf(op));
  for (const std::string &name : all)
    names.insert(name);
  constexpr size_t most = 8;
  InFlightDiagnostic diag = emitFault(ops[0]->getLoc(), FailureKind::Usage);
  diag << "fp16 gradients without a loss scale: small ones would be zeros, in ";
  llvm::interleaveComma(names.getArrayRef().take_front(most), diag);
  if (names.size() > most)
    diag << " and " << names.size() - most << " more";
  diag.attachNote() << "--loss-scale dynamic finds a scale; bf16 needs none";
  return failure();
}

} // namespace tmc
