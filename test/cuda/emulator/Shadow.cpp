//===- Shadow.cpp - who wrote and read each word, and what exists ---------===//

#include "test/cuda/emulator/Shadow.h"

#include "test/cuda/emulator/Image.h"
#include "test/cuda/emulator/Memory.h"
#include "test/cuda/emulator/Races.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace tmc::emulator {

namespace {

constexpr size_t kWord = 4;
/// Below are null pointers.
constexpr uintptr_t kFirstPage = 4096;
// Of addresses, not of memory: no piece serves twice while they last.
constexpr size_t kDeviceBytes = size_t(1) << 40;
constexpr size_t kDynamicBytes = 99 << 10, kDynamicZone = 64 << 10;
/// Dynamic shared memory is declared as aligned to 16 bytes, and is here
/// aligned to no more.
constexpr size_t kDynamicAlign = 16;

/// Device memory comes in pieces of up to gigabytes of which little is touched:
/// the state of a block of this size that is the same everywhere is one byte.
constexpr size_t kBlock = 64 << 10;
constexpr unsigned char kUnwritten = 0xf0, kWritten = 0xff;

struct Space {
  uintptr_t base = 0;
  size_t bytes = 0;
  unsigned char *states = nullptr; // high half: exists; low half: written
  unsigned char *blocks =
      nullptr; // the state of all of its words, or 0: `states`
  Cell *cells = nullptr;
  const char *name = "";

  bool holds(uintptr_t at) const { return at - base < bytes; }
  /// Puts the state of each word of a block into `states`.
  void spread(uintptr_t at) {
    const size_t block = (at - base) / kBlock;
    if (!blocks || !blocks[block])
      return;
    std::memset(states + block * (kBlock / kWord), blocks[block],
                kBlock / kWord);
    blocks[block] = 0;
  }
};
Space device, dynamic, statics;
unsigned char *dynamicMemory = nullptr;
size_t dynamicBytes = 0;
/// Slots of static shared memory that were touched in this block and launch.
std::vector<size_t> touchedInBlock, touchedInLaunch;
std::vector<char> slotTouched, slotLaunched;

bool hostAllowed = false;
const std::vector<Extent> *extents = nullptr;
uintptr_t restrictedBase = 0;
size_t restrictedBytes = 0;
const Extent *lastExtent = nullptr;

void *reserve(size_t bytes) {
  void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    std::perror("emulator: can't reserve addresses");
    std::abort();
  }
  return at;
}

void makeSpace(Space &space, uintptr_t base, size_t bytes, const char *name) {
  space.base = base;
  space.bytes = bytes;
  space.name = name;
  space.states = static_cast<unsigned char *>(reserve(bytes / kWord));
  space.cells = static_cast<Cell *>(reserve(bytes / kWord * sizeof(Cell)));
}

/// Of static shared memory; no byte of a gap exists.
void makeStatics() {
  const std::vector<SharedVariable> &all = image().shared;
  if (all.empty()) {
    statics.bytes = 0;
    return;
  }
  const size_t bytes = all.back().at + kSharedSlot - all.front().at;
  makeSpace(statics, all.front().at, bytes, "static shared memory");
  slotTouched.resize(bytes / kSharedSlot);
  slotLaunched.resize(bytes / kSharedSlot);
}

const SharedVariable *variableAt(uintptr_t at) {
  for (const SharedVariable &v : image().shared)
    if (at - v.at < kSharedSlot)
      return &v;
  return nullptr;
}

/// Bits of a word's bytes [from, to).
unsigned bitsOf(size_t from, size_t to) {
  return ((1u << to) - 1) & ~((1u << from) - 1);
}

