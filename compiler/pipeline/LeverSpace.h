// LeverSpace.h - the settings of a step's program that tmc may choose.
//
// A lever changes the program that is planned, where a plan only says how a
// program runs: into how many micro-batches the batch is cut, what products
// multiply, what the optimizer keeps its moments in, how many rows of logits
// are held at once, in how many tiles rows inside MLPs are computed. Where a
// flag says `auto` the lever is free; anything else pins it. A setting has a
// value for each lever:
//
//     --micro-batches auto --precision auto --optimizer adamw8bit
//
//     micro-batches  1 2 4 8 ...            free
//     precision      f32 tf32 bf16          free: what the target multiplies
//     optimizer      adamw8bit              pinned
//     loss chunk     what costs no bit      pinned
//     tiles          1                      pinned
//
// Recomputation, order and offload are the plan's: they change no bit.
//
// Levers that change numbers do harm, from little to much. `harmOf` ranks
// settings by the most harmful lever that they pull:
//
//     micro-batches, loss chunks,
//     tiles                        sums are added in another order
//     tf32                         factors of products lose 13 bits of 24
//     adamw8bit                    moments have 8 bits and a scale for 256
//     bf16, fp16                   factors and activations have 16 bits
//     adamw4bit                    moments have 4 bits and a scale for 128
//
// Nothing else is pulled by itself: fp8, parameters without f32 masters and
// other rules of optimization are for the user to ask for.

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

/// What `asked` allows on `target` to a model whose batch has `samples`.
LeverSpace leverSpaceOf(const CompileOptions &asked, const Target &target,
                        int64_t samples);

/// `asked` with every lever pinned to `setting`.
CompileOptions pinned(CompileOptions asked, const LeverSetting &setting);

/// Frees a lever that is pinned, offload included, where tmc may choose others
/// than what it is pinned to.
using FreeLever = void (*)(CompileOptions &);
std::vector<FreeLever> pinnedLevers(const CompileOptions &asked);

/// The flags by which `options` differ from `asked`: "--micro-batches=8
/// --offload=auto".
std::string flagsOf(const CompileOptions &asked, const CompileOptions &options);

/// How far a setting takes the numbers of a step from those of f32, AdamW and
/// the whole batch at once: the rank of its most harmful lever, then the sum of
/// all ranks.
struct Harm {
  int most = 0, sum = 0;
  auto operator<=>(const Harm &) const = default;
};
Harm harmOf(const LeverSetting &setting);

/// "4 micro-batches, bf16, adamw8bit, 256 rows of logits, 4 tiles": what is
/// pulled; "no lever" where nothing is.
std::string textOf(const LeverSetting &setting);

} // namespace tmc

#endif // TMC_COMPILER_PIPELINE_LEVERSPACE_H
