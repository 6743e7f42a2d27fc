//===- FieldsTest.cpp - structs that list their fields --------------------===//

#include "runtime/kernels/Kernels.h"

#include <gtest/gtest.h>

using namespace tmc;

namespace {

struct Extent {
  int64_t rows, columns;
  TMC_FIELDS(rows, columns)
};

struct Params {
  DType type;
  Extent extent;
  std::vector<int64_t> shape;
  bool scaled = false;
  int64_t block = 0;
  double rate;
  int64_t scratchBytes = 0;

  TMC_FIELD_GROUPS(TMC_GIVEN(type, extent, shape), TMC_OPTIONAL(scaled, block),
                   TMC_GIVEN(rate))
};
static_assert(listsEveryField<Params>());

// Lists that static_assert must refuse.
struct Missing {
  int64_t rows, columns, scratchBytes = 0;
  TMC_FIELDS(rows)
};
struct Twice {
  int64_t rows, columns, scratchBytes = 0;
  TMC_FIELDS(rows, rows)
};
struct Swapped {
  int64_t rows, columns, scratchBytes = 0;
  TMC_FIELDS(columns, rows)
};
static_assert(!listsEveryField<Missing>());
static_assert(!listsEveryField<Twice>());
static_assert(!listsEveryField<Swapped>());

// The kernels that no op names; KernelCall checks the others.
static_assert(listsEveryField<Gather::Params>());
static_assert(listsEveryField<GatherGrad::Params>());
static_assert(listsEveryField<Fill::Params>());

std::string namesOf(const Params &params) {
  std::string names;
  params.visit([&](std::string_view name, const auto &, bool isGiven) {
    names += std::string(name) + (isGiven ? " " : "? ");
  });
  return names;
}

} // namespace

TEST(Fields, AreVisitedInTheirOrder) {
  Params params{.type = DType::F32, .extent = {2, 3}, .shape = {}, .rate = 1};
  EXPECT_EQ(namesOf(params), "type extent shape scaled? block? rate ");
  params.scaled = true; // and so is its block of 0
  EXPECT_EQ(namesOf(params), "type extent shape scaled block rate ");
}

TEST(Fields, WordsAreEnumerators) {
  EXPECT_EQ(wordOf(MaskKind::Additive), "MaskKind::Additive");
  EXPECT_EQ(wordOf(FillKind::ReplacesAll), "FillKind::ReplacesAll");
  EXPECT_STREQ(TMC_FIELD_NAME(Matmul::Params, transposeLhs), "transposeLhs");
}
