// Generate.cpp - constants, and tensors made from numbers alone.

#include "frontends/Checked.h"
#include "frontends/onnx/Importer.h"
#include "frontends/onnx/ops/Pointwise.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

static FailureOr<Array> arrayOfTensor(Node &n,
                                      const onnx::TensorProto &tensor) {
  auto data = locate(tensor);
  if (!data)
    return n.error(data.failure().message);
  auto array = readArray(n.importer.files(), *data);
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
  double step = delta.floats()[0];
  double count = std::ceil((limit.floats()[0] - start.floats()[0]) / step);
  if (step == 0 || !(count < kMaxFoldElements))
    return n.error("a range of " + std::to_string(count) + " numbers");
  int64_t size = std::max<int64_t>(static_cast<int64_t>(count), 0);
  if (isFloat(start.type())) {
    std::vector<double> values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(start.floats()[0] + i * step);
    return n.set(Array::ofFloats(start.type(), {size}, std::move(values)));
  }
  std::vector<int64_t> values;
  int64_t first = start.ints()[0], by = delta.ints()[0];
  for (int64_t i = 0; i < size; ++i)
    values.push_back(first + i * by);
  return n.set(Array::ofInts(start.type(), {size}, std::move(values)));
}
static Register range("Range", importRange);

/// The number of row or column of each element of `dims`.
static Array iotaArray(ArrayRef<int64_t> dims, int64_t dim) {
  std::vector<int64_t> values(dims[dim]);
  for (int64_t i = 0; i < dims[dim]; ++i)
    values[i] = i;
  Dims shape(dims.size(), 1);
  shape[dim] = dims[dim];
  return Array::ofInts(ElementType::I64, shape, std::move(values))
      .broadcastTo(dims);
}

static LogicalResult importTrilu(Node &n) {
  const Val x = n.input(0);
  if (x.rank() < 2)
    return n.error("wants a matrix, not shape " + str(x.dims));
  bool upper = n.intAttr("upper", 1);
  int64_t k = 0;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(Dims diagonal, n.ints(1));
    k = diagonal.empty() ? 0 : diagonal[0];
  }
  // The mask is a constant, and so is the result where the operand is.
  Dims plane{x.dims[x.rank() - 2], x.dims[x.rank() - 1]};
  if (plane[0] > kMaxFoldElements / std::max<int64_t>(plane[1], 1))
    return n.unsupported("a mask of shape " + str(plane));
  Array keep = Array::mapInts(
      ElementType::Bool, {iotaArray(plane, 0), iotaArray(plane, 1)},
      [&](Ints at) -> int64_t {
        return upper ? at[1] - at[0] >= k : at[1] - at[0] <= k;
      });
  keep = keep.broadcastTo(x.dims);
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    if (isFloat(x.type))
      return n.set(Array::mapFloats(x.type, {keep, array},
                                    [](Doubles v) { return v[0] ? v[1] : 0; }));
    return n.set(Array::mapInts(x.type, {keep, array},
                                [](Ints v) { return v[0] ? v[1] : 0; }));
  }
  ASSIGN_OR_FAIL(Value value, n.value(0));
  ASSIGN_OR_FAIL(Value mask, n.broadcast(Val(keep), x.dims));
  return n.set(arith::SelectOp::create(n.b, n.loc, mask, value,
                                       like(n.b, n.loc, value, 0)));
}
static Register trilu("Trilu", importTrilu);

/// Sums from the start along an axis, as a sum over a triangle.
static LogicalResult importCumSum(Node &n) {
  const Val x = n.input(0);
  ASSIGN_OR_FAIL(Dims entry, n.ints(1));
  if (entry.size() != 1)
    return n.error("wants one axis, not " + str(entry));
  ASSIGN_OR_FAIL(int64_t axis, n.axis(entry[0], x.rank()));
  bool exclusive = n.intAttr("exclusive", 0), reverse = n.intAttr("reverse", 0);
  int64_t size = x.dims[axis];
  if (n.foldable(0)) {
    ASSIGN_OR_FAIL(Array array, n.array(0));
    // Along the innermost dimension of the distinct part.
    Dims perm;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != axis)
        perm.push_back(i);
    perm.push_back(axis);
    Dims back(x.rank());
    for (auto [i, dim] : llvm::enumerate(perm))
      back[dim] = i;
    Array rows = array.transposed(perm);
    Dims dims(rows.dims());
    if (rows.size() > kMaxFoldElements)
      return n.unsupported("a sum over shape " + str(x.dims));
    auto sums = [&](auto values) {
      for (size_t row = 0; row + size <= values.size() && size; row += size) {
        auto total = decltype(values[0] + 0)(0);
        for (int64_t k = 0; k < size; ++k) {
          auto &v = values[row + (reverse ? size - 1 - k : k)];
          auto before = total;
          total += v;
          v = exclusive ? before : total;
        }
      }
      return values;
    };
    Array result = isFloat(x.type)
                       ? Array::ofFloats(x.type, dims, sums(rows.floats()))
                       : Array::ofInts(x.type, dims, sums(rows.ints()));
    return n.set(result.transposed(back).compressed());
  }
  // y[.., i, ..] = sum over j of x[.., j, ..] where j is at or before i.
  if (size > kMaxFoldElements / size)
    return n.unsupported("a running sum over " + Twine(size) + " elements");
  Array counts =
      Array::mapInts(ElementType::Bool,
                     {iotaArray({size, size}, 0), iotaArray({size, size}, 1)},
                     [&](Ints at) -> int64_t {
                       int64_t ahead = reverse ? at[1] - at[0] : at[0] - at[1];
                       return exclusive ? ahead > 0 : ahead >= 0;
                     });
  Dims withRow(x.dims), column(x.dims), mask(x.rank() + 1, 1);
  withRow.insert(withRow.begin() + axis, size);
  column.insert(column.begin() + axis, 1);
  mask[axis] = mask[axis + 1] = size;
  ASSIGN_OR_FAIL(Value value, n.value(0));
  Val apart(n.reshape(value, column));
  ASSIGN_OR_FAIL(Value wide, n.broadcast(apart, withRow));
  ASSIGN_OR_FAIL(Value keep, n.broadcast(Val(counts.reshaped(mask)), withRow));
  Value chosen = arith::SelectOp::create(n.b, n.loc, keep, wide,
                                         like(n.b, n.loc, wide, 0));
  return n.set(nn::reduceSum(n.b, n.loc, chosen, {axis + 1}));
}
static Register cumSum("CumSum", importCumSum);

/// Only a condition that is known: one branch is the graph, the other nothing.
static LogicalResult importIf(Node &n) {
  ASSIGN_OR_FAIL(Dims condition, n.ints(0));
  const char *name =
      condition.size() == 1 && condition[0] ? "then_branch" : "else_branch";
  const auto *branch = n.attribute(name);
  if (!branch || !branch->has_g())
    return n.error("has no " + Twine(name));
  return n.importer.importBranch(n, branch->g());
}
static Register conditional("If", importIf);
