#include "driver/verify/Arguments.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using reference::Tensor;
using train::TrainDialect;

namespace {

/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators".
class SplitMix {
public:
  explicit SplitMix(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t bound) { return next() % uint64_t(bound); }
  double unit() { return double(next() >> 11) * 0x1p-53; }
  /// Variance 1 and nearly normal: the sum of four uniform numbers.
  double normal() {
    return (unit() + unit() + unit() + unit() - 2) * std::sqrt(3.0);
  }

private:
  uint64_t state;
};

class Drawer {
public:
  Drawer(train::StepOp step, const ArgumentDraw &draw)
      : step(step), draw(draw) {}

  Tensor argument(unsigned index) {
    Tensor tensor(cast<RankedTensorType>(step.getArgumentTypes()[index]));
    StringRef name = train::argName(step, index);
    if (draw.given)
      if (auto it = draw.given->find(name.str()); it != draw.given->end())
        return Tensor::fromBytes(tensor.element, tensor.shape,
                                 it->second.data());
    // Each argument has its own stream, so that another argument more or less
    // doesn't change it.
    SplitMix seeded(draw.seed ^ (uint64_t(draw.number) << 32));
    std::string feed = text(index, TrainDialect::kFeed);
    train::Role role = train::roleOf(step, index).value_or(train::Role::Scalar);
    const uint64_t ofRank =
        role == train::Role::Batch ? uint64_t(draw.rank) << 32 : 0;
    SplitMix random(seeded.next() + index + ofRank);
    auto start = step.getArgAttr(index, TrainDialect::kInit);
    if (!feed.empty())
      fill(tensor, feed);
    else if (auto number = dyn_cast_or_null<FloatAttr>(start))
      tensor.floats[0] = std::min(number.getValueAsDouble(), kVerifyScale);
    else if (auto number = dyn_cast_or_null<IntegerAttr>(start))
      tensor.ints[0] = number.getInt();
    else if (tensor.isFloat())
      fillFloats(tensor, index, role, random);
    else
      fillInts(tensor, index, role, random);
    tensor.roundToElement();
    return tensor;
  }

private:
  train::StepOp step;
  const ArgumentDraw &draw;

  std::string text(unsigned index, StringRef attribute) {
    auto attr = step.getArgAttrOfType<StringAttr>(index, attribute);
    return attr ? attr.str() : "";
  }

  /// The same value that the runtime feeds.
  void fill(Tensor &tensor, StringRef feed) {
    if (feed == "lr")
      tensor.floats[0] = kVerifyRate;
    else if (feed == "step")
      tensor.ints[0] = draw.number;
    else if (feed == "seed")
      tensor.ints = {int64_t(draw.seed), draw.number};
    else if (feed == "tensor_place")
      tensor.ints[0] = draw.tensorPlace;
    else
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.ints[i] = draw.rank * tensor.size() + i;
  }

  void fillFloats(Tensor &tensor, unsigned index, train::Role role,
                  SplitMix &random) {
    double middle = 0, width = 1;
    std::string init = text(index, TrainDialect::kInit);
    if (step.getArgAttr(index, TrainDialect::kSlot)) {
      auto scale = draw.slotScale.find(index);
      if (scale == draw.slotScale.end())
        return;
      // Positive and not small: then rounding hardly affects the next update,
      // for any way in which the rule divides by the states.
      for (double &value : tensor.floats)
        value = scale->second * (0.5 + random.unit());
      return;
    }
    if (role == train::Role::State && init == "ones") {
      for (double &value : tensor.floats)
        value = 0.5 + random.unit(); // A variance.
      return;
    }
    if (role == train::Role::Scalar) {
      for (double &value : tensor.floats)
        value = 0.5 + random.unit();
      return;
    }
    if (role != train::Role::Batch) {
      middle = init == "ones" ? 1 : 0;
      width = 0.1;
      if (init != "ones" && tensor.rank() >= 2)
        width = std::sqrt(double(tensor.shape[0]) / double(tensor.size()));
    }
    for (double &value : tensor.floats)
      value = middle + width * random.normal();
  }

  /// The allowed values of one integer; a limit of 0: unknown.
  struct Allowed {
    int64_t limit = 0;
    std::optional<int64_t> ignore;
  };

