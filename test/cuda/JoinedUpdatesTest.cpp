//===- JoinedUpdatesTest.cpp - several updates in one launch --------------===//
//
// Updates that one launch runs leave the same bits as those of one launch each:
// of every kernel class, in several types, of sizes from one element to several
// parts, at addresses that aren't whole vectors, with and without sums of
// squares, and of more updates than a launch's table has rows.
//
//===----------------------------------------------------------------------===//

#include "UpdateTesting.h"

#include "runtime/kernels/Adam.h"
#include "runtime/kernels/Adam4bit.h"
#include "runtime/kernels/Lion.h"

#ifndef TMC_TEST_ON_CARD
#include "test/cuda/emulator/Counts.h"
#endif

#include <utility>

using namespace tmc;
using namespace tmc::test;

namespace {

using Bytes = Buffer<unsigned char>;

/// The scalar operands that updates of a step share.
struct Scalars {
  test::Floats rate = test::Floats(1, 0.01f), clip = test::Floats(1, 0.5f);
  test::Longs step = test::Longs(1, 7);
};

/// The operands of one update, in its own memory.
struct Operands {
  std::vector<std::unique_ptr<Bytes>> buffers;
  std::vector<const void *> ins;
  std::vector<void *> outs;

  /// Numbers near 1 of a type, the first one `shift` elements from an aligned
  /// address, which nothing else holds.
  void *add(DType type, int64_t count, int64_t shift, unsigned seed) {
    const test::Floats from = randomFloats(count, seed);
    auto to = std::make_unique<Bytes>((count + shift) * sizeOf(type));
    unsigned char *const first = to->get() + shift * sizeOf(type);
    for (int64_t i = 0; i < count; ++i)
      if (type == DType::F32)
        reinterpret_cast<float *>(first)[i] = from[i];
      else if (type == DType::BF16)
        storeLanes<1>(reinterpret_cast<bf16 *>(first) + i, from[i]);
      else if (type == DType::F16)
        storeLanes<1>(reinterpret_cast<f16 *>(first) + i, from[i]);
      else
        first[i] = uint8_t(int(100 * from[i]) & 255);
    buffers.push_back(std::move(to));
    return first;
  }
  /// The same, none of them negative: second moments and scales.
  void *addPositive(DType type, int64_t count, int64_t shift, unsigned seed) {
    void *const first = add(type, count, shift, seed);
    for (int64_t i = 0; i < count; ++i)
      if (type == DType::F32)
        static_cast<float *>(first)[i] =
            std::abs(static_cast<float *>(first)[i]);
      else
        static_cast<bf16 *>(first)[i].bits &= 0x7fff;
    return first;
  }
  void addState(void *state) { ins.push_back(state), outs.push_back(state); }
};

/// Adds the moments of a kernel class. Like the classes, it has parameters and
/// gradients before and the scalars behind them.
template <typename K, typename P>
void addMoments(Operands &to, const P &params, int64_t shift, unsigned seed) {
  const int64_t count = params.count;
  if constexpr (std::is_same_v<K, AdamW>) {
    to.addState(to.add(params.moment, count, shift, seed));
    to.addState(to.addPositive(params.moment, count, shift, seed + 1));
  } else if constexpr (std::is_same_v<K, Lion> || std::is_same_v<K, Sgd>) {
    to.addState(to.add(params.moment, count, shift, seed));
  } else {
    const int64_t block =
        std::is_same_v<K, AdamW8bit> ? adam::kCodeBlock : adam::kNibbleBlock;
    const int64_t bytes = std::is_same_v<K, AdamW8bit> ? count : count / 2;
    for (unsigned moment : {0u, 1u}) {
      to.addState(to.add(DType::I8, bytes, 0, seed + moment));
      to.addState(to.addPositive(DType::F32, (count + block - 1) / block, 0,
                                 seed + 2 + moment));
    }
  }
}

template <typename K>
Operands operandsOf(const typename K::Params &params, const Scalars &scalars,
                    unsigned number) {
  // Every third update's operands aren't aligned, each in another way.
  const int64_t shift = number % 3 == 1;
  Operands made;
  void *param = made.add(params.param, params.count, shift, 10 * number + 1);
  made.addState(param);
  made.ins.push_back(
      made.add(params.grad, params.count, shift, 10 * number + 2));
  addMoments<K>(made, params, shift, 10 * number + 3);
  made.ins.insert(made.ins.end(),
                  {scalars.rate.get(), scalars.step.get(), scalars.clip.get()});
  made.outs.push_back(number % 5 == 4 ? nullptr
                                      : made.add(DType::F32, 1, 0, number));
  if (params.copy != DType::F32)
    made.outs.push_back(
        made.add(params.copy, params.count, number % 2, number));
  return made;
}

int64_t kernelsRun() {
#ifdef TMC_TEST_ON_CARD
  return 0;
#else
  return emulator::counts().kernels;
#endif
}

/// The updates of one test, and scratch for each.
template <typename K> struct Updates {
  std::vector<std::unique_ptr<K>> kernels;
  std::vector<Operands> operands;
  std::vector<Bytes> scratch;

  Updates(Device &device, const typename K::Params &shared,
          const std::vector<int64_t> &counts, const Scalars &scalars,
          size_t many) {
    for (unsigned i = 0; i < many; ++i) {
      typename K::Params own = shared;
      own.count = counts[i % counts.size()];
      own.weightDecay = i % 2 ? 0.1 : 0.3;
      own.stream = 100 + i;
      own.scratchBytes = K::scratchCap(own, Backend::Cuda);
      kernels.push_back(std::make_unique<K>(own));
      const Status prepared = kernels.back()->prepare(device);
      EXPECT_TRUE(prepared) << prepared.message();
      operands.push_back(operandsOf<K>(own, scalars, i));
      scratch.emplace_back(own.scratchBytes, 0x7f);
    }
  }
  In ins(size_t i) const {
    return In::of(operands[i].ins.data(), operands[i].ins.size());
  }
  Out outs(size_t i) const {
    return Out::of(operands[i].outs.data(), operands[i].outs.size());
  }

  void runEach(Stream &stream) {
    for (size_t i = 0; i < kernels.size(); ++i)
      kernels[i]->run(stream, ins(i), outs(i), scratch[i].get());
  }
  template <size_t... I>
  void runJoined(Stream &stream, std::index_sequence<I...>) {
    K::runJoined(stream, {UpdateRun<K>{*kernels[I], ins(I), outs(I),
                                       scratch[I].get()}...});
  }
  void expectSame(const Updates &other) const {
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t b = 0; b < operands[i].buffers.size(); ++b)
        EXPECT_TRUE(
            operands[i].buffers[b]->sameBits(*other.operands[i].buffers[b]))
            << "buffer " << b << " of update " << i;
  }
};

