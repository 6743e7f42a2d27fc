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
// Names are the model's own. A tensor that the backward pass makes under the
// same name is marked so, a gradient has its parameter's name with ".grad", and
// if a name is still not unique the later ones are numbered.

#ifndef TMC_COMPILER_REPORT_PLANTRACE_H
#define TMC_COMPILER_REPORT_PLANTRACE_H

#include "compiler/analysis/StepProblem.h"
#include "compiler/planning/driver/Account.h"
#include "compiler/support/Failure.h"
#include "dialects/mem/Mem.h"

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
    /// Picoseconds of a trip: one for all, or the first, a middle one, the
    /// last.
    std::vector<int64_t> tripPs;

    /// The index in `tripPs` that applies to trip number `trip`.
    size_t shownAs(int64_t trip) const {
      size_t last = tripPs.size() - 1;
      return trip == 0 || last == 0 ? 0 : trip + 1 == trips ? last : 1;
    }
    /// The index in `tripPs` that represents the segment.
    size_t middle() const { return tripPs.size() > 1 ? 1 : 0; }
  };
  enum class Phase : uint8_t { Forward, Backward, Update };
  struct Launch {
    std::string name;  // The op's, in the model's words.
    std::string where; // The user's line, "file.py:12"; empty: unknown.
    /// The kernel's kind: "matmul", "fused", ...; "stash" and "fetch" start
    /// copies away from the device and back, "gather" one by a network, and
    /// "done" ends work of another engine.
    std::string kind;
    EngineKind engine = EngineKind::Compute;
    Phase phase = Phase::Forward;
    bool recomputes = false;
    int32_t instance = 0; // The number of this execution of its op.
    int64_t costPs = 0;   // Predicted, of one run.
    /// The launch that ends the work started here, or that started the work
    /// ended here; -1: the kernels' own engine runs this launch.
    int32_t other = -1;
    /// Begin and end in each of its segment's trips, since the trip's
    /// beginning. For a "done": the interval in which the kernels wait.
    std::vector<int64_t> beginPs, endPs;
    PerSpace<int64_t> liveBytes; // While it runs, without reserved bytes.
    int64_t workspaceBytes = 0;
    SpaceKind workspaceSpace = SpaceKind();
    double price = 0; // Picoseconds that a byte of the device is worth here.
    std::vector<int32_t> reads, writes; // Values.

    bool isDone() const { return kind == "done"; }
    bool isMove() const { return kind == "stash" || kind == "fetch"; }
  };
  struct Gap {
    int32_t from = 0, to = 0; // Launches.
    bool held = false, overPeak = false;
    SpaceKind space = SpaceKind(); // Where it waits, if it is moved.
    // The least cost for kernels to recompute it; -1: impossible.
    int64_t leastPs = 0;
    int64_t movePs = -1; // Link time, there and back; -1: it can't leave.
    int64_t breakPs = 0; // The smaller of both.
    int64_t paidPs = 0;
    int64_t waitedPs = 0; // The kernels' wait for its moves.
    int64_t worthPs = -1; // -1: no proven price.
  };
  struct Value {
    std::string name;
    std::string valueClass; // As in reports: "activations", ...
    int64_t bytes = 0;
    bool persistent = false;
    bool canRemake = false; // Some kernel can recompute it.
    SpaceKind space = SpaceKind();
    int32_t content = 0; // The value whose form it is, or itself.
    std::string type;    // The element type: "bf16".
    std::string why;     // The reason for the type (TypeReasons.h), or "".
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
    SpaceKind space = SpaceKind();
  };

  /// Products of one element type, or those that one exception decided.
  struct Products {
    std::string name; // "bf16", "lm_head=f32"
    int64_t count = 0;
  };

  std::string model, target;
  std::string precision; // As the user wrote it: "bf16,lm_head=f32".
  std::vector<Products> products, exceptions;
  int64_t budgetBytes = -1, reservedBytes = 0; // Of the device.
  /// -1: unknown, or the space is empty.
  PerSpace<int64_t> arenaBytes = PerSpace<int64_t>::all(-1);
  double stepSeconds = -1;
  std::vector<Segment> segments;
  std::vector<Launch> launches;
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  std::vector<Buffer> buffers;
  int32_t peakLaunch = 0;
  int64_t peakBytes = 0;
  planning::Levers levers;
  PriceSum prices; // All kernels of a step; plan-trace.json lacks it.

  /// The device, and the other spaces with contents.
  std::vector<SpaceKind> spaces() const;
  /// True if a placed plan keeps bytes outside the device.
  bool leavesDevice() const;
  /// The time at which the kernels reach each launch, and the end of the last;
  /// a loop counts once, with a middle trip.
  std::vector<int64_t> clockPs() const;
  /// Bytes alive in a space at each launch, by class: a value that takes over
  /// the bytes of another counts together with it while both are in use.
  std::map<std::string, std::vector<int64_t>> levels(SpaceKind space) const;
  /// The first launch at which a tensor no longer shares bytes with the tensor
  /// whose bytes it takes over.
  int32_t aloneFrom(const Tensor &tensor) const;
  /// Seconds that the kernels wait for each engine in a step.
  PerEngine<double> waitSeconds() const;
  /// The bytes at home outside the device, and the bytes moved in a step.
  struct Moved {
    int64_t homeBytes = 0;               // At home outside the device.
    int64_t outBytes = 0, backBytes = 0; // From the device, and to it.
  };
  /// `kind`: "parameters", "optimizer" or "activations" (all other values that
  /// kernels make).
  Moved movedOf(const std::string &kind) const;
  /// Recomputations among the launches.
  int64_t recomputations() const;
  /// Tensors of each value, in order of `begin`.
  std::vector<std::vector<int32_t>> tensorsOf() const;
  /// Bytes of the tensors alive at the peak, by element type: the peak without
  /// workspace.
  std::map<std::string, int64_t> peakByType() const;
};

/// The trace of `plan` for `stated`, before the step is rewritten. `problem` is
/// the solved problem. `placePlanTrace` adds the buffers later.
PlanTrace planTraceOf(const StepProblem &stated,
                      const planning::Problem &problem,
                      const planning::Plan &plan);

/// Adds the buffers of the program to which the trace's plan was lowered.
void placePlanTrace(PlanTrace &trace, mlir::ModuleOp module);

/// Predicted seconds of each moment of the program on its engine; 0 for a done.
std::vector<double> predictedSeconds(const PlanTrace &trace,
                                     mem::ProgramOp program);

/// plan-trace.json, and back. Error: the text is no trace of this schema.
std::string planTraceJson(const PlanTrace &trace);
Expected<PlanTrace> readPlanTrace(const std::string &text);

const char *nameOf(PlanTrace::Phase phase);

/// The line of the user's program that `loc` keeps, as "file.py:12", or "".
std::string lineOf(mlir::Location loc);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLANTRACE_H
