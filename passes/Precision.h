// Precision.h - which element types a step computes in.
//
// A specification names the type of what products multiply, and then
// exceptions; the last one that fits holds:
//
//     f32
//     tf32
//     bf16
//     bf16,lm_head=f32,*attn*=f32
//     bf16,gradients=bf16
//     fp16
//     fp8:block,lm_head=bf16
//
// An exception is a glob. It fits a product by the name that reports show, or
// by that of a parameter that it multiplies, or of a module that this is in;
// and the product's gradients with it; one that asks for f32, any parameter.
// What is narrowed is what `PrecisionOpInterface` names: the factors of
// products and attention, and their results. States, losses, statistics and
// everything pointwise stay f32, and so do parameters that are trained: what
// they are kept in is the optimizer's. A frozen one that is read narrow alone
// is kept so.
//
// `fp8` is `bf16` whose matrix products multiply codes of 8 bits and scales
// (Codes.h), by one of these recipes:
//
//     fp8:current   one scale per tensor, of its own largest magnitude; the
//                   same as fp8
//     fp8:delayed   one scale per tensor, of its largest magnitudes in the 1024
//                   steps before, which are states
//     fp8:block     powers of two, for 128 values along what a product sums
//                   over, and for squares of 128 x 128 of a parameter
//
// Gradients of parameters are f32, or what `gradients` says: then each is
// rounded once, before its update reads it. Over micro-batches they add up in
// f32 and stay so. fp16 is for steps whose loss is scaled (LossScale.h).

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
  /// An error says in words what is wrong.
  static llvm::Expected<PrecisionSpec> parse(llvm::StringRef text);

  struct Choice {
    mlir::Type type;
    std::optional<Scaling> codes; // Of what can multiply codes.
    std::string exception;        // "lm_head=f32": what decided it, or "".
  };
  /// The type of what an op of these names multiplies. Remembers which
  /// exceptions have fitted.
  Choice choose(llvm::ArrayRef<std::string> names, mlir::MLIRContext *context);
  /// The type that gradients of parameters are rounded to, or f32.
  mlir::Type gradientType(mlir::MLIRContext *context) const {
    return typeOf(gradients, context);
  }
  /// Whether anything may come to be fp16.
  bool mayBeFP16() const;
  /// How the codes that are asked for get their scales.
  std::vector<Scaling> scalings() const;
  /// An exception that asks for f32 fits what is f32 in any case, too: norms
  /// and whatever else multiplies nothing.
  void acceptWide(llvm::StringRef name);
  /// The exceptions that have fitted no op so far.
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
  /// Whether `exception` fits one of these names, or a module that it is in.
  static bool fits(const Exception &exception,
                   llvm::ArrayRef<std::string> names);
  static std::optional<Scaling> codesOf(Format format);
  static mlir::Type typeOf(Format format, mlir::MLIRContext *context);
  static llvm::Expected<Format> parseFormat(llvm::StringRef text);

  Format base = Format::F32, gradients = Format::F32;
  std::vector<Exception> exceptions;
};

/// Whether a specification may make anything fp16; false of a wrong one, which
/// the pass refuses.
bool mayBeFP16(llvm::StringRef spec);

} // namespace tmc

#endif // TMC_PASSES_PRECISION_H
