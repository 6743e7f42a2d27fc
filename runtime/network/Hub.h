//===- Hub.h - the tables that rank 0 keeps for all -------------*- C++ -*-===//
//
// Three things of a world that need one place: named bytes, meetings and the
// end. Ranks ask by frames (Frame.h), rank 0 itself as well, and get frames as
// answers:
//
//     Put name, bytes                  kept
//     Get name           -> Value      now, or when the name is put
//     Meet name, number  -> Met        when all have come: the largest number
//     Bye                -> Bye        when all have come
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_HUB_H
#define TMC_RUNTIME_NETWORK_HUB_H

#include "runtime/network/Frame.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tmc {

class Hub {
public:
  /// `answer` sends the bytes of a frame to a rank.
  using Answer = std::function<void(int rank, const std::string &bytes)>;
  Hub(int ranks, Answer answer);

  /// Handles a frame of one of the kinds above. Returns "", or the fault of
  /// rank `rank`, as a sentence without its subject.
  std::string handle(int rank, const Frame &frame);

private:
  std::string put(const std::string &name, const std::string &bytes);
  std::string get(int rank, const std::string &name);
  std::string meet(int rank, const std::string &name, int64_t number);
  std::string leave(int rank);

  const int ranks_;
  const Answer answer_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<int>> waiting_; // ranks, by name
  // The meeting that some ranks have come to.
  std::string meeting_;
  std::vector<bool> hasCome_, hasLeft_;
  int64_t largest_ = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_HUB_H
