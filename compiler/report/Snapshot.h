// Snapshot.h - a planned step for viewers that others have made: a memory
// snapshot in PyTorch's form, and a trace for Perfetto and Chrome.

#ifndef TMC_COMPILER_REPORT_SNAPSHOT_H
#define TMC_COMPILER_REPORT_SNAPSHOT_H

#include "compiler/report/PlanTrace.h"

#include <string>

namespace tmc {

/// A pickle as `torch.cuda.memory._snapshot()` makes it, for
/// pytorch.org/memory_viz: the arena is one segment, every tensor is an
/// allocation at its offset, with its name and the launch that makes it for a
/// stack. What persists was there before. A loop's body is shown once. Where
/// something leaves the device, the host's arena and the file's are devices 1
/// and 2.
/// Source: torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.
std::string memorySnapshot(const PlanTrace &trace);

/// Chrome's trace event format: a lane for each engine, launches and moves in
/// predicted time, every trip of a loop, and what is alive in each space, by
/// class, as counters.
std::string stepTrace(const PlanTrace &trace);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_SNAPSHOT_H
