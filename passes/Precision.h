// Precision.h - which element types a step computes in.
//
// A specification names the type of the factors of products, and then
// exceptions; the last one that matches holds:
//
//     f32
//     tf32
//     bf16
//     bf16,lm_head=f32,*attn*=f32
//     bf16,gradients=bf16
//     bf16,attention=exact
//     fp16
//     fp8:block,lm_head=bf16
//
// An exception is a glob. It matches a product by its name in reports, by the
// name of a parameter that it multiplies, or by that of an enclosing module; it
// then holds for the product's gradients, too. An exception with f32 may match
// any parameter. `PrecisionOpInterface` names the values that are narrowed: the
// factors of products and attention, and their results. States, losses,
// statistics and pointwise results stay f32, and so do trained parameters,
// whose stored type is the optimizer's choice. A frozen parameter is stored
// narrow if all its readers narrow it.
//
// `fp8` is `bf16` whose matrix products multiply codes of 8 bits and scales
// (Codes.h), by one of these recipes:
//
//     fp8:current   one scale per tensor, from its own largest magnitude; the
//                   same as fp8
//     fp8:delayed   one scale per tensor, from its largest magnitudes in the
//                   1024 steps before, which are states
//     fp8:block     powers of two, for 128 values along the summed dimension of
//                   a product, and for squares of 128 x 128 of a parameter
//
// With `attention=exact` the probabilities of attention, and the gradients of
// its scores, aren't rounded to 16 bits before they are multiplied. With
// tf32, attention stays f32.
//
// Gradients of parameters are f32, or have the type of `gradients`: then each
// is rounded once, before its update reads it. Over micro-batches they are
// summed in f32 and stay f32. fp16 needs a scaled loss (LossScale.h).

#ifndef TMC_PASSES_PRECISION_H
#define TMC_PASSES_PRECISION_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"

#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// How codes of 8 bits get their scales.
enum class Scaling { Current, Delayed, Block };

class PrecisionSpec {
public:
  /// The specification of `text`, or a message that explains the error.
  static llvm::Expected<PrecisionSpec> parse(llvm::StringRef text);
  /// The same; null where there is an error.
  static std::optional<PrecisionSpec> ifValid(llvm::StringRef text);

  struct Choice {
    mlir::Type type;
    std::optional<Scaling> codes; // For ops that can multiply codes.
    std::string exception;        // "lm_head=f32": the exception that matched,
                                  // or "".
  };
  /// The type of the factors of an op with these names. Marks the exceptions
  /// that matched.
  Choice choose(llvm::ArrayRef<std::string> names, mlir::MLIRContext *context);
  /// The type that gradients of parameters are rounded to, or f32.
  mlir::Type gradientType(mlir::MLIRContext *context) const {
    return typeOf(gradients, context);
  }
  /// True if attention's probabilities aren't rounded.
  bool hasExactAttention() const { return exactAttention; }
  /// Whether any value may become fp16.
  bool mayBeFP16() const;
  /// True if a product may multiply f32 values by tensor cores: in 16 bits, 8
  /// bits or TF32.
  bool mayUseTensorCores() const;
  /// The scalings of all requested codes.
  std::vector<Scaling> scalings() const;
  /// An exception with f32 also matches ops that are f32 in any case: norms and
  /// others without products. Marks those that match `name`.
  void acceptWide(llvm::StringRef name);
  /// The exceptions that matched no op so far.
  std::vector<std::string> unused() const;

private:
  enum class Format { F32, TF32, BF16, FP16, FP8Current, FP8Delayed, FP8Block };
  struct Exception {
    std::string text; // "lm_head=f32"
    std::string glob;
    llvm::GlobPattern pattern;
    Format format;
    bool fitted = false;
  };
  /// Whether `exception` matches one of these names, or an enclosing module.
  static bool fits(const Exception &exception,
                   llvm::ArrayRef<std::string> names);
  static std::optional<Scaling> codesOf(Format format);
  static mlir::Type typeOf(Format format, mlir::MLIRContext *context);
  static llvm::Expected<Format> parseFormat(llvm::StringRef text);

  Format base = Format::F32, gradients = Format::F32;
  bool exactAttention = false;
  std::vector<Exception> exceptions;
};

/// Calls f with `name` and each enclosing module: "a.b.c", "a", "a.b".
void eachModule(llvm::StringRef name,
                llvm::function_ref<void(llvm::StringRef)> f);

/// Whether a specification may make any value fp16; false for an invalid one,
/// which the pass refuses.
bool mayBeFP16(llvm::StringRef spec);
/// The same for products by tensor cores.
bool mayUseTensorCores(llvm::StringRef spec);

} // namespace tmc

#endif // TMC_PASSES_PRECISION_H
