// InputRanges.cpp - limits of the step's integer inputs, found by the uses in
// the graph, for the runtime to check.
//
// An integer that indexes a table must be a row of it. If all elements of an
// input index one table, the input has a limit (`train.limit`); if its columns
// index tables of their own, each box of elements has a limit (`train.ranges`):
//
//     cats[:, 0] -> 5 rows, cats[:, 1] -> 7 rows
//     => [0, 0] sizes [6, 1] below 5, [0, 1] sizes [6, 1] below 7
//
// An input is followed through ops that only move elements. Their effect on a
// dimension is kept as an arithmetic progression of the input's indices. If a
// reshape mixes dimensions, the elements of a later slice aren't known here;
// the kernels check those and report an index outside.

#include "driver/pipeline/Pipeline.h"

#include "compiler/analysis/Storage.h"
#include "dialects/nn/Builders.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

namespace {

/// One dimension of the input: index j of the followed value is index start + j
/// * step of the input, for 0 <= j < count. Only indices in [low, high) are
/// elements of the input: the others are padding.
struct Progression {
  int64_t start = 0, step = 1, count, low = 0, high;

  explicit Progression(int64_t size) : count(size), high(size) {}

  /// Elements offset, offset + by, ... (`size` of them) of the value.
  void slice(int64_t offset, int64_t by, int64_t size) {
    start += offset * step;
    step *= by;
    count = size;
  }
  /// Adds `before` padding elements in front, in a dimension of `size`.
  void pad(int64_t before, int64_t size) {
    auto [first, last] = covered();
    low = std::max(low, start + first * step);
    high = std::min(high, start + last * step + 1);
    start -= before * step;
    count = size;
  }
  /// The first and last j of elements of the input; last < first: none.
  std::pair<int64_t, int64_t> covered() const {
    int64_t first =
        start >= low ? 0 : llvm::divideCeil(uint64_t(low - start), step);
    int64_t last =
        start >= high ? -1 : std::min(count - 1, (high - 1 - start) / step);
    return {first, last};
  }
};

/// Elements of an input that a value of the graph holds.
struct Followed {
  SmallVector<Progression> dims; ///< One per dimension of the input.
  /// The input's dimension for each of the value's; -1: none (a size of 1) or a
  /// mixture.
  SmallVector<int64_t> from;
  SmallVector<int64_t> shape; ///< Of the value.

  bool slice(nn::SliceOp op) {
    ArrayRef<int64_t> to = op.getType().getShape();
    for (auto [i, dim] : llvm::enumerate(from)) {
      if (to[i] == shape[i])
        continue;
      if (dim < 0)
        return false;
      dims[dim].slice(op.getOffsets()[i], op.getSteps()[i], to[i]);
    }
    shape.assign(to.begin(), to.end());
    return true;
  }

  /// Adds `low[i]` padding elements in front of dimension i of a value of shape
  /// `to`.
  void pad(ArrayRef<int64_t> low, ArrayRef<int64_t> steps,
           ArrayRef<int64_t> to) {
    for (auto [i, dim] : llvm::enumerate(from)) {
      if (to[i] == shape[i])
        continue;
      if (dim >= 0 && steps[i] == 1)
        dims[dim].pad(low[i], to[i]);
      else
        from[i] = -1;
    }
    shape.assign(to.begin(), to.end());
  }

  void transpose(ArrayRef<int64_t> perm) {
    SmallVector<int64_t> newFrom, newShape;
    for (int64_t dim : perm) {
      newFrom.push_back(from[dim]);
      newShape.push_back(shape[dim]);
    }
    from = newFrom;
    shape = newShape;
  }

  /// Dimensions that neither merge nor split are kept.
  void reshape(ArrayRef<int64_t> to) {
    SmallVector<int64_t> newFrom(to.size(), -1);
    size_t i = 0, k = 0;
    while (i < shape.size() && k < to.size()) {
      if (shape[i] == to[k]) {
        newFrom[k++] = from[i++];
        continue;
      }
      if (shape[i] == 1) {
        ++i;
        continue;
      }
      if (to[k] == 1) {
        ++k;
        continue;
      }
      int64_t left = shape[i++], right = to[k++];
      while (left != right) {
        if (left < right && i < shape.size())
          left *= shape[i++];
        else if (k < to.size())
          right *= to[k++];
        else
          break;
      }
    }
    from = newFrom;
    shape.assign(to.begin(), to.end());
  }
};

/// The limits on the elements of one input, by its uses.
class Ranges {
public:
  explicit Ranges(RankedTensorType type) : type(type) {}

  void follow(Value value, const Followed &at, int depth = 0);

  /// Sets the attributes of argument `index` of `forward`, a piece of a
  /// function with `samples` in its first dimension.
  void mark(func::FuncOp forward, unsigned index, int64_t samples);

private:
  struct Box {
    SmallVector<int64_t> offsets, sizes, steps;
    int64_t limit;
    std::optional<int64_t> ignore;
  };
  RankedTensorType type;
  SmallVector<Box> boxes;

