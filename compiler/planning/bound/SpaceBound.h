// SpaceBound.h - a lower bound on the makespan with spaces and engines, with
// certificates.
//
// `Bound.h` bounds the cost of the kernels that a step must run again for lack
// of memory. Here a value may also be fetched, and time is the load of the
// busiest engine. So this bound asks: how little can all engines together do?
//
// A *certificate* is two lists of numbers, none negative:
//
//   weight of (segment, engine)      at most 1 in each segment's sum
//   price of (instruction, space)    of a byte of that space, at the moment
//                                    when the instruction starts
//
// **Any certificate is a proof.** For every plan that starts the instructions'
// own executions in the program's order,
//
//   makespan >= sum of weight x load >= the sum of `provenMakespan`.
//
// First inequality: an engine does one thing at a time and all are idle at a
// trip's borders (R12), so a trip is no shorter than any weighted mean of its
// engines' loads. Second inequality: a moment's live bytes are at most the
// budget, so adding price x (live - budget), which is at most 0, at every
// moment of the unrolled step lowers the sum. The rest splits into terms, each
// of which is bounded alone:
//
//   - *An instruction's own execution* by variant r pays weight x cost of r,
//   and
//     price x bytes for the values that r reads, writes and needs as scratch,
//     less the bytes that it may overwrite.
//   - *A gap* (u, a, b): b reads u, and a is the last moment before b whose
//     instruction may read or write u by any of its variants, or the start of
//     the step. Either u is alive at all moments between, and pays its *rent*,
//     price x bytes over them; or some recipe that isn't an instruction's own
//     run writes u between a and b, and pays the *break*: the least weight x
//     cost of the recipes that can. So the gap pays the lesser. Between a and b
//     no instruction touches u: a value is counted as an operand or in one gap,
//     never twice, and no run lies in two gaps of one value.
//   - Both depend on b's variant alone: a gap is paid if the variant reads u.
//   So
//     b pays the least of its variants, gaps included. Costs aren't divided
//     among operands that a variant avoids.
//   - *An input form* that only moves make (a gradient on the host) has no
//   gaps.
//     Its reader pays the least of the recipes that write it, divided by the
//     number of executions that may read it: one copy may serve all.
//   - A run of several results pays each a share of its charge, in equal parts.
//
// Examples, device budget 100, kernels of 10, a fetch of 15 on its own engine:
// with all weight on compute, breaking a gap by a fetch is free; with a weight
// of one half on each, a chain of 10 kernels and 8 forced fetches proves
// (100 + 120) / 2 = 110.
//
// *Homes* (R14). A persistent content with one possible home is resident: its
// bytes are subtracted from the budget, and no operand counts it. If a content
// has several possible homes, form u may be the home. Then u is alive before
// its first reader b and after its last reader. So the first gap begins with
// the step, and has the rent of the tail, too, of u or of the form that updates
// it. If b's variant reads u and u wasn't there, some recipe wrote it. A form
// that isn't read isn't bounded.
//
// *Loops* (R7) count as if unrolled: a gap from one trip to the next counts
// once for each border, a gap within a trip once for each trip, a gap over a
// loop has the rent of all trips. Carried values have no gaps and no bytes, as
// their first instance may be nothing or another value; a copy of one is free.
//
// *Rounding.* Weights and prices are integers over `denominator`; shares round
// down; sums have 128 bits; the makespan is an integer, so the result rounds
// up.
//
// The bound ignores: latency, order and loads within a trip (only totals
// count); copies needed to make a fetched form, other than input forms; moments
// of recomputations and of moves, whose scratch and overlap take memory; values
// carried between trips; gaps that are broken in part.

#ifndef TMC_COMPILER_PLANNING_BOUND_SPACEBOUND_H
#define TMC_COMPILER_PLANNING_BOUND_SPACEBOUND_H

#include "compiler/planning/model/Problem.h"

namespace tmc::planning {

struct SpaceCertificate {
  struct Price {
    InstructionId moment = kNone;
    SpaceId space = 0;
    int64_t price = 0; // Per byte, in units of cost / denominator.
  };
  int64_t denominator = 1;
  /// By segment, then engine; each segment's sum is at most `denominator`.
  std::vector<std::vector<int64_t>> weights;
  /// Only in spaces with a budget; each moment of a space at most once.
  std::vector<Price> prices;
};

/// The makespan that the certificate proves for a problem that passes `check`,
/// within the budgets in `problem.spaces`: no plan in the program's order is
/// faster. Computed by the optimizer's own model; `checkSpaceBound` is the
/// checker.
absl::StatusOr<int64_t> provenMakespan(const Problem &problem,
                                       const SpaceCertificate &certificate);

/// Number of device values that a move may bring back. An absent one need not
/// be recomputed, so its rows in the bound by cases (`Branch.h`) are void; a
/// certificate states this number.
int64_t fetchableValues(const Problem &problem);

/// All weight on compute, no prices.
SpaceCertificate plainCertificate(const Problem &problem);

struct SpaceAscentOptions {
  int64_t steps = 5000; // Per start; a step is O(n + gaps).
};

/// Weights and prices with a high proved bound: projected subgradient steps
/// from several starts, a fixed number of them. Never proves less than
/// `plainCertificate`.
SpaceCertificate ascendSpaces(const Problem &problem,
                              const SpaceAscentOptions &options = {});

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_SPACEBOUND_H
