// LocalPeers.h - the ranks of a mesh as threads of one process.
//
// A step for several devices gets its ranks from its caller (tmc_peers of
// runtime/tmc.h). Here each rank is a thread with a step of its own, and bytes
// move by copies: no network takes part.

#ifndef TMC_DRIVER_VERIFY_LOCALPEERS_H
#define TMC_DRIVER_VERIFY_LOCALPEERS_H

#include "runtime/kernels/Mesh.h"
#include "runtime/tmc.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace tmc {

class LocalPeers {
public:
  explicit LocalPeers(const Mesh &mesh);
  LocalPeers(const LocalPeers &) = delete;
  LocalPeers &operator=(const LocalPeers &) = delete;

  /// For the step of `rank`; lives as long as this object.
  const tmc_peers *of(int rank) const { return &seats[rank].peers; }

  /// Runs `run(rank)` in a thread for each rank, until all are through. A rank
  /// whose `run` returns false lets the calls of the others fail.
  void runAll(const std::function<bool(int rank)> &run);

private:
  struct Seat {
    LocalPeers *table;
    int rank;
    tmc_peers peers;
  };
  /// Copies from `sources`, the bytes of all ranks of the mesh.
  using Copy = std::function<void(const std::vector<const char *> &sources)>;

  static int gather(void *seat, int32_t axis, void *to, const void *from,
                    int64_t bytes, int64_t total);
  static int exchange(void *seat, int32_t axis, void *to, const void *from,
                      int64_t bytes, int64_t total);
  static int share(void *seat, int32_t axis, int32_t from, void *data,
                   int64_t bytes);
  /// Shows all ranks `from`, and copies once all have come. All ranks run one
  /// program, so all of the mesh meet. Not 0: a rank has failed.
  int meet(int rank, const void *from, const Copy &copy);
  /// Waits for all ranks. False: a rank has failed.
  bool wait(std::unique_lock<std::mutex> &lock);

  const Mesh mesh;
  std::vector<Seat> seats;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<const char *> shown; ///< By rank.
  int64_t present = 0, meetings = 0;
  bool isBroken = false;
};

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_LOCALPEERS_H
