#include "frontends/common/ops/Scatter.h"
#include "frontends/Checked.h"
#include "frontends/common/Importer.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Shape.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

namespace {
/// Rows of `data` [R, ...], `updates` [N, ...], and their places [N] in `data`.
struct Rows {
  Val data, places, updates;
  int64_t count() const { return data.dims[0]; }
  int64_t inner() const {
    int64_t size = 1;
    for (int64_t dim : ArrayRef<int64_t>(data.dims).drop_front())
      size *= dim;
    return size;
  }
};
} // namespace

template <typename T> static T join(T old, T update, Joining how) {
  switch (how) {
  case Joining::Replace:
    return update;
  case Joining::Add:
  case Joining::Mean: // The division comes at the end.
    return old + update;
  case Joining::Multiply:
    return old * update;
  case Joining::Max:
    return std::max(old, update);
  case Joining::Min:
    return std::min(old, update);
  }
  return update;
}

template <typename T>
static std::vector<T> joined(std::vector<T> data, const std::vector<T> &updates,
                             ArrayRef<int64_t> places, int64_t inner,
                             Joining how, bool withOld) {
  std::vector<int64_t> count(data.size(), withOld);
  for (auto [n, place] : llvm::enumerate(places))
    for (int64_t k = 0; k < inner; ++k) {
      int64_t at = place * inner + k;
      const T &update = updates[n * inner + k];
      data[at] = count[at]++ ? join(data[at], update, how) : update;
    }
  if (how == Joining::Mean)
    for (auto [value, elements] : llvm::zip(data, count))
      value /= std::max<int64_t>(elements, 1);
  return data;
}

/// Known places, as non-negative indices.
static FailureOr<std::vector<int64_t>> knownPlaces(Site &s, const Rows &rows) {
  ASSIGN_OR_FAIL(Array array, s.arrayOf(rows.places));
  std::vector<int64_t> list = array.ints();
  for (int64_t &at : list) {
    if (at < -rows.count() || at >= rows.count())
      return s.error("writes entry " + Twine(at) + " of " +
                     Twine(rows.count()));
    if (at < 0)
      at += rows.count();
  }
  return list;
}

static FailureOr<Val> fold(Site &s, const Rows &rows, Joining how,
                           bool withOld) {
  ASSIGN_OR_FAIL(std::vector<int64_t> places, knownPlaces(s, rows));
  ASSIGN_OR_FAIL(Array data, s.arrayOf(rows.data));
  ASSIGN_OR_FAIL(Array updates, s.arrayOf(rows.updates));
  if (isFloat(data.type()))
    return Val(Array::ofFloats(data.type(), data.dims(),
                               joined(data.floats(), updates.floats(), places,
                                      rows.inner(), how, withOld)));
  return Val(Array::ofInts(data.type(), data.dims(),
                           joined(data.ints(), updates.ints(), places,
                                  rows.inner(), how, withOld))
                 .compressed());
}

/// The table of sums: row i is the sum of the updates with place i.
static FailureOr<Value> sums(Site &s, const Rows &rows, Value ids,
                             const Val &updates) {
  ASSIGN_OR_FAIL(Value values, s.materialise(updates));
  auto type = nn::tensorType(values);
  Dims dims(type.getShape());
  dims[0] = rows.count();
  return Value(nn::EmbeddingGradOp::create(
      s.b, s.loc, s.tensorType(dims, type.getElementType()), ids, values,
      Value()));
}

/// The rows of `data`, followed by those of `updates`, at the indices `chosen`
/// [R].
static FailureOr<Val> chooseRows(Site &s, const Rows &rows, const Val &chosen) {
  ASSIGN_OR_FAIL(Val both, concat(s, {rows.data, rows.updates}, 0));
  return gather(s, both, chosen, 0);
}

