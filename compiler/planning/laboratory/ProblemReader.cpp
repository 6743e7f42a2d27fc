#include "compiler/planning/laboratory/ProblemReader.h"

#include "compiler/planning/model/ProblemFile.h"

#include "absl/strings/str_cat.h"

#include <charconv>
#include <limits>

using namespace tmc::planning;

namespace {

constexpr std::string_view kMagic = "tmc-problem ";

/// One line, read word by word: `key=value` and flags, then the name.
class Line {
public:
  Line(std::string_view text, int64_t number, bool hasSpaces)
      : hasSpaces(hasSpaces), rest(text), number(number) {}

  const bool hasSpaces; // Version 2.

  std::string_view word() {
    while (!rest.empty() && rest.front() == ' ')
      rest.remove_prefix(1);
    size_t space = rest.find(' ');
    std::string_view out = rest.substr(0, space);
    rest.remove_prefix(out.size());
    return out;
  }
  /// If the next word is `key=...`, takes its value.
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
  /// `key=NAME`, the kind of one of `all` by its name.
  template <typename Kind, typename Row, size_t n>
  bool kind(std::string_view key, const Row (&all)[n], Kind &kind) {
    std::string_view text;
    if (!take(key, text))
      return false;
    for (const Row &row : all)
      if (text == row.name) {
        kind = row.kind;
        return true;
      }
    fail(absl::StrCat("there is no ", std::string(key), " '", std::string(text),
                      "'"));
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
    if (line.kind("class", kValueClasses, v.valueClass))
      continue;
    if (line.take("kind", text)) {
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
      more = line.integer("bytes", v.bytes) ||
             line.index("from", v.carriedFrom) ||
             line.index("initial", v.initial) ||
             line.index("updates", v.updates) ||
             (line.hasSpaces &&
              (line.index("space", v.space) ||
               line.index("form-of", v.formOf) || line.index("lag", v.lag)));
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
      more =
          line.integer("cost", r.cost) ||
          line.integer("workspace", r.workspaceBytes) ||
          line.index("instruction", r.instruction) ||
          line.index("segment", r.segment) || line.list("reads", r.reads) ||
          line.list("writes", r.writes) ||
          (line.hasSpaces && (line.index("engine", r.engine) ||
                              line.index("scratch-space", r.workspaceSpace) ||
                              line.index("bus", r.busShare)));
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

void parseSegment(Line &line, Problem &problem) {
  Segment s;
  line.integer("trips", s.trips);
  s.name = line.name();
  problem.segments.push_back(std::move(s));
}

void parseInstruction(Line &line, Problem &problem) {
  Instruction i;
  line.index("segment", i.segment);
  i.name = line.name();
  if (size_t(i.segment) >= problem.segments.size())
    return line.fail(absl::StrCat("segment ", i.segment, " isn't there yet"));
  problem.segments[i.segment].instructions.push_back(
      InstructionId(problem.instructions.size()));
  problem.instructions.push_back(std::move(i));
}

void parseReserved(Line &line, Problem &problem) {
  std::string bytes = line.name();
  auto [stop, error] = std::from_chars(
      bytes.data(), bytes.data() + bytes.size(), problem.reservedBytes);
  if (error != std::errc() || stop != bytes.data() + bytes.size())
    line.fail(absl::StrCat("'", bytes, "' isn't an integer of 64 bits"));
}

void parseSpace(Line &line, Problem &problem) {
  MemorySpace s;
  while (line.kind("kind", kSpaces, s.kind) ||
         line.integer("budget", s.budgetBytes) ||
         line.integer("reserved", s.reservedBytes))
    ;
  s.name = line.name();
  problem.spaces.push_back(std::move(s));
}

void parseEngine(Line &line, Problem &problem) {
  Engine e;
  line.kind("kind", kEngines, e.kind);
  e.name = line.name();
  problem.engines.push_back(std::move(e));
}

void parseLine(Line &line, Problem &problem) {
  static constexpr struct {
    std::string_view word;
    void (*parse)(Line &, Problem &);
    bool ofSpaces;
  } kinds[] = {{"segment", parseSegment, false},
               {"value", parseValue, false},
               {"instruction", parseInstruction, false},
               {"recipe", parseRecipe, false},
               {"reserved", parseReserved, false},
               {"space", parseSpace, true},
               {"engine", parseEngine, true}};
  std::string_view what = line.word();
  if (what.empty() || what.front() == '#')
    return;
  for (const auto &kind : kinds)
    if (kind.word == what && (line.hasSpaces || !kind.ofSpaces))
      return kind.parse(line, problem);
  line.fail(absl::StrCat(
      "'", std::string(what), "' is no segment, value, instruction, recipe",
      line.hasSpaces ? ", reserved, space or engine" : " or reserved"));
}

} // namespace

bool tmc::planning::isProblemFile(std::string_view text) {
  return text.starts_with(kMagic.substr(0, kMagic.size() - 1));
}

absl::StatusOr<Problem> tmc::planning::parseProblem(std::string_view text) {
  Problem problem;
  problem.spaces.clear();
  problem.engines.clear();
  bool hasSpaces = false;
  for (int64_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!row.empty() && row.back() == '\r')
      row.remove_suffix(1);
    if (number == 1) {
      hasSpaces = row == kManySpacesLine;
      if (row != kOneSpaceLine && !hasSpaces)
        return absl::InvalidArgumentError(
            absl::StrCat("line 1: '", std::string(kOneSpaceLine), "' or '",
                         std::string(kManySpacesLine), "' is missing"));
      continue;
    }
    Line line(row, number, hasSpaces);
    parseLine(line, problem);
    if (!line.error.empty())
      return absl::InvalidArgumentError(line.error);
  }
  if (problem.segments.empty())
    return absl::InvalidArgumentError("the file has no segment");
  if (problem.spaces.empty())
    problem.spaces.emplace_back();
  if (problem.engines.empty())
    problem.engines.emplace_back();
  return problem;
}
