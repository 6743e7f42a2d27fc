// Logarithm.cpp - logarithms and differences, and functions that exporters
// decompose into them, although the function has a wider range or more digits.
//
//   logsigmoid(x)    Log(Sigmoid(x))           -inf below -104, no gradient
//   logaddexp(x, y)  Log(Add(Exp(x), Exp(y)))  inf above 88
//   log1p(x)         Log(Add(x, 1))            0 below 6e-8
//   expm1(x)         Sub(Exp(x), 1)            the same
//
// The shape of the graph determines the function. The exporter's note, if there
// is one, shows whether the user wrote the parts; such parts stay unchanged.

#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/TorchCall.h"

#include "onnx/onnx_pb.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// True if the node's note is one of `calls`; `otherwise` without a note.
static bool isCallOf(Node &n, std::initializer_list<const char *> calls,
                     bool otherwise) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  return call ? llvm::any_of(calls,
                             [&](const char *c) { return call->calls(c); })
              : otherwise;
}

/// The node that makes input `i` of `node`, if it is an `op`.
static const onnx::NodeProto *makerOf(Node &n, const onnx::NodeProto &node,
                                      int i, StringRef op) {
  if (i >= node.input_size())
    return nullptr;
  const onnx::NodeProto *maker = n.reader.makerOf(node.input(i));
  return maker && maker->domain().empty() && maker->op_type() == op ? maker
                                                                    : nullptr;
}

/// True if all elements of the constant `v` are this number.
static bool isNumber(Node &n, const Val &v, double number) {
  if (!n.foldable(v))
    return false;
  FailureOr<Array> array = n.arrayOf(v);
  return succeeded(array) && array->size() > 0 && array->distinct() == 1 &&
         array->floats()[0] == number;
}

/// The exponents of the two powers of `base` that `sum` adds.
static std::optional<std::pair<Val, Val>>
exponentsOf(Node &n, const onnx::NodeProto &sum, double base) {
  SmallVector<Val> exponents;
  for (int i = 0; i < 2; ++i) {
    const bool isNatural = base == M_E;
    const auto *power = makerOf(n, sum, i, isNatural ? "Exp" : "Pow");
    if (!power ||
        (!isNatural && !isNumber(n, n.importer.lookup(power->input(0)), base)))
      return std::nullopt;
    exponents.push_back(n.importer.lookup(power->input(isNatural ? 0 : 1)));
  }
  return std::pair(exponents[0], exponents[1]);
}

static LogicalResult importLog(Node &n) {
  const Val x = n.input(0);
  if (const auto *inner = makerOf(n, n.proto, 0, "Sigmoid");
      inner && isCallOf(n, {"aten.log_sigmoid"}, true))
    return n.set(logSigmoid(n, n.importer.lookup(inner->input(0))));
  const auto *sum = makerOf(n, n.proto, 0, "Add");
  if (!sum || !isFloat(x.type))
    return n.set(logarithm(n, x));
  if (isCallOf(n, {"aten.logaddexp"}, true))
    if (auto both = exponentsOf(n, *sum, M_E))
      return n.set(logAddExp(n, both->first, both->second));
  if (isCallOf(n, {"aten.logaddexp2"}, false))
    if (auto both = exponentsOf(n, *sum, 2)) {
      const Val unit(Array::splat(x.type, {}, M_LN2));
      ASSIGN_OR_FAIL(Val a, multiply(n, {both->first, unit}));
      ASSIGN_OR_FAIL(Val b, multiply(n, {both->second, unit}));
      return n.set(logAddExp(n, a, b));
    }
  if (isCallOf(n, {"aten.log1p", "aten.special_log1p"}, false))
    for (int i = 0; i < 2; ++i)
      if (isNumber(n, n.importer.lookup(sum->input(i)), 1))
        return n.set(log1p(n, n.importer.lookup(sum->input(1 - i))));
  return n.set(logarithm(n, x));
}
static Register logOp("Log", importLog);

static LogicalResult importSub(Node &n) {
  const auto *power = makerOf(n, n.proto, 0, "Exp");
  if (power && isCallOf(n, {"aten.expm1", "aten.special_expm1"}, false) &&
      isNumber(n, n.input(1), 1))
    return n.set(exponentialMinusOne(n, n.importer.lookup(power->input(0))));
  return n.set(subtract(n, n.inputs()));
}
static Register subOp("Sub", importSub);