/// For each row, R + the index of the update that is written there; its own
/// index if there is none.
static FailureOr<Val> writers(Site &s, const Rows &rows, Value ids) {
  int64_t size = rows.count(), updates = rows.updates.dims[0];
  std::vector<double> numbers;
  for (int64_t i = 1; i <= updates; ++i)
    numbers.push_back(i);
  ASSIGN_OR_FAIL(Value table,
                 sums(s, rows, ids,
                      Val(Array::ofFloats(ElementType::F32, {updates},
                                          std::move(numbers)))));
  // Two updates of one place could sum to an invalid index.
  Value writer =
      arith::MinimumFOp::create(s.b, s.loc, table, s.like(table, updates));
  ASSIGN_OR_FAIL(Val number, castTo(s, Val(writer), ElementType::I64));
  Val before(iota({size}, 0));
  ASSIGN_OR_FAIL(
      Val after,
      add(s, {number, Val(Array::splatInt(ElementType::I64, {}, size - 1))}));
  ASSIGN_OR_FAIL(
      Val isWritten,
      greater(s, {number, Val(Array::splatInt(ElementType::I64, {}, 0))}));
  return where(s, isWritten, after, before);
}

/// The number of updates of each row, as a column.
static FailureOr<Val> hits(Site &s, const Rows &rows, Value ids) {
  Val ones(Array::splat(ElementType::F32, {rows.updates.dims[0]}, 1));
  ASSIGN_OR_FAIL(Value count, sums(s, rows, ids, ones));
  Dims column(rows.data.rank(), 1);
  column[0] = rows.count();
  return reshaped(s, Val(count), column);
}

/// True for rows with updates.
static FailureOr<Val> isWritten(Site &s, const Rows &rows, Value ids) {
  ASSIGN_OR_FAIL(Val count, hits(s, rows, ids));
  return greater(s, {count, Val(Array::splat(ElementType::F32, {}, 0))});
}

/// Sums, means, or one update for each row, for floats.
static FailureOr<Val> bySums(Site &s, const Rows &rows, Joining how,
                             bool withOld) {
  ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, rows.places));
  // Rows are summed at least in f32.
  bool isNarrow = sizeInFile(rows.data.type) < 4;
  Val updates = rows.updates;
  if (isNarrow) {
    ASSIGN_OR_FAIL(updates, castTo(s, updates, ElementType::F32));
  }
  ASSIGN_OR_FAIL(Value table, sums(s, rows, ids, updates));
  ASSIGN_OR_FAIL(Val sum, castTo(s, Val(table), rows.data.type));
  if (how == Joining::Add && withOld) {
    ASSIGN_OR_FAIL(std::optional<int64_t> same, uniformValue(s, rows.data));
    if (same == 0) {
      ASSIGN_OR_FAIL(Array old, s.arrayOf(rows.data));
      if (old.compressed().broadcastTo(rows.data.dims).floats()[0] == 0)
        return sum;
    }
    return add(s, {rows.data, sum});
  }
  if (how == Joining::Mean) {
    ASSIGN_OR_FAIL(Val count, hits(s, rows, ids));
    ASSIGN_OR_FAIL(count, castTo(s, count, rows.data.type));
    Expression elements(s, count), total(s, sum), old(s, rows.data);
    if (withOld)
      return ((old + total) / (elements + 1)).value();
    Expression isNone = elements == 0;
    return old.when(isNone, total / elements.number(1).when(isNone, elements))
        .value();
  }
  ASSIGN_OR_FAIL(Val mask, isWritten(s, rows, ids));
  return where(s, mask, sum, rows.data);
}

namespace {
/// All updates for all rows: [R, N, ...].
struct Table {
  Dims dims;
  Val isHere;  ///< [R, N, 1, ...]: the update's place is the row.
  Val updates; ///< [N, ...]
  /// Updates at their own rows, `none` elsewhere.
  FailureOr<Val> filled(Site &s, const Val &values, const Val &none) const {
    ASSIGN_OR_FAIL(Val wide, expand(s, values, dims));
    ASSIGN_OR_FAIL(Val chosen, where(s, isHere, wide, none));
    return expand(s, chosen, dims);
  }
};
} // namespace

