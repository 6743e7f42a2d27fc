// RankFaultsTest.cpp - faults planted in the placed programs of two to four
// ranks, each of which -tmc-verify-ranks names by its kind.
//
// The programs are those of tmc: parameters whole or as shards, micro-batches,
// sums of shards, offload. A mutation counts as a fault only if it is one by a
// rule of its own here: the swapped calls differ, a dropped wait stood before
// the done of its call, and so on.

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/RankPrograms.h"
#include "driver/pipeline/Pipeline.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <map>

using namespace mlir;
using namespace tmc;

namespace {

struct Case {
  std::string name, model;
  int64_t batch = 8, sequence = 0, level = 0, microBatches = 1;
  bool addsShards = false, offloads = false;
  int tensor = 1;
};

const std::vector<Case> &cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (auto [model, sequence] :
         {std::pair{"mlp-small", 0}, std::pair{"gpt2-tiny", 16}})
      for (const Case &each :
           {Case{"zero=0", "", 8, 0, 0}, Case{"zero=2", "", 8, 0, 2},
            Case{"zero=3", "", 8, 0, 3},
            Case{"zero=3 in trips", "", 8, 0, 3, 2},
            Case{"sums of shards", "", 8, 0, 3, 2, true},
            Case{"offload", "", 8, 0, 3, 1, false, true},
            Case{"offload in trips", "", 8, 0, 2, 4, false, true},
            Case{"heads and columns", "", 8, 0, 3, 1, false, false, 2}}) {
        list.push_back(each);
        list.back().model = model;
        list.back().sequence = sequence;
      }
    return list;
  }();
  return all;
}

Compiled compiled(const Case &each) {
  CompileOptions options;
  options.model =
      TMC_SOURCE_DIR "/test/models/" + each.model + std::string(".onnx");
  options.target = "cpu";
  options.batch = each.batch;
  if (each.sequence)
    options.dims["sequence"] = each.sequence;
  options.effort = 10;
  options.mesh.data = 2;
  options.mesh.tensor = each.tensor;
  options.shardLevel = each.level;
  options.sums = each.addsShards ? RankSums::Shards : RankSums::Whole;
  options.levers[kMicroBatches].count = each.microBatches;
  if (each.offloads)
    options.offload = OffloadSpec::all();
  return compileTo(options, Phase::Place);
}

/// A module of which a test changes some programs.
struct Trial {
  OwningOpRef<ModuleOp> module;
  std::vector<mem::ProgramOp> programs;
  Mesh mesh{.data = 2};

  explicit Trial(ModuleOp original, int tensor = 1) : module(original.clone()) {
    mesh.tensor = tensor;
    programs.push_back(*module->getOps<mem::ProgramOp>().begin());
  }
  /// `lists`: the ranks of each program, which are equal at first.
  Trial(ModuleOp original, std::vector<std::vector<int64_t>> lists,
        int tensor = 1)
      : Trial(original, tensor) {
    OpBuilder b(programs[0]);
    for (size_t p = 1; p < lists.size(); ++p) {
      programs.push_back(cast<mem::ProgramOp>(b.clone(*programs[0])));
      programs.back().setSymName("program_" + std::to_string(p));
    }
    for (size_t p = 0; p < lists.size(); ++p)
      programs[p]->setAttr(kProgramRanks, b.getDenseI64ArrayAttr(lists[p]));
  }

  std::vector<mem::LaunchOp> calls(size_t program) {
    std::vector<mem::LaunchOp> found;
    programs[program].walk([&](mem::LaunchOp launch) {
      if (mem::engineOf(launch) == EngineKind::Network)
        found.push_back(launch);
    });
    return found;
  }
  template <typename T> std::vector<T> all(size_t program = 0) {
    std::vector<T> found;
    programs[program].walk([&](T op) { found.push_back(op); });
    return found;
  }

  std::string verdict() {
    ScopedDiagnosticHandler quiet(module->getContext(),
                                  [](Diagnostic &) { return success(); });
    FailureOr<RankWorld> world = ranksOf(*module, mesh);
    if (failed(world))
      return "unreadable";
    std::optional<RankFault> fault = checkRanks(*world);
    if (fault)
      said = fault->message;
    return fault ? nameOf(fault->kind) : "right";
  }
  std::string said;
};