constexpr int64_t kSeveralParts = 2 * kCudaUpdatePart + 809;

template <typename K, size_t Many>
void checkJoined(const typename K::Params &shared,
                 std::vector<int64_t> counts = {300, 1, kSeveralParts, 7,
                                                kCudaUpdatePart,
                                                kCudaUpdatePart + 1},
                 int64_t step = 7) {
  Scalars scalars;
  scalars.step[0] = step;
  auto device = makeDevice(1);
  Updates<K> each(*device, shared, counts, scalars, Many);
  Updates<K> joined(*device, shared, counts, scalars, Many);
  Updates<K> untouched(*device, shared, counts, scalars, 1);
  each.runEach(device->compute());
  EXPECT_TRUE(device->synchronize());
  const int64_t before = kernelsRun();
  joined.runJoined(device->compute(), std::make_index_sequence<Many>());
  EXPECT_TRUE(device->synchronize());
  if (!kOnCard) {
    const int64_t most = kMostJoinedUpdates,
                  tables = (int64_t(Many) + most - 1) / most;
    EXPECT_EQ(kernelsRun() - before, 2 * tables);
  }
  joined.expectSame(each);
  EXPECT_EQ(joined.operands[0].buffers[0]->sameBits(
                *untouched.operands[0].buffers[0]),
            step == 0);
}

AdamParams typesOf(DType param, DType grad, DType moment,
                   DType copy = DType::F32) {
  return {.param = param,
          .grad = grad,
          .moment = moment,
          .copy = copy,
          .count = 0,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weightDecay = 0,
          .stream = 0};
}

constexpr DType kFloat = DType::F32, kBrain = DType::BF16, kHalf = DType::F16;

} // namespace

TEST(JoinedUpdates, OfAdamWLeaveTheBitsOfSingleOnes) {
  checkJoined<AdamW, 7>(typesOf(kFloat, kFloat, kFloat));
  checkJoined<AdamW, 7>(typesOf(kFloat, kBrain, kFloat, kBrain));
  checkJoined<AdamW, 7>(typesOf(kFloat, kHalf, kFloat, kHalf));
  checkJoined<AdamW, 7>(typesOf(kBrain, kBrain, kBrain));
  checkJoined<AdamW, 7>(typesOf(kBrain, kFloat, kFloat));
  checkJoined<AdamW, 7>(typesOf(kFloat, kFloat, kBrain));
}

TEST(JoinedUpdates, MayBeMoreThanATableHasRows) {
  checkJoined<AdamW, size_t(kMostJoinedUpdates)>(
      typesOf(kFloat, kBrain, kFloat));
  checkJoined<AdamW, 2 * size_t(kMostJoinedUpdates) + 3>(
      typesOf(kBrain, kBrain, kBrain), {5, kCudaUpdatePart + 1});
}

TEST(JoinedUpdates, ChangeNothingAtStepZero) {
  checkJoined<AdamW, 3>(typesOf(kFloat, kFloat, kFloat, kBrain),
                        {kSeveralParts, 9}, 0);
}

TEST(JoinedUpdates, OfCodedMomentsLeaveTheBitsOfSingleOnes) {
  checkJoined<AdamW8bit, 7>(typesOf(kFloat, kBrain, kFloat, kBrain));
  checkJoined<AdamW8bit, 7>(typesOf(kBrain, kBrain, kFloat));
  const std::vector<int64_t> blocks = {128, 384, kCudaUpdatePart,
                                       kCudaUpdatePart + 256};
  checkJoined<AdamW4bit, 6>(typesOf(kFloat, kFloat, kFloat, kBrain), blocks);
  checkJoined<AdamW4bit, 6>(typesOf(kBrain, kBrain, kFloat), blocks);
}

TEST(JoinedUpdates, OfOneMomentLeaveTheBitsOfSingleOnes) {
  for (DType type : {kFloat, kBrain}) {
    checkJoined<Lion, 7>({.param = type,
                          .grad = kBrain,
                          .moment = type,
                          .count = 0,
                          .beta1 = 0.9,
                          .beta2 = 0.99,
                          .weightDecay = 0,
                          .stream = 0});
    checkJoined<Sgd, 7>({.param = type,
                         .grad = kBrain,
                         .moment = type,
                         .count = 0,
                         .momentum = 0.9,
                         .dampening = 0.1,
                         .weightDecay = 0,
                         .nesterov = true,
                         .stream = 0});
  }
}
