//===- Control.h - one world, and its end -----------------------*- C++ -*-===//
//
// Each rank has one TCP connection to rank 0, and a thread that serves it. By
// it the ranks start together or not at all, and they end together:
//
//   - At the start all ranks say what they run. A rank with another step, mesh,
//     data or seed is named before anything runs (Assembly.h).
//   - Each rank says once a second where it is in the step. A rank whose
//     connection closes, that is silent, or that stands still while others wait
//     for it, is named to all (Watch.h):
//
//         rank 2 (host b, process 311) is gone in step 41; the checkpoint of
//         step 40 in 'run' is whole
//
//     All ranks then end with code 74 (Code::World) and that sentence.
//   - put, get and meet are for what needs no speed: the addresses of a
//     library's peers, and numbers on which all ranks agree between steps.
//
// No library of the network takes part: its calls may hang for the same reason
// for which the ranks end.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_CONTROL_H
#define TMC_RUNTIME_NETWORK_CONTROL_H

#include "runtime/network/Assembly.h"
#include "runtime/network/Hub.h"
#include "runtime/network/Network.h"
#include "runtime/network/Watch.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tmc {

struct ControlSettings {
  AssemblySettings assembly;
  /// A rank that says nothing, or stands still within a step, ends the run
  /// after this time; 0: never.
  double mostSeconds = 120;
  /// The time in which explain() waits for the sentence of another rank.
  double explainSeconds = 10;
  /// The name of an entry of the step's list.
  std::function<std::string(int64_t entry)> entryName;
  /// Called once, by the control thread, when another rank has ended this run.
  /// Null: endProcess.
  std::function<void(const Status &)> onFault;
};

/// Prints "error: ..." and ends the process at once with the status's code:
/// other threads may hang in a library.
[[noreturn]] void endProcess(const Status &status);

class Control final : public Rendezvous {
public:
  /// Connects all ranks. The errors are assemble()'s.
  static Status start(const ControlSettings &settings,
                      std::unique_ptr<Control> &control);
  /// Call finish() or fail() before it: otherwise the others see this rank as
  /// gone.
  ~Control() override;
  Control(const Control &) = delete;
  Control &operator=(const Control &) = delete;

  /// The rank computes `entry` of step `step`, counted from 1. Any thread may
  /// call this and the next two. They take no lock, and computes() makes a
  /// system call at a new step alone.
  void computes(int64_t step, int64_t entry);
  /// The rank is in the network's call `entry`; -1: in none any more.
  void calls(int64_t entry);
  /// The rank isn't in a step any more: it saves, loads or evaluates, and may
  /// take any time.
  void rests();

  Status put(const std::string &name, const std::string &bytes) override;
  /// Returns the fault if the run ends while it waits.
  Status get(const std::string &name, std::string &bytes) override;
  /// Waits until all ranks have come to the meeting `name`: the ranks meet in
  /// one order. `largest` is the largest `number` of all ranks. The rank rests
  /// meanwhile.
  Status meet(const std::string &name, int64_t number, int64_t &largest);

  /// Rank 0 says which checkpoint is whole: "the checkpoint of step 40 in 'run'
  /// is whole"; "": none is known. It ends the sentences about ranks.
  void saved(const std::string &sentence);

  /// The reason of a failed call of the network. It is mostly another rank, and
  /// the library's message `status` doesn't name it. Waits explainSeconds for
  /// the sentence that does, and else tells `status` to all. Give the result to
  /// leaveWorld() before you print it: then it is printed once.
  Status explain(const Status &status);
  /// Tells all ranks that this one ends with an error of its own. They end with
  /// the sentence "rank 1 (host b, process 311) ended: " + its message.
  void fail(const Status &status);
  /// Waits until all ranks have called it. After it a closed connection is no
  /// fault.
  Status finish();

  /// This host's address, as its peers reach it; "": there is one rank.
  const std::string &address() const { return assembly_.address; }

private:
  explicit Control(const ControlSettings &settings);
  void serve();
  void turn(double until);
  void receive(int rank, Connection &connection);
  std::string handle(int rank, const Frame &frame);
  void handleOwn(const Frame &frame);
  int64_t beat(double now);
  void send(int rank, const std::string &bytes);
  Status ask(const std::string &frame);
  void judge(const Status &status, int author);
  void stop();
  Progress progress() const;

  const ControlSettings settings_;
  const int rank_;
  const bool isHost_; // rank 0
  Assembly assembly_;
  std::optional<Watch> watch_;
  std::optional<Hub> hub_; // of rank 0
  std::thread thread_;
  int wake_ = -1; // an eventfd, which ends the thread's wait

  mutable std::mutex mutex_; // of all below and of the sending side
  std::condition_variable changed_;
  Status fault_;
  std::string saved_; // the sentence of saved()
  bool isOwnFault_ = false, isOver_ = false, stops_ = false;
  std::map<std::string, std::string> values_;
  std::optional<int64_t> met_;

  std::atomic<int64_t> step_{0}, entry_{-1}, call_{-1}, changes_{0};
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_CONTROL_H