void setParam(mem::LaunchOp launch, StringRef name, Attribute value) {
  OpBuilder b(launch);
  SmallVector<Attribute> params;
  for (Attribute param : launch.getParams()) {
    auto pair = cast<ArrayAttr>(param);
    const bool isIt = cast<StringAttr>(pair[0]).getValue() == name;
    params.push_back(isIt ? b.getArrayAttr({pair[0], value}) : param);
  }
  launch.setParamsAttr(b.getArrayAttr(params));
}

int64_t number(mem::LaunchOp launch, StringRef name) {
  for (Attribute param : launch.getParams()) {
    auto pair = cast<ArrayAttr>(param);
    if (cast<StringAttr>(pair[0]).getValue() == name)
      return cast<IntegerAttr>(pair[1]).getInt();
  }
  return -1;
}

void setNumber(mem::LaunchOp launch, StringRef name, int64_t value) {
  setParam(launch, name, OpBuilder(launch).getI64IntegerAttr(value));
}

Attribute axisOf(mem::LaunchOp launch) {
  for (Attribute param : launch.getParams())
    if (auto pair = cast<ArrayAttr>(param);
        cast<StringAttr>(pair[0]).getValue() == "axis")
      return pair[1];
  return {};
}

bool isEqual(mem::LaunchOp a, mem::LaunchOp b) {
  return a.getOp() == b.getOp() && a.getInstance() == b.getInstance() &&
         a.getCallee() == b.getCallee();
}

/// Counts the planted faults of each kind, and wants each named.
class Planter {
public:
  explicit Planter(const Case &which, ModuleOp original)
      : which(which), original(original),
        calls(Trial(original).calls(0).size()), step(calls > 8 ? 5 : 1) {}

  static std::map<std::string, int64_t> &planted() {
    static std::map<std::string, int64_t> counts;
    return counts;
  }

  void run() {
    EXPECT_EQ(Trial(original, which.tensor).verdict(), "right") << which.name;
    EXPECT_EQ(apart().verdict(), "right");
    ASSERT_GT(calls, 2u);
    for (size_t call = 0; call < calls; call += step) {
      swap(call);
      drop(call);
      dropOnAll(call);
      change(call);
      repeat(call);
      ring(call);
      shiftShard(call);
    }
    dropWaits();
    cutShards();
  }

private:
  const Case &which;
  ModuleOp original;
  const size_t calls;
  const size_t step; // From one fault to the next: some calls show all.

  /// The last rank has a program of its own.
  Trial apart() const {
    return which.tensor == 1 ? Trial(original, {{0}, {1}})
                             : Trial(original, {{0, 1, 2}, {3}}, 2);
  }

  void expect(Trial &trial, const std::string &what, const std::string &kind) {
    ++planted()[what];
    EXPECT_EQ(trial.verdict(), kind) << what << " in " << which.model << " "
                                     << which.name << ": " << trial.said;
  }

  /// A rank makes two neighbouring calls in the other order.
  void swap(size_t call) {
    Trial trial = apart();
    std::vector<mem::LaunchOp> its = trial.calls(call % 2);
    if (call + 1 == its.size() || isEqual(its[call], its[call + 1]) ||
        axisOf(its[call]) != axisOf(its[call + 1]) ||
        its[call]->getBlock() != its[call + 1]->getBlock())
      return;
    Operation *after = its[call + 1]->getNextNode();
    its[call + 1]->moveBefore(its[call]);
    its[call]->moveBefore(after);
    expect(trial, "a swapped pair", "order");
  }

  void drop(size_t call) {
    Trial trial = apart();
    trial.calls(call % 2)[call]->erase();
    expect(trial, "a missing call on one rank", "unmatched");
  }

  /// All ranks lack the only work that writes a buffer, and something reads it;
  /// or the gather of an updated parameter.
  void dropOnAll(size_t call) {
    Trial trial(original, which.tensor);
    mem::LaunchOp gone = trial.calls(0)[call];
    mem::BufferOp made = bufferOf(gone.getOutputs()[0]);
    bool isRead = false, isMade = false, isCut = false;
    for (mem::LaunchOp launch : trial.all<mem::LaunchOp>()) {
      for (Value value : launch.getInputs()) {
        isRead |= bufferOf(value) == made;
        isCut |= launch.getCallee() == "ShardOf" && bufferOf(value) == made;
      }
      for (Value value : launch.getOutputs())
        isMade |= launch != gone && bufferOf(value) == made;
    }
    for (mem::CopyOp copy : trial.all<mem::CopyOp>()) {
      isRead |= bufferOf(copy.getSource()) == made;
      isMade |= bufferOf(copy.getTarget()) == made;
    }
    if (made.getPersistent() ? !isCut : isMade || !isRead)
      return;
    gone->erase();
    expect(trial, "a missing call on all ranks", "missing");
  }