static FailureOr<Table> tableOf(Site &s, const Rows &rows) {
  int64_t size = rows.count(), updates = rows.updates.dims[0];
  auto count = checkedMul(size, updates);
  if (!count || *count > kMaxFoldElements)
    return s.unsupported(Twine(updates) + " updates for " + Twine(size) +
                         " places, joined by other than sums");
  Table table;
  table.dims = {size, updates};
  table.dims.append(rows.data.dims.begin() + 1, rows.data.dims.end());
  table.updates = rows.updates;
  Dims column(table.dims.size(), 1), row = column;
  column[0] = size;
  row[1] = updates;
  ASSIGN_OR_FAIL(Val number, reshaped(s, Val(iota({size}, 0)), column));
  ASSIGN_OR_FAIL(Val places, castTo(s, rows.places, ElementType::I64));
  ASSIGN_OR_FAIL(places, reshaped(s, places, row));
  ASSIGN_OR_FAIL(table.isHere, equals(s, {number, places}));
  return table;
}

/// `data` in a form that broadcasts over a table's updates: [R, 1, ...].
static FailureOr<Val> besideTable(Site &s, const Val &data) {
  return unsqueeze(s, data, {1});
}

/// The largest or smallest of each row's updates, computed without a gradient.
/// Adding (sum of e - e) / count, over the elements e that equal it, divides
/// the gradient among them.
static FailureOr<Val> byExtremes(Site &s, const Rows &rows, Joining how,
                                 bool withOld) {
  ASSIGN_OR_FAIL(Table table, tableOf(s, rows));
  const bool isMax = how == Joining::Max;
  auto still = [&](const Val &v) {
    return s.importer.forward.detached(v, s.loc);
  };
  Val none(Array::splat(rows.data.type, {}, isMax ? -INFINITY : INFINITY));
  Val old = still(rows.data), fixed = still(rows.updates);
  ASSIGN_OR_FAIL(Val all, table.filled(s, fixed, none));
  ASSIGN_OR_FAIL(Val most, isMax ? reduceMax(s, all, Dims{1}, false)
                                 : reduceMin(s, all, Dims{1}, false));
  ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, rows.places));
  ASSIGN_OR_FAIL(Val written, isWritten(s, rows, ids));
  Expression best(s, most), kept(s, old), live(s, rows.data);
  Expression isKept = kept == best;
  if (withOld) {
    best = best.with(isMax ? maximum : minimum, kept);
    isKept = kept == best;
  } else {
    // A row without updates stays, with its gradient.
    ASSIGN_OR_FAIL(Val isLeft, negation(s, written));
    best = kept.when(Expression(s, isLeft), best);
    isKept = Expression(s, isLeft);
  }
  // An infinity minus itself is NaN.
  Expression isFinite = best.of(absolute) < HUGE_VALF;
  isKept = isKept & isFinite;
  ASSIGN_OR_FAIL(Val limit, best.value());
  ASSIGN_OR_FAIL(Val limits, besideTable(s, limit));
  Expression isBest = Expression(s, table.isHere) &
                      (Expression(s, fixed) == Expression(s, limits)) &
                      (Expression(s, limits).of(absolute) < HUGE_VALF);
  Expression zero = Expression(s, rows.updates) - Expression(s, fixed);
  ASSIGN_OR_FAIL(Val shares, zero.when(isBest, zero.number(0)).value());
  ASSIGN_OR_FAIL(shares, expand(s, shares, table.dims));
  ASSIGN_OR_FAIL(shares, reduceSum(s, shares, Dims{1}, false));
  ASSIGN_OR_FAIL(Val count, isBest.cast(rows.data.type).value());
  ASSIGN_OR_FAIL(count, expand(s, count, table.dims));
  ASSIGN_OR_FAIL(count, reduceSum(s, count, Dims{1}, false));
  Expression elements = Expression(s, count) + isKept.cast(rows.data.type);
  elements = elements.number(1).when(elements == 0, elements);
  Expression change =
      Expression(s, shares) + (live - kept).when(isKept, live.number(0));
  return (best + change / elements).value();
}

