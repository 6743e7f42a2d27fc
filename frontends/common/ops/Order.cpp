#include "frontends/common/ops/Order.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static Val number(int64_t value) {
  return Val(Array::splatInt(ElementType::I64, {}, value));
}

/// The indices along `axis`, in the shape of `dims` with 1 elsewhere.
static Val counting(ArrayRef<int64_t> dims, int64_t axis) {
  Dims shape(dims.size(), 1);
  shape[axis] = dims[axis];
  return Val(iota(shape, axis));
}

static FailureOr<Val> reduced(Site &s, const Val &x, nn::ReduceKind kind,
                              int64_t axis, bool keep) {
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Value y = reduceAlong(s, value, kind, Dims{axis});
  Dims dims(x.dims);
  if (keep)
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + axis);
  return Val(s.reshape(y, dims));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// For each row of `size` elements in `values`, the sorted order of its
/// indices.
template <typename T>
static std::vector<int64_t> orderOf(const std::vector<T> &values, int64_t size,
                                    bool isDescending) {
  std::vector<int64_t> places(values.size());
  for (size_t row = 0; row + size <= values.size() && size; row += size) {
    auto begin = places.begin() + row, end = begin + size;
    std::iota(begin, end, 0);
    std::stable_sort(begin, end, [&](int64_t a, int64_t b) {
      return isDescending ? values[row + a] > values[row + b]
                          : values[row + a] < values[row + b];
    });
  }
  return places;
}

/// The indices of the first `count` elements of a constant in sorted order.
static FailureOr<Val> foldPlaces(Site &s, const Val &x, int64_t axis,
                                 int64_t count, bool isDescending) {
  ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
  Dims perm, back(x.rank());
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis)
      perm.push_back(i);
  perm.push_back(axis);
  for (auto [i, dim] : llvm::enumerate(perm))
    back[dim] = i;
  Array rows = array.transposed(perm);
  int64_t size = x.dims[axis];
  std::vector<int64_t> places = isFloat(x.type)
                                    ? orderOf(rows.floats(), size, isDescending)
                                    : orderOf(rows.ints(), size, isDescending);
  Array sorted =
      Array::ofInts(ElementType::I64, rows.dims(), std::move(places));
  return Val(sorted.transposed(back).sliced(axis, 0, 1, count).compressed());
}

//===----------------------------------------------------------------------===//
// Extremes
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::placeOfExtreme(Site &s, const Val &x,
                                             int64_t axisAttr, bool isLargest,
                                             bool isLast) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x.rank()));
  int64_t size = x.dims[axis];
  if (size == 0)
    return s.error("takes an extreme of shape " + str(x.dims));
  if (s.foldable(x) && !isLast)
    return foldPlaces(s, x, axis, 1, isLargest);
  nn::ReduceKind kind = isLargest ? nn::ReduceKind::Max : nn::ReduceKind::Min;
  ASSIGN_OR_FAIL(Val best, reduced(s, x, kind, axis, true));
  ASSIGN_OR_FAIL(Val isBest, equals(s, {x, best}));
  // If no element equals the best one, some element is NaN.
  ASSIGN_OR_FAIL(Val place, where(s, isBest, counting(x.dims, axis),
                                  number(isLast ? 0 : size - 1)));
  return reduced(s, place, isLast ? nn::ReduceKind::Max : nn::ReduceKind::Min,
                 axis, true);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// For each element, the number of elements along `axis` that come before it.
