#include "compiler/report/Snapshot.h"

#include "compiler/report/Pickle.h"
#include "compiler/support/Json.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace tmc;
namespace json = llvm::json;

/// The arena's address in the snapshot: viewers would take 0 for no address.
static constexpr int64_t kArenaAddress = int64_t(1) << 32;

namespace {

/// "", or ", host" for a space beside the device.
std::string suffixOf(SpaceKind space) {
  return onDevice(space) ? "" : std::string(", ") + nameOf(space);
}

class SnapshotWriter {
public:
  explicit SnapshotWriter(const PlanTrace &trace) : trace(trace) {}

  std::string write() {
    for (int64_t ps : trace.clockPs())
      startUs.push_back(ps / 1000000);
    std::vector<SpaceKind> spaces = trace.spaces();
    p.beginDict();
    p.key("segments");
    p.beginList();
    for (SpaceKind each : spaces) {
      enter(each, spaces);
      writeSegment();
    }
    p.end();
    p.key("device_traces");
    p.beginList();
    for (SpaceKind each : spaces) {
      enter(each, spaces);
      p.beginList();
      writeEvents();
      p.end();
    }
    p.end();
    p.end();
    return p.finish();
  }

private:
  const PlanTrace &trace;
  Pickler p;
  std::vector<int64_t> startUs; // By launch, in microseconds.

  // The space that is being written: its number, and its arena's size.
  SpaceKind space = SpaceKind();
  int64_t device = 0, arenaBytes = 0;

  void enter(SpaceKind next, const std::vector<SpaceKind> &spaces) {
    space = next;
    device = llvm::find(spaces, next) - spaces.begin();
    arenaBytes = trace.arenaBytes[space];
  }

  void frame(const std::string &name, const std::string &where) {
    auto colon = where.rfind(':');
    p.beginDict();
    p.key("name");
    p.value(name);
    p.key("filename");
    p.value(where.empty() ? trace.model : where.substr(0, colon));
    p.key("line");
    p.value(where.empty() ? int64_t(0)
                          : int64_t(atoll(where.c_str() + colon + 1)));
    p.end();
  }

  /// The tensor first, then the launch that makes it.
  void frames(const std::string &tensor, int32_t maker) {
    p.key("frames");
    p.beginList();
    if (maker >= 0) {
      const PlanTrace::Launch &launch = trace.launches[maker];
      frame(tensor + (launch.recomputes ? " (recomputed)" : ""), launch.where);
      frame(launch.kind + " in " + nameOf(launch.phase) + " pass, launch " +
                std::to_string(maker + 1),
            "");
    } else {
      frame(tensor, "");
    }
    p.end();
  }

  /// The arena at the end of the step: persistent buffers, and gaps between
  /// them.
  void writeSegment() {
    std::map<int64_t, const PlanTrace::Buffer *> staying;
    for (const PlanTrace::Buffer &buffer : trace.buffers)
      if (buffer.persistent && buffer.space == space && buffer.offset >= 0)
        staying[buffer.offset] = &buffer;
    p.beginDict();
    p.key("device"), p.value(device);
    p.key("address"), p.value(kArenaAddress);
    p.key("total_size"), p.value(arenaBytes);
    int64_t active = 0;
    for (const auto &[offset, buffer] : staying)
      active += buffer->bytes;
    p.key("allocated_size"), p.value(active);
    p.key("active_size"), p.value(active);
    p.key("requested_size"), p.value(active);
    p.key("stream"), p.value(0);
    p.key("segment_type"), p.value("large");
    p.key("segment_pool_id");
    p.beginList();
    p.value(0);
    p.value(0);
    p.end();
    p.key("is_expandable"), p.value(0);
    p.key("frames");
    p.beginList();
    frame(std::string("the arena") + suffixOf(space), "");
    p.end();
    p.key("blocks");
    p.beginList();
    int64_t at = 0;
    auto block = [&](int64_t bytes, const PlanTrace::Buffer *buffer) {
      p.beginDict();
      p.key("address"), p.value(kArenaAddress + at);
      p.key("size"), p.value(bytes);
      p.key("requested_size"), p.value(buffer ? bytes : 0);
      p.key("state"), p.value(buffer ? "active_allocated" : "inactive");
      if (buffer) {
        frames(buffer->name, -1);
      } else {
        p.key("frames");
        p.beginList();
        p.end();
      }
      p.end();
      at += bytes;
    };
    for (const auto &[offset, buffer] : staying) {
      if (offset > at)
        block(offset - at, nullptr);
      block(buffer->bytes, buffer);
    }
    if (at < arenaBytes)
      block(arenaBytes - at, nullptr);
    p.end();
    p.end();
  }

