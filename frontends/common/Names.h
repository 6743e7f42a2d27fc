// Names.h - the last look at what a model's file has brought into the IR.
//
// Readers refuse names by their place in the file. What importers derive from
// other texts, as a module's path from an exporter's notes, is looked at here,
// as is a module that is read as text: behind import, every string of the IR is
// UTF-8 without control characters.

#ifndef TMC_FRONTENDS_COMMON_NAMES_H
#define TMC_FRONTENDS_COMMON_NAMES_H

#include "compiler/support/Failure.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace tmc {

/// The first name of `module`, of an attribute or of a location, that can't be
/// one.
std::optional<Failure> findBadName(mlir::ModuleOp module);

} // namespace tmc

#endif // TMC_FRONTENDS_COMMON_NAMES_H
