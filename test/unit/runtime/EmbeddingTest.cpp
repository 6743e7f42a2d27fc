//===- EmbeddingTest.cpp - rows of a table and their gradient -------------===//

#include "Testing.h"

#include "runtime/kernels/Embedding.h"

using namespace tmc;
using namespace tmc::test;

namespace {
const EmbeddingParams kParams{.type = DType::F32,
                              .indexType = DType::I64,
                              .vocabulary = 50,
                              .channels = 300,
                              .rows = 200,
                              .scratchBytes = 0};
}

TEST(Embedding, CopiesRows) {
  Floats table = randomFloats(50 * 300, 1);
  Longs index = randomLongs(200, 50, 2);
  Floats out(200 * 300);
  runKernel<Embedding>(2, kParams, {table, index}, {out});
  for (int64_t r = 0; r < 200; ++r)
    for (int64_t c = 0; c < 300; ++c)
      ASSERT_EQ(out[r * 300 + c], table[index[r] * 300 + c]);
}

TEST(Embedding, GradientAddsInOrder) {
  Longs index = randomLongs(200, 50, 3);
  Floats dout = randomFloats(200 * 300, 4);
  for (bool accumulate : {false, true}) {
    Floats table = randomFloats(50 * 300, 5);
    // In f32 and in the order of the rows: the bits must agree.
    Floats want(table);
    if (!accumulate)
      for (int64_t i = 0; i < want.size(); ++i)
        want[i] = 0;
    for (int64_t r = 0; r < 200; ++r)
      for (int64_t c = 0; c < 300; ++c)
        want[index[r] * 300 + c] += dout[r * 300 + c];
    Floats start(table);
    runKernel<EmbeddingGrad>(1, kParams, {index, dout}, {table}, accumulate);
    EXPECT_TRUE(table.sameBits(want));
    runKernel<EmbeddingGrad>(2, kParams, {index, dout}, {start}, accumulate);
    EXPECT_TRUE(start.sameBits(want));
  }
}

TEST(Embedding, ReportsAnIndexOutOfRange) {
  auto device = makeDevice(2);
  Embedding kernel(kParams);
  ASSERT_TRUE(kernel.prepare(*device));
  Floats table = randomFloats(50 * 300, 1), out(200 * 300);
  Longs index = randomLongs(200, 50, 2);
  index[17] = 50;
  index[30] = -1;
  kernel.run(device->compute(), {table, index}, {out}, nullptr);
  ASSERT_TRUE(device->synchronize());
  const IndexFault &fault = device->compute().fault;
  EXPECT_TRUE(fault.set);
  EXPECT_EQ(fault.row, 17);
  EXPECT_EQ(fault.value, 50);
  EXPECT_EQ(fault.limit, 50);
}
