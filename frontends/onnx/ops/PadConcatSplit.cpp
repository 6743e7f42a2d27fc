// PadConcatSplit.cpp - tensors side by side, cut apart and padded, and
// sequences, which exist at import only.

#include "frontends/Checked.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// `x` from `start` in steps of `step`, `length` elements along `dim`.
static FailureOr<Val> slice(Node &n, const Val &x, int64_t dim, int64_t start,
                            int64_t step, int64_t length) {
  if (start == 0 && step == 1 && length == x.dims[dim])
    return x;
  if (x.isConst()) {
    ASSIGN_OR_FAIL(Array array, n.arrayOf(x));
    return Val(array.sliced(dim, start, step, length));
  }
  if (step < 0)
    return n.unsupported("a slice that runs backwards");
  Dims dims(x.dims), offsets(x.rank(), 0), steps(x.rank(), 1);
  dims[dim] = length;
  offsets[dim] = start;
  steps[dim] = step;
  auto type = RankedTensorType::get(
      dims, cast<RankedTensorType>(x.value.getType()).getElementType());
  return Val(nn::SliceOp::create(n.b, n.loc, type, x.value, offsets, steps));
}

static LogicalResult importSlice(Node &n) {
  const Val &x = n.input(0);
  ASSIGN_OR_FAIL(Dims starts, n.ints(1));
  ASSIGN_OR_FAIL(Dims ends, n.ints(2));
  Dims axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i)
    axes.push_back(i);
  if (n.has(3)) {
    ASSIGN_OR_FAIL(axes, n.ints(3));
  }
  if (n.has(4)) {
    ASSIGN_OR_FAIL(steps, n.ints(4));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    return n.error("has " + Twine(starts.size()) + " starts, " +
                   Twine(ends.size()) + " ends, " + Twine(axes.size()) +
                   " axes and " + Twine(steps.size()) + " steps");
  Val result = x;
  for (auto [start, end, entry, step] : llvm::zip(starts, ends, axes, steps)) {
    ASSIGN_OR_FAIL(int64_t axis, n.axis(entry, x.rank()));
    int64_t size = result.dims[axis];
    if (step == 0 || step == INT64_MIN)
      return n.error("a step of " + Twine(step));
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
    if (length == 0 && !result.isConst())
      return n.unsupported("an empty slice of shape " + str(result.dims));
    // Where one element is left, the direction doesn't matter.
    ASSIGN_OR_FAIL(
        result, slice(n, result, axis, from, length <= 1 ? 1 : step, length));
  }
  return n.set(result);
}
static Register sliceOp("Slice", importSlice);

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

