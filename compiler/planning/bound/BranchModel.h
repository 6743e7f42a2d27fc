// BranchModel.h - the relaxation at a few chosen moments, and its value at
// given prices.
//
// `Branch.h` explains the model: each gap is a line of cells between chosen
// moments, rows tie a value to its inputs, and for given prices each line is a
// path problem with two states per cell, solved exactly (`Evaluator`).

#ifndef TMC_COMPILER_PLANNING_BOUND_BRANCHMODEL_H
#define TMC_COMPILER_PLANNING_BOUND_BRANCHMODEL_H

#include "compiler/planning/bound/Branch.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tmc::planning::branching {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A gap or a tail, for the paths. Slot `slot + c` of any table is its cell c,
/// and the chosen moment at the end of that cell.
struct Line {
  ValueId value;
  int32_t first, end; // Moments strictly inside: [first, end).
  int32_t lo, hi;     // Chosen moments inside: [lo, hi); cells lo..hi.
  int32_t slot;
  double bytes;
  double cost; // To recompute it.
  bool isTail;
  int8_t fix = 0;
};

/// The decision about a line.
enum Fix : int8_t { kFree = 0, kKept = 1, kBroken = 2 };

/// Slots that satisfy a row: `value` or `read` in memory, `read` made.
struct RowSlots {
  int32_t value, read, made, madeEnd; // [made, madeEnd)
};

/// The relaxation at the chosen moments.
class Model {
public:
  Model(const GapModel &gaps, const Relaxation &relaxation,
        std::vector<int32_t> chosen, int64_t limit);

  int32_t interval(int32_t stage) const {
    return int32_t(std::lower_bound(moments.begin(), moments.end(), stage) -
                   moments.begin());
  }

  const Problem &problem;
  std::vector<int32_t> moments;
  std::vector<double> over;  // floor - limit at each, in units of `byteUnit`.
  std::vector<int64_t> room; // limit - floor at each, in bytes.
  double byteUnit = 1;
  double constant = 0;
  std::vector<Line> lines;
  std::vector<DependencyRow> rows;
  std::vector<RowSlots> rowSlots;
  int32_t slots = 0;

private:
  void addLine(ValueId v, int32_t first, int32_t end, double cost, bool isTail,
               bool hasRows);
  void addTails(const std::vector<char> &isInput);
  void addRows();

  std::vector<std::vector<int32_t>> naturals; // Moments of uses, production.
  std::vector<SegmentId> home, lastSegment;
  const ValueFacts &facts;
  std::vector<int32_t> begins; // By segment, and the end.
  /// Inputs that every recipe of a value reads.
  std::vector<std::vector<ValueId>> inputs;
  std::vector<std::vector<int32_t>> linesOf; // Per value, ascending.
};

/// L and its slope at given prices: one of each moment, then one of each row.
class Evaluator {
public:
  explicit Evaluator(const Model &model)
      : model(model), lines(model.lines),
        slope(model.moments.size() + model.rows.size()), hold(model.slots + 1),
        bonus(model.slots + 1), there(model.slots + 1), made(model.slots + 1),
        keepFrom(model.slots + 1) {}

  double operator()(const std::vector<double> &prices);
  /// Applies decisions to lines; false if the case is empty.
  bool decide(const std::vector<std::pair<int32_t, int8_t>> &fixes);

  const Model &model;
  std::vector<Line> lines;
  std::vector<double> slope;
  int64_t work = 0;
  bool isBroken(size_t line) const {
    const Line &l = lines[line];
    for (int32_t i = 0; i < l.hi - l.lo; ++i)
      if (!there[l.slot + i])
        return true;
    return l.fix == kBroken;
  }

private:
  double path(const Line &line);
  double pathBroken(const Line &line);

  std::vector<int64_t> room; // At each moment, in this case.
  std::vector<double> hold;  // Cost of memory at a cell's end.
  std::vector<double> bonus; // Gain for a remaking in a cell.
  std::vector<int8_t> there; // At a cell's end, in the best path.
  std::vector<int32_t> made; // Remakings up to and with a cell.
  /// Back pointers: by state at the end, whether the value was in memory at the
  /// beginning and whether it was made.
  std::vector<std::array<int8_t, 4>> keepFrom;
};

} // namespace tmc::planning::branching

#endif // TMC_COMPILER_PLANNING_BOUND_BRANCHMODEL_H
