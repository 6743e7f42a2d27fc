//===- Kernels.h - every kernel class that isn't generated ------*- C++ -*-===//
#ifndef TMC_RUNTIME_KERNELS_KERNELS_H
#define TMC_RUNTIME_KERNELS_KERNELS_H

#include "runtime/kernels/Adafactor.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/BatchStatistics.h"
#include "runtime/kernels/Conv.h"
#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/CudnnAttention.h"
#include "runtime/kernels/Dequantize.h"
#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/MatmulCodes.h"
#include "runtime/kernels/Movement.h"
#include "runtime/kernels/OnHost.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Pool.h"
#include "runtime/kernels/Quantize.h"
#include "runtime/kernels/Ranks.h"
#include "runtime/kernels/RotaryEmbedding.h"
#include "runtime/kernels/ShardedEmbedding.h"

#endif // TMC_RUNTIME_KERNELS_KERNELS_H
