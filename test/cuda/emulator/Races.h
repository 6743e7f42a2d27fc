//===- Races.h - records of accesses, and what happens before ---*- C++ -*-===//
//
// What the shadow of a word holds (Shadow.h has the rules), and when one access
// happened before that of the thread that runs.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_RACES_H
#define TMC_TEST_CUDA_EMULATOR_RACES_H

#include "test/cuda/emulator/Image.h"
#include "test/cuda/emulator/Schedule.h"
#include "test/cuda/emulator/Works.h"

#include <cstdint>

namespace tmc::emulator {

struct Record {
  uint32_t serial, pc, epoch;
  uint16_t thread : 10, bytes : 4, atomic : 1;
  /// Of a cp.async that its thread hasn't waited for.
  uint16_t underWay : 1;
  uint16_t clock;
};
static_assert(sizeof(Record) == 16);
struct Cell {
  Record writer, readers[2];
};

/// `ofBlock`: in memory that each block has for itself.
inline bool happenedBefore(const Record &r, bool ofBlock) {
  if (r.serial != self->serial)
    return ofBlock || (r.serial < self->firstSerial &&
                       (!hasConcurrentWork || isOrderedBefore(r.serial)));
  if (r.thread == self->thread || r.epoch < self->epoch)
    return true;
  return r.thread / kWarp == self->thread / kWarp &&
         self->lanes[r.thread % kWarp] >= r.clock;
}

inline bool conflicts(const Record &r, unsigned bytes, bool atomic,
                      bool ofBlock) {
  return (r.bytes & bytes) && !(atomic && r.atomic) &&
         !happenedBefore(r, ofBlock);
}

inline void note(Record &r, unsigned bytes, bool atomic, uintptr_t pc) {
  const uint16_t clock = self->lanes[self->thread % kWarp];
  const bool same = r.serial == self->serial && r.thread == self->thread &&
                    r.epoch == self->epoch && r.clock == clock;
  r.bytes = uint16_t(same ? r.bytes | bytes : bytes) & 0xf;
  r.atomic = atomic && (!same || r.atomic);
  r.underWay = false;
  r.serial = self->serial;
  r.thread = self->thread & 0x3ff;
  r.epoch = self->epoch;
  r.clock = clock;
  r.pc = uint32_t(pc - imageBase);
}

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_RACES_H
