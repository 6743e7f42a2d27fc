// NN.td - the nn dialect: the computation. One file per family of ops, beside
// the .cpp that implements it.

#ifndef TMC_DIALECTS_NN_NN_TD
#define TMC_DIALECTS_NN_NN_TD

include "dialects/nn/Attention.td"
include "dialects/nn/Base.td"
include "dialects/nn/Conv.td"
include "dialects/nn/Frozen.td"
include "dialects/nn/Fused.td"
include "dialects/nn/Linear.td"
include "dialects/nn/Loss.td"
include "dialects/nn/Norm.td"
include "dialects/nn/Quantize.td"
include "dialects/nn/Random.td"
include "dialects/nn/Ranks.td"
include "dialects/nn/Rotary.td"
include "dialects/nn/Shape.td"

#endif // TMC_DIALECTS_NN_NN_TD
