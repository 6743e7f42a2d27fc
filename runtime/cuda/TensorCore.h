//===- TensorCore.h - fragment products, asynchronous copies ----*- C++ -*-===//
//
// The operations of a warp's tensor cores, as functions on values that lanes
// hold. Kernels that use them read the same on a card and in the emulator.
//
//   mma            C[16, 8] += A[16, k] B[k, 8], where a row of A and a column
//                  of B are 32 bytes: k is 8 of tf32, 16 of bf16 or f16, 32 of
//                  fp8
//   loadMatrices   8 x 8 matrices of 2-byte elements from shared memory
//   copyAsync      global to shared memory, behind the thread's back, until
//                  waitGroup says that it is over
//
// In A, B and C, lane l = 4 * g + t holds (byte columns; floats of C):
//
//     A           0..15        16..31     B      column g     C      2t, 2t+1
//     row g       word 0, 4t   word 2     0..15   word 0, 4t  row g   c0, c1
//     row g + 8   word 1, 4t   word 3     16..31  word 1, 4t  row g+8 c2, c3
//
// The layout by bytes is the same for every type. Source: the PTX ISA, "Matrix
// Fragments for mma.m16n8k8" (tf32), "... mma.m16n8k16 with floating point
// type" and "... mma.m16n8k32"; "ldmatrix"; "cp.async", "cp.async.wait_group".
//
// Products are exact. A card adds them and C in f32. The PTX ISA leaves the
// order and the rounding open. The emulator adds them to C one by one, k
// ascending, with each sum rounded to nearest.
//
// All lanes of a warp must call mma and loadMatrices together, in one place of
// the program. No function here orders memory accesses: a barrier is needed
// before loadMatrices reads the stores of another lane. A thread must wait for
// its own copies *before* the barrier after which other threads read them.
//
// Required: sm_80 for mma, sm_89 for fp8, sm_75 for f16; sm_75 for
// loadMatrices. On older cards mma traps (see kHasMma). Below sm_80 copyAsync
// copies at once.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_TENSORCORE_H
#define TMC_RUNTIME_CUDA_TENSORCORE_H

#include "runtime/cuda/Launch.h"
#include "runtime/kernels/Storage.h"

#include <cstdint>

namespace tmc::cuda {

enum class Element { BF16, F16, TF32, E4M3, E5M2 };

/// A lane's part of A, B and C.
struct FragmentA {
  uint32_t words[4];
};
struct FragmentB {
  uint32_t words[2];
};
struct FragmentC {
  float sums[4];
};

#ifdef __CUDA_ARCH__
constexpr int kArchitecture = __CUDA_ARCH__;
#else
constexpr int kArchitecture = 890; // for the host pass, and the emulator
#endif
/// Whether the device of this compilation multiplies elements of a type.
template <Element T>
constexpr bool kHasMma = kArchitecture >=
                         (T == Element::E4M3 || T == Element::E5M2 ? 890
                          : T == Element::F16                      ? 750
                                                                   : 800);

/// Two floats rounded to bf16, `low` in the low half: the order of neighbours
/// in a fragment.
__device__ __forceinline__ uint32_t packBF16(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return uint32_t(narrow<bf16>(low).bits) | uint32_t(narrow<bf16>(high).bits)
                                                << 16;
#endif
}

/// x rounded to TF32, to nearest. Ties go away from zero on a card, and to even
/// elsewhere.
__device__ __forceinline__ float roundTF32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
#else
  return rounded<tf32>(x);
#endif
}

#ifdef TMC_CUDA_EMULATED

constexpr emulator::Format formatOf(Element type) {
  return type == Element::BF16   ? emulator::kBf16
         : type == Element::F16  ? emulator::kF16
         : type == Element::TF32 ? emulator::kTf32
         : type == Element::E4M3 ? emulator::kE4M3
                                 : emulator::kE5M2;
}

template <Element A, Element B = A>
__device__ __forceinline__ void mma(FragmentC &c, const FragmentA &a,
                                    const FragmentB &b) {
  emulator::mma(c.sums, a.words, b.words, formatOf(A), formatOf(B));
}

template <int Count, bool Transposed = false>
__device__ __forceinline__ void loadMatrices(uint32_t (&words)[Count],
                                             const void *row) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  emulator::loadMatrices(words, Count, Transposed, row);
}

template <int Bytes>
__device__ __forceinline__ void copyAsync(void *shared, const void *global,
                                          int valid = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  emulator::copyAsync(shared, global, Bytes, valid);
}
__device__ __forceinline__ void commitGroup() { emulator::commitGroup(); }
template <int Pending> __device__ __forceinline__ void waitGroup() {
  static_assert(Pending >= 0);
  emulator::waitGroup(Pending);
}

#else // a card

