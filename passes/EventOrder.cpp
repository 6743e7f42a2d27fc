#include "passes/EventOrder.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;

EventOrder::Event EventOrder::record(EngineKind engine, OpBuilder &b,
                                     Location loc) {
  Event event{events++, engine, known[engine]};
  event.clock[engine] = at[engine];
  mem::RecordOp::create(b, loc, event.number, engine);
  return event;
}

void EventOrder::wait(const Event &event, EngineKind engine, OpBuilder &b,
                      Location loc) {
  Clock &mine = known[engine];
  if (event.engine == engine || mine[event.engine] >= event.clock[event.engine])
    return;
  mem::WaitOp::create(b, loc, event.number, engine);
  for (auto [e, number] : mine)
    number = std::max(number, event.clock[e.kind]);
  if (engine == EngineKind::Compute) // Its last event doesn't cover this wait.
    ++at[EngineKind::Compute];
}

void EventOrder::beforeStart(EngineKind engine, ArrayRef<int32_t> makers,
                             OpBuilder &b, Location loc) {
  if (at[EngineKind::Compute] > 0) { // At 0 the step has just begun.
    if (!computedIsFresh ||
        computed.clock[EngineKind::Compute] != at[EngineKind::Compute])
      computed = record(EngineKind::Compute, b, loc);
    computedIsFresh = true;
    wait(computed, engine, b, loc);
  }
  for (int32_t work : overOnHost)
    wait(works[work], engine, b, loc);
  for (int32_t work : makers)
    wait(works[work], engine, b, loc);
}

int32_t EventOrder::started(EngineKind engine, OpBuilder &b, Location loc) {
  ++at[engine];
  last[engine] = int32_t(works.size());
  works.push_back(record(engine, b, loc));
  return last[engine];
}

void EventOrder::done(int32_t work, bool touchesDevice, OpBuilder &b,
                      Location loc) {
  if (touchesDevice)
    wait(works[work], EngineKind::Compute, b, loc);
  else
    overOnHost.push_back(work);
  mem::DoneOp::create(b, loc, works[work].number);
}

void EventOrder::border(OpBuilder &b, Location loc) {
  for (int32_t work : last.of)
    if (work >= 0)
      wait(works[work], EngineKind::Compute, b, loc);
  ++at[EngineKind::Compute]; // A trip's first work waits for the previous
                             // trip's end.
  overOnHost.clear();
  last = PerEngine<int32_t>::all(-1);
  const Clock compute = known[EngineKind::Compute];
  known = PerEngine<Clock>();
  known[EngineKind::Compute] = compute;
  computedIsFresh = false;
}
