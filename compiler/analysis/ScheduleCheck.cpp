#include "compiler/analysis/ScheduleCheck.h"

#include "compiler/analysis/MemAccess.h"
#include "compiler/analysis/MemLiveness.h"

#include <algorithm>
#include <array>
#include <map>

using namespace mlir;
using namespace tmc;

namespace {

/// Trips that show every case: the first, a middle one, the last.
constexpr int64_t kTrips = 3;
constexpr int kSteps = 2;

using Clock = PerEngine<int64_t>;

/// A point in the sequence of one engine.
struct Point {
  EngineKind engine = EngineKind::Compute;
  int64_t number = 0; // 0: before the step.
  Operation *op = nullptr;
};

/// The state of one range of bytes.
struct Bytes {
  int64_t end = 0;
  Operation *owner = nullptr; // The buffer that was written here last.
  Point writer;
  /// The last read by each engine since that write.
  PerEngine<Point> readers = {};
};

class Checker {
public:
  explicit Checker(mem::ProgramOp program) : program(program) {}

  std::optional<ScheduleFault> run() {
    workOf = workOfEvents(program);
    for (auto buffer : program.getBlock().getOps<mem::BufferOp>())
      if (buffer.getPersistent() || buffer.getConstant())
        begin(buffer);
    for (int step = 0; step < kSteps && !fault; ++step) {
      visit(program.getBlock(), 0);
      join();
      if (!open.empty() && !fault)
        report(open.begin()->first, "is never done");
    }
    return std::move(fault);
  }

private:
  mem::ProgramOp program;
  std::optional<ScheduleFault> fault;
  llvm::DenseMap<int64_t, Operation *> workOf;
  /// The entries that each engine's next entry comes after.
  PerEngine<Clock> now = {};
  Clock at = {};                     // The number of entries of each engine.
  std::map<int64_t, Clock> events;   // The clock at each event's latest record.
  std::map<Operation *, Point> open; // Work that isn't done.
  PerSpace<std::map<int64_t, Bytes>> memory;

  void report(Operation *op, std::string message, Operation *other = nullptr) {
    if (!fault)
      fault = {op, std::move(message), other};
  }

  static std::string nameOf(Operation *buffer) {
    return "'" + cast<mem::BufferOp>(buffer).getName().str() + "'";
  }
  static std::string nameOf(EngineKind engine) { return tmc::nameOf(engine); }

  /// A persistent buffer is written before the step.
  void begin(mem::BufferOp buffer) {
    const MemRange range = rangeOf(buffer, 0);
    cover(range, [&](Bytes &bytes) { bytes.owner = buffer; });
  }

  void join() {
    Clock all = at;
    now = PerEngine<Clock>::all(all);
  }

  void visit(Block &block, int64_t trip) {
    for (Operation &op : block) {
      if (fault)
        return;
      if (auto loop = dyn_cast<mem::LoopOp>(op)) {
        for (int64_t i = 0; i < std::min<int64_t>(loop.getCount(), kTrips); ++i)
          visit(loop.getBlock(), i);
      } else if (auto record = dyn_cast<mem::RecordOp>(op)) {
        EngineKind engine = record.getEngine();
        Clock clock = now[engine];
        clock[engine] = at[engine];
        events[record.getEvent()] = clock;
      } else if (auto wait = dyn_cast<mem::WaitOp>(op)) {
        auto event = events.find(wait.getEvent());
        if (event == events.end())
          return report(&op, "waits for event " +
                                 std::to_string(wait.getEvent()) +
                                 ", which nothing has recorded");
        for (auto [e, mine] : now[wait.getEngine()])
          mine = std::max(mine, event->second[e.kind]);
      } else if (auto done = dyn_cast<mem::DoneOp>(op)) {
        finish(done);
      } else if (auto launch = dyn_cast<mem::LaunchOp>(op)) {
        run(&op, mem::engineOf(launch), trip);
      } else if (auto copy = dyn_cast<mem::CopyOp>(op)) {
        if (copyEngine(mem::spaceOf(copy.getSource().getType()),
                       mem::spaceOf(copy.getTarget().getType())) !=
            &infoOf(copy.getEngine()))
          return report(&op, "goes from one space to another that " +
                                 nameOf(copy.getEngine()) + " doesn't copy to");
        run(&op, copy.getEngine(), trip);
      } else if (isa<mem::FillOp>(op)) {
        run(&op, EngineKind::Compute, trip);
      }
    }
  }

