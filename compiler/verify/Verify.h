// Verify.h - a compiled step against what it means.
//
// `DIR/step.mlir` is the step before it was planned, `DIR/libstep.so` what
// became of it. Both are run on the same values, the weights of
// `DIR/weights.safetensors` where that is there, inputs of data files where
// some are given, and random numbers for the rest: the step as compiled code
// through its C interface, its text by the reference interpreter in double.
// Draws of dropout are a function of seed and step, so they are the same in
// both.
//
// Each step is compared by itself, from the same state in both:
//
//     step 1     optimizer states are zero, as in a fresh run
//     step 2..   optimizer states are drawn, about as large as step 1 left them
//
// In step 1 an adaptive rule moves a parameter by the sign of its gradient,
// which rounding decides where the gradient is nearly zero; parameters with
// optimizer states are compared from step 2 on, and the states themselves (the
// first one is a multiple of the gradient) in every step.
//
// ## The measure
// The error of a tensor is the Euclidean norm of the difference over that of
// the reference, or over a tenth of the norm of all tensors of its kind
// where that is more: a gradient that is zero but for rounding has no relative
// error. It may be 1e-5. Codes of an optimizer's moments in 8 bits are numbers,
// of which one in 256 may be the next one.
//
// ## What rounding decides
// A value so near the threshold of a ReLU or of a max-pooling that rounding
// turns it over changes gradients by far more than 1e-5, and so do sums whose
// terms cancel. Where tensors differ by more, the interpreter is asked again,
// up to six times, with inputs that are changed in their twentieth bit: in
// double, and with each result rounded to its type. If the change or the
// rounding alone moves each tensor by an eighth of the difference, the draw
// decides nothing, and another is taken. A step may be such that every draw is
// of this kind (many layers of batch norm over few values each): then tensors
// of the fifth draw may differ by eight times what these move them, and the
// table says how many do. Where that is more than 1e-2, nothing can be said,
// and the comparison fails. After such a step each later one is drawn once. A
// draw after which nothing but single numbers of a
// step with 8-bit codes differ decides nothing, either, unless it is the fifth.
//
// ## Edges
// A last draw, of steps of up to 2^24 elements, puts large numbers (10000, or
// 100 where those overflow f32) and rows of equal elements into the batch and
// the parameters. Its results need not be near the reference's, but they are
// numbers.

#ifndef TMC_COMPILER_VERIFY_VERIFY_H
#define TMC_COMPILER_VERIFY_VERIFY_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct VerifyOptions {
  std::string directory;
  int64_t steps = 2;
  uint64_t seed = 0;
  int threads = 0; ///< Of the compiled step; 0: one per core.
  /// A safetensors file; empty: the directory's own, or drawn without one.
  std::string weights;
  /// What inputs are read from, as the trainer's --data says it; the others are
  /// drawn.
  std::vector<std::string> data;
  bool progress = false;
};

/// How far one tensor is from the reference.
struct Deviation {
  int64_t step;
  std::string name;
  std::string kind; ///< "loss", "parameter", "state", "exp_avg", "output", ...
  int64_t elements;
  double difference; ///< Norm of the difference.
  double norm;       ///< Of the reference.
  double scale;      ///< What the difference is measured by.
  double allowed;    ///< The largest error that is none.
  double error() const;
};

struct VerifyReport {
  bool agrees = true;
  std::string weights; ///< The file that was read; empty: drawn.
  /// Every comparison, the largest error first, and those that are too large
  /// before the others.
  std::vector<Deviation> deviations;
  int64_t steps = 0;
  int64_t undecided = 0; ///< Draws that rounding decided.
  int64_t edges = 0;     ///< Draws of large and equal values.
  double stepSeconds = 0, interpreterSeconds = 0;
};

constexpr double kVerifyTolerance = 1e-5;
/// The largest error of which anything can be said, where rounding makes it.
constexpr double kVerifyCoarsest = 1e-2;

/// Fails where `directory` isn't one of a compiled step, or the step can't run.
Expected<VerifyReport> verifyStep(const VerifyOptions &options);

/// The worst tensors, and what was found.
std::string verifyTable(const VerifyReport &report);

} // namespace tmc

#endif // TMC_COMPILER_VERIFY_VERIFY_H
