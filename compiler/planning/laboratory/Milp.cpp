#include "compiler/planning/laboratory/Milp.h"

#include "compiler/planning/search/Checkpoint.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

#ifdef TMC_CBC
#include <coin/Cbc_C_Interface.h>
#endif

using namespace tmc::planning;

bool tmc::planning::hasMilp() {
#ifdef TMC_CBC
  return true;
#else
  return false;
#endif
}

void tmc::planning::registerMilp() {
  registerPlanner("milp", "Checkmate's: a mixed-integer program, through CBC",
                  planMilp);
}

namespace {

/// A larger program takes hours before the first branch.
constexpr size_t kMostEntries = 600'000;

/// An error if the model can't express the problem.
absl::Status accepts(const Problem &problem) {
  for (const Segment &segment : problem.segments)
    if (segment.trips != 1)
      return absl::UnimplementedError(
          absl::StrCat("planner 'milp' takes no loops, and '", segment.name,
                       "' runs ", segment.trips, " times"));
  for (const Instruction &instruction : problem.instructions)
    if (instruction.recipes.size() != 1)
      return absl::UnimplementedError(absl::StrCat(
          "planner 'milp' takes one recipe for each instruction, and '",
          instruction.name, "' has ", instruction.recipes.size()));
  for (const Recipe &recipe : problem.recipes)
    if (recipe.writes.size() != 1 || recipe.instruction == kNone)
      return absl::UnimplementedError(absl::StrCat(
          "planner 'milp' takes one result for each instruction, and recipe '",
          recipe.name, "' ",
          recipe.instruction == kNone
              ? "only recomputes"
              : absl::StrCat("has ", recipe.writes.size())));
  for (const Value &value : problem.values)
    if (value.kind == ValueKind::Carried)
      return absl::UnimplementedError(absl::StrCat(
          "planner 'milp' takes no carried values such as '", value.name, "'"));
  return absl::OkStatus();
}

/// The program, column by column and row by row, without a solver.
struct Program {
  struct Column {
    double upper = 1, cost = 0;
    bool whole = false;
  };
  struct Row {
    std::vector<std::pair<int32_t, double>> entries;
    double lower = -HUGE_VAL, upper = HUGE_VAL;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
  size_t entries = 0;

  int32_t column(double upper, double cost, bool whole) {
    columns.push_back({upper, cost, whole});
    return int32_t(columns.size()) - 1;
  }
  void row(std::vector<std::pair<int32_t, double>> list, double lower,
           double upper) {
    entries += list.size();
    rows.push_back({std::move(list), lower, upper});
  }
};

/// Columns of the decisions.
struct Model {
  Program program;
  struct Clone {
    OpId op;
    int32_t stage, column;
  };
  std::vector<Clone> clones; // R of recomputations.
};

#ifdef TMC_CBC
/// Writes the program down, stage by stage.
class ModelBuilder {
public:
  ModelBuilder(const LinearProblem &linear, int64_t limit)
      : linear(linear), n(int32_t(linear.stages.size())),
        unit(1.0 / double(std::max<int64_t>(limit, 1))),
        meanCost(
            std::max(1.0, double(linear.baseCost) / double(std::max(n, 1)))),
        useful(linear.bytes.size(), -1), held(linear.bytes.size(), -1),
        next(linear.bytes.size(), -1) {
    findMakers();
  }

  Model run(bool &tooLarge) {
    for (int32_t t = 0; t < n && !tooLarge; ++t) {
      addColumns(t);
      addSlots(t);
      held = next;
      tooLarge = p.entries > kMostEntries;
    }
    return std::move(model);
  }

private:
  using Row = std::vector<std::pair<int32_t, double>>;

  const LinearOp &ownOf(int32_t t) const {
    return linear.ops[linear.stages[t].variants.front()];
  }
  static bool isRead(const LinearOp &op, ValueId v) {
    return std::find(op.reads.begin(), op.reads.end(), v) != op.reads.end();
  }
  /// Whether v can be in memory when stage t begins.
  bool there(ValueId v, int32_t t) const {
    return linear.madeAt[v] >= 0 && t > linear.madeAt[v] && t <= useful[v];
  }
  void findMakers();
  void addColumns(int32_t t);
  void mustBeThere(ValueId v, int32_t reader);
  void addSlots(int32_t t);
  void addLeaving(const LinearOp &op, size_t slot, const LinearOp &own);

