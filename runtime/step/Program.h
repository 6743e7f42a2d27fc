//===- Program.h - the definitions in an emitted step -----------*- C++ -*-===//
//
// An emitted step.cpp or step.cu defines one constant `StepProgram` and returns
// it from `tmc_step_program()`. It is the whole contract between the emitter
// and the runtime: the sizes of the arenas, the tensors and their places, the
// tensors that the runtime fills, and one function that queues the launches and
// moves (runtime/kernels/Queues.h).
//
//     static const tmc::TensorInfo tensors[] = {
//         {.name = "fc.weight", .type = tmc::DType::F32, .rank = 2,
//          .dims = {64, 32}, .offset = 0x1000, .role = tmc::Role::Param,
//          .init = tmc::Init::Normal, .initValue = 0.02, .trainable = true},
//         {.name = "tokens", .type = tmc::DType::I64, .rank = 2,
//          .dims = {4, 64}, .offset = 0x3000, .role = tmc::Role::Batch,
//          .feed = tmc::Feed::Data, .limit = 50257},
//         ...
//     };
//     extern "C" const tmc::StepProgram *tmc_step_program() {
//       static const tmc::StepProgram program = {...};
//       return &program;
//     }
//     const tmc::CompiledFor tmc_step_compiled_for = {"cpu:v3",
//                                                     tmc::kInstructions};
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_PROGRAM_H
#define TMC_RUNTIME_STEP_PROGRAM_H

#include "runtime/kernels/Algorithms.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Mesh.h"
#include "runtime/kernels/Queues.h"
#include "runtime/step/Instructions.h"

#include <cstdint>

