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
