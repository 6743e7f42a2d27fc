//===- Steps.h - what a launch of an emitted step may touch -----*- C++ -*-===//
//
// All buffers of a step lie in one arena, without a gap: a kernel that reads
// behind its operand reads another buffer. The emitted program says for each
// launch what it writes and what is dead after it. From that follows which
// buffers exist at each moment, and a launch may touch only
//
//     what exists and one of the kernel's arguments points into    to read
//     its results, and what dies with it (its scratch)             to write
//
// A result that is new counts as unwritten when its launch begins; what is dead
// counts as unwritten again. So a read of a neighbour's row, of a result that
// is still to come, or of a buffer that is gone is found, however the planner
// has placed them. A step's graph is watched in the same way. Before each of
// its launches it is compared with the step (Graphs.h).
//
//     tensors, constants  +  results not yet dead
//     |--- wte ---|--- labels ---|--- h.0.ln_1 ---|.....|-- scratch --|
//                                 ^ arguments point here and there ^
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_STEPS_H
#define TMC_TEST_CUDA_EMULATOR_STEPS_H

#include "runtime/step/Program.h"

namespace tmc::emulator {

/// The same program, watched. WatchedStep.cpp puts it in the emitted one's
/// place.
const StepProgram *watch(const StepProgram *program);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_STEPS_H
