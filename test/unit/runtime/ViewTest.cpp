//===- ViewTest.cpp - tensors without a copy, structs by their size -------===//

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/step/DLPack.h"
#include "runtime/step/Sized.h"
#include "runtime/tmc.h"

#include <array>
#include <cstring>
#include <functional>

using namespace tmc;
using namespace tmc::test;

namespace {

/// The tiny program with one of its tensors changed, and a step of it.
struct Viewed {
  StepProgram program = tiny::program();
  std::vector<TensorInfo> tensors;
  std::shared_ptr<Step> step;

  explicit Viewed(
      const std::string &name = "",
      const std::function<void(TensorInfo &)> &change = [](TensorInfo &) {}) {
    tensors.assign(program.tensors, program.tensors + program.tensorCount);
    for (TensorInfo &tensor : tensors)
      if (tensor.name == name)
        change(tensor);
    program.tensors = tensors.data();
    StepOptions options;
    options.device.threads = 1;
    std::unique_ptr<Step> made;
    const Status s = Step::create(program, options, made);
    EXPECT_TRUE(s) << s.message();
    step = std::move(made);
  }
  TensorView view(const std::string &name) const {
    TensorView view = {};
    const Status s = viewOf(*step, *step->find(name), view);
    EXPECT_TRUE(s) << s.message();
    return view;
  }
  Status refused(const std::string &name) const {
    TensorView view = {};
    return viewOf(*step, *step->find(name), view);
  }
};

} // namespace

TEST(View, SharesTheBytesOfTheStep) {
  Viewed of;
  ASSERT_TRUE(of.step->initRandom(1));
  const TensorView view = of.view("embed");
  EXPECT_FALSE(view.readOnly);
  EXPECT_EQ(view.backend, Backend::Cpu);
  EXPECT_EQ(view.deviceNumber, 0);
  std::vector<float> read(1600);
  ASSERT_TRUE(of.step->read(*view.tensor, read.data(), 6400));
  EXPECT_EQ(std::memcmp(view.data, read.data(), 6400), 0);
  reinterpret_cast<float *>(view.data)[7] = 0.25f;
  ASSERT_TRUE(of.step->read(*view.tensor, read.data(), 6400));
  EXPECT_EQ(read[7], 0.25f);
  int64_t strides[kMaxRank];
  stridesOf(*view.tensor, strides);
  EXPECT_EQ(strides[0], tiny::kChannels);
  EXPECT_EQ(strides[1], 1);
}

TEST(View, OfAnInputIsCheckedAsAStepBegins) {
  Viewed of;
  ASSERT_TRUE(of.step->initRandom(1));
  std::array<int64_t, tiny::kRows> tokens = {};
  for (const char *name : {"tokens", "labels"})
    ASSERT_TRUE(
        of.step->write(*of.step->find(name), tokens.data(), sizeof tokens));
  auto *viewed = reinterpret_cast<int64_t *>(of.view("tokens").data);
  double first = 0, second = 0;
  viewed[3] = tiny::kVocabulary;
  Status s = of.step->run(first);
  EXPECT_EQ(s.code(), Code::BadInput);
  EXPECT_EQ(s.message(), "element 3 of 'tokens' is 100, outside [0, 100)");
  EXPECT_EQ(evaluate(*of.step, first).code(), Code::BadInput);
  viewed[3] = 5;
  ASSERT_TRUE(of.step->run(first));

  // The loss is that of a program that writes the same values.
  Viewed other;
  ASSERT_TRUE(other.step->initRandom(1));
  ASSERT_TRUE(other.step->write(*other.step->find("labels"), tokens.data(),
                                sizeof tokens));
  tokens[3] = 5;
  ASSERT_TRUE(other.step->write(*other.step->find("tokens"), tokens.data(),
                                sizeof tokens));
  ASSERT_TRUE(other.step->run(second));
  EXPECT_EQ(first, second);
}

