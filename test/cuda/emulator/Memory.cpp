//===- Memory.cpp - device memory and pinned host memory ------------------===//

#include "test/cuda/emulator/Memory.h"

#include "test/cuda/emulator/Shadow.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <sys/mman.h>

namespace tmc::emulator {

namespace {
constexpr size_t kAlign = 256, kRedZone = 512;
/// New memory of up to so many bytes holds NaNs; larger pieces stay untouched.
constexpr size_t kSpoiled = 1 << 20;

std::map<uintptr_t, Piece> &pieces() {
  static auto *all = new std::map<uintptr_t, Piece>;
  return *all;
}
uintptr_t next = 0;
} // namespace

void *allocate(size_t bytes, MemoryKind kind) {
  const DeviceRange &range = deviceRange();
  if (!next)
    next = range.base + kRedZone;
  const size_t whole =
      (std::max<size_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  // An odd multiple of kAlign: nothing may rely on more.
  uintptr_t at = next + (next / kAlign % 2 ? 0 : kAlign);
  if (whole > range.bytes || at + whole + kRedZone > range.base + range.bytes) {
    // The range is used up: a freed piece of the same size serves again.
    at = 0;
    for (const auto &[from, piece] : pieces())
      if (!piece.live &&
          (std::max<size_t>(piece.bytes, 1) + kAlign - 1) / kAlign * kAlign ==
              whole)
        at = from;
    if (!at)
      return nullptr;
  } else {
    next = at + whole + kRedZone;
  }
  pieces()[at] = {at, bytes, kind, true};
  void *p = reinterpret_cast<void *>(at);
  setExists(at, bytes, true);
  if (kind == MemoryKind::Managed)
    setWritten(at, bytes, true);
  if (kind != MemoryKind::Managed && bytes <= kSpoiled)
    std::memset(p, 0xff, bytes);
  return p;
}

bool release(void *p) {
  const auto found = pieces().find(reinterpret_cast<uintptr_t>(p));
  if (found == pieces().end() || !found->second.live)
    return false;
  Piece &piece = found->second;
  piece.live = false;
  forget(piece.at, piece.bytes);
  // Whole pages go back to the system.
  constexpr uintptr_t page = 4096;
  const uintptr_t from = (piece.at + page - 1) / page * page;
  const uintptr_t to = (piece.at + piece.bytes) / page * page;
  if (from < to)
    (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
  return true;
}

const Piece *pieceAt(uintptr_t at) {
  auto after = pieces().upper_bound(at);
  return after == pieces().begin() ? nullptr : &std::prev(after)->second;
}

std::string placeName(uintptr_t at) {
  const Piece *piece = pieceAt(at);
  if (!piece)
    return "no buffer";
  auto next = pieces().upper_bound(at);
  // Behind one piece and just before another: the nearer one is meant.
  if (at >= piece->at + piece->bytes && next != pieces().end() &&
      next->first - at < at - (piece->at + piece->bytes))
    return std::to_string(next->first - at) + " bytes before a buffer of " +
           std::to_string(next->second.bytes) + " bytes";
  return "offset " + std::to_string(at - piece->at) + " of a " +
         (piece->live ? "" : "freed ") + "buffer of " +
         std::to_string(piece->bytes) + " bytes";
}

} // namespace tmc::emulator
