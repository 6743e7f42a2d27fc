// Import.h - the input and output of a frontend.
//
//   model.onnx ── onnx ──┐
//                        ├──> one function of nn IR, and the values' source
//   model.pt2  ── torch ─┘
//
// The module holds one function, `@forward`, on statically shaped tensors.
// Attributes state the roles of its arguments:
//
//   func.func @forward(
//       %arg0: tensor<64x32xf32> {train.role = #train.role<param>,
//                                 train.name = "fc.weight",
//                                 train.init = "normal"},
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
// state, and their new values are results. Values that depend only on shapes
// and constants (position tables, causal masks) are computed at import.

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
  /// first symbolic dimension that is dimension 0 of an input.
  std::optional<int64_t> batch;
  /// Sizes of symbolic dimensions, by name.
  std::map<std::string, int64_t> dims;
  /// The name of a scalar output, or a loss of values, as
  /// `cross_entropy(logits, labels)` (Loss.cpp lists them). If empty: the
  /// output `loss`, or the only scalar float output.
  std::string loss;
  /// Globs (`*`, `?`) over names of parameters that aren't trained.
  std::vector<std::string> freeze;
  /// True if a model without a loss is an error.
  bool needLoss = true;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The values of parameters and state. May outlive the module.
  std::unique_ptr<Weights> weights;
  /// Remarks for the user about a correct model.
  std::vector<std::string> warnings;
};

/// Registers the dialects that imported modules are made of.
void registerImportDialects(mlir::DialectRegistry &registry);

} // namespace tmc

#endif // TMC_FRONTENDS_COMMON_IMPORT_H