  void add(const Followed &at, int64_t limit, std::optional<int64_t> ignore);
  bool isWhole(const Box &box) const {
    return ArrayRef(box.sizes) == type.getShape();
  }
};

/// An index must satisfy every use of its box: the smallest limit, and no
/// ignored value that another use doesn't ignore.
void Ranges::add(const Followed &at, int64_t limit,
                 std::optional<int64_t> ignore) {
  Box box{{}, {}, {}, limit, ignore};
  for (const Progression &dim : at.dims) {
    auto [first, last] = dim.covered();
    if (last < first)
      return;
    box.offsets.push_back(dim.start + first * dim.step);
    box.sizes.push_back(last - first + 1);
    box.steps.push_back(last == first ? 1 : dim.step);
  }
  for (Box &known : boxes)
    if (known.offsets == box.offsets && known.sizes == box.sizes &&
        known.steps == box.steps) {
      known.limit = std::min(known.limit, limit);
      if (known.ignore != ignore)
        known.ignore.reset();
      return;
    }
  boxes.push_back(std::move(box));
}

void Ranges::follow(Value value, const Followed &at, int depth) {
  constexpr int kDepth = 64;
  auto rows = [](Value table, int64_t dim) {
    return cast<RankedTensorType>(table.getType()).getDimSize(dim);
  };
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    unsigned index = use.getOperandNumber();
    if (auto lookup = dyn_cast<nn::EmbeddingOp>(op); lookup && index == 1)
      add(at, rows(lookup.getTable(), 0), std::nullopt);
    else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op); loss && index == 1)
      add(at, loss.getVocabulary().value_or(rows(loss.getLogits(), 1)),
          loss.getIgnoreIndex());
    else if (auto loss = dyn_cast<nn::LinearCrossEntropyOp>(op);
             loss && index == 2)
      add(at, loss.getVocabulary().value_or(rows(loss.getTable(), 0)),
          loss.getIgnoreIndex());
    if (depth == kDepth || op->getNumResults() != 1)
      continue;
    Followed next = at;
    Value result = op->getResult(0);
    auto to = dyn_cast<RankedTensorType>(result.getType());
    if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      if (!next.slice(slice))
        continue;
    } else if (auto pad = dyn_cast<nn::PadOp>(op)) {
      next.pad(pad.getLow(), pad.getSteps(), to.getShape());
    } else if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
      SmallVector<int64_t> low(to.getRank(), 0), steps(to.getRank(), 1);
      for (Value before : concat.getInputs().take_front(index))
        low[concat.getDim()] += rows(before, concat.getDim());
      next.pad(low, steps, to.getShape());
    } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      next.transpose(transpose.getPerm());
    } else if (isa<nn::ReshapeOp>(op)) {
      next.reshape(to.getShape());
    } else if (!isa<nn::CopyOp, arith::ExtSIOp>(op)) {
      continue;
    }
    follow(result, next, depth + 1);
  }
}

void Ranges::mark(func::FuncOp forward, unsigned index, int64_t samples) {
  Builder b(forward.getContext());
  SmallVector<Attribute> ranges;
  // Sorted by elements, not by uses.
  llvm::sort(boxes, [](const Box &a, const Box &b) {
    return std::tie(a.offsets, a.sizes, a.steps) <
           std::tie(b.offsets, b.sizes, b.steps);
  });
  for (Box &box : boxes) {
    if (isWhole(box)) {
      forward.setArgAttr(index, TrainDialect::kLimit,
                         b.getI64IntegerAttr(box.limit));
      if (box.ignore)
        forward.setArgAttr(index, TrainDialect::kIgnore,
                           b.getI64IntegerAttr(*box.ignore));
      continue;
    }
    // The runtime sees the whole batch, of which this is one piece.
    if (samples != type.getDimSize(0)) {
      if (box.sizes[0] != type.getDimSize(0))
        continue;
      box.sizes[0] = samples;
    }
    ranges.push_back(train::RangeAttr::get(b.getContext(), box.offsets,
                                           box.sizes, box.steps, box.limit,
                                           box.ignore));
  }
  if (!ranges.empty())
    forward.setArgAttr(index, TrainDialect::kRanges, b.getArrayAttr(ranges));
}

} // namespace

void tmc::markInputRanges(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return;
  Builder b(module.getContext());
  auto feed = [&](Value value, StringRef what) {
    if (auto argument = dyn_cast_or_null<BlockArgument>(value))
      forward.setArgAttr(argument.getArgNumber(), TrainDialect::kFeed,
                         b.getStringAttr(what));
  };
  forward.walk([&](Operation *op) {
    if (auto random = dyn_cast<nn::RandomOp>(op)) {
      feed(random.getSeed(), "seed");
      feed(random.getSamples(), "samples");
    } else if (auto attention = dyn_cast<nn::AttentionOp>(op)) {
      feed(attention.getSeed(), "seed");
      feed(attention.getSamples(), "samples");
    }
  });
  int64_t pieces = 1;
  if (auto count =
          forward->getAttrOfType<IntegerAttr>(TrainDialect::kMicroBatches))
    pieces = count.getInt();
  auto rest = module.lookupSymbol<func::FuncOp>("rest");
  for (BlockArgument argument : forward.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = cast<RankedTensorType>(argument.getType());
    if (train::roleOf(forward, index) != train::Role::Batch ||
        !type.getElementType().isInteger())
      continue;
    Followed all;
    for (int64_t size : type.getShape())
      all.dims.emplace_back(size);
    llvm::append_range(all.from, nn::firstDims(type.getRank()));
    llvm::append_range(all.shape, type.getShape());
    Ranges ranges(type);
    ranges.follow(argument, all);
    int64_t samples = type.getRank() ? type.getDimSize(0) * pieces : 0;
    if (rest && samples)
      samples +=
          cast<RankedTensorType>(rest.getArgumentTypes()[index]).getDimSize(0);
    ranges.mark(forward, index, samples);
  }
}
