#include "compiler/planning/bound/GapCharges.h"

#include <algorithm>

namespace tmc::planning {

GapCharges::GapCharges(GapModel &model)
    : model(model), made(model.problem.values.size()) {
  const Problem &p = model.problem;
  for (int32_t k = int32_t(model.numMoments()); k-- > 0;) {
    const Instruction &instruction = p.instructions[model.order[k]];
    for (RecipeId r : instruction.recipes)
      for (ValueId w : p.recipes[r].writes)
        made[p.contentOf(w)] = {instruction.segment, k, true};
  }
  for (ValueId f = 0; f < ValueId(p.values.size()); ++f)
    if (p.values[f].kind != ValueKind::Temporary &&
        p.values[f].updates == kNone)
      made[p.contentOf(f)] = {};
}

GapModel::Range GapCharges::whenIn(const Span &span,
                                   const ValueFacts::Maker &maker,
                                   SegmentId s) const {
  const Problem &p = model.problem;
  const Range all{model.begins[s], model.begins[s + 1]};
  if (p.segments[s].trips > 1 && !span.isInTrip)
    return all;
  const bool ends =
      span.isWaitedFor && p.touchesDevice(p.recipes[maker.recipe]);
  const Range when{std::max(span.moments.begin, all.begin),
                   ends ? std::min(span.moments.end, all.end) : all.end};
  return when.size() > 0 ? when : all;
}

void GapCharges::add(GapModel::Gap &gap, const Span &span, ValueId v,
                     SegmentId from, SegmentId to, const Runs &runsIn) {
  std::vector<GapModel::Charge> &all = model.charges;
  if (gap.charges.size() == 0)
    gap.charges = {int32_t(all.size()), int32_t(all.size())};
  for (const ValueFacts::Maker &maker : model.facts.makersOf(v))
    for (SegmentId s = from; s <= to; ++s) {
      if (maker.segment != kNone && maker.segment != s)
        continue;
      const int64_t runs =
          std::max<int64_t>(0, runsIn(s) - (maker.isFree ? 1 : 0));
      const GapModel::Charge charge{s, maker.engine, maker.cost * runs,
                                    whenIn(span, maker, s)};
      auto alike = std::find_if(all.begin() + gap.charges.begin, all.end(),
                                [&](const GapModel::Charge &c) {
                                  return c.segment == s &&
                                         c.engine == maker.engine &&
                                         c.when.begin == charge.when.begin &&
                                         c.when.end == charge.when.end;
                                });
      if (alike == all.end())
        all.push_back(charge);
      else if (charge.cost < alike->cost)
        *alike = charge;
    }
  gap.charges.end = int32_t(all.size());
}

/// True if a variant of moment k reads v and updates it there, and none that
/// reads v makes another form of the new content.
bool GapCharges::isWrittenBack(ValueId v, int32_t k) const {
  const Problem &p = model.problem;
  const ValueId heir = model.facts.heir[v];
  bool updates = false;
  for (RecipeId r : p.instructions[model.order[k]].recipes)
    for (ValueId w : p.recipes[r].writes) {
      const bool reads = isRead(p.recipes[r], v);
      updates |= reads && w == heir;
      if (reads && w != heir && p.contentOf(w) == p.contentOf(heir))
        return false;
    }
  return updates;
}

void GapCharges::addWriteBack(GapModel::Gap &gap, ValueId v, SegmentId s,
                              int32_t k) {
  const Problem &p = model.problem;
  const ValueFacts &facts = model.facts;
  const ValueId heir = facts.heir[v];
  if (heir == kNone || p.segments[s].trips > 1 || !isWrittenBack(v, k))
    return;
  const int32_t begin = int32_t(model.charges.size());
  for (ValueId f = p.contentOf(heir); f != kNone; f = facts.nextForm[f]) {
    if (f == heir || p.values[f].kind != ValueKind::Persistent)
      continue;
    if (facts.readers[f])
      return; // It may have a gap that the copy breaks.
    for (const ValueFacts::Maker &copy : facts.makersOf(f))
      for (SegmentId at = s; at < SegmentId(p.segments.size()); ++at)
        if (copy.segment == kNone || copy.segment == at)
          model.charges.push_back(
              {at,
               copy.engine,
               copy.cost * p.segments[at].trips,
               {std::max(k, model.begins[at]), model.begins[at + 1]}});
  }
  gap.also = {begin, int32_t(model.charges.size())};
}

} // namespace tmc::planning