/// The products of each row's updates.
static FailureOr<Val> byProducts(Site &s, const Rows &rows, bool withOld) {
  ASSIGN_OR_FAIL(Table table, tableOf(s, rows));
  auto count = checkedNumElements(table.dims);
  if (!count || *count > kMaxFoldElements)
    return s.unsupported("products of updates of shape " +
                         str(rows.updates.dims) + " for " +
                         Twine(rows.count()) + " places");
  Val none(Array::splat(rows.data.type, {}, 1));
  ASSIGN_OR_FAIL(Val all, table.filled(s, rows.updates, none));
  ASSIGN_OR_FAIL(Val product, productAlong(s, all, 1));
  ASSIGN_OR_FAIL(product, squeeze(s, product, Dims{1}));
  if (withOld)
    return multiply(s, {rows.data, product});
  ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, rows.places));
  ASSIGN_OR_FAIL(Val written, isWritten(s, rows, ids));
  return where(s, written, product, rows.data);
}

static FailureOr<Val> scatterRows(Site &s, const Rows &rows, Joining how,
                                  bool withOld) {
  if (rows.updates.dims[0] == 0 || rows.inner() == 0)
    return rows.data;
  if (s.allFoldable({rows.data, rows.places, rows.updates}))
    return fold(s, rows, how, withOld);
  if (how == Joining::Replace && s.foldable(rows.places)) {
    ASSIGN_OR_FAIL(std::vector<int64_t> places, knownPlaces(s, rows));
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < rows.count(); ++i)
      chosen.push_back(i);
    for (auto [n, place] : llvm::enumerate(places))
      chosen[place] = rows.count() + n;
    return chooseRows(
        s, rows, Val(Array::ofInts(ElementType::I64, {rows.count()}, chosen)));
  }
  if (rows.updates.dims[0] > kMaxFoldElements)
    return s.unsupported("updates of shape " + str(rows.updates.dims));
  if (how == Joining::Replace && !isFloat(rows.data.type)) {
    ASSIGN_OR_FAIL(Value ids, materialiseIndices(s, rows.places));
    ASSIGN_OR_FAIL(Val chosen, writers(s, rows, ids));
    return chooseRows(s, rows, chosen);
  }
  if (!isFloat(rows.data.type))
    return s.unsupported("elements of type " + nameOf(rows.data.type));
  if (how == Joining::Max || how == Joining::Min)
    return byExtremes(s, rows, how, withOld);
  if (how == Joining::Multiply)
    return byProducts(s, rows, withOld);
  return bySums(s, rows, how, withOld);
}

//===----------------------------------------------------------------------===//
// Along an axis
//===----------------------------------------------------------------------===//

/// A permutation that moves `axis` to the front.
static Dims axisFirst(int64_t rank, int64_t axis) {
  Dims perm{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      perm.push_back(i);
  return perm;
}

static Dims inverse(ArrayRef<int64_t> perm) {
  Dims back(perm.size());
  for (auto [i, dim] : llvm::enumerate(perm))
    back[dim] = i;
  return back;
}

FailureOr<Val> tmc::frontend::scatterEntries(Site &s, const Val &data,
                                             const Val &indices,
                                             const Val &updates,
                                             int64_t axisAttr, Joining how,
                                             bool withOld) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, data.rank()));
  Dims expected(data.dims);
  bool fits = indices.rank() == 1 && !isFloat(indices.type);
  if (fits)
    expected[axis] = indices.dims[0];
  if (!fits || updates.dims != expected || updates.type != data.type)
    return s.error("indices of shape " + str(indices.dims) +
                   " and updates of shape " + str(updates.dims) +
                   " for a tensor of shape " + str(data.dims));
  Dims perm = axisFirst(data.rank(), axis);
  Rows rows;
  rows.places = indices;
  ASSIGN_OR_FAIL(rows.data, transpose(s, data, perm));
  ASSIGN_OR_FAIL(rows.updates, transpose(s, updates, perm));
  ASSIGN_OR_FAIL(Val y, scatterRows(s, rows, how, withOld));
  return transpose(s, y, inverse(perm));
}

