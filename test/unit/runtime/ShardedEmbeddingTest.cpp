//===- ShardedEmbeddingTest.cpp - rows of tables kept as shards -----------===//

#include "RanksTesting.h"
#include "Testing.h"

#include "runtime/kernels/ShardedEmbedding.h"

#include <cmath>

using namespace tmc;
using namespace tmc::test;

namespace {

/// A table whose shards begin within rows.
struct Table {
  static constexpr int64_t kVocabulary = 100, kChannels = 300, kRows = 37;
  int ranks;

  ShardedEmbeddingParams params(DType type) const {
    const int64_t elements = kVocabulary * kChannels;
    return {.type = type,
            .indexType = DType::I64,
            .vocabulary = kVocabulary,
            .channels = kChannels,
            .axis = Axis::Data,
            .ranks = ranks,
            .rows = kRows,
            .shard = ((elements + ranks - 1) / ranks + 4095) / 4096 * 4096,
            .piece = (kRows * kChannels + 4095) / 4096 * 4096};
  }
};

/// The shard of `whole` that rank `rank` keeps, padded with zeros.
template <typename T>
Buffer<T> shardOf(const Buffer<T> &whole, int64_t shard, int rank) {
  Buffer<T> its(shard);
  for (int64_t i = 0; i < shard; ++i)
    its[i] = rank * shard + i < whole.size() ? whole[rank * shard + i] : T();
  return its;
}

/// Runs a kernel as rank `rank` of `ranks`.
template <typename K>
void runAs(int rank, int ranks, const ShardedEmbeddingParams &params, In ins,
           Out outs, bool accumulate = false) {
  Room room(ranks);
  Threads peers(room, rank);
  runOn<K>(deviceWith(&peers), params, ins, outs, accumulate);
}

/// The rows that each rank finds are the table's, to the bit.
template <typename T> void looksUp(int ranks, DType type, Buffer<T> table) {
  const ShardedEmbeddingParams p = Table{ranks}.params(type);
  const Longs index = randomLongs(ranks * p.rows, p.vocabulary, 2);
  // Piece r of all ranks, as an exchange brings them to rank r.
  std::vector<Buffer<T>> got;
  for (int r = 0; r < ranks; ++r)
    got.emplace_back(ranks * p.piece);
  for (int rank = 0; rank < ranks; ++rank) {
    const Buffer<T> shard = shardOf(table, p.shard, rank);
    Buffer<T> made(ranks * p.piece);
    runAs<EmbeddingPieces>(rank, ranks, p, {shard, index}, {made});
    for (int64_t i = 0; i < ranks * p.piece; ++i)
      got[size_t(i / p.piece)][rank * p.piece + i % p.piece] = made[i];
  }
  for (int rank = 0; rank < ranks; ++rank) {
    Buffer<T> out(p.piece);
    runKernel<SumPieces>(1, {type, ranks, p.piece}, {got[size_t(rank)]}, {out});
    for (int64_t i = 0; i < p.piece; ++i) {
      T want = T();
      if (i < p.rows * p.channels)
        want = table[index[rank * p.rows + i / p.channels] * p.channels +
                     i % p.channels];
      ASSERT_EQ(std::memcmp(&out[i], &want, sizeof(T)), 0)
          << i << " of rank " << rank << " of " << ranks;
    }
  }
}

} // namespace

TEST(ShardedEmbedding, LooksUpTheBitsOfTheTable) {
  const int64_t elements = Table::kVocabulary * Table::kChannels;
  Floats wide = randomFloats(elements, 1);
  Buffer<uint16_t> narrow(elements);
  for (int64_t i = 0; i < elements; ++i)
    narrow[i] = uint16_t(0x3f80 + i % 128);
  for (int64_t i = 0; i < elements; i += 3) {
    wide[i] = i % 2 ? -0.0f : 0.0f;
    narrow[i] = i % 2 ? 0x8000 : 0;
  }
  wide[5] = INFINITY;
  wide[7] = 1e-42f;
  for (int ranks : {1, 2, 3, 8}) {
    looksUp(ranks, DType::F32, wide);
    looksUp(ranks, DType::BF16, narrow);
    looksUp(ranks, DType::F16, narrow);
  }
}

