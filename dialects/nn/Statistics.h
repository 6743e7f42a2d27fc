// Statistics.h - the number of values in a batch norm's statistics.

#ifndef TMC_DIALECTS_NN_STATISTICS_H
#define TMC_DIALECTS_NN_STATISTICS_H

#include "dialects/nn/NN.h"

namespace tmc::nn {

/// The number of values in a channel's statistics. A single value has no
/// variance.
int64_t valuesPerChannel(BatchNormOp op);

} // namespace tmc::nn

#endif // TMC_DIALECTS_NN_STATISTICS_H