  void event(const char *action, int64_t offset, int64_t bytes,
             const std::string &name, int32_t maker, int32_t launch) {
    p.beginDict();
    p.key("action"), p.value(action);
    p.key("addr"), p.value(kArenaAddress + offset);
    p.key("size"), p.value(bytes);
    p.key("stream"), p.value(0);
    p.key("time_us"), p.value(startUs[launch]);
    frames(name, maker);
    p.end();
  }

  struct Piece {
    int32_t begin, end; // Launches.
    int64_t offset, bytes;
    std::string name;
  };

  /// Frees come before allocations: a new tensor takes a place after the old
  /// one has left it.
  void writeEvents() {
    // The end of each tensor, or the launch that takes its place.
    std::vector<int32_t> until;
    for (const PlanTrace::Tensor &tensor : trace.tensors)
      until.push_back(tensor.end);
    for (const PlanTrace::Tensor &next : trace.tensors)
      if (next.placeOf >= 0)
        until[next.placeOf] = std::min(until[next.placeOf], next.begin);
    // The program may reuse a buffer where the plan doesn't state it.
    std::vector<int32_t> lastIn(trace.buffers.size(), -1);
    for (size_t t = 0; t < trace.tensors.size(); ++t)
      if (int32_t buffer = trace.tensors[t].buffer; buffer >= 0) {
        if (int32_t before = std::exchange(lastIn[buffer], int32_t(t));
            before >= 0)
          until[before] = std::min(until[before], trace.tensors[t].begin);
      }
    std::vector<Piece> pieces;
    for (auto [tensor, end] : llvm::zip(trace.tensors, until)) {
      const PlanTrace::Value &value = trace.values[tensor.value];
      if (value.persistent || value.space != space || tensor.buffer < 0 ||
          trace.buffers[tensor.buffer].offset < 0)
        continue;
      const PlanTrace::Buffer &buffer = trace.buffers[tensor.buffer];
      pieces.push_back(
          {tensor.begin, end, buffer.offset, buffer.bytes, value.name});
    }
    for (const PlanTrace::Buffer &buffer : trace.buffers)
      if (!buffer.persistent && buffer.space == space &&
          buffer.bufferClass == "workspace" && buffer.offset >= 0 &&
          buffer.begin < buffer.end)
        pieces.push_back({buffer.begin, buffer.end, buffer.offset, buffer.bytes,
                          buffer.name});
    int32_t launches = int32_t(trace.launches.size());
    std::vector<std::vector<size_t>> begins(launches + 1), ends(launches + 1);
    for (size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].begin < pieces[i].end) {
        begins[pieces[i].begin].push_back(i);
        ends[pieces[i].end].push_back(i);
      }
    for (int32_t launch = 0; launch <= launches; ++launch) {
      for (size_t i : ends[launch])
        for (const char *action : {"free_requested", "free_completed"})
          event(action, pieces[i].offset, pieces[i].bytes, pieces[i].name,
                pieces[i].begin, launch);
      for (size_t i : begins[launch])
        event("alloc", pieces[i].offset, pieces[i].bytes, pieces[i].name,
              pieces[i].begin, launch);
    }
  }
};

} // namespace

std::string tmc::memorySnapshot(const PlanTrace &trace) {
  return SnapshotWriter(trace).write();
}

