// WrittenArguments.h - the arguments that an operator writes.
//
//   add_.Tensor(Tensor(a!) self, Tensor other, ...)        self
//   mul.out(Tensor self, Tensor other, *, Tensor(a!) out)  out
//   sort.values(..., Tensor(a!) values, Tensor(b!) indices)  values, indices
//
// A program names an operator's arguments, but not which of them its schema
// marks as written. Most operators' names determine them; a table has the rest
// (WrittenArguments.inc). Normalizations that update their statistics are in
// neither, because their schemas don't mark these.

#ifndef TMC_FRONTENDS_TORCH_WRITTENARGUMENTS_H
#define TMC_FRONTENDS_TORCH_WRITTENARGUMENTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace tmc::torch_import {

/// The arguments that `target`, "aten.add_.Tensor", writes, in the order of
/// its schema.
llvm::SmallVector<llvm::StringRef> writtenArguments(llvm::StringRef target);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_WRITTENARGUMENTS_H
