// FileForms.h - contents of a plan that may wait in a file instead of on the
// host.
//
// A plan of the device and the host (`Moves.h`) may hold more bytes on the host
// than the host has. With a file behind the host, each content on the host has
// two more states:
//
//   - at home in the file, for a persistent content. It is read into host bytes
//     before its uses and, if the step updates it, written back after that;
//   - waiting in the file, for a temporary one, between its stash and its
//   fetch.
//
//         list   stash( )stash write( )write ..... read( fetch( )fetch )read
//         host   [ bytes of a@host         ]       [ and again            ]
//         file                 [ a@file                                   ..
//
// This file chooses as few contents as leave a given number of bytes on the
// host. `FileMoves.h` places their reads and writes.

#ifndef TMC_COMPILER_PLANNING_MOVES_FILEFORMS_H
#define TMC_COMPILER_PLANNING_MOVES_FILEFORMS_H

#include "compiler/planning/model/Timeline.h"

namespace tmc::planning {

/// The problem's file and host, and the moves between them.
struct FileForms {
  explicit FileForms(const Problem &problem);

  /// The first space of each kind, or kNone.
  SpaceId host = kNone, file = kNone;
  bool isThere() const { return host != kNone && file != kNone; }
  /// Per value on the host: its form in the file, the fastest read of that form
  /// and the fastest write of it; else kNone.
  std::vector<ValueId> inFile;
  std::vector<RecipeId> read, write;
};

/// A content of a plan that can be in the file.
struct FileCandidate {
  ValueId kept = kNone; // On the host: its first form there.
  ValueId made = kNone; // Persistent: the new content there, or kNone.
  bool persists = false;
  int64_t bytes = 0; // In the file.
  int64_t cost = 0;  // Time of its reads and writes in one trip.
};

/// The candidates of a plan with a timeline, in the order in which they leave
/// the host: persistent contents that are updated first come first, then
/// temporary contents that wait longest. `temporariesFirst` puts the temporary
/// contents before the persistent ones.
std::vector<FileCandidate> fileCandidates(const Problem &problem,
                                          const FileForms &forms,
                                          const Solution &solution,
                                          const Timeline &timeline,
                                          bool temporariesFirst);

/// The number of candidates, from the first on, that must leave so that the
/// rest of the host's bytes is at most `limit` at each moment; all candidates
/// if that isn't enough.
size_t countToFile(const Problem &problem, const FileForms &forms,
                   const Timeline &timeline,
                   const std::vector<FileCandidate> &candidates, int64_t limit);

/// The homes of `solution`, with those in `isFiled` (by values on the host)
/// moved to the file.
std::vector<ValueId> homesWithFile(const Problem &problem,
                                   const FileForms &forms,
                                   const Solution &solution,
                                   const std::vector<char> &isFiled);

/// Temporary values on the host that updates there read or write, in one
/// segment only. The updates decide how long these values live.
std::vector<char> dynamicValues(const Problem &problem, const FileForms &forms,
                                const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_MOVES_FILEFORMS_H
