// Proofs.h - lower bounds for a plan that is known: for another budget, or for
// a plan that came without a proof.

#ifndef TMC_COMPILER_PLANNING_DRIVER_PROOFS_H
#define TMC_COMPILER_PLANNING_DRIVER_PROOFS_H

#include "compiler/planning/driver/Plan.h"

namespace tmc::planning {

/// Certifies `plan` for another budget of the device (reserved bytes included):
/// the same prices prove less for a larger budget.
void recertify(const Problem &problem, Plan &plan, int64_t budgetBytes);

/// Seeks a bound by prices for a plan of one space without a proof, in its
/// order.
void proveByPrices(const Problem &problem, Plan &plan, int64_t budgetBytes);

/// Seeks a proof by cases for a plan of one space that costs more than the
/// bound of its prices at `budgetBytes`.
void proveByCases(const Problem &problem, Plan &plan, int64_t budgetBytes);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_DRIVER_PROOFS_H
