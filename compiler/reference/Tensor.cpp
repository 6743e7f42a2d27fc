#include "compiler/reference/Tensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace tmc::reference;

bool tmc::reference::isFloat(Element element) {
  return element <= Element::F64;
}

bool tmc::reference::isNarrow(Element element) {
  return element < Element::F32;
}

Element tmc::reference::elementOf(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return Element::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return Element::F8E5M2;
  if (type.isF16())
    return Element::F16;
  if (type.isBF16())
    return Element::BF16;
  if (type.isF32())
    return Element::F32;
  if (type.isF64())
    return Element::F64;
  if (type.isInteger(1))
    return Element::I1;
  if (type.isInteger(8))
    return Element::I8;
  if (type.isInteger(32))
    return Element::I32;
  if (type.isInteger(64))
    return Element::I64;
  llvm::report_fatal_error("the interpreter met an element type unknown to nn");
}

int64_t tmc::reference::elementBytes(Element element) {
  switch (element) {
  case Element::F8E4M3:
  case Element::F8E5M2:
  case Element::I1:
  case Element::I8:
    return 1;
  case Element::F16:
  case Element::BF16:
    return 2;
  case Element::F32:
  case Element::I32:
    return 4;
  case Element::F64:
  case Element::I64:
    return 8;
  }
  llvm_unreachable("all elements are listed");
}

/// Rounds to `digits` significant bits, with subnormals below 2^minExponent.
/// The result may be larger than a type of so many digits can hold.
static double roundBinary(double value, int digits, int minExponent) {
  if (value == 0 || !std::isfinite(value))
    return value;
  int exponent;
  std::frexp(value, &exponent); // value = f * 2^exponent, f in [1/2, 1)
  double unit = std::ldexp(1.0, std::max(exponent, minExponent + 1) - digits);
  return std::nearbyint(value / unit) * unit; // ties to even
}

