#include "tools/solve/Arguments.h"
#include "tools/solve/Commands.h"

#include "compiler/planning/laboratory/ArenaFile.h"
#include "compiler/planning/laboratory/Generate.h"
#include "compiler/planning/laboratory/GenerateStep.h"
#include "compiler/planning/laboratory/Graph.h"
#include "compiler/planning/model/ProblemFile.h"

#include <algorithm>
#include <optional>
#include <string>

namespace tmc::planning {

namespace {

/// The problem of a step with `layers` layers; none if `args` are wrong.
std::optional<Problem> generatedStep(Arguments &args, int64_t layers,
                                     int64_t seed) {
  constexpr int64_t kMostLayers = 1'000'000, kGiga = 1'000'000'000;
  StepOptions options;
  options.layers = layers;
  options.seed = uint64_t(seed);
  if (layers > kMostLayers)
    args.wrong("--nodes of a step wants at most 1000000 layers");
  auto number = [&](const char *flag, int64_t most, int64_t scale,
                    int64_t &into) {
    if (!args.has(flag))
      return;
    int64_t given = 0;
    if (!parseInteger(args.get(flag), 1, given) || given > most)
      args.wrong(std::string(flag) + " wants a number from 1 to " +
                 std::to_string(most));
    into = given * scale;
  };
  number("--bandwidth", 10'000, kGiga, options.linkBandwidth);
  number("--file-bandwidth", 10'000, kGiga, options.fileBandwidth);
  number("--micro-batches", 1'000, 1, options.microBatches);
  if (!args.error.empty())
    return std::nullopt;
  return generateStep(options);
}

/// The lifetimes of a training step that keeps all of its values.
ArenaProblem lifetimesOf(const Graph &graph) {
  ArenaProblem problem;
  problem.alignment = 1;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    problem.buffers.push_back({"n" + std::to_string(i),
                               graph.nodes[i].bytes,
                               {int64_t(i), int64_t(i) + 1}});
  for (auto [from, to] : graph.edges)
    problem.buffers[from].lifetime.end =
        std::max<int64_t>(problem.buffers[from].lifetime.end, to + 1);
  return problem;
}

} // namespace

int generate(int argc, char **argv) {
  Arguments args = parseArguments(argc, argv,
                                  {{"--nodes", true},
                                   {"--seed", true},
                                   {"--repeats", false},
                                   {"--lifetimes", false},
                                   {"--bandwidth", true},
                                   {"--file-bandwidth", true},
                                   {"--micro-batches", true},
                                   {"-o", true}});
  GenerateOptions options;
  int64_t seed = 1;
  if (!args.has("--nodes") ||
      !parseInteger(args.get("--nodes"), 1, options.nodes) ||
      options.nodes > 10'000'000)
    args.wrong("--nodes wants a number from 1 to 10000000");
  if (args.has("--seed") && !parseInteger(args.get("--seed"), 0, seed))
    args.wrong("--seed wants a whole number, not '" + args.get("--seed") + "'");
  for (const char *flag :
       {"--bandwidth", "--file-bandwidth", "--micro-batches"})
    if (args.has(flag) && args.file != "step")
      args.wrong(std::string(flag) + " is for the family step");
  for (const char *flag : {"--repeats", "--lifetimes"})
    if (args.has(flag) && args.file == "step")
      args.wrong(std::string(flag) + " isn't for the family step");
  std::optional<Problem> step;
  if (args.file == "step" && args.error.empty())
    step = generatedStep(args, options.nodes, seed);
  else if (args.file == "transformer")
    options.family = Family::Transformer;
  else if (args.file == "unet")
    options.family = Family::UNet;
  else if (args.file == "random-layered")
    options.family = Family::RandomLayered;
  else if (args.file != "step")
    args.wrong("there is no family '" + args.file +
               "'; there are transformer, unet, random-layered, step");
  if (!args.error.empty())
    return failUsage(args);
  if (step)
    return writeFile(args.get("-o", "-"), printProblem(*step));
  options.seed = uint64_t(seed);
  options.repeats = args.has("--repeats");
  Graph graph = generateGraph(options);
  if (!args.has("--lifetimes"))
    return writeFile(args.get("-o", "-"), printGraph(graph));
  ArenaProblem problem = lifetimesOf(graph);
  return writeFile(args.get("-o", "-"), printLifetimes(problem));
}

} // namespace tmc::planning
