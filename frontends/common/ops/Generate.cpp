#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Reduce.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

FailureOr<Val> tmc::frontend::range(Site &s, ElementType type, double start,
                                    double limit, double step) {
  double count = std::ceil((limit - start) / step);
  if (step == 0 || !(count < kMaxFoldElements))
    return s.error("a range of " + std::to_string(count) + " numbers");
  int64_t size = std::max<int64_t>(static_cast<int64_t>(count), 0);
  if (isFloat(type)) {
    std::vector<double> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(start + i * step);
    return Val(Array::ofFloats(type, {size}, std::move(values)));
  }
  std::vector<int64_t> values;
  int64_t first = static_cast<int64_t>(start), by = static_cast<int64_t>(step);
  for (int64_t i = 0; i < size; ++i)
    values.push_back(first + i * by);
  return Val(Array::ofInts(type, {size}, std::move(values)));
}

Array tmc::frontend::iota(ArrayRef<int64_t> dims, int64_t dim) {
  std::vector<int64_t> values(dims[dim]);
  for (int64_t i = 0; i < dims[dim]; ++i)
    values[i] = i;
  Dims shape(dims.size(), 1);
  shape[dim] = dims[dim];
  return Array::ofInts(ElementType::I64, shape, std::move(values))
      .broadcastTo(dims);
}

FailureOr<Val> tmc::frontend::band(Site &s, int64_t rows, int64_t columns,
                                   std::optional<int64_t> low,
                                   std::optional<int64_t> high) {
  Expression row(s, Val(iota({rows, 1}, 0)));
  Expression ahead = row.other(Val(iota({1, columns}, 1))) - row;
  auto bounded = [&](Expression::Two build, int64_t bound) {
    return ahead.with(build, ahead.number(static_cast<double>(bound)));
  };
  if (!low)
    return bounded(lessOrEqual, *high).value();
  Expression above = bounded(greaterOrEqual, *low);
  return high ? (above & bounded(lessOrEqual, *high)).value() : above.value();
}

FailureOr<Val> tmc::frontend::triangle(Site &s, const Val &x, bool upper,
                                       int64_t k) {
  if (x.rank() < 2)
    return s.error("wants a matrix, not shape " + str(x.dims));
  std::optional<int64_t> none;
  ASSIGN_OR_FAIL(Val keep, band(s, x.dims[x.rank() - 2], x.dims[x.rank() - 1],
                                upper ? k : none, upper ? none : k));
  return where(s, keep, x,
               Val(isFloat(x.type) ? Array::splat(x.type, {}, 0)
                                   : Array::splatInt(x.type, {}, 0)));
}

FailureOr<Val> tmc::frontend::diagonal(Site &s, int64_t rows, int64_t columns,
                                       int64_t k, ElementType type) {
  if (rows < 0 || columns < 0 || (columns && rows > kMaxFoldElements / columns))
    return s.unsupported("a matrix of " + Twine(rows) + " x " + Twine(columns));
  Dims dims{rows, columns};
  return Val(mapInts(ElementType::Bool, {iota(dims, 0), iota(dims, 1)},
                     [&](Ints at) -> int64_t { return at[1] - at[0] == k; })
                 .cast(type));
}

FailureOr<Val> tmc::frontend::cumulativeSum(Site &s, const Val &x,
                                            const CumulativeSum &how) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(how.axis, x.rank()));
  bool exclusive = how.exclusive, reverse = how.reverse;
  int64_t size = x.dims[axis];
  if (s.foldable(x)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    // Along the innermost dimension of the distinct part.
    Dims perm;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != axis)
        perm.push_back(i);
    perm.push_back(axis);
    Dims back(x.rank());
    for (auto [i, dim] : llvm::enumerate(perm))
      back[dim] = i;
    Array rows = array.transposed(perm);
    Dims dims(rows.dims());
    if (rows.size() > kMaxFoldElements)
      return s.unsupported("a sum over shape " + str(x.dims));
    auto sums = [&](auto values) {
      for (size_t row = 0; row + size <= values.size() && size; row += size) {
        auto total = decltype(values[0] + 0)(0);
        for (int64_t k = 0; k < size; ++k) {
          auto &v = values[row + (reverse ? size - 1 - k : k)];
          auto before = total;
          total += v;
          v = exclusive ? before : total;
        }
      }
      return values;
    };
    Array result = isFloat(x.type)
                       ? Array::ofFloats(x.type, dims, sums(rows.floats()))
                       : Array::ofInts(x.type, dims, sums(rows.ints()));
    return Val(result.transposed(back).compressed());
  }
  // y[.., i, ..] = sum over j of x[.., j, ..] where j is at or before i.
  if (size > kMaxFoldElements / size)
    return s.unsupported("a running sum over " + Twine(size) + " elements");
  Array counts =
      mapInts(ElementType::Bool, {iota({size, size}, 0), iota({size, size}, 1)},
              [&](Ints at) -> int64_t {
                int64_t ahead = reverse ? at[1] - at[0] : at[0] - at[1];
                return exclusive ? ahead > 0 : ahead >= 0;
              });
  Dims withRow(x.dims), column(x.dims), mask(x.rank() + 1, 1);
  withRow.insert(withRow.begin() + axis, size);
  column.insert(column.begin() + axis, 1);
  mask[axis] = mask[axis + 1] = size;
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Val apart(s.reshape(value, column));
  ASSIGN_OR_FAIL(Value wide, s.broadcast(apart, withRow));
  ASSIGN_OR_FAIL(Value keep, s.broadcast(Val(counts.reshaped(mask)), withRow));
  Value chosen =
      arith::SelectOp::create(s.b, s.loc, keep, wide, s.like(wide, 0));
  return Val(reduceAlong(s, chosen, nn::ReduceKind::Sum, Dims{axis + 1}));
}
