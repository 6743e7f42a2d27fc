// Bound.h - a lower bound on the time of a plan, with a certificate.
//
// Within its budgets a plan must bring values back that it dropped: it computes
// them again, or it fetches them. The bound asks: how little can all engines
// together do? With one engine, that is the cost of recomputation.
//
// A *certificate* is a list of borders and two lists of numbers, none negative:
//
//   border instructions              that cut segments into *stretches*
//   weight of (stretch, engine)      at most 1 in each stretch's sum
//   price of (instruction, space)    of a byte of that space, at the moment
//                                    when the instruction starts
//
// **Any certificate is a proof.** For every plan that starts the instructions'
// own executions in the model's order,
//
//   makespan >= sum of weight x load >= the sum that `provenCost` states.
//
// First inequality: a stretch lasts from the start of its first instruction to
// the start of the next stretch's, in each trip. An engine does one thing at a
// time, so a stretch is no shorter than any weighted mean of its engines' loads
// there. All engines are idle at a trip's borders (R12). Second inequality: a
// moment's live bytes are at most the budget, so adding price x (live -
// budget), which is at most 0, lowers the sum. The rest splits into terms, each
// of which is bounded alone:
//
//   - *An instruction's own execution* by variant r pays weight x cost of r,
//     and price x bytes for the values that r reads, writes and needs as
//     scratch, less the bytes that it may overwrite.
//   - *A gap* (u, a, b): b reads u, and a is the last moment before b whose
//     instruction may read or write u by any of its variants, or the start of
//     the step. Either u is alive at all moments between, and pays its *rent*,
//     price x bytes over them; or some recipe that isn't an instruction's own
//     run writes u between a and b, and pays the *break*: the least weight x
//     cost of the recipes that can. So the gap pays the lesser. Between a and b
//     no instruction touches u: a value is counted as an operand or in one gap,
//     never twice, and no run lies in two gaps of one value.
//   - Both depend on b's variant alone: a gap is paid if the variant reads u.
//     So b pays the least of its variants, gaps included. Costs aren't divided
//     among operands that a variant avoids.
//   - *An input form* that only moves make (a gradient on the host) has no
//     gaps. Its reader pays the least of the recipes that write it, divided by
//     the number of executions that may read it: one copy may serve all.
//   - A run of several results pays each a share of its charge, by bytes.
//
// *Where a run goes on.* Weights depend on the stretch, so a charge is the
// least of the stretches in which the run may go on. Compute runs the borders
// in all their variants, so it is through with what stands before a border when
// that starts, and its own executions lie in one stretch. Work begins when
// compute is through with what stands before its Start in the list (R12). A run
// that breaks a gap stands behind the gap's begin; a copy of a form that only
// moves make stands behind the first instruction that makes its content. So
// neither begins before the stretch of that moment. Compute waits for work that
// touches the device, so a run that breaks a gap ends before b, if compute runs
// b. Any other work may go on to the end of its segment. In a loop this holds
// for gaps within one trip.
//
// *The rent of a broken gap.* The run whose result b reads stands in the list
// in some stretch, and goes on there or later. From its start on u is alive,
// and pays its rent up to b. So a run of stretch i pays weight x cost, and the
// rent of the gap's moments in later stretches:
//
//     stretches     |   0   |   1   |   2   |   3  b|
//     prices            .       .      ###      .
//     fetch in 1            w1 x cost + rent of ###
//     fetch in 2                    w2 x cost            saves the rent of ###
//
// The least of all stretches is paid. It holds for gaps within one trip, and
// outside of loops.
//
// With one engine all weight is on it. Let live_k be the bytes at moment k with
// every gap unbroken, and Lambda_g the prices inside gap g. Then the sum is
//
//   base + sum_k lambda_k (live_k - limit) - sum_g max(0, s_g Lambda_g - c_g),
//
// the Lagrangian of "each broken gap costs c_g, each moment has room".
//
// Examples. One engine, limit 200: a1 a2 a3 of 100 bytes and cost 5, each used
// right after its production and again far later, all three alive at moment 3.
// With lambda_3 = 5/100: 5/100 * 100 - 3 * max(0, 5 - 5) = 5. One value must be
// made twice. Two engines, device budget 100, kernels of 10, a fetch of 15:
// with all weight on compute, breaking a gap by a fetch is free; with a weight
// of one half on each, 10 kernels and 8 forced fetches prove (100 + 120) / 2 =
// 110.
//
// *Homes* (R14). A persistent content with one possible home is resident: its
// bytes count at every moment, and no operand counts it. If a content has
// several possible homes, form u may be the home. Then u is alive before its
// first reader b and after its last reader. So the first gap begins with the
// step, and has the rent of the tail, too, of u or of the form that updates it.
// If b's variant reads u and u wasn't there, some recipe wrote it. If that
// variant is also the one that updates u, and makes no other form of the new
// content, then the new home is another form, and a copy writes it: the gap
// pays that *write-back* as well. No instruction may read that form, so no gap
// counts the copy again. A form that isn't read isn't bounded.
//
// *Loops* (R7). Each trip runs the same list, so one trip's moments stand for
// all: `GapModel.h` has the picture. A price is paid once, at the moment of
// that trip; costs count in every trip. A carried value is held from the begin
// of the trip to its first read, and the value it comes from is held from its
// last touch to the end of the trip, if the next trip surely reads it. A copy
// of a carried value costs nothing in the first trip, where it may be nothing.
//
// *Rounding.* Weights and prices are integers over `denominator`; shares round
// down; sums have 128 bits; the makespan is an integer, so the result rounds
// up.
//
// The bound ignores: latency, order and loads within a stretch (only totals
// count); copies needed to make a fetched form, other than input forms, and the
// cost of a chain of dropped inputs (`Branch.h` counts that); moments of
// recomputations and of moves, whose scratch and overlap take memory; gaps that
// are broken in part.
//
// Source: the gap-cover relaxation by which Checkmate (MLSys 2020) chooses
// stashes, without its dependency constraints.