namespace {

class StepTraceWriter {
public:
  explicit StepTraceWriter(const PlanTrace &trace) : trace(trace) {
    for (SpaceKind space : trace.spaces())
      levels.push_back({space, trace.levels(space)});
  }

  std::string write() {
    named("process_name", 0, trace.model + " on " + trace.target);
    PerEngine<bool> works;
    for (const PlanTrace::Launch &launch : trace.launches)
      works[launch.engine] = true;
    for (auto [engine, isUsed] : works)
      if (isUsed)
        named("thread_name", laneOf(engine.kind), engine.name);
    int64_t tripBegin = 0; // Picoseconds.
    for (const PlanTrace::Segment &segment : trace.segments)
      for (int64_t trip = 0; trip < segment.trips; ++trip) {
        size_t shown = segment.shownAs(trip);
        int64_t clock = 0; // The kernels' time.
        for (int32_t l = segment.begin; l < segment.end; ++l) {
          addAlive(l, tripBegin + clock);
          addLaunch(l, tripBegin, shown, segment.trips > 1 ? trip : -1);
          const PlanTrace::Launch &launch = trace.launches[l];
          if (launch.other < 0 || launch.isDone())
            clock = launch.endPs[shown];
        }
        tripBegin += segment.tripPs[shown];
      }
    return jsonText(json::Object{{"displayTimeUnit", "ms"},
                                 {"traceEvents", std::move(events)}});
  }

private:
  const PlanTrace &trace;
  std::vector<std::pair<SpaceKind, std::map<std::string, std::vector<int64_t>>>>
      levels;
  json::Array events;

  void named(const char *what, int64_t lane, const std::string &name) {
    events.push_back(json::Object{{"ph", "M"},
                                  {"name", what},
                                  {"pid", 0},
                                  {"tid", lane},
                                  {"args", json::Object{{"name", name}}}});
  }

  static int64_t laneOf(EngineKind engine) { return int64_t(engine); }

  /// A launch on its engine's lane, or the time that the kernels wait for it.
  void addLaunch(int32_t l, int64_t tripBegin, size_t shown, int64_t trip) {
    const PlanTrace::Launch &launch = trace.launches[l];
    int64_t begin = launch.beginPs[shown], end = launch.endPs[shown];
    if (launch.isDone() && begin == end)
      return;
    json::Object args{{"launch", l + 1},
                      {"kernel", launch.kind},
                      {"instance", launch.instance},
                      {"live_bytes", launch.liveBytes.device()}};
    if (!launch.where.empty())
      args["line"] = launch.where;
    if (trip >= 0)
      args["micro_batch"] = trip;
    if (launch.recomputes)
      args["made"] = "again";
    if (launch.isMove())
      args["bytes"] = trace.values[launch.reads[0]].bytes;
    std::string category = launch.isDone()
                               ? "wait"
                               : std::string(nameOf(launch.phase)) +
                                     (launch.recomputes ? ",recomputed" : "");
    events.push_back(json::Object{
        {"ph", "X"},
        {"name", (launch.isDone() ? "wait for " : "") + launch.name},
        {"cat", category},
        {"ts", double(tripBegin + begin) * 1e-6},
        {"dur", double(end - begin) * 1e-6},
        {"pid", 0},
        {"tid", launch.isDone() ? 0 : laneOf(launch.engine)},
        {"args", std::move(args)}});
  }

  /// The bytes alive in each space when the kernels reach a launch.
  void addAlive(int32_t l, int64_t atPs) {
    for (const auto &[space, classes] : levels) {
      json::Object alive;
      for (const auto &[name, level] : classes)
        alive[name] = level[l];
      events.push_back(json::Object{{"ph", "C"},
                                    {"name", "bytes alive" + suffixOf(space)},
                                    {"ts", double(atPs) * 1e-6},
                                    {"pid", 0},
                                    {"args", std::move(alive)}});
    }
  }
};

} // namespace

std::string tmc::stepTrace(const PlanTrace &trace) {
  return StepTraceWriter(trace).write();
}
