// BaseSpec.h - `--base`: how weights that aren't trained are stored.
//
// A specification names a format for the weights that aren't trained, and then
// exceptions by name; the last one that matches holds:
//
//     nf4
//     nf4:plain
//     int8
//     nf4,lm_head*=bf16,*down_proj*=int8
//
// The formats:
//
//     nf4         4 bits and 8 bits of a maximum for 64 numbers: 4.127 bits
//     nf4:plain   4 bits and an f32 for 64 numbers: 4.5 bits
//     int8        8 bits and an f32 for a row
//     bf16, f32   rounded to this type
//     keep        as the graph has it
//
// An exception is a glob. It matches a parameter by one of its names, or by
// that of an enclosing module, as those of --precision do (Precision.h).

#ifndef TMC_PASSES_BASESPEC_H
#define TMC_PASSES_BASESPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

#include <string>
#include <vector>

namespace tmc {

enum class BaseFormat { Keep, F32, BF16, Int8, Nf4, Nf4Plain };

/// True if numbers are stored as codes.
inline bool isCoded(BaseFormat format) { return format >= BaseFormat::Int8; }
/// The format's name in a specification.
llvm::StringRef nameOf(BaseFormat format);

class BaseSpec {
public:
  /// The specification of `text`, or a message that explains the error. "" is
  /// "keep".
  static llvm::Expected<BaseSpec> parse(llvm::StringRef text);

  const std::string &text() const { return given; }
  /// True if all weights are as the graph has them.
  bool isNone() const { return base == BaseFormat::Keep && list.empty(); }
  /// The format of weights without an exception.
  BaseFormat ofOthers() const { return base; }

  struct Choice {
    BaseFormat format;
    int exception; // Its number, or -1.
  };
  Choice choose(llvm::ArrayRef<std::string> names) const;

  struct Exception {
    std::string glob;
    llvm::GlobPattern pattern;
    BaseFormat format;
  };
  const std::vector<Exception> &exceptions() const { return list; }

private:
  std::string given;
  BaseFormat base = BaseFormat::Keep;
  std::vector<Exception> list;
};

} // namespace tmc

#endif // TMC_PASSES_BASESPEC_H