#ifndef TMC_COMPILER_PLANNING_BOUND_BOUND_H
#define TMC_COMPILER_PLANNING_BOUND_BOUND_H

#include "compiler/planning/bound/GapModel.h"

#include "absl/status/statusor.h"

namespace tmc::planning {

struct Certificate {
  struct Price {
    InstructionId moment = kNone;
    SpaceId space = 0;
    int64_t price = 0; // Per byte, in units of cost / denominator.
  };
  int64_t budgetBytes = -1; // The device's, reserved included; -1: none.
  int64_t denominator = 1;
  /// Instructions that begin a stretch within a segment, in the model's order;
  /// compute runs each of their variants.
  std::vector<InstructionId> borders;
  /// By stretch, then engine; each stretch's sum is at most `denominator`.
  /// Empty: nothing was sought.
  std::vector<std::vector<int64_t>> weights;
  /// Only in spaces with a budget; each moment of a space at most once. In
  /// ascending order of spaces, then of moments.
  std::vector<Price> prices;
  int64_t provenCost = 0; // No plan takes less; rounded up.
};

/// Weights by stretch, then engine; prices by space, then moment.
struct Prices {
  std::vector<int32_t> borders; // Moments that begin a stretch in a segment.
  std::vector<std::vector<double>> weights, prices;
};

struct AscentOptions {
  /// With one engine: counted steps, of moments and gaps over all iterations.
  int64_t work = 50'000'000;
  /// With several engines: iterations, and parts of the step with weights of
  /// their own.
  int64_t steps = 5000;
  int stretches = 24;
  /// With one engine: cost above base of a known plan, which scales the steps.
  /// -1: none.
  int64_t knownExtraCost = -1;
};

/// The bytes that instructions may hold in each space, with this budget of the
/// device (-1: none) and the problem's budgets of the others.
std::vector<int64_t> limitsOf(const Problem &problem, int64_t budgetBytes);

/// Weights and prices with a high sum, by projected subgradient steps. If no
/// plan fits the limits, prices grow as far as the work allows.
Prices ascend(const GapModel &model, const std::vector<int64_t> &limits,
              const AscentOptions &options = {});

/// All weight on compute, no prices; proves nothing yet.
Certificate plainCertificate(const Problem &problem);

/// The work that every plan leaves to compute, whatever the memory: each
/// instruction's cheapest variant, nothing of those that may run elsewhere.
int64_t loadOf(const Problem &problem);

/// Rounds weights and prices to integers, and states what they prove. Never
/// fails: too large prices are scaled, useless ones are dropped.
Certificate certify(const GapModel &model, const Prices &prices,
                    int64_t budgetBytes);

/// The best certificate found for the problem's budgets in its program's order.
Certificate prove(const Problem &problem, const AscentOptions &options = {});

/// The cost that a certificate proves for a problem that passes `check`, if the
/// model is right. `BoundCheck.h` has the checker.
absl::StatusOr<int64_t> costProvenBy(const GapModel &model,
                                     const Certificate &certificate);

/// The least budget of the device, reserved included, that this bound doesn't
/// exclude for the model's order: the most bytes that a moment needs with every
/// gap broken.
int64_t impossibleBelowInOrder(const GapModel &model);
/// No plan in any order has a smaller budget of the device: the bytes there of
/// the largest instruction in its smallest variant, the values that can't be in
/// another space, and the reserved bytes.
int64_t impossibleBelow(const Problem &problem);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BOUND_H
