// Statistics.h - a batch norm in simpler ops, once its statistics are known.

#ifndef TMC_DIALECTS_NN_STATISTICS_H
#define TMC_DIALECTS_NN_STATISTICS_H

#include "dialects/nn/NN.h"

#include "mlir/IR/Builders.h"

namespace tmc::nn {

/// The input of a batch norm, and the vectors of its channels. All is computed
/// in the vectors' type, which is wider than an input of 16 bits.
struct Channels {
  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value input;
  mlir::RankedTensorType type; // The input's, widened.
  int64_t dim;                 // The channels' dimension.

  /// `OpTy`: BatchNormOp or BatchNormGradOp.
  template <typename OpTy>
  Channels(mlir::OpBuilder &b, OpTy op)
      : Channels(b, op.getLoc(), op.getInput(), op.getScale(),
                 op.getChannelsLast()) {}
  Channels(mlir::OpBuilder &b, mlir::Location loc, mlir::Value input,
           mlir::Value scale, bool channelsLast);

  mlir::Value widened(mlir::Value x) const;
  /// `x` in the input's type.
  mlir::Value rounded(mlir::Value x) const;
  mlir::Value along(mlir::Value vector) const;
  /// The vector of sums over all other dimensions.
  mlir::Value sum(mlir::Value x) const;
  /// The number of values in a channel's statistics. A single value has no
  /// variance.
  int64_t valuesPerChannel() const;

  /// (input - mean) * rstd
  mlir::Value normalized(mlir::Value mean, mlir::Value rstd) const;
  /// The norm's result: (input - mean) * rstd * scale + shift, rounded.
  mlir::Value result(mlir::Value mean, mlir::Value rstd, mlir::Value scale,
                     mlir::Value shift) const;
};

/// The same of a norm by itself.
int64_t valuesPerChannel(BatchNormOp op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_STATISTICS_H
