#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Pools an image [N, C, H, W] by a window.
using PoolImage = llvm::function_ref<Value(Value, const Window &)>;

/// `x` [N, C, spatial...] pooled along all its spatial dimensions: the
/// innermost two together, then each of the others separately. Extremes of
/// extremes are extremes. Means of means are means, because all rows of a
/// window have the same number of elements.
static FailureOr<Value> poolAll(Site &s, const Val &x, const AxisWindows &axes,
                                PoolImage pool) {
  ASSIGN_OR_FAIL(Value y, s.materialise(x));
  Dims dims(x.dims);
  size_t rank = dims.size();
  auto product = [&](size_t from, size_t to) {
    int64_t result = 1;
    for (size_t d = from; d < to; ++d)
      result *= dims[d];
    return result;
  };
  for (int64_t left = axes.size(); left > 0;) {
    // Dimensions `first` to `last` form the image; later ones are already
    // pooled.
    bool isPair = left == static_cast<int64_t>(axes.size()) && left > 1;
    size_t last = 1 + left, first = isPair ? last - 1 : last;
    size_t behind = last + 1;
    bool isInner = behind == rank;
    AxisWindow none;
    Window w = isPair    ? imageWindow(axes[left - 2], axes[left - 1])
               : isInner ? imageWindow(none, axes[left - 1])
                         : imageWindow(axes[left - 1], none);
    Dims image{dims[0], product(1, first), isPair || !isInner ? dims[first] : 1,
               isPair || isInner ? dims[last] : product(behind, rank)};
    Value pooled = pool(s.reshape(y, image), w);
    ArrayRef<int64_t> made = nn::tensorType(pooled).getShape();
    if (isPair || !isInner)
      dims[first] = made[2];
    if (isPair || isInner)
      dims[last] = made[3];
    y = s.reshape(pooled, dims);
    left -= isPair ? 2 : 1;
  }
  return y;
}

FailureOr<Val> tmc::frontend::maxPool(Site &s, const Val &x,
                                      const WindowSpec &spec) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, x.dims, spec));
  ASSIGN_OR_FAIL(
      Value y, poolAll(s, x, axes, [&](Value v, const Window &w) -> Value {
        return nn::MaxPoolOp::create(s.b, s.loc, v, w.strides, w.padding,
                                     w.dilations,
                                     /*channels_last=*/false, w.size);
      }));
  return Val(y);
}

static FailureOr<Value> meanPool(Site &s, const Val &x, const AxisWindows &axes,
                                 bool countPadding) {
  return poolAll(s, x, axes, [&](Value v, const Window &w) -> Value {
    return nn::AvgPoolOp::create(s.b, s.loc, v, w.strides, w.padding,
                                 w.dilations, /*channels_last=*/false, w.size,
                                 countPadding);
  });
}

/// Turns `y`, means over all elements of windows, into means over the elements
/// in the padded input: elements that ceil_mode appends don't count.
static FailureOr<Val> withoutExtra(Site &s, Value y, const AxisWindows &axes,
                                   ArrayRef<int64_t> input) {
  ArrayRef<int64_t> dims = nn::tensorType(y).getShape();
  Val result(y);
  for (auto [d, w] : llvm::enumerate(axes)) {
    if (!w.extra)
      continue;
    int64_t limit = w.low + input[2 + d] + w.high, count = dims[2 + d];
    if (count > kMaxFoldElements)
      return s.unsupported("a result of shape " + str(dims));
    std::vector<double> factors;
    for (int64_t i = 0; i < count; ++i) {
      // The number of the window's elements before `limit`, at least one.
      int64_t inside = (limit - i * w.stride + w.dilation - 1) / w.dilation;
      factors.push_back(double(w.size) /
                        std::clamp<int64_t>(inside, 1, w.size));
    }
    Dims line(dims.size(), 1);
    line[2 + d] = count;
    Val factor(Array::ofFloats(result.type, line, std::move(factors)));
    ASSIGN_OR_FAIL(result, multiply(s, {result, factor}));
  }
  return result;
}

FailureOr<Val> tmc::frontend::averagePool(Site &s, const Val &x,
                                          const WindowSpec &spec,
                                          bool countPadding) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, x.dims, spec));
  ASSIGN_OR_FAIL(Value y, meanPool(s, x, axes, countPadding));
  if (countPadding)
    return withoutExtra(s, y, axes, x.dims);
  return Val(y);
}

FailureOr<Val> tmc::frontend::sumPool(Site &s, const Val &x,
                                      const WindowSpec &spec) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(AxisWindows axes, windowsOf(s, x.dims, spec));
  ASSIGN_OR_FAIL(Value mean, meanPool(s, x, axes, /*countPadding=*/true));
  double count = 1;
  for (const AxisWindow &w : axes)
    count *= static_cast<double>(w.size);
  return Val(nn::scale(s.b, s.loc, mean, count));
}

FailureOr<Val> tmc::frontend::normPool(Site &s, const Val &x,
                                       const WindowSpec &spec, int64_t p) {
  if (failed(checkFloats(s, x)))
    return failure();
  if (p < 1)
    return s.error("a norm of order " + Twine(p));
  Val order(Array::splat(x.type, {}, static_cast<double>(p)));
  Val root(Array::splat(x.type, {}, 1.0 / static_cast<double>(p)));
  // Even powers need no absolute value, whose derivative has a step.
  Val base = x;
  if (p % 2) {
    ASSIGN_OR_FAIL(base, absolute(s, x));
  }
  ASSIGN_OR_FAIL(Val powers, power(s, {base, order}));
  ASSIGN_OR_FAIL(Val sum, sumPool(s, powers, spec));
  return power(s, {sum, root});
}

FailureOr<Val> tmc::frontend::globalPool(Site &s, const Val &x,
                                         nn::ReduceKind kind, bool mean) {
  if (!isFloat(x.type) || x.rank() < 3)
    return s.error("an input of shape " + str(x.dims));
  Dims over, dims(x.dims);
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    over.push_back(d);
    count *= dims[d];
    dims[d] = 1;
  }
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Value y = nn::ReduceOp::create(s.b, s.loc, value, kind, over);
  if (mean)
    y = nn::scale(s.b, s.loc, y, 1.0 / count);
  return Val(s.reshape(y, dims));
}
