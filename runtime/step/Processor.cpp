//===- Processor.cpp - the instructions that a processor has --------------===//

#include "runtime/step/Processor.h"

#include <cstdio>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tmc {

namespace {

/// In the order of the message: the newest extensions of a target come first.
struct Named {
  uint32_t bit;
  const char *name;
};
constexpr Named kNames[] = {
    {kAmxTile, "AMX-TILE"},
    {kAmxBf16, "AMX-BF16"},
    {kAvx512Bf16, "AVX512_BF16"},
    {kAvx512F, "AVX512F"},
    {kAvx512Bw, "AVX512BW"},
    {kAvx512Cd, "AVX512CD"},
    {kAvx512Dq, "AVX512DQ"},
    {kAvx512Vl, "AVX512VL"},
    {kAvx2, "AVX2"},
    {kFma, "FMA"},
    {kF16c, "F16C"},
    {kBmi, "BMI1"},
    {kBmi2, "BMI2"},
    {kLzcnt, "LZCNT"},
    {kMovbe, "MOVBE"},
    {kAvx, "AVX"},
    {kSse42, "SSE4.2"},
    {kPopcnt, "POPCNT"},
};

// The bits of registers in XCR0: SSE and AVX; masks and both halves of the
// 512-bit registers; tile configuration and tiles.
constexpr uint64_t kXcrAvx = 0x6, kXcrAvx512 = kXcrAvx | 0xe0,
                   kXcrAmx = 0x60000;

bool isSet(uint32_t word, int bit) { return word >> bit & 1; }

} // namespace

CpuidWords readCpuid() {
  CpuidWords words;
#if defined(__x86_64__)
  uint32_t a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d))
    words.leaf1Ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    words.leaf7Ebx = b;
    words.leaf7Edx = d;
    const uint32_t lastSubLeaf = a;
    if (lastSubLeaf >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
      words.leaf7Sub1Eax = a;
  }
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    words.extendedEcx = c;
  constexpr int kOsXsave = 27; // Without it xgetbv is an invalid instruction.
  if (isSet(words.leaf1Ecx, kOsXsave)) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = uint64_t(high) << 32 | low;
  }
#endif
  return words;
}

uint32_t instructionsOf(const CpuidWords &words) {
  uint32_t found = 0;
  auto add = [&](uint32_t word, int bit, uint32_t instructions,
                 uint64_t registers) {
    if (isSet(word, bit) && (words.xcr0 & registers) == registers)
      found |= instructions;
  };
  add(words.leaf1Ecx, 20, kSse42, 0);
  add(words.leaf1Ecx, 23, kPopcnt, 0);
  add(words.leaf1Ecx, 22, kMovbe, 0);
  add(words.leaf1Ecx, 29, kF16c, kXcrAvx);
  add(words.leaf1Ecx, 12, kFma, kXcrAvx);
  add(words.leaf1Ecx, 28, kAvx, kXcrAvx);
  add(words.leaf7Ebx, 5, kAvx2, kXcrAvx);
  add(words.leaf7Ebx, 3, kBmi, 0);
  add(words.leaf7Ebx, 8, kBmi2, 0);
  add(words.extendedEcx, 5, kLzcnt, 0);
  add(words.leaf7Ebx, 16, kAvx512F, kXcrAvx512);
  add(words.leaf7Ebx, 28, kAvx512Cd, kXcrAvx512);
  add(words.leaf7Ebx, 30, kAvx512Bw, kXcrAvx512);
  add(words.leaf7Ebx, 17, kAvx512Dq, kXcrAvx512);
  add(words.leaf7Ebx, 31, kAvx512Vl, kXcrAvx512);
  add(words.leaf7Sub1Eax, 5, kAvx512Bf16, kXcrAvx512);
  add(words.leaf7Edx, 24, kAmxTile, kXcrAmx);
  add(words.leaf7Edx, 22, kAmxBf16, kXcrAmx);
  return found;
}

bool permitTiles() {
#if defined(__linux__) && defined(__x86_64__)
  // From asm/prctl.h, which older kernel headers lack.
  constexpr long kRequestComponent = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestComponent, kTileData) == 0;
#else
  return true;
#endif
}

const char *faultOf(const CompiledFor &wanted, uint32_t available, char *text,
                    size_t bytes) {
  const uint32_t lacking = wanted.instructions & ~available;
  if (!lacking)
    return nullptr;
  size_t used = 0;
  auto append = [&](const char *words) {
    if (used < bytes) {
      const int count = std::snprintf(text + used, bytes - used, "%s", words);
      used += count > 0 ? size_t(count) : 0;
    }
  };
  append("the step was compiled for ");
  append(wanted.target);
  append("; this processor, or its operating system, lacks ");
  bool isFirst = true;
  for (const Named &named : kNames)
    if (lacking & named.bit) {
      append(isFirst ? "" : ", ");
      append(named.name);
      isFirst = false;
    }
  append((available & kV3) != kV3 ? "; steps need a processor with AVX2 and FMA"
                                  : "; compile it with --target cpu:v3");
  return text;
}

} // namespace tmc
