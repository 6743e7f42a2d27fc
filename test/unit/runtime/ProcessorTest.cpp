//===- ProcessorTest.cpp - what a processor has, and what a step asks for -===//

#include "runtime/step/Processor.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

using namespace tmc;

namespace {

// Words as processors answer, of the features that matter here.
constexpr uint32_t kLeaf1Avx2Machine =
    1u << 12 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29;
constexpr uint32_t kLeaf7Avx2Machine = 1u << 3 | 1u << 5 | 1u << 8;
constexpr uint32_t kLeaf7Avx512 =
    1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;

CpuidWords avx2Machine() {
  CpuidWords words;
  words.leaf1Ecx = kLeaf1Avx2Machine;
  words.leaf7Ebx = kLeaf7Avx2Machine;
  words.extendedEcx = 1u << 5;
  words.xcr0 = 0x7;
  return words;
}

CpuidWords amxMachine() {
  CpuidWords words = avx2Machine();
  words.leaf7Ebx |= kLeaf7Avx512;
  words.leaf7Sub1Eax = 1u << 5;
  words.leaf7Edx = 1u << 22 | 1u << 24;
  words.xcr0 = 0x600e7;
  return words;
}

std::string fault(const char *target, uint32_t wanted, const CpuidWords &words,
                  size_t bytes = 512) {
  std::string text(bytes, '#');
  const char *said =
      faultOf({target, wanted}, instructionsOf(words), text.data(), bytes);
  return said ? said : "";
}

} // namespace

TEST(Processor, HasWhatItAnswers) {
  EXPECT_EQ(instructionsOf({}), 0u);
  EXPECT_EQ(instructionsOf(avx2Machine()), kV3);
  EXPECT_EQ(instructionsOf(amxMachine()), kV4Amx);
  CpuidWords words = amxMachine();
  words.leaf7Edx = 0;
  EXPECT_EQ(instructionsOf(words), kV4Bf16);
  words.leaf7Sub1Eax = 0;
  EXPECT_EQ(instructionsOf(words), kV4);
}

TEST(Processor, RegistersThatNobodySavesCantBeUsed) {
  CpuidWords words = amxMachine();
  words.xcr0 = 0xe7; // Linux before 5.16: no tiles.
  EXPECT_EQ(instructionsOf(words), kV4Bf16);
  words.xcr0 = 0x7; // AVX-512 turned off.
  EXPECT_EQ(instructionsOf(words), kV3);
  words.xcr0 = 0x3; // SSE only.
  EXPECT_EQ(instructionsOf(words) & (kAvx | kAvx2 | kFma | kF16c), 0u);
}

TEST(Processor, AFaultNamesTheTargetWhatLacksAndTheWayOut) {
  EXPECT_EQ(fault("cpu:v3", kV3, avx2Machine()), "");
  EXPECT_EQ(fault("cpu:v4-amx", kV4Amx, amxMachine()), "");
  EXPECT_EQ(fault("cpu:v4", kV4, avx2Machine()),
            "the step was compiled for cpu:v4; this processor, or its "
            "operating system, lacks AVX512F, AVX512BW, AVX512CD, AVX512DQ, "
            "AVX512VL; compile it with --target cpu:v3");
  CpuidWords words = avx2Machine();
  words.leaf7Ebx = 0;
  EXPECT_EQ(fault("cpu:v3", kV3, words),
            "the step was compiled for cpu:v3; this processor, or its "
            "operating system, lacks AVX2, BMI1, BMI2; steps need a processor "
            "with AVX2 and FMA");
  words = amxMachine();
  words.xcr0 = 0xe7;
  EXPECT_EQ(fault("cpu:v4-amx", kV4Amx, words),
            "the step was compiled for cpu:v4-amx; this processor, or its "
            "operating system, lacks AMX-TILE, AMX-BF16; compile it with "
            "--target cpu:v3");
}

TEST(Processor, AFaultFitsItsBuffer) {
  for (size_t bytes : {1, 2, 30, 100}) {
    std::string text = fault("cpu:v4", kV4, avx2Machine(), bytes);
    EXPECT_EQ(text.size(), bytes - 1);
  }
}

TEST(Processor, AgreesWithTheSystem) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0))
    ;
  if (!file)
    GTEST_SKIP() << "the system names no flags";
  std::istringstream flags(line);
  uint32_t named = 0;
  for (std::string flag; flags >> flag;)
    for (auto [name, bit] :
         {std::pair<const char *, uint32_t>{"sse4_2", kSse42},
          {"popcnt", kPopcnt},
          {"movbe", kMovbe},
          {"f16c", kF16c},
          {"fma", kFma},
          {"avx", kAvx},
          {"avx2", kAvx2},
          {"bmi1", kBmi},
          {"bmi2", kBmi2},
          {"abm", kLzcnt},
          {"avx512f", kAvx512F},
          {"avx512cd", kAvx512Cd},
          {"avx512bw", kAvx512Bw},
          {"avx512dq", kAvx512Dq},
          {"avx512vl", kAvx512Vl},
          {"avx512_bf16", kAvx512Bf16},
          {"amx_tile", kAmxTile},
          {"amx_bf16", kAmxBf16}})
      if (flag == name)
        named |= bit;
  EXPECT_EQ(instructionsOf(readCpuid()), named);
}
