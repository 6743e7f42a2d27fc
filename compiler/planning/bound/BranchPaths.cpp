// The value of a `Model` at given prices: one path for each line.

#include "compiler/planning/bound/BranchModel.h"

using namespace tmc::planning;
using namespace tmc::planning::branching;

bool Evaluator::decide(const std::vector<std::pair<int32_t, int8_t>> &fixes) {
  for (Line &line : lines)
    line.fix = kFree;
  room = model.room;
  bool fits = true;
  for (auto [l, fix] : fixes) {
    Line &line = lines[l];
    line.fix = fix;
    if (fix == kKept)
      for (int32_t i = line.lo; i < line.hi; ++i)
        room[i] -= model.problem.values[line.value].bytes;
  }
  for (int64_t r : room)
    fits &= r >= 0;
  return fits;
}

/// The best path of a free or kept line; sets `there`, and `made` cell by cell.
double Evaluator::path(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  const double *h = &hold[line.slot], *b = &bonus[line.slot];
  if (line.fix == kKept) {
    double value = 0;
    for (int32_t c = 0; c < count; ++c) {
      value += c + 1 < count ? h[c] : 0;
      there[line.slot + c] = 1;
      made[line.slot + c] = 0;
    }
    return value;
  }
  double in = 0, out = kInfinity; // In memory, not in memory.
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - b[c];
    double held = c + 1 < count ? h[c] : 0;
    // Remaking a value that is in memory pays only for its bonus.
    double fromIn = in + std::min(0.0, remake), fromOut = out + remake;
    int8_t source = fromIn <= fromOut ? (remake < 0 ? 3 : 2) : 1;
    double is = std::min(fromIn, fromOut);
    double stays = out, goes = is;
    // Absent at the end: absent all along, or in memory (made) and dropped.
    int8_t gone = stays <= goes ? 0 : source;
    keepFrom[line.slot + c] = {gone, source, 0, 0};
    out = std::min(stays, goes);
    in = is + held;
  }
  int state = !line.isTail || in <= out ? 1 : 0;
  double value = state ? in : out;
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = int8_t(state);
    int8_t source = keepFrom[line.slot + c][state];
    made[line.slot + c] = source & 1;
    state = source >> 1;
  }
  return value;
}

/// The best path with at least one recomputation.
double Evaluator::pathBroken(const Line &line) {
  int32_t count = line.hi - line.lo + 1;
  // State: in memory * 2 + made by now. Back pointer: state before * 2 + made
  // here.
  double at[4] = {kInfinity, kInfinity, 0, kInfinity};
  for (int32_t c = 0; c < count; ++c) {
    double remake = line.cost - bonus[line.slot + c];
    double held = c + 1 < count ? hold[line.slot + c] : 0;
    double next[4] = {kInfinity, kInfinity, kInfinity, kInfinity};
    std::array<int8_t, 4> &from = keepFrom[line.slot + c];
    from = {0, 0, 0, 0};
    for (int8_t s = 0; s < 4; ++s)
      for (int8_t make = 0; make < 2; ++make) {
        double cost = at[s] + (make ? remake : 0);
        bool is = s >= 2 || make;
        int8_t flag = int8_t((s & 1) | make);
        for (int8_t stays = 0; stays <= int8_t(is); ++stays) {
          double all = cost + (stays ? held : 0);
          int8_t to = int8_t(stays * 2 + flag);
          if (all < next[to])
            next[to] = all, from[to] = int8_t(s * 2 + make);
        }
      }
    std::copy(next, next + 4, at);
  }
  int8_t state = line.isTail && at[1] < at[3] ? 1 : 3;
  double value = at[state];
  for (int32_t c = count; c-- > 0;) {
    there[line.slot + c] = state >> 1;
    int8_t from = keepFrom[line.slot + c][state];
    made[line.slot + c] = from & 1;
    state = int8_t(from >> 1);
  }
  return value;
}

double Evaluator::operator()(const std::vector<double> &prices) {
  const size_t moments = model.moments.size(), rows = model.rows.size();
  const double *lambda = prices.data(), *mu = lambda + moments;
  double *slopeMu = slope.data() + moments;
  double value = model.constant;
  for (const Line &line : lines) {
    int64_t bytes = model.problem.values[line.value].bytes;
    for (int32_t i = line.lo; i < line.hi; ++i)
      hold[line.slot + i - line.lo] = bytes > room[i] && line.fix != kKept
                                          ? kInfinity
                                          : lambda[i] * line.bytes;
  }
  std::fill(bonus.begin(), bonus.end(), 0.0);
  for (size_t r = 0; r < rows; ++r) {
    const RowSlots &row = model.rowSlots[r];
    value += mu[r];
    hold[row.value] -= mu[r];
    hold[row.read] -= mu[r];
    bonus[row.made] += mu[r];
    bonus[row.madeEnd] -= mu[r];
  }
  double sum = 0;
  for (double &b : bonus)
    b = sum += b;
  for (const Line &line : lines)
    value += line.fix == kBroken ? pathBroken(line) : path(line);
  for (size_t i = 0; i < moments; ++i) {
    value += lambda[i] * model.over[i];
    slope[i] = model.over[i];
  }
  for (const Line &line : lines)
    for (int32_t i = line.lo; i < line.hi; ++i)
      slope[i] += there[line.slot + i - line.lo] ? line.bytes : 0;
  for (size_t s = 1; s < made.size(); ++s)
    made[s] += made[s - 1];
  for (size_t r = 0; r < rows; ++r) {
    const RowSlots &row = model.rowSlots[r];
    slopeMu[r] = 1 - there[row.value] - there[row.read] -
                 (made[row.madeEnd - 1] - made[row.made - 1]);
  }
  work += 4 * int64_t(model.slots) + 4 * int64_t(rows) + 2 * int64_t(moments);
  return value;
}
