#include "compiler/analysis/RankPrograms.h"

#include "compiler/analysis/MemAccess.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Train.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tmc;

/// The trips of a loop that show every case, where all ranks run one program.
static constexpr int64_t kShownTrips = 3;

/// A parameter of a kernel; null if it has none of this name.
static Attribute paramOf(mem::LaunchOp launch, StringRef name) {
  for (Attribute param : launch.getParams()) {
    auto pair = cast<ArrayAttr>(param);
    if (cast<StringAttr>(pair[0]).getValue() == name)
      return pair[1];
  }
  return {};
}

static int64_t numberOf(mem::LaunchOp launch, StringRef name) {
  auto number = dyn_cast_or_null<IntegerAttr>(paramOf(launch, name));
  return number ? number.getInt() : -1;
}

/// The axis of a call: "Axis::Data" in the kernel's parameters.
static std::optional<Axis> axisOf(mem::LaunchOp launch) {
  auto word = dyn_cast_or_null<StringAttr>(paramOf(launch, "axis"));
  for (Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
    if (word && word.getValue() == StringRef(wordOf(axis)))
      return axis;
  return {};
}

static std::optional<RankCall::Kind> kindOf(mem::LaunchOp launch) {
  using Kind = std::optional<RankCall::Kind>;
  return llvm::StringSwitch<Kind>(launch.getCallee())
      .Case("GatherRanks", Kind(RankCall::Kind::Gather))
      .Case("ExchangeRanks", Kind(RankCall::Kind::Exchange))
      .Case("ShardOf", Kind(RankCall::Kind::Cut))
      .Default(Kind());
}

namespace {

/// Reads one program.
class Reader {
public:
  Reader(mem::ProgramOp program, bool isAlone)
      : program(program), isAlone(isAlone) {}

  LogicalResult run() {
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>()) {
      numberOfBuffer[buffer] = int32_t(made.buffers.size());
      made.buffers.push_back(bufferOf(buffer));
    }
    return visit(program.getBlock(), 0);
  }

  RankProgram made;

private:
  mem::ProgramOp program;
  const bool isAlone;
  llvm::DenseMap<Operation *, int32_t> numberOfBuffer;

  /// The parameter of a state, by its name.
  mem::BufferOp parameterOf(DictionaryAttr tensor) {
    auto slot = tensor.getAs<StringAttr>(train::TrainDialect::kSlot);
    if (!slot)
      return {};
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>())
      if (DictionaryAttr its = buffer.getTensorAttr())
        if (its.get(train::TrainDialect::kName) == slot &&
            !its.get(train::TrainDialect::kSlot))
          return buffer;
    return {};
  }

  /// The elements of the value that a buffer, or its shards, are of.
  static int64_t wholeElements(mem::BufferOp buffer) {
    if (DictionaryAttr tensor = buffer.getTensorAttr())
      if (auto whole = tensor.getAs<TypeAttr>(train::TrainDialect::kWhole))
        return cast<ShapedType>(whole.getValue()).getNumElements();
    return cast<MemRefType>(buffer.getType()).getNumElements();
  }

  RankBuffer bufferOf(mem::BufferOp buffer) {
    RankBuffer its;
    const MemRange range = rangeOf(buffer, 0);
    its.name = buffer.getName();
    its.begin = range.begin;
    its.bytes = range.end - range.begin;
    its.isKept = buffer.getPersistent() || buffer.getConstant();
    DictionaryAttr tensor = buffer.getTensorAttr();
    if (!tensor || !tensor.get(train::TrainDialect::kWhole))
      return its;
    its.wholeElements = wholeElements(buffer);
    its.elements = cast<MemRefType>(buffer.getType()).getNumElements();
    its.parameterElements = its.wholeElements;
    if (mem::BufferOp parameter = parameterOf(tensor))
      its.parameterElements = wholeElements(parameter);
    if (its.wholeElements > 0)
      its.each = int64_t(llvm::PowerOf2Ceil(uint64_t(
          llvm::divideCeil(its.parameterElements, its.wholeElements))));
    return its;
  }

  RankBytes bytesOf(Value memref, int64_t trip) {
    const MemRange range = rangeOf(memref, trip);
    return {range.space, range.begin, range.end,
            numberOfBuffer.lookup(range.buffer)};
  }

  LogicalResult visit(Block &block, int64_t trip) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<mem::LoopOp>(op)) {
        const int64_t trips = loop.getCount();
        for (int64_t i = 0;
             i < (isAlone ? std::min(trips, kShownTrips) : trips); ++i)
          if (failed(visit(loop.getBlock(), i)))
            return failure();
        continue;
      }
      if (failed(add(op, trip)))
        return failure();
      if (int64_t(made.entries.size()) > kMostRankEntries)
        return op.emitError("is an entry of a list that is too long to check: ")
               << "it has more than " << kMostRankEntries << " entries";
    }
    return success();
  }

  LogicalResult add(Operation &op, int64_t trip) {
    RankEntry entry;
    entry.op = &op;
    auto mark = [&](RankEntry::Kind kind, int64_t event, EngineKind engine) {
      entry.kind = kind;
      entry.event = event;
      entry.engine = engine;
    };
    if (auto record = dyn_cast<mem::RecordOp>(op)) {
      mark(RankEntry::Kind::Record, record.getEvent(), record.getEngine());
    } else if (auto wait = dyn_cast<mem::WaitOp>(op)) {
      mark(RankEntry::Kind::Wait, wait.getEvent(), wait.getEngine());
    } else if (auto done = dyn_cast<mem::DoneOp>(op)) {
      mark(RankEntry::Kind::Done, done.getEvent(), EngineKind::Compute);
    } else if (isa<mem::LaunchOp, mem::CopyOp, mem::FillOp>(op)) {
      const MemAccesses its = accessesOf(&op, trip);
      for (Value value : its.reads)
        entry.reads.push_back(bytesOf(value, trip));
      for (Value value : its.writes)
        entry.writes.push_back(bytesOf(value, trip));
      if (auto copy = dyn_cast<mem::CopyOp>(op)) {
        entry.engine = copy.getEngine();
        entry.name = copy.getOp();
        entry.instance = copy.getInstance();
      } else if (auto launch = dyn_cast<mem::LaunchOp>(op)) {
        entry.engine = mem::engineOf(launch);
        entry.name = launch.getOp();
        entry.instance = launch.getInstance();
        if (failed(addCall(launch, entry)))
          return failure();
      }
    } else {
      return success(); // A buffer or a view.
    }
    made.entries.push_back(std::move(entry));
    return success();
  }

  LogicalResult addCall(mem::LaunchOp launch, RankEntry &entry) {
    const std::optional<RankCall::Kind> kind = kindOf(launch);
    const bool onNetwork = entry.engine == EngineKind::Network;
    if (!kind && !onNetwork)
      return success();
    const std::optional<Axis> axis = axisOf(launch);
    if (!kind || !axis || launch.getInputs().size() != 1 ||
        launch.getOutputs().size() != 1 ||
        onNetwork != (*kind != RankCall::Kind::Cut))
      return launch.emitError("a defect: '")
             << launch.getCallee() << "' on " << nameOf(entry.engine)
             << " is no call between ranks";
    RankCall &call = entry.call.emplace();
    call.kind = *kind;
    call.axis = *axis;
    call.ranks = numberOf(launch, "ranks");
    call.bytes = numberOf(launch, "bytes");
    call.total = numberOf(launch, "total");
    auto from = cast<MemRefType>(launch.getInputs()[0].getType());
    auto to = cast<MemRefType>(launch.getOutputs()[0].getType());
    llvm::raw_string_ostream(call.type = "") << from.getElementType();
    if (from.getElementType() != to.getElementType())
      llvm::raw_string_ostream(call.type) << " to " << to.getElementType();
    call.elementBytes = (from.getElementTypeBitWidth() + 7) / 8;
    call.isWhole = call.kind == RankCall::Kind::Gather &&
                   to.getRank() == from.getRank() + 1 &&
                   to.getShape().drop_front() == from.getShape();
    return success();
  }
};

