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

class NetworkRanks final : public RunRanks, public Peers {
public:
  explicit NetworkRanks(const Mesh &mesh) : mesh_(mesh) {}

  Status join(const RunRanksSettings &settings) {
    WorldSettings its;
    its.library = settings.network;
    its.folder = settings.folder;
    its.facts = settings.facts;
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
    if (place.ranks != mesh_.ranks())
      return wrongCount(place);
    if (Status s = joinWorld(its, place, world_); !s)
      return s;
    for (const Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline})
      if (Status s = world_.network->makeGroup(mesh_.group(axis, place.rank),
                                               groups_[size_t(axis)]);
          !s)
        return leaveWorld(world_, s);
    return Status::ok();
  }

  int rank() const override { return world_.place.rank; }
  int ranks() const override { return int(mesh_.ranks()); }
  std::string description() const override {
    return std::to_string(mesh_.ranks()) + " ranks by " +
           world_.network->description();
  }
  Peers &peers() override { return *this; }

  Status gather(void *to, const void *from, int64_t bytes) override {
    // Within a step this rank waits for others, and doesn't stand still.
    if (isInStep_)
      world_.control->calls(entry_);
    const Status done = world_.network->gather(kWorld, to, from, bytes);
    if (isInStep_)
      world_.control->calls(-1);
    return done;
  }
  Status agree(int64_t &number) override {
    return world_.control->meet("agree", number, number);
  }
  void startStep(int64_t step) override {
    step_ = step;
    networkSeconds_ = 0;
    isInStep_ = true;
    computes(0);
  }
  void endStep() override {
    isInStep_ = false;
    world_.control->rests();
  }
  double networkSeconds() const override { return networkSeconds_; }

  void saved(const std::string &sentence) override {
    world_.control->saved(sentence);
  }
  Status explain(const Status &status) override {
    return world_.control->explain(status);
  }
  void fail(const Status &status) override { (void)leaveWorld(world_, status); }
  Status finish() override { return leaveWorld(world_, Status::ok()); }

  int size(Axis axis) const override { return mesh_.size(axis); }
  int place(Axis axis) const override { return mesh_.place(axis, rank()); }
  void computes(int64_t entry) override {
    entry_ = entry;
    world_.control->computes(step_, entry);
  }
  void calls(int64_t entry) override { call_ = entry; }
  void waited(double seconds) override { networkSeconds_ += seconds; }
  Status gather(Axis axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return inCall([&] {
      return world_.network->gather(groups_[size_t(axis)], to, from, bytes,
                                    total);
    });
  }
  Status exchange(Axis axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return inCall([&] {
      return world_.network->exchange(groups_[size_t(axis)], to, from, bytes,
                                      total);
    });
  }
  Status share(Axis axis, int from, void *data, int64_t bytes) override {
    const int group = groups_[size_t(axis)], own = place(axis);
    if (own != from)
      return world_.network->receive(group, from, data, bytes);
    for (int rank = 0; rank < size(axis); ++rank)
      if (rank != own)
        if (Status s = world_.network->send(group, rank, data, bytes); !s)
          return s;
    return Status::ok();
  }

private:
  /// Between steps a rank may wait for as long as the others need.
  template <typename Call> Status inCall(Call &&call) {
    if (!isInStep_)
      return call();
    world_.control->calls(call_);
    const Status done = call();
    world_.control->calls(-1);
    return done;
  }
  Status wrongCount(const Place &place) const {
    const std::string wanted = std::to_string(mesh_.ranks());
    return {Code::Usage,
            "the step is for " + wanted + " ranks, and " +
                (place.launcher.empty()
                     ? "no launcher started this one: mpirun -n " + wanted
                     : place.launcher + " started " +
                           std::to_string(place.ranks) + ": take " + wanted)};
  }

  const Mesh mesh_;
  World world_;
  int groups_[3] = {};
  int64_t step_ = 0, entry_ = 0;
  int64_t call_ = 0;          // The entry at which the network's thread is.
  double networkSeconds_ = 0; // That compute waited.
  bool isInStep_ = false;     // Changes while the network's thread is idle.
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
