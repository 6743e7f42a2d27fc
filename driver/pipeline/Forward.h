// Forward.h - a model that was read: its forward function, and all else that
// the programs of its step share.
//
//     model.onnx, --weights, --target --> Forward --> programs (Candidate.h)
//
// The function is kept as bytecode: each program is built in a context of its
// own, so that several can be built at a time.

#ifndef TMC_DRIVER_PIPELINE_FORWARD_H
#define TMC_DRIVER_PIPELINE_FORWARD_H

#include "compiler/emit/Emit.h"
#include "compiler/report/Planned.h"
#include "compiler/target/Target.h"
#include "driver/pipeline/Options.h"
#include "driver/pipeline/WeightsFile.h"
#include "frontends/common/Weights.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct Forward {
  std::string model; // Its file's name, without directory and extension.
  Target device;
  std::string attention = "own"; // Or auto or cudnn; own if tmc lacks cuDNN.
  std::optional<AlgorithmFile> algorithms; // For products on the device.
  std::string bytecode;                    // @forward.
  std::string fingerprint;                 // Provenance::model.
  /// The model's parameters and states, in the order of the step's arguments.
  std::vector<ModelValue> values;
  /// The model's own values, which `weights` refers to; null: it has none.
  std::unique_ptr<Weights> modelWeights;
  /// The sources of the values; null if none are wanted (see `wantsWeights`).
  std::unique_ptr<WeightSources> weights;
  /// The files that were read: the model, its external data, --weights, and the
  /// target's file.
  std::vector<std::string> files;
  AdapterFiles adapter; // Empty without adapters.
  int64_t samples = 0;  // In a rank's batch; 0: there is no batch.
  size_t ops = 0;       // In the function.

  /// The facts that levers depend on.
  ModelFacts facts() const;

  /// The table of algorithms, or null.
  const AlgorithmFile *table() const {
    return algorithms ? &*algorithms : nullptr;
  }
};

/// Reads the model, the target and the values that the options name. Appends
/// warnings, of a failure, too.
Expected<Forward> readModel(const CompileOptions &options,
                            std::vector<std::string> &warnings);

/// A context for one program.
std::unique_ptr<mlir::MLIRContext> makeProgramContext();

/// The forward function in `context`.
mlir::OwningOpRef<mlir::ModuleOp> parseForward(const Forward &forward,
                                               mlir::MLIRContext &context);

/// Marks the step's integer inputs with the range that their uses allow: rows
/// of a table, classes of a loss.
void markInputRanges(mlir::ModuleOp module);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_FORWARD_H
