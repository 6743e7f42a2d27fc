// Training.cpp - ai.onnx.preview.training: optimizer steps as operators, and
// gradients of a part of the graph.

#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/onnx/Importer.h"

#include "dialects/interfaces/Interfaces.h"

#include "onnx/onnx_pb.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

constexpr const char *kDomain = "ai.onnx.preview.training";

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

namespace {
/// The inputs are the rate, the number of steps done, and, for n weights, all
/// the weights, all their gradients, all the states of one kind, ...
class Optimizer {
public:
  Optimizer(Node &n, int states) : n(n), kinds(2 + states) {}

  LogicalResult check() {
    if (n.numInputs() < 2 + kinds || (n.numInputs() - 2) % kinds)
      return n.error("has " + Twine(n.numInputs()) + " inputs");
    count = (n.numInputs() - 2) / kinds;
    for (int i = 0; i < n.numInputs(); ++i)
      if (i != 1 && !isFloat(n.input(i).type))
        return n.unsupported("elements of type " + nameOf(n.input(i).type));
    return success();
  }
  int weights() const { return count; }
  Val weight(int i) const { return n.input(2 + i); }
  Val gradient(int i) const { return n.input(2 + count + i); }
  Val state(int kind, int i) const {
    return n.input(2 + (2 + kind) * count + i);
  }
  LogicalResult set(int kind, int i, FailureOr<Val> v) {
    return failed(v) ? mlir::failure() : n.set(kind * count + i, *v);
  }

  /// The gradient plus the gradient of norm_coefficient / 2 times the weight's
  /// square.
  FailureOr<Val> regularized(int i) {
    ASSIGN_OR_FAIL(
        Val part,
        multiply(n, {weight(i), number(n.floatAttr("norm_coefficient", 0))}));
    return add(n, {part, gradient(i)});
  }
  Val number(double value) const {
    return Val(Array::splat(weight(0).type, {}, value));
  }
  /// a x + b y.
  FailureOr<Val> mix(double a, const Val &x, double b, const Val &y) {
    ASSIGN_OR_FAIL(Val first, multiply(n, {x, number(a)}));
    ASSIGN_OR_FAIL(Val second, multiply(n, {y, number(b)}));
    return add(n, {first, second});
  }
  /// The number of earlier steps; `isLater` is true if there were any.
  FailureOr<Val> steps() { return castTo(n, n.input(1), weight(0).type); }
  FailureOr<Val> isLater() {
    ASSIGN_OR_FAIL(Val t, steps());
    return less(n, {number(0), t});
  }

private:
  Node &n;
  int kinds, count = 0;
};
} // namespace

static LogicalResult importAdagrad(Node &n) {
  Optimizer o(n, 1);
  if (failed(o.check()))
    return mlir::failure();
  ASSIGN_OR_FAIL(Val t, o.steps());
  ASSIGN_OR_FAIL(Val decay,
                 multiply(n, {t, o.number(n.floatAttr("decay_factor", 0))}));
  ASSIGN_OR_FAIL(Val divisor, add(n, {decay, o.number(1)}));
  ASSIGN_OR_FAIL(Val rate, divide(n, {n.input(0), divisor}));
  for (int i = 0; i < o.weights(); ++i) {
    ASSIGN_OR_FAIL(Val g, o.regularized(i));
    ASSIGN_OR_FAIL(Val square, multiply(n, {g, g}));
    ASSIGN_OR_FAIL(Val sum, add(n, {o.state(0, i), square}));
    ASSIGN_OR_FAIL(Val root, squareRoot(n, sum));
    ASSIGN_OR_FAIL(Val scale,
                   add(n, {root, o.number(n.floatAttr("epsilon", 1e-6))}));
    ASSIGN_OR_FAIL(Val step, multiply(n, {rate, g}));
    ASSIGN_OR_FAIL(step, divide(n, {step, scale}));
    if (failed(o.set(0, i, subtract(n, {o.weight(i), step}))) ||
        failed(o.set(1, i, sum)))
      return mlir::failure();
  }
  return success();
}
static Register adagrad(kDomain, "Adagrad", importAdagrad);

/// sqrt(1 - beta^t) / (1 - alpha^t), or 1 in the first step.
static FailureOr<Val> biasCorrection(Node &n, Optimizer &o, double alpha,
                                     double beta) {
  ASSIGN_OR_FAIL(Val t, o.steps());
  ASSIGN_OR_FAIL(Val isLater, o.isLater());
  auto left = [&](double base) -> FailureOr<Val> {
    ASSIGN_OR_FAIL(Val shrunk, power(n, {o.number(base), t}));
    ASSIGN_OR_FAIL(Val rest, subtract(n, {o.number(1), shrunk}));
    return where(n, isLater, rest, o.number(1));
  };
  ASSIGN_OR_FAIL(Val second, left(beta));
  ASSIGN_OR_FAIL(Val first, left(alpha));
  ASSIGN_OR_FAIL(Val root, squareRoot(n, second));
  return divide(n, {root, first});
}

