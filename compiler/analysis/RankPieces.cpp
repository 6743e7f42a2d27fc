// RankPieces.cpp - the pieces of a group's ranks are the whole, once.

#include "compiler/analysis/RankChecks.h"

using namespace tmc;

namespace {

std::string number(int64_t n) { return std::to_string(n); }

int64_t lengthOf(const RankBytes &bytes) { return bytes.end - bytes.begin; }

/// The bytes that a call reads and writes, by its own figures.
struct CallSizes {
  int64_t reads = -1, writes = -1; // -1: none.
};

CallSizes sizesOf(const RankCall &call) {
  switch (call.kind) {
  case RankCall::Kind::Gather:
    return {call.bytes, call.total};
  case RankCall::Kind::Exchange:
    return {call.total, call.ranks * call.bytes};
  case RankCall::Kind::Send:
    return {call.bytes, -1};
  case RankCall::Kind::Receive:
    return {-1, call.bytes};
  case RankCall::Kind::Cut:
    return {call.total, call.bytes};
  }
  return {};
}

/// The words of the first fault of a call; empty: it has none.
std::string faultOf(const RankProgram &program, const RankEntry &entry) {
  const RankCall &call = *entry.call;
  if (call.ranks < 1 || call.bytes < 1 || call.elementBytes < 1 ||
      call.bytes > (int64_t(1) << 62) / call.ranks)
    return "has pieces of " + number(call.bytes) + " bytes";
  if (!call.isMessage()) {
    if (call.total > call.ranks * call.bytes)
      return "has pieces of " + number(call.bytes) + " bytes for " +
             number(call.ranks) + " ranks: the last " +
             number(call.total - call.ranks * call.bytes) + " of " +
             number(call.total) + " belong to no rank";
    const int64_t unit = nn::kShardUnit * call.elementBytes;
    const int64_t wanted =
        call.isWhole
            ? call.bytes
            : nn::shardElements(call.total / call.elementBytes, call.ranks) *
                  call.elementBytes;
    if (call.isWhole && call.total != call.ranks * call.bytes)
      return "puts " + number(call.ranks) + " values of " + number(call.bytes) +
             " bytes into " + number(call.total);
    if (call.bytes != wanted)
      return "has pieces of " + number(call.bytes) + " bytes, where " +
             number(wanted) + " are the fewest units of " + number(unit) +
             " for " + number(call.ranks) + " ranks and " + number(call.total) +
             " bytes";
  }
  const CallSizes sizes = sizesOf(call);
  auto check = [&](const std::vector<RankBytes> &list, int64_t bytes,
                   const char *does) -> std::string {
    if (bytes < 0 && list.empty())
      return "";
    if (list.size() != 1)
      return std::string(does) + " " + number(int64_t(list.size())) + " values";
    const RankBuffer &buffer = program.buffers[size_t(list[0].buffer)];
    if (lengthOf(list[0]) != bytes)
      return std::string(does) + " " + number(lengthOf(list[0])) +
             " bytes of '" + buffer.name + "' instead of " + number(bytes);
    if (list[0].begin < buffer.begin ||
        list[0].end > buffer.begin + buffer.bytes)
      return std::string(does) + " bytes [" +
             number(list[0].begin - buffer.begin) + ", " +
             number(list[0].end - buffer.begin) + ") of '" + buffer.name +
             "', which has " + number(buffer.bytes);
    return "";
  };
  std::string words = check(entry.reads, sizes.reads, "reads");
  return words.empty() ? check(entry.writes, sizes.writes, "writes") : words;
}

} // namespace

std::optional<RankFault> tmc::checkGroups(const Mesh &mesh,
                                          const RankProgram &program) {
  for (const RankEntry &entry : program.entries)
    if (entry.call && entry.call->ranks != mesh.size(entry.call->axis))
      return RankFault{RankFaultKind::Group,
                       " makes " + textOf(entry) + " of " +
                           number(entry.call->ranks) +
                           " ranks, where the mesh is " + mesh.text(),
                       entry.op, "", nullptr};
  return {};
}

std::optional<RankFault> tmc::checkOffsets(const ShownRanks &ranks) {
  for (int rank = 0; rank < ranks.size(); ++rank)
    for (const RankEntry &entry : ranks.programs[size_t(rank)]->entries) {
      if (!entry.call || entry.call->offset < 0)
        continue;
      const RankCall &call = *entry.call;
      const int64_t place = ranks.mesh.place(call.axis, rank);
      if (call.offset != place * call.bytes)
        return RankFault{RankFaultKind::Piece,
                         ranks.nameOf(rank) + " begins its piece in " +
                             textOf(entry) + " at byte " + number(call.offset) +
                             " of the whole, where its place begins at " +
                             number(place * call.bytes),
                         entry.op, "", nullptr};
    }
  return {};
}

std::optional<RankFault> tmc::checkPieces(const Mesh &mesh,
                                          const RankProgram &program) {
  mlir::Operation *at = nullptr;
  for (const RankEntry &entry : program.entries) {
    at = at ? at : entry.op;
    if (!entry.call)
      continue;
    if (std::string words = faultOf(program, entry); !words.empty())
      return RankFault{RankFaultKind::Piece,
                       "'s " + std::string(nameOf(entry.call->kind)) + " of '" +
                           entry.name + "' " + words,
                       entry.op, "", nullptr};
  }
  for (const RankBuffer &buffer : program.buffers) {
    if (buffer.wholeElements == 0)
      continue;
    if (buffer.wholeElements > buffer.parameterElements)
      return RankFault{RankFaultKind::Piece,
                       " keeps a shard of " + number(buffer.wholeElements) +
                           " elements, '" + buffer.name +
                           "', of a parameter of " +
                           number(buffer.parameterElements),
                       at, "", nullptr};
    const int64_t units =
        nn::shardElements(buffer.parameterElements, mesh.data);
    if (buffer.elements * buffer.each != units)
      return RankFault{RankFaultKind::Piece,
                       " keeps " + number(buffer.elements) + " elements of '" +
                           buffer.name + "', where a shard of " +
                           number(buffer.wholeElements) + " has " +
                           number(units / buffer.each),
                       at, "", nullptr};
  }
  return {};
}