  /// The done of work: if the work touches the device, the kernels have waited
  /// for it.
  void finish(mem::DoneOp done) {
    Operation *work = workOf.lookup(done.getEvent());
    auto started = open.find(work);
    if (!work || started == open.end())
      return report(done, "ends work that hasn't started");
    bool touches = llvm::any_of(work->getOperands(), [](Value operand) {
      return onDevice(mem::spaceOf(bufferOf(operand).getType()));
    });
    if (touches && !isOver(started->second, now[EngineKind::Compute]))
      return report(done,
                    "stands where the kernels haven't waited for " +
                        nameOf(started->second.engine),
                    work);
    open.erase(started);
  }

  static bool isOver(const Point &point, const Clock &clock) {
    return point.number <= clock[point.engine];
  }

  //===--------------------------------------------------------------------===//
  // Accesses
  //===--------------------------------------------------------------------===//

  /// Calls `f` for each piece of `range`; splits pieces at the ends of `range`.
  template <typename F> void cover(const MemRange &range, F f) {
    if (range.begin >= range.end)
      return;
    std::map<int64_t, Bytes> &map = memory[range.space];
    auto cutAt = [&](int64_t place) {
      auto it = map.upper_bound(place);
      if (it == map.begin())
        return;
      --it;
      if (it->first == place || it->second.end <= place)
        return;
      Bytes rest = it->second;
      it->second.end = place;
      map[place] = rest;
    };
    cutAt(range.begin);
    cutAt(range.end);
    int64_t place = range.begin;
    while (place < range.end) {
      auto it = map.lower_bound(place);
      if (it == map.end() || it->first >= range.end || it->first > place) {
        int64_t end =
            it == map.end() ? range.end : std::min(range.end, it->first);
        Bytes fresh;
        fresh.end = end;
        it = map.emplace(place, fresh).first;
      }
      f(it->second);
      place = it->second.end;
    }
  }

  void run(Operation *op, EngineKind engine, int64_t trip) {
    Point point{engine, ++at[engine], op};
    now[engine][engine] = at[engine];
    if (engine != EngineKind::Compute)
      open[op] = point;
    const MemAccesses its = accessesOf(op, trip);
    if (isa<mem::LaunchOp>(op)) {
      SpaceKind reached = infoOf(engine).writes;
      for (Value value : op->getOperands())
        if (mem::spaceOf(bufferOf(value).getType()) != reached)
          return report(op, "touches " + nameOf(bufferOf(value)) + ", which " +
                                nameOf(engine) + " doesn't reach");
    }
    for (Value value : its.reads)
      read(point, rangeOf(value, trip));
    for (Value value : its.writes)
      write(point, rangeOf(value, trip));
  }

  void read(const Point &point, const MemRange &range) {
    cover(range, [&](Bytes &bytes) {
      if (bytes.owner != range.buffer)
        return report(point.op,
                      "reads " + nameOf(range.buffer) +
                          (bytes.owner
                               ? ", whose bytes hold " + nameOf(bytes.owner)
                               : ", which nothing has written"),
                      bytes.writer.op);
      if (!isOver(bytes.writer, now[point.engine]))
        return report(point.op,
                      "reads " + nameOf(range.buffer) + " on " +
                          nameOf(point.engine) + " while " +
                          nameOf(bytes.writer.engine) + " may still write it",
                      bytes.writer.op);
      bytes.readers[point.engine] = point;
    });
  }

  void write(const Point &point, const MemRange &range) {
    cover(range, [&](Bytes &bytes) {
      auto meets = [&](const Point &other, const char *what) {
        if (other.op != point.op && !isOver(other, now[point.engine]))
          report(point.op,
                 "writes " + nameOf(range.buffer) + " on " +
                     nameOf(point.engine) + " while " + nameOf(other.engine) +
                     " may still " + what + " " + nameOf(bytes.owner) +
                     " there",
                 other.op);
      };
      meets(bytes.writer, "write");
      for (const Point &reader : bytes.readers.of)
        meets(reader, "read");
      bytes.owner = range.buffer;
      bytes.writer = point;
      bytes.readers = PerEngine<Point>();
    });
  }
};

} // namespace

std::optional<ScheduleFault> tmc::checkSchedule(mem::ProgramOp program) {
  return Checker(program).run();
}
