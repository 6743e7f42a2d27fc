// Milp.h - Checkmate's method: the optimum as an integer program, through CBC.
//
// The order is fixed, and each node runs at most once per stage, as in
// Checkmate; stage t ends with the own execution of instruction t:
//
//     stage     0     1        2              3
//     runs      0    [0] 1    [0] [1] 2      [0] [1] [2] 3      [.]: or not
//
// For each stage t, value v and slot j (the recipes that may run in the stage,
// by rank, the stage's own instruction last):
//
//     R[t,j]    in {0,1}   slot j runs; 1 for the stage's own instruction
//     S[t,v]    in {0,1}   v is in memory when the stage begins
//     F[t,j,v]  in [0,1]   v leaves memory after slot j, which reads it
//     U[t,j]    in [0,1]   bytes alive while slot j runs / limit
//
//     minimise  sum of cost R
//     R[t,j]   <= S[t,v] + R[t, maker of v]          for each v that j reads
//     S[t+1,v] <= S[t,v] + R[t, maker of v],  S[t,v] + R[t, maker of v] <= 1
//     F[t,j,v] <= R[t,j],  1 - S[t+1,v],  1 - R[t,j'] for each later reader j'
//     U[t,0]    = sum of bytes S[t,.] + bytes R[t,0]
//     U[t,j]    = U[t,j-1] - sum of bytes F[t,j-1,.] + bytes R[t,j]
//     U[t,j] + workspace R[t,j] <= 1
//
// Bytes count as fractions of the limit, so the solver's tolerance is a
// fraction of the limit too. If an answer exceeds the limit by a few bytes, the
// program is solved again with a limit lower by that much.
//
// The program has about n^2 rows for each edge of a node: it is meant for
// graphs of up to about a hundred nodes; larger ones are refused at once. The
// search ends after counted nodes (`effort` scales them) or at a time limit,
// with the best plan found.
//
// Supported problems: one recipe and one result for each instruction, no loops.
// The model has no overwrites; the checker takes them afterwards. So if an
// overwrite is possible, the answer may be more expensive than needed.
//
// Source: Jain et al., "Checkmate" (MLSys 2020). CBC is optional: if
// coinor-libcbc-dev was missing when the build was configured, the planner
// returns an error.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_MILP_H
#define TMC_COMPILER_PLANNING_LABORATORY_MILP_H

#include "compiler/planning/peers/Planners.h"

namespace tmc::planning {

/// Whether this build has the solver.
bool hasMilp();

/// Errors: Unimplemented without a solver, for unsupported problems and for too
/// large ones.
absl::StatusOr<Solution> planMilp(const Problem &problem,
                                  const PlanRequest &request);

/// Adds the planner `milp`. It isn't registered by default, so that only
/// programs that call this link the solver.
void registerMilp();

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_MILP_H
