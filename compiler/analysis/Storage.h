// Storage.h - which bytes a tensor value stands for.
//
// Before lowering, values are tensors; but views cost nothing and planners
// think in storage. The root of a value is the value that has the bytes: walk
// from a view to its source until it is no view, from a piece of the batch to
// the batch, from a result of the micro-batch loop to what its last run yields.

#ifndef TMC_COMPILER_ANALYSIS_STORAGE_H
#define TMC_COMPILER_ANALYSIS_STORAGE_H

#include "dialects/interfaces/Interfaces.h"

namespace tmc {

/// The value whose storage `value` reads.
mlir::Value storageRoot(mlir::Value value);

/// The value whose contents the storage of `value` has: across moves between
/// spaces as well.
mlir::Value contentRoot(mlir::Value value);

/// True for an op that reads its first operand's bytes another way.
bool isView(mlir::Operation *op);

/// How `value` lies in its storage: strides and an offset in elements from the
/// root's first one. Null where a view on the way can't be one.
mlir::MemRefType layoutOf(mlir::Value value);

/// `value`'s type as a contiguous buffer, in the tensor's space.
mlir::MemRefType contiguous(mlir::Type tensor);

/// The memory space of buffers for `tensor`; null: the device's.
mlir::Attribute memorySpaceOf(mlir::Type tensor);

/// True if elements lie in row-major order, whatever the offset.
bool isContiguous(mlir::MemRefType type);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STORAGE_H
