//===- TinyOffload.h - the tiny step with moves -----------------*- C++ -*-===//
//
// TinyProgram's step as a planner might spread it over three spaces:
//
//     embed, its moments    at home on the host, updated there; the weight is
//                           fetched when a step begins
//     moments of head       at home in the file, staged on the host, updated on
//                           the device
//     hidden                stashed to the host after the head's product, and
//                           fetched for its gradient
//
// Same kernels, same bits. Starts and dones are entries of one table; the event
// of a start has its number.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_UNIT_RUNTIME_TINYOFFLOAD_H
#define TMC_TEST_UNIT_RUNTIME_TINYOFFLOAD_H

#include "TinyProgram.h"

#include "runtime/kernels/OnHost.h"
#include "runtime/step/SwapFile.h"

#include <vector>

namespace tmc::test::tiny {

// The host's arena.
constexpr int64_t kHostEmbed = 0, kHostEmbedM = 0x2000, kHostEmbedV = 0x4000;
constexpr int64_t kStageM = 0x6000, kStageV = 0x8000;
constexpr int64_t kHostDEmbed = 0xa000, kHostHidden = 0xc000;
constexpr int64_t kHostRate = 0xd000, kHostStep = 0xd040;
constexpr int64_t kHostSquares = 0xd080, kHostScratch = 0xe000;
constexpr int64_t kHostArena = 0xf000;
// The file's.
constexpr int64_t kFileHeadM = 0, kFileHeadV = kFileBlockBytes;
constexpr int64_t kSwapFile = 2 * kFileBlockBytes;

constexpr int64_t kTableBytes = kTable * 4;
constexpr int64_t kHiddenBytes = kRows * kChannels * 4;

enum Entry : int32_t {
  FetchEmbed,
  ReadM,
  ReadV,
  EmbedHere,
  RunEmbed,
  RunHead,
  StashHidden,
  HiddenAway,
  RunLoss,
  RunLossGrad,
  FetchHidden,
  HiddenHere,
  RunHeadGrad,
  RunHiddenGrad,
  RunEmbedGrad,
  StashDEmbed,
  StashRate,
  StashStep,
  ScalarsAway,
  DEmbedAway,
  UpdateEmbed,
  FetchM,
  FetchV,
  MHere,
  VHere,
  RunHeadUpdate,
  StashM,
  StashV,
  MAway,
  VAway,
  WriteM,
  WriteV,
  EmbedUpdated,
  FetchSquares,
  SquaresHere,
  RunNorm,
  MWritten,
  VWritten,
  kEntries
};

struct OffloadKernels : Kernels {
  OnHost<AdamW> hostUpdate{{.param = DType::F32,
                            .grad = DType::F32,
                            .moment = DType::F32,
                            .count = kTable,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .epsilon = 1e-8,
                            .weightDecay = 0.01,
                            .stream = 0,
                            .scratchBytes = kScratch}};
};

/// What is left out of the list, to see that it is missed.
inline int32_t leftOut = -1;

inline void runOffload(Queues &q, void *kernels) {
  OffloadKernels &k = *static_cast<OffloadKernels *>(kernels);
  Stream &s = q.compute();
  auto at = [&](int64_t offset) -> void * {
    return q.arena(space("device")) + offset;
  };
  auto host = [&](int64_t offset) -> void * {
    return q.arena(space("host")) + offset;
  };
  auto wait = [&](EngineKind engine, int32_t event) {
    if (event != leftOut)
      q.wait(engine, event);
  };
  auto out = [&](int32_t entry, int64_t to, int64_t from, int64_t bytes) {
    q.copy(entry, EngineKind::DeviceToHost, to, from, bytes);
    q.record(EngineKind::DeviceToHost, entry);
  };
  auto in = [&](int32_t entry, int64_t to, int64_t from, int64_t bytes) {
    q.copy(entry, EngineKind::HostToDevice, to, from, bytes);
    q.record(EngineKind::HostToDevice, entry);
  };
  auto done = [&](int32_t entry, int32_t start) {
    wait(EngineKind::Compute, start);
    q.done(entry);
  };
  auto ran = [&](int32_t entry) {
    q.launched(entry);
    q.record(EngineKind::Compute, entry);
  };
  in(FetchEmbed, kEmbed, kHostEmbed, kTableBytes);
  q.copy(ReadM, EngineKind::FileRead, kStageM, kFileHeadM, kTableBytes);
  q.record(EngineKind::FileRead, ReadM);
  q.copy(ReadV, EngineKind::FileRead, kStageV, kFileHeadV, kTableBytes);
  q.record(EngineKind::FileRead, ReadV);
  done(EmbedHere, FetchEmbed);
  k.embed.run(s, {at(kEmbed), at(kTokens)}, {at(kHidden)}, nullptr);
  ran(RunEmbed);
  k.head.run(s, {at(kHidden), at(kHead)}, {at(kLogits)}, at(kScratchAt));
  ran(RunHead);
  q.wait(EngineKind::DeviceToHost, RunHead);
  out(StashHidden, kHostHidden, kHidden, kHiddenBytes);
  done(HiddenAway, StashHidden);
  k.loss.run(s, {at(kLogits), at(kLabels), at(kWeight)}, {at(kLoss), at(kLse)},
             at(kScratchAt));
  ran(RunLoss);
  k.lossGrad.run(s, {at(kLogits), at(kLabels), at(kLse), at(kWeight)},
                 {at(kLogits)}, nullptr);
  ran(RunLossGrad);
  q.wait(EngineKind::HostToDevice, StashHidden);
  in(FetchHidden, kHidden, kHostHidden, kHiddenBytes);
  done(HiddenHere, FetchHidden);
  k.headGrad.run(s, {at(kLogits), at(kHidden)}, {at(kDHead)}, at(kScratchAt));
  ran(RunHeadGrad);
  k.hiddenGrad.run(s, {at(kLogits), at(kHead)}, {at(kDHidden)}, at(kScratchAt));
  ran(RunHiddenGrad);
  k.embedGrad.run(s, {at(kTokens), at(kDHidden)}, {at(kDEmbed)},
                  at(kScratchAt));
  ran(RunEmbedGrad);
  q.wait(EngineKind::DeviceToHost, RunEmbedGrad);
  out(StashDEmbed, kHostDEmbed, kDEmbed, kTableBytes);
  out(StashRate, kHostRate, kRate, 4);
  out(StashStep, kHostStep, kStep, 8);
  done(ScalarsAway, StashStep);
  done(DEmbedAway, StashDEmbed);
  // It writes what the fetch at the beginning read.
  wait(EngineKind::Host, StashStep);
  q.wait(EngineKind::Host, FetchEmbed);
  q.beside(UpdateEmbed, engine("host"), k.hostUpdate,
           {host(kHostEmbed), host(kHostDEmbed), host(kHostEmbedM),
            host(kHostEmbedV), host(kHostRate), host(kHostStep)},
           {host(kHostEmbed), host(kHostEmbedM), host(kHostEmbedV),
            host(kHostSquares)},
           host(kHostScratch));
  q.record(EngineKind::Host, UpdateEmbed);
  wait(EngineKind::HostToDevice, ReadM);
  in(FetchM, kHeadM, kStageM, kTableBytes);
  wait(EngineKind::HostToDevice, ReadV);
  in(FetchV, kHeadV, kStageV, kTableBytes);
  done(MHere, FetchM);
  done(VHere, FetchV);
  k.update.run(
      s, {at(kHead), at(kDHead), at(kHeadM), at(kHeadV), at(kRate), at(kStep)},
      {at(kHead), at(kHeadM), at(kHeadV), at(kHeadSquares)}, at(kScratchAt));
  ran(RunHeadUpdate);
  q.wait(EngineKind::DeviceToHost, RunHeadUpdate);
  out(StashM, kStageM, kHeadM, kTableBytes);
  out(StashV, kStageV, kHeadV, kTableBytes);
  done(MAway, StashM);
  done(VAway, StashV);
  wait(EngineKind::FileWrite, StashM);
  q.copy(WriteM, EngineKind::FileWrite, kFileHeadM, kStageM, kTableBytes);
  q.record(EngineKind::FileWrite, WriteM);
  wait(EngineKind::FileWrite, StashV);
  q.copy(WriteV, EngineKind::FileWrite, kFileHeadV, kStageV, kTableBytes);
  q.record(EngineKind::FileWrite, WriteV);
  wait(EngineKind::HostToDevice, UpdateEmbed);
  q.done(EmbedUpdated);
  in(FetchSquares, kEmbedSquares, kHostSquares, 4);
  done(SquaresHere, FetchSquares);
  k.norm.run(s, {at(kEmbedSquares), at(kHeadSquares)}, {at(kNorm)}, nullptr);
  ran(RunNorm);
  q.done(MWritten);
  q.done(VWritten);
}

/// The tables, which live as long as the process.
struct OffloadTables {
  std::vector<TensorInfo> tensors{std::begin(kTensors), std::end(kTensors)};
  std::vector<Region> regions[kEntries], writes[kEntries];
  std::vector<LaunchInfo> launches{size_t(kEntries)};

