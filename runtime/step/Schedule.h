//===- Schedule.h - the learning rate over the steps ------------*- C++ -*-===//
//
//     constant[:warmup=W]
//     linear[:warmup=W,min=F,total=N]      down to F times the rate at step N
//     cosine[:warmup=W,min=F,total=N]      the same along half a cosine
//
// With warm-up, step t of the first W steps uses t / W of the rate. Without
// `total`, N is the last requested step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_SCHEDULE_H
#define TMC_RUNTIME_STEP_SCHEDULE_H

#include "runtime/kernels/Status.h"

#include <cstdint>
#include <string>

namespace tmc {

struct Schedule {
  enum class Kind { Constant, Linear, Cosine } kind = Kind::Constant;
  int64_t warmup = 0; // steps
  double least = 0;   // part of the rate at the end
  int64_t total = 0;  // steps; 0: the requested steps

  static Status parse(const std::string &text, Schedule &schedule);
  /// The factor of the learning rate at step `step`, which counts from 1.
  double factor(int64_t step, int64_t lastStep) const;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_SCHEDULE_H
