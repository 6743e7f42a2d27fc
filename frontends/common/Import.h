// Import.h - what a frontend is asked for, and what it makes.
//
//   model.onnx ── onnx ──┐
//                        ├──> one function of nn IR, and where the values are
//   model.pt2  ── torch ─┘
//
// The module holds one function, `@forward`, on statically shaped tensors. What
// its arguments are is said by their attributes:
//
//   func.func @forward(
//       %arg0: tensor<64x32xf32> {train.role = #train.role<param>,
//                                 train.name = "fc.weight", train.init =
//                                 "normal"},
//       %arg1: tensor<64xf32>    {train.role = #train.role<state>, ...},
//       %arg2: tensor<8x32xf32>  {train.role = #train.role<batch>,
//                                 train.name = "image"},
//       %arg3: tensor<2xi64>     {train.role = #train.role<scalar>,
//                                 train.name = "seed"})
//     -> (tensor<f32> {train.name = "loss", train.loss},
//         tensor<64xf32> {train.name = "...", train.updates = 1 : i64})
//
// Parameters are the stored floats with a differentiable path to the loss. One
// tensor used twice (a tied embedding) is one argument. Running statistics are
// state, and their new values are results. Everything that follows from shapes
// and constants alone (position tables, causal masks) is computed at import.

#ifndef TMC_FRONTENDS_COMMON_IMPORT_H
#define TMC_FRONTENDS_COMMON_IMPORT_H

#include "compiler/support/Failure.h"
#include "frontends/common/Weights.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace tmc {

struct ImportOptions {
  /// Size of the batch: binds the symbolic dimension named `batch`, else the
  /// first symbolic dimension of the first input that has one.
  std::optional<int64_t> batch;
  /// Sizes of symbolic dimensions, by name.
  std::map<std::string, int64_t> dims;
  /// The name of a scalar output, or a loss of values, as
  /// `cross_entropy(logits, labels)` (Loss.cpp lists them). If empty: the
  /// output `loss`, or the only scalar float output.
  std::string loss;
  /// Globs (`*`, `?`) over names of parameters that aren't trained.
  std::vector<std::string> freeze;
  /// Whether a model without a loss is an error.
  bool needLoss = true;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Where the values of parameters and state are. May outlive the module.
  std::unique_ptr<Weights> weights;
  /// What the user should know although nothing is wrong.
  std::vector<std::string> warnings;
};

/// Registers the dialects that imported modules are made of.
void registerImportDialects(mlir::DialectRegistry &registry);

} // namespace tmc

#endif // TMC_FRONTENDS_COMMON_IMPORT_H
