#include "compiler/analysis/RankChecks.h"

#include <algorithm>

using namespace tmc;

const char *tmc::nameOf(RankCall::Kind kind) {
  switch (kind) {
  case RankCall::Kind::Gather:
    return "gather";
  case RankCall::Kind::Exchange:
    return "exchange";
  case RankCall::Kind::Send:
    return "send";
  case RankCall::Kind::Receive:
    return "receive";
  case RankCall::Kind::Cut:
    return "cut";
  }
  return "";
}

const char *tmc::nameOf(RankFaultKind kind) {
  constexpr const char *names[] = {"group", "order", "unmatched", "operation",
                                   "type",  "bytes", "total",     "peer",
                                   "cycle", "piece", "wait",      "missing"};
  static_assert(std::size(names) == size_t(RankFaultKind::Missing) + 1);
  return names[size_t(kind)];
}

std::string tmc::textOf(const RankEntry &entry) {
  const RankCall &call = *entry.call;
  const bool isExchange = call.kind == RankCall::Kind::Exchange;
  std::string text = isExchange ? "an " : "a ";
  text += nameOf(call.kind);
  return text + " of '" + entry.name + "' over " + nameOf(call.axis);
}

std::string tmc::textOf(const ShownRanks &ranks, const RankSide &side) {
  return ranks.nameOf(side.rank) + "'s call " + std::to_string(side.number) +
         ", " + textOf(*side.entry);
}

std::vector<RankSide> tmc::callsOf(const ShownRanks &ranks, int rank) {
  std::vector<RankSide> calls;
  for (const RankEntry &entry : ranks.programs[size_t(rank)]->entries)
    if (entry.isCall())
      calls.push_back({rank, int64_t(calls.size()) + 1, &entry});
  return calls;
}

int tmc::peerOf(const ShownRanks &ranks, const RankSide &side) {
  const RankCall &call = *side.entry->call;
  const std::vector<int> group = ranks.mesh.group(call.axis, side.rank);
  if (call.peer < 0 || call.peer >= int(group.size()) ||
      group[size_t(call.peer)] == side.rank)
    return -1;
  return group[size_t(call.peer)];
}

/// The ranks that show all of a world: with a program for each stage, two
/// places of the other axes.
static ShownRanks shownRanks(const RankWorld &world) {
  ShownRanks shown{world.mesh, {}, {}};
  if (world.programOf.empty()) {
    shown.mesh.data = std::min(shown.mesh.data, 2);
    shown.mesh.tensor = std::min(shown.mesh.tensor, 2);
  }
  for (int rank = 0; rank < int(shown.mesh.ranks()); ++rank) {
    const int stage = shown.mesh.place(Axis::Pipeline, rank);
    int64_t number = 0;
    for (Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
      number += int64_t(shown.mesh.place(axis, rank)) * world.mesh.stride(axis);
    const int32_t program =
        world.programOf.empty() ? stage : world.programOf[size_t(rank)];
    shown.programs.push_back(&world.programs[size_t(program)]);
    shown.numbers.push_back(number);
  }
  return shown;
}

/// "each rank", "each rank of stage 1" or "rank 3": those that run a program.
static std::string runnersOf(const RankWorld &world, const ShownRanks &shown,
                             size_t program) {
  if (world.programs.size() == 1)
    return "each rank";
  if (world.programOf.empty())
    return "each rank of stage " + std::to_string(program);
  for (int rank = 0; rank < shown.size(); ++rank)
    if (shown.programs[size_t(rank)] == &world.programs[program])
      return shown.nameOf(rank);
  return "no rank";
}

std::optional<RankFault> tmc::checkRanks(const RankWorld &world) {
  if (world.programs.empty())
    return {};
  const ShownRanks shown = shownRanks(world);
  // A check of one program names the ranks that run it.
  auto ofPrograms = [&](auto check) -> std::optional<RankFault> {
    for (size_t p = 0; p < world.programs.size(); ++p)
      if (std::optional<RankFault> fault = check(world.programs[p])) {
        fault->message = runnersOf(world, shown, p) + fault->message;
        return fault;
      }
    return {};
  };
  std::optional<RankFault> fault = ofPrograms([&](const RankProgram &program) {
    return checkGroups(world.mesh, program);
  });
  if (!fault)
    fault = checkMatches(shown);
  if (!fault)
    fault = checkMeetings(shown);
  if (!fault)
    fault = checkOffsets(shown);
  if (!fault)
    fault = ofPrograms([&](const RankProgram &program) {
      return checkPieces(world.mesh, program);
    });
  if (!fault)
    fault = ofPrograms(checkWaits);
  return fault;
}
