//===- FusedLaunchTest.cpp - launches of generated kernels, emulated ------===//
//
// What happens around a fused body: it runs over all rows, and an error of its
// launch reaches the device.
//
//===----------------------------------------------------------------------===//

#include "Testing.h"

#include "runtime/cuda/Fused.h"

using namespace tmc;

namespace {
/// As the compiler prints them: a row is its number.
struct counting {
  static constexpr const char *name = "counting";
  static constexpr FusedShape shape{.rows = 2, .cols = 4};
  float *out0;
  counting(In, Out out, const int64_t *)
      : out0(static_cast<float *>(result(out, 0))) {}
  template <typename R> TMC_HD void row(const R &row, const Sums &) const {
    row.each([&](auto c) {
      c.store(out0 + row.index * 4, c.spread(float(row.index)));
    });
  }
};
} // namespace

TEST(CudaFused, ErrorsOfAFusedLaunchComeWithItsName) {
  auto device = test::makeDevice(1);
  Fused<counting> kernel({});
  ASSERT_TRUE(kernel.prepare(*device));
  test::Floats x(8);
  kernel.run(device->compute(), {}, {x}, nullptr);
  ASSERT_TRUE(device->synchronize());
  EXPECT_EQ(x[3], 0.0f);
  EXPECT_EQ(x[4], 1.0f);
  emulator::failNext("launch");
  kernel.run(device->compute(), {}, {x}, nullptr);
  const Status s = device->synchronize();
  EXPECT_EQ(s.code(), Code::World);
  EXPECT_EQ(s.message(), "counting: an emulated failure");
}
