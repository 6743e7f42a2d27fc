// Graph.h - the plain exchange format of rematerialization instances.
//
//     n m
//     bytes cost      n lines, one per node
//     from to         m lines, one per edge
//
// A node is an instruction with one result; the order of the nodes is the order
// of first computation. The instances published with Checkmate and MOCCASIN
// were converted to this format.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_GRAPH_H
#define TMC_COMPILER_PLANNING_LABORATORY_GRAPH_H

#include "compiler/planning/model/Problem.h"

#include <string_view>
#include <utility>

namespace tmc::planning {

struct Graph {
  struct Node {
    int64_t bytes = 0;
    int64_t cost = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;
};

/// An error names the line.
absl::StatusOr<Graph> parseGraph(std::string_view text);
std::string printGraph(const Graph &graph);

/// Value, recipe and instruction i are node i; all may be recomputed. Each edge
/// must lead forward in the order of the nodes.
absl::StatusOr<Problem> problemOf(const Graph &graph);

/// Node numbers in execution order.
std::vector<int32_t> sequenceOf(const Problem &problem,
                                const Solution &solution);

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_GRAPH_H
