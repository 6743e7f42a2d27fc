// Activations.cpp - gelu, with tanh or with erf.
//
// Exporters and authors order the factors of x * (1 + t) / 2 in every way, and
// write x^3 as a power or as products. So the match uses algebra: t is tanh or
// erf of a polynomial in x, and the whole is a polynomial in x and t. The match
// compares coefficients.

#include "passes/raise/Matchers.h"

#include "dialects/nn/Builders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;

namespace {
/// The coefficients of x^i t^j, by (i, j).
using Polynomial = std::map<std::pair<int, int>, double>;
} // namespace

/// No known activation has higher powers.
constexpr int maxDegree = 3;
constexpr int maxDepth = 8;

static std::optional<Polynomial> product(const Polynomial &a,
                                         const Polynomial &b) {
  Polynomial result;
  for (auto [i, x] : a)
    for (auto [j, y] : b) {
      std::pair<int, int> power(i.first + j.first, i.second + j.second);
      if (power.first + power.second > maxDegree)
        return std::nullopt;
      result[power] += x * y;
    }
  return result;
}

/// `value` as a polynomial in `x` and `t` (which may be null).
static std::optional<Polynomial> polynomial(Value value, Value x, Value t,
                                            int depth = maxDepth) {
  if (value == x)
    return Polynomial{{{1, 0}, 1}};
  if (value == t)
    return Polynomial{{{0, 1}, 1}};
  if (auto number = constantNumber(value))
    return Polynomial{{{0, 0}, *number}};
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0 ||
      !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::NegFOp, math::PowFOp>(op))
    return std::nullopt;
  auto a = polynomial(op->getOperand(0), x, t, depth - 1);
  if (!a)
    return std::nullopt;
  auto scaled = [](Polynomial p, double factor) {
    for (auto &[power, coefficient] : p)
      coefficient *= factor;
    return p;
  };
  if (isa<arith::NegFOp>(op))
    return scaled(*a, -1);
  if (isa<math::PowFOp>(op)) {
    auto exponent = constantNumber(op->getOperand(1));
    if (!exponent || (*exponent != 2 && *exponent != 3))
      return std::nullopt;
    std::optional<Polynomial> result = a;
    for (int i = 1; i < *exponent && result; ++i)
      result = product(*result, *a);
    return result;
  }
  auto b = polynomial(op->getOperand(1), x, t, depth - 1);
  if (!b)
    return std::nullopt;
  if (isa<arith::MulFOp>(op))
    return product(*a, *b);
  if (isa<arith::DivFOp>(op)) {
    if (b->size() != 1 || b->begin()->first != std::pair(0, 0) ||
        b->begin()->second == 0)
      return std::nullopt;
    return scaled(*a, 1 / b->begin()->second);
  }
  for (auto [power, coefficient] : scaled(*b, isa<arith::SubFOp>(op) ? -1 : 1))
    (*a)[power] += coefficient;
  return a;
}

/// True if `p` has these coefficients and no others, up to the digits that
/// exporters write.
static bool hasCoefficients(const Polynomial &p, const Polynomial &wanted) {
  for (auto [power, coefficient] : p)
    if (coefficient != 0 && !wanted.count(power))
      return false;
  return llvm::all_of(wanted, [&](auto &entry) {
    auto it = p.find(entry.first);
    return it != p.end() && isNear(it->second, entry.second, 1e-4);
  });
}

/// Collects all values from which arithmetic computes `value`, including
/// `value`.
static void collectSources(Value value, SmallVectorImpl<Value> &out,
                           int depth = maxDepth) {
  if (constantNumber(value) || llvm::is_contained(out, value))
    return;
  out.push_back(value);
  Operation *op = value.getDefiningOp();
  if (depth > 0 &&
      isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp,
                      arith::DivFOp, arith::NegFOp, math::PowFOp>(op))
    for (Value operand : op->getOperands())
      collectSources(operand, out, depth - 1);
}

/// Collects the values that arithmetic computes from `value` within `depth`
/// ops.
static void collectUses(Value value, SmallVectorImpl<Value> &out, int depth) {
  if (depth == 0)
    return;
  for (Operation *user : value.getUsers())
    if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(user)) {
      out.push_back(user->getResult(0));
      collectUses(user->getResult(0), out, depth - 1);
    }
}

namespace {

template <typename OpTy> struct RaiseGelu : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    constexpr bool tanh = std::is_same_v<OpTy, math::TanhOp>;
    const double root = std::sqrt(2 / M_PI);
    const Polynomial inside =
        tanh ? Polynomial{{{1, 0}, root}, {{3, 0}, root * 0.044715}}
             : Polynomial{{{1, 0}, std::sqrt(0.5)}};
    const Polynomial whole = {{{1, 0}, 0.5}, {{1, 1}, 0.5}};

    SmallVector<Value> sources, uses;
    collectSources(op.getOperand(), sources);
    // The last use is the whole expression; its parts come before it.
    collectUses(op.getResult(), uses, 4);
    for (Value x : sources) {
      auto argument = polynomial(op.getOperand(), x, Value());
      if (!argument || !hasCoefficients(*argument, inside))
        continue;
      for (Value use : uses) {
        auto result = polynomial(use, x, op.getResult());
        if (!result || !hasCoefficients(*result, whole))
          continue;
        b.setInsertionPointAfterValue(use);
        Value gelu = GeluOp::create(b, use.getLoc(), x, tanh);
        b.replaceAllUsesWith(use, gelu);
        return success();
      }
    }
    return failure();
  }
};

} // namespace

void tmc::populateRaiseActivations(RewritePatternSet &patterns) {
  patterns.add<RaiseGelu<math::TanhOp>, RaiseGelu<math::ErfOp>>(
      patterns.getContext());
}
