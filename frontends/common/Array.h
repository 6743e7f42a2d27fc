// Array.h - a tensor whose elements are known at import.
//
// Shape arithmetic, position tables and masks are computed during import, so
// that they cost nothing in the step. An array is a strided view of shared
// elements; a stride of 0 repeats, so that expanding a mask over batch and
// heads costs nothing, and pointwise work on it is done once:
//
//   [1, 1, T, T] expanded to [B, H, T, T]
//   strides (0, 0, T, 1): T * T elements
//
// Elements are held as double or int64_t for every element type, and are
// rounded or wrapped to it after each operation.

#ifndef TMC_FRONTENDS_COMMON_ARRAY_H
#define TMC_FRONTENDS_COMMON_ARRAY_H

#include "frontends/common/ElementType.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tmc::frontend {

using Dims = llvm::SmallVector<int64_t, 4>;

/// Arrays with more distinct elements than this aren't computed at import.
constexpr int64_t kMaxFoldElements = int64_t(1) << 24;

class Array {
public:
  Array() = default;

  static Array ofInts(ElementType type, llvm::ArrayRef<int64_t> dims,
                      std::vector<int64_t> values);
  static Array ofFloats(ElementType type, llvm::ArrayRef<int64_t> dims,
                        std::vector<double> values);
  /// A vector of i64, the form of shapes.
  static Array ofShape(llvm::ArrayRef<int64_t> values);
  /// Elements as they lie in a file: row-major, little endian, any alignment.
  /// `bytes` must hold as many elements as `dims` has.
  static Array ofBytes(ElementType type, llvm::ArrayRef<int64_t> dims,
                       std::string_view bytes);
  /// `value` repeated to `dims`.
  static Array splat(ElementType type, llvm::ArrayRef<int64_t> dims,
                     double value);
  static Array splatInt(ElementType type, llvm::ArrayRef<int64_t> dims,
                        int64_t value);

  ElementType type() const { return elementType; }
  llvm::ArrayRef<int64_t> dims() const { return shape; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size() const;
  /// The number of elements without repetition along stride 0.
  int64_t distinct() const;
  /// True if the array repeats along `dim` by a stride of 0.
  bool repeats(int64_t dim) const { return strides[dim] == 0; }

  /// All elements in row-major order. `ints` truncates floats.
  std::vector<int64_t> ints() const;
  std::vector<double> floats() const;

  // Views of the same elements.
  /// Broadcast by NumPy's rule; `dims` must be compatible.
  Array broadcastTo(llvm::ArrayRef<int64_t> dims) const;
  Array transposed(llvm::ArrayRef<int64_t> perm) const;
  /// Element i along `dim` is element start + i * step of this array; `step`
  /// may be negative.
  Array sliced(int64_t dim, int64_t start, int64_t step, int64_t length) const;

  /// The same elements in another shape of the same size; copies if needed.
  Array reshaped(llvm::ArrayRef<int64_t> dims) const;
  /// The same array with a stride of 0 along each dimension whose elements are
  /// all equal.
  Array compressed() const;
  Array cast(ElementType type) const;

  /// The sub-array without repeated dimensions; `kept` gets the dimensions of
  /// this array that remain.
  Array unrepeated(llvm::SmallVectorImpl<int64_t> &kept) const;

private:
  Array withDims(llvm::ArrayRef<int64_t> dims) const;
  template <typename T>
  void gather(const std::vector<T> &from, std::vector<T> &to) const;

  ElementType elementType = ElementType::F32;
  Dims shape, strides;
  int64_t offset = 0;
  std::shared_ptr<const std::vector<int64_t>> intData;
  std::shared_ptr<const std::vector<double>> floatData;
};

/// The same bits as elements of `type`; the number of elements must not change.
Array bitsAs(const Array &array, ElementType type);

/// As an attribute; the element type must exist in the IR.
mlir::DenseElementsAttr attributeOf(const Array &array,
                                    mlir::MLIRContext *context);

/// Pointwise functions on arrays of equal shape; repetition is preserved. The
/// function computes on doubles or on integers, by the operands' type.
Array mapFloats(ElementType result, llvm::ArrayRef<Array> operands,
                llvm::function_ref<double(llvm::ArrayRef<double>)> fn);
Array mapInts(ElementType result, llvm::ArrayRef<Array> operands,
              llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> fn);
/// The number of elements that a pointwise function computes; a column and a
/// row give a table.
int64_t mappedElements(llvm::ArrayRef<Array> operands);

/// The common shape of `a` and `b` by NumPy's broadcasting rule; nothing if
/// there is none.
std::optional<Dims> broadcastShape(llvm::ArrayRef<int64_t> a,
                                   llvm::ArrayRef<int64_t> b);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_ARRAY_H
