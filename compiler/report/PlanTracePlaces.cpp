// PlanTracePlaces.cpp - the launches and tensors of a plan trace in the program
// that the plan became.

#include "compiler/report/PlanTrace.h"

#include "compiler/analysis/MemLiveness.h"
#include "compiler/analysis/Storage.h"

#include <map>

using namespace mlir;
using namespace tmc;

namespace {

/// The use of one result of one launch.
struct Made {
  bool isRead = false;
  bool updates = false; // Takes the place of a persistent value.
};

} // namespace

/// The buffer of each result of the trace's launch; -1 if the result was
/// dropped. A launch writes no unread result; if several results could update
/// the same value, the last one does.
static std::vector<int32_t>
outputsOf(mem::LaunchOp launch, const PlanTrace &trace,
          const std::vector<Made> &made,
          const llvm::DenseMap<Operation *, int32_t> &indexOf) {
  std::vector<int32_t> result(made.size(), -1);
  for (bool updates : {false, true}) {
    std::vector<int32_t> buffers;
    for (Value output : launch.getOutputs())
      if (int32_t index = indexOf.lookup(bufferOf(output));
          trace.buffers[index].persistent == updates)
        buffers.push_back(index);
    size_t left = llvm::count_if(
        made, [&](const Made &m) { return m.updates == updates; });
    size_t next = 0;
    for (size_t i = 0; i < made.size() && next < buffers.size(); ++i) {
      if (made[i].updates != updates)
        continue;
      if (made[i].isRead || left <= buffers.size() - next)
        result[i] = buffers[next++];
      --left;
    }
  }
  return result;
}

/// The trace's launch at each moment of the program; -1 at a fill with zeros. A
/// fill is also an execution of the plan, but its position among the launches
/// before the loop may differ.
static std::vector<int32_t> launchesAt(const PlanTrace &trace,
                                       const MemLiveness &live) {
  std::vector<int32_t> launchAt(live.moments.size(), -1);
  size_t next = 0;
  for (size_t m = 0; m < live.moments.size(); ++m) {
    if (isa<mem::FillOp>(live.moments[m]))
      continue;
    while (next < trace.launches.size() && trace.launches[next].kind == "fill")
      ++next;
    if (next < trace.launches.size())
      launchAt[m] = int32_t(next++);
  }
  return launchAt;
}

std::vector<double> tmc::predictedSeconds(const PlanTrace &trace,
                                          mem::ProgramOp program) {
  constexpr double kPicosecond = 1e-12;
  MemLiveness live = memLiveness(program);
  std::vector<int64_t> fills; // Picoseconds of each, in the plan's order.
  for (const PlanTrace::Launch &launch : trace.launches)
    if (launch.kind == "fill")
      fills.push_back(launch.costPs);
  size_t filled = 0;
  std::vector<double> seconds;
  for (int32_t launch : launchesAt(trace, live))
    if (launch >= 0)
      seconds.push_back(double(trace.launches[launch].costPs) * kPicosecond);
    else
      seconds.push_back(
          filled < fills.size() ? double(fills[filled++]) * kPicosecond : -1);
  return seconds;
}

void tmc::placePlanTrace(PlanTrace &trace, ModuleOp module) {
  for (auto program : module.getOps<mem::ProgramOp>()) {
    MemLiveness live = memLiveness(program);
    std::vector<int32_t> launchAt = launchesAt(trace, live);
    auto begins = [&](int64_t m) {
      while (m < int64_t(launchAt.size()) && launchAt[m] < 0)
        ++m;
      return m < int64_t(launchAt.size()) ? launchAt[m]
                                          : int32_t(trace.launches.size());
    };
    llvm::DenseMap<Operation *, int32_t> indexOf;
    for (auto [each, span] : llvm::zip(live.buffers, live.spans)) {
      mem::BufferOp buffer = each;
      indexOf[buffer] = int32_t(trace.buffers.size());
      int32_t begin = begins(span.begin), end = begins(span.end);
      if (span.begin == 0)
        begin = 0;
      if (span.begin == span.end)
        end = begin;
      trace.buffers.push_back(
          {buffer.getName().str(), buffer.getBufferClass().str(),
           sizeInBytes(buffer.getMemref().getType()),
           int64_t(buffer.getOffset()), begin, end, buffer.getPersistent(),
           mem::spaceOf(buffer.getMemref().getType())});
    }
    std::map<std::pair<int32_t, int32_t>, Made> madeAt;
    // By tensor: it is in the place of a persistent value.
    std::vector<bool> stays;
    for (const PlanTrace::Tensor &tensor : trace.tensors) {
      bool updates = tensor.placeOf >= 0 && stays[tensor.placeOf];
      stays.push_back(trace.values[tensor.value].persistent || updates);
      madeAt[{tensor.begin, tensor.value}] = {tensor.end > tensor.begin + 1,
                                              updates};
    }
    std::map<std::pair<int32_t, int32_t>, int32_t> written;
    for (size_t m = 0; m < live.moments.size(); ++m) {
      if (launchAt[m] < 0)
        continue;
      const PlanTrace::Launch &reported = trace.launches[launchAt[m]];
      if (auto copy = dyn_cast<mem::CopyOp>(live.moments[m]))
        written[{launchAt[m], reported.writes[0]}] =
            indexOf.lookup(bufferOf(copy.getTarget()));
      auto launch = dyn_cast<mem::LaunchOp>(live.moments[m]);
      if (!launch)
        continue;
      std::vector<Made> made;
      for (int32_t value : reported.writes)
        made.push_back(madeAt[{launchAt[m], value}]);
      std::vector<int32_t> outputs = outputsOf(launch, trace, made, indexOf);
      for (size_t i = 0; i < outputs.size(); ++i)
        written[{launchAt[m], reported.writes[i]}] = outputs[i];
    }
    std::map<std::string, int32_t> persistent;
    for (size_t b = 0; b < trace.buffers.size(); ++b)
      if (trace.buffers[b].persistent)
        persistent.try_emplace(trace.buffers[b].name, int32_t(b));
    for (PlanTrace::Tensor &tensor : trace.tensors) {
      auto it = written.find({tensor.begin, tensor.value});
      if (it != written.end())
        tensor.buffer = it->second;
      else if (auto named = persistent.find(
                   trace.values[trace.values[tensor.value].content].name);
               named != persistent.end())
        tensor.buffer = named->second;
    }
    const bool leaves = trace.spaces().size() > 1;
    for (auto [space, bytes] : trace.arenaBytes)
      if (leaves || onDevice(space.kind))
        bytes = program.arenaBytesIn(space.kind);
  }
}
