// AnyOrder.h - a lower bound on the cost of a plan in every order.
//
// `Bound.h` bounds the plans that start the instructions' own executions in one
// order. This bound holds for every order. It knows one space and one engine.
//
// *Events.* The event of instruction k is the first execution in k's segment of
// any recipe of k. In a loop, everything happens in one trip that stands for
// all: the last of two trips, or a middle one of more. A(k) holds the events
// that come before k's in every plan, and D(k) those that come after it.
// `AnyOrderGraph.h` says which these are.
//
// *Certain values.* Let u be written surely before k, let b in D(k) read u by
// each of its recipes, and let no recipe of k touch u. Then in every plan u is
// there at k's event, or some execution writes u between the two events:
//
//     order 1     u  .  k  .  .  b      u was written first, b reads it, and k
//     order 2     u  .  .  x  k  b      stands between them in both
//
// Let live_k be the bytes of all such values, with the values that never leave,
// and with the least that a recipe of k itself holds. A value that stands on
// one side of k in one order, and on the other in another, isn't counted.
//
// *Gaps.* Let b_1, ..., b_m be instructions that surely read u, each of which
// comes before the next in every plan. They cut the time after u's first
// writing into m + 1 gaps, which are disjoint in every plan:
//
//     u ---- gap 0 ---- b_1 ---- gap 1 ---- b_2 ---- gap 2 ----
//
// If k comes after b_i, and before a reader b of u, the execution that writes u
// lies between k and b. If b_j is the next reader in the chain that surely
// comes after k, it lies in one of the gaps i to j - 1. Often that is one gap.
//
// *The sum.* Let x_g = 1 if an execution writes u inside gap g. Every plan
// within the limit obeys, for each k with need_k = live_k - limit > 0,
//
//     sum over u of min(s_u, need_k) x (sum of x_g over the gaps of u around k)
//         >= need_k.
//
// It pays c_u for each gap with x_g = 1, beyond every instruction's cheapest
// recipe. So for any prices lambda >= 0
//
//     extra cost >= sum_k lambda_k need_k
//                   - sum_g max(0, sum_(k in g) lambda_k min(s_u, need_k) -
//                   c_u)
//
// *The charge.* c_u is the least share of a recipe that may write u outside the
// instructions' own executions; a recipe of several results shares its cost by
// bytes. At least m_u + 1 executions write u if m_u gaps are broken: the first
// one, which lies in no gap, and one in each of these gaps. Only one execution
// in a trip is the maker's own, which pays the instruction's cost. So m_u
// others pay at least c_u each, even if the own execution isn't the first one.
//
// *Loops.* A gap inside a loop is broken in each trip, because each trip runs
// the same list. So it pays c_u times the trips. `AnyOrderGraph.h` says what is
// certain in a loop, and what is left out.
//
// Example. a1, a2, a3 of 100 bytes and cost 5 are read by the instruction m1,
// m2, m3 and far later by g1, g2, g3, which need all of m1, m2, m3 before. Any
// order holds all three at the moment e between them. With a limit of 200 and
// a price of 5/100 at e, the sum is 5/100 x 100 - 3 x max(0, 5 - 5) = 5.
//
// *Inputs.* Let u not be there at k. The execution X that writes it behind k
// reads each value w that every recipe that may write u reads. So w is there at
// k, or an execution writes w between k and X:
//
//     order       w  .  u  .  k  .  w  u  b     u comes back with its input w
//     order       w  .  u  .  k  .  .  u  b     w was kept for it
//
// If w is a certain value of k, its own gaps say no less. Else let t_w = 1 if
// it is there, in k's need beside all that is certain. Let y_u = 1 if u isn't
// there at k. With G(u) for the gaps of u around k, and F(w) for the gap of w
// in which k stands and all later ones,
//
//     sum of s_u y_u >= need_k + sum of s_w t_w
//     y_u <= sum of x_g over G(u)
//     y_u <= t_w + sum of x_g over F(w)
//
// A price lambda of a byte in the first row, and mu_uw >= 0 for each row of the
// third kind, add to the sum
//
//     lambda need_k - sum over w of max(0, (sum over u of mu_uw) - lambda s_w)
//
// They add mu_uw to the rent of each gap of F(w). They add lambda s_u less u's
// sum of mu_uw, if that is positive, to the rent of each gap of G(u). This is
// the Lagrangian of these rows, with prices of the second ones at which it
// doesn't pay to leave y_u open.
//
// Example. w of 100 bytes costs 5, and u of 100 bytes is made of it for 5. u is
// read behind k, w isn't, and 100 bytes are too many at k. The gap of u alone
// proves 5. But if u isn't there, w is kept in its place, or made again, too.
// With lambda = 10/100 and mu = 5 the sum is 10 - max(0, 5 - 10) - max(0, 5 -
// 5) for each of the two gaps: 10.
//
// The bound ignores: values that stand on either side of a moment; the inputs
// of an input; moments of recomputations; extra cost of a variant that spares
// an operand; in loops, what is listed in `AnyOrderGraph.h`.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDER_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDER_H

#include "compiler/planning/model/Problem.h"

#include "absl/status/statusor.h"

namespace tmc::planning {

struct AnyOrderCertificate {
  struct Price {
    InstructionId moment = kNone;
    int64_t price = 0; // Per byte, in units of cost / denominator.
  };
  /// Instructions that cut a value's time into gaps, the first one first. A
  /// value without a chain has one gap.
  struct Chain {
    ValueId value = kNone;
    std::vector<InstructionId> readers;
  };
  /// The row of a certain value of some moment and its input.
  struct Input {
    ValueId value = kNone, input = kNone;
    int64_t price = 0; // In units of cost / denominator.
  };
  /// A moment at which inputs count, with its own price of a byte.
  struct InputMoment {
    InstructionId moment = kNone;
    int64_t price = 0;
    std::vector<Input> inputs; // In ascending order of values, then inputs.
  };
  int64_t budgetBytes = -1; // The device's, reserved included; -1: none.
  int64_t denominator = 1;
  std::vector<Price> prices;             // In ascending order of moments.
  std::vector<Chain> chains;             // In ascending order of values.
  std::vector<InputMoment> inputMoments; // In ascending order of moments.
  int64_t provenCost = 0; // No plan in any order takes less; rounded up.
};

struct AnyOrderOptions {
  /// Moments that may have a price while prices are sought, and at the end.
  int32_t candidates = 160, moments = 80;
  /// Counted steps of the ascent: entries of rows over all iterations.
  int64_t work = 20'000'000;
  /// Moments at which inputs count, and steps of their ascent.
  int32_t inputMoments = 16;
  int64_t inputWork = 150'000'000;
};

/// The best certificate found for the device's budget. Unimplemented: the
/// problem has another space or engine.
absl::StatusOr<AnyOrderCertificate>
proveAnyOrder(const Problem &problem, const AnyOrderOptions &options = {});

/// The cost that the model says these prices and chains prove. An error: a row
/// doesn't exist.
absl::StatusOr<int64_t>
costProvenInAnyOrder(const Problem &problem,
                     const AnyOrderCertificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDER_H
