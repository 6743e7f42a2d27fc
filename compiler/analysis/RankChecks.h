// RankChecks.h - the parts of the proof about ranks (RankCheck.h).

#ifndef TMC_COMPILER_ANALYSIS_RANKCHECKS_H
#define TMC_COMPILER_ANALYSIS_RANKCHECKS_H

#include "compiler/analysis/RankCheck.h"

namespace tmc {

/// The ranks that stand for all of a world.
struct ShownRanks {
  Mesh mesh;
  std::vector<const RankProgram *> programs; // By rank of `mesh`.
  std::vector<int64_t> numbers; // By rank: its number in the whole world.

  int size() const { return int(programs.size()); }
  std::string nameOf(int rank) const {
    return "rank " + std::to_string(numbers[size_t(rank)]);
  }
};

/// One call of a rank: calls count from 1.
struct RankSide {
  int rank = 0;
  int64_t number = 0;
  const RankEntry *entry = nullptr;
};

/// "rank 1's call 2, a gather of 'h.0.w' over dp"
std::string textOf(const ShownRanks &ranks, const RankSide &side);
/// "a gather of 'h.0.w' over dp"
std::string textOf(const RankEntry &entry);

/// The calls of a rank on the network, in order.
std::vector<RankSide> callsOf(const ShownRanks &ranks, int rank);
/// The rank at the other end of a message; -1: there is none.
int peerOf(const ShownRanks &ranks, const RankSide &side);

/// All calls have partners that say the same.
std::optional<RankFault> checkMatches(const ShownRanks &ranks);
/// No ranks wait for each other. All calls have partners.
std::optional<RankFault> checkMeetings(const ShownRanks &ranks);
/// Groups and pieces of a program that ranks of `mesh` run.
std::optional<RankFault> checkGroups(const Mesh &mesh,
                                     const RankProgram &program);
std::optional<RankFault> checkPieces(const Mesh &mesh,
                                     const RankProgram &program);
/// The pieces of single ranks begin at their places.
std::optional<RankFault> checkOffsets(const ShownRanks &ranks);
/// Waits suffice, and nothing is missing.
std::optional<RankFault> checkWaits(const RankProgram &program);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_RANKCHECKS_H
