// TranslationTest.cpp - every pass on a thousand random graphs.

#include "test/unit/passes/Validation.h"

#include <gtest/gtest.h>

using namespace tmc::test;

// Upstream's clean-up, with nn's folds and canonicalizations.
TEST(Translation, Canonicalize) {
  Validation v;
  v.pipeline = "canonicalize,cse";
  validate(v);
}

TEST(Translation, CanonicalizeAStep) {
  Validation v;
  v.prepare = "tmc-autodiff";
  v.pipeline = "canonicalize,cse";
  validate(v);
}

// Of what exporters take apart, and of what looks like it.
TEST(Translation, Raise) {
  Validation v;
  v.prepare = "canonicalize,cse"; // what then changes is the pass's doing
  v.makes = {"nn.attention", "nn.layer_norm", "nn.rms_norm",
             "nn.gelu",      "nn.softmax",    "nn.cross_entropy"};
  v.pipeline = "func.func(tmc-raise)";
  v.options.exported = true;
  validate(v);
}

// A loss right after a product with a table.
TEST(Translation, RaiseWithChunkedLosses) {
  Validation v;
  v.prepare = "canonicalize,cse";
  v.makes = {"nn.linear_cross_entropy"};
  v.pipeline = "func.func(tmc-raise{loss-chunk=2})";
  v.options.exported = true;
  validate(v);
}

TEST(Translation, Layout) {
  Validation v;
  v.prepare = "canonicalize,cse";
  v.pipeline = "func.func(tmc-layout)";
  validate(v);
}

TEST(Translation, CopyViews) {
  Validation v;
  v.prepare = "func.func(tmc-layout),tmc-autodiff,canonicalize,cse";
  v.pipeline = "any(tmc-copy-views)";
  v.makes = {"nn.copy"};
  validate(v);
}
