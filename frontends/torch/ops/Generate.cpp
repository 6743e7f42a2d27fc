// Generate.cpp - tensors made only from numbers, and arithmetic on sizes.

#include "frontends/common/ops/Generate.h"
#include "frontends/Checked.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Logic.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/torch/Call.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// A number's default type.
static ElementType typeOf(Call &c, const std::string &name) {
  ElementType type = c.tensor(name).type;
  return isFloat(type) && isNumber(c, name) ? ElementType::F32 : type;
}

static LogicalResult importArange(Call &c) {
  double start = 0, step = 1;
  ASSIGN_OR_FAIL(double end, c.number("end", std::nullopt));
  ASSIGN_OR_FAIL(start, c.number("start", 0));
  ASSIGN_OR_FAIL(step, c.number("step", 1));
  ElementType otherwise = typeOf(c, "end");
  for (const char *name : {"start", "step"})
    if (c.has(name))
      otherwise = promoteTypes(otherwise, typeOf(c, name));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", otherwise));
  return c.set(range(c, type, start, end, step));
}
static Register arange("arange", importArange);

/// A tensor of shape `dims` filled with `value`.
static LogicalResult filled(Call &c, ArrayRef<int64_t> dims, ElementType type,
                            double value) {
  if (!checkedNumElements(dims))
    return c.error("asks for the shape " + str(dims));
  return c.set(Val(Array::splat(type, dims, value)));
}