TEST(View, IsReadOnlyWhereAStepWouldIgnoreValues) {
  EXPECT_FALSE(Viewed().view("embed.m").readOnly);
  EXPECT_FALSE(Viewed().view("tokens").readOnly);
  EXPECT_TRUE(Viewed().view("loss").readOnly);
  EXPECT_TRUE(Viewed().view("lr").readOnly);
  const Viewed copied("head.m", [](TensorInfo &tensor) {
    tensor.role = Role::Copy;
    tensor.copyOf = 1;
  });
  EXPECT_TRUE(copied.view("head.m").readOnly);
  EXPECT_TRUE(copied.view("head").readOnly);
  EXPECT_FALSE(copied.view("embed").readOnly);
}

TEST(View, IsRefusedWithItsReason) {
  const Viewed overwritten(
      "loss", [](TensorInfo &tensor) { tensor.isOverwritten = true; });
  Status s = overwritten.refused("loss");
  EXPECT_EQ(s.code(), Code::Unsupported);
  EXPECT_EQ(s.message(), "'loss' has no view: the plan keeps other values at "
                         "its place within a step");
  const Viewed narrow("embed.m",
                      [](TensorInfo &tensor) { tensor.type = DType::U8; });
  s = narrow.refused("embed.m");
  EXPECT_EQ(s.code(), Code::Unsupported);
  EXPECT_EQ(s.message(), "'embed.m' has no view: it is stored as codes");
  static const StoredInfo stored = {
      .rank = 2, .dims = {100, 16}, .byRows = true, .absmax = 1};
  const Viewed codes("embed",
                     [](TensorInfo &tensor) { tensor.stored = &stored; });
  EXPECT_EQ(codes.refused("embed").message(),
            "'embed' has no view: it is stored as codes");
  const Viewed away("embed.v",
                    [](TensorInfo &tensor) { tensor.space = SpaceKind::Host; });
  EXPECT_EQ(away.refused("embed.v").message(),
            "'embed.v' has no view: the plan keeps it on the host and moves "
            "it in each step");
}

TEST(DLPack, OutlivesTheStep) {
  Viewed of;
  ASSERT_TRUE(of.step->initRandom(1));
  std::weak_ptr<Step> step = of.step;
  DLManagedTensorVersioned *tensor = makeDLPack(of.step, of.view("embed"));
  DLManagedTensor *before = makeUnversionedDLPack(of.step, of.view("embed"));
  const float first = *reinterpret_cast<float *>(of.view("embed").data);
  of.step.reset();
  EXPECT_EQ(tensor->major, 1u);
  EXPECT_EQ(tensor->flags, 0u);
  for (const DLTensor &its : {tensor->tensor, before->tensor}) {
    EXPECT_EQ(*static_cast<float *>(its.data), first);
    EXPECT_EQ(its.deviceType, 1);
    EXPECT_EQ(its.deviceNumber, 0);
    EXPECT_EQ(its.rank, 2);
    EXPECT_EQ(its.typeCode, 2);
    EXPECT_EQ(its.bits, 32);
    EXPECT_EQ(its.lanes, 1);
    EXPECT_EQ(its.shape[0], tiny::kVocabulary);
    EXPECT_EQ(its.strides[0], tiny::kChannels);
    EXPECT_EQ(its.byteOffset, 0u);
  }
  tensor->deleter(tensor);
  EXPECT_FALSE(step.expired());
  before->deleter(before);
  EXPECT_TRUE(step.expired());
}

TEST(DLPack, SaysThatATensorIsReadOnly) {
  Viewed of;
  DLManagedTensorVersioned *tensor = makeDLPack(of.step, of.view("loss"));
  EXPECT_EQ(tensor->flags, kDLReadOnly);
  EXPECT_EQ(tensor->tensor.rank, 0);
  tensor->deleter(tensor);
}

namespace {
struct Old {
  uint32_t size;
  int32_t a;
};
struct Now {
  uint32_t size;
  int32_t a;
  int64_t b;
};
struct New {
  uint32_t size;
  int32_t a;
  int64_t b, c;
};
/// A struct of a program, with bytes behind it that no library may write.
template <typename T> struct Guarded {
  T its;
  uint64_t after = 0x1234;
  explicit Guarded(uint32_t size) {
    std::memset(&its, 0x55, sizeof its);
    its.size = size;
  }
  Now *pointer() { return reinterpret_cast<Now *>(&its); }
};
} // namespace

