// Levers.h - the table of levers: a lever is one row.
//
// A lever changes the program that is planned; a plan changes only how a
// program runs. A row says all that tmc needs to know of a lever: its flag, the
// values that `auto` may choose, their harm, and the words for them:
//
//     --micro-batches   1 2 4 8 ...           sums in another order
//     --precision       f32 tf32 bf16 fp16    factors of products lose digits
//     --optimizer       adamw adamw8bit ...   moments lose digits
//     --loss-chunk      rows of logits        sums in another order
//     --tiles           1 4 16                sums in another order
//     --base            keep int8 nf4         frozen parameters lose digits
//
// The command line, the search, notes and reports read the table. The phase in
// which a lever acts reads its value from `CompileOptions::levers`
// (Candidate.cpp). docs/adding-a-lever.patch adds a row.
//
// Levers that change numbers do harm, listed from little to much:
//
//     1  micro-batches, loss chunks,
//        tiles                        sums are added in another order
//     2  tf32                         factors of products lose 13 bits of 24
//     3  adamw8bit                    moments have 8 bits and a scale for 256
//     4  int8                         frozen parameters have 8 bits and a scale
//                                     for a row
//     5  bf16, fp16                   factors and activations have 16 bits
//     6  adamw4bit                    moments have 4 bits and a scale for 128
//     7  nf4                          frozen parameters have 4 bits and a scale
//                                     for 64
//
// tmc chooses no value that a row doesn't offer: the user must ask for fp8,
// parameters without f32 masters and other optimizers.

#ifndef TMC_DRIVER_PIPELINE_LEVERS_H
#define TMC_DRIVER_PIPELINE_LEVERS_H

#include "compiler/support/Failure.h"
#include "compiler/target/Target.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// Instead of a count: tmc chooses it.
inline constexpr int64_t kAuto = -1;

/// The levers, in the order of their rows.
enum LeverId : size_t {
  kMicroBatches,
  kPrecision,
  kOptimizer,
  kLossChunk,
  kTiles,
  kBase,
  kLevers, // Their number.
};

/// A value of a lever: a count, or a name with what follows it.
struct LeverValue {
  /// None: the lever has names, or its flag isn't given and has no number as
  /// its default.
  std::optional<int64_t> count;
  std::string name; // "bf16,lm_head=f32", "adamw(clip=1)"

  auto operator<=>(const LeverValue &) const = default;
};

/// A name that tmc may choose, and its harm; 0: none.
struct LeverName {
  const char *name;
  int harm;
};

/// The facts of a model that its levers depend on.
struct ModelFacts {
  int64_t samples = 0;    // In the batch; 0: there is no batch.
  bool hasFrozen = false; // A parameter isn't trained.
  /// The format of --base that the given weights are coded in; empty: they are
  /// floats.
  std::string codes;
};

/// A row of the table.
struct Lever {
  const char *flag;      // Without its dashes.
  const char *byDefault; // The flag's text where it isn't given.
  const char *valueName; // "N|auto", for the help.
  const char *help;
  /// Flags in notes come in this order: counts first, which lose no digits.
  int place;
  /// The values that tmc may choose for a target and a model, from the least
  /// harmful to the most. Names come without what follows them.
  std::vector<LeverValue> (*values)(const Target &, const ModelFacts &);
  /// Of a lever with names: each that tmc may choose on any target.
  llvm::ArrayRef<LeverName> names;
  /// Of a lever with counts: larger ones change numbers, with harm 1.
  int64_t mostHarmless = 0;
  /// The words after a value, "tiles"; empty: it needs none.
  const char *unit = "";
  /// Of a lever with counts: the word for 0, "all"; null: 0 is no value.
  const char *zero = nullptr;

  bool hasNames() const { return !names.empty(); }
  /// Reads the flag's text. Names are checked by the phase that reads them.
  Expected<LeverValue> parse(const std::string &text) const;
  /// The text of `value` for the flag; "auto" for a default without a number.
  std::string text(const LeverValue &value) const;
  /// The text behind a name: ",lm_head=f32" of "bf16,lm_head=f32".
  std::string restOf(const LeverValue &value) const;
  /// Whether tmc chooses the value.
  bool isFree(const LeverValue &value) const;
  /// Whether tmc may choose another value in the place of `value`.
  bool mayChange(const LeverValue &value) const;
  /// `value` with "auto" in the place of its count or name.
  LeverValue freed(const LeverValue &value) const;
  /// The values that `asked` leaves open; `asked` alone if it isn't free.
  std::vector<LeverValue> allowed(const LeverValue &asked, const Target &target,
                                  const ModelFacts &model) const;
  int harm(const LeverValue &value) const;
  /// "4 micro-batches", "bf16"; empty: the value changes nothing.
  std::string words(const LeverValue &value) const;
};

/// The rows, by their ids.
llvm::ArrayRef<Lever> leverTable();

/// One value for each lever; by default what their flags stand at.
struct LeverSetting {
  std::array<LeverValue, kLevers> values;

  LeverSetting();
  LeverValue &operator[](size_t lever) { return values[lever]; }
  const LeverValue &operator[](size_t lever) const { return values[lever]; }
  const std::string &name(LeverId lever) const { return values[lever].name; }
  /// The count, or `otherwise` where there is none.
  int64_t count(LeverId lever, int64_t otherwise = 0) const {
    return values[lever].count.value_or(otherwise);
  }

  auto operator<=>(const LeverSetting &) const = default;
};

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_LEVERS_H
