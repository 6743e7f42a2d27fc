#include "frontends/common/Array.h"
#include "frontends/Checked.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <limits>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static Dims rowMajor(ArrayRef<int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Array Array::withDims(ArrayRef<int64_t> dims) const {
  Array result;
  result.elementType = elementType;
  result.shape.assign(dims.begin(), dims.end());
  result.strides = rowMajor(dims);
  return result;
}

Array Array::ofInts(ElementType type, ArrayRef<int64_t> dims,
                    std::vector<int64_t> values) {
  Array result;
  result.elementType = type;
  result = result.withDims(dims);
  assert(result.size() == static_cast<int64_t>(values.size()));
  for (int64_t &value : values)
    value = wrapTo(type, value);
  result.intData = std::make_shared<std::vector<int64_t>>(std::move(values));
  return result;
}

Array Array::ofFloats(ElementType type, ArrayRef<int64_t> dims,
                      std::vector<double> values) {
  Array result;
  result.elementType = type;
  result = result.withDims(dims);
  assert(result.size() == static_cast<int64_t>(values.size()));
  for (double &value : values)
    value = roundTo(type, value);
  result.floatData = std::make_shared<std::vector<double>>(std::move(values));
  return result;
}

template <typename T, typename Out>
static std::vector<Out> elements(std::string_view bytes) {
  std::vector<Out> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<Out>(value);
  }
  return values;
}

static std::vector<double> halves(std::string_view bytes,
                                  const llvm::fltSemantics &semantics) {
  std::vector<double> values;
  for (uint16_t bits : elements<uint16_t, uint16_t>(bytes))
    values.push_back(
        llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToDouble());
  return values;
}

Array Array::ofBytes(ElementType type, ArrayRef<int64_t> dims,
                     std::string_view bytes) {
  auto ints = [&](std::vector<int64_t> values) {
    return Array::ofInts(type, dims, std::move(values));
  };
  auto floats = [&](std::vector<double> values) {
    return Array::ofFloats(type, dims, std::move(values));
  };
  switch (type) {
  case ElementType::F32:
    return floats(elements<float, double>(bytes));
  case ElementType::F64:
    return floats(elements<double, double>(bytes));
  case ElementType::F16:
    return floats(halves(bytes, llvm::APFloat::IEEEhalf()));
  case ElementType::BF16:
    return floats(halves(bytes, llvm::APFloat::BFloat()));
  case ElementType::Bool:
  case ElementType::U8:
    return ints(elements<uint8_t, int64_t>(bytes));
  case ElementType::I8:
    return ints(elements<int8_t, int64_t>(bytes));
  case ElementType::U16:
    return ints(elements<uint16_t, int64_t>(bytes));
  case ElementType::I16:
    return ints(elements<int16_t, int64_t>(bytes));
  case ElementType::I32:
    return ints(elements<int32_t, int64_t>(bytes));
  case ElementType::U32:
    return ints(elements<uint32_t, int64_t>(bytes));
  case ElementType::I64:
  case ElementType::U64:
    return ints(elements<int64_t, int64_t>(bytes));
  }
  llvm_unreachable("every element type has a reader");
}

Array Array::ofShape(ArrayRef<int64_t> values) {
  return ofInts(ElementType::I64, {static_cast<int64_t>(values.size())},
                {values.begin(), values.end()});
}

Array Array::splat(ElementType type, ArrayRef<int64_t> dims, double value) {
  if (!isFloat(type))
    return splatInt(type, dims, static_cast<int64_t>(value));
  return ofFloats(type, {}, {value}).broadcastTo(dims);
}

Array Array::splatInt(ElementType type, ArrayRef<int64_t> dims, int64_t value) {
  return ofInts(type, {}, {value}).broadcastTo(dims);
}