static FailureOr<Val> concat(Node &n, ArrayRef<Val> parts, int64_t axisAttr) {
  if (parts.empty())
    return n.error("has no inputs");
  ASSIGN_OR_FAIL(int64_t axis, n.axis(axisAttr, parts[0].rank()));
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  bool constant = true;
  for (const Val &part : parts) {
    if (part.kind != Val::Tensor && part.kind != Val::Const)
      return n.error("joins something that is no tensor");
    Dims other = part.dims;
    if (part.rank() == static_cast<int64_t>(dims.size()))
      other[axis] = dims[axis];
    auto sum = part.rank() > axis ? checkedAdd(dims[axis], part.dims[axis])
                                  : std::nullopt;
    if (other != dims || part.type != parts[0].type || !sum)
      return n.error("tensors of shape " + str(parts[0].dims) + " and " +
                     str(part.dims) + " can't lie side by side along axis " +
                     Twine(axis));
    dims[axis] = *sum;
    constant &= part.isConst();
  }
  auto count = checkedNumElements(dims);
  if (constant && count && *count <= kMaxFoldElements) {
    // Row by row of the dimensions before `axis`.
    int64_t outer = 1;
    for (int64_t i = 0; i < axis; ++i)
      outer *= dims[i];
    std::vector<int64_t> ints;
    std::vector<double> floats;
    bool isFloats = isFloat(parts[0].type);
    SmallVector<std::vector<int64_t>> intParts;
    SmallVector<std::vector<double>> floatParts;
    for (const Val &part : parts) {
      ASSIGN_OR_FAIL(Array array, n.arrayOf(part));
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
  SmallVector<Value> values;
  for (const Val &part : parts)
    if (part.dims[axis] != 0) {
      ASSIGN_OR_FAIL(Value value, n.materialise(part));
      values.push_back(value);
    }
  if (values.size() == 1)
    return Val(values[0]);
  return Val(nn::ConcatOp::create(n.b, n.loc, values, axis));
}

static LogicalResult importConcat(Node &n) {
  ASSIGN_OR_FAIL(Val joined, concat(n, inputsOf(n), n.intAttr("axis", 0)));
  return n.set(joined);
}
static Register concatOp("Concat", importConcat);

static LogicalResult importPad(Node &n) {
  const Val x = n.input(0);
  std::string mode = n.stringAttr("mode", "constant");
  if (mode != "constant")
    return n.unsupported("padding by mode '" + mode + "'");
  ASSIGN_OR_FAIL(Dims pads, n.ints(1));
  Dims axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    axes.push_back(i);
  if (n.has(3)) {
    ASSIGN_OR_FAIL(axes, n.ints(3));
  }
  if (pads.size() != 2 * axes.size())
    return n.error("has " + Twine(pads.size()) + " pads for " +
                   Twine(axes.size()) + " axes");
  Array fill = Array::splat(x.type, {}, 0);
  if (n.has(2)) {
    ASSIGN_OR_FAIL(fill, n.array(2));
    fill = fill.reshaped({}).cast(x.type);
  }
  bool zero = fill.floats()[0] == 0;
  Dims low(x.rank(), 0), high(x.rank(), 0);
  for (auto [i, entry] : llvm::enumerate(axes)) {
    ASSIGN_OR_FAIL(int64_t axis, n.axis(entry, x.rank()));
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  Val result = x;
  // Negative pads cut.
  for (int64_t d = 0; d < x.rank(); ++d) {
    int64_t cutLow = std::max<int64_t>(-low[d], 0);
    int64_t cutHigh = std::max<int64_t>(-high[d], 0);
    if (!fitsWithin(cutLow, cutHigh, result.dims[d]))
      return n.error("cuts shape " + str(x.dims) + " by " + str(pads));
    ASSIGN_OR_FAIL(result, slice(n, result, d, cutLow, 1,
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
      return n.error("pads by " + str(pads));
    any |= low[d] || high[d];
    dims[d] = *sum;
  }
  if (!any)
    return n.set(result);
  if (!checkedNumElements(dims))
    return n.error("the number of elements is too large");
  if (zero && result.isTensor()) {
    auto type = RankedTensorType::get(
        dims, nn::tensorType(result.value).getElementType());
    return n.set(nn::PadOp::create(n.b, n.loc, type, result.value, low,
                                   Dims(x.rank(), 1)));
  }
  // Another value, or constants: pieces side by side, one dimension at a time.
  for (int64_t d = 0; d < x.rank(); ++d) {
    SmallVector<Val> parts;
    auto piece = [&](int64_t length) {
      Dims shape = result.dims;
      shape[d] = length;
      if (length)
        parts.push_back(Val(fill.broadcastTo(shape)));
    };
    piece(low[d]);
    parts.push_back(result);
    piece(high[d]);
    if (parts.size() > 1) {
      ASSIGN_OR_FAIL(result, concat(n, parts, d));
    }
  }
  return n.set(result);
}
static Register pad("Pad", importPad);

//===----------------------------------------------------------------------===//
// Cut apart
//===----------------------------------------------------------------------===//

/// The pieces of `x` along `axis` with these lengths.
static FailureOr<SmallVector<Val>> cut(Node &n, const Val &x, int64_t axis,
                                       ArrayRef<int64_t> lengths) {
  int64_t at = 0;
  SmallVector<Val> pieces;
  for (int64_t length : lengths) {
    if (!fitsWithin(at, length, x.dims[axis]))
      return n.error("cuts " + Twine(x.dims[axis]) + " elements into " +
                     str(lengths));
    if (length == 0 && !x.isConst())
      return n.unsupported("an empty piece of shape " + str(x.dims));
    ASSIGN_OR_FAIL(Val piece, slice(n, x, axis, at, 1, length));
    pieces.push_back(piece);
    at += length;
  }
  if (at != x.dims[axis])
    return n.error("cuts " + Twine(x.dims[axis]) + " elements into " +
                   str(lengths));
  return pieces;
}

/// Lengths of pieces of `length` elements each, the last one shorter.
static Dims evenPieces(int64_t total, int64_t length) {
  Dims lengths;
  for (int64_t left = total; left > 0; left -= length)
    lengths.push_back(std::min(left, length));
  return lengths;
}

static LogicalResult importSplit(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), x.rank()));
  Dims lengths;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(lengths, n.ints(1));
  } else {
    int64_t count = n.intAttr("num_outputs", n.numOutputs());
    if (count < 1)
      return n.error("cuts into " + Twine(count) + " pieces");
    lengths = evenPieces(x.dims[axis], (x.dims[axis] + count - 1) / count);
  }
  if (static_cast<int64_t>(lengths.size()) != n.numOutputs())
    return n.error("has " + Twine(n.numOutputs()) + " outputs for " +
                   Twine(lengths.size()) + " pieces");
  ASSIGN_OR_FAIL(SmallVector<Val> pieces, cut(n, x, axis, lengths));
  for (auto [i, piece] : llvm::enumerate(pieces))
    if (failed(n.set(i, piece)))
      return failure();
  return success();
}
static Register split("Split", importSplit);

static Val sequenceOf(ArrayRef<Val> elements) {
  Val v;
  v.kind = Val::Sequence;
  v.elements.assign(elements.begin(), elements.end());
  return v;
}

static LogicalResult importSplitToSequence(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), x.rank()));
  Dims lengths;
  bool drop = false;
  if (!n.has(1)) {
    lengths.assign(x.dims[axis], 1);
    drop = !n.intAttr("keepdims", 1);
  } else {
    ASSIGN_OR_FAIL(lengths, n.ints(1));
    if (n.input(1).dims.empty()) {
      if (lengths[0] < 1)
        return n.error("cuts into pieces of " + Twine(lengths[0]));
      lengths = evenPieces(x.dims[axis], lengths[0]);
    }
  }
  ASSIGN_OR_FAIL(SmallVector<Val> pieces, cut(n, x, axis, lengths));
  if (drop)
    return n.unsupported("pieces without their dimension");
  return n.set(sequenceOf(pieces));
}
static Register splitToSequence("SplitToSequence", importSplitToSequence);

