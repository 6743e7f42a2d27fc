#include "compiler/report/Snapshot.h"

#include "compiler/report/Pickle.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace tmc;
namespace json = llvm::json;

/// Where the arena seems to begin: offset 0 would read as no address.
static constexpr int64_t kArenaAddress = int64_t(1) << 32;

namespace {

class SnapshotWriter {
public:
  explicit SnapshotWriter(const PlanTrace &trace) : trace(trace) {}

  std::string write() {
    layTimes();
    p.beginDict();
    p.key("segments");
    p.beginList();
    writeSegment();
    p.end();
    p.key("device_traces");
    p.beginList();
    p.beginList();
    writeEvents();
    p.end();
    p.end();
    p.end();
    return p.finish();
  }

private:
  const PlanTrace &trace;
  Pickler p;
  std::vector<int64_t> startUs; // Of each launch, in microseconds.

  void layTimes() {
    double at = 0;
    for (const PlanTrace::Launch &launch : trace.launches) {
      startUs.push_back(int64_t(at));
      at += double(launch.costPs) * 1e-6;
    }
    startUs.push_back(int64_t(at));
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

  /// The tensor first, then who makes it.
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

  /// The arena as the step leaves it: what persists, and gaps in between.
  void writeSegment() {
    std::map<int64_t, const PlanTrace::Buffer *> staying;
    for (const PlanTrace::Buffer &buffer : trace.buffers)
      if (buffer.persistent && buffer.offset >= 0)
        staying[buffer.offset] = &buffer;
    p.beginDict();
    p.key("device"), p.value(0);
    p.key("address"), p.value(kArenaAddress);
    p.key("total_size"), p.value(trace.arenaBytes);
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
    frame("the arena", "");
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
    if (at < trace.arenaBytes)
      block(trace.arenaBytes - at, nullptr);
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

  /// Frees come before allocations: who takes over a place follows who had it.
  void writeEvents() {
    std::vector<int32_t> until; // Of each tensor, or until it gives its place.
    for (const PlanTrace::Tensor &tensor : trace.tensors)
      until.push_back(tensor.end);
    for (const PlanTrace::Tensor &next : trace.tensors)
      if (next.placeOf >= 0)
        until[next.placeOf] = std::min(until[next.placeOf], next.begin);
    std::vector<Piece> pieces;
    for (auto [tensor, end] : llvm::zip(trace.tensors, until)) {
      const PlanTrace::Value &value = trace.values[tensor.value];
      if (value.persistent || tensor.buffer < 0 ||
          trace.buffers[tensor.buffer].offset < 0)
        continue;
      const PlanTrace::Buffer &buffer = trace.buffers[tensor.buffer];
      pieces.push_back(
          {tensor.begin, end, buffer.offset, buffer.bytes, value.name});
    }
    for (const PlanTrace::Buffer &buffer : trace.buffers)
      if (!buffer.persistent && buffer.bufferClass == "workspace" &&
          buffer.offset >= 0 && buffer.begin < buffer.end)
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

std::string tmc::stepTrace(const PlanTrace &trace) {
  // Bytes alive at each launch, by class.
  std::map<std::string, std::vector<int64_t>> levels;
  size_t n = trace.launches.size();
  for (const PlanTrace::Tensor &tensor : trace.tensors) {
    const PlanTrace::Value &value = trace.values[tensor.value];
    std::vector<int64_t> &level = levels[value.valueClass];
    level.resize(n + 1, 0);
    int32_t begin = tensor.begin + (tensor.placeOf >= 0);
    if (begin >= tensor.end)
      continue;
    level[begin] += value.bytes;
    level[tensor.end] -= value.bytes;
  }
  for (auto &[name, level] : levels)
    for (size_t i = 1; i <= n; ++i)
      level[i] += level[i - 1];

  json::Array events;
  auto named = [&](const char *what, int64_t thread, const std::string &name) {
    events.push_back(json::Object{{"ph", "M"},
                                  {"name", what},
                                  {"pid", 0},
                                  {"tid", thread},
                                  {"args", json::Object{{"name", name}}}});
  };
  named("process_name", 0, trace.model + " on " + trace.target);
  named("thread_name", 0, "launches");
  int64_t at = 0; // Picoseconds.
  auto launchAt = [&](int32_t index, int64_t trip, bool loops) {
    const PlanTrace::Launch &launch = trace.launches[index];
    json::Object args{{"launch", index + 1},
                      {"kernel", launch.kind},
                      {"instance", launch.instance},
                      {"live_bytes", launch.liveBytes}};
    if (!launch.where.empty())
      args["line"] = launch.where;
    if (loops)
      args["micro_batch"] = trip;
    if (launch.recomputes)
      args["made"] = "again";
    events.push_back(
        json::Object{{"ph", "X"},
                     {"name", launch.name},
                     {"cat", std::string(nameOf(launch.phase)) +
                                 (launch.recomputes ? ",recomputed" : "")},
                     {"ts", double(at) * 1e-6},
                     {"dur", double(launch.costPs) * 1e-6},
                     {"pid", 0},
                     {"tid", 0},
                     {"args", std::move(args)}});
    json::Object alive;
    for (const auto &[name, level] : levels)
      alive[name] = level[index];
    alive["workspace"] = launch.workspaceBytes;
    events.push_back(json::Object{{"ph", "C"},
                                  {"name", "bytes alive"},
                                  {"ts", double(at) * 1e-6},
                                  {"pid", 0},
                                  {"args", std::move(alive)}});
    at += launch.costPs;
  };
  for (const PlanTrace::Segment &segment : trace.segments)
    for (int64_t trip = 0; trip < segment.trips; ++trip)
      for (int32_t index = segment.begin; index < segment.end; ++index)
        launchAt(index, trip, segment.trips > 1);
  std::string text;
  llvm::raw_string_ostream(text)
      << json::Value(json::Object{{"displayTimeUnit", "ms"},
                                  {"traceEvents", std::move(events)}})
      << "\n";
  return text;
}
