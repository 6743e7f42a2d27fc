#include "compiler/report/PlanTrace.h"

#include "compiler/analysis/Storage.h"
#include "compiler/report/TypeReasons.h"
#include "dialects/interfaces/Interfaces.h"

#include "llvm/Support/Path.h"

#include <map>

using namespace mlir;
using namespace tmc;
using planning::kNone;
using planning::ValueId;

const char *tmc::nameOf(PlanTrace::Phase phase) {
  static constexpr const char *kNames[] = {"forward", "backward", "update"};
  return kNames[size_t(phase)];
}

int64_t PlanTrace::recomputations() const {
  return llvm::count_if(launches, [](const Launch &l) { return l.recomputes; });
}

std::vector<std::vector<int32_t>> PlanTrace::tensorsOf() const {
  std::vector<std::vector<int32_t>> of(values.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    of[tensors[i].value].push_back(int32_t(i));
  return of;
}

std::vector<SpaceKind> PlanTrace::spaces() const {
  std::vector<SpaceKind> found;
  for (const SpaceInfo &space : kSpaces)
    if (onDevice(space.kind) ||
        llvm::any_of(tensors, [&](const Tensor &tensor) {
          return values[tensor.value].space == space.kind;
        }))
      found.push_back(space.kind);
  return found;
}

bool PlanTrace::leavesDevice() const {
  for (auto [space, bytes] : arenaBytes)
    if (!onDevice(space.kind) && bytes >= 0)
      return true;
  return false;
}

std::vector<int64_t> PlanTrace::clockPs() const {
  std::vector<int64_t> clock;
  int64_t segmentBegin = 0;
  for (const Segment &segment : segments) {
    int64_t at = 0;
    for (int32_t l = segment.begin; l < segment.end; ++l) {
      clock.push_back(segmentBegin + at);
      if (launches[l].other < 0 || launches[l].isDone())
        at = launches[l].endPs[segment.middle()];
    }
    segmentBegin += segment.tripPs[segment.middle()];
  }
  clock.push_back(segmentBegin);
  return clock;
}

PerEngine<double> PlanTrace::waitSeconds() const {
  PerEngine<double> waits;
  for (const Segment &segment : segments)
    for (int64_t trip = 0; trip < segment.trips; ++trip)
      for (int32_t l = segment.begin; l < segment.end; ++l) {
        size_t shown = segment.shownAs(trip);
        if (int64_t ps = launches[l].endPs[shown] - launches[l].beginPs[shown];
            launches[l].isDone() && ps)
          waits[launches[l].engine] += double(ps) * 1e-12;
      }
  return waits;
}

PlanTrace::Moved PlanTrace::movedOf(const std::string &kind) const {
  // Operands of updates on the host count with the states.
  std::vector<char> isUpdating(values.size(), 0);
  for (const Launch &launch : launches)
    if (launch.engine == EngineKind::Host)
      for (int32_t v : launch.reads)
        isUpdating[values[v].content] = 1;
  auto isOf = [&](int32_t value) {
    int32_t content = values[value].content;
    const std::string &its = values[content].valueClass;
    return kind == (its == "parameters" || its == "optimizer" ? its
                    : isUpdating[content]                     ? "optimizer"
                                                              : "activations");
  };
  Moved moved;
  for (const Tensor &tensor : tensors) {
    const Value &value = values[tensor.value];
    // Only the old value counts; the new value takes its bytes.
    if (value.persistent && !onDevice(value.space) && tensor.placeOf < 0 &&
        value.valueClass == kind)
      moved.homeBytes += value.bytes;
  }
  for (const Segment &segment : segments)
    for (int32_t l = segment.begin; l < segment.end; ++l) {
      const Launch &launch = launches[l];
      if (!launch.isMove() || !isOf(launch.reads[0]))
        continue;
      if (onDevice(values[launch.reads[0]].space))
        moved.outBytes += values[launch.reads[0]].bytes * segment.trips;
      if (onDevice(values[launch.writes[0]].space))
        moved.backBytes += values[launch.writes[0]].bytes * segment.trips;
    }
  return moved;
}

int32_t PlanTrace::aloneFrom(const Tensor &tensor) const {
  if (tensor.placeOf < 0)
    return tensor.begin;
  const Launch &maker = launches[tensor.begin];
  return std::max(tensor.begin, maker.other) + 1;
}

std::map<std::string, std::vector<int64_t>>
PlanTrace::levels(SpaceKind space) const {
  std::map<std::string, std::vector<int64_t>> levels;
  size_t n = launches.size();
  auto add = [&](const std::string &name, int32_t begin, int32_t end,
                 int64_t bytes) {
    std::vector<int64_t> &level = levels[name];
    level.resize(n + 1, 0); // Differences first.
    level[begin] += bytes;
    level[end] -= bytes;
  };
  for (const Tensor &tensor : tensors) {
    const Value &value = values[tensor.value];
    if (value.space != space)
      continue;
    add(value.valueClass, tensor.begin, tensor.end, value.bytes);
    if (int32_t alone = std::min(aloneFrom(tensor), tensor.end);
        tensor.begin < alone)
      add(value.valueClass, tensor.begin, alone,
          -std::min(value.bytes, values[tensors[tensor.placeOf].value].bytes));
  }
  for (size_t l = 0; l < n; ++l)
    if (const Launch &launch = launches[l]; launch.workspaceBytes &&
                                            launch.workspaceSpace == space &&
                                            !launch.isDone())
      add("workspace", int32_t(l), std::max(int32_t(l), launch.other) + 1,
          launch.workspaceBytes);
  for (auto &[name, level] : levels)
    for (size_t i = 1; i <= n; ++i)
      level[i] += level[i - 1];
  return levels;
}

std::map<std::string, int64_t> PlanTrace::peakByType() const {
  std::map<std::string, int64_t> bytes;
  for (const Tensor &tensor : tensors) {
    // A tensor that takes over another's bytes shares them while it is made.
    if (onDevice(values[tensor.value].space) &&
        aloneFrom(tensor) <= peakLaunch && peakLaunch < tensor.end)
      bytes[values[tensor.value].type] += values[tensor.value].bytes;
  }
  return bytes;
}

std::string tmc::lineOf(Location loc) {
  std::string line;
  loc->walk([&](Location part) {
    if (auto file = dyn_cast<FileLineColLoc>(part); file && line.empty())
      line = llvm::sys::path::filename(file.getFilename()).str() + ":" +
             std::to_string(file.getLine());
    return WalkResult::advance();
  });
  return line;
}

namespace {

class TraceBuilder {
public:
  TraceBuilder(const StepProblem &stated, const planning::Problem &problem,
               const planning::Plan &plan)
      : stated(stated), problem(problem), plan(plan) {}

  PlanTrace build() {
    absl::StatusOr<planning::Account> counted = account(problem, plan);
    if (!counted.ok())
      return trace;
    findPhases();
    addValues();
    addTypes();
    addLaunches(*counted);
    for (const planning::LiveInterval &stay : counted->intervals)
      trace.tensors.push_back(
          {stay.value, stay.begin, stay.end, stay.storageOf, -1});
    for (const planning::GapDecision &gap : counted->gaps)
      trace.values[gap.value].gaps.push_back(
          {gap.from, gap.to, gap.held, gap.overPeak, kindOf(gap.space),
           gap.leastCost, gap.moveCost, gap.breakCost(), gap.paidCost,
           gap.waitedCost, gap.worth});
    trace.peakLaunch = counted->peakRow;
    trace.peakBytes = counted->peakBytes;
    trace.reservedBytes = problem.reservedBytes;
    trace.levers = counted->levers;
    return std::move(trace);
  }

private:
  const StepProblem &stated;
  const planning::Problem &problem;
  const planning::Plan &plan;
  PlanTrace trace;
  std::vector<PlanTrace::Phase> phaseOf;        // By instruction.
  std::vector<planning::InstructionId> makerOf; // By value.

  SpaceKind kindOf(planning::SpaceId space) const {
    return problem.spaces[space].kind;
  }

  const planning::Recipe &own(planning::InstructionId i) const {
    return problem.recipes[problem.instructions[i].recipes.front()];
  }

  /// Forward instructions contribute to the loss, updates write persistent
  /// values; the rest is the backward pass.
  void findPhases() {
    size_t n = problem.instructions.size();
    phaseOf.assign(n, PlanTrace::Phase::Backward);
    makerOf.assign(problem.values.size(), kNone);
    for (size_t i = 0; i < n; ++i)
      for (ValueId v : own(i).writes) {
        makerOf[v] = i;
        if (problem.values[v].updates != kNone)
          phaseOf[i] = PlanTrace::Phase::Update;
      }
    std::vector<ValueId> open = {lossOf()};
    std::vector<char> seen(problem.values.size(), 0);
    while (!open.empty()) {
      ValueId v = open.back();
      open.pop_back();
      if (v == kNone || std::exchange(seen[v], 1))
        continue;
      if (problem.values[v].kind == planning::ValueKind::Carried)
        open.push_back(problem.values[v].carriedFrom);
      if (makerOf[v] == kNone)
        continue;
      phaseOf[makerOf[v]] = PlanTrace::Phase::Forward;
      llvm::append_range(open, own(makerOf[v]).reads);
    }
  }

  train::StepOp stepOf() const {
    for (Value value : stated.valueOf)
      if (value)
        if (auto step =
                dyn_cast<train::StepOp>(value.getParentRegion()->getParentOp()))
          return step;
    return {};
  }

  ValueId lossOf() const {
    train::StepOp step = stepOf();
    if (!step)
      return kNone;
    Operation *ret = step.getBody().front().getTerminator();
    for (auto [i, result] : llvm::enumerate(ret->getOperands()))
      if (step.getResultAttr(i, train::TrainDialect::kLoss)) {
        auto it = stated.idOf.find(storageRoot(result));
        return it == stated.idOf.end() ? kNone : it->second;
      }
    return kNone;
  }

  void addTypes() {
    train::StepOp step = stepOf();
    if (!step)
      return;
    TypeReasons reasons(step);
    for (auto [reported, value] : llvm::zip_equal(trace.values, stated.valueOf))
      if (value) {
        reported.type = elementTypeOf(value);
        reported.why = reasons.whyOf(value);
      }
    // The zeros that initialize a sum have the sum's type and reason.
    for (size_t i = 0; i < trace.values.size(); ++i)
      if (ValueId from = problem.values[i].carriedFrom;
          !stated.valueOf[i] && from != kNone) {
        trace.values[i].type = trace.values[from].type;
        trace.values[i].why = trace.values[from].why;
      }
    for (const auto &[type, count] : reasons.products)
      trace.products.push_back({type, count});
    for (const auto &[exception, count] : reasons.exceptions)
      trace.exceptions.push_back({exception, count});
  }

  /// The parameter that a gradient is for, or "".
  std::string parameterOf(ValueId id) const {
    Value value = stated.valueOf[id];
    if (!value)
      return "";
    if (Value parameter = gradientOf(value))
      if (auto it = stated.idOf.find(parameter); it != stated.idOf.end())
        return problem.values[it->second].name;
    return "";
  }

  void addValues() {
    std::vector<char> canRemake(problem.values.size(), 0);
    for (const planning::Recipe &recipe : problem.recipes)
      if (recipe.recomputable)
        for (ValueId v : recipe.writes)
          canRemake[v] = !problem.values[v].pinned;
    std::map<std::string, int> known;
    std::vector<ValueId> home = homesOf(problem, plan.solution);
    for (size_t i = 0; i < problem.values.size(); ++i) {
      const planning::Value &value = problem.values[i];
      PlanTrace::Value reported;
      reported.name = value.name;
      reported.valueClass = planning::nameOf(value.valueClass);
      reported.bytes = value.bytes;
      reported.persistent = value.kind == planning::ValueKind::Persistent &&
                            home[i] == ValueId(i);
      reported.canRemake = canRemake[i];
      reported.space = kindOf(value.space);
      reported.content = problem.contentOf(ValueId(i));
      if (value.formOf != kNone) { // Main forms come first.
        reported.name =
            trace.values[value.formOf].name + "@" + nameOf(reported.space);
        trace.values.push_back(std::move(reported));
        continue;
      }
      bool backward = makerOf[i] != kNone &&
                      phaseOf[makerOf[i]] == PlanTrace::Phase::Backward;
      std::string tag;
      if (std::string parameter = parameterOf(i); !parameter.empty())
        reported.name = parameter + ".grad";
      else if (value.kind == planning::ValueKind::Carried)
        tag = "sum";
      else if (value.updates != kNone)
        reported.name = problem.values[value.updates].name, tag = "updated";
      else if (backward)
        tag = "backward";
      int number = ++known[reported.name + "/" + tag];
      if (number > 1)
        tag += (tag.empty() ? "" : ", ") + std::to_string(number);
      if (!tag.empty())
        reported.name += " (" + tag + ")";
      trace.values.push_back(std::move(reported));
    }
  }

  /// How often a step runs the launch.
  int64_t tripsAt(int32_t launch) const {
    for (const PlanTrace::Segment &segment : trace.segments)
      if (launch < segment.end)
        return segment.trips;
    return 1;
  }

  void addLaunches(const planning::Account &counted) {
    int32_t at = 0;
    for (size_t s = 0; s < problem.segments.size(); ++s) {
      int32_t end = at + int32_t(plan.solution.segments[s].size());
      trace.segments.push_back({problem.segments[s].name,
                                stated.problem.segments[s].trips, at, end,
                                counted.tripLengths[s]});
      at = end;
    }
    llvm::DenseMap<Operation *, int32_t> instances;
    for (const planning::AccountRow &row : counted.rows) {
      const planning::Recipe &recipe = problem.recipes[row.recipe];
      const RecipeKernel &kernel = stated.kernelOf[row.recipe];
      PlanTrace::Launch launch;
      launch.name = recipe.name;
      const bool isDone = row.phase == planning::Phase::Done;
      launch.recomputes =
          row.instruction == kNone && !isDone && !problem.isMove(recipe);
      if (isDone) {
        launch.kind = "done";
      } else if (problem.isMove(recipe)) {
        const planning::SpaceId from = problem.values[recipe.reads[0]].space;
        const planning::SpaceId to = problem.values[recipe.writes[0]].space;
        launch.kind = to == from ? "gather" : to > from ? "stash" : "fetch";
      } else if (kernel.op) {
        launch.where = lineOf(kernel.op->getLoc());
        launch.kind = kernel.op->getName().stripDialect().str();
        launch.instance = instances[kernel.op]++;
      } else {
        launch.kind = "fill";
      }
      planning::InstructionId instruction =
          row.instruction == kNone
              ? makerOf[problem.contentOf(recipe.writes.front())]
              : row.instruction;
      if (instruction != kNone)
        launch.phase = phaseOf[instruction];
      launch.engine = problem.engines[recipe.engine].kind;
      launch.other = row.other;
      for (const planning::TimeSpan &time : row.times) {
        launch.beginPs.push_back(time.begin);
        launch.endPs.push_back(time.end);
      }
      launch.costPs = isDone ? 0 : recipe.cost;
      if (!isDone && launch.engine == EngineKind::Compute)
        trace.prices.add(kernel.price, tripsAt(int32_t(trace.launches.size())),
                         kernel.family);
      launch.liveBytes.device() = row.liveBytes;
      for (size_t space = 0; space < row.otherBytes.size(); ++space)
        launch.liveBytes[problem.spaces[space + 1].kind] =
            row.otherBytes[space];
      if (!isDone)
        launch.workspaceBytes = recipe.workspaceBytes;
      launch.workspaceSpace = kindOf(recipe.workspaceSpace);
      launch.price = row.price;
      launch.reads.assign(recipe.reads.begin(), recipe.reads.end());
      launch.writes.assign(recipe.writes.begin(), recipe.writes.end());
      trace.launches.push_back(std::move(launch));
    }
  }
};

} // namespace

PlanTrace tmc::planTraceOf(const StepProblem &stated,
                           const planning::Problem &problem,
                           const planning::Plan &plan) {
  return TraceBuilder(stated, problem, plan).build();
}
