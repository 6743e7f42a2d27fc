// LeverSpace.h - the settings of a step's program that tmc may choose.
//
// Where a lever's flag says `auto` the lever is free; any other value pins it
// (Levers.h has the table). A setting has a value for each lever:
//
//     --micro-batches auto --precision auto --optimizer adamw8bit
//
//     micro-batches  1 2 4 8 ...            free
//     precision      f32 tf32 bf16          free: types of the target
//     optimizer      adamw8bit              pinned
//     loss chunk     the exact one, 256     free, as another lever is
//     tiles          1                      pinned
//     base           keep                   pinned
//
// Recomputation, order and offload belong to the plan: they change no bit.
// `harmOf` ranks settings by the most harmful lever that they change.

#ifndef TMC_DRIVER_PIPELINE_LEVERSPACE_H
#define TMC_DRIVER_PIPELINE_LEVERSPACE_H

#include "compiler/target/Target.h"
#include "driver/pipeline/Levers.h"
#include "driver/pipeline/Options.h"

#include <array>
#include <compare>
#include <functional>
#include <string>
#include <vector>

namespace tmc {

/// The values that each lever may take, from the least harmful to the most.
/// One value: the lever is pinned.
struct LeverSpace {
  std::array<std::vector<LeverValue>, kLevers> values;

  const std::vector<LeverValue> &operator[](size_t lever) const {
    return values[lever];
  }
  bool isPinned() const { return size() == 1; }
  size_t size() const;
  /// Every setting; micro-batches change first, then the last of the other
  /// levers.
  std::vector<LeverSetting> all() const;
};

/// Whether a flag of `asked` leaves a lever free.
bool hasFreeLevers(const CompileOptions &asked);

/// Frees the loss's chunks, if no flag gives them and tmc chooses another
/// lever: their harm is the least of all. Offload changes no bit, so that it
/// alone frees nothing.
void freeLossChunk(CompileOptions &asked);

/// The settings that `asked` allows on `target`.
LeverSpace leverSpaceOf(const CompileOptions &asked, const Target &target,
                        const ModelFacts &model);

/// `asked` with every lever pinned to `setting`.
CompileOptions pinned(CompileOptions asked, const LeverSetting &setting);

/// Each frees a pinned lever, or offload, if tmc may choose other values of it.
using FreeLever = std::function<void(CompileOptions &)>;
std::vector<FreeLever> pinnedLevers(const CompileOptions &asked);

/// The flags by which `options` differ from `asked`: "--micro-batches=8
/// --offload=auto".
std::string flagsOf(const CompileOptions &asked, const CompileOptions &options);

/// The distance of a setting's numbers from those of f32, AdamW and the whole
/// batch at once: the rank of its most harmful lever, then the sum of all
/// ranks.
struct Harm {
  int most = 0, sum = 0;
  auto operator<=>(const Harm &) const = default;
};
Harm harmOf(const LeverSetting &setting);

/// "4 micro-batches, bf16, adamw8bit, 256 rows of logits, 4 tiles": the changed
/// levers; "no lever" if there is none.
std::string textOf(const LeverSetting &setting);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_LEVERSPACE_H
