//===- ShardedEmbedding.h - rows of a table kept as shards ------*- C++ -*-===//
//
// Each rank of a group keeps a shard of a table [vocabulary, channels]: a piece
// of its elements in memory order, which may end within a row. A batch reads
// few of the rows, so the ranks exchange rows and not the table. They gather
// the indices of all ranks first.
//
//     lookup    EmbeddingPieces makes each rank's rows, as far as they lie in
//               this rank's shard. An exchange brings a rank the pieces of its
//               rows, and SumPieces puts them together.
//     gradient  The ranks gather their gradients of rows, and
//               EmbeddingGradShard adds to this rank's shard of the table.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_SHARDEDEMBEDDING_H
#define TMC_RUNTIME_KERNELS_SHARDEDEMBEDDING_H

#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Mesh.h"

namespace tmc {

struct ShardedEmbeddingParams {
  DType type;
  DType indexType; // I32, I64
  int64_t vocabulary, channels;
  Axis axis;
  int64_t ranks;
  int64_t rows;  // Of one rank.
  int64_t shard; // Elements of a shard of the table, padding included.
  int64_t piece; // Elements of a rank's rows in a result, padding included.
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, indexType, vocabulary, channels, axis, ranks, rows, shard,
             piece)
};

/// ins: this rank's shard [shard], the indices of all ranks [ranks, rows].
/// outs: pieces [ranks, piece]: piece r has rank r's rows, and -0 in the place
/// of what lies in other shards, so that the sum of the ranks' pieces has the
/// bits of the table. Its padding is 0.
///
/// A bad index of this rank's is the step's error (IndexFault). A bad index of
/// any rank reads row 0.
class EmbeddingPieces : public Kernel {
public:
  using Params = ShardedEmbeddingParams;
  static constexpr bool takes(const Params &params, Backend) {
    return params.type == DType::F32 || params.type == DType::BF16 ||
           params.type == DType::F16;
  }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(EmbeddingPieces)
};

/// ins: the indices of all ranks [ranks, rows], dout [ranks, rows, channels] (a
/// third in is ignored). outs: this rank's shard of the gradient of the table
/// [shard]. `accumulate` adds to it, else it is zeroed first. Rows are added in
/// order, for any number of threads. Bad indices add nothing.
class EmbeddingGradShard : public Kernel {
public:
  using Params = ShardedEmbeddingParams;
  static constexpr bool takes(const Params &params, Backend) {
    return params.type == DType::F32;
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return EmbeddingGrad::scratchCap({.type = params.type,
                                      .indexType = params.indexType,
                                      .vocabulary = params.vocabulary,
                                      .channels = params.channels,
                                      .rows = params.ranks * params.rows},
                                     backend);
  }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return 2 + 3 * sortPasses(params.vocabulary + 1);
  }
  TMC_KERNEL(EmbeddingGradShard)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_SHARDEDEMBEDDING_H
