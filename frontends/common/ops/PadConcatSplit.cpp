#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Gather.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

FailureOr<Val> tmc::frontend::strided(Site &s, const Val &x, int64_t dim,
                                      int64_t start, int64_t step,
                                      int64_t length) {
  if (start == 0 && step == 1 && length == x.dims[dim])
    return x;
  if (x.isConst()) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    return Val(array.sliced(dim, start, step, length));
  }
  if (length == 0) {
    Dims none(x.dims);
    none[dim] = 0;
    return Val(Array::splat(x.type, none, 0));
  }
  if (step < 0) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < length; ++i)
      places.push_back(start + i * step);
    return gather(
        s, x, Val(Array::ofInts(ElementType::I64, {length}, std::move(places))),
        dim);
  }
  Dims dims(x.dims), offsets(x.rank(), 0), steps(x.rank(), 1);
  dims[dim] = length;
  offsets[dim] = start;
  steps[dim] = step;
  auto type = RankedTensorType::get(
      dims, cast<RankedTensorType>(x.value.getType()).getElementType());
  return Val(nn::SliceOp::create(s.b, s.loc, type, x.value, offsets, steps));
}

FailureOr<Val> tmc::frontend::slice(Site &s, const Val &x, int64_t axis,
                                    int64_t start, int64_t end, int64_t step) {
  int64_t size = x.dims[axis];
  if (step == 0 || step == INT64_MIN)
    return s.error("a step of " + Twine(step));
  // Ends may be INT64_MAX or INT64_MIN: clamp before any arithmetic.
  auto clamp = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0)
      at = at < -size ? low - 1 : at + size;
    return std::clamp(at, low, high);
  };
  int64_t length;
  int64_t from;
  if (step > 0) {
    from = clamp(start, 0, size);
    int64_t to = clamp(end, 0, size);
    length = to > from ? (to - from - 1) / step + 1 : 0;
  } else {
    from = clamp(start, -1, size - 1);
    int64_t to = clamp(end, -1, size - 1);
    length = from > to ? (from - to - 1) / -step + 1 : 0;
  }
  // If one element is left, the direction doesn't matter.
  return strided(s, x, axis, from, length <= 1 ? 1 : step, length);
}

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

FailureOr<Val> tmc::frontend::concat(Site &s, ArrayRef<Val> parts,
                                     int64_t axisAttr) {
  if (parts.empty())
    return s.error("has no inputs");
  ASSIGN_OR_FAIL(int64_t axis, s.axis(axisAttr, parts[0].rank()));
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  bool constant = true;
  for (const Val &part : parts) {
    if (part.kind != Val::Tensor && part.kind != Val::Const)
      return s.error("joins something that is no tensor");
    Dims other = part.dims;
    if (part.rank() == static_cast<int64_t>(dims.size()))
      other[axis] = dims[axis];
    auto sum = part.rank() > axis ? checkedAdd(dims[axis], part.dims[axis])
                                  : std::nullopt;
    if (other != dims || part.type != parts[0].type || !sum)
      return s.error("tensors of shape " + str(parts[0].dims) + " and " +
                     str(part.dims) + " can't lie side by side along axis " +
                     Twine(axis));
    dims[axis] = *sum;
    constant &= part.isConst();
  }
  auto count = checkedNumElements(dims);
  if (constant && count && *count <= kMaxFoldElements) {
    // One row per index of the dimensions before `axis`.
    int64_t outer = 1;
    for (int64_t i = 0; i < axis; ++i)
      outer *= dims[i];
    std::vector<int64_t> ints;
    std::vector<double> floats;
    bool isFloats = isFloat(parts[0].type);
    SmallVector<std::vector<int64_t>> intParts;
    SmallVector<std::vector<double>> floatParts;
    for (const Val &part : parts) {
      ASSIGN_OR_FAIL(Array array, s.arrayOf(part));
      if (isFloats)
        floatParts.push_back(array.floats());
      else
        intParts.push_back(array.ints());
    }
    auto join = [&](auto &out, auto &from) {
      out.reserve(*count);
      for (int64_t row = 0; row < outer; ++row)
        for (auto &part : from) {
          int64_t chunk = part.size() / std::max<int64_t>(outer, 1);
          out.insert(out.end(), part.begin() + row * chunk,
                     part.begin() + (row + 1) * chunk);
        }
    };
    if (isFloats) {
      join(floats, floatParts);
      return Val(Array::ofFloats(parts[0].type, dims, std::move(floats)));
    }
    join(ints, intParts);
    return Val(
        Array::ofInts(parts[0].type, dims, std::move(ints)).compressed());
  }
  if (count && *count == 0)
    return Val(Array::splat(parts[0].type, dims, 0));
  SmallVector<Value> values;
  for (const Val &part : parts)
    if (part.dims[axis] != 0) {
      ASSIGN_OR_FAIL(Value value, s.materialise(part));
      values.push_back(value);
    }
  if (values.size() == 1)
    return Val(values[0]);
  return Val(nn::ConcatOp::create(s.b, s.loc, values, axis));
}

