// Expression.h - formulas of values, written as formulas.
//
//   Expression x(s, in), below = x.of(floorOf);
//   return (x - below).when(x > 0, x.number(0)).value();
//
// Everything broadcasts, and constants are folded, because each step is a
// builder of Pointwise.h, Logic.h or Elementary.h.
//
// C++ doesn't say in which order a + b computes its operands. An expression
// therefore builds nothing until its value is asked for, and then the operands
// from left to right: the order of operations is the same with each compiler.

#ifndef TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H
#define TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H

#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"

#include <functional>
#include <memory>
#include <optional>

namespace tmc::frontend {

/// Builds expressions of values of one element type. After a failure, all
/// expressions that contain it fail. Copies share their value: it is built
/// once.
class Expression {
public:
  Expression(Site &s, mlir::FailureOr<Val> v)
      : s(&s), node(std::make_shared<Node>(Node{{}, std::move(v)})) {}

  /// Builds what isn't built yet.
  mlir::FailureOr<Val> value() const {
    if (!node->built) {
      node->built = node->build();
      node->build = nullptr;
    }
    return *node->built;
  }

  Expression number(double x) const {
    return later([like = *this, x]() -> mlir::FailureOr<Val> {
      ASSIGN_OR_FAIL(Val v, like.value());
      if (isFloat(v.type))
        return Val(Array::splat(v.type, {}, x));
      return Val(Array::splatInt(v.type, {}, static_cast<int64_t>(x)));
    });
  }
  /// Another value, in a formula with this one.
  Expression other(Val value) const { return {*s, std::move(value)}; }
  /// The type of the value, which is built for it.
  ElementType type() const {
    mlir::FailureOr<Val> v = value();
    return failed(v) ? ElementType::F32 : v->type;
  }
  Expression cast(ElementType type) const {
    return of([type](Site &s, const Val &v) { return castTo(s, v, type); });
  }
  using Two = mlir::FailureOr<Val> (*)(Site &, Operands);
  Expression with(Two build, const Expression &other) const {
    return later(
        [s = s, build, a = *this, b = other]() -> mlir::FailureOr<Val> {
          ASSIGN_OR_FAIL(Val x, a.value());
          ASSIGN_OR_FAIL(Val y, b.value());
          return build(*s, {x, y});
        });
  }
  /// Holds what it needs by value: it is called later.
  using One = std::function<mlir::FailureOr<Val>(Site &, const Val &)>;
  Expression of(One build) const {
    return later([s = s, build = std::move(build),
                  of = *this]() -> mlir::FailureOr<Val> {
      ASSIGN_OR_FAIL(Val v, of.value());
      return build(*s, v);
    });
  }
  /// This value where `condition` holds, else `other`.
  Expression when(const Expression &condition, const Expression &other) const {
    return later(
        [s = s, c = condition, a = *this, b = other]() -> mlir::FailureOr<Val> {
          ASSIGN_OR_FAIL(Val x, a.value());
          ASSIGN_OR_FAIL(Val isHere, c.value());
          ASSIGN_OR_FAIL(Val y, b.value());
          return where(*s, isHere, x, y);
        });
  }

  friend Expression operator+(const Expression &a, const Expression &b) {
    return a.with(add, b);
  }
  friend Expression operator-(const Expression &a, const Expression &b) {
    return a.with(subtract, b);
  }
  friend Expression operator*(const Expression &a, const Expression &b) {
    return a.with(multiply, b);
  }
  friend Expression operator/(const Expression &a, const Expression &b) {
    return a.with(divide, b);
  }
  friend Expression operator+(const Expression &a, double b) {
    return a + a.number(b);
  }
  friend Expression operator-(const Expression &a, double b) {
    return a - a.number(b);
  }
  friend Expression operator*(const Expression &a, double b) {
    return a * a.number(b);
  }
  friend Expression operator*(double a, const Expression &b) { return b * a; }
  friend Expression operator-(double a, const Expression &b) {
    return b.number(a) - b;
  }
  friend Expression operator/(const Expression &a, double b) {
    return a / a.number(b);
  }
  friend Expression operator/(double a, const Expression &b) {
    return b.number(a) / b;
  }
  friend Expression operator<(const Expression &a, double b) {
    return a.with(less, a.number(b));
  }
  friend Expression operator>(const Expression &a, double b) {
    return a.with(greater, a.number(b));
  }
  friend Expression operator==(const Expression &a, double b) {
    return a.with(equals, a.number(b));
  }
  friend Expression operator==(const Expression &a, const Expression &b) {
    return a.with(equals, b);
  }
  friend Expression operator&(const Expression &a, const Expression &b) {
    return a.with(conjunction, b);
  }
  friend Expression operator|(const Expression &a, const Expression &b) {
    return a.with(disjunction, b);
  }
  friend Expression operator^(const Expression &a, const Expression &b) {
    return a.with(exclusiveOr, b);
  }
  Expression operator!() const { return of(negation); }
  Expression operator-() const { return of(negate); }

private:
  using Build = std::function<mlir::FailureOr<Val>()>;
  struct Node {
    Build build; ///< Until it is built.
    std::optional<mlir::FailureOr<Val>> built;
  };
  Expression(Site *s, std::shared_ptr<Node> node)
      : s(s), node(std::move(node)) {}
  Expression later(Build build) const {
    return {s, std::make_shared<Node>(Node{std::move(build), std::nullopt})};
  }

  Site *s;
  std::shared_ptr<Node> node;
};

/// log(exp(a) + exp(b)) with `base` in place of e: the larger one, plus a
/// softplus. Two infinities of one sign give that infinity.
Expression logSumOf(const Expression &a, const Expression &b, double base);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H
