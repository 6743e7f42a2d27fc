// Names.h - the last check of the names that a model's file brings into the IR.
//
// Readers refuse bad names at their place in the file. This check covers names
// that importers derive from other texts, such as a module's path in an
// exporter's notes, and modules that are read as text: after import, every
// string of the IR is UTF-8 without control characters.

#ifndef TMC_FRONTENDS_COMMON_NAMES_H
#define TMC_FRONTENDS_COMMON_NAMES_H

#include "compiler/support/Failure.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace tmc {

/// The first string of `module`, in an attribute or a location, that isn't a
/// valid name.
std::optional<Failure> findBadName(mlir::ModuleOp module);

} // namespace tmc

#endif // TMC_FRONTENDS_COMMON_NAMES_H
