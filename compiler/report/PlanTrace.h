// PlanTrace.h - a planned step as data for people: every launch, every tensor,
// every decision, in the model's names and with its numbers.
//
// The table, `tmc explain`, report.html, the memory snapshot and the timeline
// are views of one plan trace. It is plain data, so that it can be written
// beside a compiled step (plan-trace.json) and read again without the model.
//
//     launch    an execution of the plan, loops' bodies once
//     tensor    one making of a value: a recomputed value is several tensors
//     gap       a span between two uses of a value, held or bridged
//
// Names are the model's own. What the backward pass makes under the same name
// says so, a gradient has its parameter's name with ".grad", and where a name
// is still not unique the later ones are numbered.

#ifndef TMC_COMPILER_REPORT_PLANTRACE_H
#define TMC_COMPILER_REPORT_PLANTRACE_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Account.h"
#include "compiler/support/Failure.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

struct PlanTrace {
  struct Segment {
    std::string name;
    int64_t trips = 1;
    int32_t begin = 0, end = 0; // Launches [begin, end).
  };
  enum class Phase : uint8_t { Forward, Backward, Update };
  struct Launch {
    std::string name;  // Of the op, in the model's words.
    std::string where; // The user's line, "file.py:12"; empty: not kept.
    /// What runs: "matmul", "fused", ...; "stash" and "fetch" start copies away
    /// from the device and back, and "done" ends work of another engine.
    std::string kind;
    Phase phase = Phase::Forward;
    bool recomputes = false;
    int32_t instance = 0;  // Which execution of its op this is.
    int64_t costPs = 0;    // Predicted, of one run.
    int64_t liveBytes = 0; // While it runs, reserved left out.
    int64_t workspaceBytes = 0;
    double price = 0; // Picoseconds that a byte is worth here.
    std::vector<int32_t> reads, writes; // Values.
  };
  struct Gap {
    int32_t from = 0, to = 0; // Launches.
    bool held = false, overPeak = false;
    int64_t leastPs = 0, paidPs = 0;
    int64_t worthPs = -1; // -1: nothing proves a price.
  };
  struct Value {
    std::string name;
    std::string valueClass; // As in reports: "activations", ...
    int64_t bytes = 0;
    bool persistent = false;
    bool canRemake = false; // Some kernel can make it again.
    std::string space;      // "host", "file"; empty: the device.
    std::string type;       // Of its elements: "bf16".
    std::string why;        // It has this type (TypeReasons.h), or "".
    std::vector<Gap> gaps;
  };
  struct Tensor {
    int32_t value = 0;
    int32_t begin = 0, end = 0; // Launches [begin, end).
    int32_t placeOf = -1;       // The tensor whose bytes it took over.
    int32_t buffer = -1;        // -1: not placed.
  };
  struct Buffer {
    std::string name, bufferClass;
    int64_t bytes = 0, offset = -1;
    int32_t begin = 0, end = 0; // Launches [begin, end).
    bool persistent = false;
  };

  /// Products of one element type, or decided by one exception.
  struct Products {
    std::string name; // "bf16", "lm_head=f32"
    int64_t count = 0;
  };

  std::string model, target;
  std::string precision; // As it was asked for: "bf16,lm_head=f32".
  std::vector<Products> products, exceptions;
  int64_t budgetBytes = -1, arenaBytes = -1, reservedBytes = 0;
  double stepSeconds = -1, unconstrainedSeconds = -1;
  std::vector<Segment> segments;
  std::vector<Launch> launches;
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  std::vector<Buffer> buffers;
  int32_t peakLaunch = 0;
  int64_t peakBytes = 0;
  planning::Levers levers;

  /// Recomputations among the launches.
  int64_t recomputations() const;
  /// Tensors of each value, in order of `begin`.
  std::vector<std::vector<int32_t>> tensorsOf() const;
  /// Bytes of the tensors alive at the peak, by their elements' type: the peak
  /// less workspace.
  std::map<std::string, int64_t> peakByType() const;
};

/// What becomes of `plan` for `stated`, before the step is rewritten. `problem`
/// is what was solved. Buffers come later (`placePlanTrace`).
PlanTrace planTraceOf(const StepProblem &stated,
                      const planning::Problem &problem,
                      const planning::Plan &plan);

/// Adds the buffers of the program that the trace's plan became.
void placePlanTrace(PlanTrace &trace, mlir::ModuleOp module);

/// plan-trace.json, and back. An error: the text is no trace of this schema.
std::string planTraceJson(const PlanTrace &trace);
Expected<PlanTrace> readPlanTrace(const std::string &text);

const char *nameOf(PlanTrace::Phase phase);

/// The line of the user's program that `loc` keeps, as "file.py:12", or "".
std::string lineOf(mlir::Location loc);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLANTRACE_H