  OffloadTables() {
    auto move = [&](size_t tensor, SpaceKind space, int64_t offset) {
      tensors[tensor].space = space;
      tensors[tensor].offset = offset;
    };
    move(0, SpaceKind::Host, kHostEmbed);
    move(2, SpaceKind::Host, kHostEmbedM);
    move(3, SpaceKind::Host, kHostEmbedV);
    move(4, SpaceKind::File, kFileHeadM);
    move(5, SpaceKind::File, kFileHeadV);
    for (LaunchInfo &launch : launches)
      launch = {"entry", "", nullptr, 0, nullptr, 0};
    auto work = [&](Entry start, Entry done, EngineKind engine,
                    const char *name, Region made) {
      launches[start].name = name;
      launches[start].engine = engine;
      launches[start].movedBytes = made.bytes;
      launches[start].predictedSeconds = double(made.bytes) / 1e9;
      launches[done].name = name;
      launches[done].engine = engine;
      launches[done].startedBy = start;
      writes[start].push_back(made);
    };
    const auto table = [](int64_t at, SpaceKind space) {
      return Region{at, kTableBytes, DType::F32, space};
    };
    const SpaceKind device = SpaceKind::Device, host = SpaceKind::Host,
                    file = SpaceKind::File;
    work(FetchEmbed, EmbedHere, EngineKind::HostToDevice, "embed",
         table(kEmbed, device));
    work(ReadM, MHere, EngineKind::FileRead, "m read", table(kStageM, host));
    work(ReadV, VHere, EngineKind::FileRead, "v read", table(kStageV, host));
    work(StashHidden, HiddenAway, EngineKind::DeviceToHost, "hidden stash",
         {kHostHidden, kHiddenBytes, DType::F32, host});
    work(FetchHidden, HiddenHere, EngineKind::HostToDevice, "hidden fetch",
         {kHidden, kHiddenBytes, DType::F32, device});
    work(StashRate, ScalarsAway, EngineKind::DeviceToHost, "lr",
         {kHostRate, 4, DType::F32, host});
    work(StashStep, ScalarsAway, EngineKind::DeviceToHost, "step",
         {kHostStep, 8, DType::I64, host});
    work(StashDEmbed, DEmbedAway, EngineKind::DeviceToHost, "embed.grad",
         table(kHostDEmbed, host));
    work(UpdateEmbed, EmbedUpdated, EngineKind::Host, "embed.update",
         table(kHostEmbed, host));
    work(FetchM, MHere, EngineKind::HostToDevice, "m fetch",
         table(kHeadM, device));
    work(FetchV, VHere, EngineKind::HostToDevice, "v fetch",
         table(kHeadV, device));
    work(StashM, MAway, EngineKind::DeviceToHost, "m stash",
         table(kStageM, host));
    work(StashV, VAway, EngineKind::DeviceToHost, "v stash",
         table(kStageV, host));
    work(WriteM, MWritten, EngineKind::FileWrite, "m write",
         table(kFileHeadM, file));
    work(WriteV, VWritten, EngineKind::FileWrite, "v write",
         table(kFileHeadV, file));
    work(FetchSquares, SquaresHere, EngineKind::HostToDevice, "squares",
         {kEmbedSquares, 4, DType::F32, device});
    regions[HiddenAway] = {{kHidden, kHiddenBytes, DType::F32, device}};
    regions[HiddenHere] = {{kHostHidden, kHiddenBytes, DType::F32, host}};
    regions[RunHiddenGrad] = {{kLogits, kRows * kVocabulary * 4, DType::F32}};
    regions[DEmbedAway] = {table(kDEmbed, device)};
    regions[RunHeadUpdate] = {table(kDHead, device)};
    regions[MAway] = {table(kHeadM, device)};
    regions[VAway] = {table(kHeadV, device)};
    regions[EmbedUpdated] = {table(kHostDEmbed, host), table(kEmbed, device)};
    regions[MWritten] = {table(kStageM, host)};
    regions[VWritten] = {table(kStageV, host)};
    for (int i = 0; i < kEntries; ++i) {
      launches[size_t(i)].deaths = regions[i].data();
      launches[size_t(i)].deathCount = int32_t(regions[i].size());
      launches[size_t(i)].writes = writes[i].data();
      launches[size_t(i)].writeCount = int32_t(writes[i].size());
    }
  }
};

inline StepProgram offloadProgram() {
  static const OffloadTables tables;
  StepProgram p = program();
  p.arenaBytes[SpaceKind::Host] = kHostArena;
  p.arenaBytes[SpaceKind::File] = kSwapFile;
  p.eventCount = kEntries;
  p.tensors = tables.tensors.data();
  p.launches = tables.launches.data();
  p.launchCount = kEntries;
  p.createKernels = []() -> void * { return new OffloadKernels; };
  p.destroyKernels = [](void *k) { delete static_cast<OffloadKernels *>(k); };
  static const auto visitPlain = p.visitKernels;
  p.visitKernels = [](void *opaque, void *context,
                      void (*visit)(void *, const char *, Kernel &)) {
    OffloadKernels &k = *static_cast<OffloadKernels *>(opaque);
    visitPlain(static_cast<Kernels *>(&k), context, visit);
    visit(context, "hostUpdate", k.hostUpdate);
  };
  p.run = runOffload;
  return p;
}

} // namespace tmc::test::tiny

#endif // TMC_TEST_UNIT_RUNTIME_TINYOFFLOAD_H
