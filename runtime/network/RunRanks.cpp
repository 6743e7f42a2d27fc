//===- RunRanks.cpp - the ranks of a run, by a network --------------------===//
//
// Linked into trainers of steps for several devices (RunRanks.h).
//
//===----------------------------------------------------------------------===//

#include "runtime/step/RunRanks.h"

#include "runtime/network/Socket.h"
#include "runtime/network/World.h"

#include <algorithm>
#include <vector>

namespace tmc {

namespace {

/// The state that both interfaces to a run share.
struct Run {
  explicit Run(const Mesh &mesh) : mesh(mesh) {}

  /// Within a step a call says where this rank waits. Between steps a rank may
  /// wait for as long as the others need.
  template <typename Call> Status inCall(int64_t entry, Call &&call) {
    if (!isInStep)
      return call();
    world.control->calls(entry);
    const Status done = call();
    world.control->calls(-1);
    return done;
  }

  const Mesh mesh;
  World world;
  int groups[3] = {};
  int64_t step = 0, entry = 0;
  double networkSeconds = 0; // That compute waited.
  bool isInStep = false;     // Changes while the network's thread is idle.
};

/// For the device's kernels.
class NetworkPeers final : public Peers {
public:
  explicit NetworkPeers(Run &run) : run_(run) {}

  int size(Axis axis) const override { return run_.mesh.size(axis); }
  int place(Axis axis) const override {
    return run_.mesh.place(axis, run_.world.place.rank);
  }
  int local() const override { return run_.world.place.localRank; }
  void computes(int64_t entry) override {
    run_.entry = entry;
    run_.world.control->computes(run_.step, entry);
  }
  void calls(int64_t entry) override { call_ = entry; }
  void waits(int64_t entry) override {
    if (run_.isInStep)
      run_.world.control->calls(entry);
  }
  void waited(double seconds) override { run_.networkSeconds += seconds; }
  Status gather(Axis axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return run_.inCall(call_, [&] {
      return network().gather(group(axis), to, from, bytes, total);
    });
  }
  Status exchange(Axis axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return run_.inCall(call_, [&] {
      return network().exchange(group(axis), to, from, bytes, total);
    });
  }
  Status share(Axis axis, int from, void *data, int64_t bytes) override {
    const int own = place(axis);
    if (own != from)
      return network().receive(group(axis), from, data, bytes);
    for (int rank = 0; rank < size(axis); ++rank)
      if (rank != own)
        if (Status s = network().send(group(axis), rank, data, bytes); !s)
          return s;
    return Status::ok();
  }

  bool queues() const override { return network().card(); }
  Status queueGather(Axis axis, void *to, const void *from, int64_t bytes,
                     int64_t total, void *stream) override {
    return network().card()->gather(group(axis), to, from, bytes, total,
                                    stream);
  }
  Status queueExchange(Axis axis, void *to, const void *from, int64_t bytes,
                       int64_t total, void *stream) override {
    return network().card()->exchange(group(axis), to, from, bytes, total,
                                      stream);
  }
  Status queuedFault() override { return network().card()->fault(); }
  Status explain(const Status &status) override {
    return run_.world.control->explain(status);
  }

private:
  Network &network() const { return *run_.world.network; }
  int group(Axis axis) const { return run_.groups[size_t(axis)]; }

  Run &run_;
  int64_t call_ = 0; // The entry at which the network's thread is.
};

class NetworkRanks final : public RunRanks {
public:
  explicit NetworkRanks(const Mesh &mesh) : run_(mesh), peers_(run_) {}

  Status join(const RunRanksSettings &settings) {
    WorldSettings its;
    its.library = settings.network;
    its.folder = settings.folder;
    its.facts = settings.facts;
    its.forCards =
        settings.program && settings.program->backend == Backend::Cuda;
    its.bytesPerSecond = settings.bytesPerSecond;
    if (settings.mostSeconds > 0)
      its.mostSeconds = settings.mostSeconds;
    const StepProgram *program = settings.program;
    its.entryName = [program](int64_t entry) {
      return program && entry >= 0 && entry < program->launchCount
                 ? std::string(program->launches[entry].name)
                 : std::string();
    };
    Place place;
    if (Status s = findPlace(place); !s)
      return s;
    if (place.ranks != run_.mesh.ranks())
      return wrongCount(place);
    if (Status s = joinWorld(its, place, run_.world); !s)
      return s;
    for (const Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
      if (Status s = run_.world.network->makeGroup(
              run_.mesh.group(axis, place.rank), run_.groups[size_t(axis)]);
          !s)
        return leaveWorld(run_.world, s);
    return Status::ok();
  }

  int rank() const override { return run_.world.place.rank; }
  int ranks() const override { return int(run_.mesh.ranks()); }
  std::string description() const override {
    return std::to_string(run_.mesh.ranks()) + " ranks by " +
           run_.world.network->description();
  }
  Peers &peers() override { return peers_; }

  Status gather(void *to, const void *from, int64_t bytes) override {
    // Within a step this rank waits for others, and doesn't stand still.
    return run_.inCall(run_.entry, [&] {
      return run_.world.network->gather(kWorld, to, from, bytes);
    });
  }
  Status agree(int64_t &number) override {
    return run_.world.control->meet("agree", number, number);
  }
  void startStep(int64_t step) override {
    run_.step = step;
    run_.networkSeconds = 0;
    run_.isInStep = true;
    peers_.computes(0);
  }
  void endStep() override {
    run_.isInStep = false;
    run_.world.control->rests();
  }
  double networkSeconds() const override { return run_.networkSeconds; }

  void saved(const std::string &sentence) override {
    run_.world.control->saved(sentence);
  }
  Status explain(const Status &status) override {
    return run_.world.control->explain(status);
  }
  void fail(const Status &status) override {
    (void)leaveWorld(run_.world, status);
  }
  Status finish() override { return leaveWorld(run_.world, Status::ok()); }

private:
  Status wrongCount(const Place &place) const {
    const std::string wanted = std::to_string(run_.mesh.ranks());
    return {Code::Usage,
            "the step is for " + wanted + " ranks, and " +
                (place.launcher.empty()
                     ? "no launcher started this one: mpirun -n " + wanted
                     : place.launcher + " started " +
                           std::to_string(place.ranks) + ": take " + wanted)};
  }

  Run run_;
  NetworkPeers peers_;
};

} // namespace
} // namespace tmc

void tmc_open_ranks(const tmc::RunRanksSettings &settings,
                    std::unique_ptr<tmc::RunRanks> &ranks,
                    tmc::Status &status) {
  auto made = std::make_unique<tmc::NetworkRanks>(settings.mesh);
  status = made->join(settings);
  if (status)
    ranks = std::move(made);
}