int64_t Array::size() const {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

int64_t Array::distinct() const {
  int64_t count = 1;
  for (auto [dim, stride] : llvm::zip(shape, strides))
    count *= stride == 0 ? std::min<int64_t>(dim, 1) : dim;
  return count;
}

template <typename T>
void Array::gather(const std::vector<T> &from, std::vector<T> &to) const {
  int64_t count = size();
  to.resize(count);
  if (count == 0)
    return;
  if (rank() == 0) {
    to[0] = from[offset];
    return;
  }
  int64_t inner = shape.back(), innerStride = strides.back();
  Dims index(shape.size() - 1, 0);
  int64_t at = offset;
  for (int64_t next = 0; next < count;) {
    for (int64_t i = 0; i < inner; ++i)
      to[next++] = from[at + i * innerStride];
    for (size_t d = index.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d])
        break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

std::vector<int64_t> Array::ints() const {
  std::vector<int64_t> values;
  if (intData) {
    gather(*intData, values);
    return values;
  }
  std::vector<double> floats;
  gather(*floatData, floats);
  values.reserve(floats.size());
  for (double value : floats) {
    // A conversion out of range is undefined in C++; saturate.
    constexpr double limit = 9223372036854775808.0;
    values.push_back(value >= limit   ? INT64_MAX
                     : value < -limit ? INT64_MIN
                     : value != value ? 0
                                      : static_cast<int64_t>(value));
  }
  return values;
}

std::vector<double> Array::floats() const {
  std::vector<double> values;
  if (floatData) {
    gather(*floatData, values);
    return values;
  }
  std::vector<int64_t> ints;
  gather(*intData, ints);
  values.assign(ints.begin(), ints.end());
  return values;
}

Array Array::broadcastTo(ArrayRef<int64_t> dims) const {
  Array result = *this;
  result.shape.assign(dims.begin(), dims.end());
  result.strides.assign(dims.size(), 0);
  size_t shift = dims.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1)
      result.strides[i + shift] = strides[i];
  return result;
}

Array Array::transposed(ArrayRef<int64_t> perm) const {
  Array result = *this;
  for (auto [i, from] : llvm::enumerate(perm)) {
    result.shape[i] = shape[from];
    result.strides[i] = strides[from];
  }
  return result;
}

Array Array::sliced(int64_t dim, int64_t start, int64_t step,
                    int64_t length) const {
  Array result = *this;
  result.shape[dim] = length;
  if (length > 0)
    result.offset += start * strides[dim];
  result.strides[dim] *= step;
  return result;
}

/// The strides that give `dims` over the same elements without a copy: each run
/// of old dimensions that are contiguous in each other is divided anew. Nothing
/// if a copy is needed.
static std::optional<Dims> restride(ArrayRef<int64_t> oldDims,
                                    ArrayRef<int64_t> oldStrides,
                                    ArrayRef<int64_t> dims) {
  Dims strides(dims.size(), 0);
  size_t i = 0, j = 0;
  while (i < oldDims.size() || j < dims.size()) {
    size_t firstOld = i, firstNew = j;
    int64_t oldCount = i < oldDims.size() ? oldDims[i++] : 1;
    int64_t newCount = j < dims.size() ? dims[j++] : 1;
    while (oldCount != newCount) {
      if (oldCount < newCount) {
        if (i == oldDims.size())
          return std::nullopt;
        oldCount *= oldDims[i++];
      } else {
        if (j == dims.size())
          return std::nullopt;
        newCount *= dims[j++];
      }
    }
    // Old dimensions of the run, except those of size 1, must nest.
    int64_t inner = 0;
    bool any = false;
    for (size_t k = i; k-- > firstOld;) {
      if (oldDims[k] == 1)
        continue;
      if (!any) {
        inner = oldStrides[k];
        any = true;
        continue;
      }
      size_t below = k + 1;
      while (oldDims[below] == 1)
        ++below;
      if (oldStrides[k] != oldStrides[below] * oldDims[below])
        return std::nullopt;
    }
    int64_t stride = inner;
    for (size_t k = j; k-- > firstNew;) {
      strides[k] = stride;
      stride *= dims[k];
    }
  }
  return strides;
}

Array Array::reshaped(ArrayRef<int64_t> dims) const {
  if (size() > 0) {
    if (auto newStrides = restride(shape, strides, dims)) {
      Array result = *this;
      result.shape.assign(dims.begin(), dims.end());
      result.strides = *newStrides;
      return result;
    }
  }
  Array result = withDims(dims);
  if (intData)
    result.intData = std::make_shared<std::vector<int64_t>>(ints());
  else
    result.floatData = std::make_shared<std::vector<double>>(floats());
  return result;
}

template <typename T>
static bool sameAlong(const std::vector<T> &values, ArrayRef<int64_t> dims,
                      size_t dim) {
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    (i < dim ? outer : inner) *= i == dim ? 1 : dims[i];
  int64_t n = dims[dim];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 1; i < n; ++i)
      for (int64_t k = 0; k < inner; ++k) {
        const T &a = values[(o * n + i) * inner + k];
        const T &b = values[o * n * inner + k];
        if (a != b && (a == a || b == b)) // NaN equals NaN here.
          return false;
      }
  return true;
}

