// Verify.h - compares a compiled step with its meaning.
//
// `DIR/step.mlir` is the step before planning, `DIR/libstep.so` the compiled
// one. Both are run on the same values: the weights of
// `DIR/weights.safetensors` if it exists, inputs of data files if some are
// given, and random numbers for the rest. The compiled code runs through its C
// interface, the text in the reference interpreter in double. Draws of dropout
// are a function of seed and step, so they are the same in both.
//
// The ranks of a step for several devices are threads (LocalPeers.h), and the
// interpreter runs all of them, too. Each rank draws its own samples. All ranks
// are compared, and the one that is farthest off counts.
//
// Each step is compared separately, from the same state in both:
//
//     step 1     optimizer states are zero, as in a fresh run
//   step 2..   optimizer states are drawn, about as large as after step 1
//
// In step 1 an adaptive rule moves a parameter by the sign of its gradient,
// which rounding decides if the gradient is nearly zero. So parameters with
// optimizer states are compared from step 2 on, and the states themselves (the
// first one is a multiple of the gradient) in every step.
//
// ## The measure
// The error of a tensor is the Euclidean norm of the difference, divided by the
// larger of the reference's norm and a tenth of the norm of all tensors of its
// kind: a gradient that is zero except for rounding has no relative error. An
// error of 1e-5 is allowed. Codes of an optimizer's moments in 8 bits are
// compared as numbers, and one in 256 may differ by one.
//
// ## Decisions of rounding
// If a value is so near the threshold of a ReLU or of a max-pooling that
// rounding moves it to the other side, gradients change by far more than 1e-5;
// so do sums whose terms cancel. If tensors differ by more than 1e-5, the
// interpreter runs again, up to six times, with inputs that are changed in
// their twentieth bit: in double, and with each result rounded to its type. If
// the change or the rounding alone moves each such tensor by an eighth of the
// difference, the draw decides nothing, and another is taken. In some steps
// every draw is of this kind (many layers of batch norm over few values each).
// Then tensors of the fifth draw may differ by eight times the amount by which
// changes and rounding move them, and the table counts such tensors. If that
// allows more than 1e-2, the comparison fails, because it says nothing. After
// such a step each later one is drawn once. If only single numbers of a step
// with 8-bit codes differ, the draw decides nothing either, unless it is the
// fifth.
//
// ## Edges
// A last draw, for steps of up to 2^24 elements, puts large numbers (10000, or
// 100 if those overflow f32) into the batch and the parameters, and rows of
// equal elements into the batch. Its results may be far from the reference's,
// but must be finite.

#ifndef TMC_DRIVER_VERIFY_VERIFY_H
#define TMC_DRIVER_VERIFY_VERIFY_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct VerifyOptions {
  std::string directory;
  int64_t steps = 2;
  uint64_t seed = 0;
  int threads = 0; ///< For the compiled step; 0: one per core.
  /// A safetensors file; empty: the directory's own, or random values without
  /// one.
  std::string weights;
  /// Data files of inputs, in the form of the trainer's --data; other inputs
  /// are drawn.
  std::vector<std::string> data;
  bool progress = false;
};

/// The distance of one tensor from the reference.
struct Deviation {
  int64_t step;
  std::string name;
  std::string kind; ///< "loss", "parameter", "state", "exp_avg", "output", ...
  int64_t elements;
  double difference; ///< Norm of the difference.
  double norm;       ///< Norm of the reference.
  double scale;      ///< The divisor of the difference.
  double allowed;    ///< The largest error that is accepted.
  double error() const;
};

struct VerifyReport {
  bool agrees = true;
  std::string weights; ///< The file that was read; empty: drawn.
  /// Every comparison: those with too large an error first, and among them the
  /// largest error first.
  std::vector<Deviation> deviations;
  int64_t steps = 0;
  int64_t ranks = 1;
  int64_t undecided = 0; ///< Draws that rounding decided.
  int64_t edges = 0;     ///< Draws of large and equal values.
  double stepSeconds = 0, interpreterSeconds = 0;
};

constexpr double kVerifyTolerance = 1e-5;
/// The largest error that the comparison accepts as an effect of rounding.
constexpr double kVerifyCoarsest = 1e-2;

/// Fails if `directory` doesn't hold a compiled step, or the step can't run.
Expected<VerifyReport> verifyStep(const VerifyOptions &options);

/// The worst tensors, and the verdict.
std::string verifyTable(const VerifyReport &report);

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_VERIFY_H
