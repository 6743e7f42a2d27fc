// AnyOrderGaps.h - the gaps of `AnyOrder.h`, by number.
//
// A chain of m readers cuts a value's time into m + 1 gaps. A value without a
// chain has one. A value that a loop makes has another one behind the loop.

#ifndef TMC_COMPILER_PLANNING_BOUND_ANYORDERGAPS_H
#define TMC_COMPILER_PLANNING_BOUND_ANYORDERGAPS_H

#include "compiler/planning/bound/AnyOrder.h"
#include "compiler/planning/bound/AnyOrderGraph.h"

#include <map>

namespace tmc::planning {

class AnyOrderGaps {
public:
  AnyOrderGaps(const AnyOrderGraph &graph,
               std::vector<AnyOrderCertificate::Chain> chains);
  AnyOrderGaps(AnyOrderGaps &&) = default;

  /// Numbers of gaps, the end excluded.
  struct Range {
    int32_t begin = 0, end = 0;
  };
  /// The gaps one of which is broken if the value isn't there at the moment.
  Range around(const AnyOrderGraph::Row &row, AnyOrderGraph::Held held);
  /// The gap of v in which the moment stands, and all later ones; none if v
  /// can't be written again. No loop makes v, or the moment's own.
  Range from(const AnyOrderGraph::Row &row, ValueId v);

  const AnyOrderGraph &graph;
  std::vector<AnyOrderCertificate::Chain> chains;
  std::vector<int64_t> costs; // By gap. New gaps are added as they are met.

private:
  int32_t firstOf(ValueId v);
  const std::vector<InstructionId> &chain(ValueId v) const;

  std::map<ValueId, const std::vector<InstructionId> *> chainOf;
  std::map<ValueId, int32_t> first, behindLoop;
};

/// The longest chain of each value over these rows. Two readers are in order if
/// a moment surely stands between them. Chains that cut nothing are left out.
std::vector<AnyOrderCertificate::Chain>
findChains(const AnyOrderGraph &graph,
           const std::vector<AnyOrderGraph::Row> &rows);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_BOUND_ANYORDERGAPS_H
