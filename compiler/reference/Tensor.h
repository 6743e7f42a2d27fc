// Tensor.h - the values that the reference interpreter computes with.
//
// A shape, an element type, and the elements in row-major order: floating point
// as double for every element type, integers exactly as int64_t (an i1 is 0 or
// 1). Rounding to the element type is a separate, explicit step: by the
// interpreter's default f32 is computed in double, so that two programs of the
// same meaning differ by rounding in double and not by 1e-7.
//
//     Tensor x(Element::F32, {2, 3});        // zeros
//     x.floats[linearIndex({1, 2}, x.shape)] = 0.1;
//     x.roundToElement();                    // now 0.1f

#ifndef TMC_COMPILER_REFERENCE_TENSOR_H
#define TMC_COMPILER_REFERENCE_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace tmc::reference {

enum class Element : uint8_t {
  F8E4M3,
  F8E5M2,
  F16,
  BF16,
  F32,
  F64,
  I1,
  I8,
  I32,
  I64,
};

/// True for the floating-point elements.
bool isFloat(Element element);

/// The element of an MLIR type that nn accepts.
Element elementOf(mlir::Type elementType);

/// Bytes of one element; an i1 occupies one.
int64_t elementBytes(Element element);

/// True for floating-point elements of fewer bits than f32.
bool isNarrow(Element element);

/// `value` as `element` can hold it: to nearest, ties to even. A value that is
/// too large becomes infinite, or the largest number in types of 8 bits. Narrow
/// elements are rounded to f32 first, because kernels compute them in f32.
/// Doubles pass through.
double roundTo(Element element, double value);
/// The same for a float type, including TF32.
double roundTo(mlir::Type type, double value);

struct Tensor {
  Element element = Element::F64;
  llvm::SmallVector<int64_t> shape;
  std::vector<double> floats; ///< One per element, or empty for integers.
  std::vector<int64_t> ints;  ///< One per element, or empty for floats.

  Tensor() = default;
  /// Zeros.
  Tensor(Element element, llvm::ArrayRef<int64_t> shape);
  /// Zeros of a statically shaped type.
  explicit Tensor(mlir::ShapedType type);

  /// The elements of a constant. A splat is expanded.
  static Tensor fromAttr(mlir::DenseElementsAttr attr);
  /// Reads elements as the compiled step stores them, little-endian and dense.
  static Tensor fromBytes(Element element, llvm::ArrayRef<int64_t> shape,
                          const void *data);
  /// Writes the elements as fromBytes reads them; floats are rounded.
  void toBytes(void *data) const;

  bool isFloat() const { return reference::isFloat(element); }
  int64_t rank() const { return shape.size(); }
  int64_t size() const { return isFloat() ? floats.size() : ints.size(); }

  /// Element `index` as a number, for ops that accept both kinds.
  double number(int64_t index) const {
    return isFloat() ? floats[index] : double(ints[index]);
  }
  /// Copies element `from` of `source`, which has the same kind of element.
  void set(int64_t index, const Tensor &source, int64_t from) {
    if (isFloat())
      floats[index] = source.floats[from];
    else
      ints[index] = source.ints[from];
  }

  /// Rounds floating-point elements to the element type.
  void roundToElement();
};

/// The number of elements of `shape`; 1 for a scalar.
int64_t numElements(llvm::ArrayRef<int64_t> shape);

/// The row-major position of `index` in `shape`.
int64_t linearIndex(llvm::ArrayRef<int64_t> index,
                    llvm::ArrayRef<int64_t> shape);

/// Calls `visit(index, position)` for every index of `shape` in row-major
/// order; a scalar has one empty index.
void forEachIndex(
    llvm::ArrayRef<int64_t> shape,
    llvm::function_ref<void(llvm::ArrayRef<int64_t>, int64_t)> visit);

/// Row-major strides, in elements, of `shape`.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

/// An element of a tensor per index: at start + sum of index[i] * strides[i].
struct Walk {
  int64_t start = 0;
  llvm::SmallVector<int64_t> strides;

  /// The elements of a tensor of `shape`, in its own order.
  static Walk over(llvm::ArrayRef<int64_t> shape) {
    return {0, stridesOf(shape)};
  }
};

/// Calls `visit(a, b)` with the positions of both walks for every index of
/// `shape` in row-major order.
template <typename F>
void forEachPair(llvm::ArrayRef<int64_t> shape, const Walk &a, const Walk &b,
                 F &&visit) {
  int64_t rank = shape.size(), width = rank ? shape.back() : 1;
  int64_t rows = width ? numElements(shape) / width : 0;
  int64_t stepA = rank ? a.strides.back() : 0,
          stepB = rank ? b.strides.back() : 0;
  llvm::SmallVector<int64_t> index(rank, 0);
  int64_t atA = a.start, atB = b.start;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i)
      visit(atA + i * stepA, atB + i * stepB);
    for (int64_t dim = rank - 2; dim >= 0; --dim) {
      atA += a.strides[dim];
      atB += b.strides[dim];
      if (++index[dim] < shape[dim])
        break;
      atA -= shape[dim] * a.strides[dim];
      atB -= shape[dim] * b.strides[dim];
      index[dim] = 0;
    }
  }
}

/// Copies `from`'s elements to `to`'s for every index of `shape`.
void copyElements(llvm::ArrayRef<int64_t> shape, Tensor &to, const Walk &toWalk,
                  const Tensor &from, const Walk &fromWalk);

} // namespace tmc::reference

#endif // TMC_COMPILER_REFERENCE_TENSOR_H
