//===- Hub.cpp - the tables that rank 0 keeps for all ---------------------===//

#include "runtime/network/Hub.h"

#include <algorithm>
#include <utility>

namespace tmc {

namespace {

bool areAll(const std::vector<bool> &flags) {
  return std::find(flags.begin(), flags.end(), false) == flags.end();
}

std::string valueFrame(const std::string &name, const std::string &bytes) {
  return FrameWriter(FrameKind::Value).text(name).text(bytes).finish();
}

} // namespace

Hub::Hub(int ranks, Answer answer)
    : ranks_(ranks), answer_(std::move(answer)), hasCome_(size_t(ranks)),
      hasLeft_(size_t(ranks)) {}

std::string Hub::handle(int rank, const Frame &frame) {
  FrameReader reader(frame.body);
  const std::string malformed = "sends a malformed message";
  switch (frame.kind) {
  case FrameKind::Put: {
    const std::string name = reader.text(), bytes = reader.text();
    return reader.isDone() ? put(name, bytes) : malformed;
  }
  case FrameKind::Get: {
    const std::string name = reader.text();
    return reader.isDone() ? get(rank, name) : malformed;
  }
  case FrameKind::Meet: {
    const std::string name = reader.text();
    const int64_t number = int64_t(reader.number64());
    return reader.isDone() ? meet(rank, name, number) : malformed;
  }
  case FrameKind::Bye:
    return reader.isDone() ? leave(rank) : malformed;
  default:
    return "sends a message that no rank may send";
  }
}

std::string Hub::put(const std::string &name, const std::string &bytes) {
  if (!values_.emplace(name, bytes).second)
    return "puts '" + name + "', which is there";
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end())
    return "";
  for (const int rank : waiting->second)
    answer_(rank, valueFrame(name, bytes));
  waiting_.erase(waiting);
  return "";
}

std::string Hub::get(int rank, const std::string &name) {
  const auto value = values_.find(name);
  if (value == values_.end())
    waiting_[name].push_back(rank);
  else
    answer_(rank, valueFrame(name, value->second));
  return "";
}

std::string Hub::meet(int rank, const std::string &name, int64_t number) {
  const bool isFirst =
      std::find(hasCome_.begin(), hasCome_.end(), true) == hasCome_.end();
  if (isFirst) {
    meeting_ = name;
    largest_ = number;
  }
  if (hasCome_[size_t(rank)])
    return "comes twice to the meeting '" + name + "'";
  if (name != meeting_)
    return "comes to the meeting '" + name + "', and others to '" + meeting_ +
           "'";
  hasCome_[size_t(rank)] = true;
  largest_ = std::max(largest_, number);
  if (!areAll(hasCome_))
    return "";
  hasCome_.assign(size_t(ranks_), false);
  const std::string met =
      FrameWriter(FrameKind::Met).number64(uint64_t(largest_)).finish();
  for (int each = 0; each < ranks_; ++each)
    answer_(each, met);
  return "";
}

std::string Hub::leave(int rank) {
  hasLeft_[size_t(rank)] = true;
  if (areAll(hasLeft_))
    for (int each = 0; each < ranks_; ++each)
      answer_(each, FrameWriter(FrameKind::Bye).finish());
  return "";
}

} // namespace tmc
