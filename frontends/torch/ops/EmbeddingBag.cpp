// EmbeddingBag.cpp - looks rows of a table up, and reduces them by bags.
//
// The beginnings of bags must be known at compile time. Rows with the padding
// index don't count in any bag.

#include "frontends/Checked.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Order.h"
#include "frontends/common/ops/Reduce.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Gather.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

namespace {
/// The beginnings and ends of bags in a row of `count` entries.
struct Bags {
  std::vector<int64_t> begins, ends;
  int64_t count = 0;

  int64_t size() const { return begins.size(); }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t i = 0; i < size(); ++i)
      most = std::max(most, ends[i] - begins[i]);
    return most;
  }
  /// True if all bags have the same number of entries, and all entries a bag.
  bool areEven() const {
    int64_t end = 0;
    for (int64_t i = 0; i < size(); ++i) {
      if (begins[i] != end || ends[i] - begins[i] != longest())
        return false;
      end = ends[i];
    }
    return end == count && longest() > 0;
  }
};

enum Mode { Sum = 0, Mean = 1, Max = 2 }; // ATen's numbers.
} // namespace

static FailureOr<Bags> bagsOf(Call &c, int64_t count) {
  ASSIGN_OR_FAIL(bool withLast, c.flag("include_last_offset", false));
  ASSIGN_OR_FAIL(Array starts, known(c, c.tensor("offsets")));
  Bags bags;
  bags.count = count;
  bags.begins = starts.ints();
  if (withLast && !bags.begins.empty())
    bags.begins.pop_back();
  for (int64_t i = 0; i < bags.size(); ++i) {
    int64_t end = i + 1 < bags.size() ? bags.begins[i + 1] : count;
    if (bags.begins[i] < 0 || end < bags.begins[i] || end > count)
      return c.error("cuts " + Twine(count) + " indices at " +
                     str(bags.begins));
    bags.ends.push_back(end);
  }
  if (!bags.size())
    return c.unsupported("no bags");
  return bags;
}

/// `rows` [entries, ...], summed by bags: [bags, ...].
static FailureOr<Val> summed(Call &c, const Bags &bags, const Val &rows) {
  Dims dims(rows.dims);
  if (bags.areEven()) {
    dims.insert(dims.begin(), bags.size());
    dims[1] = bags.longest();
    ASSIGN_OR_FAIL(Val apart, reshaped(c, rows, dims));
    return reduceSum(c, apart, Dims{1}, false);
  }
  std::vector<int64_t> entries, bagOf;
  for (int64_t i = 0; i < bags.size(); ++i)
    for (int64_t at = bags.begins[i]; at < bags.ends[i]; ++at) {
      entries.push_back(at);
      bagOf.push_back(i);
    }
  dims[0] = bags.size();
  Val none(Array::splat(rows.type, dims, 0));
  if (entries.empty())
    return none;
  int64_t count = entries.size();
  Val chosen = rows; // Entries before the first bag belong to none.
  if (count != bags.count) {
    ASSIGN_OR_FAIL(
        chosen,
        gather(c, rows, Val(Array::ofInts(ElementType::I64, {count}, entries)),
               0));
  }
  return scatterEntries(c, none,
                        Val(Array::ofInts(ElementType::I64, {count}, bagOf)),
                        chosen, 0, Joining::Add);
}