/// The vector that `indices` repeats in all dimensions except `axis`; nothing
/// if `indices` varies in another.
static FailureOr<std::optional<Val>> vectorAlong(Site &s, const Val &indices,
                                                 int64_t axis) {
  std::optional<Val> none;
  if (s.foldable(indices)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(indices));
    Dims kept;
    Array part = array.compressed().unrepeated(kept);
    if (kept.size() > 1 || (kept.size() == 1 && kept[0] != axis))
      return none;
    return std::optional<Val>(
        Val(part.reshaped(kept.empty() ? Dims{1} : Dims(part.dims()))
                .broadcastTo({indices.dims[axis]})));
  }
  if (indices.rank() == 1)
    return std::optional<Val>(indices);
  if (!indices.isTensor())
    return none;
  auto wide = indices.value.getDefiningOp<nn::BroadcastOp>();
  if (wide && wide.getDims() == ArrayRef<int64_t>{axis})
    return std::optional<Val>(Val(wide.getInput()));
  return none;
}

/// The linear position in `data` of each element of `indices`.
static FailureOr<Val> flatPlaces(Site &s, const Val &data, const Val &indices,
                                 int64_t axis) {
  int64_t stride = 1;
  Dims strides(data.rank(), 1);
  for (int64_t d = data.rank(); d-- > 0; stride *= data.dims[d])
    strides[d] = stride;
  auto numbers = [](int64_t value) {
    return Val(Array::splatInt(ElementType::I64, {}, value));
  };
  ASSIGN_OR_FAIL(Val place, castTo(s, indices, ElementType::I64));
  // Negative indices count from the end.
  ASSIGN_OR_FAIL(Val isNegative, less(s, {place, numbers(0)}));
  ASSIGN_OR_FAIL(Val counted, add(s, {place, numbers(data.dims[axis])}));
  ASSIGN_OR_FAIL(place, where(s, isNegative, counted, place));
  ASSIGN_OR_FAIL(place, multiply(s, {place, numbers(strides[axis])}));
  for (int64_t d = 0; d < data.rank(); ++d)
    if (d != axis && indices.dims[d] > 1) {
      ASSIGN_OR_FAIL(Val part, multiply(s, {Val(iota(indices.dims, d)),
                                            numbers(strides[d])}));
      ASSIGN_OR_FAIL(place, add(s, {place, part}));
    }
  return place;
}

FailureOr<Val> tmc::frontend::scatterElements(Site &s, const Val &data,
                                              const Val &indices,
                                              const Val &updates,
                                              int64_t axisAttr, Joining how,
                                              bool withOld) {
  if (data.rank() == 0) {
    // A scalar is treated as a vector of one element.
    SmallVector<Val> wide;
    for (const Val *v : {&data, &indices, &updates}) {
      ASSIGN_OR_FAIL(Val row, reshaped(s, *v, {1}));
      wide.push_back(row);
    }
    ASSIGN_OR_FAIL(
        Val y, scatterElements(s, wide[0], wide[1], wide[2], 0, how, withOld));
    return reshaped(s, y, {});
  }
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, data.rank()));
  bool fits = data.rank() == indices.rank() && !isFloat(indices.type) &&
              updates.dims == indices.dims && updates.type == data.type;
  bool isWhole = true;
  for (int64_t i = 0; fits && i < data.rank(); ++i) {
    fits = i == axis || indices.dims[i] <= data.dims[i];
    isWhole &= i == axis || indices.dims[i] == data.dims[i];
  }
  if (!fits)
    return s.error("indices of shape " + str(indices.dims) +
                   " and updates of shape " + str(updates.dims) +
                   " for a tensor of shape " + str(data.dims));
  auto count = checkedNumElements(data.dims);
  auto updated = checkedNumElements(updates.dims);
  if (!count || !updated)
    return s.error("the number of elements is too large");
  if (*updated == 0)
    return data;

  Rows rows;
  ASSIGN_OR_FAIL(std::optional<Val> vector, vectorAlong(s, indices, axis));
  if (isWhole && vector) {
    Dims perm = axisFirst(data.rank(), axis);
    rows.places = *vector;
    ASSIGN_OR_FAIL(rows.data, transpose(s, data, perm));
    ASSIGN_OR_FAIL(rows.updates, transpose(s, updates, perm));
    ASSIGN_OR_FAIL(Val y, scatterRows(s, rows, how, withOld));
    return transpose(s, y, inverse(perm));
  }
  ASSIGN_OR_FAIL(rows.places, flatPlaces(s, data, indices, axis));
  ASSIGN_OR_FAIL(rows.places, reshaped(s, rows.places, {*updated}));
  ASSIGN_OR_FAIL(rows.data, reshaped(s, data, {*count}));
  ASSIGN_OR_FAIL(rows.updates, reshaped(s, updates, {*updated}));
  ASSIGN_OR_FAIL(Val y, scatterRows(s, rows, how, withOld));
  return reshaped(s, y, data.dims);
}

