// FileForms.h - what of a plan may wait in a file instead of on the host.
//
// A plan of the device and the host (`Moves.h`) may hold more bytes on the host
// than there are. With a file behind the host each content that is there has
// two more states:
//
//   - at home in the file: a persistent content. It is read into host bytes
//     before its uses and, if the step updates it, written back behind;
//   - waiting in the file: a temporary one, between its stash and its fetch.
//
//         list   stash( )stash write( )write ..... read( fetch( )fetch )read
//         host   [ bytes of a@host         ]       [ and again            ]
//         file                 [ a@file                                   ..
//
// This chooses which: as few as leave a given number of bytes on the host.
// `FileMoves.h` puts their reads and writes in their places.

#ifndef TMC_COMPILER_PLANNING_SEARCH_FILEFORMS_H
#define TMC_COMPILER_PLANNING_SEARCH_FILEFORMS_H

#include "compiler/planning/model/Timeline.h"

namespace tmc::planning {

/// The problem's file beside its host, and what leads there.
struct FileForms {
  explicit FileForms(const Problem &problem);

  /// The first space of its kind, or kNone.
  SpaceId host = kNone, file = kNone;
  bool isThere() const { return host != kNone && file != kNone; }
  /// Of values on the host: the form in the file, the quickest read of it and
  /// the quickest write; else kNone.
  std::vector<ValueId> inFile;
  std::vector<RecipeId> read, write;
};

/// A content of a plan that can be in the file.
struct FileCandidate {
  ValueId kept = kNone; // On the host: what is there first.
  ValueId made = kNone; // Persistent: what updates it there, or kNone.
  bool persists = false;
  int64_t bytes = 0; // In the file.
  int64_t cost = 0;  // Time of its reads and writes, of a single trip.
};

/// The candidates of a plan that has a timeline, as they are to leave: of
/// persistent contents those that are updated first, of temporary ones those
/// that wait longest. `temporariesFirst`: or the persistent ones.
std::vector<FileCandidate> fileCandidates(const Problem &problem,
                                          const FileForms &forms,
                                          const Solution &solution,
                                          const Timeline &timeline,
                                          bool temporariesFirst);

/// How many of the candidates, from the first on, have to leave so that the
/// others and all else take at most `limit` bytes on the host at any moment;
/// all if that isn't enough.
size_t countToFile(const Problem &problem, const FileForms &forms,
                   const Timeline &timeline,
                   const std::vector<FileCandidate> &candidates, int64_t limit);

/// The homes of `solution`, those that leave (`isFiled`, of values on the host)
/// in the file.
std::vector<ValueId> homesWithFile(const Problem &problem,
                                   const FileForms &forms,
                                   const Solution &solution,
                                   const std::vector<char> &isFiled);

/// Temporary values on the host that updates there read or write, of one
/// segment alone: how long they are there is the updates' affair.
std::vector<char> dynamicValues(const Problem &problem, const FileForms &forms,
                                const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_SEARCH_FILEFORMS_H