void setBits(Space &space, uintptr_t at, size_t bytes, int shift, bool value) {
  const uintptr_t end = at + bytes;
  while (at < end) {
    const size_t word = (at - space.base) / kWord, from = at % kWord;
    const uintptr_t blockEnd =
        at + kBlock - (at - space.base) % kBlock; // or a space's own end
    if (space.blocks && blockEnd - at == kBlock && blockEnd <= end) {
      // The state of the whole block stays uniform where it is.
      unsigned char &state = space.blocks[(at - space.base) / kBlock];
      if (state) {
        const unsigned char mask = (unsigned char)(0xf << shift);
        state = (unsigned char)(value ? state | mask : state & ~mask);
        at = blockEnd;
        continue;
      }
    }
    space.spread(at);
    if (from == 0 && end - at >= kWord) {
      const size_t words = (std::min(end, blockEnd) - at) / kWord;
      unsigned char *states = space.states + word;
      const unsigned char mask = (unsigned char)(0xf << shift);
      for (size_t i = 0; i < words; ++i)
        states[i] =
            (unsigned char)(value ? states[i] | mask : states[i] & ~mask);
      at += words * kWord;
      continue;
    }
    const size_t to = std::min<size_t>(kWord, from + (end - at));
    const unsigned bits = bitsOf(from, to) << shift;
    unsigned char &state = space.states[word];
    state = (unsigned char)(value ? state | bits : state & ~bits);
    at += to - from;
  }
}

std::string describe(const Space &space, uintptr_t at) {
  if (&space == &device) {
    if (extents)
      for (const Extent &e : *extents)
        if (at >= e.begin && at < e.end)
          return "offset " + std::to_string(at - e.begin) + " of " + e.name;
    return placeName(at);
  }
  if (&space == &dynamic) {
    const auto begin = reinterpret_cast<uintptr_t>(dynamicMemory);
    if (at < begin)
      return std::to_string(begin - at) + " bytes before dynamic shared memory";
    return "offset " + std::to_string(at - begin) + " of the " +
           std::to_string(dynamicBytes) + " bytes of dynamic shared memory";
  }
  const SharedVariable *v = variableAt(at);
  return v ? "offset " + std::to_string(at - v->at) + " of the " +
                 std::to_string(v->bytes) + " bytes of static shared " + v->name
           : "static shared memory";
}

