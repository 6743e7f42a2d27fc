// Harness.h - what tests that interpret IR have in common.
//
// A context with every dialect of tmc; inputs drawn at random for a function's
// arguments; and a comparison of two lists of tensors. Random numbers come from
// a generator of our own, so that a seed means the same on every machine.
//
// Inputs can be steered by attributes of the arguments:
//   test.below = N   integers in [0, N); otherwise they are in [-3, 4)
//   test.first       i1 whose first element of each row is true
//   test.positive    floats in [0.5, 2.5); otherwise they are in [-2, 2)
// Scalars of a step and states of an optimizer (train.role, train.slot) are
// positive in any case.
// All floats that one function takes are distinct and apart from each other, so
// that a small step of one doesn't change which of two is the larger.

#ifndef TMC_TEST_UNIT_REFERENCE_HARNESS_H
#define TMC_TEST_UNIT_REFERENCE_HARNESS_H

#include "compiler/reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace tmc::test {

/// SplitMix64: small, and the same everywhere.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators".
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next();
  /// A whole number in [0, bound).
  int64_t below(int64_t bound) { return next() % uint64_t(bound); }
  /// A whole number in [begin, end).
  int64_t between(int64_t begin, int64_t end) {
    return begin + below(end - begin);
  }
  /// A number in [0, 1).
  double unit() { return double(next() >> 11) * 0x1p-53; }
  bool coin() { return next() >> 63; }

private:
  uint64_t state;
};

/// A context with all dialects loaded, which lets unknown attributes pass. It
/// prints diagnostics to standard error.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Parses and verifies a module from a file below the repository's root.
mlir::OwningOpRef<mlir::ModuleOp> parseFile(mlir::MLIRContext &context,
                                            llvm::StringRef path);

/// Parses and verifies a module.
mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context,
                                        llvm::StringRef text);

/// Values for the function's arguments.
llvm::SmallVector<reference::Tensor>
randomInputs(mlir::FunctionOpInterface function, Random &random);

/// Says where two lists of tensors differ by more than `tolerance`, relative to
/// the largest element of the tensor or 1; the empty string if nowhere. Equal
/// infinities are equal; a NaN equals nothing.
std::string compare(llvm::ArrayRef<reference::Tensor> expected,
                    llvm::ArrayRef<reference::Tensor> actual, double tolerance);

} // namespace tmc::test

#endif // TMC_TEST_UNIT_REFERENCE_HARNESS_H
