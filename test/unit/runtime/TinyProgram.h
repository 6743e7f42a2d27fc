//===- TinyProgram.h - a step as the emitter would write it -----*- C++ -*-===//
//
// Embedding, product, cross-entropy, gradients, AdamW: the smallest token
// model, written by hand in the form of an emitted step.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_UNIT_RUNTIME_TINYPROGRAM_H
#define TMC_TEST_UNIT_RUNTIME_TINYPROGRAM_H

#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/step/Program.h"

#include <vector>

namespace tmc::test::tiny {

constexpr int64_t kBatch = 4, kTime = 8, kRows = kBatch * kTime;
constexpr int64_t kVocabulary = 100, kChannels = 16;
constexpr int64_t kTable = kVocabulary * kChannels;
constexpr int64_t kScratch = 1 << 20;

// The arena, piece by piece.
constexpr int64_t kEmbed = 0, kHead = 0x2000;         // parameters
constexpr int64_t kEmbedM = 0x4000, kEmbedV = 0x6000; // moments
constexpr int64_t kHeadM = 0x8000, kHeadV = 0xa000;   //
constexpr int64_t kTokens = 0xc000, kLabels = 0xc200; // inputs
constexpr int64_t kRate = 0xc400, kStep = 0xc440, kWeight = 0xc480;
constexpr int64_t kLoss = 0xc4c0, kNorm = 0xc500; // results
constexpr int64_t kEmbedSquares = 0xc540, kHeadSquares = 0xc580;
constexpr int64_t kSeed = 0xc5c0, kSamples = 0xc600;
constexpr int64_t kClip = 0xc640, kSeen = 0xc680;     // of the step that clips
constexpr int64_t kHidden = 0xd000, kLogits = 0xe000; // activations
constexpr int64_t kLse = 0x12000, kDHidden = 0x13000;
constexpr int64_t kDEmbed = 0x14000, kDHead = 0x16000; // gradients
constexpr int64_t kScratchAt = 0x18000;
constexpr int64_t kArena = kScratchAt + kScratch;

constexpr TensorInfo tensor(const char *name, int64_t offset, Role role) {
  return {.name = name,
          .type = DType::F32,
          .rank = 2,
          .dims = {kVocabulary, kChannels},
          .offset = offset,
          .role = role,
          .init = role == Role::Param ? Init::Normal : Init::Zeros,
          .initValue = 0.02,
          .trainable = role == Role::Param};
}
inline const TensorInfo kTensors[] = {
    tensor("embed", kEmbed, Role::Param),
    tensor("head", kHead, Role::Param),
    tensor("embed.m", kEmbedM, Role::Moment),
    tensor("embed.v", kEmbedV, Role::Moment),
    tensor("head.m", kHeadM, Role::Moment),
    tensor("head.v", kHeadV, Role::Moment),
    {.name = "tokens",
     .type = DType::I64,
     .rank = 2,
     .dims = {kBatch, kTime},
     .offset = kTokens,
     .role = Role::Batch,
     .feed = Feed::Data,
     .limit = kVocabulary},
    {.name = "labels",
     .type = DType::I64,
     .rank = 2,
     .dims = {kBatch, kTime},
     .offset = kLabels,
     .role = Role::Batch,
     .feed = Feed::Data,
     .limit = kVocabulary,
     .allowIgnore = true,
     .ignore = -100},
    {.name = "lr",
     .type = DType::F32,
     .rank = 0,
     .dims = {},
     .offset = kRate,
     .role = Role::Scalar,
     .feed = Feed::LearningRate},
    {.name = "step",
     .type = DType::I64,
     .rank = 0,
     .dims = {},
     .offset = kStep,
     .role = Role::Scalar,
     .feed = Feed::Step},
    {.name = "seed",
     .type = DType::I64,
     .rank = 1,
     .dims = {2},
     .offset = kSeed,
     .role = Role::Scalar,
     .feed = Feed::Seed},
    {.name = "samples",
     .type = DType::I64,
     .rank = 1,
     .dims = {kBatch},
     .offset = kSamples,
     .role = Role::Batch,
     .feed = Feed::Samples},
    {.name = "loss",
     .type = DType::F32,
     .rank = 0,
     .dims = {},
     .offset = kLoss,
     .role = Role::Output},
    {.name = "grad_norm",
     .type = DType::F32,
     .rank = 0,
     .dims = {},
     .offset = kNorm,
     .role = Role::Output},
};

inline const float kWeightValue = 1.0f / kRows;
inline const ConstantInfo kConstants[] = {{kWeight, 4, &kWeightValue}};

inline const Region kLogitsRegion[] = {
    {kLogits, kRows *kVocabulary * 4, DType::F32}};
inline const Region kHeadGradRegion[] = {{kDHead, kTable * 4, DType::F32}};
inline const LaunchInfo kLaunches[] = {
    {"embed", "", nullptr, 0, nullptr, 0, "Embedding", "embed"},
    {"head", "model.py:7", kLogitsRegion, 1, nullptr, 0, "Matmul", "head",
     kTable *kRows * 2, 0, kRows *kVocabulary},
    {"loss", "", nullptr, 0, nullptr, 0, "CrossEntropy", "loss"},
    {"loss.grad", "", nullptr, 0, nullptr, 0, "CrossEntropyGrad", "loss.grad"},
    {"head.grad", "", kHeadGradRegion, 1, nullptr, 0, "Matmul", "head.grad",
     kTable *kRows * 2, 0, kTable},
    {"hidden.grad", "", nullptr, 0, kLogitsRegion, 1, "Matmul", "hidden.grad"},
    {"embed.grad", "", nullptr, 0, nullptr, 0, "EmbeddingGrad", "embed.grad"},
    {"embed.update", "", nullptr, 0, nullptr, 0, "AdamW", "update"},
    {"head.update", "", nullptr, 0, kHeadGradRegion, 1, "AdamW", "update"},
    {"norm", "", nullptr, 0, nullptr, 0, "GradNorm", "norm"},
};

struct Kernels {
  Embedding embed{{.type = DType::F32,
                   .indexType = DType::I64,
                   .vocabulary = kVocabulary,
                   .channels = kChannels,
                   .rows = kRows,
                   .scratchBytes = 0}};
  Matmul head{{.lhs = DType::F32,
               .rhs = DType::F32,
               .out = DType::F32,
               .batch = 1,
               .m = kRows,
               .n = kVocabulary,
               .k = kChannels,
               .transposeLhs = false,
               .transposeRhs = true,
               .bias = false,
               .tf32 = false,
               .scratchBytes = kScratch}};
  CrossEntropy loss{{.type = DType::F32,
                     .labelType = DType::I64,
                     .rows = kRows,
                     .vocabulary = kVocabulary,
                     .ignoreIndex = -100,
                     .scratchBytes = kScratch}};
  CrossEntropyGrad lossGrad{{.type = DType::F32,
                             .labelType = DType::I64,
                             .rows = kRows,
                             .vocabulary = kVocabulary,
                             .ignoreIndex = -100,
                             .scratchBytes = 0}};
  Matmul headGrad{{.lhs = DType::F32,
                   .rhs = DType::F32,
                   .out = DType::F32,
                   .batch = 1,
                   .m = kVocabulary,
                   .n = kChannels,
                   .k = kRows,
                   .transposeLhs = true,
                   .transposeRhs = false,
                   .bias = false,
                   .tf32 = false,
                   .scratchBytes = kScratch}};
  Matmul hiddenGrad{{.lhs = DType::F32,
                     .rhs = DType::F32,
                     .out = DType::F32,
                     .batch = 1,
                     .m = kRows,
                     .n = kChannels,
                     .k = kVocabulary,
                     .transposeLhs = false,
                     .transposeRhs = false,
                     .bias = false,
                     .tf32 = false,
                     .scratchBytes = kScratch}};
  EmbeddingGrad embedGrad{{.type = DType::F32,
                           .indexType = DType::I64,
                           .vocabulary = kVocabulary,
                           .channels = kChannels,
                           .rows = kRows,
                           .scratchBytes = kScratch}};
  AdamW update{{.param = DType::F32,
                .grad = DType::F32,
                .moment = DType::F32,
                .count = kTable,
                .beta1 = 0.9,
                .beta2 = 0.999,
                .epsilon = 1e-8,
                .weightDecay = 0.01,
                .stream = 0,
                .scratchBytes = kScratch}};
  GradNorm norm{
      {.count = 2, .maxNorm = 0, .isScaled = false, .scratchBytes = 0}};
  SquareSum squares{
      {.type = DType::F32, .count = kTable, .scratchBytes = kScratch}};
  GradNorm clip{
      {.count = 2, .maxNorm = 1, .isScaled = false, .scratchBytes = kScratch}};
};

/// Where the updates stand, of a step that doesn't clip, and of one that does.
inline void runUpdates(Queues &q, Kernels &k, bool clips) {
  Stream &s = q.compute();
  auto at = [&](int64_t offset) -> void * {
    return q.arena(space("device")) + offset;
  };
  if (clips) {
    k.squares.run(s, {at(kDEmbed)}, {at(kEmbedSquares)}, at(kScratchAt));
    k.squares.run(s, {at(kDEmbed)}, {at(kSeen)}, at(kScratchAt));
    k.squares.run(s, {at(kDHead)}, {at(kHeadSquares)}, at(kScratchAt));
    k.clip.run(s, {at(kEmbedSquares), at(kHeadSquares)}, {at(kNorm), at(kClip)},
               at(kScratchAt));
  }
  void *const clip = clips ? at(kClip) : nullptr;
  k.update.run(s,
               {at(kEmbed), at(kDEmbed), at(kEmbedM), at(kEmbedV), at(kRate),
                at(kStep), clip},
               {at(kEmbed), at(kEmbedM), at(kEmbedV), at(kEmbedSquares)},
               at(kScratchAt));
  q.launched(7);
  k.update.run(s,
               {at(kHead), at(kDHead), at(kHeadM), at(kHeadV), at(kRate),
                at(kStep), clip},
               {at(kHead), at(kHeadM), at(kHeadV), at(kHeadSquares)},
               at(kScratchAt));
  q.launched(8);
  if (!clips)
    k.norm.run(s, {at(kEmbedSquares), at(kHeadSquares)}, {at(kNorm)}, nullptr);
  q.launched(9);
}

/// The loss alone. The one that clips writes a state on its way.
template <bool clips = false> void evaluateTiny(Queues &q, void *kernels) {
  Stream &s = q.compute();
  Kernels &k = *static_cast<Kernels *>(kernels);
  auto at = [&](int64_t offset) -> void * {
    return q.arena(space("device")) + offset;
  };
  k.embed.run(s, {at(kEmbed), at(kTokens)}, {at(kHidden)}, nullptr);
  if (clips)
    k.squares.run(s, {at(kHidden)}, {at(kSeen)}, at(kScratchAt));
  k.head.run(s, {at(kHidden), at(kHead)}, {at(kLogits)}, at(kScratchAt));
  k.loss.run(s, {at(kLogits), at(kLabels), at(kWeight)}, {at(kLoss), at(kLse)},
             at(kScratchAt));
}

template <bool clips = false> void run(Queues &q, void *kernels) {
  Stream &s = q.compute();
  Kernels &k = *static_cast<Kernels *>(kernels);
  auto at = [&](int64_t offset) -> void * {
    return q.arena(space("device")) + offset;
  };
  k.embed.run(s, {at(kEmbed), at(kTokens)}, {at(kHidden)}, nullptr);
  q.launched(0);
  k.head.run(s, {at(kHidden), at(kHead)}, {at(kLogits)}, at(kScratchAt));
  q.launched(1);
  k.loss.run(s, {at(kLogits), at(kLabels), at(kWeight)}, {at(kLoss), at(kLse)},
             at(kScratchAt));
  q.launched(2);
  k.lossGrad.run(s, {at(kLogits), at(kLabels), at(kLse), at(kWeight)},
                 {at(kLogits)}, nullptr);
  q.launched(3);
  k.headGrad.run(s, {at(kLogits), at(kHidden)}, {at(kDHead)}, at(kScratchAt));
  q.launched(4);
  k.hiddenGrad.run(s, {at(kLogits), at(kHead)}, {at(kDHidden)}, at(kScratchAt));
  q.launched(5);
  k.embedGrad.run(s, {at(kTokens), at(kDHidden)}, {at(kDEmbed)},
                  at(kScratchAt));
  q.launched(6);
  runUpdates(q, k, clips);
}

inline StepProgram program() {
  StepProgram p{};
  p.version = kProgramVersion;
  p.backend = Backend::Cpu;
  p.model = "tiny";
  p.fingerprint = "tiny-1";
  p.arenaBytes.device() = kArena;
  p.tensors = kTensors;
  p.tensorCount = std::size(kTensors);
  p.constants = kConstants;
  p.constantCount = std::size(kConstants);
  p.launches = kLaunches;
  p.launchCount = std::size(kLaunches);
#ifdef TMC_TEST_ON_CARD
  // Tests run beside each other: what others take counts, too.
  p.plan.reservedBytes = int64_t(16) << 30;
#endif
  p.lossTensor = 12;
  p.gradNormTensor = 13;
  p.samplesPerStep = kBatch;
  p.tokensPerStep = kRows;
  p.createKernels = []() -> void * { return new Kernels; };
  p.destroyKernels = [](void *k) { delete static_cast<Kernels *>(k); };
  p.visitKernels = [](void *opaque, void *context,
                      void (*visit)(void *, const char *, Kernel &)) {
    Kernels &k = *static_cast<Kernels *>(opaque);
    visit(context, "embed", k.embed);
    visit(context, "head", k.head);
    visit(context, "loss", k.loss);
    visit(context, "lossGrad", k.lossGrad);
    visit(context, "headGrad", k.headGrad);
    visit(context, "hiddenGrad", k.hiddenGrad);
    visit(context, "embedGrad", k.embedGrad);
    visit(context, "update", k.update);
    visit(context, "norm", k.norm);
    visit(context, "squares", k.squares);
    visit(context, "clip", k.clip);
  };
  p.run = run<>;
  p.evaluate = evaluateTiny<>;
  return p;
}

/// The same, whose gradients are clipped, with a state of the model that each
/// step writes.
inline StepProgram clippedProgram() {
  static const std::vector<TensorInfo> tensors = [] {
    std::vector<TensorInfo> all(std::begin(kTensors), std::end(kTensors));
    all.push_back({.name = "seen",
                   .type = DType::F32,
                   .rank = 0,
                   .dims = {},
                   .offset = kSeen,
                   .role = Role::State,
                   .init = Init::Ones});
    return all;
  }();
  StepProgram p = program();
  p.tensors = tensors.data();
  p.tensorCount = int64_t(tensors.size());
  p.skipsNonFinite = true;
  p.run = run<true>;
  static const int64_t changed[] = {std::size(kTensors)}; // "seen"
  p.evaluate = evaluateTiny<true>;
  p.changedByEvaluation = changed;
  p.changedByEvaluationCount = 1;
  return p;
}

} // namespace tmc::test::tiny

#endif // TMC_TEST_UNIT_RUNTIME_TINYPROGRAM_H