static LogicalResult importSequenceConstruct(Node &n) {
  return n.set(sequenceOf(inputsOf(n)));
}
static Register sequenceConstruct("SequenceConstruct", importSequenceConstruct);

static LogicalResult importSequenceAt(Node &n) {
  const Val &sequence = n.input(0);
  if (sequence.kind != Val::Sequence)
    return n.error("input 0 is no sequence");
  ASSIGN_OR_FAIL(Dims at, n.ints(1));
  int64_t size = sequence.elements.size();
  if (at.size() != 1 || at[0] < -size || at[0] >= size)
    return n.error("reads entry " + str(at) + " of a sequence of " +
                   Twine(size));
  return n.set(sequence.elements[at[0] < 0 ? at[0] + size : at[0]]);
}
static Register sequenceAt("SequenceAt", importSequenceAt);

static LogicalResult importConcatFromSequence(Node &n) {
  const Val &sequence = n.input(0);
  if (sequence.kind != Val::Sequence)
    return n.error("input 0 is no sequence");
  if (n.intAttr("new_axis", 0))
    return n.unsupported("a new axis");
  ASSIGN_OR_FAIL(Val joined,
                 concat(n, sequence.elements, n.intAttr("axis", 0)));
  return n.set(joined);
}
static Register concatFromSequence("ConcatFromSequence",
                                   importConcatFromSequence);