TEST(ShardedEmbedding, GradientsAreShardsOfTheWholes) {
  for (int ranks : {1, 2, 3, 8})
    for (bool accumulate : {false, true}) {
      const ShardedEmbeddingParams p = Table{ranks}.params(DType::F32);
      const int64_t rows = ranks * p.rows;
      const Longs index = randomLongs(rows, p.vocabulary, 3);
      const Floats dout = randomFloats(rows * p.channels, 4);
      Floats whole = randomFloats(p.vocabulary * p.channels, 5);
      const Floats before(whole);
      runKernel<EmbeddingGrad>(2,
                               {.type = DType::F32,
                                .indexType = DType::I64,
                                .vocabulary = p.vocabulary,
                                .channels = p.channels,
                                .rows = rows},
                               {index, dout}, {whole}, accumulate);
      for (int rank = 0; rank < ranks; ++rank) {
        Floats out = shardOf(before, p.shard, rank);
        runAs<EmbeddingGradShard>(rank, ranks, p, {index, dout}, {out},
                                  accumulate);
        EXPECT_TRUE(out.sameBits(shardOf(whole, p.shard, rank)))
            << rank << " of " << ranks;
      }
    }
}

// The rank whose index it is reports it. All read row 0.
TEST(ShardedEmbedding, ReportsAnIndexOfItsOwn) {
  const ShardedEmbeddingParams p = Table{2}.params(DType::F32);
  Longs index = randomLongs(2 * p.rows, p.vocabulary, 2);
  index[p.rows + 17] = p.vocabulary;
  index[p.rows + 30] = -1;
  const Floats table = randomFloats(p.vocabulary * p.channels, 1);
  for (int rank = 0; rank < 2; ++rank) {
    Room room(2);
    Threads peers(room, rank);
    auto device = deviceWith(&peers);
    EmbeddingPieces look(p);
    ASSERT_TRUE(look.prepare(*device));
    const Floats shard = shardOf(table, p.shard, rank);
    Floats made(2 * p.piece);
    look.run(device->compute(), {shard, index}, {made}, nullptr);
    const bool isOwn = rank == 1;
    EXPECT_TRUE(device->synchronize());
    const IndexFault &fault = device->compute().fault;
    EXPECT_EQ(fault.set, isOwn);
    if (isOwn) {
      EXPECT_EQ(fault.row, 17);
      EXPECT_EQ(fault.value, p.vocabulary);
      continue;
    }
    for (int64_t c = 0; c < p.channels; ++c)
      EXPECT_EQ(made[p.piece + 17 * p.channels + c], table[c]);
  }
}

// Nothing is added for a bad index, whoever's it is.
TEST(ShardedEmbedding, AddsNothingForABadIndex) {
  const ShardedEmbeddingParams p = Table{2}.params(DType::F32);
  Longs index(2 * p.rows);
  for (int64_t i = 0; i < 2 * p.rows; ++i)
    index[i] = i % 2 ? -1 : p.vocabulary;
  const Floats dout = randomFloats(2 * p.rows * p.channels, 4);
  for (int rank = 0; rank < 2; ++rank) {
    Floats grad = randomFloats(p.shard, 6);
    const Floats before(grad);
    runAs<EmbeddingGradShard>(rank, 2, p, {index, dout}, {grad}, true);
    EXPECT_TRUE(grad.sameBits(before));
  }
}

TEST(ShardedEmbedding, NeedsItsRanks) {
  EmbeddingPieces look(Table{2}.params(DType::F32));
  EmbeddingGradShard add(Table{2}.params(DType::F32));
  auto device = deviceWith(nullptr);
  EXPECT_EQ(look.prepare(*device).code(), Code::Usage);
  EXPECT_EQ(add.prepare(*device).code(), Code::Usage);
}
