#include "frontends/common/ops/Order.h"
#include "frontends/Checked.h"
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

/// For each row of `values` of `size` elements, its places in order.
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

/// The places of the first `count` elements of a constant in order.
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
  // Where nothing equals the best one, something isn't a number.
  ASSIGN_OR_FAIL(Val place, where(s, isBest, counting(x.dims, axis),
                                  number(isLast ? 0 : size - 1)));
  return reduced(s, place, isLast ? nn::ReduceKind::Max : nn::ReduceKind::Min,
                 axis, true);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// How many elements along `axis` come before each one.
static FailureOr<Val> ranks(Site &s, const Val &x, int64_t axis,
                            bool isDescending) {
  int64_t size = x.dims[axis];
  // [.., I, J, ..]: I for each element, J for those that may come before it.
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

/// By halves, so that a sum of logarithms takes as few roundings.
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

/// By doubling: after a step of width w, each element is the product of the
/// last 2w.
FailureOr<Val> tmc::frontend::runningProduct(Site &s, const Val &x,
                                             int64_t axisAttr) {
  if (x.dims.empty())
    return x;
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, x.rank()));
  Val y = x;
  for (int64_t width = 1; width < x.dims[axis]; width *= 2) {
    int64_t rest = x.dims[axis] - width;
    ASSIGN_OR_FAIL(Val first, strided(s, y, axis, 0, 1, width));
    ASSIGN_OR_FAIL(Val earlier, strided(s, y, axis, 0, 1, rest));
    ASSIGN_OR_FAIL(Val later, strided(s, y, axis, width, 1, rest));
    ASSIGN_OR_FAIL(Val product, multiply(s, {earlier, later}));
    ASSIGN_OR_FAIL(y, concat(s, {first, product}, axis));
  }
  return y;
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
  // The last bin holds its upper end.
  ASSIGN_OR_FAIL(Val apart, subtract(s, {row, splat(low)}));
  ASSIGN_OR_FAIL(Val place, multiply(s, {apart, splat(bins / (high - low))}));
  ASSIGN_OR_FAIL(place, minimum(s, {place, splat(bins)}));
  ASSIGN_OR_FAIL(Val from, castTo(s, Val(iota({bins, 1}, 0)), type));
  ASSIGN_OR_FAIL(Val to, add(s, {from, splat(1)}));
  Array isLastBin =
      Array::mapInts(ElementType::Bool, {iota({bins, 1}, 0)},
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
