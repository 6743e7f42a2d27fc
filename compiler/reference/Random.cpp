// Random.cpp - Philox, and nn.random on top of it.

#include "compiler/reference/Interpreter.h"
#include "compiler/reference/Philox.h"
#include "dialects/nn/NN.h"

#include <cmath>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

std::array<uint32_t, 4>
tmc::reference::philox4x32(std::array<uint32_t, 4> counter,
                           std::array<uint32_t, 2> key) {
  // Multipliers and Weyl increments of the paper.
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = kMultiplier0 * counter[0], p1 = kMultiplier1 * counter[2];
    counter = {uint32_t(p1 >> 32) ^ counter[1] ^ key[0], uint32_t(p1),
               uint32_t(p0 >> 32) ^ counter[3] ^ key[1], uint32_t(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double tmc::reference::uniform(int64_t seed, int64_t step, int64_t stream,
                               int64_t index) {
  uint64_t block = uint64_t(index) / 4;
  std::array<uint32_t, 4> words =
      philox4x32({uint32_t(block), uint32_t(block >> 32), uint32_t(stream),
                  uint32_t(step)},
                 {uint32_t(seed), uint32_t(uint64_t(seed) >> 32)});
  return std::ldexp(double(words[uint64_t(index) % 4] >> 8), -24);
}

void tmc::reference::addRandom(OpTable &table) {
  table.add<RandomOp>([](RandomOp op, OpCall &call) {
    const Tensor &seed = call.in(op.getSeed());
    const Tensor &samples = call.in(op.getSamples());
    Tensor &out = call.out(0);
    int64_t perSample = out.size() / samples.size();
    for (int64_t i = 0; i < out.size(); ++i)
      out.floats[i] =
          uniform(seed.ints[0], seed.ints[1], op.getStream(),
                  samples.ints[i / perSample] * perSample + i % perSample);
    return success();
  });
}
