// Fault.h - whose fault an error is.
//
// An error that a pass or a verifier emits is a defect of ours, unless it says
// otherwise: what the user can do something about is emitted here, and carries
// the exit code that `tmc` ends with in its diagnostic's metadata.
//
//     return emitFault(op->getLoc(), Fault::Unsupported)
//            << "'" << op->getName() << "' has no derivative";

#ifndef TMC_DIALECTS_INTERFACES_FAULT_H
#define TMC_DIALECTS_INTERFACES_FAULT_H

#include "mlir/IR/Diagnostics.h"

#include <optional>

namespace tmc {

/// The values are exit codes.
enum class Fault : int64_t {
  Input = 1,
  Usage = 2,
  OverBudget = 3,
  Unsupported = 4,
};

/// An error at `loc` that isn't ours.
inline mlir::InFlightDiagnostic emitFault(mlir::Location loc, Fault fault) {
  mlir::InFlightDiagnostic error = mlir::emitError(loc);
  error.getUnderlyingDiagnostic()->getMetadata().push_back(
      mlir::DiagnosticArgument(int64_t(fault)));
  return error;
}

/// Whose fault `diagnostic` says it is; nothing where it is ours.
inline std::optional<Fault> faultOf(mlir::Diagnostic &diagnostic) {
  for (mlir::DiagnosticArgument &argument : diagnostic.getMetadata())
    if (argument.getKind() ==
        mlir::DiagnosticArgument::DiagnosticArgumentKind::Integer)
      return Fault(argument.getAsInteger());
  return std::nullopt;
}

} // namespace tmc

#endif // TMC_DIALECTS_INTERFACES_FAULT_H
