//===- KeptCheckpoints.h - several checkpoints of one run -------*- C++ -*-===//
//
// `train --save DIR --save-every 100 --keep 3` leaves
//
//     DIR/step-000300/   checkpoint.safetensors, model.safetensors
//     DIR/step-000400/
//     DIR/step-000500/
//     DIR/best/          the checkpoint with the least loss of --eval
//
// Each checkpoint is a folder as of --save without --keep. A new one is
// complete before an old one goes. `--resume DIR` takes the newest.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_KEPTCHECKPOINTS_H
#define TMC_RUNTIME_STEP_KEPTCHECKPOINTS_H

#include "runtime/kernels/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

class KeptCheckpoints {
public:
  /// The newest `count` checkpoints stay in the folder `directory`; 0: it has
  /// one, in itself.
  KeptCheckpoints() = default;
  KeptCheckpoints(std::string directory, int64_t count)
      : directory_(std::move(directory)), count_(count) {}

  /// Makes the folder, for a run that resumes from `origin`; "": it begins
  /// anew. Fails with Code::Usage if the folder holds checkpoints and `origin`
  /// is neither this folder nor in it: they are of another run, and a later
  /// prune would remove them.
  Status start(const std::string &origin) const;
  /// The folder for the checkpoint after `step`.
  std::string placeOf(int64_t step) const;
  /// The folder of the best checkpoint; "": there is none.
  std::string bestPlace() const { return count_ ? directory_ + "/best" : ""; }
  /// Removes all but the newest. A folder that holds other files, too, keeps
  /// these.
  Status prune() const;

  /// The folder of the checkpoint to go on from: `directory`, or the newest of
  /// the checkpoints in it.
  static std::string newestIn(const std::string &directory);
  /// Finds out if there is such a checkpoint. Code::World if that can't be
  /// seen.
  static Status look(const std::string &directory, bool &isThere);

private:
  std::string directory_;
  int64_t count_ = 0;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_KEPTCHECKPOINTS_H
