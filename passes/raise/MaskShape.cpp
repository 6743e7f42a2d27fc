#include "passes/raise/MaskShape.h"

#include <algorithm>

using namespace tmc;

namespace {
/// The keys that a query sees, as one interval.
struct Row {
  int64_t first = 0, end = 0;
  bool isEmpty() const { return first == end; }
};
using Rows = std::vector<Row>;
} // namespace

/// None if a row has holes.
static std::optional<Rows>
rowsOf(int64_t queries, int64_t keys,
       llvm::function_ref<bool(int64_t, int64_t)> sees) {
  Rows rows(queries);
  for (int64_t t = 0; t < queries; ++t) {
    Row &row = rows[t];
    bool isOver = false;
    for (int64_t s = 0; s < keys; ++s) {
      if (!sees(t, s)) {
        isOver |= row.end > row.first;
        continue;
      }
      if (isOver)
        return std::nullopt;
      if (row.isEmpty())
        row.first = s;
      row.end = s + 1;
    }
  }
  return rows;
}

Band tmc::withoutIdleBounds(Band band, int64_t queries, int64_t keys) {
  // s - p reaches from -(keys - 1) to queries - 1.
  if (band.low <= 1 - keys)
    band.low = -Band::kNone;
  if (band.high >= queries - 1)
    band.high = Band::kNone;
  return band;
}

static std::optional<Band> bandOf(const Rows &rows, int64_t keys) {
  const int64_t queries = static_cast<int64_t>(rows.size());
  Band band;
  for (int64_t t = 0; t < queries; ++t) {
    const int64_t p = t + keys - queries;
    const Row &row = rows[t];
    if (row.isEmpty())
      continue; // Beyond a bound that another row determines.
    if (row.first > 0)
      band.low = std::max(band.low, row.first - p);
    if (row.end < keys)
      band.high = std::min(band.high, row.end - 1 - p);
  }
  for (int64_t t = 0; t < queries; ++t) {
    const int64_t p = t + keys - queries;
    const int64_t first = std::clamp<int64_t>(p + band.low, 0, keys);
    const int64_t end = std::clamp<int64_t>(p + band.high + 1, 0, keys);
    const Row &row = rows[t];
    if (first >= end ? !row.isEmpty() : row.first != first || row.end != end)
      return std::nullopt;
  }
  return withoutIdleBounds(band, queries, keys);
}

/// The prefix for which `rows` are causal.
static std::optional<int64_t> prefixOf(const Rows &rows, int64_t keys) {
  const int64_t queries = static_cast<int64_t>(rows.size());
  const int64_t prefix = rows[0].end;
  for (int64_t t = 0; t < queries; ++t)
    if (rows[t].first != 0 ||
        rows[t].end != std::max(t + keys - queries + 1, prefix))
      return std::nullopt;
  return prefix;
}

/// The group of each key, named by its first key, if `rows` see their groups,
/// or if `isCausal`, their groups up to themselves. Else empty.
static std::vector<int64_t> groupsOf(const Rows &rows, bool isCausal) {
  const int64_t count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> groups(count);
  for (int64_t t = 0; t < count; ++t)
    groups[t] = rows[t].first;
  for (int64_t t = 0; t < count; ++t) {
    int64_t first = t, end = t + 1; // Of the group around t.
    while (first > 0 && groups[first - 1] == groups[t])
      --first;
    while (!isCausal && end < count && groups[end] == groups[t])
      ++end;
    if (rows[t].isEmpty() || rows[t].first != first || rows[t].end != end)
      return {};
  }
  return groups;
}

MaskShape tmc::shapeOfMask(int64_t queries, int64_t keys,
                           llvm::function_ref<bool(int64_t, int64_t)> sees) {
  MaskShape shape;
  std::optional<Rows> rows = rowsOf(queries, keys, sees);
  if (!rows || queries == 0)
    return shape;
  if (auto band = bandOf(*rows, keys)) {
    shape.kind = MaskShape::Banded;
    shape.band = *band;
    return shape;
  }
  if (auto prefix = prefixOf(*rows, keys)) {
    shape.kind = MaskShape::Prefixed;
    shape.prefix = *prefix;
    return shape;
  }
  if (queries != keys)
    return shape;
  for (bool isCausal : {false, true})
    if (shape.groups.empty())
      if (shape.groups = groupsOf(*rows, isCausal); !shape.groups.empty()) {
        shape.kind = MaskShape::Banded;
        if (isCausal)
          shape.band.high = 0;
      }
  return shape;
}
