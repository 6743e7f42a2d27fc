// TranslationTest.cpp - every pass on a thousand random graphs, and on a
// thousand that compute in 8 and 16 bits too.

#include "test/unit/passes/Validation.h"

#include "llvm/ADT/Twine.h"

#include <gtest/gtest.h>

using namespace tmc::test;

static void validateNarrowToo(Validation v) {
  validate(v);
  v.options.narrow = true;
  validate(v);
}

// Upstream's clean-up, with nn's folds and canonicalizations.
TEST(Translation, Canonicalize) {
  Validation v;
  v.pipeline = "canonicalize,cse";
  validateNarrowToo(v);
}

TEST(Translation, CanonicalizeAStep) {
  Validation v;
  v.prepare = "tmc-autodiff";
  v.pipeline = "canonicalize,cse";
  validateNarrowToo(v);
}

// Of what exporters take apart, and of what looks like it.
TEST(Translation, Raise) {
  Validation v;
  v.prepare = "canonicalize,cse"; // what then changes is the pass's doing
  v.makes = {"nn.attention",        "nn.layer_norm", "nn.rms_norm",
             "nn.rotary_embedding", "nn.gelu",       "nn.softmax",
             "nn.cross_entropy"};
  v.pipeline = "func.func(tmc-raise)";
  v.options.exported = true;
  validateNarrowToo(v);
}

// A loss right after a product with a table.
TEST(Translation, RaiseWithChunkedLosses) {
  Validation v;
  v.prepare = "canonicalize,cse";
  v.makes = {"nn.linear_cross_entropy"};
  v.pipeline = "func.func(tmc-raise{loss-chunk=2})";
  v.options.exported = true;
  validateNarrowToo(v);
}

TEST(Translation, Layout) {
  Validation v;
  v.prepare = "canonicalize,cse";
  v.pipeline = "func.func(tmc-layout)";
  validateNarrowToo(v);
}

TEST(Translation, CopyViews) {
  Validation v;
  v.prepare = "func.func(tmc-layout),tmc-autodiff,canonicalize,cse";
  v.pipeline = "any(tmc-copy-views)";
  v.makes = {"nn.copy"};
  validateNarrowToo(v);
}

// The shape phase, pass by pass, on steps as autodiff leaves them.
static const char *const kStep =
    "func.func(tmc-layout),tmc-autodiff{optimizer=sgd},canonicalize,cse";

TEST(Translation, ExpandComposites) {
  Validation v;
  v.prepare = kStep;
  v.pipeline = "tmc-expand-composites";
  validate(v);
  // The steps of a batch norm are rounded to f32, so its result in 16 bits may
  // be the next number.
  v.options.narrow = true;
  v.roundedOp = "nn.batch_norm";
  v.roundedTolerance = 0x1p-7;
  validate(v);
}

TEST(Translation, FoldIntoKernels) {
  Validation v;
  v.prepare =
      (llvm::Twine(kStep) + ",tmc-expand-composites,canonicalize,cse").str();
  v.pipeline = "tmc-fold-into-kernels";
  validateNarrowToo(v);
}

TEST(Translation, RoundAsRead) {
  Validation v;
  v.prepare =
      (llvm::Twine(kStep) + ",tmc-expand-composites,canonicalize,cse").str();
  v.pipeline = "tmc-round-as-read,canonicalize";
  v.options.f32 = true;
  v.options.narrow = true;
  validate(v);
}

// Updates of each kind.
TEST(Translation, KeepCopies) {
  for (const char *optimizer : {"sgd", "sgd(momentum=0.9)", "adamw",
                                "adamw8bit(min_size=1)", "adafactor", "lion"})
    for (const char *precision : {"bf16", "fp16"}) {
      Validation v;
      v.prepare =
          (llvm::Twine("func.func(tmc-layout),tmc-autodiff{optimizer=") +
           optimizer + (precision[0] == 'f' ? " loss-scale=64" : "") +
           "},canonicalize,cse,train.step(tmc-precision{spec=" + precision +
           "}),canonicalize,cse,tmc-expand-composites,tmc-fold-into-kernels,"
           "canonicalize")
              .str();
      v.pipeline = "train.step(tmc-keep-copies)";
      v.options.f32 = true;
      v.graphs = 250;
      v.leastChanged = 50;
      validate(v);
    }
}

TEST(Translation, Fuse) {
  Validation v;
  v.prepare = (llvm::Twine(kStep) +
               ",tmc-expand-composites,tmc-fold-into-kernels,canonicalize,cse")
                  .str();
  v.pipeline = "tmc-fuse";
  v.options.f32 = true; // f64 has no fused kernels
  v.makes = {"nn.fused"};
  validateNarrowToo(v);
}
