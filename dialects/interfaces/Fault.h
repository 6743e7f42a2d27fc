// Fault.h - the party responsible for an error.
//
// An error that a pass or a verifier emits is a bug in tmc by default. Errors
// that the user can fix are emitted by the functions here, and carry the exit
// code of `tmc` in their diagnostic's metadata.
//
//     return emitFault(op->getLoc(), FailureKind::Unsupported)
//            << "'" << op->getName() << "' has no derivative";

#ifndef TMC_DIALECTS_INTERFACES_FAULT_H
#define TMC_DIALECTS_INTERFACES_FAULT_H

#include "compiler/support/Failure.h"

#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace tmc {

/// Emits an error at `loc` that isn't a bug in tmc.
inline mlir::InFlightDiagnostic emitFault(mlir::Location loc,
                                          FailureKind fault) {
  mlir::InFlightDiagnostic error = mlir::emitError(loc);
  error.getUnderlyingDiagnostic()->getMetadata().push_back(
      mlir::DiagnosticArgument(int64_t(fault)));
  return error;
}

/// The fault recorded in `diagnostic`; none for a bug in tmc.
inline std::optional<FailureKind> faultOf(mlir::Diagnostic &diagnostic) {
  for (mlir::DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() ==
        mlir::DiagnosticArgument::DiagnosticArgumentKind::Integer)
      return FailureKind(argument.getAsInteger());
  return std::nullopt;
}

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_FAULT_H
