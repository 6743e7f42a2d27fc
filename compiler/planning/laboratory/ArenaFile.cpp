#include "compiler/planning/laboratory/ArenaFile.h"

#include "absl/strings/str_cat.h"

#include <charconv>
#include <limits>
#include <unordered_map>

using namespace tmc::planning;

namespace {

std::vector<std::string_view> fieldsOf(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && (field.front() == ' ' || field.front() == '\t'))
      field.remove_prefix(1);
    while (!field.empty() && (field.back() == ' ' || field.back() == '\t' ||
                              field.back() == '\r'))
      field.remove_suffix(1);
    fields.push_back(field);
    if (comma == std::string_view::npos)
      return fields;
    line.remove_prefix(comma + 1);
  }
}

} // namespace

absl::StatusOr<ArenaProblem> tmc::planning::parseArena(std::string_view text) {
  static constexpr std::string_view names[] = {
      "id",        "lower",  "upper",    "size",
      "alignment", "inside", "distance", "fixed"};
  enum { Id, Lower, Upper, Size, Alignment, Inside, Distance, Fixed, Count };
  int column[Count];
  std::fill(column, column + Count, -1);
  ArenaProblem problem;
  problem.alignment = 1;
  std::unordered_map<std::string, int32_t> byName;
  std::vector<std::pair<size_t, std::string>> insides;
  int64_t line = 0;
  bool header = true;
  auto wrong = [&](const std::string &what) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
  };
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line;
    std::vector<std::string_view> fields = fieldsOf(row);
    if (fields.size() == 1 && fields[0].empty())
      continue;
    if (header) {
      header = false;
      for (size_t f = 0; f < fields.size(); ++f)
        for (int c = 0; c < Count; ++c)
          if (fields[f] == names[c])
            column[c] = int(f);
      for (int c = Id; c <= Size; ++c)
        if (column[c] < 0)
          return wrong(absl::StrCat("the header has no column '",
                                    std::string(names[c]), "'"));
      continue;
    }
    Buffer buffer;
    int64_t numbers[Count] = {0, 0, 0, 0, 0, -1, 0, -1};
    for (int c = 0; c < Count; ++c) {
      std::string_view field =
          column[c] >= 0 && size_t(column[c]) < fields.size()
              ? fields[column[c]]
              : std::string_view();
      if (field.empty()) {
        if (c <= Size)
          return wrong(
              absl::StrCat("'", std::string(names[c]), "' is missing"));
        continue;
      }
      if (c == Id) {
        buffer.name = std::string(field);
        continue;
      }
      if (c == Inside) {
        insides.push_back({problem.buffers.size(), std::string(field)});
        continue;
      }
      auto [stop, error] = std::from_chars(
          field.data(), field.data() + field.size(), numbers[c]);
      if (error != std::errc() || stop != field.data() + field.size())
        return wrong(absl::StrCat("'", std::string(field),
                                  "' isn't an integer of 64 bits"));
    }
    buffer.bytes = numbers[Size];
    buffer.lifetime = {numbers[Lower], numbers[Upper]};
    buffer.alignment = numbers[Alignment];
    buffer.distance = numbers[Distance];
    buffer.fixedOffset = numbers[Fixed];
    if (!byName.insert({buffer.name, int32_t(problem.buffers.size())}).second)
      return wrong(absl::StrCat("id '", buffer.name, "' is there twice"));
    problem.buffers.push_back(std::move(buffer));
  }
  if (header)
    return wrong("the file has no header");
  for (auto &[buffer, name] : insides) {
    auto it = byName.find(name);
    if (it == byName.end())
      return absl::InvalidArgumentError(
          absl::StrCat("'", problem.buffers[buffer].name, "' is inside '", name,
                       "', which isn't there"));
    problem.buffers[buffer].inside = it->second;
  }
  if (std::optional<std::string> defect = checkArena(problem))
    return absl::InvalidArgumentError(*defect);
  return problem;
}

std::string tmc::planning::printLifetimes(const ArenaProblem &problem) {
  std::string out = "id,lower,upper,size\n";
  for (const Buffer &b : problem.buffers)
    absl::StrAppend(&out, b.name, ",", b.lifetime.begin, ",", b.lifetime.end,
                    ",", b.bytes, "\n");
  return out;
}

std::string tmc::planning::printPacking(const ArenaProblem &problem,
                                        const Packing &packing) {
  bool more = false;
  for (const Buffer &b : problem.buffers)
    more |= b.alignment || b.inside >= 0 || b.fixedOffset >= 0;
  std::string out =
      more ? "id,lower,upper,size,alignment,inside,distance,fixed,offset\n"
           : "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer &b = problem.buffers[i];
    absl::StrAppend(&out, b.name, ",", b.lifetime.begin, ",", b.lifetime.end,
                    ",", b.bytes);
    if (more) {
      absl::StrAppend(&out, ",", b.alignment ? std::to_string(b.alignment) : "",
                      ",");
      if (b.inside >= 0)
        absl::StrAppend(&out, problem.buffers[b.inside].name, ",", b.distance,
                        ",");
      else
        absl::StrAppend(&out, ",,");
      absl::StrAppend(&out,
                      b.fixedOffset >= 0 ? std::to_string(b.fixedOffset) : "");
    }
    absl::StrAppend(&out, ",", packing.offsets[i], "\n");
  }
  return out;
}
