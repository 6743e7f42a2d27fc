// Branch.h - a bound that includes the inputs of recomputations, proved case by
// case.
//
// The prices of `Bound.h` assume that breaking a gap costs only its own kernel,
// and that gaps can be broken in part. This bound assumes neither.
//
// *Dependencies.* Choose a few moments k_1 < ... < k_m (the expensive ones).
// They cut each gap into cells:
//
//     gap of v      made |-----------------------------------| used
//     moments               k_1          k_2          k_3
//     cells         [  0    ][    1      ][    2      ][  3  ]
//
// At each moment v is in memory or not (S); in each cell it is recomputed or
// not (R). It is in memory at a cell's end only if it was at the beginning or
// was made in the cell, and at the end of the gap it is in memory. After its
// last use a value continues as a *tail*, which only recomputations of others
// need. Let w be an input of v (by every recipe that makes v), not used between
// k_i and the end b of the gap. If v isn't in memory at k_i, it is recomputed
// between k_i and b, and for that w is in memory at k_i or is recomputed as
// well. So for each such w
//
//     1  <=  S(v, k_i) + S(w, k_i) + sum of R(w, cell) from k_i to b.
//
// (The sum must go to the end of the gap: rows for single cells would all be
// satisfied by fractions of a recomputation, such as a third in each of three
// cells.)
//
// A price lambda per byte at each moment and a price mu at each such row leave
// one independent problem per gap, a path through its cells with two states,
// solved exactly:
//
//     L(lambda, mu) = sum_i lambda_i (floor_i - limit) + sum_rows mu
//                   + sum_gaps best path
//
// where a path pays lambda_i bytes where v is in memory, and its cost where it
// is recomputed, and gets the mu of the rows that it satisfies by being in
// memory or being made.
//
// *Cases.* A gap is broken or it isn't. One bound assumes that the gap is kept
// whole, another that v is recomputed inside it at least once; the lesser of
// the two is a bound, and each case can be split again. The certificate is that
// tree, with prices at its leaves. For every tree and all prices, the least L
// of its leaves is proved; a checker walks the gaps once for each leaf.
//
// *Room.* The values in memory at k_i in all plans, and the gaps that a case
// keeps, leave some room there. A value larger than the room isn't in memory;
// if the room is negative, the case is empty.
//
// Example: 150 bytes too much; three gaps of 100 bytes and cost 4, and 150
// bytes of room. Prices alone break one gap and a half: 6. If the first is
// kept, 50 bytes of room are left, and the two others are broken: 8. If it is
// broken, the second is split: kept, the third is broken; broken, 8 is paid. So
// 8 is proved.

#ifndef TMC_COMPILER_PLANNING_BOUND_BRANCH_H
#define TMC_COMPILER_PLANNING_BOUND_BRANCH_H

#include "compiler/planning/bound/Bound.h"

#include <optional>

namespace tmc::planning {

/// The row for input `read` of `value`, at the chosen moment number `moment`
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
  /// Preorder: a split node is followed by the tree in which its gap is kept,
  /// and then by the tree in which it is broken.
  struct Node {
    ValueId value = kNone; // kNone: a leaf.
    int32_t after = 0;
    /// Leaf: prices over the denominator, at least 0.
    std::vector<std::pair<int32_t, int64_t>> lambda; // (index of moment, price)
    std::vector<std::pair<int32_t, int64_t>> mu;     // (row, price)
  };
  std::vector<Node> nodes;
  /// The proved extra cost over `baseCost`, rounded up.
  int64_t extraCost = 0;
};

struct BranchOptions {
  int64_t work = 300'000'000; // Counted steps.
  int32_t moments = 8;        // Most chosen moments.
  /// Cost above base of a known plan; no bound beyond it is sought.
  int64_t knownExtraCost = -1;
  int32_t maxLeaves = 400;
};

/// The best bound found within the work. `prices` of the device's moments come
/// from `ascend`.
BranchCertificate branch(const GapModel &gaps,
                         const std::vector<double> &prices, int64_t budgetBytes,
                         const BranchOptions &options);

/// The bound that a certificate proves, in exact integers, by code that shares
/// nothing with `branch` and `GapModel`: time O(size of the problem) and, for
/// each leaf, O(gaps x moments + rows). An error says why it proves nothing.
absl::StatusOr<int64_t> provenByBranching(const Problem &problem,
                                          const BranchCertificate &certificate);

/// The first defect of a certificate, or nothing.
std::optional<std::string> checkBranching(const Problem &problem,
                                          const BranchCertificate &certificate);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_BRANCH_H