static LogicalResult importFull(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  ASSIGN_OR_FAIL(double value, c.number("fill_value", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", typeOf(c, "fill_value")));
  return filled(c, dims, type, value);
}
static Register full("full", importFull);

/// A tensor of shape `size`, by default of self's type.
static LogicalResult importNewFull(Call &c) {
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  ASSIGN_OR_FAIL(double value, c.number("fill_value", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", c.tensor("self").type));
  return filled(c, dims, type, value);
}
static Register newFull("new_full", importNewFull);

static LogicalResult importFullLike(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(double value, c.number("fill_value", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", self.type));
  return filled(c, self.dims, type, value);
}
static Register fullLike("full_like", importFullLike);

static LogicalResult ofSize(Call &c, double value) {
  bool isNew = c.has("self");
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", isNew ? c.tensor("self").type
                                                         : ElementType::F32));
  return filled(c, dims, type, value);
}
static LogicalResult importZeros(Call &c) { return ofSize(c, 0); }
static Register zeros("zeros", importZeros);
static Register newZeros("new_zeros", importZeros);
static LogicalResult importOnes(Call &c) { return ofSize(c, 1); }
static Register ones("ones", importOnes);
static Register newOnes("new_ones", importOnes);

/// Programs don't depend on the content of unwritten memory, so zeros are
/// valid.
static LogicalResult importEmpty(Call &c) {
  c.ignore({"stride"});
  bool isNew = c.has("self");
  ASSIGN_OR_FAIL(Dims dims, c.integers("size", isNew ? c.tensor("self").dims
                                                     : std::optional<Dims>()));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", isNew ? c.tensor("self").type
                                                         : ElementType::F32));
  return filled(c, dims, type, 0);
}
static Register empty("empty", importEmpty);
static Register emptyLike("empty_like", importEmpty);
static Register newEmpty("new_empty", importEmpty);
static Register emptyStrided("empty_strided", importEmpty);
static Register emptyPermuted("empty_permuted", importEmpty);

static LogicalResult importEye(Call &c) {
  ASSIGN_OR_FAIL(int64_t rows, c.integer("n", std::nullopt));
  ASSIGN_OR_FAIL(int64_t columns, c.integer("m", rows));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", ElementType::F32));
  return c.set(diagonal(c, rows, columns, 0, type));
}
static Register eye("eye", importEye);

/// The row and column indices of the elements of a triangle.
static LogicalResult triangleIndices(Call &c, bool upper) {
  ASSIGN_OR_FAIL(int64_t rows, c.integer("row", std::nullopt));
  ASSIGN_OR_FAIL(int64_t columns, c.integer("col", std::nullopt));
  ASSIGN_OR_FAIL(int64_t offset, c.integer("offset", 0));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", ElementType::I64));
  if (rows < 0 || columns < 0 || (columns && rows > kMaxFoldElements / columns))
    return c.unsupported("a triangle of " + Twine(rows) + " x " +
                         Twine(columns));
  std::vector<int64_t> places, across;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (upper ? j - i >= offset : j - i <= offset) {
        places.push_back(i);
        across.push_back(j);
      }
  int64_t count = places.size();
  places.insert(places.end(), across.begin(), across.end());
  return c.set(Val(Array::ofInts(type, {2, count}, std::move(places))));
}
static LogicalResult importTrilIndices(Call &c) {
  return triangleIndices(c, false);
}
static Register trilIndices("tril_indices", importTrilIndices);
static LogicalResult importTriuIndices(Call &c) {
  return triangleIndices(c, true);
}
static Register triuIndices("triu_indices", importTriuIndices);

/// `of` applied to `steps` evenly spaced numbers from start to end.
static LogicalResult evenly(Call &c, llvm::function_ref<double(double)> of) {
  ASSIGN_OR_FAIL(double start, c.number("start", std::nullopt));
  ASSIGN_OR_FAIL(double end, c.number("end", std::nullopt));
  ASSIGN_OR_FAIL(int64_t steps, c.integer("steps", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", ElementType::F32));
  if (steps < 1 || steps > kMaxFoldElements)
    return c.error("asks for " + Twine(steps) + " numbers");
  std::vector<double> values;
  for (int64_t i = 0; i < steps; ++i)
    values.push_back(
        of(steps == 1 ? start : start + i * ((end - start) / (steps - 1))));
  return c.set(Val(Array::ofFloats(ElementType::F64, {steps}, std::move(values))
                       .cast(type)));
}
static LogicalResult importLinspace(Call &c) {
  return evenly(c, [](double x) { return x; });
}
static Register linspace("linspace", importLinspace);
static LogicalResult importLogspace(Call &c) {
  ASSIGN_OR_FAIL(double base, c.number("base", 10));
  return evenly(c, [&](double x) { return std::pow(base, x); });
}
static Register logspace("logspace", importLogspace);

static LogicalResult like(Call &c, double value) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", self.type));
  return filled(c, self.dims, type, value);
}
static LogicalResult importZerosLike(Call &c) { return like(c, 0); }
static Register zerosLike("zeros_like", importZerosLike);
static Register zero("zero", importZerosLike); // zero_()
static LogicalResult importOnesLike(Call &c) { return like(c, 1); }
static Register onesLike("ones_like", importOnesLike);

/// self with all elements set to `value`: fill_().
static LogicalResult importFill(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(double value, c.number("value", std::nullopt));
  return filled(c, self.dims, self.type, value);
}
static Register fill("fill", importFill);

static LogicalResult importScalarTensor(Call &c) {
  ASSIGN_OR_FAIL(double value, c.number("s", std::nullopt));
  ASSIGN_OR_FAIL(ElementType type, c.type("dtype", ElementType::F32));
  return filled(c, {}, type, value);
}
static Register scalarTensor("scalar_tensor", importScalarTensor);

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static LogicalResult importSymSize(Call &c) {
  const Val self = c.tensor("self");
  ASSIGN_OR_FAIL(int64_t dim, c.dim("dim", std::nullopt, self.rank()));
  if (self.dims.empty())
    return c.error("asks for the size of a number");
  return c.set(Val(Array::ofInts(ElementType::I64, {}, {self.dims[dim]})));
}
static Register symSize("sym_size", importSymSize);

static LogicalResult importSymNumel(Call &c) {
  auto count = checkedNumElements(c.tensor("self").dims);
  if (!count)
    return c.error("the number of elements is too large");
  return c.set(Val(Array::ofInts(ElementType::I64, {}, {*count})));
}
static Register symNumel("sym_numel", importSymNumel);

/// The number in a tensor of one element.
static LogicalResult importItem(Call &c) {
  ASSIGN_OR_FAIL(Array array, known(c, c.tensor("self")));
  if (array.size() != 1)
    return c.error("takes a number of shape " + str(array.dims()));
  return c.set(Val(array.reshaped({})));
}
static Register item("item", importItem);
static Register localScalar("_local_scalar_dense", importItem);

/// Python's operators on sizes: `a` and `b`.
using Combine = FailureOr<Val> (*)(Site &, Operands);
static LogicalResult ofSizes(Call &c, Combine combine) {
  return c.set(combine(c, {c.tensor("a"), c.tensor("b")}));
}

#define TMC_SIZES(NAME, BUILDER)                                               \
  static LogicalResult import_##NAME(Call &c) { return ofSizes(c, BUILDER); }  \
  static Register register_##NAME("_operator." #NAME, import_##NAME)

TMC_SIZES(add, add);
TMC_SIZES(sub, subtract);
TMC_SIZES(mul, multiply);
TMC_SIZES(mod, floorModulo);
TMC_SIZES(eq, equals);
TMC_SIZES(ne, notEqual);
TMC_SIZES(lt, less);
TMC_SIZES(le, lessOrEqual);
TMC_SIZES(gt, greater);
TMC_SIZES(ge, greaterOrEqual);

static FailureOr<Val> floorDivide(Site &s, Operands two) {
  ASSIGN_OR_FAIL(Val rest, floorModulo(s, two));
  ASSIGN_OR_FAIL(Val whole, subtract(s, {two[0], rest}));
  return divide(s, {whole, two[1]});
}
TMC_SIZES(floordiv, floorDivide);

static FailureOr<Val> trueDivide(Site &s, Operands two) {
  SmallVector<Val> floats;
  for (const Val &v : two) {
    ASSIGN_OR_FAIL(Val x, castTo(s, v, ElementType::F64));
    floats.push_back(x);
  }
  return divide(s, floats);
}
TMC_SIZES(truediv, trueDivide);

static LogicalResult importNegSize(Call &c) {
  return c.set(negate(c, c.tensor("a")));
}
static Register negSize("_operator.neg", importNegSize);

static LogicalResult importSymMax(Call &c) { return ofSizes(c, maximum); }
static Register symMax("torch.sym_max", importSymMax);
static LogicalResult importSymMin(Call &c) { return ofSizes(c, minimum); }
static Register symMin("torch.sym_min", importSymMin);
