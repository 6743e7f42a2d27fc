//===- ExactChunksTest.cpp - a loss in chunks has the whole one's bits ----===//
//
// The cpu's promise alone: cuBLASLt's products tell nobody how they add.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/FusedShape.h"
#include "runtime/kernels/Matmul.h"

using namespace tmc;
using namespace tmc::test;

/// Losses go in such chunks without being asked: nothing may tell.
TEST(LinearCrossEntropy, ChunksThatEndWhereTheProductDoesChangeNoBit) {
  // Columns to sum in one tile of 2048, and in three; the last chunk is short.
  const int64_t rows = 2 * kExactChunkRows + 88, channels = 40;
  for (int64_t vocabulary : {70, 5000})
    for (int threads : {1, 2}) {
      Floats x = randomFloats(rows * channels, 1),
             w = randomFloats(vocabulary * channels, 2),
             bias = randomFloats(vocabulary, 4);
      Longs labels = randomLongs(rows, vocabulary, 3);
      labels[300] = -100;
      const float weight = 0.05f, scale = 0.1f;

      Floats logits(rows * vocabulary), lse(rows), dx(rows * channels),
          dw(vocabulary * channels), db(vocabulary);
      float loss = 0;
      auto product = [&](int64_t m, int64_t n, int64_t k, bool transposeLhs,
                         bool transposeRhs, bool hasBias) {
        return Matmul::Params{.lhs = DType::F32,
                              .rhs = DType::F32,
                              .out = DType::F32,
                              .batch = 1,
                              .m = m,
                              .n = n,
                              .k = k,
                              .transposeLhs = transposeLhs,
                              .transposeRhs = transposeRhs,
                              .bias = hasBias,
                              .tf32 = false,
                              .scratchBytes = 0};
      };
      const CrossEntropyParams whole{.type = DType::F32,
                                     .labelType = DType::I64,
                                     .rows = rows,
                                     .vocabulary = vocabulary,
                                     .ignoreIndex = -100,
                                     .scratchBytes = 0};
      runKernel<Matmul>(threads,
                        product(rows, vocabulary, channels, false, true, true),
                        {x, w, bias}, {logits});
      runKernel<CrossEntropy>(threads, whole, {logits, labels, &weight},
                              {&loss, lse});
      runKernel<CrossEntropyGrad>(threads, whole, {logits, labels, lse, &scale},
                                  {logits});
      runKernel<Matmul>(
          threads, product(rows, channels, vocabulary, false, false, false),
          {logits, w, nullptr}, {dx});
      runKernel<Matmul>(threads,
                        product(vocabulary, channels, rows, true, false, false),
                        {logits, x, nullptr}, {dw});
      // As a fused kernel sums columns.
      const FusedTiling tiling = tilingOf(
          {.rows = rows, .cols = vocabulary, .columnSums = 1}, Backend::Cpu);
      for (int64_t v = 0; v < vocabulary; ++v)
        for (int64_t t = 0; t < tiling.rowTiles; ++t) {
          float partial = 0;
          for (int64_t r = t * tiling.rowsPerTile;
               r < std::min(rows, (t + 1) * tiling.rowsPerTile); ++r)
            partial += logits[r * vocabulary + v];
          db[v] = t ? db[v] + partial : partial;
        }

      const LinearCrossEntropyParams chunked{.type = DType::F32,
                                             .table = DType::F32,
                                             .labelType = DType::I64,
                                             .rows = rows,
                                             .channels = channels,
                                             .vocabulary = vocabulary,
                                             .chunkRows = kExactChunkRows,
                                             .ignoreIndex = -100,
                                             .bias = true,
                                             .tf32 = false,
                                             .scratchBytes = 0};
      Floats dx2(rows * channels), dw2(vocabulary * channels), db2(vocabulary);
      float loss2 = 0;
      runKernel<LinearCrossEntropyWithGrad>(
          threads, chunked, {x, w, labels, &weight, &scale, bias},
          {&loss2, dx2, dw2, db2});
      EXPECT_EQ(loss2, loss);
      EXPECT_TRUE(dx2.sameBits(dx)) << "dx of " << vocabulary;
      EXPECT_TRUE(dw2.sameBits(dw)) << "dw of " << vocabulary;
      EXPECT_TRUE(db2.sameBits(db)) << "dbias of " << vocabulary;

      // And added to what was there.
      runKernel<Matmul>(threads,
                        product(vocabulary, channels, rows, true, false, false),
                        {logits, x, nullptr}, {dw}, /*accumulate=*/true);
      runKernel<LinearCrossEntropyWithGrad>(
          threads, chunked, {x, w, labels, &weight, &scale, bias},
          {&loss2, dx2, dw2, db2}, /*accumulate=*/true);
      EXPECT_EQ(loss2, loss);
      EXPECT_TRUE(dx2.sameBits(dx)) << "dx of " << vocabulary;
      EXPECT_TRUE(dw2.sameBits(dw)) << "dw added to, of " << vocabulary;
    }
}
