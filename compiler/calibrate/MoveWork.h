// MoveWork.h - how much a probe of transfers moves, and where its buffers are.
//
// Every engine cycles through buffers of its own, so that no cache holds them,
// and has about the same time to work, so that all are busy until the end. What
// that is in pieces depends on rates that a first, short run measures. Sizes
// follow from the memory and the room on the disk that there are.
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
  /// Of a large piece, so large that the rate decides. One piece in kSmallEvery
  /// is a small one, so small that the latency does; both are whole blocks of
  /// the file.
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

  // Where things are. The first bytes of both memories hold scalars.
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
/// Fails where the smallest pieces take more than there is of either.
/// `directory` is where the file is, for messages.
Expected<MoveWork> workThatFits(int64_t memoryBytes, int64_t roomBytes,
                                const std::string &directory);

/// A few small pieces for each engine, to find out about its rate.
MoveWork firstWork(const MoveWork &fitting);

/// As many pieces as each engine does in the same time at `rates`: a second, or
/// less where one has more pieces then than a queue holds. Pieces
/// are smaller where the fewest would take one more than a second.
MoveWork balancedWork(const MoveWork &fitting, const EngineRates &rates);

} // namespace tmc

#endif // TMC_COMPILER_CALIBRATE_MOVEWORK_H
