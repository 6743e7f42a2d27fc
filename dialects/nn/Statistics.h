// Statistics.h - what a batch norm's statistics are of.

#ifndef TMC_DIALECTS_NN_STATISTICS_H
#define TMC_DIALECTS_NN_STATISTICS_H

#include "dialects/nn/NN.h"

namespace tmc::nn {

/// Of how many values a channel's statistics are. One has no variance.
int64_t valuesPerChannel(BatchNormOp op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_STATISTICS_H
