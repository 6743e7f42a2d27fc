#include "compiler/analysis/MemLiveness.h"

#include "dialects/interfaces/Interfaces.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;

mem::BufferOp tmc::bufferOf(Value memref) {
  Operation *op = memref.getDefiningOp();
  while (!isa<mem::BufferOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return cast<mem::BufferOp>(op);
}

namespace {

class Walker {
public:
  explicit Walker(MemLiveness &out) : out(out) {}

  void run(mem::ProgramOp program) {
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>()) {
      index[buffer] = out.buffers.size();
      out.buffers.push_back(buffer);
    }
    touches.resize(out.buffers.size());
    workOf = workOfEvents(program);
    visit(program.getBlock(), /*loop=*/-1);
    for (size_t i = 0; i < out.buffers.size(); ++i)
      out.spans.push_back(spanOf(i));
  }

private:
  struct Touch {
    int64_t moment;
    int loop; // -1: outside any loop.
    bool reads;
  };
  struct Loop {
    int64_t begin, end;
  };

  MemLiveness &out;
  DenseMap<Operation *, size_t> index;
  std::vector<std::vector<Touch>> touches;
  std::vector<Loop> loops;
  llvm::DenseMap<int64_t, Operation *> workOf;
  /// Moments [begin, end) of the joined launches that are being visited.
  MemLiveness::Span joined;

  void visit(Block &block, int loop) {
    for (Operation &op : block) {
      if (auto inner = dyn_cast<mem::LoopOp>(op)) {
        int number = loops.size();
        loops.push_back({int64_t(out.moments.size()), 0});
        visit(inner.getBlock(), number);
        loops[number].end = out.moments.size();
        continue;
      }
      if (auto done = dyn_cast<mem::DoneOp>(op)) {
        // The schedule's verifier reports a done without work.
        if (Operation *work = workOf.lookup(done.getEvent()))
          for (Value operand : work->getOperands())
            touches[index[bufferOf(operand)]].push_back(
                {int64_t(out.moments.size()), loop, /*reads=*/false});
        out.moments.push_back(&op);
        continue;
      }
      auto effects = dyn_cast<MemoryEffectOpInterface>(op);
      if (!effects || isa<mem::ViewOp, mem::PieceOp>(op))
        continue;
      int64_t moment = out.moments.size();
      if (moment >= joined.end) {
        auto launch = dyn_cast<mem::LaunchOp>(op);
        joined = {moment,
                  moment + (launch ? int64_t(joinedFrom(launch).size()) : 1)};
      }
      out.moments.push_back(&op);
      SmallVector<MemoryEffects::EffectInstance> list;
      effects.getEffects(list);
      // Reads first: an op reads its operands before it writes its results.
      for (bool reads : {true, false})
        for (const MemoryEffects::EffectInstance &effect : list) {
          if (isa<MemoryEffects::Read>(effect.getEffect()) != reads)
            continue;
          std::vector<Touch> &its = touches[index[bufferOf(effect.getValue())]];
          its.push_back({joined.begin, loop, reads});
          if (joined.begin + 1 < joined.end)
            its.push_back({joined.end - 1, loop, reads});
        }
    }
  }

  MemLiveness::Span spanOf(size_t buffer) {
    if (out.buffers[buffer].getPersistent())
      return {0, int64_t(out.moments.size())};
    const std::vector<Touch> &list = touches[buffer];
    if (list.empty())
      return {0, 0};
    MemLiveness::Span span{list.front().moment, list.back().moment + 1};
    for (size_t number = 0; number < loops.size(); ++number) {
      auto inside = [&](const Touch &t) { return t.loop == int(number); };
      auto first = std::find_if(list.begin(), list.end(), inside);
      if (first == list.end())
        continue;
      if (first->reads || !std::all_of(list.begin(), list.end(), inside)) {
        span.begin = std::min(span.begin, loops[number].begin);
        span.end = std::max(span.end, loops[number].end);
        // Dead after the loop's last launch, but not after each trip of it.
        span.crossesTrips |= span.end == loops[number].end;
      }
    }
    return outputOf(buffer, span);
  }

  /// A returned value stays alive until the end of the step.
  MemLiveness::Span outputOf(size_t buffer, MemLiveness::Span span) {
    DictionaryAttr tensor = out.buffers[buffer].getTensorAttr();
    if (tensor && tensor.get("train.output"))
      span.end = out.moments.size();
    return span;
  }
};

} // namespace

SmallVector<mem::LaunchOp> tmc::joinedFrom(mem::LaunchOp launch) {
  SmallVector<mem::LaunchOp> all{launch};
  for (Operation *op = launch->getNextNode(); op && all.back().getJoinsNext();
       op = op->getNextNode())
    if (auto next = dyn_cast<mem::LaunchOp>(op))
      all.push_back(next);
  return all;
}

llvm::DenseMap<int64_t, Operation *> tmc::workOfEvents(mem::ProgramOp program) {
  llvm::DenseMap<int64_t, Operation *> workOf;
  program.walk([&](mem::RecordOp record) {
    Operation *before = record->getPrevNode();
    auto launch = dyn_cast_or_null<mem::LaunchOp>(before);
    if (isa_and_nonnull<mem::CopyOp>(before) ||
        (launch && mem::engineOf(launch) != EngineKind::Compute))
      workOf[record.getEvent()] = before;
  });
  return workOf;
}

MemLiveness tmc::memLiveness(mem::ProgramOp program) {
  MemLiveness out;
  Walker(out).run(program);
  return out;
}

std::pair<int64_t, int64_t> MemLiveness::peak(int64_t alignment,
                                              SpaceKind space) const {
  std::vector<int64_t> change(moments.size() + 1, 0);
  for (size_t i = 0; i < buffers.size(); ++i) {
    MemRefType type = mem::BufferOp(buffers[i]).getMemref().getType();
    if (spans[i].begin == spans[i].end || mem::spaceOf(type) != space)
      continue;
    int64_t bytes = (sizeInBytes(type) + alignment - 1) / alignment * alignment;
    change[spans[i].begin] += bytes;
    change[spans[i].end] -= bytes;
  }
  int64_t alive = 0;
  std::pair<int64_t, int64_t> best{0, 0};
  for (size_t moment = 0; moment < moments.size(); ++moment) {
    alive += change[moment];
    if (alive > best.first)
      best = {alive, int64_t(moment)};
  }
  return best;
}

MemLiveness::SpaceBuffers MemLiveness::buffersIn(SpaceKind space,
                                                 int64_t alignment) const {
  SpaceBuffers out;
  out.problem.alignment = alignment;
  for (size_t i = 0; i < buffers.size(); ++i) {
    mem::BufferOp buffer = buffers[i];
    MemRefType type = buffer.getMemref().getType();
    if (mem::spaceOf(type) != space)
      continue;
    out.indices.push_back(i);
    out.problem.buffers.push_back({buffer.getName().str(),
                                   sizeInBytes(type),
                                   {spans[i].begin, spans[i].end}});
  }
  return out;
}

std::string tmc::nameAtPeak(SpaceKind space) {
  return onDevice(space) ? "" : std::string(" of the ") + nameOf(space);
}
