#include "compiler/planning/model/ProblemFile.h"

#include "absl/strings/str_cat.h"

using namespace tmc::planning;

namespace {

/// Whether the problem needs version 2.
bool saysSpaces(const Problem &problem) {
  const MemorySpace device;
  const Engine compute;
  return !isOneSpace(problem) ||
         problem.spaces[0].budgetBytes != device.budgetBytes ||
         problem.spaces[0].name != device.name ||
         problem.engines[0].name != compute.name;
}

/// `name` at the end of a line; in quotes if its first word would be read as a
/// key or a flag.
std::string nameText(const std::string &name) {
  const std::string_view first =
      std::string_view(name).substr(0, name.find(' '));
  const bool isPlain =
      name.empty() ||
      (!first.empty() &&
       (first[0] == '\'' || first.find('=') == std::string_view::npos) &&
       first != "pinned" && first != "live-out" && first != "again");
  return isPlain ? name : absl::StrCat("'", name, "'");
}

void printSpaces(const Problem &problem, std::string &out) {
  for (const MemorySpace &s : problem.spaces) {
    absl::StrAppend(&out, "space kind=", nameOf(s.kind));
    if (s.budgetBytes >= 0)
      absl::StrAppend(&out, " budget=", s.budgetBytes);
    if (s.reservedBytes)
      absl::StrAppend(&out, " reserved=", s.reservedBytes);
    absl::StrAppend(&out, " ", nameText(s.name), "\n");
  }
  for (const Engine &e : problem.engines)
    absl::StrAppend(&out, "engine kind=", nameOf(e.kind), " ", nameText(e.name),
                    "\n");
}

} // namespace

std::string tmc::planning::printProblem(const Problem &problem) {
  bool hasSpaces = saysSpaces(problem);
  std::string out = absl::StrCat(
      std::string(hasSpaces ? kManySpacesLine : kOneSpaceLine), "\n");
  auto field = [&](const char *key, int64_t value, int64_t usual) {
    if (value != usual)
      absl::StrAppend(&out, " ", key, "=", value);
  };
  auto list = [&](const char *key, const std::vector<ValueId> &values) {
    for (size_t i = 0; i < values.size(); ++i)
      absl::StrAppend(&out, i ? "," : absl::StrCat(" ", key, "="), values[i]);
  };
  if (problem.reservedBytes)
    absl::StrAppend(&out, "reserved ", problem.reservedBytes, "\n");
  if (hasSpaces)
    printSpaces(problem, out);
  for (const Segment &s : problem.segments) {
    out += "segment";
    field("trips", s.trips, 1);
    absl::StrAppend(&out, " ", nameText(s.name), "\n");
  }
  for (const Value &v : problem.values) {
    out += "value";
    field("bytes", v.bytes, 0);
    if (v.valueClass != ValueClass::Activation)
      absl::StrAppend(&out, " class=", nameOf(v.valueClass));
    if (v.kind != ValueKind::Temporary)
      absl::StrAppend(&out, v.kind == ValueKind::Carried ? " kind=carried"
                                                         : " kind=persistent");
    field("from", v.carriedFrom, kNone);
    field("initial", v.initial, kNone);
    field("lag", v.lag, 1);
    field("updates", v.updates, kNone);
    field("space", v.space, 0);
    field("form-of", v.formOf, kNone);
    absl::StrAppend(&out, v.pinned ? " pinned" : "",
                    v.liveOut ? " live-out" : "", " ", nameText(v.name), "\n");
  }
  // Instructions in the program's order, with new numbers.
  std::vector<InstructionId> newNumber(problem.instructions.size(), kNone);
  InstructionId next = 0;
  for (const Segment &s : problem.segments)
    for (InstructionId i : s.instructions) {
      newNumber[i] = next++;
      absl::StrAppend(&out,
                      "instruction segment=", problem.instructions[i].segment,
                      " ", nameText(problem.instructions[i].name), "\n");
    }
  for (const Recipe &r : problem.recipes) {
    out += "recipe";
    if (r.instruction != kNone)
      field("instruction", newNumber[r.instruction], kNone);
    field("cost", r.cost, 0);
    field("workspace", r.workspaceBytes, 0);
    field("segment", r.segment, kNone);
    field("engine", r.engine, 0);
    field("scratch-space", r.workspaceSpace, 0);
    field("bus", r.busShare, 0);
    out += r.recomputable ? " again" : "";
    list("reads", r.reads);
    list("writes", r.writes);
    for (const Overwrite &o : r.overwrites)
      absl::StrAppend(&out, o.must ? " must=" : " may=", o.read, ":",
                      o.written);
    absl::StrAppend(&out, " ", nameText(r.name), "\n");
  }
  return out;
}