/// The largest of each bag's `rows` [entries, width], the first of equal ones;
/// 0 for a bag without entries. `counts` [entries, 1] has 0 for padding.
static FailureOr<Val> largest(Call &c, const Bags &bags, const Val &rows,
                              const Val &counts) {
  int64_t width = bags.longest();
  auto total = checkedMul(bags.size(), width);
  if (!total || *total > kMaxFoldElements)
    return c.unsupported(Twine(bags.size()) + " bags of up to " + Twine(width) +
                         " entries, joined by the largest");
  if (width == 0)
    return Val(Array::splat(rows.type, {bags.size(), rows.dims[1]}, 0));
  // Short bags are filled with entries of their neighbours, which don't count.
  std::vector<int64_t> places, isIn;
  for (int64_t i = 0; i < bags.size(); ++i)
    for (int64_t k = 0; k < width; ++k) {
      int64_t at = bags.begins[i] + k;
      isIn.push_back(at < bags.ends[i]);
      places.push_back(std::min(at, bags.count - 1));
    }
  Val at(
      Array::ofInts(ElementType::I64, {bags.size(), width}, std::move(places)));
  ASSIGN_OR_FAIL(Val table, gather(c, rows, at, 0));
  ASSIGN_OR_FAIL(Val counted, gather(c, counts, at, 0));
  Val inside(Array::ofInts(ElementType::Bool, {bags.size(), width, 1},
                           std::move(isIn)));
  Expression isCounted = (Expression(c, counted) > 0) & Expression(c, inside);
  Expression all(c, table);
  ASSIGN_OR_FAIL(Val filled,
                 all.when(isCounted, all.number(-INFINITY)).value());
  ASSIGN_OR_FAIL(Val place, placeOfExtreme(c, filled, 1, true));
  ASSIGN_OR_FAIL(Val chosen, gatherElements(c, table, place, 1));
  ASSIGN_OR_FAIL(chosen, squeeze(c, chosen, Dims{1}));
  ASSIGN_OR_FAIL(Val ones, isCounted.cast(rows.type).value());
  ASSIGN_OR_FAIL(Val some, reduceSum(c, ones, Dims{1}, false));
  Expression best(c, chosen);
  return best.when(Expression(c, some) > 0, best.number(0)).value();
}

static LogicalResult importEmbeddingBag(Call &c) {
  const Val weight = c.tensor("weight"), indices = c.tensor("indices");
  if (failed(checkTableGradients(c)))
    return failure();
  ASSIGN_OR_FAIL(int64_t mode, c.integer("mode", Sum));
  ASSIGN_OR_FAIL(int64_t padding, c.integer("padding_idx", -1));
  if (weight.rank() != 2 || mode < Sum || mode > Max)
    return c.error("a table of shape " + str(weight.dims) + ", mode " +
                   Twine(mode));
  for (size_t i = 1; i < c.data.results.size(); ++i)
    if (c.isUsed(i))
      return c.unsupported("what the bags were");
  if (indices.rank() != 1)
    return c.unsupported("indices of shape " + str(indices.dims));
  ASSIGN_OR_FAIL(Bags bags, bagsOf(c, indices.dims[0]));
  ASSIGN_OR_FAIL(Val rows, gather(c, weight, indices, 0));
  if (c.has("per_sample_weights")) {
    ASSIGN_OR_FAIL(Val factors,
                   unsqueeze(c, c.tensor("per_sample_weights"), {1}));
    ASSIGN_OR_FAIL(rows, multiply(c, {rows, factors}));
  }
  Val counts(Array::splat(weight.type, {bags.count, 1}, 1));
  if (padding >= 0) {
    ASSIGN_OR_FAIL(Val isCounted,
                   notEqual(c, {indices, Val(Array::splatInt(indices.type, {},
                                                             padding))}));
    ASSIGN_OR_FAIL(isCounted, unsqueeze(c, isCounted, {1}));
    ASSIGN_OR_FAIL(counts, castTo(c, isCounted, weight.type));
    Expression all(c, rows);
    ASSIGN_OR_FAIL(rows,
                   all.when(Expression(c, isCounted), all.number(0)).value());
  }
  if (mode == Max)
    return c.set(largest(c, bags, rows, counts));
  ASSIGN_OR_FAIL(Val y, summed(c, bags, rows));
  if (mode == Sum)
    return c.set(y);
  ASSIGN_OR_FAIL(Val size, summed(c, bags, counts));
  Expression entries(c, size);
  Expression divisor = entries.number(1).when(entries == 0, entries);
  return c.set((Expression(c, y) / divisor).value());
}
static Register embeddingBag("embedding_bag", importEmbeddingBag);
static Register embeddingBagOp("_embedding_bag", importEmbeddingBag);
static Register embeddingBagForward("_embedding_bag_forward_only",
                                    importEmbeddingBag);