  /// A call of other figures on one rank.
  void change(size_t call) {
    auto plant = [&](const std::string &what, const std::string &kind,
                     auto mutate) {
      Trial trial = apart();
      mutate(trial.calls(call % 2)[call]);
      expect(trial, what, kind);
    };
    plant("other bytes", "bytes", [](mem::LaunchOp launch) {
      setNumber(launch, "bytes", number(launch, "bytes") + 4);
    });
    plant("another total", "total", [](mem::LaunchOp launch) {
      setNumber(launch, "total", number(launch, "total") - 4);
    });
    plant("another group", "group",
          [](mem::LaunchOp launch) { setNumber(launch, "ranks", 4); });
    plant("a gather for an exchange, or the reverse", "operation",
          [](mem::LaunchOp launch) {
            launch.setCallee(launch.getCallee() == "GatherRanks"
                                 ? "ExchangeRanks"
                                 : "GatherRanks");
          });
    plant("another type", "type", [](mem::LaunchOp launch) {
      OpBuilder b(launch);
      for (OpOperand &operand : launch->getOpOperands()) {
        auto type = cast<MemRefType>(operand.get().getType());
        Value view = mem::ViewOp::create(
            b, launch.getLoc(),
            MemRefType::get(type.getShape(), b.getI32Type(), type.getLayout(),
                            type.getMemorySpace()),
            operand.get());
        operand.set(view);
      }
    });
    // The same wrong figures on all ranks.
    Trial trial(original, which.tensor);
    mem::LaunchOp launch = trial.calls(0)[call];
    setNumber(launch, "bytes", number(launch, "bytes") - 4);
    expect(trial, "other pieces on all ranks", "piece");
  }

  void repeat(size_t call) {
    Trial trial = apart();
    mem::LaunchOp launch = trial.calls(call % 2)[call];
    OpBuilder(launch).clone(*launch);
    expect(trial, "an extra call on one rank", "unmatched");
  }

  /// Ranks 0 and 3 of a mesh of two by two make a call over tp after one over
  /// dp, and the others before it.
  void ring(size_t call) {
    if (which.tensor > 1)
      return; // It has calls over both axes.
    Trial trial(original, {{0, 3}, {1, 2}});
    trial.mesh.tensor = 2;
    for (size_t program : {0, 1}) {
      mem::LaunchOp launch = trial.calls(program)[call];
      OpBuilder b(launch);
      if (program == 0)
        b.setInsertionPointAfter(launch);
      auto over = cast<mem::LaunchOp>(b.clone(*launch));
      setParam(over, "axis", b.getStringAttr("Axis::Tensor"));
    }
    expect(trial, "a ring of waits", "cycle");
  }

  /// A call reads from the middle of its operand on.
  void shiftShard(size_t call) {
    Trial trial(original, which.tensor);
    mem::LaunchOp launch = trial.calls(0)[call];
    Value operand = launch.getInputs()[0];
    auto type = cast<MemRefType>(operand.getType());
    if (!type.getLayout().isIdentity() ||
        !operand.getDefiningOp<mem::BufferOp>() || type.getRank() != 1)
      return;
    OpBuilder b(launch);
    Value view = mem::ViewOp::create(
        b, launch.getLoc(),
        MemRefType::get(type.getShape(), type.getElementType(),
                        StridedLayoutAttr::get(
                            b.getContext(), type.getNumElements() / 2 + 1, {1}),
                        type.getMemorySpace()),
        operand);
    launch.getInputsMutable()[0].set(view);
    expect(trial, "a shard's offset", "piece");
  }

  void dropWaits() {
    const size_t waits = Trial(original).all<mem::WaitOp>().size();
    for (size_t w = 0; w < waits; w += step) {
      Trial trial(original, which.tensor);
      mem::WaitOp wait = trial.all<mem::WaitOp>()[w];
      if (const char *what = neededAs(trial, wait)) {
        wait->erase();
        expect(trial, what, "wait");
      }
    }
    dropCallsOwn<mem::DoneOp>("a dropped done");
    dropCallsOwn<mem::RecordOp>("a dropped record");
  }

