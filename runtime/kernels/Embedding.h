//===- Embedding.h - rows of a table by index -------------------*- C++ -*-===//
//
// out[r, :] = table[index[r], :], and its gradient. An index outside the table
// becomes the step's error (IndexFault) and reads row 0.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_EMBEDDING_H
#define TMC_RUNTIME_KERNELS_EMBEDDING_H

#include "runtime/kernels/Kernel.h"

namespace tmc {

struct EmbeddingParams {
  DType type;
  DType indexType; // I32, I64
  int64_t vocabulary, channels, rows;
  int64_t scratchBytes = 0;

  TMC_FIELDS(type, indexType, vocabulary, channels, rows)
};

/// ins: table [vocabulary, channels], index [rows]. outs: out [rows, channels].
class Embedding : public Kernel {
public:
  using Params = EmbeddingParams;
  static constexpr bool takes(const Params &, Backend) { return true; }
  static int64_t scratchCap(const Params &, Backend) { return 0; }
  TMC_KERNEL(Embedding)
};

/// Bits of a key that one pass of cuda's sort of indices takes, and the passes
/// that sort keys in [0, limit).
constexpr int kSortDigitBits = 8;
constexpr int sortPasses(int64_t limit) {
  int passes = 1;
  while (passes < 4 && (limit - 1) >> (passes * kSortDigitBits) > 0)
    ++passes;
  return passes;
}

/// ins: index [rows], dout [rows, channels] (a third in is ignored). outs:
/// dtable [vocabulary, channels]. `accumulate` adds to it, else it is zeroed
/// first. Rows are added in order, for any number of threads.
class EmbeddingGrad : public Kernel {
public:
  using Params = EmbeddingParams;
  /// cuda sorts the indices: pairs of (index, row), twice.
  static constexpr bool takes(const Params &params, Backend) {
    return params.type == DType::F32;
  }
  static int64_t scratchCap(const Params &params, Backend backend) {
    return backend == Backend::Cuda ? alignScratch(params.rows * 32) + (1 << 20)
                                    : 0;
  }
  static int64_t cudaLaunches(const Params &params, Wanted) {
    return 2 + 3 * sortPasses(params.vocabulary + 1);
  }
  TMC_KERNEL(EmbeddingGrad)
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_EMBEDDING_H
