// Branch.h - a bound that knows what recomputation needs, proved case by case.
//
// The prices of `Bound.h` assume that breaking a gap costs its own kernel
// alone, and that gaps can be broken in part. This bound assumes neither.
//
// *Dependencies.* Choose a few moments k_1 < ... < k_m (the expensive ones).
// They cut each gap into cells:
//
//     gap of v      made |-----------------------------------| used
//     moments               k_1          k_2          k_3
//     cells         [  0    ][    1      ][    2      ][  3  ]
//
// At each moment v is there or not (S); in each cell it is recomputed or not
// (R); it is there at a cell's end only if it was at its beginning or was made
// in it, and at the end of the gap it is there. After its last use a value goes
// on as a *tail*, which only recomputations of others need. Let w be an
// input of v (by every recipe that makes v), not used between k_i and the end b
// of the gap. If v isn't there at k_i, it is recomputed between k_i and b, and
// for that w is there at k_i or is recomputed as well. So for each such w
//
//     1  <=  S(v, k_i) + S(w, k_i) + sum of R(w, cell) from k_i to b.
//
// (The step from "in some cell" to "from here to the end" is what counts: of
// rows that say it cell by cell, fractions of a recomputation, a third in each
// of three cells, satisfy all.)
//
// A price lambda per byte at each moment and a price mu at each such row leave
// one independent problem per gap, a path through its cells with two states,
// solved exactly:
//
//     L(lambda, mu) = sum_i lambda_i (floor_i - limit) + sum_rows mu
//                   + sum_gaps best path
//
// where a path pays lambda_i bytes where v is there, and its cost where it is
// recomputed, and gets the mu of the rows that its being there or being made
// satisfies.
//
// *Cases.* A gap is broken or it isn't. So the least of the two bounds, one
// with the gap kept whole, the other with v recomputed inside it at least once,
// is a bound; and each of the two can be split again. The certificate is that
// tree, with prices at its leaves. Whatever the tree and the prices, the least
// of its leaves' L is proved; a checker walks the gaps once for each leaf.
//
// *Room.* What is there at k_i whatever happens, and the gaps that a
// case keeps, leave some room there. A value that is larger than the room isn't
// there; where the room is negative, the case is empty.
//
// Example: 150 bytes too much; three gaps of 100 bytes and cost 4, and 150
// bytes of room. Prices alone break one gap and a half: 6. If the first is
// kept, 50 bytes of room are left, and the two others are broken: 8. If it is
// broken, the same is asked of the second: kept, the third is broken; broken, 8
// is paid. So 8 is proved.

#ifndef TMC_COMPILER_PLANNING_BOUND_BRANCH_H
#define TMC_COMPILER_PLANNING_BOUND_BRANCH_H

#include "compiler/planning/bound/Bound.h"

namespace tmc::planning {

/// The row of input `read` of `value`, for the chosen moment number `moment`
/// inside the gap of `value` that begins after moment `after`.
struct DependencyRow {
  ValueId value = kNone;
  int32_t after = 0; // Moment of the use or production before the gap.
  int32_t moment = 0;
  ValueId read = kNone;
};

struct BranchCertificate {
  int64_t budgetBytes = -1; // Reserved included.
  int64_t denominator = 1;
  std::vector<int32_t> moments; // Ascending.
  std::vector<DependencyRow> rows;
  /// Preorder: a node that splits is followed by the tree in which its gap is
  /// kept, and that by the tree in which it is broken.
  struct Node {
    ValueId value = kNone; // kNone: a leaf.
    int32_t after = 0;
    /// Of a leaf: prices over the denominator, at least 0.
    std::vector<std::pair<int32_t, int64_t>> lambda; // (index of moment, price)
    std::vector<std::pair<int32_t, int64_t>> mu;     // (row, price)
  };
  std::vector<Node> nodes;
  /// What is proved: extra cost over `baseCost`, rounded up.
  int64_t extraCost = 0;
};

struct BranchOptions {
  int64_t work = 300'000'000; // Counted steps.
  int32_t moments = 8;        // At most so many.
  /// The cost above base of a known plan: no bound is sought beyond it.
  int64_t knownExtraCost = -1;
  int32_t maxLeaves = 400;
};

/// The best bound found within the work. `prices` are those of `ascend`.
BranchCertificate branch(const Problem &problem, const Relaxation &relaxation,
                         const std::vector<double> &prices, int64_t budgetBytes,
                         const BranchOptions &options);

/// What a certificate proves, in exact integers, by code that shares nothing
/// with `branch` and `relax`: time O(size of the problem) and, for each leaf,
/// O(gaps x moments + rows). An error says why it proves nothing.
absl::StatusOr<int64_t> provenByBranching(const Problem &problem,
                                          const BranchCertificate &certificate);

/// The first defect of a certificate, or nothing.
std::optional<std::string> checkBranching(const Problem &problem,
                                          const BranchCertificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BRANCH_H
