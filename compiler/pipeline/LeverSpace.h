// LeverSpace.h - the settings of a step's program that tmc may choose.
//
// A lever changes the program that is planned; a plan changes only how a
// program runs. The levers are the number of micro-batches, the type of the
// factors of products, the type of the optimizer's moments, the number of rows
// of logits held at once, and the number of tiles of rows inside MLPs. Where a
// flag says `auto` the lever is free; any other value pins it. A setting has a
// value for each lever:
//
//     --micro-batches auto --precision auto --optimizer adamw8bit
//
//     micro-batches  1 2 4 8 ...            free
//     precision      f32 tf32 bf16          free: types of the target
//     optimizer      adamw8bit              pinned
//     loss chunk     the exact one          pinned
//     tiles          1                      pinned
//
// Recomputation, order and offload belong to the plan: they change no bit.
//
// Levers that change numbers do harm, listed from little to much. `harmOf`
// ranks settings by the most harmful lever that they change:
//
//     micro-batches, loss chunks,
//     tiles                        sums are added in another order
//     tf32                         factors of products lose 13 bits of 24
//     adamw8bit                    moments have 8 bits and a scale for 256
//     bf16, fp16                   factors and activations have 16 bits
//     adamw4bit                    moments have 4 bits and a scale for 128
//
// tmc chooses no other lever by itself: the user must ask for fp8, parameters
// without f32 masters and other optimizers.

#ifndef TMC_COMPILER_PIPELINE_LEVERSPACE_H
#define TMC_COMPILER_PIPELINE_LEVERSPACE_H

#include "compiler/pipeline/Options.h"
#include "compiler/target/Target.h"

#include <compare>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// One value for each lever, as the fields of `CompileOptions` have them.
struct LeverSetting {
  int64_t microBatches = 1;
  std::string precision = "f32", optimizer = "adamw";
  std::optional<int64_t> lossChunk;
  int64_t tiles = 1;

  auto operator<=>(const LeverSetting &) const = default;
};

/// The values that each lever may take, from the least harmful to the most.
/// One value: the lever is pinned.
struct LeverSpace {
  std::vector<int64_t> microBatches;
  std::vector<std::string> precisions, optimizers;
  std::vector<std::optional<int64_t>> lossChunks;
  std::vector<int64_t> tiles = {1};

  bool isPinned() const { return size() == 1; }
  size_t size() const {
    return microBatches.size() * precisions.size() * optimizers.size() *
           lossChunks.size() * tiles.size();
  }
  /// Every setting, in the order of the values.
  std::vector<LeverSetting> all() const;
};

/// Whether a flag of `asked` leaves a lever free.
bool hasFreeLevers(const CompileOptions &asked);

/// The settings that `asked` allows on `target`, for a model with a batch of
/// `samples` samples.
LeverSpace leverSpaceOf(const CompileOptions &asked, const Target &target,
                        int64_t samples);

/// `asked` with every lever pinned to `setting`.
CompileOptions pinned(CompileOptions asked, const LeverSetting &setting);

/// Frees a pinned lever, offload included, if tmc may choose other values of
/// it.
using FreeLever = void (*)(CompileOptions &);
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

#endif // TMC_COMPILER_PIPELINE_LEVERSPACE_H
