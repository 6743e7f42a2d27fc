// Bound.h - prices per moment that prove what no plan can beat.
//
// Fix the order of first executions. Between a value's production and its next
// use, or between two uses, lies a *gap*. A plan that holds the value over the
// whole gap pays in bytes; one that doesn't pays for at least one recomputation
// inside it. Let x_g = 1 for gaps that are broken. At the moment k, where
// instruction k first runs, what is needed at all events is
//
//     live_k - sum of bytes_g x_g over the gaps that strictly contain k <=
//     limit
//
// and every plan costs at least base + sum of cost_g x_g. Multiply each
// moment's inequality by a price lambda_k >= 0, and the best x for these prices
// is found gap by gap:
//
//     L(lambda) =  sum_k lambda_k (live_k - limit)
//                - sum_g max(0, bytes_g Lambda_g - cost_g),
//
// where Lambda_g sums the prices strictly inside g. Whatever the prices, no
// plan with this order costs less than base + L. So the prices are the proof: a
// checker needs one pass over the problem, in integers.
//
// Example: a1 a2 a3 of 100 bytes and cost 5, each used right after its
// production and again far later, limit 200, all three alive at moment 3. With
// lambda_3 = 5/100: L = 5/100 * 100 - 3 * max(0, 5 - 5) = 5. One value must be
// made twice.
//
// What keeps it true on real steps:
//  - A use counts only if every recipe of the instruction reads the value;
//    where some don't, the gap before it may be broken for the cheaper of a
//    recomputation and that recipe's extra cost, shared over what it spares.
//  - live_k subtracts the most that overwriting can save at k, takes the least
//    workspace of the recipes, and leaves out what a first trip doesn't have:
//    a segment of several trips is seen in a middle trip. A gap inside a body
//    costs once per trip; values from outside count inside a body only between
//    their uses in it.
//  - The cost of a recipe is shared among its results in proportion to their
//    bytes, and a value's share is the least over its recipes: then the shares
//    of what any one execution makes never exceed its cost.
//  - A value that can't be remade has no gaps: it counts in live_k throughout.
//
// The bound is of kind `fixed-order`: it says nothing about other orders of the
// first executions, and nothing about what a chain of dropped inputs costs.
//
// Source: the gap-cover relaxation is the one by which stashing is chosen in
// Checkmate (MLSys 2020), with its dependency constraints left out.

#ifndef TMC_COMPILER_PLANNING_BOUND_BOUND_H
#define TMC_COMPILER_PLANNING_BOUND_BOUND_H

#include "compiler/planning/model/Problem.h"

#include <optional>
#include <utility>

namespace tmc::planning {

/// Integer prices over a denominator: `lambda[k]` is the price of one byte at
/// the moment where instruction k (in the program's order, segments end to
/// end) first runs, in cost units times `denominator`.
struct Certificate {
  int64_t budgetBytes = -1;                        // Reserved included.
  std::vector<std::pair<int32_t, int64_t>> lambda; // Ascending moments, > 0.
  int64_t denominator = 1;
  /// What the prices prove: extra cost over `baseCost`, rounded up.
  int64_t extraCost = 0;
};

/// The relaxation: moments with what they need, gaps that can be broken.
struct Gap {
  ValueId value = kNone;
  int32_t first = 0; // LiveProfile [first, last] strictly inside.
  int32_t last = -1;
  int64_t bytes = 0;
  int64_t cost = 0; // The least that breaking it costs.
  /// The segment that both ends lie in, if only a recomputation breaks it; else
  /// kNone.
  SegmentId within = kNone;
};

struct Relaxation {
  std::vector<int64_t> live;  // Gaps included, persistent values too.
  std::vector<int64_t> floor; // `live` with every gap broken.
  /// What an instruction itself needs, whatever the order of the others.
  std::vector<int64_t> footprint;
  std::vector<Gap> gaps;
  /// Cheapest recipes instead of first ones: at most 0, added to the bound.
  int64_t cheaperRecipes = 0;
};

/// `orders[s]` permutes segment s; empty: the program's own.
Relaxation relax(const Problem &problem,
                 const std::vector<std::vector<InstructionId>> &orders = {});

struct DualOptions {
  int64_t work = 50'000'000; // Steps: moments and gaps over all iterations.
  /// Cost above base of a known plan; guides the step sizes. -1: none.
  int64_t knownExtraCost = -1;
};

/// Prices by ascent. `limitBytes` leaves out what is reserved. Prices grow
/// without end where `floor` exceeds the limit: the bound is then only as high
/// as the work allowed.
std::vector<double> ascend(const Relaxation &relaxation, int64_t limitBytes,
                           const DualOptions &options);

/// Rounds prices to integers and states what they prove. Never fails: prices
/// too large or useless are scaled or dropped.
Certificate certify(const Problem &problem, const Relaxation &relaxation,
                    const std::vector<double> &prices, int64_t budgetBytes);

/// The largest budget, reserved included, for which no plan with this order
/// exists, plus one: what some moment needs with every gap broken.
int64_t impossibleBelow(const Problem &problem, const Relaxation &relaxation);
/// The same for any order.
int64_t impossibleBelowFreely(const Problem &problem,
                              const Relaxation &relaxation);

/// What the prices of a certificate prove, in exact integers and by code that
/// shares nothing with the above: O(size of the problem). An error says why
/// they prove nothing (a negative price, a sum that doesn't fit 128 bits).
absl::StatusOr<int64_t> provenExtraCost(const Problem &problem,
                                        const Certificate &certificate);

/// The first defect of a certificate, or nothing.
std::optional<std::string> checkCertificate(const Problem &problem,
                                            const Certificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUND_H