static LogicalResult importAdam(Node &n) {
  Optimizer o(n, 2);
  if (failed(o.check()))
    return mlir::failure();
  double alpha = n.floatAttr("alpha", 0.9), beta = n.floatAttr("beta", 0.999);
  ASSIGN_OR_FAIL(Val correction, biasCorrection(n, o, alpha, beta));
  ASSIGN_OR_FAIL(Val rate, multiply(n, {n.input(0), correction}));
  double kept = 1 - n.floatAttr("norm_coefficient_post", 0);
  for (int i = 0; i < o.weights(); ++i) {
    ASSIGN_OR_FAIL(Val g, o.regularized(i));
    ASSIGN_OR_FAIL(Val square, multiply(n, {g, g}));
    ASSIGN_OR_FAIL(Val v, o.mix(alpha, o.state(0, i), 1 - alpha, g));
    ASSIGN_OR_FAIL(Val h, o.mix(beta, o.state(1, i), 1 - beta, square));
    ASSIGN_OR_FAIL(Val root, squareRoot(n, h));
    ASSIGN_OR_FAIL(Val scale,
                   add(n, {root, o.number(n.floatAttr("epsilon", 1e-6))}));
    ASSIGN_OR_FAIL(Val step, multiply(n, {rate, v}));
    ASSIGN_OR_FAIL(step, divide(n, {step, scale}));
    ASSIGN_OR_FAIL(Val next, subtract(n, {o.weight(i), step}));
    if (failed(o.set(0, i, multiply(n, {next, o.number(kept)}))) ||
        failed(o.set(1, i, v)) || failed(o.set(2, i, h)))
      return mlir::failure();
  }
  return success();
}
static Register adam(kDomain, "Adam", importAdam);

static LogicalResult importMomentum(Node &n) {
  Optimizer o(n, 1);
  if (failed(o.check()))
    return mlir::failure();
  double alpha = n.floatAttr("alpha", 0.9), beta = n.floatAttr("beta", 1);
  std::string mode = n.stringAttr("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    return n.error("mode '" + mode + "'");
  ASSIGN_OR_FAIL(Val isLater, o.isLater());
  ASSIGN_OR_FAIL(Val share, where(n, isLater, o.number(beta), o.number(1)));
  for (int i = 0; i < o.weights(); ++i) {
    ASSIGN_OR_FAIL(Val g, o.regularized(i));
    ASSIGN_OR_FAIL(Val part, multiply(n, {share, g}));
    ASSIGN_OR_FAIL(Val v, o.mix(alpha, o.state(0, i), 1, part));
    Val direction = v;
    if (mode == "nesterov") {
      ASSIGN_OR_FAIL(direction, o.mix(1, g, alpha, v));
    }
    ASSIGN_OR_FAIL(Val step, multiply(n, {n.input(0), direction}));
    if (failed(o.set(0, i, subtract(n, {o.weight(i), step}))) ||
        failed(o.set(1, i, v)))
      return mlir::failure();
  }
  return success();
}
static Register momentum(kDomain, "Momentum", importMomentum);

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

namespace {
/// Reverse-mode differentiation of the ops between `roots` and a value.
class Backward {
public:
  Backward(Node &n, ArrayRef<Value> roots) : n(n) {
    active.insert(roots.begin(), roots.end());
  }
  LogicalResult run(Value y);
  Value gradientOf(Value root) const { return gradOf.lookup(root); }

private:
  bool isActive(Value v);
  LogicalResult differentiate(Operation *op);

  Node &n;
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, Value> gradOf;
};
} // namespace

/// True if `v` is a float that depends on a root.
bool Backward::isActive(Value v) {
  return active.contains(v) && isa<FloatType>(getElementTypeOrSelf(v));
}

LogicalResult Backward::differentiate(Operation *op) {
  SmallVector<Value> grads;
  bool any = false;
  for (Value result : op->getResults()) {
    grads.push_back(gradOf.lookup(result));
    any |= bool(grads.back());
  }
  SmallVector<bool> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(isActive(operand));
  if (!any || llvm::none_of(wanted, [](bool x) { return x; }))
    return success();
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  if (!rule)
    return n.unsupported("a gradient through '" +
                         op->getName().getStringRef().str() + "'");
  SmallVector<Value> found = rule.buildVjp(n.b, grads, wanted);
  for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), found))
    if (grad && isActive(operand)) {
      Value &sum = gradOf[operand];
      sum = sum ? nn::add(n.b, n.loc, sum, grad) : grad;
    }
  return success();
}

LogicalResult Backward::run(Value y) {
  SmallVector<Operation *> ops;
  for (Operation &op : *n.b.getInsertionBlock())
    if (!isa<nn::DetachOp>(op) && llvm::any_of(op.getOperands(), [&](Value v) {
          return active.contains(v);
        })) {
      ops.push_back(&op);
      active.insert(op.result_begin(), op.result_end());
    }
  gradOf[y] = n.like(y, 1);
  for (Operation *op : llvm::reverse(ops))
    if (failed(differentiate(op)))
      return mlir::failure();
  return success();
}

/// The gradient of `y` by each of `xs`; both are names in the graph. The inputs
/// are the values of `xs` and `zs`; the graph's own values take their place.
static LogicalResult importGradient(Node &n) {
  const auto *xs = n.attribute("xs");
  const Val &y = n.importer.lookup(n.stringAttr("y", ""));
  if (!xs || !y.isTensor() || !isFloat(y.type))
    return n.unsupported("a gradient of what isn't computed from inputs");
  SmallVector<std::string> names(xs->strings().begin(), xs->strings().end());
  if (const auto *zs = n.attribute("zs"))
    names.append(zs->strings().begin(), zs->strings().end());
  for (auto [i, name] : llvm::enumerate(names))
    if (static_cast<int>(i) >= n.proto.input_size() || n.proto.input(i) != name)
      return n.unsupported("a gradient at other values than the graph's");
  SmallVector<Value> roots;
  for (int i = 0; i < xs->strings_size(); ++i) {
    ASSIGN_OR_FAIL(Value root, n.value(i));
    roots.push_back(root);
  }
  Backward backward(n, roots);
  if (failed(backward.run(y.value)))
    return mlir::failure();
  for (auto [i, root] : llvm::enumerate(roots)) {
    Value grad = backward.gradientOf(root);
    if (failed(n.set(i, Val(grad ? grad : n.like(root, 0)))))
      return mlir::failure();
  }
  return success();
}
static Register gradient(kDomain, "Gradient", importGradient);
