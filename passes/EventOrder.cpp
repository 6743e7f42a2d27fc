#include "passes/EventOrder.h"

#include <algorithm>

using namespace mlir;
using namespace tmc;

EventOrder::Event EventOrder::record(size_t engine, OpBuilder &b,
                                     Location loc) {
  Event event{events++, engine, known[engine]};
  event.clock[engine] = at[engine];
  mem::RecordOp::create(b, loc, event.number, mem::Engine(engine));
  return event;
}

void EventOrder::wait(const Event &event, size_t engine, OpBuilder &b,
                      Location loc) {
  Clock &mine = known[engine];
  if (event.engine == engine || mine[event.engine] >= event.clock[event.engine])
    return;
  mem::WaitOp::create(b, loc, event.number, mem::Engine(engine));
  for (size_t e = 0; e < kEngines; ++e)
    mine[e] = std::max(mine[e], event.clock[e]);
  if (engine == kCompute) // Its last event doesn't cover this wait.
    ++at[kCompute];
}

void EventOrder::beforeStart(mem::Engine engine, ArrayRef<int32_t> makers,
                             OpBuilder &b, Location loc) {
  size_t e = size_t(engine);
  if (at[kCompute] > 0) { // At 0 the step has just begun.
    if (!computedIsFresh || computed.clock[kCompute] != at[kCompute])
      computed = record(kCompute, b, loc);
    computedIsFresh = true;
    wait(computed, e, b, loc);
  }
  for (int32_t work : overOnHost)
    wait(works[work], e, b, loc);
  for (int32_t work : makers)
    wait(works[work], e, b, loc);
}

int32_t EventOrder::started(mem::Engine engine, OpBuilder &b, Location loc) {
  size_t e = size_t(engine);
  ++at[e];
  last[e] = int32_t(works.size());
  works.push_back(record(e, b, loc));
  return last[e];
}

void EventOrder::done(int32_t work, bool touchesDevice, OpBuilder &b,
                      Location loc) {
  if (touchesDevice)
    wait(works[work], kCompute, b, loc);
  else
    overOnHost.push_back(work);
  mem::DoneOp::create(b, loc, works[work].number);
}

void EventOrder::border(OpBuilder &b, Location loc) {
  for (size_t e = 0; e < kEngines; ++e)
    if (last[e] >= 0)
      wait(works[last[e]], kCompute, b, loc);
  ++at[kCompute]; // A trip's first work waits for the previous trip's end.
  overOnHost.clear();
  last.fill(-1);
  for (size_t e = 0; e < kEngines; ++e)
    if (e != kCompute)
      known[e] = {};
  computedIsFresh = false;
}
