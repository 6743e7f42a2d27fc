// Recurrent.h - recurrent layers: simple ones, GRU and LSTM.
//
// The products with the inputs of all steps are one product; each step is one
// product with the state, and its gates are one kernel. The steps are unrolled,
// so a plan may recompute each of them separately.

#ifndef TMC_FRONTENDS_COMMON_OPS_RECURRENT_H
#define TMC_FRONTENDS_COMMON_OPS_RECURRENT_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

/// One layer in one direction.
struct Recurrence {
  enum Kind { Tanh, Relu, Gru, Lstm } kind = Tanh;
  Val x;                ///< [T, B, I]
  Val wInput, wState;   ///< [gates * H, I] and [gates * H, H]
  Val bInput, bState;   ///< [gates * H], or absent.
  Val state, cell;      ///< [B, H]; absent ones are zeros.
  Val peepholes;        ///< [3 * H] of an LSTM's i, o, f; or absent.
  bool reverse = false; ///< From the last step to the first.
  /// The first row of each gate, in units of H: for an LSTM i, f, g, o, for a
  /// GRU r, z, n.
  Dims gates;
  /// A GRU's reset gate multiplies the product with the state, not the state.
  bool resetAfter = true;
};

struct Recurrent {
  Val outputs;     ///< [T, B, H]
  Val state, cell; ///< [B, H], after the last step.
};
mlir::FailureOr<Recurrent> recur(Site &s, const Recurrence &r);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_RECURRENT_H
