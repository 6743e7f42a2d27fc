#include "compiler/planning/model/ProblemFile.h"

#include "absl/strings/str_cat.h"

#include <charconv>
#include <limits>

using namespace tmc::planning;

namespace {

constexpr std::string_view kMagic = "tmc-problem 1";
constexpr ValueClass kClasses[] = {
    ValueClass::Parameter,  ValueClass::Gradient,  ValueClass::Optimizer,
    ValueClass::Activation, ValueClass::Workspace, ValueClass::Batch,
    ValueClass::Other};

/// One line, taken apart word by word: `key=value` and flags, then the name.
class Line {
public:
  Line(std::string_view text, int64_t number) : rest(text), number(number) {}

  std::string_view word() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
    size_t space = rest.find(' ');
    std::string_view out = rest.substr(0, space);
    rest.remove_prefix(out.size());
    return out;
  }
  /// If the next word is `key=...`, its value.
  bool take(std::string_view key, std::string_view &value) {
    std::string_view before = rest, w = word();
    if (w.size() > key.size() && w.substr(0, key.size()) == key &&
        w[key.size()] == '=') {
      value = w.substr(key.size() + 1);
      return true;
    }
    rest = before;
    return false;
  }
  bool flag(std::string_view name) {
    std::string_view before = rest;
    if (word() == name)
      return true;
    rest = before;
    return false;
  }
  bool integer(std::string_view key, int64_t &value) {
    std::string_view text;
    if (!take(key, text))
      return false;
    read(key, text, value);
    return true;
  }
  bool index(std::string_view key, int32_t &value) {
    int64_t wide = 0;
    if (!integer(key, wide))
      return false;
    value = narrow(key, wide);
    return true;
  }
  bool list(std::string_view key, std::vector<int32_t> &values) {
    std::string_view text;
    if (!take(key, text))
      return false;
    while (!text.empty()) {
      size_t comma = text.find(',');
      int64_t wide = 0;
      read(key, text.substr(0, comma), wide);
      values.push_back(narrow(key, wide));
      text.remove_prefix(comma == std::string_view::npos ? text.size()
                                                         : comma + 1);
    }
    return true;
  }
  bool pair(std::string_view key, int32_t &a, int32_t &b) {
    std::string_view text;
    if (!take(key, text))
      return false;
    size_t colon = text.find(':');
    int64_t first = 0, second = 0;
    read(key, text.substr(0, colon), first);
    read(key, colon == std::string_view::npos ? "" : text.substr(colon + 1),
         second);
    a = narrow(key, first);
    b = narrow(key, second);
    return true;
  }
  std::string name() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
    return std::string(rest);
  }
  void fail(const std::string &what) {
    if (error.empty())
      error = absl::StrCat("line ", number, ": ", what);
  }
  std::string error;

private:
  void read(std::string_view key, std::string_view text, int64_t &value) {
    auto [end, code] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size())
      fail(absl::StrCat("'", std::string(text), "' of ", std::string(key),
                        " isn't an integer of 64 bits"));
  }
  int32_t narrow(std::string_view key, int64_t wide) {
    if (wide < 0 || wide > std::numeric_limits<int32_t>::max()) {
      fail(absl::StrCat(std::string(key), " names number ", wide));
      return 0;
    }
    return int32_t(wide);
  }
  std::string_view rest;
  int64_t number;
};

void parseValue(Line &line, Problem &problem) {
  Value v;
  for (bool more = true; more;) {
    std::string_view text;
    if (line.take("class", text)) {
      bool known = false;
      for (ValueClass c : kClasses)
        if (text == nameOf(c))
          v.valueClass = c, known = true;
      if (!known)
        line.fail(absl::StrCat("there is no class '", std::string(text), "'"));
    } else if (line.take("kind", text)) {
      if (text == "persistent")
        v.kind = ValueKind::Persistent;
      else if (text == "carried")
        v.kind = ValueKind::Carried;
      else if (text != "temporary")
        line.fail(absl::StrCat("there is no kind '", std::string(text), "'"));
    } else if (line.flag("pinned")) {
      v.pinned = true;
    } else if (line.flag("live-out")) {
      v.liveOut = true;
    } else {
      more =
          line.integer("bytes", v.bytes) || line.index("from", v.carriedFrom) ||
          line.index("initial", v.initial) || line.index("updates", v.updates);
    }
  }
  v.name = line.name();
  problem.values.push_back(std::move(v));
}