/// `array` with the extent 1 along each dimension in which it repeats.
static Array distinctPart(const Array &array) {
  Array part = array;
  for (int64_t dim = 0; dim < array.rank(); ++dim)
    if (array.repeats(dim))
      part = part.sliced(dim, 0, 1, std::min<int64_t>(part.dims()[dim], 1));
  return part;
}

Array Array::compressed() const {
  Array part = distinctPart(*this);
  if (size() == 0)
    return *this;
  // Contiguous if it needed a copy, else unchanged.
  part = part.reshaped(part.shape);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (part.shape[dim] == 1)
      continue;
    bool same = intData ? sameAlong(part.ints(), part.shape, dim)
                        : sameAlong(part.floats(), part.shape, dim);
    if (same)
      part.shape[dim] = 1;
  }
  return part.broadcastTo(shape);
}

static const llvm::fltSemantics &semanticsOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return llvm::APFloat::IEEEhalf();
  case ElementType::BF16:
    return llvm::APFloat::BFloat();
  case ElementType::F64:
    return llvm::APFloat::IEEEdouble();
  default:
    return llvm::APFloat::IEEEsingle();
  }
}

Array tmc::frontend::bitsAs(const Array &array, ElementType to) {
  int64_t width = sizeInFile(to);
  assert(width == sizeInFile(array.type()));
  std::vector<int64_t> bits;
  if (isFloat(array.type())) {
    for (double v : array.floats()) {
      llvm::APFloat number(v);
      bool isExact = false;
      number.convert(semanticsOf(array.type()),
                     llvm::APFloat::rmNearestTiesToEven, &isExact);
      bits.push_back(number.bitcastToAPInt().getSExtValue());
    }
  } else {
    bits = array.ints();
  }
  if (!isFloat(to))
    return Array::ofInts(to, array.dims(), std::move(bits));
  std::vector<double> numbers;
  for (int64_t v : bits) {
    llvm::APInt word(8 * width, static_cast<uint64_t>(v), /*isSigned=*/false,
                     /*implicitTrunc=*/true);
    llvm::APFloat number(semanticsOf(to), word);
    bool isExact = false;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &isExact);
    numbers.push_back(number.convertToDouble());
  }
  return Array::ofFloats(to, array.dims(), std::move(numbers));
}

Array Array::unrepeated(SmallVectorImpl<int64_t> &kept) const {
  Array result = *this;
  result.shape.clear();
  result.strides.clear();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1 || (strides[i] == 0 && shape[i] > 0))
      continue;
    kept.push_back(i);
    result.shape.push_back(shape[i]);
    result.strides.push_back(strides[i]);
  }
  return result;
}

/// The extents of a pointwise result without repetition: 1 along dimensions in
/// which all `operands` repeat.
static Dims mappedDims(ArrayRef<Array> operands) {
  Dims extents(operands[0].dims());
  for (size_t i = 0; i < extents.size(); ++i)
    if (llvm::all_of(operands, [&](const Array &a) { return a.repeats(i); }))
      extents[i] = std::min<int64_t>(extents[i], 1);
  return extents;
}

int64_t tmc::frontend::mappedElements(ArrayRef<Array> operands) {
  return checkedNumElements(mappedDims(operands))
      .value_or(std::numeric_limits<int64_t>::max());
}

