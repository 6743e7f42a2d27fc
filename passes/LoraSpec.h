// LoraSpec.h - `--lora`: the adapters that a step trains.
//
// An adapter of a matrix W [out, in] is two small matrices, A [r, in] and
// B [out, r], and a number s. A product x W^T becomes
//
//     x W^T + s (drop(x) A^T) B^T        s = alpha / r, or alpha / sqrt(r)
//
// and A and B are trained in the place of W. A specification is a list:
//
//     r=16,alpha=32,targets=q_proj,v_proj,dropout=0.05
//     r=16,targets=all-linear,r:down_proj=8,alpha:down_proj=4
//
//     r=N              the rank
//     alpha=X          the scale's numerator; without it, N
//     targets=NAME,... the modules that get adapters: a word without '=' that
//                      follows belongs to the list
//     dropout=P        the probability of dropping an element of x
//     rslora=true      s = alpha / sqrt(r)
//     init=gaussian    A starts as normal numbers of deviation 1 / r; without
//                      it, as uniform numbers in +-1 / sqrt(in). B starts as
//                      zeros.
//     r:NAME=N         another rank for the modules of that name
//     alpha:NAME=X     another alpha
//
// A NAME is PEFT's: the name of a module, or its end after a dot. A NAME with
// `*` or `?` is a glob over the whole name. The target `all-linear` is every
// product but those behind which only the loss follows: a model's head.
//
// Source: E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
// 2021; D. Kalajdzievski, "A Rank Stabilization Scaling Factor for Fine-Tuning
// with LoRA", 2023; PEFT 0.21.2 for names and defaults.

#ifndef TMC_PASSES_LORASPEC_H
#define TMC_PASSES_LORASPEC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tmc {

/// A NAME of the specification.
class ModuleName {
public:
  /// Fails on an empty word and on a broken glob.
  static llvm::Expected<ModuleName> parse(llvm::StringRef word);

  bool matches(llvm::StringRef module) const;
  const std::string &text() const { return word; }
  /// True if PEFT reads the word alike: it is no glob.
  bool isPlain() const;

private:
  std::string word;
};

struct LoraSpec {
  static constexpr llvm::StringLiteral kAllLinear = "all-linear";

  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  bool rankStabilized = false;
  bool gaussian = false;
  bool allLinear = false;
  std::vector<ModuleName> targets; // Without all-linear.
  std::vector<std::pair<ModuleName, int64_t>> ranks;
  std::vector<std::pair<ModuleName, double>> alphas;
  std::string text; // As it was written.

  /// The specification of `text`, or a message for the user.
  static llvm::Expected<LoraSpec> parse(llvm::StringRef text);

  /// The values of a module: those of the first NAME that matches it, if there
  /// is one.
  int64_t rankOf(llvm::StringRef module) const;
  double alphaOf(llvm::StringRef module) const;
  double scaleOf(llvm::StringRef module) const;
};

} // namespace tmc

#endif // TMC_PASSES_LORASPEC_H