/// c += a * b. A and B have the same type, or are both fp8.
template <Element A, Element B = A>
__device__ __forceinline__ void mma(FragmentC &c, const FragmentA &a,
                                    const FragmentB &b) {
  constexpr bool kFp8A = A == Element::E4M3 || A == Element::E5M2;
  constexpr bool kFp8B = B == Element::E4M3 || B == Element::E5M2;
  static_assert(A == B || (kFp8A && kFp8B), "no product of these two types");
#define TMC_MMA(SHAPE, TYPES)                                                  \
  asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPES ".f32 "         \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                \
               "{%0, %1, %2, %3};"                                             \
               : "+f"(c.sums[0]), "+f"(c.sums[1]), "+f"(c.sums[2]),            \
                 "+f"(c.sums[3])                                               \
               : "r"(a.words[0]), "r"(a.words[1]), "r"(a.words[2]),            \
                 "r"(a.words[3]), "r"(b.words[0]), "r"(b.words[1]))
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (A == Element::E4M3 && B == Element::E4M3)
    TMC_MMA("m16n8k32", "e4m3.e4m3");
  if constexpr (A == Element::E4M3 && B == Element::E5M2)
    TMC_MMA("m16n8k32", "e4m3.e5m2");
  if constexpr (A == Element::E5M2 && B == Element::E4M3)
    TMC_MMA("m16n8k32", "e5m2.e4m3");
  if constexpr (A == Element::E5M2 && B == Element::E5M2)
    TMC_MMA("m16n8k32", "e5m2.e5m2");
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (A == Element::BF16)
    TMC_MMA("m16n8k16", "bf16.bf16");
  if constexpr (A == Element::F16)
    TMC_MMA("m16n8k16", "f16.f16");
  if constexpr (A == Element::TF32)
    TMC_MMA("m16n8k8", "tf32.tf32");
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
  // Half of the k range at a time.
  if constexpr (A == Element::F16)
    for (int half = 0; half < 2; ++half)
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                   "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                   : "+f"(c.sums[0]), "+f"(c.sums[1]), "+f"(c.sums[2]),
                     "+f"(c.sums[3])
                   : "r"(a.words[2 * half]), "r"(a.words[2 * half + 1]),
                     "r"(b.words[half]));
#endif
#undef TMC_MMA
#ifdef __CUDA_ARCH__
  if constexpr (!kHasMma<A> || !kHasMma<B>)
    __trap();
#endif
}

/// Loads `Count` matrices of 8 x 8 elements of 2 bytes. `row` of lane 8 * m + r
/// is the address, aligned to 16 bytes, of row r of matrix m. In words[m], lane
/// 4 * g + t gets the elements 2t and 2t + 1 of row g of matrix m (of column g
/// if `Transposed`). All lanes need valid addresses, also those beyond 8 *
/// Count: sm_75 requires it.
template <int Count, bool Transposed = false>
__device__ __forceinline__ void loadMatrices(uint32_t (&words)[Count],
                                             const void *row) {
  static_assert(Count == 1 || Count == 2 || Count == 4);
  const unsigned at = unsigned(__cvta_generic_to_shared(row));
#define TMC_LOAD(HOW, TO, ...)                                                 \
  asm volatile("ldmatrix.sync.aligned.m8n8." HOW ".shared.b16 " TO ";"         \
               : __VA_ARGS__                                                   \
               : "r"(at)                                                       \
               : "memory")
#define TMC_LOADS(HOW)                                                         \
  if constexpr (Count == 1)                                                    \
    TMC_LOAD("x1" HOW, "{%0}, [%1]", "=r"(words[0]));                          \
  if constexpr (Count == 2)                                                    \
    TMC_LOAD("x2" HOW, "{%0, %1}, [%2]", "=r"(words[0]), "=r"(words[1]));      \
  if constexpr (Count == 4)                                                    \
  TMC_LOAD("x4" HOW, "{%0, %1, %2, %3}, [%4]", "=r"(words[0]), "=r"(words[1]), \
           "=r"(words[2]), "=r"(words[3]))
  if constexpr (Transposed) {
    TMC_LOADS(".trans");
  } else {
    TMC_LOADS("");
  }
#undef TMC_LOADS
#undef TMC_LOAD
}

/// Copies `Bytes` bytes between addresses aligned to `Bytes`. The last Bytes -
/// valid bytes become zeros without a read. Until waitGroup returns, no thread
/// may access the destination or write the source.
template <int Bytes>
__device__ __forceinline__ void copyAsync(void *shared, const void *global,
                                          int valid = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned to = unsigned(__cvta_generic_to_shared(shared));
  // Bypasses the first-level cache if the instruction allows it.
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to),
                 "l"(global), "n"(Bytes), "r"(valid)
                 : "memory");
#else
  for (int i = 0; i < Bytes; ++i)
    static_cast<unsigned char *>(shared)[i] =
        i < valid ? static_cast<const unsigned char *>(global)[i]
                  : (unsigned char)(0);
#endif
}

/// Closes the group of this thread's copies since the last group, if any.
__device__ __forceinline__ void commitGroup() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the `Pending` youngest groups of this thread are
/// unfinished. Copies outside of closed groups aren't waited for.
template <int Pending> __device__ __forceinline__ void waitGroup() {
  static_assert(Pending >= 0);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

#endif // a card

} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_TENSORCORE_H
