//===- OnHostTest.cpp - updates on the host give the device's bits --------===//

#include "Testing.h"

#include "runtime/cpu/Parallel.h"
#include "runtime/kernels/OnHost.h"
#include "runtime/kernels/Storage.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace tmc;
using namespace tmc::test;

namespace {

using Bytes = Buffer<unsigned char>;

/// Finite numbers of all sizes, and a few that aren't, as `type` keeps them.
Bytes drawn(DType type, int64_t count, unsigned seed, double scale,
            bool notFinite = false) {
  Bytes bytes(count * sizeOf(type));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) {
    float value = float(scale) * normal(random) *
                  std::exp2(float(int(random() % 16) - 8));
    if (notFinite && random() % 97 == 0)
      value = random() % 2 ? INFINITY : NAN;
    if (type == DType::F32) {
      std::memcpy(bytes.get() + i * 4, &value, 4);
    } else {
      const uint16_t bits = type == DType::BF16 ? narrow<bf16>(value).bits
                                                : narrow<f16>(value).bits;
      std::memcpy(bytes.get() + i * 2, &bits, 2);
    }
  }
  return bytes;
}

struct Scalars {
  test::Floats rate = test::Floats(1), clip = test::Floats(1);
  test::Longs step = test::Longs(1);
  Scalars(int64_t at, float scale) {
    rate[0] = 3e-3f;
    clip[0] = scale;
    step[0] = at;
  }
};

/// Some steps of a class on both, from the same bytes: `states` are updated in
/// place, then come a sum of squares and a copy.
template <typename K>
void compare(typename K::Params params, std::vector<Bytes> states, DType grad,
             bool notFinite, const char *what) {
  std::vector<Bytes> mine;
  for (const Bytes &state : states) {
    Bytes same(int64_t(state.size()));
    std::memcpy(same.get(), state.get(), state.size());
    mine.push_back(std::move(same));
  }
  auto device = makeDevice(1);
  params.scratchBytes = K::scratchCap(params, kBackend);
  K onDevice(params);
  params.scratchBytes = OnHost<K>::scratchCap(params, kBackend);
  OnHost<K> onHost(params);
  ASSERT_TRUE(onDevice.prepare(*device));
  ASSERT_TRUE(onHost.prepare(*device));
  ThreadPool pool(2);
  Stream host(&pool);
  Bytes scratch(params.scratchBytes), hostScratch(params.scratchBytes);
  const int64_t copyBytes = params.count * 2;
  for (int step = 1; step <= 3; ++step) {
    Scalars scalars(notFinite && step == 2 ? 0 : step, 0.7f);
    const Bytes g = drawn(grad, params.count, unsigned(step), 0.1, notFinite);
    test::Floats squares(2);
    squares[0] = squares[1] = -1;
    Bytes copy(copyBytes), hostCopy(copyBytes);
    std::memset(copy.get(), 1, size_t(copyBytes));
    std::memset(hostCopy.get(), 1, size_t(copyBytes));
    auto run = [&](Kernel &kernel, Stream &stream, std::vector<Bytes> &s,
                   float *sum, unsigned char *narrow, void *itsScratch) {
      void *noCopy = params.copy == DType::F32 ? nullptr : narrow;
      if (s.size() == 5)
        kernel.run(stream,
                   {s[0].get(), g.get(), s[1].get(), s[2].get(), s[3].get(),
                    s[4].get(), scalars.rate, scalars.step, scalars.clip},
                   {s[0].get(), s[1].get(), s[2].get(), s[3].get(), s[4].get(),
                    sum, noCopy},
                   itsScratch);
      else if (s.size() == 3)
        kernel.run(stream,
                   {s[0].get(), g.get(), s[1].get(), s[2].get(), scalars.rate,
                    scalars.step, scalars.clip},
                   {s[0].get(), s[1].get(), s[2].get(), sum, noCopy},
                   itsScratch);
      else
        kernel.run(stream,
                   {s[0].get(), g.get(), s[1].get(), scalars.rate, scalars.step,
                    scalars.clip},
                   {s[0].get(), s[1].get(), sum, noCopy}, itsScratch);
    };
    run(onDevice, device->compute(), states, squares, copy.get(),
        scratch.get());
    ASSERT_TRUE(device->synchronize());
    run(onHost, host, mine, squares + 1, hostCopy.get(), hostScratch.get());
    // A NaN's bits are each processor's own.
    EXPECT_TRUE(std::isnan(squares[0]) ? std::isnan(squares[1])
                                       : !std::memcmp(squares, squares + 1, 4))
        << what << ": " << squares[0] << " and " << squares[1];
    for (size_t i = 0; i < states.size(); ++i)
      ASSERT_EQ(std::memcmp(states[i].get(), mine[i].get(), mine[i].size()), 0)
          << what << ", state " << i << ", step " << step;
    ASSERT_EQ(std::memcmp(copy.get(), hostCopy.get(), size_t(copyBytes)), 0)
        << what;
  }
}

AdamParams adam(DType param, DType grad, DType moment, DType copy,
                int64_t count) {
  return {.param = param,
          .grad = grad,
          .moment = moment,
          .copy = copy,
          .count = count,
          .beta1 = 0.9,
          .beta2 = 0.999,
          .epsilon = 1e-8,
          .weightDecay = 0.01,
          .stream = 17,
          .scratchBytes = 0};
}

} // namespace