void parseRecipe(Line &line, Problem &problem) {
  Recipe r;
  for (bool more = true; more;) {
    int32_t a = 0, b = 0;
    if (line.flag("again"))
      r.recomputable = true;
    else if (line.pair("may", a, b))
      r.overwrites.push_back({a, b, false});
    else if (line.pair("must", a, b))
      r.overwrites.push_back({a, b, true});
    else
      more = line.integer("cost", r.cost) ||
             line.integer("workspace", r.workspaceBytes) ||
             line.index("instruction", r.instruction) ||
             line.index("segment", r.segment) || line.list("reads", r.reads) ||
             line.list("writes", r.writes);
  }
  r.name = line.name();
  if (r.instruction != kNone) {
    if (size_t(r.instruction) >= problem.instructions.size())
      return line.fail(
          absl::StrCat("instruction ", r.instruction, " isn't there yet"));
    problem.instructions[r.instruction].recipes.push_back(
        RecipeId(problem.recipes.size()));
  }
  problem.recipes.push_back(std::move(r));
}

} // namespace

bool tmc::planning::isProblemFile(std::string_view text) {
  return text.substr(0, 11) == kMagic.substr(0, 11);
}

absl::StatusOr<Problem> tmc::planning::parseProblem(std::string_view text) {
  Problem problem;
  for (int64_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!row.empty() && row.back() == '\r')
      row.remove_suffix(1);
    if (number == 1) {
      if (row != kMagic)
        return absl::InvalidArgumentError(
            absl::StrCat("line 1: '", std::string(kMagic), "' is missing"));
      continue;
    }
    Line line(row, number);
    std::string_view what = line.word();
    if (what.empty() || what.front() == '#')
      continue;
    if (what == "segment") {
      Segment s;
      line.integer("trips", s.trips);
      s.name = line.name();
      problem.segments.push_back(std::move(s));
    } else if (what == "value") {
      parseValue(line, problem);
    } else if (what == "recipe") {
      parseRecipe(line, problem);
    } else if (what == "instruction") {
      Instruction i;
      line.index("segment", i.segment);
      i.name = line.name();
      if (size_t(i.segment) >= problem.segments.size())
        line.fail(absl::StrCat("segment ", i.segment, " isn't there yet"));
      else
        problem.segments[i.segment].instructions.push_back(
            InstructionId(problem.instructions.size()));
      problem.instructions.push_back(std::move(i));
    } else if (what == "reserved") {
      std::string bytes = line.name();
      auto [stop, error] = std::from_chars(
          bytes.data(), bytes.data() + bytes.size(), problem.reservedBytes);
      if (error != std::errc() || stop != bytes.data() + bytes.size())
        line.fail(absl::StrCat("'", bytes, "' isn't an integer of 64 bits"));
    } else {
      line.fail(absl::StrCat(
          "'", std::string(what),
          "' is no segment, value, instruction, recipe or reserved"));
    }
    if (!line.error.empty())
      return absl::InvalidArgumentError(line.error);
  }
  if (problem.segments.empty())
    return absl::InvalidArgumentError("the file has no segment");
  return problem;
}

std::string tmc::planning::printProblem(const Problem &problem) {
  std::string out = absl::StrCat(std::string(kMagic), "\n");
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
  for (const Segment &s : problem.segments) {
    out += "segment";
    field("trips", s.trips, 1);
    absl::StrAppend(&out, " ", s.name, "\n");
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
    field("updates", v.updates, kNone);
    absl::StrAppend(&out, v.pinned ? " pinned" : "",
                    v.liveOut ? " live-out" : "", " ", v.name, "\n");
  }
  // Instructions in the program's order: their numbers are written anew.
  std::vector<InstructionId> newNumber(problem.instructions.size(), kNone);
  InstructionId next = 0;
  for (const Segment &s : problem.segments)
    for (InstructionId i : s.instructions) {
      newNumber[i] = next++;
      absl::StrAppend(&out,
                      "instruction segment=", problem.instructions[i].segment,
                      " ", problem.instructions[i].name, "\n");
    }
  for (const Recipe &r : problem.recipes) {
    out += "recipe";
    if (r.instruction != kNone)
      field("instruction", newNumber[r.instruction], kNone);
    field("cost", r.cost, 0);
    field("workspace", r.workspaceBytes, 0);
    field("segment", r.segment, kNone);
    out += r.recomputable ? " again" : "";
    list("reads", r.reads);
    list("writes", r.writes);
    for (const Overwrite &o : r.overwrites)
      absl::StrAppend(&out, o.must ? " must=" : " may=", o.read, ":",
                      o.written);
    absl::StrAppend(&out, " ", r.name, "\n");
  }
  return out;
}