static FailureOr<Val> ranks(Site &s, const Val &x, int64_t axis,
                            bool isDescending) {
  int64_t size = x.dims[axis];
  // [.., I, J, ..]: I is each element, J those that may come before it.
  Dims own(x.dims), other(x.dims), both(x.dims);
  own.insert(own.begin() + axis + 1, 1);
  other.insert(other.begin() + axis, 1);
  both.insert(both.begin() + axis, size);
  ASSIGN_OR_FAIL(Val mine, reshaped(s, x, own));
  ASSIGN_OR_FAIL(Val theirs, reshaped(s, x, other));
  ASSIGN_OR_FAIL(Val isFirst, isDescending ? greater(s, {theirs, mine})
                                           : less(s, {theirs, mine}));
  ASSIGN_OR_FAIL(Val isEqual, equals(s, {theirs, mine}));
  ASSIGN_OR_FAIL(Val isEarlier,
                 less(s, {counting(both, axis + 1), counting(both, axis)}));
  ASSIGN_OR_FAIL(Val isTied, conjunction(s, {isEqual, isEarlier}));
  ASSIGN_OR_FAIL(Val precedes, disjunction(s, {isFirst, isTied}));
  ASSIGN_OR_FAIL(Val ones, castTo(s, precedes, ElementType::F32));
  ASSIGN_OR_FAIL(Val rank,
                 reduced(s, ones, nn::ReduceKind::Sum, axis + 1, false));
  return castTo(s, rank, ElementType::I64);
}

FailureOr<Ordered> tmc::frontend::ordered(Site &s, const Val &x,
                                          int64_t axisAttr, int64_t count,
                                          bool isDescending) {
  if (x.rank() == 0 && count == 1)
    return Ordered{x, number(0)};
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x.rank()));
  int64_t size = x.dims[axis];
  if (count < 0 || count > size)
    return s.error("takes " + Twine(count) + " of shape " + str(x.dims));
  if (s.foldable(x) || count == 0) {
    if (!x.isConst())
      return s.unsupported("an empty piece of shape " + str(x.dims));
    Ordered result;
    ASSIGN_OR_FAIL(result.places, foldPlaces(s, x, axis, count, isDescending));
    ASSIGN_OR_FAIL(result.values, gatherElements(s, x, result.places, axis));
    return result;
  }
  if (size > kMaxFoldElements / size)
    return s.unsupported("an order of " + Twine(size) + " elements");
  ASSIGN_OR_FAIL(Val rank, ranks(s, x, axis, isDescending));
  // [.., R, I, ..]: entry r takes the element i whose rank is r.
  Dims entry(x.dims), all(x.dims);
  entry.insert(entry.begin() + axis, 1);
  all.insert(all.begin() + axis, count);
  ASSIGN_OR_FAIL(Val rankOf, reshaped(s, rank, entry));
  ASSIGN_OR_FAIL(Val isChosen, equals(s, {counting(all, axis), rankOf}));
  ASSIGN_OR_FAIL(Val place,
                 where(s, isChosen, counting(all, axis + 1), number(0)));
  Ordered result;
  ASSIGN_OR_FAIL(result.places,
                 reduced(s, place, nn::ReduceKind::Max, axis + 1, false));
  ASSIGN_OR_FAIL(Val wide, reshaped(s, x, entry));
  Val none = isFloat(x.type) ? Val(Array::splat(x.type, {}, 0))
                             : Val(Array::splatInt(x.type, {}, 0));
  ASSIGN_OR_FAIL(Val value, where(s, isChosen, wide, none));
  ASSIGN_OR_FAIL(result.values,
                 reduced(s, value, nn::ReduceKind::Sum, axis + 1, false));
  return result;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Multiplies halves, so that the number of roundings is logarithmic in the
/// size, as in a sum of logarithms.
FailureOr<Val> tmc::frontend::productAlong(Site &s, const Val &x,
                                           int64_t axisAttr) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x.rank()));
  Val y = x;
  if (x.dims[axis] == 0) {
    Dims dims(x.dims);
    dims[axis] = 1;
    return isFloat(x.type) ? Val(Array::splat(x.type, dims, 1))
                           : Val(Array::splatInt(x.type, dims, 1));
  }
  while (int64_t half = y.dims[axis] / 2) {
    int64_t size = y.dims[axis];
    ASSIGN_OR_FAIL(Val low, strided(s, y, axis, 0, 1, half));
    ASSIGN_OR_FAIL(Val high, strided(s, y, axis, half, 1, half));
    ASSIGN_OR_FAIL(Val product, multiply(s, {low, high}));
    if (size % 2) {
      ASSIGN_OR_FAIL(Val last, strided(s, y, axis, size - 1, 1, 1));
      ASSIGN_OR_FAIL(product, concat(s, {product, last}, axis));
    }
    y = product;
  }
  return y;
}

