// Expression.h - formulas of values, written as formulas.
//
//   Expression x(s, in), below = x.of(floorOf);
//   return (x - below).when(x > 0, x.number(0)).value();
//
// Everything broadcasts, and constants are folded, because each step is a
// builder of Pointwise.h, Logic.h or Elementary.h.

#ifndef TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H
#define TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H

#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"

namespace tmc::frontend {

/// Builds expressions of values of one element type. After a failure, all
/// expressions that contain it fail.
class Expression {
public:
  Expression(Site &s, mlir::FailureOr<Val> v) : s(&s), v(std::move(v)) {}

  mlir::FailureOr<Val> value() const { return v; }

  Expression number(double x) const {
    if (failed(v))
      return *this;
    if (isFloat(v->type))
      return {*s, Val(Array::splat(v->type, {}, x))};
    return {*s, Val(Array::splatInt(v->type, {}, static_cast<int64_t>(x)))};
  }
  /// Another value, in a formula with this one.
  Expression other(Val value) const { return {*s, std::move(value)}; }
  ElementType type() const { return failed(v) ? ElementType::F32 : v->type; }
  Expression cast(ElementType type) const {
    return failed(v) ? *this : Expression(*s, castTo(*s, *v, type));
  }
  using Two = mlir::FailureOr<Val> (*)(Site &, Operands);
  Expression with(Two build, const Expression &other) const {
    if (failed(v) || failed(other.v))
      return {*s, mlir::failure()};
    return {*s, build(*s, {*v, *other.v})};
  }
  using One = llvm::function_ref<mlir::FailureOr<Val>(Site &, const Val &)>;
  Expression of(One build) const {
    return failed(v) ? *this : Expression(*s, build(*s, *v));
  }
  /// This value where `condition` holds, else `other`.
  Expression when(const Expression &condition, const Expression &other) const {
    if (failed(v) || failed(condition.v) || failed(other.v))
      return {*s, mlir::failure()};
    return {*s, where(*s, *condition.v, *v, *other.v)};
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
  Site *s;
  mlir::FailureOr<Val> v;
};

/// log(exp(a) + exp(b)) with `base` in place of e: the larger one, plus a
/// softplus. Two infinities of one sign give that infinity.
Expression logSumOf(const Expression &a, const Expression &b, double base);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_EXPRESSION_H
