// Constants at import: views without copies, and work done once where a value
// repeats.

#include "frontends/common/Array.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tmc::frontend;
using Values = std::vector<int64_t>;

namespace {
Array iota(llvm::ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= dim;
  Values values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = i;
  return Array::ofInts(ElementType::I64, dims, values);
}

TEST(Array, Views) {
  Array a = iota({2, 3}); // 0 1 2 / 3 4 5
  EXPECT_EQ(a.transposed({1, 0}).ints(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(a.sliced(1, 2, -1, 3).ints(), (Values{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(a.sliced(1, 0, 2, 2).ints(), (Values{0, 2, 3, 5}));
  EXPECT_EQ(a.sliced(0, 0, 1, 0).ints(), Values{});
  EXPECT_EQ(iota({3}).broadcastTo({2, 3}).ints(), (Values{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(Array::ofShape({7}).reshaped({}).ints(), Values{7});
}

TEST(Array, ReshapeOfViews) {
  // A transposed array isn't contiguous: its reshape copies, in its order.
  Array t = iota({2, 3}).transposed({1, 0});
  EXPECT_EQ(t.reshaped({6}).ints(), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.reshaped({3, 1, 2}).ints(), (Values{0, 3, 1, 4, 2, 5}));
  // Splitting a dimension of a view is a view.
  EXPECT_EQ(iota({2, 6}).transposed({1, 0}).reshaped({2, 3, 2}).ints(),
            iota({2, 6}).transposed({1, 0}).ints());
  // Repetition survives where it can.
  Array wide = iota({4}).broadcastTo({1000, 4});
  EXPECT_EQ(wide.reshaped({1000, 2, 2}).distinct(), 4);
  EXPECT_EQ(iota({2, 2}).broadcastTo({3, 2, 2}).reshaped({6, 2}).ints(),
            (Values{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
}

TEST(Array, WorkIsDoneOnce) {
  // 2^40 elements of which 4 differ.
  Array wide = iota({4}).broadcastTo({int64_t(1) << 38, 4});
  EXPECT_EQ(wide.distinct(), 4);
  int calls = 0;
  Array doubled =
      mapInts(ElementType::I64, {wide, wide}, [&](llvm::ArrayRef<int64_t> x) {
        ++calls;
        return x[0] + x[1];
      });
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(doubled.dims()[0], int64_t(1) << 38);
  EXPECT_EQ(doubled.sliced(0, 5, 1, 1).ints(), (Values{0, 2, 4, 6}));
}

TEST(Array, Compression) {
  Array rows = Array::ofInts(ElementType::I64, {2, 3}, {1, 2, 3, 1, 2, 3});
  EXPECT_EQ(rows.compressed().distinct(), 3);
  EXPECT_EQ(rows.compressed().ints(), rows.ints());
  Array nan = Array::ofFloats(ElementType::F32, {2}, {NAN, NAN});
  EXPECT_EQ(nan.compressed().distinct(), 1);
  Array differs = Array::ofInts(ElementType::I64, {2, 2}, {1, 1, 1, 2});
  EXPECT_EQ(differs.compressed().distinct(), 4);
  llvm::SmallVector<int64_t> kept;
  Array part = rows.compressed().unrepeated(kept);
  EXPECT_EQ(part.ints(), (Values{1, 2, 3}));
  EXPECT_EQ(kept, (llvm::SmallVector<int64_t>{1}));
}

TEST(Array, RoundsAndWraps) {
  EXPECT_EQ(Array::ofFloats(ElementType::F32, {1}, {0.1}).floats()[0], 0.1f);
  EXPECT_EQ(Array::ofFloats(ElementType::F16, {1}, {1e6}).floats()[0],
            INFINITY);
  EXPECT_EQ(Array::ofInts(ElementType::I8, {1}, {200}).ints()[0], -56);
  EXPECT_EQ(Array::ofInts(ElementType::Bool, {1}, {7}).ints()[0], 1);
  Array floats = Array::ofFloats(ElementType::F32, {3}, {-1.7, 0.0, 1e30});
  EXPECT_EQ(floats.cast(ElementType::I64).ints(), (Values{-1, 0, INT64_MAX}));
  EXPECT_EQ(floats.cast(ElementType::Bool).ints(), (Values{1, 0, 1}));
}

TEST(Array, Broadcasting) {
  EXPECT_EQ(broadcastShape({4, 1, 3}, {2, 1}), (Dims{4, 2, 3}));
  EXPECT_EQ(broadcastShape({}, {2}), Dims{2});
  EXPECT_EQ(broadcastShape({3}, {2}), std::nullopt);
}
} // namespace
