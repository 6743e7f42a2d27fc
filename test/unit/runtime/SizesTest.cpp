//===- SizesTest.cpp - numbers of bytes as people write them --------------===//

#include "runtime/kernels/Sizes.h"

#include "gtest/gtest.h"

using namespace tmc;

namespace {

/// The bytes, or -1.
int64_t bytesOf(std::string_view text) {
  const SizeText size = readSize(text);
  return size.fault ? -1 : size.bytes;
}

TEST(Sizes, UnitsAreBinaryWithAnI) {
  EXPECT_EQ(bytesOf("4096"), 4096);
  EXPECT_EQ(bytesOf("4096B"), 4096);
  EXPECT_EQ(bytesOf("12GiB"), int64_t(12) << 30);
  EXPECT_EQ(bytesOf("12 GiB"), int64_t(12) << 30);
  EXPECT_EQ(bytesOf("12GB"), 12000000000);
  EXPECT_EQ(bytesOf("1.5MB"), 1500000);
  EXPECT_EQ(bytesOf(".5KiB"), 512);
  EXPECT_EQ(bytesOf("3KB"), 3000);
  EXPECT_EQ(bytesOf("2TiB"), int64_t(2) << 40);
  EXPECT_EQ(bytesOf("0"), 0);
}

TEST(Sizes, FractionsAreExactAndRoundedDown) {
  EXPECT_EQ(bytesOf("0.001KiB"), 1);
  EXPECT_EQ(bytesOf("0.3GB"), 300000000);
  EXPECT_EQ(bytesOf("1.8GiB"), 1932735283);
  // 4611686018427387904 as a double can't tell these apart.
  EXPECT_EQ(bytesOf("4611686018427387903"), (int64_t(1) << 62) - 1);
  EXPECT_EQ(bytesOf("0.9999999999999999999999B"), 0);
}

TEST(Sizes, ALetterAloneIsBinaryAndIsSaid) {
  for (const char *text : {"12G", "12g"}) {
    const SizeText size = readSize(text);
    EXPECT_EQ(size.fault, nullptr);
    EXPECT_EQ(size.bytes, int64_t(12) << 30);
    EXPECT_EQ(size.note, std::string(text) + " is read as 12GiB");
  }
  EXPECT_EQ(readSize("1.5 T").note, "1.5 T is read as 1.5TiB");
  EXPECT_EQ(readSize("12GiB").note, "");
}

TEST(Sizes, OthersAreFaults) {
  for (const char *text :
       {"", " ", "GiB", ".", "1.2.3", "12 gigs", "12Gb", "12gib", "12PiB", "-1",
        "-0", "+1", "1e3", "0x10", "nan", "inf", "12GiBx", "12G B"})
    EXPECT_EQ(bytesOf(text), -1) << text;
  EXPECT_STREQ(readSize("-1").fault, "it is negative");
  EXPECT_STREQ(readSize("x").fault, "it doesn't begin with a number");
  EXPECT_STREQ(readSize("1x").fault, "its unit is unknown");
}

TEST(Sizes, EndAtTwoToThe62) {
  EXPECT_EQ(bytesOf("4194304TiB"), int64_t(1) << 62);
  EXPECT_EQ(bytesOf("4611686018427387904"), int64_t(1) << 62);
  for (const char *text :
       {"4611686018427387905", "4194304.1TiB", "99999999999TiB",
        "99999999999999999999999999999999999999999999999999999999",
        "99999999999999999999999999999999999999.999999999999TiB"})
    EXPECT_STREQ(readSize(text).fault, "it is over 2^62 bytes") << text;
}

} // namespace
