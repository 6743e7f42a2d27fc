// Storage.h - the bytes that a tensor value stands for.
//
// Before lowering, values are tensors; but views cost nothing and planners work
// with storage. The root of a value is the value that owns the bytes: walk from
// a view to its source until it is no view, from a piece of the batch to the
// batch, from a result of the micro-batch loop to the value that its last trip
// yields.

#ifndef TMC_COMPILER_ANALYSIS_STORAGE_H
#define TMC_COMPILER_ANALYSIS_STORAGE_H

#include "dialects/interfaces/Interfaces.h"

namespace tmc {

/// The value whose storage `value` reads.
mlir::Value storageRoot(mlir::Value value);

/// The value whose contents the storage of `value` holds: also across moves
/// between spaces.
mlir::Value contentRoot(mlir::Value value);

/// True for an op whose result is its first operand's bytes in another layout.
bool isView(mlir::Operation *op);

/// The layout of `value` in its storage: strides and an offset in elements from
/// the root's first one. Null if a view on the way has no such layout.
mlir::MemRefType layoutOf(mlir::Value value);

/// `value`'s type as a contiguous buffer, in the tensor's space.
mlir::MemRefType contiguous(mlir::Type tensor);

/// The memory space of buffers for `tensor`; null: the device.
mlir::Attribute memorySpaceOf(mlir::Type tensor);

/// True if elements lie in row-major order, at any offset.
bool isContiguous(mlir::MemRefType type);
/// True if the elements along the innermost dimension are neighbours.
bool hasContiguousRows(mlir::MemRefType type);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STORAGE_H