FailureOr<Val> tmc::frontend::pad(Site &s, const Val &x, Dims low, Dims high,
                                  double fill) {
  Val result = x;
  // Negative padding cuts.
  for (int64_t d = 0; d < x.rank(); ++d) {
    int64_t cutLow = std::max<int64_t>(-low[d], 0);
    int64_t cutHigh = std::max<int64_t>(-high[d], 0);
    if (!fitsWithin(cutLow, cutHigh, result.dims[d]))
      return s.error("cuts shape " + str(x.dims) + " by " + str(low) + " and " +
                     str(high));
    ASSIGN_OR_FAIL(result, strided(s, result, d, cutLow, 1,
                                   result.dims[d] - cutLow - cutHigh));
    low[d] = std::max<int64_t>(low[d], 0);
    high[d] = std::max<int64_t>(high[d], 0);
  }
  Dims dims = result.dims;
  bool any = false;
  for (int64_t d = 0; d < x.rank(); ++d) {
    auto sum = checkedAdd(low[d], high[d]);
    sum = sum ? checkedAdd(*sum, dims[d]) : sum;
    if (!sum)
      return s.error("pads by " + str(low) + " and " + str(high));
    any |= low[d] || high[d];
    dims[d] = *sum;
  }
  if (!any)
    return result;
  if (!checkedNumElements(dims))
    return s.error("the number of elements is too large");
  if (fill == 0 && result.isTensor()) {
    auto type = RankedTensorType::get(
        dims, nn::tensorType(result.value).getElementType());
    return Val(nn::PadOp::create(s.b, s.loc, type, result.value, low,
                                 Dims(x.rank(), 1)));
  }
  // Another value, or constants: concatenates pieces, one dimension at a time.
  for (int64_t d = 0; d < x.rank(); ++d) {
    SmallVector<Val> parts;
    auto piece = [&](int64_t length) {
      Dims shape = result.dims;
      shape[d] = length;
      if (length)
        parts.push_back(Val(Array::splat(x.type, shape, fill)));
    };
    piece(low[d]);
    parts.push_back(result);
    piece(high[d]);
    if (parts.size() > 1) {
      ASSIGN_OR_FAIL(result, concat(s, parts, d));
    }
  }
  return result;
}
/// The index of the element at `at`, which may lie outside [0, size).
static int64_t mirrored(int64_t at, int64_t size, PadMode mode) {
  if (mode == PadMode::Edge)
    return std::clamp<int64_t>(at, 0, size - 1);
  if (mode == PadMode::Wrap)
    return ((at % size) + size) % size;
  // Reflection with period 2 (size - 1): the ends aren't repeated.
  int64_t period = std::max<int64_t>(2 * (size - 1), 1);
  at = ((at % period) + period) % period;
  return at < size ? at : period - at;
}

FailureOr<Val> tmc::frontend::padWithSelf(Site &s, const Val &x, Dims low,
                                          Dims high, PadMode mode) {
  Val result = x;
  for (int64_t d = 0; d < x.rank(); ++d) {
    int64_t size = x.dims[d];
    auto total = checkedAdd(low[d], high[d]);
    total = total ? checkedAdd(*total, size) : total;
    if (!total || *total < 0 || *total > kMaxFoldElements ||
        (*total && size == 0))
      return s.error("pads shape " + str(x.dims) + " by " + str(low) + " and " +
                     str(high));
    if (low[d] == 0 && high[d] == 0)
      continue;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < *total; ++i)
      places.push_back(mirrored(i - low[d], size, mode));
    ASSIGN_OR_FAIL(result, gather(s, result,
                                  Val(Array::ofInts(ElementType::I64, {*total},
                                                    std::move(places))),
                                  d));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Cut apart
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Val>> tmc::frontend::cut(Site &s, const Val &x,
                                               int64_t axis,
                                               ArrayRef<int64_t> lengths) {
  int64_t at = 0;
  SmallVector<Val> pieces;
  for (int64_t length : lengths) {
    if (!fitsWithin(at, length, x.dims[axis]))
      return s.error("cuts " + Twine(x.dims[axis]) + " elements into " +
                     str(lengths));
    ASSIGN_OR_FAIL(Val piece, strided(s, x, axis, at, 1, length));
    pieces.push_back(piece);
    at += length;
  }
  if (at != x.dims[axis])
    return s.error("cuts " + Twine(x.dims[axis]) + " elements into " +
                   str(lengths));
  return pieces;
}

FailureOr<Dims> tmc::frontend::evenPieces(Site &s, int64_t total,
                                          int64_t length) {
  constexpr int64_t kMostPieces = int64_t(1) << 16;
  if (total / length > kMostPieces)
    return s.unsupported("a split into " + Twine(total / length) + " pieces");
  Dims lengths;
  for (int64_t left = total; left > 0; left -= length)
    lengths.push_back(std::min(left, length));
  return lengths;
}

Val tmc::frontend::sequenceOf(ArrayRef<Val> elements) {
  Val v;
  v.kind = Val::Sequence;
  v.elements.assign(elements.begin(), elements.end());
  return v;
}