namespace tmc {

/// Increases when a field changes its meaning; a runtime refuses other
/// versions.
constexpr int32_t kProgramVersion = 14;

constexpr int kMaxRank = 8;

enum class Role : uint8_t {
  Param,  // a weight of the model, updated or frozen
  State,  // state of the model, e.g. running statistics: saved with the weights
  Moment, // state of the optimizer: only in checkpoints, never in weights
  Batch,  // filled before each step with this step's data
  Scalar, // filled before each step by the runtime
  Output, // readable after a step
  Copy,   // a 16-bit copy of a weight, which products read: in no file
};

/// How `--init random:SEED` fills a tensor.
enum class Init : uint8_t { None, Normal, Ones, Zeros, Constant, Uniform };

/// The source of an input's values before each step.
enum class Feed : uint8_t {
  None,         // not an input
  Data,         // the data reader, or tmc_step_write
  Samples,      // i64[B]: the samples' numbers in the whole batch, by rank
  TensorPlace,  // i64 scalar: this rank's number among those of tp
  Seed,         // i64[2]: seed, step
  LearningRate, // f32 scalar
  Step,         // i64 scalar, counts from 1
};

/// The allowed integers in a box of an input: the box has the elements offset +
/// i * step, 0 <= i < size, along each dimension.
struct IndexRange {
  int64_t offsets[kMaxRank];
  int64_t sizes[kMaxRank];
  int64_t steps[kMaxRank];
  int64_t limit; // values must be in [0, limit)
  bool allowIgnore = false;
  int64_t ignore = 0; // also allowed if allowIgnore is set
};

/// A frozen parameter that is stored as codes (runtime/kernels/FrozenCodes.h):
/// its own shape, and the tensors of its maxima, indices into tensors. By rows:
/// int8, else nf4; nested: -1 where maxima are in f32.
struct StoredInfo {
  int32_t rank;
  int64_t dims[kMaxRank];
  bool byRows;
  int64_t absmax, nested = -1;
};

/// A tensor with a fixed place that outlives a launch: it can be loaded, fed,
/// read and saved.
struct TensorInfo {
  const char *name; // the model's own; unique within the program
  DType type;
  int32_t rank;
  int64_t dims[kMaxRank];
  int64_t offset; // bytes from the start of its space's arena
  Role role;
  Init init = Init::None;
  /// Normal: standard deviation; Constant: the number; Uniform: x of [-x, x)
  double initValue = 0;
  bool trainable = false;
  Feed feed = Feed::None;
  /// A matrix of an adapter: no file of the base has it.
  bool isAdapter = false;
  /// Role::Copy: the weight, an index into tensors. Each change of the weight
  /// (update, load, write) rounds the copy again.
  int64_t copyOf = -1;
  /// Integer inputs: values must be in [0, limit); 0: unknown. If allowIgnore
  /// is set, `ignore` is also allowed (a label that isn't counted).
  int64_t limit = 0;
  bool allowIgnore = false;
  int64_t ignore = 0;
  /// The same for boxes of elements, which may overlap.
  const IndexRange *ranges = nullptr;
  int32_t rangeCount = 0;
  /// Its space between two steps.
  SpaceKind space = SpaceKind();
  /// Other names of the same weight in the model; files may use them too.
  const char *const *aliases = nullptr;
  int32_t aliasCount = 0;
  /// It lies behind the tensor before in this list, and kernels take both as
  /// one: weights of products that became one product.
  bool continues = false;
  /// If it holds codes: the parameter that it stands for; else null.
  const StoredInfo *stored = nullptr;
  /// If it holds maxima of codes: the codes, an index into tensors.
  int64_t maximaOf = -1;
  /// Other values use its bytes within a step: it is read after a step only.
  bool isOverwritten = false;
  /// Elements of this rank's shard, which is all that its arena holds: of the
  /// tensor, or of several that lie side by side. 0: the whole is there. The
  /// dimensions are those of the whole.
  int64_t shard = 0;
  /// The first element among those of all tensors of the shards.
  int64_t shardFrom = 0;
  /// If ranks of tp have a piece each: the elements of it that lie side by side
  /// in the whole. Chunk c belongs to rank c % pieces, and the chunks of a rank
  /// lie one after another in its arena. A shard is then one of that piece. The
  /// dimensions are those of the whole.
  int64_t chunk = 0, pieces = 1;

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= dims[i];
    return n;
  }
  int64_t bytes() const { return elements() * sizeOf(type); }
  /// The elements of a piece.
  int64_t pieceElements() const { return elements() / pieces; }
  /// The elements of the piece of rank `place` before `element` of the whole.
  int64_t pieceBefore(int64_t place, int64_t element) const {
    if (!chunk)
      return element;
    const int64_t row = chunk * pieces, rest = element % row - place * chunk;
    return element / row * chunk + (rest < 0 ? 0 : rest < chunk ? rest : chunk);
  }
  /// The element of the whole that element `own` of the piece of rank `place`
  /// is.
  int64_t inWhole(int64_t place, int64_t own) const {
    return chunk ? (own / chunk * pieces + place) * chunk + own % chunk : own;
  }
  /// The elements of a piece that the shard of rank `place` has.
  int64_t shardBegin(int64_t place) const {
    return clampToElements(place * shard - shardFrom);
  }
  int64_t shardEnd(int64_t place) const {
    return clampToElements((place + 1) * shard - shardFrom);
  }
  /// The rank whose shard has this element of a piece.
  int64_t shardOf(int64_t element) const {
    return (element + shardFrom) / shard;
  }

private:
  int64_t clampToElements(int64_t at) const {
    return at < 0 ? 0 : at < pieceElements() ? at : pieceElements();
  }
};

/// Static data, copied to its place in the device's arena after allocation.
struct ConstantInfo {
  int64_t offset, bytes;
  const void *data;
};

/// A piece of an arena.
struct Region {
  int64_t offset, bytes;
  DType type = DType::I8; // element type, for --check-finite
  SpaceKind space = SpaceKind();
};

/// One entry of the list of run() (a loop's body appears once): a launch on
/// compute, or the start or the done of work on another engine. `writes` are
/// its results; results of work come into being at the start entry and are
/// complete at the done entry. `deaths` are the regions that are dead after
/// each run of it.
struct LaunchInfo {
  const char *name;     // "layers.3.gelu", with the instance where recomputed
  const char *location; // the line in the user's source, or ""
  const Region *writes;
  int32_t writeCount;
  const Region *deaths;
  int32_t deathCount;
  /// For profiles: the kernel class, the kernel object (the first one, of
  /// entries that are queued together), and the work of one run: floating-point
  /// operations (a multiply-add counts as two), bytes that must cross the
  /// memory bus, elements of the largest operand. 0: unknown.
  const char *family = "";
  const char *kernel = "";
  int64_t flops = 0, bytes = 0, elements = 0;
  EngineKind engine = EngineKind::Compute;
  /// For a done entry: the index of its work's start entry. A done entry takes
  /// no time on an engine.
  int64_t startedBy = -1;
  int64_t movedBytes = 0;       // between two spaces
  double predictedSeconds = -1; // on its engine; -1: unknown
  /// The entries from this one on that are queued together, before the first of
  /// them is reported as launched: updates that one launch runs.
  int32_t together = 1;
};

