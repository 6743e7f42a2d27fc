// Gather.cpp - elements chosen by index.

#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/Call.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// The row `padding_idx` gets no gradient from this lookup.
static LogicalResult importEmbedding(Call &c) {
  ASSIGN_OR_FAIL(int64_t padding, c.integer("padding_idx", -1));
  return c.set(
      gather(c, c.tensor("weight"), c.tensor("indices"), 0,
             padding >= 0 ? std::optional<int64_t>(padding) : std::nullopt));
}
static Register embedding("embedding", importEmbedding);

static LogicalResult importIndexSelect(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(gather(c, c.tensor("self"), c.tensor("index"), dim));
}
static Register indexSelect("index_select", importIndexSelect);

static LogicalResult importGather(Call &c) {
  ASSIGN_OR_FAIL(int64_t dim, c.integer("dim", std::nullopt));
  return c.set(gatherElements(c, c.tensor("self"), c.tensor("index"), dim));
}
static Register gatherOp("gather", importGather);

/// self[i, j, ...]: tensors of indices for the first dimensions, which
/// broadcast together, or one tensor for a single dimension.
static LogicalResult importIndex(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(SmallVector<Val> indices, c.tensors("indices"));
  int64_t first = -1, last = -1, count = 0;
  for (auto [i, v] : llvm::enumerate(indices)) {
    if (v.isAbsent())
      continue;
    if (v.type == ElementType::Bool)
      return c.unsupported("a choice by a mask, whose size isn't known");
    first = first < 0 ? i : first;
    last = i;
    ++count;
  }
  if (count == 0)
    return c.set(self);
  if (last >= self.rank())
    return c.error("chooses along " + Twine(last + 1) +
                   " dimensions of shape " + str(self.dims));
  if (count == 1)
    return c.set(gather(c, self, indices[first], first));
  if (first != 0 || last != count - 1)
    return c.unsupported("indices that aren't of the first dimensions");
  // [.., k]: a row of indices for each entry of the result.
  Dims common;
  for (int64_t i = 0; i < count; ++i) {
    auto joined = broadcastShape(common, indices[i].dims);
    if (!joined)
      return c.error("indices of shape " + str(indices[i].dims) +
                     " don't fit " + str(common));
    common = *joined;
  }
  SmallVector<Val> columns;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_FAIL(Val wide, castTo(c, indices[i], ElementType::I64));
    ASSIGN_OR_FAIL(wide, expand(c, wide, common));
    ASSIGN_OR_FAIL(wide,
                   unsqueeze(c, wide, {static_cast<int64_t>(common.size())}));
    columns.push_back(wide);
  }
  ASSIGN_OR_FAIL(Val rows, concat(c, columns, common.size()));
  return c.set(gatherSlices(c, self, rows));
}
static Register indexOp("index", importIndex);

static LogicalResult importOneHot(Call &c) {
  ASSIGN_OR_FAIL(int64_t classes, c.integer("num_classes", -1));
  if (classes < 1)
    return c.unsupported("as many classes as the data have");
  return c.set(
      oneHot(c, c.tensor("self"), classes, -1, ElementType::I64, 1, 0));
}
static Register oneHotOp("one_hot", importOneHot);
