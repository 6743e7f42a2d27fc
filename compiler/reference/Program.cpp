#include "compiler/reference/Program.h"

#include "compiler/analysis/StepProblem.h"
#include "compiler/analysis/Storage.h"
#include "dialects/nn/NN.h"
#include "runtime/kernels/Generated.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cstring>

using namespace mlir;
using namespace tmc;
using namespace tmc::reference;

//===----------------------------------------------------------------------===//
// The meaning of launches
//===----------------------------------------------------------------------===//

/// The kernels of a block in order, a loop's body once.
static void kernelsOf(Block &block, SmallVectorImpl<Operation *> &kernels) {
  for (Operation &op : block.without_terminator()) {
    if (auto loop = dyn_cast<train::MicroBatchOp>(op))
      kernelsOf(loop.getBlock(), kernels);
    else if (isa<KernelOpInterface>(op) && !isView(&op) &&
             !isa<arith::ConstantOp>(op))
      kernels.push_back(&op);
  }
}

FailureOr<LaunchMeaning> tmc::reference::meaningOf(train::StepOp planned,
                                                   mem::ProgramOp program) {
  SmallVector<Operation *> kernels;
  kernelsOf(planned.getBody().front(), kernels);
  LaunchMeaning meaning;
  size_t count = 0;
  WalkResult done = program.walk([&](mem::LaunchOp launch) -> WalkResult {
    if (count == kernels.size())
      return launch.emitError("is one launch too many");
    Operation *op = kernels[count++];
    if (launch.getOp() != nameOf(op))
      return launch.emitError("stands where the plan runs ") << nameOf(op);
    bool looped = isa<train::MicroBatchOp>(op->getParentOp());
    if (looped != isa<mem::LoopOp>(launch->getParentOp()))
      return launch.emitError("is on the wrong side of a loop");
    meaning[launch] = op;
    return WalkResult::advance();
  });
  if (done.wasInterrupted())
    return failure();
  if (count != kernels.size())
    return program.emitError("has ")
           << count << " launches for " << kernels.size() << " kernels";
  return meaning;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

/// The content of unwritten bytes: a NaN in every float type.
constexpr uint8_t kGarbage = 0xff;

/// A piece of memory, and how a tensor lies in it.
struct Place {
  uint8_t *base = nullptr; ///< The address of the strided layout's origin.
  MemRefType type;
};

class Machine {
public:
  Machine(mem::ProgramOp program, const LaunchMeaning &meaning)
      : program(program), meaning(meaning) {}

  LogicalResult allocate() {
    int64_t arenaBytes = program.deviceArenaBytes();
    if (arenaBytes >= 0)
      arena.assign(arenaBytes, kGarbage);
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>()) {
      int64_t bytes = sizeInBytes(buffer.getMemref().getType());
      if (arenaBytes < 0) {
        own[buffer].assign(bytes, kGarbage);
        continue;
      }
      int64_t offset = buffer.getOffset();
      if (offset < 0 || offset + bytes > arenaBytes)
        return buffer.emitError("lies at [")
               << offset << ", " << offset + bytes << "), outside the arena of "
               << arenaBytes << " bytes";
    }
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>())
      if (auto constant = buffer.getConstant())
        write(placeOf(buffer.getMemref()),
              Tensor::fromAttr(cast<DenseElementsAttr>(*constant)));
    return success();
  }

  void load(const llvm::StringMap<Tensor> &inputs) {
    forNamed([&](StringRef name, mem::BufferOp buffer) {
      if (auto it = inputs.find(name); it != inputs.end())
        write(placeOf(buffer.getMemref()), it->second);
    });
  }

  llvm::StringMap<Tensor> results() {
    llvm::StringMap<Tensor> found;
    forNamed([&](StringRef name, mem::BufferOp buffer) {
      found[name] = read(placeOf(buffer.getMemref()));
    });
    return found;
  }

  LogicalResult run(Block &block) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<mem::LoopOp>(op)) {
        for (trip = 0; trip < int64_t(loop.getCount()); ++trip)
          if (failed(run(loop.getBlock())))
            return failure();
        trip = 0;
      } else if (auto fill = dyn_cast<mem::FillOp>(op)) {
        Place place = placeOf(fill.getTarget());
        write(place, Tensor(place.type));
      } else if (auto launch = dyn_cast<mem::LaunchOp>(op)) {
        if (failed(run(launch)))
          return failure();
        // One thing is done at a time, and events order nothing.
      } else if (!isa<mem::BufferOp, mem::ViewOp, mem::PieceOp, mem::RecordOp,
                      mem::WaitOp, mem::DoneOp>(op)) {
        return op.emitError("isn't known to the interpreter");
      }
    }
    return success();
  }

