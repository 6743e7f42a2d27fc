//===- Program.h - what an emitted step defines -----------------*- C++ -*-===//
//
// An emitted step.cpp or step.cu defines one constant `StepProgram` and returns
// it from `tmc_step_program()`. It is the whole contract between the emitter
// and the runtime: how large the arenas are, which tensors stand where in them,
// which of them the runtime has to fill, and one function that queues the
// launches and moves (runtime/kernels/Queues.h).
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

#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Queues.h"
#include "runtime/step/Instructions.h"

#include <cstdint>

namespace tmc {

/// Bumped when a field changes its meaning; a runtime refuses other versions.
constexpr int32_t kProgramVersion = 7;

constexpr int kMaxRank = 8;

/// Where bytes are: each space has an arena of its own.
enum class Space : uint8_t { Device, Host, File };
constexpr int kSpaceCount = 3;

enum class Role : uint8_t {
  Param,  // a weight of the model, updated or frozen
  State,  // state of the model, e.g. running statistics: saved with the weights
  Moment, // state of the optimizer: only in checkpoints, never in weights
  Batch,  // filled before each step with this step's data
  Scalar, // filled before each step by the runtime
  Output, // readable after a step
  Copy,   // a weight rounded to 16 bits, of which products read it: in no file
};

/// How `--init random:SEED` fills a tensor.
enum class Init : uint8_t { None, Normal, Ones, Zeros, Constant };

/// What fills an input before each step.
enum class Feed : uint8_t {
  None,         // not an input
  Data,         // the data reader, or tmc_step_write
  Samples,      // i64[B]: 0, 1, ..., B - 1, the samples' numbers in the batch
  Seed,         // i64[2]: seed, step
  LearningRate, // f32 scalar
  Step,         // i64 scalar, counts from 1
};

/// What the integers in a box of an input may be: elements offset + i * step,
/// 0 <= i < size, along each dimension.
struct IndexRange {
  int64_t offsets[kMaxRank];
  int64_t sizes[kMaxRank];
  int64_t steps[kMaxRank];
  int64_t limit; // values must be in [0, limit)
  bool allowIgnore = false;
  int64_t ignore = 0; // allowed too where allowIgnore is set
};

/// A tensor with a fixed place that outlives a launch: what can be loaded, fed,
/// read and saved.
struct TensorInfo {
  const char *name; // the model's own; unique within the program
  DType type;
  int32_t rank;
  int64_t dims[kMaxRank];
  int64_t offset; // bytes from the start of its space's arena
  Role role;
  Init init = Init::None;
  double initValue = 0; // Normal: standard deviation; Constant: the number
  bool trainable = false;
  Feed feed = Feed::None;
  /// Role::Copy: the weight, an index into tensors. Updates round the copy anew
  /// with it, and so does whatever else gives it a value.
  int64_t copyOf = -1;
  /// Integer inputs: values must be in [0, limit); 0: unknown. `ignore` is
  /// allowed too where allowIgnore is set (a label that isn't counted).
  int64_t limit = 0;
  bool allowIgnore = false;
  int64_t ignore = 0;
  /// The same of boxes of elements, which may overlap.
  const IndexRange *ranges = nullptr;
  int32_t rangeCount = 0;
  /// Where it is between two steps.
  Space space = Space::Device;
  /// Other names of the model for the same weight, which files may use, too.
  const char *const *aliases = nullptr;
  int32_t aliasCount = 0;

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      n *= dims[i];
    return n;
  }
  int64_t bytes() const { return elements() * sizeOf(type); }
};

/// Static data, copied to its place in the device's arena when that is made.
struct ConstantInfo {
  int64_t offset, bytes;
  const void *data;
};

/// A piece of an arena.
struct Region {
  int64_t offset, bytes;
  DType type = DType::I8; // what it holds, for --check-finite
  Space space = Space::Device;
};

