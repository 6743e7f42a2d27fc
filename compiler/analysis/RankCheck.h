// RankCheck.h - proves that the ranks of a mesh understand each other.
//
// Each rank runs a placed program of its own, and meets the others in the calls
// of its network engine. This checker doesn't use the plan, and no rule of the
// passes that made the programs: it reads the calls, the waits and the bytes.
//
//     rank 0                            rank 1
//     launch   makes a                  launch   makes a
//     record 0 on compute               record 0 on compute
//     wait 0 on network                 wait 0 on network
//     gather   a -> b   <-- meet -->    gather   a -> b
//     record 1 on network               record 1 on network
//     wait 1 on compute                 wait 1 on compute
//     done 1                            done 1
//     launch   reads b                  launch   reads b
//
// It proves, in this order:
//
//   - Calls match. All ranks of a group (Mesh.h) make the same gathers and
//     exchanges in one order: of the same value, with the same element type,
//     bytes and total. The k-th send from rank a to rank b is the k-th receive
//     of rank b from rank a, of the same value, type and bytes.
//   - No rank waits forever. A call ends when all its ranks have come to it,
//     and a send when its receive has begun (Network.h permits that). The
//     network's engine runs its calls first in, first out. Compute stands still
//     in a wait. Each choice is the strictest, so a library that waits less
//     can't get stuck either.
//   - Pieces are right. Those of a group's ranks cover the whole, each byte
//     once. A shard has whole units (nn::kShardUnit) and the fewest that do. A
//     call reads and writes as many bytes as it says, within its buffers.
//   - Waits suffice, by vector clocks over the engines of a rank. A call begins
//     after the work that made its operand, and after the last use of the bytes
//     that it writes. Nothing touches its bytes before an engine has waited for
//     it. The kernels have waited for it at its done, and each call has one.
//   - Nothing is missing. A buffer is written before it is read. A rank that
//     takes its shard of a kept value gathers the value again in that step.
//
// A rank has one network engine. So an order of two entries of one rank that
// goes through other ranks begins and ends in that engine, and its own queue
// says the same: clocks over one rank's engines show all orders.
//
// Ranks of one program make the same calls, so they come to each of them alike:
// N ranks get stuck only if two do. So two places of an axis stand for all of
// it, unless programs are of single ranks. Pieces are those of the whole mesh.
//
//     RankWorld world;                       or ranksOf (RankPrograms.h)
//     world.mesh = {.data = 2};
//     world.programs = {program};
//     std::optional<RankFault> fault = checkRanks(world);

#ifndef TMC_COMPILER_ANALYSIS_RANKCHECK_H
#define TMC_COMPILER_ANALYSIS_RANKCHECK_H

#include "dialects/interfaces/Machine.h"
#include "dialects/nn/Ranks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// A call of the network, or a cut that needs none. Sizes are bytes.
struct RankCall {
  enum class Kind {
    Gather,   // a piece -> the whole, of all ranks
    Exchange, // the whole -> this rank's piece of each rank's whole
    Send,     // a message -> rank `peer`
    Receive,  // a message of rank `peer` ->
    Cut,      // the whole -> this rank's piece; nothing travels
  };
  Kind kind = Kind::Gather;
  Axis axis = Axis::Data;
  int64_t ranks = 1;        // The group's, as the call says.
  std::string type = "f32"; // An element's.
  int64_t elementBytes = 4;
  int64_t bytes = 0; // A piece's, padding included, or the message's.
  int64_t total = 0; // The whole's; a message has none.
  int64_t offset =
      -1;        // This rank's piece begins here; -1: at its place * bytes.
  int peer = -1; // Its place on `axis`; Send and Receive.
  /// A gather of values side by side: its pieces are no shards.
  bool isWhole = false;

  bool travels() const { return kind != Kind::Cut; }
  bool isMessage() const { return kind == Kind::Send || kind == Kind::Receive; }
};
const char *nameOf(RankCall::Kind kind);

/// A value's bytes in an arena.
struct RankBuffer {
  std::string name;
  int64_t begin = 0, bytes = 0;
  bool isKept = false; // It has its content when the step begins.
  /// Elements of the value that it is a shard of; 0: it is no shard.
  int64_t wholeElements = 0;
  int64_t elements = 0;
  /// Elements of the parameter for each element: 256 for scales of 256 codes.
  int64_t each = 1;
  int64_t parameterElements = 0;
};

/// Bytes [begin, end) of a space's arena, through a buffer.
struct RankBytes {
  SpaceKind space = SpaceKind::Device;
  int64_t begin = 0, end = 0;
  int32_t buffer = 0; // Into `RankProgram::buffers`.
};

/// An entry of a rank's list.
struct RankEntry {
  enum class Kind { Work, Record, Wait, Done };
  Kind kind = Kind::Work;
  EngineKind engine = EngineKind::Compute;
  int64_t event = -1; // Record, Wait and Done.
  // Work:
  std::string name; // Its value's: "h.0.attn.w".
  int64_t instance = 0;
  std::vector<RankBytes> reads, writes;
  std::optional<RankCall> call;
  mlir::Operation *op = nullptr; // Its place, for messages.

  /// True if the network runs it.
  bool isCall() const { return kind == Kind::Work && call && call->travels(); }
};

/// One step of a rank, its loops unrolled.
struct RankProgram {
  std::vector<RankBuffer> buffers;
  std::vector<RankEntry> entries;
};

struct RankWorld {
  Mesh mesh;
  std::vector<RankProgram> programs;
  /// The program of each rank. Empty: program s is that of the ranks whose
  /// place on the pipeline's axis is s.
  std::vector<int32_t> programOf;
};

enum class RankFaultKind {
  Group,     // A call of another number of ranks than the mesh has.
  Order,     // Two ranks make the same calls in other orders.
  Unmatched, // A call that another rank doesn't make.
  Operation, // A gather meets an exchange.
  Type,
  Bytes,
  Total,
  Peer,    // A message to a rank that doesn't expect it, or to none.
  Cycle,   // Ranks that wait for each other.
  Piece,   // A piece that isn't this rank's, or not of whole units.
  Wait,    // An engine uses bytes too early.
  Missing, // A value that nothing makes.
};
const char *nameOf(RankFaultKind kind);

struct RankFault {
  RankFaultKind kind = RankFaultKind::Order;
  std::string message;
  mlir::Operation *at = nullptr;    // May be null for lists made by hand.
  std::string otherMessage;         // Empty: there is no other side.
  mlir::Operation *other = nullptr; // The other rank's, or the other access.
};

/// The first fault of a world, or none.
std::optional<RankFault> checkRanks(const RankWorld &world);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_RANKCHECK_H