TEST(Sized, GivesNoMoreThanAProgramKnows) {
  const Now full = {0, 3, 4};
  Guarded<Old> old(sizeof(Old));
  ASSERT_TRUE(giveSized("t", full, sizeof(Old), old.pointer()));
  EXPECT_EQ(old.its.a, 3);
  EXPECT_EQ(old.its.size, sizeof(Old));
  EXPECT_EQ(old.after, 0x1234u);
  Guarded<New> younger(sizeof(New));
  ASSERT_TRUE(giveSized("t", full, sizeof(Old), younger.pointer()));
  EXPECT_EQ(younger.its.size, sizeof(New));
  EXPECT_EQ(younger.its.b, 4);
  EXPECT_EQ(younger.its.c, 0);
  EXPECT_EQ(younger.after, 0x1234u);
}

TEST(Sized, TakesNoMoreThanAProgramSets) {
  Now full;
  Guarded<Old> old(sizeof(Old));
  old.its.a = 5;
  ASSERT_TRUE(takeSized("t", old.pointer(), sizeof(Old), full));
  EXPECT_EQ(full.a, 5);
  EXPECT_EQ(full.b, 0);
  Guarded<New> younger(sizeof(New));
  younger.its.b = 6;
  younger.its.c = 0;
  ASSERT_TRUE(takeSized("t", younger.pointer(), sizeof(Old), full));
  EXPECT_EQ(full.b, 6);
  younger.its.c = 1;
  EXPECT_EQ(takeSized("t", younger.pointer(), sizeof(Old), full).code(),
            Code::Unsupported);
}

TEST(Sized, RefusesSizesOfNoStruct) {
  for (uint32_t size : {0u, 4u, 12u, 4104u, 0x55555555u}) {
    Guarded<Now> wrong(size);
    const Status s = giveSized("t", Now(), sizeof(Old), wrong.pointer());
    EXPECT_EQ(s.code(), Code::Usage) << size;
    EXPECT_EQ(wrong.its.a, 0x55555555) << size;
  }
  EXPECT_EQ(giveSized("t", Now(), 8, static_cast<Now *>(nullptr)).code(),
            Code::Usage);
}

TEST(CInterface, RefusesStructsWithoutASize) {
  EXPECT_EQ(tmc_abi_version(), TMC_ABI_VERSION);
  tmc_options options = {};
  tmc_step *step = nullptr;
  EXPECT_EQ(tmc_step_create(&options, &step), 2);
  EXPECT_STREQ(tmc_last_error(), "tmc_options has 56 bytes or more, and size "
                                 "is 0: set it to sizeof(tmc_options)");
  tmc_options_init(&options, 8);
  EXPECT_EQ(tmc_step_create(&options, &step), 2);
  tmc_options_init(&options, sizeof options);
  options.threads = 1;
  ASSERT_EQ(tmc_step_create(&options, &step), 0) << tmc_last_error();
  tmc_view view = {};
  EXPECT_EQ(tmc_step_view(step, "embed", &view), 2);
  view.size = sizeof view;
  ASSERT_EQ(tmc_step_view(step, "embed", &view), 0) << tmc_last_error();
  EXPECT_EQ(view.device, TMC_DEVICE_CPU);
  EXPECT_EQ(view.strides[0], tiny::kChannels);
  EXPECT_EQ(view.bytes, 6400);
  EXPECT_EQ(tmc_step_view(step, "none", &view), 2);
  struct DLManagedTensorVersioned *tensor = nullptr;
  ASSERT_EQ(tmc_step_dlpack(step, "loss", &tensor), 0);
  struct DLManagedTensor *before = nullptr;
  EXPECT_EQ(tmc_step_dlpack_unversioned(step, "loss", &before), 4);
  EXPECT_STREQ(tmc_last_error(),
               "'loss' is read-only, which DLPack says from version 1 on");
  ASSERT_EQ(tmc_step_dlpack_unversioned(step, "embed", &before), 0);
  EXPECT_EQ(before->tensor.data, view.data);
  tmc_step_destroy(step);
  before->deleter(before);
  tensor->deleter(tensor);
}
