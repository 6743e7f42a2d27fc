// Validation.h - interpreter(before a pass) = interpreter(after it).
//
//     Validation v;
//     v.pipeline = "func.func(tmc-raise)";
//     validate(v);
//
// runs the pass on a thousand random graphs, interprets each before and after
// it on the same random inputs, and compares all results. It counts the graphs
// that the pass changed: a pass that changes nothing is no test of it. A pass
// may add copies of parameters to a step (train.copy_of): they are given as
// those, and must be those afterwards.

#ifndef TMC_TEST_UNIT_PASSES_VALIDATION_H
#define TMC_TEST_UNIT_PASSES_VALIDATION_H

#include "test/unit/passes/RandomGraph.h"

#include <functional>

namespace tmc::test {

struct Validation {
  /// Passes that make what is compared, before the ones that are tested.
  std::string prepare;
  /// What is tested, as tmc-opt's -pass-pipeline names it, less the module.
  std::string pipeline;
  /// The graph of a seed; by default `randomGraph` with `options`.
  std::function<mlir::OwningOpRef<mlir::ModuleOp>(mlir::MLIRContext &,
                                                  uint64_t)>
      graph;
  GraphOptions options;
  int64_t graphs = 1000;
  /// How many of them must be changed.
  int64_t leastChanged = 100;
  /// Ops of which that many graphs must hold more after the pass than before.
  std::vector<std::string> makes;
  /// Relative to the largest element of each result, or 1.
  double tolerance = 1e-8;
  /// An op whose steps are rounded one by one after the pass, and the tolerance
  /// of graphs that hold it.
  std::string roundedOp;
  double roundedTolerance = 0;
};

/// Fails the running test where a graph means something else after the pass, a
/// pass fails, or too few graphs are changed.
void validate(const Validation &validation);

/// Parses and runs a pipeline on a module; fails with a diagnostic.
mlir::LogicalResult runPipeline(mlir::ModuleOp module,
                                llvm::StringRef pipeline);

/// The one function-like op of a module: @forward or the step.
mlir::FunctionOpInterface functionOf(mlir::ModuleOp module);

} // namespace tmc::test

#endif // TMC_TEST_UNIT_PASSES_VALIDATION_H