TEST(OnHost, AdamWGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16, f16 = DType::F16;
  // More than a tile, and an end that no vector fills.
  for (int64_t count : {1, 77, 70'003})
    for (const auto &[param, grad, moment, copy] :
         {std::tuple{f32, f32, f32, f32}, std::tuple{f32, b16, f32, b16},
          std::tuple{f32, f16, b16, f16}, std::tuple{b16, b16, b16, f32},
          std::tuple{b16, f32, f32, f32}}) {
      std::vector<Bytes> states;
      states.push_back(drawn(param, count, 90, 1));
      states.push_back(drawn(moment, count, 91, 0.1));
      states.push_back(drawn(moment, count, 92, 0));
      compare<AdamW>(adam(param, grad, moment, copy, count), std::move(states),
                     grad, false, "adamw");
    }
}

TEST(OnHost, AdamW8bitGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16;
  for (const bool notFinite : {false, true})
    for (int64_t count : {1, 300, 70'003})
      for (const auto &[param, grad, copy] :
           {std::tuple{f32, f32, f32}, std::tuple{f32, b16, b16},
            std::tuple{b16, b16, f32}}) {
        const int64_t blocks = (count + 255) / 256;
        std::vector<Bytes> states;
        states.push_back(drawn(param, count, 90, 1));
        for (int moment = 0; moment < 2; ++moment) {
          Bytes codes(count), maxima(blocks * 4);
          std::memset(codes.get(), 0, size_t(count));
          std::memset(maxima.get(), 0, size_t(blocks) * 4);
          states.push_back(std::move(codes));
          states.push_back(std::move(maxima));
        }
        compare<AdamW8bit>(adam(param, grad, f32, copy, count),
                           std::move(states), grad, notFinite, "adamw8bit");
      }
}

TEST(OnHost, AdamW4bitGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16;
  for (const bool notFinite : {false, true})
    for (int64_t count : {128, 70'016})
      for (const auto &[param, grad, copy] :
           {std::tuple{f32, f32, f32}, std::tuple{f32, b16, b16},
            std::tuple{b16, b16, f32}}) {
        std::vector<Bytes> states;
        states.push_back(drawn(param, count, 90, 1));
        for (int moment = 0; moment < 2; ++moment) {
          Bytes codes(count / 2), scales(count / 128 * 4);
          std::memset(codes.get(), 0, size_t(count) / 2);
          std::memset(scales.get(), 0, size_t(count) / 128 * 4);
          states.push_back(std::move(codes));
          states.push_back(std::move(scales));
        }
        compare<AdamW4bit>(adam(param, grad, f32, copy, count),
                           std::move(states), grad, notFinite, "adamw4bit");
      }
}

TEST(OnHost, AdafactorGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16, f16 = DType::F16;
  for (const auto &[batch, rows, columns] :
       {std::tuple{1, 300, 257}, std::tuple{1, 1, 3}, std::tuple{70, 3, 5},
        std::tuple{1, 7'001, 1}, std::tuple{70'003, 0, 0}})
    for (const auto &[param, grad, copy] :
         {std::tuple{f32, f32, f32}, std::tuple{f32, f16, f16},
          std::tuple{b16, b16, f32}}) {
      const int64_t count = rows ? int64_t(batch) * rows * columns : batch;
      std::vector<Bytes> states;
      states.push_back(drawn(param, count, 90, 1));
      states.push_back(drawn(f32, rows ? batch * rows : count, 91, 0));
      states.push_back(drawn(f32, rows ? batch * columns : 1, 92, 0));
      compare<Adafactor>({.param = param,
                          .grad = grad,
                          .copy = copy,
                          .count = count,
                          .batch = batch,
                          .rows = rows,
                          .columns = columns,
                          .beta2Decay = -0.8,
                          .eps1 = 1e-7,
                          .eps2 = 1e-3,
                          .d = 1,
                          .weightDecay = 0.01,
                          .stream = 3,
                          .scratchBytes = 0},
                         std::move(states), grad, false, "adafactor");
    }
}

TEST(OnHost, LionGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16, f16 = DType::F16;
  for (int64_t count : {1, 70'003})
    for (const auto &[param, grad, moment, copy] :
         {std::tuple{f32, f32, f32, f32}, std::tuple{f32, f16, b16, f16},
          std::tuple{b16, b16, b16, f32}}) {
      std::vector<Bytes> states;
      states.push_back(drawn(param, count, 90, 1));
      states.push_back(drawn(moment, count, 91, 0.1));
      compare<Lion>({.param = param,
                     .grad = grad,
                     .moment = moment,
                     .copy = copy,
                     .count = count,
                     .beta1 = 0.9,
                     .beta2 = 0.99,
                     .weightDecay = 0.01,
                     .stream = 3,
                     .scratchBytes = 0},
                    std::move(states), grad, false, "lion");
    }
}

TEST(OnHost, SgdGivesTheDevicesBits) {
  const DType f32 = DType::F32, b16 = DType::BF16;
  for (int64_t count : {1, 70'003})
    for (const auto &[param, grad, moment, copy] :
         {std::tuple{f32, f32, f32, f32}, std::tuple{f32, b16, b16, b16},
          std::tuple{b16, b16, b16, f32}}) {
      std::vector<Bytes> states;
      states.push_back(drawn(param, count, 90, 1));
      states.push_back(drawn(moment, count, 91, 0.1));
      compare<Sgd>({.param = param,
                    .grad = grad,
                    .moment = moment,
                    .copy = copy,
                    .count = count,
                    .momentum = 0.9,
                    .dampening = 0,
                    .weightDecay = 0.01,
                    .nesterov = true,
                    .stream = 3,
                    .scratchBytes = 0},
                   std::move(states), grad, false, "sgd");
    }
}
