#include "compiler/planning/laboratory/Graph.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <charconv>

using namespace tmc::planning;

namespace {

/// Whitespace-separated integers, with their line numbers.
class Numbers {
public:
  explicit Numbers(std::string_view text)
      : at(text.data()), end(at + text.size()) {}

  absl::StatusOr<int64_t> next(const char *what, int64_t least, int64_t most) {
    skip();
    if (at == end)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line, ": ", what, " is missing, the file ends"));
    int64_t value = 0;
    auto [stop, error] = std::from_chars(at, end, value);
    if (error == std::errc::result_out_of_range)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": ", what, " doesn't fit 64 bits"));
    if (error != std::errc() || (stop != end && !isSpace(*stop)))
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": ", what, " isn't an integer"));
    if (value < least || value > most)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": ", what, " is ", value, ", not in [",
                       least, ", ", most, "]"));
    at = stop;
    return value;
  }
  bool atEnd() {
    skip();
    return at == end;
  }
  int64_t line = 1;

private:
  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  void skip() {
    for (; at != end && isSpace(*at); ++at)
      line += *at == '\n';
  }
  const char *at;
  const char *end;
};

} // namespace

absl::StatusOr<Graph> tmc::planning::parseGraph(std::string_view text) {
  Numbers numbers(text);
  constexpr int64_t mostNodes = 1 << 28, mostSum = int64_t(1) << 60;
  auto n = numbers.next("the number of nodes", 0, mostNodes);
  if (!n.ok())
    return n.status();
  auto m = numbers.next("the number of edges", 0, mostNodes);
  if (!m.ok())
    return m.status();
  if (*n > int64_t(text.size()) || *m > int64_t(text.size()))
    return absl::InvalidArgumentError(
        absl::StrCat("line 1: ", *n, " nodes and ", *m,
                     " edges don't fit a file of ", text.size(), " bytes"));
  Graph graph;
  int64_t bytesLeft = mostSum, costLeft = mostSum;
  for (int64_t i = 0; i < *n; ++i) {
    auto bytes = numbers.next("a node's size", 0, bytesLeft);
    if (!bytes.ok())
      return bytes.status();
    auto cost = numbers.next("a node's cost", 0, costLeft);
    if (!cost.ok())
      return cost.status();
    bytesLeft -= *bytes;
    costLeft -= *cost;
    graph.nodes.push_back({*bytes, *cost});
  }
  for (int64_t e = 0; e < *m; ++e) {
    auto from = numbers.next("an edge's start", 0, *n - 1);
    if (!from.ok())
      return from.status();
    auto to = numbers.next("an edge's end", 0, *n - 1);
    if (!to.ok())
      return to.status();
    if (*from >= *to)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", numbers.line, ": the edge from ", *from, " to ",
                       *to, " leads backward in the order of the nodes"));
    graph.edges.push_back({int32_t(*from), int32_t(*to)});
  }
  if (!numbers.atEnd())
    return absl::InvalidArgumentError(
        absl::StrCat("line ", numbers.line, ": there is more than ", *n,
                     " nodes and ", *m, " edges"));
  return graph;
}

std::string tmc::planning::printGraph(const Graph &graph) {
  std::string out =
      absl::StrCat(graph.nodes.size(), " ", graph.edges.size(), "\n");
  for (const Graph::Node &node : graph.nodes)
    absl::StrAppend(&out, node.bytes, " ", node.cost, "\n");
  for (auto [from, to] : graph.edges)
    absl::StrAppend(&out, from, " ", to, "\n");
  return out;
}

absl::StatusOr<Problem> tmc::planning::problemOf(const Graph &graph) {
  Problem problem;
  SegmentId segment = problem.addSegment("graph");
  std::vector<std::vector<ValueId>> reads(graph.nodes.size());
  for (auto [from, to] : graph.edges) {
    if (from >= to)
      return absl::InvalidArgumentError(
          absl::StrCat("the edge from ", from, " to ", to,
                       " leads backward in the order of the nodes"));
    reads[to].push_back(from);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Value value;
    value.name = absl::StrCat("n", i);
    value.bytes = graph.nodes[i].bytes;
    problem.addValue(std::move(value));
    std::sort(reads[i].begin(), reads[i].end());
    reads[i].erase(std::unique(reads[i].begin(), reads[i].end()),
                   reads[i].end());
    Recipe recipe;
    recipe.name = absl::StrCat("n", i);
    recipe.reads = std::move(reads[i]);
    recipe.writes = {ValueId(i)};
    recipe.cost = graph.nodes[i].cost;
    recipe.recomputable = true;
    problem.addInstruction(segment, std::move(recipe));
  }
  return problem;
}

std::vector<int32_t> tmc::planning::sequenceOf(const Problem &problem,
                                               const Solution &solution) {
  std::vector<int32_t> sequence;
  for (const std::vector<Execution> &list : solution.segments)
    for (const Execution &e : list)
      sequence.push_back(problem.recipes[e.recipe].writes.front());
  return sequence;
}