std::string verb(Touch kind, size_t bytes) {
  return std::string(kind == Touch::Read    ? "reads "
                     : kind == Touch::Write ? "writes "
                                            : "changes at once ") +
         std::to_string(bytes) + (bytes == 1 ? " byte at " : " bytes at ");
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

const char kNothingBetween[] =
    ", with no event and no wait of the host between";

void reportRace(const Space &space, uintptr_t at, size_t bytes, Touch kind,
                uintptr_t pc, const Record &other, bool otherWrites) {
  if (&space == &device && other.serial < self->firstSerial) {
    report(FaultKind::Race, pc,
           verb(kind, bytes) + describe(space, at) + ", which " +
               workName(other.serial) +
               (otherWrites ? " writes at " : " reads at ") +
               sourceLine(image().base + other.pc) + kNothingBetween);
    return;
  }
  const bool sameBlock = other.serial == self->serial;
  const uintptr_t otherAt = image().base + other.pc;
  std::string text = verb(kind, bytes) + describe(space, at) +
                     ", which thread " + threadName(other.thread) +
                     (sameBlock ? "" : " of block " + blockName(other.serial)) +
                     (otherWrites ? " writes at " : " reads at ") +
                     sourceLine(otherAt);
  if (other.underWay)
    text += ", by a cp.async that hasn't been waited for";
  else if (sameBlock)
    text += other.thread / kWarp == self->thread / kWarp
                ? ", with no __syncwarp or barrier between"
                : ", with no barrier between";
  report(FaultKind::Race, pc, text);
}

/// One word of an access; returns false where something was reported.
template <Touch kind, bool ofBlock>
inline bool touchWord(Space &space, size_t word, unsigned bytes, uintptr_t at,
                      size_t whole, uintptr_t pc) {
  Cell &cell = space.cells[word];
  constexpr bool atomic = kind == Touch::Atomic;
  bool ok = true;
  const bool underWay =
      cell.writer.underWay && cell.writer.serial == self->serial;
  if (underWay || conflicts(cell.writer, bytes, atomic, ofBlock)) {
    reportRace(space, at, whole, kind, pc, cell.writer, true);
    ok = false;
  }
  if (kind == Touch::Read) {
    // One record for this thread; one for another that is still of interest.
    Record *to = &cell.readers[0];
    if (!happenedBefore(*to, ofBlock))
      to = &cell.readers[1];
    if (to == &cell.readers[0] || happenedBefore(*to, ofBlock))
      note(*to, bytes, false, pc);
    return ok;
  }
  for (const Record &reader : cell.readers)
    if (ok && conflicts(reader, bytes, false, ofBlock)) {
      reportRace(space, at, whole, kind, pc, reader, false);
      ok = false;
    }
  note(cell.writer, bytes, atomic, pc);
  return ok;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

bool inExtent(uintptr_t at, size_t bytes, bool write) {
  auto fits = [&](const Extent &e) {
    return at >= e.begin && at + bytes <= e.end && (e.writable || !write);
  };
  if (lastExtent && fits(*lastExtent))
    return true;
  const auto after = std::upper_bound(
      extents->begin(), extents->end(), at,
      [](uintptr_t a, const Extent &e) { return a < e.begin; });
  if (after == extents->begin() || !fits(*(after - 1)))
    return false;
  lastExtent = &*(after - 1);
  return true;
}

bool isRestricted(uintptr_t at) {
  return extents && at - restrictedBase < restrictedBytes;
}

std::string outsideText(uintptr_t at) {
  for (const Extent &e : *extents)
    if (at >= e.begin && at < e.end)
      return "offset " + std::to_string(at - e.begin) + " of " + e.name +
             ", which this launch may only read";
  const Extent *below = nullptr;
  for (const Extent &e : *extents)
    if (e.end <= at)
      below = &e;
  return "offset " + std::to_string(at - restrictedBase) +
         " of the arena, which is no operand of this launch" +
         (below ? " (" + std::to_string(at - below->end) + " bytes behind " +
                      below->name + ")"
                : "");
}

/// Memory that isn't in a space: arguments and constants may be read.
bool touchElsewhere(uintptr_t at, size_t bytes, Touch kind, uintptr_t pc) {
  if (isArgument(at, bytes) || (hostAllowed && at >= kFirstPage) ||
      (kind == Touch::Read && image().isConstant(at, bytes)))
    return true;
  report(FaultKind::OutOfBounds, pc,
         verb(kind, bytes) +
             (at < kFirstPage ? "a null pointer" : "memory of the host"));
  return false;
}

void noteSlot(uintptr_t at) {
  const size_t slot = (at - statics.base) / kSharedSlot;
  if (slotTouched[slot])
    return;
  slotTouched[slot] = 1;
  touchedInBlock.push_back(slot);
  const uintptr_t begin = statics.base + slot * kSharedSlot;
  if (const SharedVariable *v = variableAt(begin)) {
    setBits(statics, v->at, v->bytes, 4, true);
    setBits(statics, v->at, v->bytes, 0, false);
  }
  if (!slotLaunched[slot]) {
    slotLaunched[slot] = 1;
    touchedInLaunch.push_back(slot);
  }
}

template <Touch kind, bool ofBlock>
bool touchWords(Space &space, uintptr_t at, size_t bytes, uintptr_t pc) {
  const uintptr_t end = at + bytes;
  space.spread(at);
  space.spread(end - 1);
  if (!ofBlock && hasConcurrentWork)
    if (const RangeAccess *other =
            conflictingRange(at, bytes, kind != Touch::Read)) {
      report(FaultKind::Race, pc,
             verb(kind, bytes) + describe(space, at) + ", which " +
                 workName(other->serial) +
                 (other->writes ? " writes" : " reads") + kNothingBetween);
      return false;
    }
  bool told = false;
  for (uintptr_t from = at; from < end;) {
    const size_t word = (from - space.base) / kWord;
    const uintptr_t next = std::min(end, space.base + (word + 1) * kWord);
    const unsigned bits =
        bitsOf(from % kWord, from % kWord + size_t(next - from));
    unsigned char &state = space.states[word];
    if ((state >> 4 & bits) != bits) {
      if (!told)
        report(FaultKind::OutOfBounds, pc,
               verb(kind, bytes) + describe(space, at));
      return false;
    }
    if (kind != Touch::Write && (state & bits) != bits) {
      if (!told)
        report(FaultKind::Uninitialised, pc,
               verb(kind, bytes) + describe(space, at) +
                   ", which nobody has written");
      told = true;
      state = (unsigned char)(state | bits);
    }
    if (kind != Touch::Read)
      state = (unsigned char)(state | bits);
    if (!touchWord<kind, ofBlock>(space, word, bits, at, bytes, pc))
      return false;
    from = next;
  }
  return !told;
}

template <bool ofBlock>
bool touchSpace(Space &space, uintptr_t at, size_t bytes, Touch kind,
                uintptr_t pc) {
  switch (kind) {
  case Touch::Read:
    return touchWords<Touch::Read, ofBlock>(space, at, bytes, pc);
  case Touch::Write:
    return touchWords<Touch::Write, ofBlock>(space, at, bytes, pc);
  case Touch::Atomic:
    break;
  }
  return touchWords<Touch::Atomic, ofBlock>(space, at, bytes, pc);
}

} // namespace

bool touch(uintptr_t at, size_t bytes, Touch kind, uintptr_t pc) {
  if (at - stacks < stackBytes || bytes == 0)
    return true;
  if (device.holds(at)) {
    if (isRestricted(at) && !inExtent(at, bytes, kind != Touch::Read)) {
      report(FaultKind::OutOfBounds, pc, verb(kind, bytes) + outsideText(at));
      return false;
    }
    return touchSpace<false>(device, at, bytes, kind, pc);
  }
  if (dynamic.holds(at))
    return touchSpace<true>(dynamic, at, bytes, kind, pc);
  if (statics.holds(at)) {
    noteSlot(at);
    return touchSpace<true>(statics, at, bytes, kind, pc);
  }
  return touchElsewhere(at, bytes, kind, pc);
}

bool isShared(uintptr_t at) { return dynamic.holds(at) || statics.holds(at); }

bool startCopy(uintptr_t at, size_t bytes, uintptr_t pc) {
  if (!touch(at, bytes, Touch::Write, pc))
    return false;
  Space &space = dynamic.holds(at) ? dynamic : statics;
  for (size_t i = 0; i < bytes; i += kWord)
    space.cells[(at + i - space.base) / kWord].writer.underWay = true;
  return true;
}

void finishCopy(uintptr_t at, size_t bytes, uintptr_t pc) {
  Space &space = dynamic.holds(at) ? dynamic : statics;
  for (size_t i = 0; i < bytes; i += kWord) {
    // Unless somebody has written it since, which was reported.
    Record &writer = space.cells[(at + i - space.base) / kWord].writer;
    if (writer.underWay && writer.serial == self->serial &&
        writer.thread == self->thread)
      note(writer, 0xf, false, pc);
  }
}

//===----------------------------------------------------------------------===//
// Launches and blocks
//===----------------------------------------------------------------------===//

namespace {
/// Of all extents, those that an argument of the launch points into.
std::vector<Extent> given;
const std::vector<Extent> *allExtents = nullptr;

void giveExtents(const void *arguments, size_t bytes) {
  allExtents = extents;
  if (!extents)
    return;
  std::vector<bool> pointed(extents->size());
  for (size_t i = 0; i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
    uintptr_t at;
    std::memcpy(&at, static_cast<const char *>(arguments) + i, sizeof at);
    for (size_t e = 0; e < extents->size(); ++e)
      if (at >= (*extents)[e].begin && at < (*extents)[e].end)
        pointed[e] = true;
  }
  given.clear();
  for (size_t e = 0; e < extents->size(); ++e)
    if (pointed[e])
      given.push_back((*extents)[e]);
  extents = &given;
  lastExtent = nullptr;
}
} // namespace

void endLaunch() {
  extents = allExtents;
  lastExtent = nullptr;
}

void startLaunch(size_t sharedBytes, const void *arguments,
                 size_t argumentBytes) {
  giveExtents(arguments, argumentBytes);
  if (!dynamic.base) {
    const size_t bytes = kDynamicBytes + 2 * kDynamicZone;
    const auto at = reinterpret_cast<uintptr_t>(reserve(bytes));
    makeSpace(dynamic, at, bytes, "dynamic shared memory");
    dynamicMemory =
        reinterpret_cast<unsigned char *>(at + kDynamicZone + kDynamicAlign);
    makeStatics();
  }
  const auto at = reinterpret_cast<uintptr_t>(dynamicMemory);
  std::memset(dynamic.states, 0, dynamic.bytes / kWord);
  setBits(dynamic, at, sharedBytes, 4, true);
  dynamicBytes = sharedBytes;
  for (size_t slot : touchedInLaunch)
    slotLaunched[slot] = 0;
  touchedInLaunch.clear();
}

void startBlock() {
  setBits(dynamic, reinterpret_cast<uintptr_t>(dynamicMemory), dynamicBytes, 0,
          false);
  std::memset(dynamicMemory, 0xff, dynamicBytes);
  for (size_t slot : touchedInBlock) {
    slotTouched[slot] = 0;
    if (const SharedVariable *v = variableAt(statics.base + slot * kSharedSlot))
      std::memset(reinterpret_cast<void *>(v->at), 0xff, v->bytes);
  }
  touchedInBlock.clear();
}

size_t staticSharedBytes() {
  size_t bytes = 0;
  for (size_t slot : touchedInLaunch)
    if (const SharedVariable *v = variableAt(statics.base + slot * kSharedSlot))
      bytes += v->bytes;
  return bytes;
}

unsigned char *dynamicShared() { return dynamicMemory; }

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

const DeviceRange &deviceRange() {
  static const DeviceRange range = [] {
    const auto at = reinterpret_cast<uintptr_t>(reserve(kDeviceBytes));
    makeSpace(device, at, kDeviceBytes, "device memory");
    device.blocks =
        static_cast<unsigned char *>(reserve(kDeviceBytes / kBlock));
    return DeviceRange{at, kDeviceBytes};
  }();
  return range;
}

void allowHostMemory(bool allow) { hostAllowed = allow; }

/// Whole pages of `array`'s elements [first, last) read as zero from here on.
static void dropPages(const void *array, size_t elementBytes, size_t first,
                      size_t last) {
  constexpr uintptr_t page = 4096;
  const auto base = reinterpret_cast<uintptr_t>(array);
  const uintptr_t from = (base + first * elementBytes + page - 1) / page * page;
  const uintptr_t to = (base + last * elementBytes) / page * page;
  if (from < to)
    (void)madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
}

namespace {
/// Calls body(first block, end of the blocks) for the whole blocks of a range,
/// and edge(from, bytes) for what is left of it.
template <typename F, typename G>
void byBlocks(uintptr_t at, size_t bytes, F &&body, G &&edge) {
  const size_t first = (at - device.base + kBlock - 1) / kBlock,
               last = (at - device.base + bytes) / kBlock;
  if (first >= last)
    return edge(at, bytes);
  edge(at, device.base + first * kBlock - at);
  body(first, last);
  const uintptr_t from = device.base + last * kBlock;
  edge(from, at + bytes - from);
}
} // namespace

void forget(uintptr_t at, size_t bytes) {
  byBlocks(
      at, bytes,
      [](size_t first, size_t last) {
        std::memset(device.blocks + first, 0, last - first);
      },
      [](uintptr_t from, size_t n) { setExists(from, n, false); });
  const size_t first = (at - device.base + kWord - 1) / kWord,
               last = (at - device.base + bytes) / kWord;
  // Zero is what says that no byte exists, and that none was accessed.
  dropPages(device.states, 1, first, last);
  dropPages(device.cells, sizeof(Cell), first, last);
}

void setExists(uintptr_t at, size_t bytes, bool exists) {
  auto edge = [exists](uintptr_t from, size_t n) {
    setBits(device, from, n, 4, exists);
    setBits(device, from, n, 0, false);
  };
  if (!exists)
    return edge(at, bytes);
  byBlocks(
      at, bytes,
      [](size_t first, size_t last) {
        std::memset(device.blocks + first, kUnwritten, last - first);
      },
      edge);
}
void setWritten(uintptr_t at, size_t bytes, bool written) {
  setBits(device, at, bytes, 0, written);
}

uintptr_t firstMissing(uintptr_t at, size_t bytes, bool written) {
  const uintptr_t end = at + bytes;
  for (; at < end; ++at) {
    const unsigned char whole = device.blocks[(at - device.base) / kBlock];
    if (whole == kWritten || (whole && !written)) {
      at += std::min(end - at, kBlock - (at - device.base) % kBlock) - 1;
      continue;
    }
    const unsigned char state =
        whole ? whole : device.states[(at - device.base) / kWord];
    if (state == kWritten && at % kWord == 0 && end - at >= kWord) {
      at += kWord - 1;
      continue;
    }
    const unsigned bit = 1u << at % kWord;
    if (!(state >> 4 & bit) || (written && !(state & bit)))
      return at;
  }
  return end;
}

/// Whether a whole range, touched by work that isn't a kernel, races with what
/// other streams do.
static bool rangeRaces(uintptr_t at, size_t bytes, bool writes,
                       const char *what) {
  nameWork("a copy, a fill or a library's call");
  if (!hasConcurrentWork) {
    noteRange(at, bytes, writes);
    return false;
  }
  std::string other;
  if (const RangeAccess *range = conflictingRange(at, bytes, writes))
    other = workName(range->serial) + (range->writes ? " writes" : " reads");
  for (size_t word = (at - device.base) / kWord;
       other.empty() && word <= (at + bytes - 1 - device.base) / kWord;
       ++word) {
    const Cell &cell = device.cells[word];
    auto unordered = [](const Record &r) {
      return r.bytes && !isOrderedBefore(r.serial);
    };
    if (unordered(cell.writer))
      other = workName(cell.writer.serial) + " writes at " +
              sourceLine(image().base + cell.writer.pc);
    for (const Record &reader : cell.readers)
      if (writes && other.empty() && unordered(reader))
        other = workName(reader.serial) + " reads at " +
                sourceLine(image().base + reader.pc);
  }
  noteRange(at, bytes, writes);
  if (other.empty())
    return false;
  report(FaultKind::Race, 0,
         std::string(what) + (writes ? " writes " : " reads ") +
             std::to_string(bytes) + " bytes at " + describe(device, at) +
             ", which " + other + kNothingBetween);
  return true;
}

bool touchAll(const void *p, size_t bytes, Touch kind, const char *what) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (bytes == 0)
    return true;
  if (!isDevice(at) && hostAllowed && at >= kFirstPage)
    return true;
  if (!isDevice(at) || !isDevice(at + bytes - 1)) {
    report(FaultKind::OutOfBounds, 0,
           std::string(what) + " " + verb(kind, bytes) +
               (at ? "memory of the host" : "a null pointer"));
    return false;
  }
  if (isRestricted(at) && !inExtent(at, bytes, kind != Touch::Read)) {
    report(FaultKind::OutOfBounds, 0,
           std::string(what) + " " + verb(kind, bytes) + outsideText(at));
    return false;
  }
  if (rangeRaces(at, bytes, kind != Touch::Read, what))
    return false;
  const bool read = kind == Touch::Read;
  const uintptr_t missing = firstMissing(at, bytes, read);
  if (missing != at + bytes) {
    device.spread(missing);
    const bool exists =
        device.states[(missing - device.base) / kWord] >> 4 >> missing % kWord &
        1;
    report(exists ? FaultKind::Uninitialised : FaultKind::OutOfBounds, 0,
           std::string(what) + " " + verb(kind, bytes) + describe(device, at) +
               (exists ? "; nobody has written the byte " : "; the byte ") +
               std::to_string(missing - at) + (exists ? "" : " doesn't exist"));
    if (exists)
      setWritten(at, bytes, true);
    return false;
  }
  if (!read)
    setWritten(at, bytes, true);
  return true;
}

void restrictTo(const std::vector<Extent> *to, uintptr_t arena, size_t bytes) {
  extents = to;
  restrictedBase = arena;
  restrictedBytes = bytes;
  lastExtent = nullptr;
}

} // namespace tmc::emulator