/// A kernel object: its name in the step, and its family and parameters as
/// prices know them (compiler/target/Prices.h).
struct ObjectInfo {
  const char *name, *object;
};

/// Figures of the plan, for the trainer's first line and for statistics. -1:
/// unknown.
struct PlanSummary {
  int64_t budgetBytes = -1; // of the device
  /// Device memory beside the arena, in bytes: context, library handles. It
  /// must be free at start, and preparing kernels may not take more.
  int64_t reservedBytes = 0;
  PerSpace<int64_t> livePeakBytes = PerSpace<int64_t>::all(-1);
  int64_t unconstrainedBytes = -1;
  double predictedSeconds = -1;
  double unconstrainedSeconds = -1;
  int64_t recomputedOps = -1;
};

/// The compilation, for the trainer's log.
struct StepOrigin {
  const char *version = "", *target = ""; // of tmc; "cpu:v4"
  const char *model = "", *plan = "";     // fingerprints, in digits
};

struct StepProgram {
  int32_t version; // kProgramVersion
  Backend backend;
  const char *model;       // the model's name, for messages
  const char *fingerprint; // tells checkpoints of other models apart
  PerSpace<int64_t> arenaBytes;
  const char *fileDirectory = ""; // default of the swap file; "": none
  int32_t eventCount = 0;         // events are 0, 1, ..., eventCount - 1

  const TensorInfo *tensors;
  int64_t tensorCount;
  const ConstantInfo *constants;
  int64_t constantCount;
  const LaunchInfo *launches;
  int64_t launchCount;
  const ObjectInfo *objects = nullptr; // for profiles
  int64_t objectCount = 0;
  AlgorithmTable algorithms = {}; // of products on cuda

  int64_t lossTensor;     // index into tensors
  int64_t gradNormTensor; // index into tensors, or -1
  /// If the loss is scaled: the scale, and the count of updates done (i64).
  /// Indices into tensors, or -1.
  int64_t lossScaleTensor = -1, updateCountTensor = -1;
  /// The count of numbers that saturated as 8-bit codes (i64): an index into
  /// tensors, or -1.
  int64_t saturationsTensor = -1;
  /// True if updates take a clipping factor and change nothing when the norm of
  /// the gradients isn't finite. Such a step may not change anything else
  /// either. False if the loss is scaled: then the program counts updates
  /// itself.
  bool skipsNonFinite = false;
  /// Samples and tokens of one step (0 tokens: the model doesn't take tokens).
  int64_t samplesPerStep;
  int64_t tokensPerStep;
  /// The ranks that run the program, each on its part of the batch: inputs,
  /// samples and tokens are those of one rank.
  Mesh mesh = {};
  PlanSummary plan;
  StepOrigin origin;
  /// adapter_config.json of its adapters; "": it has none. Names that begin
  /// with prefixInModel begin with prefixInFile in the files of an adapter.
  const char *adapterConfig = "";
  const char *prefixInModel = "", *prefixInFile = "";

  /// The emitted struct of kernel objects.
  void *(*createKernels)();
  void (*destroyKernels)(void *kernels);
  /// Calls `visit` with each kernel object and its name.
  void (*visitKernels)(void *kernels, void *context,
                       void (*visit)(void *context, const char *name,
                                     Kernel &kernel));
  /// Queues one whole step: the same work each time (StepRecorder.h).
  void (*run)(Queues &queues, void *kernels);
  /// Queues the work of a step up to its loss, without dropout; null: the step
  /// can't do that, for the reason `noEvaluation`. It changes the tensors
  /// `changedByEvaluation`, indices into tensors, which are kept between steps.
  void (*evaluate)(Queues &queues, void *kernels) = nullptr;
  const char *noEvaluation = "";
  const int64_t *changedByEvaluation = nullptr;
  int64_t changedByEvaluationCount = 0;
};

} // namespace tmc

/// Defined by the emitted step.
extern "C" const tmc::StepProgram *tmc_step_program(void);
/// Defined by the emitted step as data, so that it can be read on a processor
/// that can't run the step's code.
extern "C" const tmc::CompiledFor tmc_step_compiled_for;
/// Defined by the library of a backend: the instructions that it may use.
extern "C" const uint32_t tmc_runtime_instructions;

#endif // TMC_RUNTIME_STEP_PROGRAM_H