FailureOr<Val> tmc::frontend::scatterSlices(Site &s, const Val &data,
                                            const Val &indices,
                                            const Val &updates, Joining how) {
  int64_t depth = indices.rank() ? indices.dims.back() : 0;
  bool fits = depth >= 1 && depth <= data.rank() && !isFloat(indices.type) &&
              updates.type == data.type;
  Dims expected, flat{1}, chosen{1};
  if (fits) {
    expected = Dims(ArrayRef<int64_t>(indices.dims).drop_back());
    expected.append(data.dims.begin() + depth, data.dims.end());
  }
  if (!fits || updates.dims != expected)
    return s.error("indices of shape " + str(indices.dims) +
                   " and updates of shape " + str(updates.dims) +
                   " for a tensor of shape " + str(data.dims));
  auto before =
      checkedNumElements(ArrayRef<int64_t>(data.dims).take_front(depth));
  auto written =
      checkedNumElements(ArrayRef<int64_t>(indices.dims).drop_back());
  if (!before || !written || !checkedNumElements(data.dims) ||
      !checkedNumElements(updates.dims))
    return s.error("the number of elements is too large");
  flat[0] = *before;
  chosen[0] = *written;
  flat.append(data.dims.begin() + depth, data.dims.end());
  chosen.append(data.dims.begin() + depth, data.dims.end());
  Rows rows;
  ASSIGN_OR_FAIL(rows.places, slicePlaces(s, data.dims, indices));
  ASSIGN_OR_FAIL(rows.places, reshaped(s, rows.places, {*written}));
  ASSIGN_OR_FAIL(rows.data, reshaped(s, data, flat));
  ASSIGN_OR_FAIL(rows.updates, reshaped(s, updates, chosen));
  ASSIGN_OR_FAIL(Val y, scatterRows(s, rows, how, true));
  return reshaped(s, y, data.dims);
}

FailureOr<Val> tmc::frontend::replaceSlice(Site &s, const Val &data,
                                           const Val &piece, int64_t axisAttr,
                                           int64_t start, int64_t step) {
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, data.rank()));
  Dims expected(data.dims);
  int64_t length = piece.rank() > axis ? piece.dims[axis] : 0;
  expected[axis] = length;
  if (piece.dims != expected || piece.type != data.type || start < 0 ||
      step < 1 || (length && start + (length - 1) * step >= data.dims[axis]))
    return s.error("writes shape " + str(piece.dims) + " into shape " +
                   str(data.dims));
  if (length == 0)
    return data;
  if (length == data.dims[axis])
    return piece;
  if (step != 1) {
    ASSIGN_OR_FAIL(Val places, range(s, ElementType::I64, start,
                                     start + (length - 1) * step + 1, step));
    return scatterEntries(s, data, places, piece, axis, Joining::Replace);
  }
  SmallVector<Val> parts;
  if (start) {
    ASSIGN_OR_FAIL(Val low, strided(s, data, axis, 0, 1, start));
    parts.push_back(low);
  }
  parts.push_back(piece);
  if (int64_t rest = data.dims[axis] - start - length) {
    ASSIGN_OR_FAIL(Val high, strided(s, data, axis, start + length, 1, rest));
    parts.push_back(high);
  }
  return concat(s, parts, axis);
}