  /// Drops each op of this type whose event is a call's.
  template <typename Op> void dropCallsOwn(const char *what) {
    const size_t ops = Trial(original).all<Op>().size();
    for (size_t i = 0; i < ops; i += step) {
      Trial trial(original, which.tensor);
      Op op = trial.all<Op>()[i];
      if (!callOf(trial, op.getEvent()))
        continue;
      op->erase();
      expect(trial, what, "wait");
    }
  }

  /// The call whose event this is; null: it is another's.
  static Operation *callOf(Trial &trial, int64_t event) {
    Operation *work = workOfEvents(trial.programs[0]).lookup(event);
    auto launch = dyn_cast_or_null<mem::LaunchOp>(work);
    return launch && mem::engineOf(launch) == EngineKind::Network ? work
                                                                  : nullptr;
  }

  /// The name of a wait that must be there; null: others may stand for it.
  static const char *neededAs(Trial &trial, mem::WaitOp wait) {
    auto done = dyn_cast_or_null<mem::DoneOp>(wait->getNextNode());
    if (wait.getEngine() == EngineKind::Compute && done &&
        done.getEvent() == wait.getEvent() && callOf(trial, wait.getEvent()))
      return "a dropped wait before a done";
    // A kernel has made the operand since the network waited last.
    auto call = dyn_cast_or_null<mem::LaunchOp>(wait->getNextNode());
    if (wait.getEngine() != EngineKind::Network || !call ||
        mem::engineOf(call) != EngineKind::Network)
      return nullptr;
    mem::BufferOp operand = bufferOf(call.getInputs()[0]);
    for (Operation *op = wait->getPrevNode(); op; op = op->getPrevNode()) {
      if (auto other = dyn_cast<mem::WaitOp>(op);
          other && other.getEngine() == EngineKind::Network)
        return nullptr;
      auto launch = dyn_cast<mem::LaunchOp>(op);
      if (launch && mem::engineOf(launch) == EngineKind::Compute &&
          llvm::any_of(launch.getOutputs(),
                       [&](Value value) { return bufferOf(value) == operand; }))
        return "a dropped wait of the network";
    }
    return nullptr;
  }

  /// A kept shard of a larger value than it can be of.
  void cutShards() {
    auto wholeOf = [](mem::BufferOp buffer) {
      DictionaryAttr tensor = buffer.getTensorAttr();
      return tensor ? tensor.getAs<TypeAttr>("train.whole") : TypeAttr();
    };
    auto shardsOf = [&](Trial &trial) {
      std::vector<mem::BufferOp> found;
      for (mem::BufferOp buffer : trial.all<mem::BufferOp>())
        if (wholeOf(buffer))
          found.push_back(buffer);
      return found;
    };
    Trial whole(original);
    const size_t shards = shardsOf(whole).size();
    for (size_t n = 0; n < shards; n += step) {
      Trial trial(original, which.tensor);
      mem::BufferOp buffer = shardsOf(trial)[n];
      DictionaryAttr tensor = buffer.getTensorAttr();
      TypeAttr whole = wholeOf(buffer);
      auto type = cast<RankedTensorType>(whole.getValue());
      SmallVector<int64_t> shape(type.getShape());
      shape[0] *= 3;
      NamedAttrList changed(tensor);
      changed.set("train.whole", TypeAttr::get(type.clone(shape)));
      buffer.setTensorAttr(changed.getDictionary(buffer.getContext()));
      expect(trial, "a shard of another value", "piece");
    }
  }
};

TEST(RankFaults, PlantedOnesAreNamed) {
  for (const Case &each : cases()) {
    Compiled its = compiled(each);
    ASSERT_TRUE(bool(its.done))
        << each.model << " " << each.name << ": " << its.done.failure().message;
    Planter(each, its.module()).run();
    if (HasFailure())
      break;
  }
  int64_t all = 0;
  for (const auto &[what, count] : Planter::planted()) {
    std::printf("  %5d x %s\n", int(count), what.c_str());
    all += count;
    EXPECT_GE(count, 20) << what;
  }
  std::printf("  %5d faults planted\n", int(all));
  EXPECT_GE(all, 500);
  EXPECT_EQ(Planter::planted().size(), 17u);
}

} // namespace
