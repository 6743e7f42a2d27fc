// Gather.cpp - elements chosen by index.

#include "frontends/common/ops/Gather.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Node.h"
#include "frontends/onnx/TorchCall.h"

#include <map>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The id whose row of the table gets no gradient from this lookup: PyTorch's
/// padding_idx. ONNX has no attribute for it, so the exporter's note is read.
static std::optional<int64_t> paddingOf(Node &n) {
  std::optional<TorchCall> call = torchCallOf(n.proto);
  if (!call || !call->calls("aten.embedding"))
    return std::nullopt;
  std::optional<double> id = call->number(2, "padding_idx");
  return id && *id >= 0 ? std::optional<int64_t>(*id) : std::nullopt;
}

static LogicalResult importGather(Node &n) {
  return n.set(
      gather(n, n.input(0), n.input(1), n.intAttr("axis", 0), paddingOf(n)));
}
static Register gatherOp("Gather", importGather);

static LogicalResult importGatherElements(Node &n) {
  return n.set(gatherElements(n, n.input(0), n.input(1), n.intAttr("axis", 0)));
}
static Register gatherElementsOp("GatherElements", importGatherElements);

static LogicalResult importGatherND(Node &n) {
  const Val data = n.input(0), indices = n.input(1);
  int64_t batch = n.intAttr("batch_dims", 0);
  if (batch == 0)
    return n.set(gatherSlices(n, data, indices));
  if (batch < 0 || batch >= indices.rank() || batch >= data.rank())
    return n.error(Twine(batch) + " batch dimensions of shape " +
                   str(indices.dims));
  // The indices of the batch dimensions are added to the given indices.
  Dims column(indices.dims);
  column.back() = 1;
  SmallVector<Val> parts;
  for (int64_t d = 0; d < batch; ++d)
    parts.push_back(Val(iota(column, d).cast(indices.type)));
  parts.push_back(indices);
  ASSIGN_OR_FAIL(Val all, concat(n, parts, indices.rank() - 1));
  return n.set(gatherSlices(n, data, all));
}
static Register gatherND("GatherND", importGatherND);

static LogicalResult importOneHot(Node &n) {
  ASSIGN_OR_FAIL(Dims depth, n.ints(1));
  ASSIGN_OR_FAIL(Array values, n.array(2));
  if (depth.size() != 1 || depth[0] < 1 || values.size() != 2)
    return n.error("wants one depth and two values");
  ASSIGN_OR_FAIL(Val ids, castTo(n, n.input(0), ElementType::I64));
  return n.set(oneHot(n, ids, depth[0], n.intAttr("axis", -1), values.type(),
                      values.floats()[1], values.floats()[0]));
}
static Register oneHotOp("OneHot", importOneHot);

/// Selects columns of the innermost dimension.
static LogicalResult importArrayFeatureExtractor(Node &n) {
  ASSIGN_OR_FAIL(Val columns, viewed(n, n.input(1), {-1}));
  return n.set(gather(n, n.input(0), columns, -1));
}
static Register arrayFeatureExtractor("ai.onnx.ml", "ArrayFeatureExtractor",
                                      importArrayFeatureExtractor);

//===----------------------------------------------------------------------===//
// Writes to chosen places
//===----------------------------------------------------------------------===//

static FailureOr<Joining> joiningOf(Node &n) {
  std::string name = n.stringAttr("reduction", "none");
  if (name == "none")
    return Joining::Replace;
  if (name == "add")
    return Joining::Add;
  if (name == "mul")
    return Joining::Multiply;
  if (name == "max")
    return Joining::Max;
  if (name == "min")
    return Joining::Min;
  return n.unsupported("updates joined by '" + name + "'");
}

static LogicalResult importScatterElements(Node &n) {
  ASSIGN_OR_FAIL(Joining how, joiningOf(n));
  return n.set(scatterElements(n, n.input(0), n.input(1), n.input(2),
                               n.intAttr("axis", 0), how));
}
static Register scatterElementsOp("ScatterElements", importScatterElements);
static Register scatterOp("Scatter", importScatterElements);

static LogicalResult importScatterND(Node &n) {
  ASSIGN_OR_FAIL(Joining how, joiningOf(n));
  return n.set(scatterSlices(n, n.input(0), n.input(1), n.input(2), how));
}
static Register scatterND("ScatterND", importScatterND);

//===----------------------------------------------------------------------===//
// Choices that are known at import
//===----------------------------------------------------------------------===//

