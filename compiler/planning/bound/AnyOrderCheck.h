// AnyOrderCheck.h - the checker of certificates for any order.
//
// Shares no code with the graph and the sum that find a certificate. It takes
// each moment with a price by itself: it walks up to what surely runs before
// the moment, and down to what surely runs behind it, over first writings of
// values instead of nodes. Segments are compared by number. Two readers of a
// chain are in order if a priced moment surely stands between them, so a chain
// that isn't in order is a defect.
//
// Integers of 128 bits, each sum checked. O(size of the problem) for each
// priced moment.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERCHECK_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERCHECK_H

#include "compiler/planning/bound/AnyOrder.h"

#include <optional>
#include <string>

namespace tmc::planning {

/// The cost that `certificate` proves for a problem that passes `check`, or the
/// first defect of the certificate.
absl::StatusOr<int64_t>
checkAnyOrderBound(const Problem &problem,
                   const AnyOrderCertificate &certificate);

/// The first defect of a certificate, its claim included, or nothing.
std::optional<std::string>
checkAnyOrderCertificate(const Problem &problem,
                         const AnyOrderCertificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERCHECK_H
