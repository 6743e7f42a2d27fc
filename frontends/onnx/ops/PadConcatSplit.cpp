// PadConcatSplit.cpp - tensors concatenated, split and padded, and sequences,
// which exist only at import.

#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

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
    ASSIGN_OR_FAIL(result, slice(n, result, axis, start, end, step));
  }
  return n.set(result);
}
static Register sliceOp("Slice", importSlice);

static LogicalResult importConcat(Node &n) {
  return n.set(concat(n, n.inputs(), n.intAttr("axis", 0)));
}
static Register concatOp("Concat", importConcat);

static LogicalResult importPad(Node &n) {
  const Val x = n.input(0);
  std::string mode = n.stringAttr("mode", "constant");
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
  double fill = 0;
  if (n.has(2)) {
    ASSIGN_OR_FAIL(Array value, n.array(2));
    if (value.size() != 1)
      return n.error("a value of shape " + str(value.dims()));
    fill = value.reshaped({}).cast(x.type).floats()[0];
  }
  Dims low(x.rank(), 0), high(x.rank(), 0);
  for (auto [i, entry] : llvm::enumerate(axes)) {
    ASSIGN_OR_FAIL(int64_t axis, n.axis(entry, x.rank()));
    low[axis] = pads[i];
    high[axis] = pads[i + axes.size()];
  }
  if (mode == "reflect")
    return n.set(padWithSelf(n, x, low, high, PadMode::Reflect));
  if (mode == "edge")
    return n.set(padWithSelf(n, x, low, high, PadMode::Edge));
  if (mode == "wrap")
    return n.set(padWithSelf(n, x, low, high, PadMode::Wrap));
  if (mode != "constant")
    return n.unsupported("padding by mode '" + mode + "'");
  return n.set(pad(n, x, low, high, fill));
}
static Register padOp("Pad", importPad);

static LogicalResult importSplit(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), x.rank()));
  Dims lengths;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(lengths, n.ints(1));
  } else {
    int64_t count = n.intAttr("num_outputs", n.numOutputs());
    if (count < 1 || count > n.numOutputs())
      return n.error("cuts into " + Twine(count) + " pieces");
    int64_t length = (x.dims[axis] + count - 1) / count;
    ASSIGN_OR_FAIL(lengths,
                   evenPieces(n, x.dims[axis], std::max<int64_t>(length, 1)));
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

static LogicalResult importSplitToSequence(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", 0), x.rank()));
  Dims lengths;
  bool drop = false;
  if (!n.has(1)) {
    ASSIGN_OR_FAIL(lengths, evenPieces(n, x.dims[axis], 1));
    drop = !n.intAttr("keepdims", 1);
  } else {
    ASSIGN_OR_FAIL(lengths, n.ints(1));
    if (n.input(1).dims.empty()) {
      if (lengths[0] < 1)
        return n.error("cuts into pieces of " + Twine(lengths[0]));
      ASSIGN_OR_FAIL(lengths, evenPieces(n, x.dims[axis], lengths[0]));
    }
  }
  ASSIGN_OR_FAIL(SmallVector<Val> pieces, cut(n, x, axis, lengths));
  if (drop)
    for (Val &piece : pieces) {
      ASSIGN_OR_FAIL(piece, squeeze(n, piece, Dims{axis}));
    }
  return n.set(sequenceOf(pieces));
}
static Register splitToSequence("SplitToSequence", importSplitToSequence);

static LogicalResult importSequenceConstruct(Node &n) {
  return n.set(sequenceOf(n.inputs()));
}
static Register sequenceConstruct("SequenceConstruct", importSequenceConstruct);

static LogicalResult importSequenceEmpty(Node &n) {
  n.ignore({"dtype"});
  return n.set(sequenceOf({}));
}
static Register sequenceEmpty("SequenceEmpty", importSequenceEmpty);

static LogicalResult importSequenceLength(Node &n) {
  int64_t size = n.input(0).elements.size();
  if (n.input(0).kind != Val::Sequence)
    return n.error("input 0 is no sequence");
  return n.set(Val(Array::ofInts(ElementType::I64, {}, {size})));
}
static Register sequenceLength("SequenceLength", importSequenceLength);

/// The index in input `i`, for a sequence of `size`; the end if it is absent.
static FailureOr<int64_t> placeIn(Node &n, int i, int64_t size, bool isEnd) {
  if (!n.has(i))
    return isEnd ? size : size - 1;
  ASSIGN_OR_FAIL(Dims at, n.ints(i));
  if (at.size() != 1 || at[0] < -size || at[0] > size ||
      (!isEnd && at[0] == size))
    return n.error("place " + str(at) + " of a sequence of " + Twine(size));
  return at[0] < 0 ? at[0] + size : at[0];
}

static LogicalResult importSequenceInsert(Node &n) {
  Val sequence = n.input(0);
  if (sequence.kind != Val::Sequence)
    return n.error("input 0 is no sequence");
  ASSIGN_OR_FAIL(int64_t at, placeIn(n, 2, sequence.elements.size(), true));
  sequence.elements.insert(sequence.elements.begin() + at, n.input(1));
  return n.set(sequence);
}
static Register sequenceInsert("SequenceInsert", importSequenceInsert);

static LogicalResult importSequenceErase(Node &n) {
  Val sequence = n.input(0);
  if (sequence.kind != Val::Sequence || sequence.elements.empty())
    return n.error("input 0 is no sequence");
  ASSIGN_OR_FAIL(int64_t at, placeIn(n, 1, sequence.elements.size(), false));
  sequence.elements.erase(sequence.elements.begin() + at);
  return n.set(sequence);
}
static Register sequenceErase("SequenceErase", importSequenceErase);

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
  SmallVector<Val> parts(llvm::ArrayRef<Val>(sequence.elements));
  int64_t axis = n.intAttr("axis", 0);
  if (n.intAttr("new_axis", 0))
    for (Val &part : parts) {
      ASSIGN_OR_FAIL(part, unsqueeze(n, part, {axis}));
    }
  return n.set(concat(n, parts, axis));
}
static Register concatFromSequence("ConcatFromSequence",
                                   importConcatFromSequence);

/// Crops the middle of each dimension, or pads zeros around it.
static LogicalResult importCenterCropPad(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims wanted, n.ints(1));
  Dims axes = n.intsAttr("axes").value_or(Dims(nn::firstDims(x.rank())));
  if (axes.size() != wanted.size())
    return n.error("has " + Twine(wanted.size()) + " sizes for " +
                   Twine(axes.size()) + " axes");
  Dims low(x.rank(), 0), high(x.rank(), 0);
  for (auto [entry, size] : llvm::zip(axes, wanted)) {
    ASSIGN_OR_FAIL(int64_t axis, n.axis(entry, x.rank()));
    if (size < 1)
      return n.error("asks for the shape " + str(wanted));
    // The extra element of an odd number goes to the end.
    int64_t more = size - x.dims[axis];
    low[axis] = more / 2;
    high[axis] = more - more / 2;
  }
  return n.set(pad(n, x, low, high, 0));
}
static Register centerCropPad("CenterCropPad", importCenterCropPad);
