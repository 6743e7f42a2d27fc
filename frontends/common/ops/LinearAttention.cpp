#include "frontends/common/ops/LinearAttention.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// The most steps that the graph unrolls.
constexpr int64_t kMaxSteps = 1 << 12;

/// [B, T, heads * size] as [T, B * heads, rows, columns], in `wide` elements.
static FailureOr<Val> byStep(Site &s, const Val &x, int64_t heads, int64_t rows,
                             int64_t columns, ElementType wide) {
  const Dims d = x.dims;
  ASSIGN_OR_FAIL(Val y, castTo(s, x, wide));
  ASSIGN_OR_FAIL(y, transpose(s, y, {1, 0, 2}));
  return reshaped(s, y, {d[1], d[0] * heads, rows, columns});
}

/// Step `t` of a result of `byStep`; absent if the input is.
static FailureOr<Val> stepOf(Site &s, const Val &x, int64_t t) {
  if (x.isAbsent())
    return x;
  ASSIGN_OR_FAIL(Val y, strided(s, x, 0, t, 1, 1));
  return squeeze(s, y, Dims{0});
}

namespace {
struct Sizes {
  int64_t batch, steps, key, value;
};
} // namespace

static FailureOr<Sizes> sizesOf(Site &s, const LinearAttention &a) {
  auto fits = [&](const Val &x, ArrayRef<int64_t> last) {
    return x.isAbsent() ||
           (x.rank() == 3 && isFloat(x.type) && x.dims[0] == a.query.dims[0] &&
            x.dims[1] == a.query.dims[1] &&
            llvm::is_contained(last, x.dims[2]));
  };
  bool valid = a.query.rank() == 3 && a.key.rank() == 3 &&
               a.value.rank() == 3 && isFloat(a.query.type) && a.groups >= 1 &&
               a.heads >= 1 && a.heads % a.groups == 0 &&
               a.query.dims[2] % a.heads == 0 &&
               a.value.dims[2] % a.groups == 0;
  if (!valid)
    return s.error("queries of shape " + str(a.query.dims) + " and values of " +
                   str(a.value.dims) + " for " + Twine(a.heads) + " and " +
                   Twine(a.groups) + " heads");
  Sizes z{a.query.dims[0], a.query.dims[1], a.query.dims[2] / a.heads,
          a.value.dims[2] / a.groups};
  bool fit = fits(a.key, {a.groups * z.key}) &&
             fits(a.value, a.value.dims[2]) &&
             fits(a.decay, {a.groups, a.groups * z.key}) &&
             fits(a.beta, {a.groups, 1}) &&
             (a.state.isAbsent() ||
              a.state.dims == Dims{z.batch, a.groups, z.key, z.value});
  if (!fit)
    return s.error("keys of shape " + str(a.key.dims) + ", decays of " +
                   str(a.decay.dims) + " and a state of " + str(a.state.dims));
  if (z.steps < 1 || z.steps > kMaxSteps)
    return s.unsupported(Twine(z.steps) + " steps");
  return z;
}

FailureOr<LinearAttended>
tmc::frontend::attendLinearly(Site &s, const LinearAttention &a) {
  ASSIGN_OR_FAIL(Sizes z, sizesOf(s, a));
  ElementType wide =
      a.query.type == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  int64_t each = a.heads / a.groups, all = z.batch * a.groups;
  ASSIGN_OR_FAIL(Val q, byStep(s, a.query, a.groups, each, z.key, wide));
  ASSIGN_OR_FAIL(Val k, byStep(s, a.key, a.groups, z.key, 1, wide));
  ASSIGN_OR_FAIL(Val v, byStep(s, a.value, a.groups, 1, z.value, wide));
  ASSIGN_OR_FAIL(q, multiply(s, {q, Val(Array::splat(wide, {}, a.scale))}));
  Val decay, beta;
  if (!a.decay.isAbsent()) {
    int64_t rows = a.decay.dims[2] / a.groups;
    ASSIGN_OR_FAIL(decay, byStep(s, a.decay, a.groups, rows, 1, wide));
    ASSIGN_OR_FAIL(decay, exponential(s, decay));
  }
  if (!a.beta.isAbsent()) {
    Val spread = a.beta;
    ASSIGN_OR_FAIL(spread, expand(s, spread, {z.batch, z.steps, a.groups}));
    ASSIGN_OR_FAIL(beta, byStep(s, spread, a.groups, 1, 1, wide));
  }
  Dims dims{all, z.key, z.value};
  Val state(Array::splat(wide, dims, 0));
  if (!a.state.isAbsent()) {
    ASSIGN_OR_FAIL(state, castTo(s, a.state, wide));
    ASSIGN_OR_FAIL(state, reshaped(s, state, dims));
  }
  SmallVector<Val> outs;
  for (int64_t t = 0; t < z.steps; ++t) {
    ASSIGN_OR_FAIL(Val qt, stepOf(s, q, t));
    ASSIGN_OR_FAIL(Val kt, stepOf(s, k, t));
    ASSIGN_OR_FAIL(Val vt, stepOf(s, v, t));
    ASSIGN_OR_FAIL(Val gt, stepOf(s, decay, t));
    ASSIGN_OR_FAIL(Val bt, stepOf(s, beta, t));
    if (!gt.isAbsent()) {
      ASSIGN_OR_FAIL(state, multiply(s, {state, gt}));
    }
    if (!bt.isAbsent()) {
      ASSIGN_OR_FAIL(Val row, transpose(s, kt, {0, 2, 1}));
      ASSIGN_OR_FAIL(Val known, matmul(s, row, state));
      ASSIGN_OR_FAIL(vt, subtract(s, {vt, known}));
      ASSIGN_OR_FAIL(vt, multiply(s, {vt, bt}));
    }
    ASSIGN_OR_FAIL(Val written, multiply(s, {kt, vt}));
    ASSIGN_OR_FAIL(state, add(s, {state, written}));
    ASSIGN_OR_FAIL(Val read, matmul(s, qt, state));
    ASSIGN_OR_FAIL(read, reshaped(s, read, {z.batch, 1, a.heads * z.value}));
    outs.push_back(read);
  }
  ASSIGN_OR_FAIL(Val out, concat(s, outs, 1));
  ASSIGN_OR_FAIL(out, castTo(s, out, a.query.type));
  ASSIGN_OR_FAIL(
      state,
      castTo(s, state, a.state.isAbsent() ? a.query.type : a.state.type));
  ASSIGN_OR_FAIL(state,
                 reshaped(s, state, {z.batch, a.groups, z.key, z.value}));
  return LinearAttended{out, state};
}
