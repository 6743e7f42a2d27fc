// MoveWork.h - the amount that a probe of transfers moves, and its buffers.
//
// Every engine cycles through its own buffers, so that no cache holds them.
// Every engine works for about the same time, so that all are busy until the
// end. The number of pieces depends on rates that a first, short run measures.
// Sizes follow from the free memory and the free room on the disk.
//
//     device   scalars | out: 8 pieces | in: 8 pieces | factors | scratch
//     host     scalars | from device | to device | to file | from file | update
//     file     written: 8 pieces | read: 8 pieces

#ifndef TMC_COMPILER_CALIBRATE_MOVEWORK_H
#define TMC_COMPILER_CALIBRATE_MOVEWORK_H

#include "compiler/support/Failure.h"
#include "compiler/target/Host.h"

#include <cstdint>
#include <map>
#include <string>

namespace tmc {

/// By the engine's name in traces: "compute", "d2h", "h2d", "write", "read",
/// "host".
using EngineRates = std::map<std::string, Channel>;

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

  /// By engine: products, updates, pieces of transfers.
  std::map<std::string, int64_t> pieces;

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

  // The offsets of the buffers. The first bytes of both memories hold scalars.
  static constexpr int64_t kScalars = 4096, kScratchBytes = 64 << 20;
  static constexpr int64_t kHostScratchBytes = 1 << 20;
  int64_t buffersBytes() const { return kBuffers * largeBytes; }
  int64_t out() const { return kScalars; }
  int64_t in() const { return out() + buffersBytes(); }
  int64_t factors() const { return in() + buffersBytes(); }
  int64_t scratch() const { return factors() + productBytes(); }
  int64_t deviceBytes() const { return scratch() + kScratchBytes; }
  int64_t fromDevice() const { return kScalars; }
  int64_t toDevice() const { return fromDevice() + buffersBytes(); }
  int64_t toFile() const { return toDevice() + buffersBytes(); }
  int64_t fromFile() const { return toFile() + buffersBytes(); }
  int64_t update() const { return fromFile() + buffersBytes(); }
  int64_t hostScratch() const { return update() + 4 * largeBytes; }
  int64_t hostBytes() const { return hostScratch() + kHostScratchBytes; }
  int64_t written() const { return 0; }
  int64_t read() const { return buffersBytes(); }
  int64_t fileBytes() const { return 2 * buffersBytes(); }
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

#endif // TMC_COMPILER_CALIBRATE_MOVEWORK_H
