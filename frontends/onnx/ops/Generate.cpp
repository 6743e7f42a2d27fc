// Generate.cpp - constants, and tensors made only from numbers.

#include "frontends/common/ops/Generate.h"
#include "frontends/Checked.h"
#include "frontends/onnx/Importer.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static FailureOr<Array> arrayOfTensor(Node &n,
                                      const onnx::TensorProto &tensor) {
  auto data = locate(tensor);
  if (!data)
    return n.error(data.failure().message);
  auto array = readArray(n.reader.files(), *data);
  if (!array)
    return n.error(array.failure().message);
  return *array;
}

static LogicalResult importConstant(Node &n) {
  if (const auto *a = n.attribute("value")) {
    ASSIGN_OR_FAIL(Array array, arrayOfTensor(n, a->t()));
    return n.set(array);
  }
  if (const auto *a = n.attribute("value_int"))
    return n.set(Array::ofInts(ElementType::I64, {}, {a->i()}));
  if (const auto *a = n.attribute("value_ints"))
    return n.set(Array::ofShape(Dims(a->ints().begin(), a->ints().end())));
  if (const auto *a = n.attribute("value_float"))
    return n.set(Array::ofFloats(ElementType::F32, {}, {a->f()}));
  if (const auto *a = n.attribute("value_floats"))
    return n.set(Array::ofFloats(ElementType::F32, {a->floats_size()},
                                 {a->floats().begin(), a->floats().end()}));
  return n.unsupported("a constant that is no dense tensor");
}
static Register constant("Constant", importConstant);

static LogicalResult importConstantOfShape(Node &n) {
  ASSIGN_OR_FAIL(Dims dims, n.ints(0));
  if (!checkedNumElements(dims))
    return n.error("asks for the shape " + str(dims));
  Array value = Array::splat(ElementType::F32, {}, 0);
  if (const auto *a = n.attribute("value")) {
    ASSIGN_OR_FAIL(value, arrayOfTensor(n, a->t()));
    if (value.size() != 1)
      return n.error("a value of shape " + str(value.dims()));
  }
  return n.set(value.reshaped({}).broadcastTo(dims));
}
static Register constantOfShape("ConstantOfShape", importConstantOfShape);

static LogicalResult importRange(Node &n) {
  ASSIGN_OR_FAIL(Array start, n.array(0));
  ASSIGN_OR_FAIL(Array limit, n.array(1));
  ASSIGN_OR_FAIL(Array delta, n.array(2));
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1)
    return n.error("wants three numbers");
  return n.set(range(n, start.type(), start.floats()[0], limit.floats()[0],
                     delta.floats()[0]));
}
static Register rangeOp("Range", importRange);

static LogicalResult importEyeLike(Node &n) {
  const Val x = n.input(0);
  ElementType type = x.type;
  if (int64_t number = n.intAttr("dtype", 0)) {
    auto given = typeOfNumber(number);
    if (!given)
      return n.unsupported("elements of type number " + Twine(number));
    type = *given;
  }
  if (x.rank() != 2)
    return n.error("an input of shape " + str(x.dims));
  return n.set(diagonal(n, x.dims[0], x.dims[1], n.intAttr("k", 0), type));
}
static Register eyeLike("EyeLike", importEyeLike);

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), for `size` elements.
static LogicalResult window(Node &n, double a0, double a1, double a2) {
  ASSIGN_OR_FAIL(Dims size, n.ints(0));
  auto type = typeOfNumber(n.intAttr("output_datatype", 1));
  if (size.size() != 1 || size[0] < 0 || size[0] > kMaxFoldElements || !type)
    return n.error("a window of " + str(size));
  double period = n.intAttr("periodic", 1) ? size[0] : size[0] - 1;
  std::vector<double> values;
  for (int64_t i = 0; i < size[0]; ++i) {
    double angle = 2 * M_PI * i / period;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return n.set(Val(
      Array::ofFloats(ElementType::F64, size, std::move(values)).cast(*type)));
}
static LogicalResult importHann(Node &n) { return window(n, 0.5, 0.5, 0); }
static Register hann("HannWindow", importHann);
static LogicalResult importHamming(Node &n) {
  return window(n, 25.0 / 46, 21.0 / 46, 0);
}
static Register hamming("HammingWindow", importHamming);
static LogicalResult importBlackman(Node &n) {
  return window(n, 0.42, 0.5, 0.08);
}
static Register blackman("BlackmanWindow", importBlackman);

static LogicalResult importTrilu(Node &n) {
  int64_t k = 0;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(Dims diagonal, n.ints(1));
    k = diagonal.empty() ? 0 : diagonal[0];
  }
  return n.set(triangle(n, n.input(0), n.intAttr("upper", 1), k));
}
static Register trilu("Trilu", importTrilu);

static LogicalResult importCumSum(Node &n) {
  ASSIGN_OR_FAIL(Dims entry, n.ints(1));
  if (entry.size() != 1)
    return n.error("wants one axis, not " + str(entry));
  CumulativeSum how;
  how.axis = entry[0];
  how.exclusive = n.intAttr("exclusive", 0);
  how.reverse = n.intAttr("reverse", 0);
  return n.set(cumulativeSum(n, n.input(0), how));
}
static Register cumSum("CumSum", importCumSum);

/// The condition must be known: one branch is imported, the other is dropped.
static LogicalResult importIf(Node &n) {
  n.ignore({"then_branch", "else_branch"}); // One of them isn't taken.
  ASSIGN_OR_FAIL(Dims condition, n.ints(0));
  const char *name =
      condition.size() == 1 && condition[0] ? "then_branch" : "else_branch";
  const auto *branch = n.attribute(name);
  if (!branch || !branch->has_g())
    return n.error("has no " + Twine(name));
  return importBranch(n, branch->g());
}
static Register conditional("If", importIf);

/// Imports the body once per trip, if the number of trips is known, with the
/// values that pass from trip to trip and the values that trips add to a
/// result.
static LogicalResult importLoop(Node &n) {
  const auto *body = n.attribute("body");
  if (!body || !body->has_g())
    return n.error("has no body");
  return importLoop(n, body->g());
}
static Register loop("Loop", importLoop);

static LogicalResult importScan(Node &n) {
  const auto *body = n.attribute("body");
  if (!body || !body->has_g())
    return n.error("has no body");
  return importScan(n, body->g());
}
static Register scan("Scan", importScan);

/// Imports the body once per element of a sequence.
static LogicalResult importSequenceMap(Node &n) {
  const auto *body = n.attribute("body");
  if (!body || !body->has_g())
    return n.error("has no body");
  return importSequenceMap(n, body->g());
}
static Register sequenceMap("SequenceMap", importSequenceMap);
