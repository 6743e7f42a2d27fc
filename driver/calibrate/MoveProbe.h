// MoveProbe.h - a step that only keeps every engine busy at once.
//
// The work is products on the device, copies both ways, reads and writes of a
// file, and an optimizer's rule on the host. The step is written against the
// runtime as emitted steps are, and run by the trainer, whose trace says when
// each piece of work ran:
//
//     compute     |--product--|--product--|--product--|
//     d2h         |.|---|.|---|.|---|                . small, for the latency
//     h2d         |.|---|.|---|.|---|.|---|
//     file-read   |.|------|.|------|.|------|
//     file-write  |.|---------|.|---------|
//     host        |--update--|--update--|--update--|
//                                   ^ the first engine is idle from here on
//
// MoveFit.h computes rates from such a trace.

#ifndef TMC_DRIVER_CALIBRATE_MOVEPROBE_H
#define TMC_DRIVER_CALIBRATE_MOVEPROBE_H

#include "compiler/target/Target.h"
#include "driver/calibrate/MoveWork.h"

#include <string>

namespace tmc {

/// The probe's text, step.cpp or step.cu.
std::string moveProbeText(const Target &target, const MoveWork &work);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_MOVEPROBE_H
