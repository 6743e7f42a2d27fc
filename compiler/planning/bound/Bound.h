// Bound.h - prices per moment that prove a lower bound on the cost of plans.
//
// Fix the order of first executions. Between a value's production and its next
// use, or between two uses, lies a *gap*. A plan that holds the value over the
// whole gap pays in bytes; any other plan pays for at least one recomputation
// inside it. Let x_g = 1 for gaps that are broken. At the moment k, where
// instruction k first runs, memory must hold
//
//     live_k - sum of bytes_g x_g, over the gaps that strictly contain k
//            <= limit
//
// and every plan costs at least base + sum of cost_g x_g. Multiply each
// moment's inequality by a price lambda_k >= 0; the best x for these prices is
// then found gap by gap:
//
//     L(lambda) =  sum_k lambda_k (live_k - limit)
//                - sum_g max(0, bytes_g Lambda_g - cost_g),
//
// where Lambda_g sums the prices strictly inside g. For all prices, no plan
// with this order costs less than base + L. So the prices are the proof: a
// checker needs one pass over the problem, in integers.
//
// Example: a1 a2 a3 of 100 bytes and cost 5, each used right after its
// production and again far later, limit 200, all three alive at moment 3. With
// lambda_3 = 5/100: L = 5/100 * 100 - 3 * max(0, 5 - 5) = 5. One value must be
// made twice.
//
// Rules that keep the bound valid on real steps:
//  - A use counts only if every recipe of the instruction reads the value. If
//    some recipe doesn't, the gap before the use may also be broken for that
//    recipe's extra cost, shared among the reads that it avoids.
//  - live_k subtracts the most bytes that overwrites can save at k, takes the
//    least workspace of the recipes, and leaves out values that a first trip
//    doesn't have: a segment of two trips is seen in its last trip, one of more
//    in a middle trip. A gap inside a body costs once per trip; values from
//    outside count inside a body only between their uses in it.
//  - The cost of a recipe is shared among its results in proportion to their
//    bytes, and a value's share is the least over its recipes. So the shares of
//    the results of one execution never exceed its cost.
//  - A value that can't be recomputed has no gaps: it counts in live_k
//    throughout.
//
// The bound is of kind `fixed-order`: it doesn't bound other orders of the
// first executions, and it doesn't count the cost of a chain of dropped inputs.
//
// Source: the gap-cover relaxation by which Checkmate (MLSys 2020) chooses
// stashes, without its dependency constraints.

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
  /// The proved extra cost over `baseCost`, rounded up.
  int64_t extraCost = 0;
};

/// A gap that can be broken.
struct Gap {
  ValueId value = kNone;
  int32_t first = 0; // Moments [first, last] strictly inside.
  int32_t last = -1;
  int64_t bytes = 0;
  int64_t cost = 0; // The least cost of breaking it.
  /// The segment of both ends, if only a recomputation breaks the gap; else
  /// kNone.
  SegmentId within = kNone;
};

struct Relaxation {
  std::vector<int64_t> live;  // With all gaps and persistent values.
  std::vector<int64_t> floor; // `live` with every gap broken.
  std::vector<Gap> gaps;
  /// Cost of cheapest recipes minus first ones: at most 0, added to the bound.
  int64_t cheaperRecipes = 0;
};

/// `orders[s]` permutes segment s; empty: the program's own.
Relaxation relax(const Problem &problem, const Orders &orders = {});

struct DualOptions {
  int64_t work = 50'000'000; // Steps: moments and gaps over all iterations.
  /// Cost above base of a known plan; scales the step sizes. -1: none.
  int64_t knownExtraCost = -1;
};

/// Finds prices by subgradient ascent. `limitBytes` is without reserved bytes.
/// If `floor` exceeds the limit, prices grow without end; the bound is then
/// only as high as the work allows.
std::vector<double> ascend(const Relaxation &relaxation, int64_t limitBytes,
                           const DualOptions &options);

/// Rounds prices to integers and computes the bound that they prove. Never
/// fails: too large prices are scaled, useless ones are dropped.
Certificate certify(const Problem &problem, const Relaxation &relaxation,
                    const std::vector<double> &prices, int64_t budgetBytes);

/// The least budget, reserved included, that this bound doesn't exclude for
/// this order: the most bytes that a moment needs with every gap broken.
int64_t impossibleBelowInOrder(const Problem &problem,
                               const Relaxation &relaxation);
/// No plan in any order has a smaller budget of the device: the bytes there of
/// the largest instruction in its smallest variant, the values that can't be in
/// another space, and the reserved bytes.
int64_t impossibleBelow(const Problem &problem);

/// The bound that a certificate's prices prove, in exact integers, by code that
/// shares nothing with the above: O(size of the problem). An error says why
/// they prove nothing (a negative price, a sum that doesn't fit 128 bits).
absl::StatusOr<int64_t> provenExtraCost(const Problem &problem,
                                        const Certificate &certificate);

/// The first defect of a certificate, or nothing.
std::optional<std::string> checkCertificate(const Problem &problem,
                                            const Certificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUND_H
