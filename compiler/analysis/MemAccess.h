// MemAccess.h - the bytes that an entry of a placed program reads and writes.
//
// An operand of a launch or a copy is a buffer, or a view or a piece of one:
//
//     %b = mem.buffer {offset = 4096} : memref<2x64xf32>     at 4096, 512 bytes
//     %p = mem.piece %b[%i]                                  in trip 1: 4352
//     %v = mem.view %p, offset: 8                            at 4384

#ifndef TMC_COMPILER_ANALYSIS_MEMACCESS_H
#define TMC_COMPILER_ANALYSIS_MEMACCESS_H

#include "dialects/mem/Mem.h"

namespace tmc {

/// Bytes [begin, end) of a space's arena.
struct MemRange {
  SpaceKind space;
  int64_t begin, end;
  mem::BufferOp buffer; // The one that they are seen through.
};

/// The range from the first to the last byte of `memref`, in trip `trip` of the
/// loop that it is in.
MemRange rangeOf(mlir::Value memref, int64_t trip);

struct MemAccesses {
  llvm::SmallVector<mlir::Value> reads, writes;
};

/// The operands that a launch, a copy or a fill reads and writes in a trip.
MemAccesses accessesOf(mlir::Operation *op, int64_t trip);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_MEMACCESS_H
