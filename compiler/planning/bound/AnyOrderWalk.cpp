#include "compiler/planning/bound/AnyOrderWalk.h"

using namespace tmc::planning;

EventWalk::EventWalk(const Problem &problem) : p(problem) {
  findWriters();
  findReads();
  findUpdates();
}

std::set<ValueId> EventWalk::common(const Sets &sets) {
  std::map<ValueId, size_t> count;
  for (const std::set<ValueId> &set : sets)
    for (ValueId v : set)
      ++count[v];
  std::set<ValueId> out;
  for (auto [v, n] : count)
    if (n == sets.size())
      out.insert(v);
  return out;
}

ValueId EventWalk::aliasOf(ValueId v, SegmentId s) const {
  return p.values[v].kind == ValueKind::Carried && trips(s) == 1
             ? p.values[v].initial
             : v;
}

std::set<ValueId> EventWalk::readsBy(RecipeId r, SegmentId s) const {
  const Recipe &recipe = p.recipes[r];
  std::set<ValueId> out;
  for (ValueId read : recipe.reads)
    if (ValueId v = aliasOf(read, recipe.segment == kNone ? s : recipe.segment);
        v != kNone)
      out.insert(v);
  return out;
}

std::vector<RecipeId> EventWalk::writersOf(ValueId v) const {
  std::vector<RecipeId> out = extra[v];
  for (RecipeId r : p.instructions[maker[v]].recipes)
    out.push_back(r);
  return out;
}

EventPoint EventWalk::firstOf(ValueId v) const {
  return first[v] == First::Event ? EventPoint{EventPoint::Event, maker[v]}
                                  : EventPoint{EventPoint::Writing, v};
}

SegmentId EventWalk::segmentOf(EventPoint x) const {
  if (x.kind == EventPoint::Event)
    return segmentOf(x.index);
  const SegmentId home = segmentOf(maker[x.index]);
  for (RecipeId r : extra[x.index])
    if (p.recipes[r].segment != home)
      return kNone;
  return home;
}

/// True if reading v in this segment proves that v's first writing is over.
bool EventWalk::isSure(ValueId v, SegmentId reader) const {
  if (maker[v] == kNone || first[v] == First::Unknown)
    return false;
  const SegmentId home = segmentOf(maker[v]);
  return trips(home) == 1 || home == reader;
}

void EventWalk::findWriters() {
  maker.assign(p.values.size(), kNone);
  extra.resize(p.values.size());
  first.assign(p.values.size(), First::Unknown);
  for (InstructionId i = 0; i < InstructionId(p.instructions.size()); ++i)
    for (ValueId w : p.recipes[p.instructions[i].recipes.front()].writes)
      maker[w] = i;
  for (RecipeId r = 0; r < RecipeId(p.recipes.size()); ++r) {
    bool may = p.recipes[r].recomputable;
    for (ValueId w : p.recipes[r].writes)
      may &= !p.values[w].pinned;
    if (may)
      for (ValueId w : p.recipes[r].writes)
        extra[w].push_back(r);
  }
  for (ValueId v = 0; v < ValueId(maker.size()); ++v) {
    if (maker[v] == kNone)
      continue;
    const SegmentId home = segmentOf(maker[v]);
    bool atHome = true, own = true;
    for (RecipeId r : extra[v]) {
      atHome = atHome && p.recipes[r].segment == home;
      own = own && p.recipes[r].instruction == maker[v];
    }
    if (trips(home) > 1 && !atHome)
      continue;
    first[v] = own && (atHome || home == 0) ? First::Event : First::Apart;
  }
}

void EventWalk::findReads() {
  for (const Instruction &i : p.instructions) {
    Sets sets;
    for (RecipeId r : i.recipes)
      sets.push_back(readsBy(r, i.segment));
    sure.push_back(common(sets));
  }
  auto narrow = [&](ValueId v) {
    if (first[v] == First::Event)
      return sure[maker[v]];
    Sets sets;
    for (RecipeId r : writersOf(v))
      sets.push_back(readsBy(r, segmentOf(maker[v])));
    return common(sets);
  };
  for (InstructionId i = 0; i < InstructionId(sure.size()); ++i)
    for (ValueId v : sure[i]) {
      readers[v].push_back({EventPoint::Event, i});
      if (isSure(v, segmentOf(i)))
        put(firstOf(v), {EventPoint::Event, i});
    }
  for (ValueId v = 0; v < ValueId(first.size()); ++v) {
    if (first[v] != First::Apart)
      continue;
    const EventPoint self{EventPoint::Writing, v};
    put(self, {EventPoint::Event, maker[v]});
    for (ValueId u : narrow(v))
      readers[u].push_back(self);
    Sets sets; // The values written before each writer ends.
    for (RecipeId r : writersOf(v)) {
      std::set<ValueId> known = readsBy(r, segmentOf(maker[v]));
      const std::set<ValueId> own = known;
      for (ValueId w : own)
        if (isSure(w, segmentOf(self)))
          for (ValueId u : narrow(w))
            if (isSure(u, segmentOf(firstOf(w))))
              known.insert(u);
      sets.push_back(std::move(known));
    }
    for (ValueId u : common(sets))
      if (isSure(u, segmentOf(self)))
        put(firstOf(u), self);
  }
}

/// All that surely reads a content runs before the update that overwrites it.
void EventWalk::findUpdates() {
  for (InstructionId i = 0; i < InstructionId(sure.size()); ++i)
    for (ValueId old : sure[i]) {
      bool always = true;
      for (RecipeId r : p.instructions[i].recipes) {
        bool here = false;
        for (const Overwrite &o : p.recipes[r].overwrites)
          here |= o.must && aliasOf(o.read, segmentOf(i)) == old;
        always &= here;
      }
      if (!always)
        continue;
      const bool lasts = p.values[old].kind == ValueKind::Persistent;
      if (!lasts &&
          (!extra[old].empty() ||
           (maker[old] != kNone && segmentOf(maker[old]) != segmentOf(i))))
        continue;
      for (EventPoint reader : readers[old])
        if ((lasts || segmentOf(reader) == segmentOf(i)) &&
            !(reader.kind == EventPoint::Event && reader.index == i))
          put(reader, {EventPoint::Event, i});
    }
}

EventSide EventWalk::walk(InstructionId k, bool down) const {
  EventSide side;
  std::vector<EventPoint> open = {{EventPoint::Event, k}};
  auto reach = [&](EventPoint x) {
    if (side.add(x))
      open.push_back(x);
  };
  auto isFar = [&](SegmentId s) {
    return s != kNone && (down ? s > segmentOf(k) : s < segmentOf(k));
  };
  for (InstructionId i = 0; i < InstructionId(sure.size()); ++i)
    if (isFar(segmentOf(i)))
      reach({EventPoint::Event, i});
  for (ValueId v = 0; v < ValueId(first.size()); ++v)
    if (first[v] == First::Apart &&
        isFar(segmentOf(EventPoint{EventPoint::Writing, v})))
      reach({EventPoint::Writing, v});
  const auto &next = down ? later : earlier;
  while (!open.empty()) {
    const EventPoint at = open.back();
    open.pop_back();
    if (auto found = next.find(at); found != next.end())
      for (EventPoint x : found->second)
        reach(x);
  }
  return side;
}
