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

/// The rows that each rank finds are the table's, to the bit.
template <typename T> void looksUp(int ranks, DType type, Buffer<T> table) {
  const Table its{ranks};
  const ShardedEmbeddingParams p = its.params(type);
  const Longs index = randomLongs(ranks * p.rows, p.vocabulary, 2);
  const RankPiecesParams pieces{.axis = Axis::Data,
                                .ranks = ranks,
                                .bytes = p.piece * int64_t(sizeof(T)),
                                .total = ranks * p.piece * int64_t(sizeof(T))};
  onRanks(ranks, [&](Threads &peers, int rank) {
    auto device = deviceWith(&peers);
    EmbeddingPieces look(p);
    ExchangeRanks exchange(pieces);
    SumPieces sum({type, ranks, p.piece});
    ASSERT_TRUE(look.prepare(*device) && exchange.prepare(*device) &&
                sum.prepare(*device));
    const Buffer<T> shard = shardOf(table, p.shard, rank);
    Buffer<T> made(ranks * p.piece), got(ranks * p.piece), out(p.piece);
    look.run(device->compute(), {shard, index}, {made}, nullptr, false);
    exchange.run(device->compute(), {made}, {got}, nullptr, false);
    sum.run(device->compute(), {got}, {out}, nullptr, false);
    EXPECT_TRUE(device->synchronize());
    EXPECT_FALSE(device->compute().fault.set);
    for (int64_t i = 0; i < p.piece; ++i) {
      T want = T();
      if (i < p.rows * p.channels)
        want = table[index[rank * p.rows + i / p.channels] * p.channels +
                     i % p.channels];
      ASSERT_EQ(std::memcmp(&out[i], &want, sizeof(T)), 0)
          << i << " of rank " << rank << " of " << ranks;
    }
  });
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
      onRanks(ranks, [&](Threads &peers, int rank) {
        auto device = deviceWith(&peers);
        EmbeddingGradShard kernel(p);
        ASSERT_TRUE(kernel.prepare(*device));
        Floats out = shardOf(before, p.shard, rank);
        kernel.run(device->compute(), {index, dout}, {out}, nullptr,
                   accumulate);
        EXPECT_TRUE(device->synchronize());
        EXPECT_TRUE(out.sameBits(shardOf(whole, p.shard, rank)))
            << rank << " of " << ranks;
      });
    }
}

// The rank whose index it is reports it. All read row 0.
TEST(ShardedEmbedding, ReportsAnIndexOfItsOwn) {
  const ShardedEmbeddingParams p = Table{2}.params(DType::F32);
  Longs index = randomLongs(2 * p.rows, p.vocabulary, 2);
  index[p.rows + 17] = p.vocabulary;
  index[p.rows + 30] = -1;
  const Floats table = randomFloats(p.vocabulary * p.channels, 1);
  onRanks(2, [&](Threads &peers, int rank) {
    auto device = deviceWith(&peers);
    EmbeddingPieces look(p);
    EmbeddingGradShard add(p);
    ASSERT_TRUE(look.prepare(*device) && add.prepare(*device));
    const Floats shard = shardOf(table, p.shard, rank);
    const Floats dout = randomFloats(2 * p.rows * p.channels, 4);
    Floats made(2 * p.piece), grad(p.shard);
    look.run(device->compute(), {shard, index}, {made}, nullptr, false);
    add.run(device->compute(), {index, dout}, {grad}, nullptr, false);
    EXPECT_TRUE(device->synchronize());
    const IndexFault &fault = device->compute().fault;
    EXPECT_EQ(fault.set, rank == 1);
    if (rank == 1) {
      EXPECT_EQ(fault.row, 17);
      EXPECT_EQ(fault.value, p.vocabulary);
      return;
    }
    for (int64_t c = 0; c < p.channels; ++c)
      EXPECT_EQ(made[p.piece + 17 * p.channels + c], table[c]);
  });
}

TEST(ShardedEmbedding, NeedsItsRanks) {
  EmbeddingPieces look(Table{2}.params(DType::F32));
  EmbeddingGradShard add(Table{2}.params(DType::F32));
  auto device = deviceWith(nullptr);
  EXPECT_EQ(look.prepare(*device).code(), Code::Usage);
  EXPECT_EQ(add.prepare(*device).code(), Code::Usage);
}
