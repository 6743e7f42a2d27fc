// LinearAttention.h - attention that keeps its past as a matrix of fixed size.
//
// A step decays the state, writes its key and value into it, and reads it with
// its query:
//
//   S = exp(g) S;   v = beta (v - S'k), if it corrects;   S = S + k v';
//   o = S'q
//
// Steps are unrolled, as in Recurrent.h.

#ifndef TMC_FRONTENDS_COMMON_OPS_LINEARATTENTION_H
#define TMC_FRONTENDS_COMMON_OPS_LINEARATTENTION_H

#include "frontends/common/Site.h"

namespace tmc::frontend {

struct LinearAttention {
  Val query, key,
      value; ///< [B, T, heads * size]; keys and values have `groups`.
  Val state; ///< [B, groups, size, size of values], or absent.
  Val decay; ///< [B, T, groups] or [B, T, groups * size], logarithms; or
             ///< absent.
  Val beta;  ///< [B, T, groups] or [B, T, 1]; absent: no correction.
  int64_t heads = 1, groups = 1;
  double scale = 1;
};

struct LinearAttended {
  Val out;   ///< [B, T, heads * size of values]
  Val state; ///< After the last step.
};
mlir::FailureOr<LinearAttended> attendLinearly(Site &s,
                                               const LinearAttention &a);

} // namespace tmc::frontend

#endif // TMC_FRONTENDS_COMMON_OPS_LINEARATTENTION_H
