// StepProblem.h - a training step as a planning problem, and back.
//
// `buildProblem` reads a `train.step` whose ops are kernels and views (what the
// shape phase leaves) and states what a planner has to know. `applySolution`
// writes a planner's answer into the step: the order of the ops in the block is
// the schedule, a recomputation is a cloned op, and every op carries the number
// of its instance so that nothing can merge a clone back.
//
// What becomes what:
//
//     argument                     persistent value (parameter, optimizer, ...)
//     constant that a kernel reads persistent value
//     op that is a kernel          instruction with one recipe; its used
//                                  results are values
//     part of a fused kernel       recipe that only ever recomputes: a result
//                                  alone, or from other results that are kept
//     view                         nothing: its users read the root
//     train.micro_batch            a segment with trips; what stands before it
//                                  and after it are segments of one trip
//     carried block argument       carried value, from the yielded one
//     returned new value           `updates` the argument, must overwrite it
//     tensor of another space      value of that space
//     stash, fetch, update on      work of its engine: a start, and a done
//     where the host                     the op's done stands
//
// A step that moves nothing has one space and one engine. What may move in it
// is offered beside that (`offerMoves`), and a planner's answer written back by
// `applySolution`. The problem of the step that comes of it has other spaces;
// each value of its IR is a content of its own, and its `list` is the schedule.

#ifndef TMC_COMPILER_ANALYSIS_STEPPROBLEM_H
#define TMC_COMPILER_ANALYSIS_STEPPROBLEM_H

#include "compiler/planning/model/OfferMoves.h"
#include "compiler/planning/model/Problem.h"
#include "compiler/target/Target.h"
#include "dialects/train/Train.h"

#include <vector>

namespace tmc {

/// What a recipe runs.
struct RecipeKernel {
  /// Null for a fill with zeros.
  mlir::Operation *op = nullptr;
  /// Where not empty, the part of a fused `op` that makes these results of it
  /// from its operands and its results `given`.
  llvm::SmallVector<unsigned> wanted, given;
};

struct StepProblem {
  planning::Problem problem;
  /// The root that each planning value stands for; null for the zeros that a
  /// loop's sum begins as.
  std::vector<mlir::Value> valueOf;
  llvm::DenseMap<mlir::Value, planning::ValueId> idOf;
  /// What each recipe runs.
  std::vector<RecipeKernel> kernelOf;
  train::MicroBatchOp loop; // Null where the step has one micro-batch.
  /// The step as it stands, each overwrite left out.
  planning::Solution list;
};

/// Offsets and sizes in host memory are multiples of it: what transfers that
/// pass by the page cache want (O_DIRECT). Those in files are multiples of the
/// runtime's blocks (`kFileBlockBytes`).
inline constexpr int64_t kHostAlignment = 4096;
inline constexpr int64_t kFileAlignment = 64 << 10;
/// Host memory by which the runtime knows one of these blocks again.
inline constexpr int64_t kFileTableBytesOfBlock = 32;

/// The spaces of a problem with moves, in this order; the file may be missing.
inline constexpr planning::SpaceId kHostSpace = 1, kFileSpace = 2;

/// The alignment of buffers in a space of a problem, or of a program; that of
/// the device is the target's.
int64_t alignmentOf(planning::SpaceId space, int64_t deviceAlignment);

/// Which recipes a problem offers beside each op's own.
enum class Recipes {
  Own,  // None: the step as it is.
  Parts // Parts of fused kernels, too.
};

/// States the problem of `step`; emits an error where an op is neither kernel
/// nor view.
mlir::FailureOr<StepProblem> buildProblem(train::StepOp step,
                                          const Target &target,
                                          Recipes recipes = Recipes::Own);

/// Offers what may move: `planning::offerMoves`, with what the new recipes run.
/// Sizes in other spaces are rounded up to `kHostAlignment`.
absl::Status offerMoves(StepProblem &stated,
                        const planning::MoveOptions &options);

/// Rewrites `step` into the schedule that `solution` says. `problem` is stale
/// afterwards. Emits an error where the IR can't say it.
mlir::LogicalResult applySolution(train::StepOp step,
                                  const StepProblem &problem,
                                  const planning::Solution &solution);

/// What an op is called in messages and reports: its location's name, else its
/// own.
std::string nameOf(mlir::Operation *op);

/// The parameter that `value` is a gradient of, or a part of one that others
/// are added onto: what an optimizer's rule reads beside the parameter itself.
/// Null: it is no gradient.
mlir::Value gradientOf(mlir::Value value);

/// Results of `op` that must exist: used ones, and those its kernel can't drop.
bool isWritten(mlir::OpResult result);

} // namespace tmc

#endif // TMC_COMPILER_ANALYSIS_STEPPROBLEM_H