/// Applies `fn` to the operands' elements, read by `read`, for each element of
/// `extents`.
template <class T>
static std::vector<T> mapElements(const Dims &extents, ArrayRef<Array> operands,
                                  std::vector<T> (Array::*read)() const,
                                  llvm::function_ref<T(ArrayRef<T>)> fn) {
  SmallVector<std::vector<T>> values;
  for (Array operand : operands) {
    for (auto [dim, extent] : llvm::enumerate(extents))
      operand = operand.sliced(dim, 0, 1, extent);
    values.push_back((operand.*read)());
  }
  std::vector<T> out(values[0].size());
  SmallVector<T, 4> in(operands.size());
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k)
      in[k] = values[k][i];
    out[i] = fn(in);
  }
  return out;
}

Array tmc::frontend::mapFloats(
    ElementType result, ArrayRef<Array> operands,
    llvm::function_ref<double(ArrayRef<double>)> fn) {
  Dims dims(operands[0].dims()), compact = mappedDims(operands);
  std::vector<double> out = mapElements(compact, operands, &Array::floats, fn);
  if (isFloat(result))
    return Array::ofFloats(result, compact, std::move(out)).broadcastTo(dims);
  return Array::ofInts(result, compact, {out.begin(), out.end()})
      .broadcastTo(dims);
}

Array tmc::frontend::mapInts(
    ElementType result, ArrayRef<Array> operands,
    llvm::function_ref<int64_t(ArrayRef<int64_t>)> fn) {
  Dims dims(operands[0].dims()), compact = mappedDims(operands);
  return Array::ofInts(result, compact,
                       mapElements(compact, operands, &Array::ints, fn))
      .broadcastTo(dims);
}

Array Array::cast(ElementType to) const {
  if (to == elementType)
    return *this;
  if (to == ElementType::Bool && floatData)
    return mapFloats(to, {*this}, [](ArrayRef<double> x) { return x[0] != 0; });
  if (isFloat(to))
    return mapFloats(to, {*this}, [](ArrayRef<double> x) { return x[0]; });
  return mapInts(to, {*this}, [](ArrayRef<int64_t> x) { return x[0]; });
}

DenseElementsAttr tmc::frontend::attributeOf(const Array &array,
                                             MLIRContext *context) {
  const ElementType elementType = array.type();
  Type element = irType(elementType, context);
  assert(element && "no such type in the IR");
  auto type = RankedTensorType::get(array.dims(), element);
  if (elementType == ElementType::F32) {
    std::vector<double> values = array.floats();
    std::vector<float> narrow(values.begin(), values.end());
    return DenseElementsAttr::get(type, ArrayRef<float>(narrow));
  }
  if (elementType == ElementType::I64)
    return DenseElementsAttr::get(type, ArrayRef<int64_t>(array.ints()));
  if (elementType == ElementType::Bool) {
    SmallVector<bool> values;
    for (int64_t value : array.ints())
      values.push_back(value != 0);
    return DenseElementsAttr::get(type, ArrayRef<bool>(values));
  }
  if (elementType == ElementType::BF16) {
    // The elements are rounded already. Position tables of long contexts have
    // millions, and every layer reads its own view.
    std::vector<uint16_t> bits;
    bits.reserve(size_t(array.size()));
    for (double value : array.floats())
      bits.push_back(uint16_t(llvm::bit_cast<uint32_t>(float(value)) >> 16));
    return DenseElementsAttr::getFromRawBuffer(
        type, ArrayRef(reinterpret_cast<const char *>(bits.data()),
                       bits.size() * sizeof(uint16_t)));
  }
  if (isFloat(elementType)) {
    SmallVector<APFloat> values;
    for (double value : array.floats()) {
      bool inexact;
      APFloat exact(value);
      exact.convert(llvm::cast<FloatType>(element).getFloatSemantics(),
                    APFloat::rmNearestTiesToEven, &inexact);
      values.push_back(exact);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t value : array.ints())
    values.push_back(
        APInt(element.getIntOrFloatBitWidth(), value, /*isSigned=*/true));
  return DenseElementsAttr::get(type, values);
}

std::optional<Dims> tmc::frontend::broadcastShape(ArrayRef<int64_t> a,
                                                  ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Dims dims(a.begin(), a.end());
  size_t shift = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &dim = dims[i + shift];
    if (dim == 1)
      dim = b[i];
    else if (b[i] != 1 && b[i] != dim)
      return std::nullopt;
  }
  return dims;
}
