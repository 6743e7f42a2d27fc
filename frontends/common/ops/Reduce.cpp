#include "frontends/common/ops/Reduce.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using llvm::maxIntN, llvm::maxUIntN, llvm::minIntN;
using namespace tmc;
using namespace tmc::frontend;

namespace {
/// A reduction of `before` over `dims`, whose result gets the shape `after`.
struct Reduction {
  Dims dims;
  Dims after;
  int64_t count = 1; ///< Elements per result.
};
} // namespace

static Reduction reductionOf(const Val &x, ArrayRef<int64_t> dims, bool keep) {
  Reduction r;
  r.dims.assign(dims.begin(), dims.end());
  for (auto [i, dim] : llvm::enumerate(x.dims)) {
    bool gone = llvm::is_contained(r.dims, static_cast<int64_t>(i));
    if (gone)
      r.count *= dim;
    if (!gone || keep)
      r.after.push_back(gone ? 1 : dim);
  }
  return r;
}

Value tmc::frontend::reduceAlong(Site &s, Value x, nn::ReduceKind kind,
                                 ArrayRef<int64_t> dims) {
  if (dims.empty())
    return x;
  auto type = nn::tensorType(x);
  Type element = type.getElementType();
  if (isa<FloatType>(element))
    return nn::ReduceOp::create(s.b, s.loc, x, kind, dims);
  auto floats = type.clone(s.b.getF32Type());
  Value wide = element.isInteger(1)
                   ? Value(arith::UIToFPOp::create(s.b, s.loc, floats, x))
                   : Value(arith::SIToFPOp::create(s.b, s.loc, floats, x));
  Value y = nn::ReduceOp::create(s.b, s.loc, wide, kind, dims);
  auto result = nn::tensorType(y).clone(element);
  return arith::FPToSIOp::create(s.b, s.loc, result, y);
}

static Value reduce(Site &s, Value x, nn::ReduceKind kind, const Reduction &r) {
  return s.reshape(reduceAlong(s, x, kind, r.dims), r.after);
}

/// `v` as an integer of `type`; an infinity, the extreme of no elements,
/// becomes the nearest integer.
static int64_t wholeNumber(ElementType type, double v) {
  if (type == ElementType::Bool)
    return v > 0;
  if (std::isfinite(v))
    return static_cast<int64_t>(v);
  int64_t bits = 8 * sizeInFile(type);
  bool isSigned = type == ElementType::I8 || type == ElementType::I16 ||
                  type == ElementType::I32 || type == ElementType::I64;
  if (isSigned)
    return v < 0 ? minIntN(bits) : maxIntN(bits);
  return v < 0 ? 0 : static_cast<int64_t>(maxUIntN(bits));
}

/// Folds a constant; `step` combines the running value and an element.
static FailureOr<Val> fold(Site &s, const Val &in, const Reduction &r,
                           double start,
                           llvm::function_ref<double(double, double)> step,
                           double factor = 1) {
  ASSIGN_OR_FAIL(Array x, s.arrayOf(in));
  std::vector<double> values = x.floats();
  int64_t size = 1;
  for (int64_t dim : r.after)
    size *= dim;
  std::vector<double> out(size, start);
  Dims index(x.rank(), 0);
  for (double v : values) {
    int64_t at = 0;
    for (int64_t d = 0; d < x.rank(); ++d)
      if (!llvm::is_contained(r.dims, d))
        at = at * x.dims()[d] + index[d];
    out[at] = step(out[at], v);
    for (int64_t d = x.rank(); d-- > 0;) {
      if (++index[d] < x.dims()[d])
        break;
      index[d] = 0;
    }
  }
  for (double &v : out)
    v *= factor;
  if (isFloat(x.type()))
    return Val(Array::ofFloats(x.type(), r.after, std::move(out)));
  std::vector<int64_t> whole;
  for (double v : out)
    whole.push_back(wholeNumber(x.type(), v));
  return Val(Array::ofInts(x.type(), r.after, std::move(whole)));
}

FailureOr<Val> tmc::frontend::reduceSum(Site &s, const Val &in,
                                        ArrayRef<int64_t> dims, bool keep) {
  Reduction r = reductionOf(in, dims, keep);
  if (s.foldable(in))
    return fold(s, in, r, 0, [](double a, double v) { return a + v; });
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  return Val(reduce(s, x, nn::ReduceKind::Sum, r));
}

FailureOr<Val> tmc::frontend::reduceMean(Site &s, const Val &in,
                                         ArrayRef<int64_t> dims, bool keep) {
  Reduction r = reductionOf(in, dims, keep);
  if (failed(checkFloats(s, in)))
    return failure();
  if (s.foldable(in))
    return fold(
        s, in, r, 0, [](double a, double v) { return a + v; }, 1.0 / r.count);
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  Value sum = reduce(s, x, nn::ReduceKind::Sum, r);
  return Val(nn::scale(s.b, s.loc, sum, 1.0 / r.count));
}

FailureOr<Val> tmc::frontend::reduceMax(Site &s, const Val &in,
                                        ArrayRef<int64_t> dims, bool keep) {
  Reduction r = reductionOf(in, dims, keep);
  if (s.foldable(in))
    return fold(s, in, r, -INFINITY,
                [](double a, double v) { return std::max(a, v); });
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  return Val(reduce(s, x, nn::ReduceKind::Max, r));
}

FailureOr<Val> tmc::frontend::reduceMin(Site &s, const Val &in,
                                        ArrayRef<int64_t> dims, bool keep) {
  Reduction r = reductionOf(in, dims, keep);
  if (s.foldable(in))
    return fold(s, in, r, INFINITY,
                [](double a, double v) { return std::min(a, v); });
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  return Val(reduce(s, x, nn::ReduceKind::Min, r));
}

FailureOr<Val>
tmc::frontend::reduceSumOf(Site &s, const Val &in, ArrayRef<int64_t> dims,
                           bool keep, llvm::function_ref<Value(Value)> before,
                           llvm::function_ref<Value(Value)> after) {
  Reduction r = reductionOf(in, dims, keep);
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  if (failed(checkFloats(s, in)))
    return failure();
  return Val(after(reduce(s, before(x), nn::ReduceKind::Sum, r)));
}

/// max + log(sum(exp(x - max))), which can't overflow.
FailureOr<Val> tmc::frontend::logSumExp(Site &s, const Val &in,
                                        ArrayRef<int64_t> dims, bool keepDims) {
  Reduction r = reductionOf(in, dims, keepDims);
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  if (failed(checkFloats(s, in)))
    return failure();
  Value most = reduce(s, x, nn::ReduceKind::Max, reductionOf(in, dims, true));
  ASSIGN_OR_FAIL(Value wide, s.broadcast(Val(most), in.dims));
  Value e = math::ExpOp::create(s.b, s.loc, nn::sub(s.b, s.loc, x, wide));
  Value sum = reduce(s, e, nn::ReduceKind::Sum, r);
  Value log = math::LogOp::create(s.b, s.loc, sum);
  return Val(nn::add(s.b, s.loc, log, s.reshape(most, r.after)));
}