/// The indices of elements that aren't zero, one column each.
static LogicalResult importNonZero(Node &n) {
  const Val x = n.input(0);
  if (!n.foldable(x))
    return n.unsupported("places whose number depends on the data (give what "
                         "they come from as a constant, or use Where)");
  ASSIGN_OR_FAIL(Array array, n.arrayOf(x));
  std::vector<double> values = array.floats();
  std::vector<std::vector<int64_t>> rows(x.rank());
  Dims at(x.rank(), 0);
  for (double v : values) {
    for (int64_t d = 0; v != 0 && d < x.rank(); ++d)
      rows[d].push_back(at[d]);
    for (int64_t d = x.rank(); d-- > 0;) {
      if (++at[d] < x.dims[d])
        break;
      at[d] = 0;
    }
  }
  std::vector<int64_t> all;
  for (const auto &row : rows)
    all.insert(all.end(), row.begin(), row.end());
  int64_t count = rows.empty() ? 0 : rows[0].size();
  return n.set(
      Val(Array::ofInts(ElementType::I64, {x.rank(), count}, std::move(all))));
}
static Register nonZero("NonZero", importNonZero);

static LogicalResult importCompress(Node &n) {
  Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims chosen, n.ints(1));
  int64_t axis = 0;
  if (n.attribute("axis")) {
    ASSIGN_OR_FAIL(axis, n.axis(n.intAttr("axis", 0), x.rank()));
  } else {
    ASSIGN_OR_FAIL(x, viewed(n, x, {-1}));
  }
  std::vector<int64_t> places;
  for (auto [i, isChosen] : llvm::enumerate(chosen))
    if (isChosen && static_cast<int64_t>(i) < x.dims[axis])
      places.push_back(i);
  int64_t count = places.size();
  return n.set(gather(
      n, x, Val(Array::ofInts(ElementType::I64, {count}, std::move(places))),
      axis));
}
static Register compress("Compress", importCompress);

/// The distinct elements of a constant, or its distinct slices along an axis:
/// sorted, or in the order of their first occurrence.
static LogicalResult importUnique(Node &n) {
  Val x = n.input(0);
  if (!n.foldable(x))
    return n.unsupported("elements whose number depends on the data");
  int64_t axis = 0;
  if (n.attribute("axis")) {
    ASSIGN_OR_FAIL(axis, n.axis(n.intAttr("axis", 0), x.rank()));
  } else {
    ASSIGN_OR_FAIL(x, viewed(n, x, {-1}));
  }
  ASSIGN_OR_FAIL(Array array, n.arrayOf(x));
  Dims perm{axis};
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != axis)
      perm.push_back(d);
  std::vector<double> all = array.transposed(perm).floats();
  int64_t total = x.dims[axis], each = total ? all.size() / total : 0;
  // For each slice, its first position, and its index among the distinct ones.
  std::map<std::vector<double>, int64_t> found;
  std::vector<std::pair<std::vector<double>, int64_t>> order;
  std::vector<int64_t> which;
  for (int64_t i = 0; i < total; ++i) {
    std::vector<double> slice(all.begin() + i * each,
                              all.begin() + (i + 1) * each);
    auto [entry, isNew] = found.try_emplace(slice, order.size());
    if (isNew)
      order.push_back({slice, i});
    which.push_back(entry->second);
  }
  int64_t count = order.size();
  std::vector<int64_t> rank(count);
  if (n.intAttr("sorted", 1)) {
    int64_t next = 0;
    for (const auto &entry : found)
      rank[entry.second] = next++;
    llvm::sort(order);
  } else {
    for (int64_t i = 0; i < count; ++i)
      rank[i] = i;
  }
  std::vector<int64_t> first, inverse, counts(count);
  for (const auto &entry : order)
    first.push_back(entry.second);
  for (int64_t i : which) {
    inverse.push_back(rank[i]);
    ++counts[rank[i]];
  }
  auto ints = [](std::vector<int64_t> list) {
    int64_t size = list.size();
    return Val(Array::ofInts(ElementType::I64, {size}, std::move(list)));
  };
  ASSIGN_OR_FAIL(Val y, gather(n, x, ints(first), axis));
  if (failed(n.set(0, y)) || failed(n.set(1, ints(first))) ||
      failed(n.set(2, ints(inverse))))
    return failure();
  return n.set(3, ints(counts));
}
static Register unique("Unique", importUnique);

/// Reverses the first `lengths[b]` entries of each sample.
static LogicalResult importReverseSequence(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims lengths, n.ints(1));
  ASSIGN_OR_FAIL(int64_t time, n.axis(n.intAttr("time_axis", 0), x.rank()));
  ASSIGN_OR_FAIL(int64_t batch, n.axis(n.intAttr("batch_axis", 1), x.rank()));
  if (time == batch || static_cast<int64_t>(lengths.size()) != x.dims[batch])
    return n.error("has " + Twine(lengths.size()) + " lengths for shape " +
                   str(x.dims));
  Dims wide(x.rank(), 1);
  wide[batch] = x.dims[batch];
  Array steps = iota(x.dims, time);
  Array length =
      Array::ofInts(ElementType::I64, wide, {lengths.begin(), lengths.end()})
          .broadcastTo(x.dims);
  Array places = mapInts(ElementType::I64, {steps, length}, [](Ints v) {
    return v[0] < v[1] ? v[1] - 1 - v[0] : v[0];
  });
  return n.set(gatherElements(n, x, Val(places), time));
}
static Register reverseSequence("ReverseSequence", importReverseSequence);