private:
  mem::ProgramOp program;
  const LaunchMeaning &meaning;
  std::vector<uint8_t> arena;
  llvm::DenseMap<Operation *, std::vector<uint8_t>> own;
  int64_t trip = 0;

  void forNamed(llvm::function_ref<void(StringRef, mem::BufferOp)> visit) {
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>())
      if (DictionaryAttr tensor = buffer.getTensorAttr())
        visit(tensor.getAs<StringAttr>(train::TrainDialect::kName).getValue(),
              buffer);
  }

  Place placeOf(Value memref) {
    auto type = cast<MemRefType>(memref.getType());
    Operation *op = memref.getDefiningOp();
    if (auto buffer = dyn_cast<mem::BufferOp>(op))
      return {arena.empty() ? own[buffer].data()
                            : arena.data() + buffer.getOffset(),
              type};
    if (auto piece = dyn_cast<mem::PieceOp>(op))
      return {placeOf(piece.getSource()).base + trip * sizeInBytes(type), type};
    return {placeOf(op->getOperand(0)).base, type};
  }

  /// Calls `visit` with the address of each element, in row-major order.
  static void forEach(Place place,
                      llvm::function_ref<void(int64_t, uint8_t *)> visit) {
    SmallVector<int64_t> strides;
    int64_t offset, size = elementBytes(elementOf(place.type.getElementType()));
    (void)place.type.getStridesAndOffset(strides, offset);
    forEachIndex(place.type.getShape(),
                 [&](ArrayRef<int64_t> index, int64_t position) {
                   int64_t at = offset;
                   for (auto [i, stride] : llvm::zip(index, strides))
                     at += i * stride;
                   visit(position, place.base + at * size);
                 });
  }

  static Tensor read(Place place) {
    Element element = elementOf(place.type.getElementType());
    int64_t size = elementBytes(element);
    std::vector<uint8_t> dense(place.type.getNumElements() * size);
    forEach(place, [&](int64_t position, uint8_t *from) {
      std::memcpy(&dense[position * size], from, size);
    });
    return Tensor::fromBytes(element, place.type.getShape(), dense.data());
  }

  static void write(Place place, const Tensor &tensor) {
    int64_t size = elementBytes(tensor.element);
    std::vector<uint8_t> dense(tensor.size() * size);
    tensor.toBytes(dense.data());
    forEach(place, [&](int64_t position, uint8_t *to) {
      std::memcpy(to, &dense[position * size], size);
    });
  }

  static void spoil(Place place) {
    int64_t size = elementBytes(elementOf(place.type.getElementType()));
    forEach(place,
            [&](int64_t, uint8_t *to) { std::memset(to, kGarbage, size); });
  }

  /// True if a result may lie on an operand: both are at the same address, and
  /// the kernel reads each element before it writes it.
  bool mayOverwrite(mem::LaunchOp launch, Operation *op, unsigned output) {
    auto kernel = cast<KernelOpInterface>(op);
    SmallVector<OpResult> written;
    for (OpResult result : op->getResults())
      if (isWritten(result))
        written.push_back(result);
    uint8_t *to = placeOf(launch.getOutputs()[output]).base;
    for (auto [operand, result] : kernel.getOverwrites()) {
      int64_t input = int64_t(operand);
      if (kernel.getAccumulator() >= 0 && input > kernel.getAccumulator())
        --input;
      if (written[output].getResultNumber() == result &&
          input < int64_t(launch.getInputs().size()) &&
          placeOf(launch.getInputs()[input]).base == to)
        return true;
    }
    return false;
  }

  LogicalResult run(mem::LaunchOp launch) {
    Operation *op = meaning.lookup(launch);
    if (!op)
      return launch.emitError("has no meaning");
    auto kernel = cast<KernelOpInterface>(op);
    if (launch.getScratch())
      spoil(placeOf(launch.getScratch()));
    bool adds = launch.getAccumulate() && !(launch.getFirstWrites() && !trip);
    for (unsigned i = 0; i < launch.getOutputs().size(); ++i)
      if (!(adds && i == launch.getAccumulated()) &&
          !mayOverwrite(launch, op, i))
        spoil(placeOf(launch.getOutputs()[i]));

    SmallVector<Tensor> inputs;
    for (Value input : launch.getInputs())
      inputs.push_back(read(placeOf(input)));
    if (kernel.getAccumulator() >= 0) {
      Place sum = placeOf(launch.getOutputs()[launch.getAccumulated()]);
      inputs.insert(inputs.begin() + kernel.getAccumulator(),
                    adds ? read(sum) : Tensor(sum.type));
    }
    FailureOr<SmallVector<Tensor>> results =
        launch.getGenerated() ? runGenerated(launch, std::move(inputs))
                              : runOp(op, inputs);
    if (failed(results))
      return failure();
    auto output = launch.getOutputs().begin();
    for (auto [i, result] : llvm::enumerate(*results))
      if (isWritten(op->getResult(i)))
        write(placeOf(*output++), result);
    if (launch.getScratch())
      spoil(placeOf(launch.getScratch()));
    return success();
  }

  static FailureOr<SmallVector<Tensor>> runOp(Operation *op,
                                              ArrayRef<Tensor> inputs) {
    SmallVector<const Tensor *> pointers;
    for (const Tensor &input : inputs)
      pointers.push_back(&input);
    return interpretOp(op, pointers, {Rounding::ToType, nullptr});
  }

  /// Runs a kernel's text with the launch's streams of random numbers.
  FailureOr<SmallVector<Tensor>> runGenerated(mem::LaunchOp launch,
                                              SmallVector<Tensor> inputs) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<mem::KernelOp>(
        program, launch.getCalleeAttr());
    if (!kernel)
      return launch.emitError("runs a kernel that isn't there");
    OwningOpRef<mem::KernelOp> own(cast<mem::KernelOp>(kernel->clone()));
    ArrayRef<int64_t> streams;
    for (Attribute param : launch.getParams())
      if (cast<StringAttr>(cast<ArrayAttr>(param)[0]) ==
          TMC_FIELD_NAME(FusedParams, streams))
        streams = cast<DenseI64ArrayAttr>(cast<ArrayAttr>(param)[1]);
    for (auto random : own->getBlock().getOps<nn::RandomOp>()) {
      if (random.getStream() >= streams.size())
        return launch.emitError("names too few streams");
      random.setStream(streams[random.getStream()]);
    }
    return interpret(own->getOperation(), std::move(inputs),
                     {Rounding::ToType, nullptr});
  }
};

} // namespace

FailureOr<llvm::StringMap<Tensor>>
tmc::reference::interpretProgram(mem::ProgramOp program,
                                 const LaunchMeaning &meaning,
                                 const llvm::StringMap<Tensor> &inputs) {
  Machine machine(program, meaning);
  if (failed(machine.allocate()))
    return failure();
  machine.load(inputs);
  if (failed(machine.run(program.getBlock())))
    return failure();
  return machine.results();
}
