// Snapshot.h - a planned step for viewers of other projects: a memory snapshot
// in PyTorch's format, and a trace for Perfetto and Chrome.

#ifndef TMC_COMPILER_REPORT_SNAPSHOT_H
#define TMC_COMPILER_REPORT_SNAPSHOT_H

#include "compiler/report/PlanTrace.h"

#include <string>

namespace tmc {

/// A pickle as `torch.cuda.memory._snapshot()` makes it, for
/// pytorch.org/memory_viz. The arena is one segment. Every tensor is an
/// allocation at its offset; its stack is its name and the launch that makes
/// it. Persistent tensors exist before the step. A loop's body is shown once.
/// If the step moves data, the host's arena and the file's are devices 1 and 2.
/// Source: torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js.
std::string memorySnapshot(const PlanTrace &trace);

/// Chrome's trace event format: a lane for each engine, launches and moves in
/// predicted time, every trip of a loop, and the bytes alive in each space, by
/// class, as counters.
std::string stepTrace(const PlanTrace &trace);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_SNAPSHOT_H