double tmc::reference::roundTo(Element element, double value) {
  const double single = float(value);
  auto capped = [](double rounded, double largest, double beyond) {
    return std::fabs(rounded) > largest ? std::copysign(beyond, rounded)
                                        : rounded;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (element) {
  case Element::F8E4M3:
    return capped(roundBinary(single, 4, -6), 448, 448);
  case Element::F8E5M2:
    return capped(roundBinary(single, 3, -14), 57344, 57344);
  case Element::F16:
    return capped(roundBinary(single, 11, -14), 65504, infinity);
  case Element::BF16:
    return capped(roundBinary(single, 8, -126), std::ldexp(255.0, 120),
                  infinity);
  case Element::F32:
    return single;
  default:
    return value;
  }
}

double tmc::reference::roundTo(Type type, double value) {
  if (!type.isTF32())
    return roundTo(elementOf(type), value);
  double rounded = roundBinary(float(value), 11, -126);
  return std::fabs(rounded) >= std::ldexp(1.0, 128)
             ? std::copysign(std::numeric_limits<double>::infinity(), rounded)
             : rounded;
}

/// LLVM's name for a narrow element's format.
static const llvm::fltSemantics &semanticsOf(Element element) {
  switch (element) {
  case Element::F8E4M3:
    return llvm::APFloat::Float8E4M3FN();
  case Element::F8E5M2:
    return llvm::APFloat::Float8E5M2();
  case Element::F16:
    return llvm::APFloat::IEEEhalf();
  default:
    assert(element == Element::BF16 && "f32 and wider are C++'s own types");
    return llvm::APFloat::BFloat();
  }
}

Tensor::Tensor(Element element, ArrayRef<int64_t> shape)
    : element(element), shape(shape) {
  if (reference::isFloat(element))
    floats.assign(numElements(shape), 0.0);
  else
    ints.assign(numElements(shape), 0);
}

Tensor::Tensor(ShapedType type)
    : Tensor(elementOf(type.getElementType()), type.getShape()) {}

Tensor Tensor::fromAttr(DenseElementsAttr attr) {
  Tensor result(attr.getType());
  if (result.isFloat()) {
    auto number = [](APFloat value) {
      bool losesInfo;
      value.convert(llvm::APFloat::IEEEdouble(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      return value.convertToDouble();
    };
    if (attr.isSplat()) {
      std::fill(result.floats.begin(), result.floats.end(),
                number(attr.getSplatValue<APFloat>()));
      return result;
    }
    int64_t i = 0;
    for (APFloat value : attr.getValues<APFloat>())
      result.floats[i++] = number(std::move(value));
    return result;
  }
  int64_t i = 0;
  for (const APInt &value : attr.getValues<APInt>())
    result.ints[i++] = result.element == Element::I1 ? value.getZExtValue()
                                                     : value.getSExtValue();
  return result;
}

template <typename T> static T load(const void *data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

Tensor Tensor::fromBytes(Element element, ArrayRef<int64_t> shape,
                         const void *data) {
  Tensor result(element, shape);
  auto narrow = [&](unsigned width, uint64_t bits) {
    llvm::APFloat value(semanticsOf(element), APInt(width, bits));
    bool losesInfo;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return value.convertToDouble();
  };
  for (int64_t i = 0, e = numElements(shape); i < e; ++i) {
    switch (element) {
    case Element::F8E4M3:
    case Element::F8E5M2:
      result.floats[i] = narrow(8, load<uint8_t>(data, i));
      break;
    case Element::F16:
    case Element::BF16:
      result.floats[i] = narrow(16, load<uint16_t>(data, i));
      break;
    case Element::F32:
      result.floats[i] = load<float>(data, i);
      break;
    case Element::F64:
      result.floats[i] = load<double>(data, i);
      break;
    case Element::I1:
      result.ints[i] = load<uint8_t>(data, i) != 0;
      break;
    case Element::I8:
      result.ints[i] = load<int8_t>(data, i);
      break;
    case Element::I32:
      result.ints[i] = load<int32_t>(data, i);
      break;
    case Element::I64:
      result.ints[i] = load<int64_t>(data, i);
      break;
    }
  }
  return result;
}

template <typename T> static void store(void *data, int64_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

void Tensor::toBytes(void *data) const {
  auto narrow = [&](double number) {
    llvm::APFloat value(roundTo(element, number));
    bool losesInfo;
    value.convert(semanticsOf(element), llvm::APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return value.bitcastToAPInt().getZExtValue();
  };
  for (int64_t i = 0, e = size(); i < e; ++i) {
    switch (element) {
    case Element::F8E4M3:
    case Element::F8E5M2:
      store(data, i, uint8_t(narrow(floats[i])));
      break;
    case Element::F16:
    case Element::BF16:
      store(data, i, uint16_t(narrow(floats[i])));
      break;
    case Element::F32:
      store(data, i, float(floats[i]));
      break;
    case Element::F64:
      store(data, i, floats[i]);
      break;
    case Element::I1:
    case Element::I8:
      store(data, i, int8_t(ints[i]));
      break;
    case Element::I32:
      store(data, i, int32_t(ints[i]));
      break;
    case Element::I64:
      store(data, i, ints[i]);
      break;
    }
  }
}

void Tensor::roundToElement() {
  for (double &value : floats)
    value = roundTo(element, value);
}

int64_t tmc::reference::numElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t tmc::reference::linearIndex(ArrayRef<int64_t> index,
                                    ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    position = position * size + i;
  return position;
}

void tmc::reference::forEachIndex(
    ArrayRef<int64_t> shape,
    llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t position = 0, e = numElements(shape); position < e; ++position) {
    visit(index, position);
    for (int64_t dim = shape.size() - 1; dim >= 0; --dim) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

SmallVector<int64_t> tmc::reference::stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

void tmc::reference::copyElements(ArrayRef<int64_t> shape, Tensor &to,
                                  const Walk &toWalk, const Tensor &from,
                                  const Walk &fromWalk) {
  if (to.isFloat())
    forEachPair(shape, toWalk, fromWalk,
                [&](int64_t t, int64_t f) { to.floats[t] = from.floats[f]; });
  else
    forEachPair(shape, toWalk, fromWalk,
                [&](int64_t t, int64_t f) { to.ints[t] = from.ints[f]; });
}
