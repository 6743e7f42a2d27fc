// Cached.cpp - operators that carry a state from call to call: the state is an
// input and an output, and a training step doesn't update it.

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Expression.h"
#include "frontends/common/ops/Generate.h"
#include "frontends/common/ops/LinearAttention.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Scatter.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/common/ops/Spatial.h"
#include "frontends/onnx/Node.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static LogicalResult importLinearAttention(Node &n) {
  LinearAttention a;
  a.query = n.input(0);
  a.key = n.input(1);
  a.value = n.input(2);
  a.state = n.input(3);
  n.ignore({"chunk_size"}); // A hint for speed only.
  a.heads = n.intAttr("q_num_heads", 0);
  a.groups = n.intAttr("kv_num_heads", 0);
  std::string rule = n.stringAttr("update_rule", "gated_delta");
  bool decays = rule == "gated" || rule == "gated_delta";
  bool corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    return n.unsupported("the update rule '" + rule + "'");
  if ((decays && !n.has(4)) || (corrects && !n.has(5)))
    return n.error("lacks an input of the update rule '" + rule + "'");
  if (decays)
    a.decay = n.input(4);
  if (corrects)
    a.beta = n.input(5);
  if (a.query.rank() != 3 || a.heads < 1 || a.query.dims[2] < a.heads)
    return n.error("queries of shape " + str(a.query.dims));
  a.scale = n.floatAttr("scale", 0);
  int64_t size = a.query.dims[2] / a.heads;
  if (a.scale == 0)
    a.scale = 1 / std::sqrt(static_cast<double>(size));
  ASSIGN_OR_FAIL(LinearAttended made, attendLinearly(n, a));
  if (failed(n.set(0, made.out)))
    return failure();
  return n.isUsed(1) ? n.set(1, made.state) : success();
}
static Register linearAttention("LinearAttention", importLinearAttention);

/// A convolution of each channel with the elements before it.
static LogicalResult importCausalConv(Node &n) {
  const Val x = n.input(0), w = n.input(1);
  std::string activation = n.stringAttr("activation", "none");
  bool isSwish = activation == "silu" || activation == "swish";
  if (!isSwish && activation != "none")
    return n.unsupported("the activation '" + activation + "'");
  if (x.rank() != 3 || w.rank() != 3 || w.dims[2] < 1)
    return n.error("an input of shape " + str(x.dims) +
                   " and a filter of shape " + str(w.dims));
  if (failed(checkFloats(n, x)))
    return failure();
  int64_t before = w.dims[2] - 1;
  Dims kept{x.dims[0], x.dims[1], before};
  Val past = n.has(3) ? n.input(3) : Val(Array::splat(x.type, kept, 0));
  if (past.dims != kept)
    return n.error("a state of shape " + str(past.dims));
  Val all = x;
  if (before) {
    ASSIGN_OR_FAIL(all, concat(n, {past, x}, 2));
  }
  ASSIGN_OR_FAIL(Val y,
                 convolve(n, all, w, n.input(2), WindowSpec(), x.dims[1]));
  if (isSwish) {
    ASSIGN_OR_FAIL(y, swish(n, y, 1));
  }
  if (failed(n.set(0, y)))
    return failure();
  if (!n.isUsed(1))
    return success();
  if (!before)
    return n.set(1, past);
  ASSIGN_OR_FAIL(Val last, strided(n, all, 2, x.dims[2], 1, before));
  return n.set(1, last);
}
static Register causalConv("CausalConvWithState", importCausalConv);

/// Writes `update` into each sample's entries, from the sample's own place on.
static LogicalResult importTensorScatter(Node &n) {
  const Val past = n.input(0), update = n.input(1);
  std::string mode = n.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.unsupported("updates by mode '" + mode + "'");
  ASSIGN_OR_FAIL(int64_t axis, n.axis(n.intAttr("axis", -2), past.rank()));
  if (axis == 0 || update.rank() != past.rank() ||
      update.dims[axis] > past.dims[axis])
    return n.error("updates of shape " + str(update.dims) +
                   " for a tensor of shape " + str(past.dims));
  Val first(Array::splatInt(ElementType::I64, {past.dims[0]}, 0));
  if (n.has(2))
    first = n.input(2);
  if (first.dims != Dims{past.dims[0]} || isFloat(first.type))
    return n.error("places of shape " + str(first.dims));
  Dims column(past.rank(), 1), line(past.rank(), 1);
  column[0] = past.dims[0];
  line[axis] = update.dims[axis];
  ASSIGN_OR_FAIL(Val start, castTo(n, first, ElementType::I64));
  ASSIGN_OR_FAIL(start, reshaped(n, start, column));
  Expression at(n, start);
  at = at + at.other(Val(iota(line, axis)));
  if (mode == "circular")
    at = at.with(wholeModulo, at.number(double(past.dims[axis])));
  ASSIGN_OR_FAIL(Val places, at.value());
  ASSIGN_OR_FAIL(places, expand(n, places, update.dims));
  return n.set(
      scatterElements(n, past, places, update, axis, Joining::Replace));
}
static Register tensorScatter("TensorScatter", importTensorScatter);
