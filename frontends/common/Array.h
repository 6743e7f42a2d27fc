// Array.h - a tensor whose elements are known at import.
//
// Shape arithmetic, position tables and masks are computed while importing, so
// that they cost nothing in the step. An array is a strided view of shared
// elements; a stride of 0 repeats, so that expanding a mask over batch and
// heads costs nothing, and pointwise work on it is done once:
//
//   [1, 1, T, T] expanded to [B, H, T, T]   strides (0, 0, T, 1): T * T
//   elements
//
// Elements are held as double or int64_t whatever the element type, rounded or
// wrapped to it after each operation.

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
  /// A vector of i64, as shape arithmetic has them.
  static Array ofShape(llvm::ArrayRef<int64_t> values);
  /// Elements as they lie in a file: row-major, little endian, any alignment.
  /// There must be as many as `dims` says.
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
  /// The number of elements apart from repetition along stride 0.
  int64_t distinct() const;

  /// All elements in row-major order. Floats are truncated by `ints`.
  std::vector<int64_t> ints() const;
  std::vector<double> floats() const;

  // Views of the same elements.
  /// Broadcast by NumPy's rule; `dims` must be compatible.
  Array broadcastTo(llvm::ArrayRef<int64_t> dims) const;
  Array transposed(llvm::ArrayRef<int64_t> perm) const;
  /// Element i along `dim` is start + i * step of this; `step` may be negative.
  Array sliced(int64_t dim, int64_t start, int64_t step, int64_t length) const;

  /// The same elements in another shape of the same size; copies where needed.
  Array reshaped(llvm::ArrayRef<int64_t> dims) const;
  /// With a stride of 0 along each dimension whose elements don't differ.
  Array compressed() const;
  Array cast(ElementType type) const;
  /// The same bits as elements of `type`, which has as many of them.
  Array bitsAs(ElementType type) const;

  /// The sub-array without its repeated dimensions, and which of this array's
  /// dimensions it has kept.
  Array unrepeated(llvm::SmallVectorImpl<int64_t> &kept) const;

  /// As an attribute; the element type must exist in the IR.
  mlir::DenseElementsAttr attribute(mlir::MLIRContext *context) const;

  /// Pointwise functions, on arrays of equal shape, repetition preserved. The
  /// function computes on doubles, or on integers, by the type of the operands.
  static Array mapFloats(ElementType result, llvm::ArrayRef<Array> operands,
                         llvm::function_ref<double(llvm::ArrayRef<double>)> fn);
  static Array mapInts(ElementType result, llvm::ArrayRef<Array> operands,
                       llvm::function_ref<int64_t(llvm::ArrayRef<int64_t>)> fn);
  /// How many elements that computes: a column beside a row is a table.
  static int64_t mappedElements(llvm::ArrayRef<Array> operands);

private:
  Array withDims(llvm::ArrayRef<int64_t> dims) const;
  template <typename T>
  void gather(const std::vector<T> &from, std::vector<T> &to) const;
  Array distinctPart() const;

  ElementType elementType = ElementType::F32;
  /// The extents that `operands` are mapped by: 1 where all of them repeat.
  static Dims mappedDims(llvm::ArrayRef<Array> operands);
  /// `fn` of what `read` gives of the operands, for each element of `extents`.
  template <class T>
  static std::vector<T>
  mapElements(const Dims &extents, llvm::ArrayRef<Array> operands,
              std::vector<T> (Array::*read)() const,
              llvm::function_ref<T(llvm::ArrayRef<T>)> fn);

  Dims shape, strides;
  int64_t offset = 0;
  std::shared_ptr<const std::vector<int64_t>> intData;
  std::shared_ptr<const std::vector<double>> floatData;
};

/// The common shape of `a` and `b` by NumPy's broadcasting rule, if there is
/// one.
std::optional<Dims> broadcastShape(llvm::ArrayRef<int64_t> a,
                                   llvm::ArrayRef<int64_t> b);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_ARRAY_H