/// One entry of the list of run() (a loop's body once): a launch on compute, or
/// the start or the done of work on another engine. `writes` are its results;
/// those of work begin to exist at its start, and are there at its done.
/// `deaths` is what is dead after it (every time that it runs).
struct LaunchInfo {
  const char *name;     // "layers.3.gelu", with the instance where recomputed
  const char *location; // the user's line, or ""
  const Region *writes;
  int32_t writeCount;
  const Region *deaths;
  int32_t deathCount;
  /// For profiles: the kernel class, the object that runs it, and what one run
  /// does: floating-point operations (a multiply-add is two), bytes that must
  /// cross the memory bus, elements of the largest operand. 0: unknown.
  const char *family = "";
  const char *kernel = "";
  int64_t flops = 0, bytes = 0, elements = 0;
  Engine engine = Engine::Compute;
  /// Of a done: the index of the start of its work. Such an entry takes no
  /// engine's time.
  int64_t startedBy = -1;
  int64_t movedBytes = 0;       // between two spaces
  double predictedSeconds = -1; // on its engine; -1: unknown
};

/// Figures of the plan, for the trainer's first line and for statistics. -1:
/// unknown.
struct PlanSummary {
  int64_t budgetBytes = -1;
  /// Of the device's memory, beside the arena: context, library handles. It has
  /// to be there at start, and preparing kernels may not take more.
  int64_t reservedBytes = 0;
  int64_t livePeakBytes = -1;
  int64_t unconstrainedBytes = -1;
  double predictedSeconds = -1;
  double unconstrainedSeconds = -1;
  int64_t recomputedOps = -1;
  /// Of the host's memory: what it may take, what is reserved in it beside the
  /// arena (the table of the file's blocks), and the live peak.
  int64_t hostBudgetBytes = -1, hostReservedBytes = 0, hostLivePeakBytes = -1;
  int64_t fileBudgetBytes = -1, fileLivePeakBytes = -1;
};

struct StepProgram {
  int32_t version; // kProgramVersion
  Backend backend;
  const char *model;       // the model's name, for messages
  const char *fingerprint; // tells checkpoints of other models apart
  int64_t arenaBytes;      // on the device
  int64_t hostArenaBytes = 0, fileArenaBytes = 0;
  const char *fileDirectory = ""; // for it, if none is given; "": none
  int32_t eventCount = 0;         // events are 0, 1, ..., eventCount - 1

  const TensorInfo *tensors;
  int64_t tensorCount;
  const ConstantInfo *constants;
  int64_t constantCount;
  const LaunchInfo *launches;
  int64_t launchCount;

  int64_t lossTensor;     // index into tensors
  int64_t gradNormTensor; // index into tensors, or -1
  /// Where the loss is scaled, what it is multiplied by and the updates that
  /// were done (i64): indices into tensors, or -1.
  int64_t lossScaleTensor = -1, updateCountTensor = -1;
  /// Numbers that saturated so far as codes of 8 bits (i64): an index into
  /// tensors, or -1.
  int64_t saturationsTensor = -1;
  /// Updates take a factor that clips, and leave all as it is where the
  /// gradients' norm isn't finite; such a step may move nothing else, either.
  /// False where the loss is scaled: then the program counts updates itself.
  bool skipsNonFinite = false;
  /// Samples and tokens that one step takes (tokens 0: not a token model).
  int64_t samplesPerStep;
  int64_t tokensPerStep;
  PlanSummary plan;

  /// The emitted struct of kernel objects.
  void *(*createKernels)();
  void (*destroyKernels)(void *kernels);
  /// Calls visit for each kernel object, with its name.
  void (*visitKernels)(void *kernels, void *context,
                       void (*visit)(void *context, const char *name,
                                     Kernel &kernel));
  /// Queues one whole step.
  void (*run)(Queues &queues, void *kernels);
};

} // namespace tmc

/// Defined by the emitted step.
extern "C" const tmc::StepProgram *tmc_step_program(void);
/// Defined by the emitted step: data, so that it can be read where no code of
/// the step can run.
extern "C" const tmc::CompiledFor tmc_step_compiled_for;
/// Defined by the library of a backend: the instructions that it is made of.
extern "C" const uint32_t tmc_runtime_instructions;

#endif // TMC_RUNTIME_STEP_PROGRAM_H
