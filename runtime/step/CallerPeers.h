//===- CallerPeers.h - the ranks that a program gives a step ----*- C++ -*-===//
//
// tmc_peers of runtime/tmc.h, for the device's kernels. A trainer has a network
// instead (RunRanks.h).
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_CALLERPEERS_H
#define TMC_RUNTIME_STEP_CALLERPEERS_H

#include "runtime/kernels/Ranks.h"
#include "runtime/tmc.h"

#include <cstdint>
#include <string>

namespace tmc {

class CallerPeers final : public Peers {
public:
  explicit CallerPeers(const tmc_peers &given) : given_(given) {}

  /// Code::Usage if the ranks aren't those of `mesh`, or a call is missing.
  static Status check(const tmc_peers &given, const Mesh &mesh) {
    for (const Axis axis : {Axis::Data, Axis::Tensor, Axis::Pipeline}) {
      const int32_t ranks = given.ranks[size_t(axis)],
                    place = given.place[size_t(axis)];
      if (ranks != mesh.size(axis) || place < 0 || place >= ranks)
        return {Code::Usage, "tmc_peers is place " + std::to_string(place) +
                                 " of " + std::to_string(ranks) + " along " +
                                 nameOf(axis) + ", and the step is for " +
                                 mesh.text()};
    }
    return given.gather && given.exchange && given.share
               ? Status::ok()
               : Status(Code::Usage,
                        "tmc_peers lacks gather, exchange or share");
  }

  int size(Axis axis) const override { return given_.ranks[size_t(axis)]; }
  int place(Axis axis) const override { return given_.place[size_t(axis)]; }
  Status gather(Axis axis, void *to, const void *from, int64_t bytes,
                int64_t total) override {
    return done(
        given_.gather(given_.context, int32_t(axis), to, from, bytes, total),
        "gather");
  }
  Status exchange(Axis axis, void *to, const void *from, int64_t bytes,
                  int64_t total) override {
    return done(
        given_.exchange(given_.context, int32_t(axis), to, from, bytes, total),
        "exchange");
  }
  Status share(Axis axis, int from, void *data, int64_t bytes) override {
    return done(given_.share(given_.context, int32_t(axis), from, data, bytes),
                "share");
  }

private:
  static Status done(int code, const char *name) {
    return code
               ? Status(Code::World, std::string("tmc_peers: ") + name +
                                         " failed with " + std::to_string(code))
               : Status::ok();
  }

  const tmc_peers given_;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_CALLERPEERS_H
