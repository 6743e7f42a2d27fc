// MeshFlags.h - the flags of a step for several devices.

#ifndef TMC_TOOLS_MESHFLAGS_H
#define TMC_TOOLS_MESHFLAGS_H

#include "driver/pipeline/Options.h"

namespace tmc {

/// Reads `--devices` and `--parallel`, which may be empty: "8", "2,4" if
/// `mayBeSeveral`, and "dp=8,zero=3". `options` has its levers. A failure of
/// usage for texts that aren't of this form or contradict each other.
Expected<void> readMesh(llvm::StringRef devices, llvm::StringRef parallel,
                        bool mayBeSeveral, CompileOptions &options);

} // namespace tmc

#endif // TMC_TOOLS_MESHFLAGS_H