/// The number of ranks on `axis` by the first call over it; 1: there is none.
int64_t ranksOnAxis(ArrayRef<RankProgram> programs, Axis axis) {
  for (const RankProgram &program : programs)
    for (const RankEntry &entry : program.entries)
      if (entry.call && entry.call->axis == axis)
        return entry.call->ranks;
  return 1;
}

/// The program of each rank, by the ranks that each names.
LogicalResult readRanks(ArrayRef<mem::ProgramOp> programs, RankWorld &world) {
  world.programOf.assign(size_t(world.mesh.ranks()), -1);
  for (auto [number, each] : llvm::enumerate(programs)) {
    mem::ProgramOp program = each;
    auto ranks = program->getAttrOfType<DenseI64ArrayAttr>(kProgramRanks);
    if (!ranks)
      return program.emitError("names no ranks, and another program does");
    for (int64_t rank : ranks.asArrayRef()) {
      if (rank < 0 || rank >= world.mesh.ranks() ||
          world.programOf[size_t(rank)] >= 0)
        return program.emitError("is the program of rank ")
               << rank << ", which isn't one of " << world.mesh.ranks()
               << " ranks or has another program";
      world.programOf[size_t(rank)] = int32_t(number);
    }
  }
  for (auto [rank, program] : llvm::enumerate(world.programOf))
    if (program < 0)
      return programs.front()->emitError("stands beside no program of rank ")
             << rank;
  return success();
}

} // namespace

FailureOr<RankWorld> tmc::ranksOf(ModuleOp module, Mesh mesh) {
  SmallVector<mem::ProgramOp> programs(module.getOps<mem::ProgramOp>());
  RankWorld world;
  for (mem::ProgramOp program : programs) {
    Reader reader(program, programs.size() == 1);
    if (failed(reader.run()))
      return failure();
    world.programs.push_back(std::move(reader.made));
  }
  const bool named = llvm::any_of(programs, [](mem::ProgramOp program) {
    return bool(program->getAttr(kProgramRanks));
  });
  for (Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline}) {
    int &size = axis == Axis::Data     ? mesh.data
                : axis == Axis::Tensor ? mesh.tensor
                                       : mesh.pipeline;
    if (size == 0 && axis == Axis::Pipeline && !named)
      size = std::max(int(programs.size()), 1);
    if (size == 0)
      size = int(std::clamp<int64_t>(ranksOnAxis(world.programs, axis), 1,
                                     kMostRanks));
  }
  world.mesh = mesh;
  if (programs.empty())
    return world;
  if (mesh.ranks() > kMostRanks)
    return programs.front()->emitError("has a mesh of more than ")
           << kMostRanks << " ranks";
  if (named) {
    if (failed(readRanks(programs, world)))
      return failure();
  } else if (int(programs.size()) != mesh.pipeline) {
    return programs.front()->emitError("is one of ")
           << programs.size() << " programs for " << mesh.pipeline << " stages";
  }
  return world;
}
