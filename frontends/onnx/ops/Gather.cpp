// Gather.cpp - elements chosen by index.

#include "frontends/common/ops/Gather.h"
#include "frontends/onnx/Node.h"
#include "frontends/onnx/TorchCall.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The id whose row of the table gets no gradient from this lookup: PyTorch's
/// padding_idx, which ONNX has no place for but the exporter's note.
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
  if (n.intAttr("batch_dims", 0))
    return n.unsupported("batch dimensions");
  return n.set(gatherSlices(n, n.input(0), n.input(1)));
}
static Register gatherND("GatherND", importGatherND);

static LogicalResult importOneHot(Node &n) {
  ASSIGN_OR_FAIL(Dims depth, n.ints(1));
  ASSIGN_OR_FAIL(Array values, n.array(2));
  if (depth.size() != 1 || depth[0] < 1 || values.size() != 2)
    return n.error("wants one depth and two values");
  return n.set(oneHot(n, n.input(0), depth[0], n.intAttr("axis", -1),
                      values.type(), values.floats()[1], values.floats()[0]));
}
static Register oneHotOp("OneHot", importOneHot);
