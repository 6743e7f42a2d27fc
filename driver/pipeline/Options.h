// Options.h - the options of `tmc compile` and `tmc plan`, as a value.
//
// The command line fills it; so can a test, or a build tool that links the
// pipeline. Nothing here is global.

#ifndef TMC_DRIVER_PIPELINE_OPTIONS_H
#define TMC_DRIVER_PIPELINE_OPTIONS_H

#include "compiler/support/Failure.h"
#include "compiler/target/AlgorithmFile.h"
#include "compiler/target/Target.h"
#include "driver/pipeline/Levers.h"
#include "passes/LoraSpec.h"
#include "passes/Offload.h"
#include "runtime/kernels/Mesh.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tmc {

/// The phases of a compilation, in order; each ends with IR or text that
/// `--to` can print.
enum class Phase {
  Import,
  Raise,
  Split,
  Layout,
  Autodiff,
  Precision,
  Shape,
  Plan,
  Lower,
  Place,
  Emit,
  Link,
};

const char *nameOf(Phase phase);
std::optional<Phase> phaseNamed(const std::string &name);
std::vector<std::string> phaseNames();

/// The kinds of output.
enum class Artifact { Exe, Lib, Source, Mlir, Plan };

/// The source of the 16-bit copies of f32 parameters, which products on GPUs
/// read (passes/fuse/KeepCopies.cpp).
enum class NarrowCopies {
  Auto, // Updates; casts if they are faster, or if nothing else fits.
  Kept, // Updates.
  Cast, // Casts in each step.
};

/// The sums of gradients over micro-batches that each of several ranks carries.
/// The two add in another order.
enum class RankSums {
  Whole,  // Exchanged after the last micro-batch.
  Shards, // A shard of each gradient, exchanged in each micro-batch.
  Auto,   // The ones of the faster step that fits.
};

struct CompileOptions {
  std::string model; // Path of the model file: ONNX, or IR (.mlir).
  std::vector<std::string> command; // The words of the command line, for plans.
  std::string config; // The same as a file for --config; empty: write none.
  /// None: the memory of the target.
  PerSpace<std::optional<int64_t>> budgetBytes;
  std::string target = "cpu";
  /// Profiles of steps on this target's device: the times of their kernels.
  std::vector<std::string> prices;
  std::string algorithms; // A file of measured algorithms; empty: none.
  std::optional<int64_t> batch;
  Mesh mesh; // The ranks of a step for several devices.
  /// The moments and parameters that each rank keeps as shards: the level of
  /// passes/Shard.cpp. None: tmc's choice.
  std::optional<int64_t> shardLevel;
  int64_t wholeParams = 0; // The `whole` of level 3.
  RankSums sums = RankSums::Whole;
  /// More than one: a step for each number of ranks, ascending, in a folder of
  /// the output.
  std::vector<Mesh> meshes;
  std::map<std::string, int64_t> dims;
  std::string loss;
  /// Micro-batches, precision (passes/Precision.h), optimizer
  /// (passes/Optimizers.h), rows of logits that are held at once (0: all; none:
  /// the smallest number that costs no time and changes no bit, which only the
  /// cpu's product guarantees), tiles (passes/Tile.cpp), storage of what isn't
  /// trained (passes/BaseSpec.h). Each may be free.
  LeverSetting levers;
  std::string lossScale = "auto"; // passes/LossScale.h; dynamic for fp16
  NarrowCopies narrowCopies = NarrowCopies::Auto;
  /// auto, own or cudnn: the kernels of attention on cards
  /// (passes/ChooseAttention.cpp).
  std::string attention = "auto";
  std::vector<std::string> freeze;
  std::optional<LoraSpec> lora;     // None: the parameters are trained.
  std::vector<std::string> train;   // With lora: trained whole, as globs.
  std::vector<std::string> outputs; // The model's, kept beside the loss.
  std::string
      batchNorm; // per-micro-batch or frozen; empty: of the whole batch.
  OffloadSpec offload;
  /// The directory of spill files, relative to the step's working directory.
  /// Empty: no files.
  std::string fileDirectory;
  /// Percent of the planner's default amount of counted work.
  int64_t effort = 100;
  Artifact emit = Artifact::Exe;
  std::optional<Phase> to; // Print this phase's result instead.
  std::string weights;     // A SafetensorsSet; empty: the model's own.
  std::pair<std::string, std::string> weightsPrefix; // Prefix of names: in the
                                                     // file, in the model.
  bool copyWeights = false; // Copy what `weights` names; else record it.
  std::string output;       // Directory; empty: the model's name.
  bool force = false;       // Overwrite, even if others wrote the files there.
  std::string name;    // --name, which C identifiers begin with; empty: none.
  std::string depfile; // -MF; empty: none.
  /// -MT: the targets of the depfile's rule; empty: all written files.
  std::vector<std::string> depfileTargets;
  /// Names of files for other viewers, in the output directory; empty: none.
  std::string snapshot, trace;
  std::string plantDefect; // "PHASE:KIND" of createPlantDefect, for tests.
  std::string problemFile; // The planning problem, as tmc-solve reads it.
  std::string planner;     // By name, or "exec:COMMAND"; empty: our own.
  bool useCache = true;    // Take compiled pieces of steps from the cache.
  bool progress = false;   // Report progress on stderr.
  bool quiet = false;      // No summary on stderr at the end.
};

/// True if an output directory with the model's values will be written.
bool wantsWeights(const CompileOptions &options);

/// A size as runtime/kernels/Sizes.h reads it. A note says what a unit of one
/// letter means.
Expected<int64_t> parseSize(const std::string &text);

/// The target named by `--target`. Fails on an unknown name and lists the known
/// ones.
Expected<Target> targetNamed(const std::string &text);
/// The target that the options name, with the prices that they name.
Expected<Target> targetOf(const CompileOptions &options);
/// The kernels of attention that the options name for this target, own if tmc
/// was built without cuDNN's graphs. Fails on cudnn where it can't be.
Expected<std::string> attentionOf(const CompileOptions &options,
                                  const Target &target);
/// The table of products' algorithms that the options name; none: they don't.
Expected<std::optional<AlgorithmFile>>
algorithmsOf(const CompileOptions &options, const Target &target);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_OPTIONS_H