  /// The step's limits for each element of argument `index`.
  std::vector<Allowed> allowedOf(const Tensor &tensor, unsigned index) {
    std::vector<Allowed> allowed(tensor.size());
    auto limit =
        step.getArgAttrOfType<IntegerAttr>(index, TrainDialect::kLimit);
    auto ignore =
        step.getArgAttrOfType<IntegerAttr>(index, TrainDialect::kIgnore);
    if (limit)
      std::fill(allowed.begin(), allowed.end(),
                Allowed{limit.getInt(), ignore ? std::optional(ignore.getInt())
                                               : std::nullopt});
    auto ranges =
        step.getArgAttrOfType<ArrayAttr>(index, TrainDialect::kRanges);
    if (!ranges)
      return allowed;
    for (auto range : ranges.getAsRange<train::RangeAttr>())
      reference::forEachIndex(range.getSizes(), [&](ArrayRef<int64_t> at,
                                                    int64_t) {
        SmallVector<int64_t> element;
        for (auto [i, offset, by] :
             llvm::zip_equal(at, range.getOffsets(), range.getSteps()))
          element.push_back(offset + i * by);
        Allowed &known = allowed[reference::linearIndex(element, tensor.shape)];
        bool isNew = known.limit == 0;
        if (isNew || range.getLimit() < known.limit)
          known.limit = range.getLimit();
        if (isNew)
          known.ignore = range.getIgnore();
        else if (known.ignore != range.getIgnore())
          known.ignore.reset();
      });
    return allowed;
  }

  void fillInts(Tensor &tensor, unsigned index, train::Role role,
                SplitMix &random) {
    if (step.getArgAttr(index, TrainDialect::kSlot)) {
      // Codes of moments, zero at first. Codes near the largest one are
      // positive and not small in every map.
      if (!draw.slotScale.empty())
        for (int64_t &value : tensor.ints)
          value = -1 - random.below(32);
      return;
    }
    if (step.getArgAttr(index, TrainDialect::kStored) ||
        step.getArgAttr(index, TrainDialect::kMaximaOf)) {
      // Codes of a frozen weight, and of maxima: any bytes are some.
      constexpr int64_t kBytes = 256;
      for (int64_t &value : tensor.ints)
        value = random.below(kBytes) - kBytes / 2;
      return;
    }
    std::vector<Allowed> allowed = allowedOf(tensor, index);
    int64_t row = tensor.rank() ? tensor.shape.back() : 1;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      auto [limit, ignore] = allowed[i];
      if (limit)
        tensor.ints[i] =
            ignore && random.below(16) == 0 ? *ignore : random.below(limit);
      else // A mask: the first element of each row is always seen.
        tensor.ints[i] = i % row == 0 || random.below(4) != 0;
    }
  }
};

} // namespace

SmallVector<Tensor> tmc::drawArguments(train::StepOp step,
                                       const ArgumentDraw &draw) {
  Drawer drawer(step, draw);
  SmallVector<Tensor> tensors;
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    tensors.push_back(drawer.argument(i));
  roundCopies(step, tensors);
  return tensors;
}

void tmc::drawEdges(train::StepOp step, MutableArrayRef<Tensor> arguments,
                    uint64_t seed, double largest) {
  // Every fourth element of a batch and every 64th of a parameter, on average:
  // a product then adds up some of each.
  constexpr int64_t kOfBatch = 4, kOfParam = 64, kEqualRows = 4;
  const double edges[] = {0, largest, -largest, 1e-2 * largest,
                          -1e-2 * largest};
  for (auto [i, tensor] : llvm::enumerate(arguments)) {
    train::Role role = train::roleOf(step, i).value_or(train::Role::Scalar);
    bool isBatch = role == train::Role::Batch;
    if (!tensor.isFloat() || step.getArgAttr(i, TrainDialect::kSlot) ||
        (!isBatch && role != train::Role::Param))
      continue;
    SplitMix seeded(seed);
    SplitMix random(seeded.next() + i);
    for (double &value : tensor.floats)
      if (random.below(isBatch ? kOfBatch : kOfParam) == 0)
        value = edges[random.below(std::size(edges))] * (isBatch ? 1 : 1e-2);
    int64_t row = tensor.rank() ? tensor.shape.back() : 1;
    for (int64_t at = 0; isBatch && at + row <= tensor.size(); at += row)
      if (random.below(kEqualRows) == 0)
        std::fill_n(tensor.floats.begin() + at, row, tensor.floats[at]);
    tensor.roundToElement();
  }
  roundCopies(step, arguments);
}

void tmc::roundCopies(train::StepOp step, MutableArrayRef<Tensor> arguments) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i)
    if (std::optional<unsigned> param = train::copiedArg(step, i)) {
      arguments[i].floats = arguments[*param].floats;
      arguments[i].roundToElement();
    }
}

bool tmc::isFed(train::StepOp step, unsigned argument) {
  return bool(step.getArgAttr(argument, TrainDialect::kFeed));
}