//===----------------------------------------------------------------------===//
// Running values
//===----------------------------------------------------------------------===//

/// Combines all tensors of `x` up to each element along `axis` with `join`, by
/// doubling: after a step of width w, each element covers the last 2w.
using JoinFn = llvm::function_ref<FailureOr<SmallVector<Val>>(
    ArrayRef<Val> earlier, ArrayRef<Val> later)>;
static FailureOr<SmallVector<Val>> running(Site &s, ArrayRef<Val> x,
                                           int64_t axisAttr, JoinFn join) {
  SmallVector<Val> y(x);
  if (x[0].dims.empty())
    return y;
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x[0].rank()));
  const int64_t size = x[0].dims[axis];
  for (int64_t width = 1; width < size; width *= 2) {
    SmallVector<Val> first, earlier, later;
    for (const Val &v : y) {
      ASSIGN_OR_FAIL(Val head, strided(s, v, axis, 0, 1, width));
      ASSIGN_OR_FAIL(Val before, strided(s, v, axis, 0, 1, size - width));
      ASSIGN_OR_FAIL(Val behind, strided(s, v, axis, width, 1, size - width));
      first.push_back(head);
      earlier.push_back(before);
      later.push_back(behind);
    }
    ASSIGN_OR_FAIL(SmallVector<Val> joined, join(earlier, later));
    for (auto [v, head, tail] : llvm::zip(y, first, joined)) {
      ASSIGN_OR_FAIL(v, concat(s, {head, tail}, axis));
    }
  }
  return y;
}

FailureOr<Val> tmc::frontend::runningProduct(Site &s, const Val &x,
                                             int64_t axis) {
  auto join = [&](ArrayRef<Val> earlier,
                  ArrayRef<Val> later) -> FailureOr<SmallVector<Val>> {
    ASSIGN_OR_FAIL(Val product, multiply(s, {earlier[0], later[0]}));
    return SmallVector<Val>{product};
  };
  ASSIGN_OR_FAIL(SmallVector<Val> y, running(s, {x}, axis, join));
  return y[0];
}

FailureOr<Val> tmc::frontend::runningLogSum(Site &s, const Val &x,
                                            int64_t axis) {
  auto join = [&](ArrayRef<Val> earlier,
                  ArrayRef<Val> later) -> FailureOr<SmallVector<Val>> {
    Expression a(s, earlier[0]), b(s, later[0]);
    ASSIGN_OR_FAIL(Val sum, logSumOf(a, b, M_E).value());
    return SmallVector<Val>{sum};
  };
  ASSIGN_OR_FAIL(SmallVector<Val> y, running(s, {x}, axis, join));
  return y[0];
}

FailureOr<Ordered> tmc::frontend::runningExtreme(Site &s, const Val &x,
                                                 int64_t axisAttr,
                                                 bool isLargest) {
  if (x.dims.empty())
    return Ordered{x, number(0)};
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x.rank()));
  auto join = [&](ArrayRef<Val> earlier,
                  ArrayRef<Val> later) -> FailureOr<SmallVector<Val>> {
    ASSIGN_OR_FAIL(Val isLater, isLargest
                                    ? greaterOrEqual(s, {later[0], earlier[0]})
                                    : lessOrEqual(s, {later[0], earlier[0]}));
    // A NaN stays until the end.
    if (isFloat(x.type)) {
      ASSIGN_OR_FAIL(Val isNone, isNaN(s, later[0]));
      ASSIGN_OR_FAIL(isLater, disjunction(s, {isLater, isNone}));
    }
    SmallVector<Val> chosen;
    for (auto [before, behind] : llvm::zip(earlier, later)) {
      ASSIGN_OR_FAIL(Val v, where(s, isLater, behind, before));
      chosen.push_back(v);
    }
    return chosen;
  };
  ASSIGN_OR_FAIL(SmallVector<Val> y,
                 running(s, {x, Val(iota(x.dims, axis))}, axis, join));
  return Ordered{y[0], y[1]};
}

//===----------------------------------------------------------------------===//
// Quantiles
//===----------------------------------------------------------------------===//

