// PlanFile.h - plans as JSON: `tmc-solve` writes them, and `tmc-solve verify`
// reads them from anybody.
//
//     {
//       "makespan": 60,                    or "cost", of a problem of one space
//       "peaks": [299, 100],               or "peak"; reserved bytes included
//       "budgets": [299, null],            or "budget"
//       "homes": [7],
//       "sequence": [[0, 2, 0, -1, 0, []],
//                    [0, 0, -1, 1, 0, []],          stash starts,
//                    [0, 3, 1, -1, 0, [[4, 5]]],    a kernel in place of 4,
//                    [0, 0, -1, 1, 1, []], ...],    stash is done
//       "arenas": [{"space": 0, "alignment": 256, "bytes": 512,
//                   "buffers": [["a", 0, 3, 100, 256], ...]}]
//     }
//
// Only `sequence` is necessary. An entry of it has six fields:
//
//     segment, recipe  numbers of the problem file
//     instruction      whose own execution this is; -1: a recomputation, a move
//     work             -1 on the compute engine; else a number that a start and
//                      its done share, below the entries of the segment
//     done             1 for a done, else 0
//     overwrites       pairs [read, written]: `written` takes the bytes of
//                      `read` (R4); a done has none
//
// The sequence of a graph holds node numbers instead. `homes` names the forms
// that are homes (R14), where they aren't the main forms. A buffer of an arena
// is a name, its life [begin, end) in entries of the sequence, its bytes and
// its offset, as in the CSV of `tmc-solve pack`; scratch has the name of its
// recipe and `.scratch`. `offered` says which moves were added to a problem of
// the device alone. Other keys are for people and are ignored.
//
// All numbers of a file are claims: the reader checks that they exist, and
// `judgePlan` compares them with the count of `Verify.h`.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_PLANFILE_H
#define TMC_COMPILER_PLANNING_LABORATORY_PLANFILE_H

#include "compiler/planning/laboratory/Text.h"
#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Verify.h"
#include "compiler/planning/pack/Arena.h"

#include <array>
#include <optional>

namespace tmc::planning {

/// The moves that `tmc-solve offload` offers to a problem of the device alone;
/// bandwidths in GB/s, 0: there is no file, or no limit of the host's memory.
struct OfferedMoves {
  static constexpr std::array<const char *, 3> kClasses = {"all", "activations",
                                                           "states"};
  static constexpr int64_t kMostBandwidth = 10'000;
  int64_t bandwidth = 25, hostBandwidth = 50;
  int64_t memoryBandwidth = 0; // 0: no limit.
  int64_t fileBandwidth = 0, fileWriteBandwidth = 0;
  size_t moveClass = 0; // Index into `kClasses`.

  MoveOptions options() const;
};

/// An arena as a file states it.
struct StatedArena {
  int64_t space = 0, alignment = 1;
  std::optional<int64_t> bytes; // Reserved left out.
  std::vector<Buffer> buffers;  // `fixedOffset` is the stated offset.
};

/// A plan file, before it is compared with a problem.
struct PlanFile {
  struct Entry {
    int64_t segment = 0, recipe = 0, instruction = kNone, work = kNone;
    int64_t done = 0;
    std::vector<std::pair<int64_t, int64_t>> overwrites;
  };
  std::vector<Entry> entries; // A problem has these,
  std::vector<int64_t> nodes; // and a graph these.
  bool isGraph = false;
  std::vector<int64_t> homes;
  /// Claims; empty or nothing: none. Reserved bytes are included.
  std::optional<int64_t> makespan;
  std::vector<std::optional<int64_t>> peaks, budgets;
  std::vector<StatedArena> arenas;
  std::optional<OfferedMoves> offered;
};

/// Reads a plan. An InvalidArgument error says what is wrong and where.
absl::StatusOr<PlanFile> parsePlan(std::string_view text);

/// The plan's lists. `isGraph`: the problem was read as a graph. An
/// InvalidArgument error names the first number that `problem` doesn't have.
absl::StatusOr<Solution> solutionOf(const PlanFile &plan,
                                    const Problem &problem, bool isGraph);

/// The result of a check.
struct PlanVerdict {
  std::optional<Claim> measured;     // By the verifier, if the lists are right.
  std::optional<std::string> defect; // The first; begins as Verify.h says.
  bool isOverBudget = false;         // Its only defect.

  /// Reserved bytes included.
  int64_t peakOf(const Problem &problem, SpaceId space) const {
    return (space ? measured->otherPeakBytes[space - 1] : measured->peakBytes) +
           problem.reservedOf(space);
  }
};

/// Checks the lists, the claims, the arenas, and last the budgets of
/// `problem.spaces`. `solution` is that of `plan`.
PlanVerdict judgePlan(const PlanFile &plan, const Problem &problem,
                      const Solution &solution);

/// Writes `sequence` and, of a problem, `homes`.
void writeLists(JsonWriter &json, const Problem &problem,
                const Solution &solution, bool isGraph);
/// Writes `arenas` with one arena, of the device.
void writeArena(JsonWriter &json, const ArenaProblem &arena,
                const Packing &packing);
void writeOffered(JsonWriter &json, const OfferedMoves &offered);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_PLANFILE_H
