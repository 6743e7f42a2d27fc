// StepProblem.h - a training step as a planning problem, and back.
//
// `buildProblem` reads a `train.step` whose ops are kernels and views (the
// output of the shape phase) and states it as a planning problem.
// `applySolution` writes a planner's answer into the step: the order of the ops
// in the block is the schedule, a recomputation is a cloned op, and every op
// carries the number of its instance so that no pass can merge a clone with its
// original.
//
// The mapping:
//
//     argument                     persistent value (parameter, optimizer, ...)
//     constant that a kernel reads persistent value
//     op that is a kernel          instruction with one recipe; its used
//                                  results are values
//     part of a fused kernel       recipe that only ever recomputes: a result
//                                  alone, or from other results that are kept
//     view                         nothing: its users read the root
//   train.micro_batch            a segment with trips; the ops before and
//                                after it are segments of one trip
//     carried block argument       carried value, from the yielded one
//     returned new value           `updates` the argument, must overwrite it
//     tensor of another space      value of that space
//   stash, fetch, update on      work of its engine: a start, and a done at
//   the host                     the position of the op's done
//
// A step without moves has one space and one engine. `offerMoves` adds the
// possible moves, and `applySolution` writes a planner's answer back. The
// problem of the resulting step has other spaces; each value of its IR is a
// content of its own, and its `list` is the schedule.

#ifndef TMC_COMPILER_ANALYSIS_STEPPROBLEM_H
#define TMC_COMPILER_ANALYSIS_STEPPROBLEM_H

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Problem.h"
#include "compiler/target/Target.h"
#include "dialects/train/Train.h"

#include <vector>

namespace tmc {

/// The op that a recipe runs, or a part of it.
struct RecipeKernel {
  /// Null for a fill with zeros.
  mlir::Operation *op = nullptr;
  /// If not empty: the recipe runs the part of a fused `op` that makes these
  /// results of it from its operands and its results `given`.
  llvm::SmallVector<unsigned> wanted, given;
  std::string family; // As in KernelWork.
  Price price;
};

struct StepProblem {
  planning::Problem problem;
  /// The root that each planning value stands for; null for the zeros that
  /// initialize a loop's sum.
  std::vector<mlir::Value> valueOf;
  llvm::DenseMap<mlir::Value, planning::ValueId> idOf;
  /// The kernel of each recipe.
  std::vector<RecipeKernel> kernelOf;
  train::MicroBatchOp loop; // Null where the step has one micro-batch.
  /// The step's present order, without overwrites.
  planning::Solution list;
};

/// Host memory in which the runtime keeps the checksum of a file's block.
inline constexpr int64_t kFileTableBytesOfBlock = 32;

/// The space of this kind in a problem; none if the problem lacks it.
std::optional<planning::SpaceId> spaceOf(const planning::Problem &problem,
                                         SpaceKind kind);

/// The alignment of buffers in a space: its own, or else the target's.
int64_t alignmentOf(SpaceKind space, int64_t deviceAlignment);

/// The recipes that a problem offers in addition to each op's own.
enum class Recipes {
  Own,  // None: the step as it is.
  Parts // Parts of fused kernels, too.
};

/// States the problem of `step`; emits an error for an op that is neither
/// kernel nor view.
mlir::FailureOr<StepProblem> buildProblem(train::StepOp step,
                                          const Target &target,
                                          Recipes recipes = Recipes::Own);

/// Offers the possible moves: `planning::offerMoves`, with the kernels of the
/// new recipes. Sizes in other spaces are rounded up to the space's alignment.
absl::Status offerMoves(StepProblem &stated,
                        const planning::MoveOptions &options);

/// Rewrites `step` into the schedule that `solution` states. `problem` is stale
/// afterwards. Emits an error if the IR can't express the schedule.
mlir::LogicalResult applySolution(train::StepOp step,
                                  const StepProblem &problem,
                                  const planning::Solution &solution);

/// The name of an op in messages and reports: its location's name, else its
/// own.
std::string nameOf(mlir::Operation *op);

/// The parameter whose gradient `value` is. A partial sum of a gradient counts
/// as well: an optimizer's rule reads it next to the parameter itself. Null:
/// `value` is no gradient.
mlir::Value gradientOf(mlir::Value value);

/// Results of `op` that must exist: used ones, and those that its kernel can't
/// drop.
bool isWritten(mlir::OpResult result);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STEPPROBLEM_H
