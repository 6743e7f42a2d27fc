// FusedIndex.h - indices of elements, as text in a fused kernel's body.
//
// An element of a value is at row x col of the kernel (FusedPlan.h). Its index
// in memory is a sum over the atoms that the value has: those of the rows are
// counted from `row.index`, those of the columns from `c.index()`.

#ifndef TMC_COMPILER_EMIT_FUSEDINDEX_H
#define TMC_COMPILER_EMIT_FUSEDINDEX_H

#include "dialects/nn/FusedPlan.h"

namespace tmc {

/// The atoms of an element's index: those of a value's type, outermost first,
/// and the distance of neighbours along each, in elements.
struct Places {
  llvm::ArrayRef<unsigned> atoms;
  llvm::SmallVector<int64_t> strides;

  /// Those of a value by itself.
  static Places of(const nn::FusedPlan &plan, mlir::Value value);
  /// Those of a value where it lies in an operand or result.
  static Places of(const nn::FusedPlan &plan, const nn::FusedAccess &access);
};

/// The part of an element's index that comes from its row; "" if none. For an
/// access, it counts from the first element of the operand or result.
std::string rowOffset(const nn::FusedPlan &plan, const Places &places);
std::string rowOffset(const nn::FusedPlan &plan, mlir::Value value);
std::string rowOffset(const nn::FusedPlan &plan, const nn::FusedAccess &access);

/// The part that comes from the column, as 64-bit lanes; "" if none.
std::string colOffset(const nn::FusedPlan &plan, const Places &places);
std::string colOffset(const nn::FusedPlan &plan, mlir::Value value);

/// The same as one number for all lanes of `c`, if they share the element: its
/// atoms lie outside of whole vectors of columns, at most 16 wide. Else "".
std::string sameOffset(const nn::FusedPlan &plan, const Places &places);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_FUSEDINDEX_H