/// The weight of the next element at a place between two, 0 to 1.
static double shareOf(double fraction, bool isBelowOdd, Between how) {
  switch (how) {
  case Between::Linear:
    return fraction;
  case Between::Lower:
    return 0;
  case Between::Higher:
    return fraction > 0 ? 1 : 0;
  case Between::Midpoint:
    return fraction > 0 ? 0.5 : 0;
  case Between::Nearest: // Halves go to the even index.
    return fraction > 0.5 || (fraction == 0.5 && isBelowOdd) ? 1 : 0;
  }
  return fraction;
}

FailureOr<SmallVector<Val>> tmc::frontend::quantiles(Site &s, const Val &x,
                                                     int64_t axis,
                                                     ArrayRef<double> at,
                                                     Between how) {
  if (failed(checkFloats(s, x)))
    return failure();
  int64_t size = x.dims.empty() ? 1 : x.dims[axis];
  if (size < 1)
    return s.error("a quantile of shape " + str(x.dims));
  ASSIGN_OR_FAIL(Ordered sorted, ordered(s, x, axis, size, false));
  auto element = [&](int64_t place) -> FailureOr<Val> {
    return x.dims.empty() ? x : strided(s, sorted.values, axis, place, 1, 1);
  };
  SmallVector<Val> results;
  for (double share : at) {
    if (!(share >= 0 && share <= 1))
      return s.error("a quantile at " + std::to_string(share));
    double place = share * static_cast<double>(size - 1);
    int64_t below = static_cast<int64_t>(place);
    double next = shareOf(place - static_cast<double>(below), below % 2, how);
    if (next == 1) {
      ++below;
      next = 0;
    }
    ASSIGN_OR_FAIL(Val low, element(below));
    if (next == 0) {
      results.push_back(low);
      continue;
    }
    ASSIGN_OR_FAIL(Val high, element(below + 1));
    Expression a(s, low), b(s, high);
    ASSIGN_OR_FAIL(Val y, (a + (b - a) * next).value());
    results.push_back(y);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::histogram(Site &s, const Val &x, int64_t bins,
                                        double low, double high) {
  auto count = checkedNumElements(x.dims);
  auto pairs = count ? checkedMul(*count, bins) : std::nullopt;
  if (bins < 1 || !pairs || !(low < high))
    return s.unsupported(Twine(bins) + " bins of shape " + str(x.dims));
  ElementType type = x.type;
  auto splat = [&](double value) { return Val(Array::splat(type, {}, value)); };
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(Val row, reshaped(s, x, {1, *count}));
  // The last bin includes its upper end.
  ASSIGN_OR_FAIL(Val apart, subtract(s, {row, splat(low)}));
  ASSIGN_OR_FAIL(Val place, multiply(s, {apart, splat(bins / (high - low))}));
  ASSIGN_OR_FAIL(place, minimum(s, {place, splat(bins)}));
  ASSIGN_OR_FAIL(Val from, castTo(s, Val(iota({bins, 1}, 0)), type));
  ASSIGN_OR_FAIL(Val to, add(s, {from, splat(1)}));
  Array isLastBin =
      mapInts(ElementType::Bool, {iota({bins, 1}, 0)},
              [&](Ints i) -> int64_t { return i[0] == bins - 1; });
  ASSIGN_OR_FAIL(Val isTop, equals(s, {place, splat(bins)}));
  ASSIGN_OR_FAIL(isTop, conjunction(s, {isTop, Val(isLastBin)}));
  ASSIGN_OR_FAIL(Val isAbove, greaterOrEqual(s, {place, from}));
  ASSIGN_OR_FAIL(Val isBelow, less(s, {place, to}));
  ASSIGN_OR_FAIL(Val isIn, conjunction(s, {isAbove, isBelow}));
  ASSIGN_OR_FAIL(isIn, disjunction(s, {isIn, isTop}));
  ASSIGN_OR_FAIL(Val isWithin, lessOrEqual(s, {row, splat(high)}));
  ASSIGN_OR_FAIL(isIn, conjunction(s, {isIn, isWithin}));
  ASSIGN_OR_FAIL(Val ones, castTo(s, isIn, type));
  return reduced(s, ones, nn::ReduceKind::Sum, 1, false);
}