  const LinearProblem &linear;
  int32_t n;
  double unit, meanCost;
  Model model;
  Program &p = model.program;
  /// The last stage in which a value can be of use: read by the stage's own
  /// instruction, or by a recomputation of a value that is of use.
  std::vector<int32_t> useful;
  std::vector<OpId> makers; // Ops that can recompute, by rank.
  /// By value: S of this stage, S of the next, and R; -1 if there is no choice.
  std::vector<int32_t> held, next, rerun;
  std::vector<std::pair<OpId, int32_t>> slots; // This stage's, with R.
  Row freed; // Values that leave memory after the slot before.
};

void ModelBuilder::findMakers() {
  for (int32_t t = n; t-- > 0;)
    for (ValueId v : ownOf(t).reads)
      useful[v] = std::max(useful[v], t);
  for (OpId o = 0; o < OpId(linear.ops.size()); ++o)
    if (linear.ops[o].firstStage <= linear.ops[o].lastStage &&
        linear.ops[o].writes.size() == 1)
      makers.push_back(o);
  std::sort(makers.begin(), makers.end(), [&](OpId a, OpId b) {
    return linear.ops[a].rank < linear.ops[b].rank;
  });
  for (size_t i = makers.size(); i-- > 0;)
    for (ValueId u : linear.ops[makers[i]].reads)
      useful[u] =
          std::max(useful[u], useful[linear.ops[makers[i]].writes.front()]);
}

/// Adds R of the stage, S of the next stage, and the rows between them.
void ModelBuilder::addColumns(int32_t t) {
  rerun.assign(linear.bytes.size(), -1);
  slots.clear();
  for (OpId o : makers) {
    ValueId w = linear.ops[o].writes.front();
    if (!linear.ops[o].mayRecomputeAt(t) || !there(w, t))
      continue;
    rerun[w] = p.column(1, double(linear.ops[o].cost) / meanCost, true);
    slots.push_back({o, rerun[w]});
    model.clones.push_back({o, t, rerun[w]});
  }
  for (ValueId v = 0; v < ValueId(linear.bytes.size()); ++v) {
    next[v] = there(v, t + 1) ? p.column(1, 0, true) : -1;
    if (held[v] >= 0 && rerun[v] >= 0)
      p.row({{held[v], 1}, {rerun[v], 1}}, -HUGE_VAL, 1);
    if (next[v] < 0 || linear.madeAt[v] == t)
      continue;
    Row row = {{next[v], 1}};
    for (int32_t from : {held[v], rerun[v]})
      if (from >= 0)
        row.push_back({from, -1});
    p.row(std::move(row), -HUGE_VAL, 0);
  }
}

/// Row: v is in memory if `reader` runs; -1: the reader always runs.
void ModelBuilder::mustBeThere(ValueId v, int32_t reader) {
  Row row;
  for (int32_t from : {held[v], rerun[v]})
    if (from >= 0)
      row.push_back({from, 1});
  if (reader >= 0)
    row.push_back({reader, -1});
  p.row(std::move(row), reader >= 0 ? 0 : 1, HUGE_VAL);
}

/// Adds U of each slot; the stage's own instruction comes last.
void ModelBuilder::addSlots(int32_t t) {
  const LinearOp &first = ownOf(t);
  int32_t before = -1; // U of the slot before.
  freed.clear();
  for (size_t j = 0; j <= slots.size(); ++j) {
    bool own = j == slots.size();
    const LinearOp &op = own ? first : linear.ops[slots[j].first];
    int32_t runs = own ? -1 : slots[j].second;
    for (ValueId v : op.reads)
      if (linear.madeAt[v] >= 0)
        mustBeThere(v, runs);
    int32_t bytes = p.column(1, 0, false);
    Row row = {{bytes, 1}};
    if (before >= 0)
      row.push_back({before, -1});
    else
      for (ValueId v = 0; v < ValueId(held.size()); ++v)
        if (held[v] >= 0)
          row.push_back({held[v], -double(linear.bytes[v]) * unit});
    row.insert(row.end(), freed.begin(), freed.end());
    freed.clear();
    double written = double(op.writtenBytes) * unit;
    if (!own)
      row.push_back({runs, -written});
    p.row(std::move(row), own ? written : 0, own ? written : 0);
    double workspace = double(op.workspaceBytes) * unit;
    if (own)
      p.columns[bytes].upper = 1 - workspace;
    else if (workspace > 0)
      p.row({{bytes, 1}, {runs, workspace}}, -HUGE_VAL, 1);
    before = bytes;
    if (!own)
      addLeaving(op, j, first);
  }
}

/// Adds F of a slot's inputs, unless the stage's own instruction needs them.
void ModelBuilder::addLeaving(const LinearOp &op, size_t slot,
                              const LinearOp &own) {
  for (ValueId v : op.reads) {
    if (linear.bytes[v] == 0 || isRead(own, v))
      continue;
    int32_t leaves = p.column(1, 0, false);
    freed.push_back({leaves, double(linear.bytes[v]) * unit});
    p.row({{leaves, 1}, {slots[slot].second, -1}}, -HUGE_VAL, 0);
    if (next[v] >= 0)
      p.row({{leaves, 1}, {next[v], 1}}, -HUGE_VAL, 1);
    for (size_t i = slot + 1; i < slots.size(); ++i)
      if (isRead(linear.ops[slots[i].first], v))
        p.row({{leaves, 1}, {slots[i].second, 1}}, -HUGE_VAL, 1);
  }
}

/// Values of all columns; empty if no solution was found.
std::vector<double> solveProgram(const Program &p, int64_t nodes,
                                 double seconds) {
  size_t columns = p.columns.size();
  std::vector<int> start(columns + 1, 0), index(p.entries);
  std::vector<double> value(p.entries), lower(columns, 0), upper, cost,
      rowLower, rowUpper;
  for (const Program::Row &row : p.rows) {
    for (auto [column, factor] : row.entries)
      ++start[size_t(column) + 1];
    rowLower.push_back(row.lower);
    rowUpper.push_back(row.upper);
  }
  for (size_t c = 0; c < columns; ++c) {
    start[c + 1] += start[c];
    upper.push_back(p.columns[c].upper);
    cost.push_back(p.columns[c].cost);
  }
  std::vector<int> at(start.begin(), start.end() - 1);
  for (size_t r = 0; r < p.rows.size(); ++r)
    for (auto [column, factor] : p.rows[r].entries) {
      index[at[column]] = int(r);
      value[at[column]++] = factor;
    }
  Cbc_Model *model = Cbc_newModel();
  Cbc_setLogLevel(model, 0);
  Cbc_loadProblem(model, int(columns), int(p.rows.size()), start.data(),
                  index.data(), value.data(), lower.data(), upper.data(),
                  cost.data(), rowLower.data(), rowUpper.data());
  for (size_t c = 0; c < columns; ++c)
    if (p.columns[c].whole)
      Cbc_setInteger(model, int(c));
  Cbc_setMaximumNodes(model, int(std::clamp<int64_t>(nodes, 0, 1 << 30)));
  if (seconds > 0)
    Cbc_setMaximumSeconds(model, seconds);
  Cbc_solve(model);
  std::vector<double> out;
  if (const double *best =
          Cbc_numberSavedSolutions(model) > 0 || Cbc_isProvenOptimal(model)
              ? Cbc_bestSolution(model)
              : nullptr)
    out.assign(best, best + columns);
  Cbc_deleteModel(model);
  return out;
}
#endif

} // namespace

absl::StatusOr<Solution> tmc::planning::planMilp(const Problem &problem,
                                                 const PlanRequest &request) {
  if (!hasMilp())
    return absl::UnimplementedError(
        "planner 'milp' needs CBC, without which this was built (install "
        "coinor-libcbc-dev, configure and build again)");
  if (absl::Status status = accepts(problem); !status.ok())
    return status;
  LinearProblem linear = linearize(problem);
  int64_t limit = liveLimit(problem, linear, request.budgetBytes);
  Schedule schedule(linear, limit);
  if (schedule.excess() == 0)
    return schedule.toSolution(problem);
  // The solver may search long to see that one instruction alone exceeds the
  // limit.
  for (const LinearStage &stage : linear.stages) {
    const LinearOp &op = linear.ops[stage.variants.front()];
    int64_t bytes = op.writtenBytes + op.workspaceBytes;
    for (ValueId v : op.reads)
      bytes += linear.bytes[v];
    if (bytes > limit)
      return schedule.toSolution(problem);
  }
#ifdef TMC_CBC
  // Branch-and-bound nodes.
  constexpr int64_t nodes = 20'000;
  // Rounding within the solver's tolerance may exceed the limit by a little.
  for (int64_t room = limit, tries = 0; room > 0 && tries < 4; ++tries) {
    bool tooLarge = false;
    Model model = ModelBuilder(linear, room).run(tooLarge);
    if (tooLarge)
      return absl::UnimplementedError(
          absl::StrCat("planner 'milp' would need more than ", kMostEntries,
                       " entries for these ", problem.instructions.size(),
                       " instructions: it is meant for about a hundred"));
    std::vector<double> answer = solveProgram(
        model.program, std::max<int64_t>(1, nodes * request.effort / 100),
        request.timeLimitSeconds);
    if (answer.empty())
      break;
    RematPlan plan;
    for (const Model::Clone &c : model.clones)
      if (answer[c.column] > 0.5)
        plan.clones.push_back({c.op, c.stage});
    restore(linear, schedule, plan);
    dropUseless(schedule);
    if (schedule.excess() == 0)
      break;
    room -= std::max<int64_t>(1, schedule.peakBytes() - limit);
  }
#endif
  return schedule.toSolution(problem);
}
