// MoveWork.h - the amount that a probe of transfers moves, and its buffers.
//
// Every engine cycles through its own buffers, so that no cache holds them.
// Every engine works for about the same time, so that all are busy until the
// end. The number of pieces depends on rates that a first, short run measures.
// Sizes follow from the free memory and the free room on the disk.
//
//     device   scalars | d2h: 8 pieces | h2d: 8 pieces | factors | scratch
//     host     scalars | d2h | h2d | file-read | file-write | update | scratch
//     file     file-read: 8 pieces | file-write: 8 pieces

#ifndef TMC_DRIVER_CALIBRATE_MOVEWORK_H
#define TMC_DRIVER_CALIBRATE_MOVEWORK_H

#include "compiler/support/Failure.h"
#include "compiler/target/Host.h"
#include "runtime/kernels/Machine.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tmc {

/// Of the engines that were measured.
using EngineRates = std::map<EngineKind, Channel>;

struct MoveWork {
  /// The size of a large piece, so large that the rate determines its time. One
  /// piece in kSmallEvery is small, so small that the latency determines its
  /// time. Both sizes are whole blocks of the file.
  int64_t largeBytes = kMostLargeBytes;
  static constexpr int64_t kMostLargeBytes = 16 << 20;
  static constexpr int64_t kLeastLargeBytes = 1 << 20;
  static constexpr int64_t kSmallBytes = 64 << 10, kSmallEvery = 4;
  static constexpr int64_t kBuffers = 8;
  /// Rows and columns of a product on the device.
  static constexpr int64_t kProduct = 1024;

  /// Products, updates, pieces of transfers.
  PerEngine<int64_t> pieces;

  // An update has a gradient, a parameter and two moments of a large piece
  // each; it reads four of them and writes three.
  int64_t updateCount() const { return largeBytes / 4; }
  int64_t updateBytes() const { return 7 * largeBytes; }
  static constexpr int64_t productBytes() {
    return 3 * kProduct * kProduct * 4;
  }
  static constexpr double productFlops() {
    return 2.0 * kProduct * kProduct * kProduct;
  }

  // The offsets of the buffers. The first bytes of memories hold scalars.
  static constexpr int64_t kScalars = 4096, kScratchBytes = 64 << 20;
  static constexpr int64_t kHostScratchBytes = 1 << 20;
  int64_t buffersBytes() const { return kBuffers * largeBytes; }
  /// The place of a copying engine's pieces in a space that it touches.
  int64_t piecesAt(EngineKind engine, SpaceKind space) const {
    return afterPieces(space, engine);
  }
  int64_t factors() const { return afterPieces(SpaceKind::Device); }
  int64_t scratch() const { return factors() + productBytes(); }
  int64_t update() const { return afterPieces(SpaceKind::Host); }
  int64_t hostScratch() const { return update() + 4 * largeBytes; }
  PerSpace<int64_t> arenaBytes() const {
    PerSpace<int64_t> bytes;
    for (auto [space, its] : bytes)
      its = afterPieces(space.kind);
    bytes[SpaceKind::Device] = scratch() + kScratchBytes;
    bytes[SpaceKind::Host] = hostScratch() + kHostScratchBytes;
    return bytes;
  }

private:
  /// The place after the pieces of all engines before `end` in the table.
  int64_t afterPieces(SpaceKind space,
                      std::optional<EngineKind> end = std::nullopt) const {
    int64_t at = infoOf(space).hasAddresses ? kScalars : 0;
    for (auto [engine, count] : pieces) {
      if (engine.kind == end)
        break;
      if (engine.copies && touches(engine.kind, space))
        at += buffersBytes();
    }
    return at;
  }
};

/// The largest pieces with which both memories take at most a quarter of
/// `memoryBytes`, and the file at most half of `roomBytes`; -1 is no limit.
/// Fails if the smallest pieces exceed all of either. `directory` is the file's
/// directory, for messages.
Expected<MoveWork> workThatFits(int64_t memoryBytes, int64_t roomBytes,
                                const std::string &directory);

/// A few small pieces for each engine, to measure its rate coarsely.
MoveWork firstWork(const MoveWork &fitting);

/// The number of pieces that each engine does in the same time at `rates`: a
/// second, or less if an engine would need more pieces than a queue holds.
/// Pieces are smaller if the minimal number would take an engine more than a
/// second.
MoveWork balancedWork(const MoveWork &fitting, const EngineRates &rates);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_MOVEWORK_H
