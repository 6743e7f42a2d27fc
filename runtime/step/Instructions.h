//===- Instructions.h - instructions that code needs ------------*- C++ -*-===//
//
// Code for AVX-512 raises a signal on a processor without it. So all code that
// is compiled with a target's flags also states, as data, which instructions
// its compiler was allowed to use. Code that runs on every x86-64 compares the
// data with the processor before other code runs (StartCheck.cpp):
//
//     step.cpp          -march=...   tmc_step_compiled_for = {"cpu:v4", set}
//     the cpu library   -march=...   tmc_runtime_instructions = set
//     StartCheck.cpp    (none)       startFault(): nullptr, or a sentence
//
// `kInstructions` follows from the macros that a compiler predefines for its
// flags, so it includes every instruction in use.
//
// This header holds constants only. A function would be compiled with the flags
// of each includer, and the linker keeps one copy of an inline function: the
// check could get the copy with AVX-512.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_INSTRUCTIONS_H
#define TMC_RUNTIME_STEP_INSTRUCTIONS_H

#include <cstdint>

namespace tmc {

/// One bit for each extension of x86-64 that a target can ask for.
enum Instructions : uint32_t {
  // Of x86-64-v3.
  kSse42 = 1u << 0,
  kPopcnt = 1u << 1,
  kMovbe = 1u << 2,
  kF16c = 1u << 3,
  kFma = 1u << 4,
  kAvx = 1u << 5,
  kAvx2 = 1u << 6,
  kBmi = 1u << 7,
  kBmi2 = 1u << 8,
  kLzcnt = 1u << 9,
  // Of x86-64-v4.
  kAvx512F = 1u << 10,
  kAvx512Cd = 1u << 11,
  kAvx512Bw = 1u << 12,
  kAvx512Dq = 1u << 13,
  kAvx512Vl = 1u << 14,
  // Of v4-bf16 and of v4-amx.
  kAvx512Bf16 = 1u << 15,
  kAmxTile = 1u << 16,
  kAmxBf16 = 1u << 17,
};

/// The instructions that the compiler of this file may use.
constexpr uint32_t kInstructions = 0
#ifdef __SSE4_2__
                                   | kSse42
#endif
#ifdef __POPCNT__
                                   | kPopcnt
#endif
#ifdef __MOVBE__
                                   | kMovbe
#endif
#ifdef __F16C__
                                   | kF16c
#endif
#ifdef __FMA__
                                   | kFma
#endif
#ifdef __AVX__
                                   | kAvx
#endif
#ifdef __AVX2__
                                   | kAvx2
#endif
#ifdef __BMI__
                                   | kBmi
#endif
#ifdef __BMI2__
                                   | kBmi2
#endif
#ifdef __LZCNT__
                                   | kLzcnt
#endif
#ifdef __AVX512F__
                                   | kAvx512F
#endif
#ifdef __AVX512CD__
                                   | kAvx512Cd
#endif
#ifdef __AVX512BW__
                                   | kAvx512Bw
#endif
#ifdef __AVX512DQ__
                                   | kAvx512Dq
#endif
#ifdef __AVX512VL__
                                   | kAvx512Vl
#endif
#ifdef __AVX512BF16__
                                   | kAvx512Bf16
#endif
#ifdef __AMX_TILE__
                                   | kAmxTile
#endif
#ifdef __AMX_BF16__
                                   | kAmxBf16
#endif
    ;

// The instructions of each target; each target includes the previous one.
constexpr uint32_t kV3 = kSse42 | kPopcnt | kMovbe | kF16c | kFma | kAvx |
                         kAvx2 | kBmi | kBmi2 | kLzcnt;
constexpr uint32_t kV4 =
    kV3 | kAvx512F | kAvx512Cd | kAvx512Bw | kAvx512Dq | kAvx512Vl;
constexpr uint32_t kV4Bf16 = kV4 | kAvx512Bf16;
constexpr uint32_t kV4Amx = kV4Bf16 | kAmxTile | kAmxBf16;

/// The target and instructions of an emitted step.
struct CompiledFor {
  const char *target; // "cpu:v4", "cuda:sm_90"
  uint32_t instructions;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_INSTRUCTIONS_H
