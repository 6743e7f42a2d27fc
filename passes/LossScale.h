// LossScale.h - the loss times a number, so that 16-bit gradients don't vanish.
//
// fp16 has no numbers below 2^-24: small gradients would become zeros. So the
// loss's gradient begins as a scale, which multiplies all other gradients, and
// updates divide by it. If a scaled gradient is too large for fp16, the step
// leaves parameters and moments as they are. The scale is state of the step:
//
//     none
//     1024                  stays
//     dynamic               halved at an overflow, doubled after 2000 steps
//                           without one, at first 65536
//     dynamic(start=65536,growth=2,backoff=0.5,interval=2000)
//
// Dynamic scales follow PyTorch's GradScaler, with its defaults
// (torch.amp.GradScaler). A step then counts its updates itself: skipped ones
// don't count.

#ifndef TMC_PASSES_LOSSSCALE_H
#define TMC_PASSES_LOSSSCALE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"

#include <array>
#include <optional>

namespace tmc {

struct LossScale {
  double start = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000; // 0: the scale is constant.

  /// The scale of `text`, nothing for "none" and "", or a message.
  static llvm::Expected<std::optional<LossScale>> parse(llvm::StringRef text);

  /// A state of the step beside the optimizer's.
  struct State {
    const char *name;
    mlir::RankedTensorType type;
    mlir::TypedAttr init;
  };
  /// The scale itself; the finite steps since it moved; the updates so far.
  std::array<State, 3> states(mlir::Builder &b) const;

  struct Step {
    mlir::Value number;               // This update's, or 0.
    std::array<mlir::Value, 3> moved; // The states' new values.
  };
  /// Builds the new states from the norm of the gradients.
  Step build(mlir::OpBuilder &b, mlir::Location loc, mlir::Value norm,
             llvm::ArrayRef<mlir::Value> states) const;
};

/// Emits errors for `ops`, whose fp16 gradients need a scaled loss.
llvm::LogicalResult emitUnscaled(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace tmc

#endif // TMC_PASSES_LOSSSCALE_H
