//===- TensorCore.cpp - mma, ldmatrix and cp.async of a warp --------------===//

#include "test/cuda/emulator/TensorCore.h"

#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Schedule.h"
#include "test/cuda/emulator/Shadow.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tmc::emulator {

#define TMC_HERE reinterpret_cast<uintptr_t>(__builtin_return_address(0))

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

constexpr int kRows = 16, kColumns = 8, kRowBytes = 32;

struct Product {
  float *c;
  const uint32_t *a, *b;
  Format typeOfA, typeOfB;
};

int bytesOf(Format f) { return (f.exponentBits + f.fractionBits + 8) / 8; }
/// tf32 is kept in 4 bytes, of which it doesn't use the lowest bits.
constexpr int kUnusedOfTf32 = 13;
bool isTf32(Format f) { return f.exponentBits == 8 && f.fractionBits == 10; }

float elementOf(Format f, const unsigned char *row, int k) {
  uint32_t bits = 0;
  if (isTf32(f)) {
    std::memcpy(&bits, row + 4 * k, 4);
    return decode(f, bits >> kUnusedOfTf32);
  }
  std::memcpy(&bits, row + bytesOf(f) * k, size_t(bytesOf(f)));
  return decode(f, bits);
}

void multiply(void *const *lanes) {
  auto of = [&](int lane) -> Product & {
    return *static_cast<Product *>(lanes[lane]);
  };
  unsigned char a[kRows][kRowBytes], b[kColumns][kRowBytes];
  for (int lane = 0; lane < kWarp; ++lane) {
    const int group = lane / 4, at = lane % 4 * 4;
    for (int half = 0; half < 2; ++half) {
      for (int lower = 0; lower < 2; ++lower)
        std::memcpy(a[group + 8 * lower] + 16 * half + at,
                    &of(lane).a[2 * half + lower], 4);
      std::memcpy(b[group] + 16 * half + at, &of(lane).b[half], 4);
    }
  }
  const Format left = of(0).typeOfA, right = of(0).typeOfB;
  const int depth = isTf32(left) ? 8 : kRowBytes / bytesOf(left);
  float x[kRows][kRowBytes], y[kColumns][kRowBytes];
  for (int k = 0; k < depth; ++k) {
    for (int i = 0; i < kRows; ++i)
      x[i][k] = elementOf(left, a[i], k);
    for (int j = 0; j < kColumns; ++j)
      y[j][k] = elementOf(right, b[j], k);
  }
  for (int lane = 0; lane < kWarp; ++lane)
    for (int e = 0; e < 4; ++e) {
      const int row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
      float sum = of(lane).c[e];
      for (int k = 0; k < depth; ++k)
        sum = __builtin_fmaf(x[row][k], y[column][k], sum);
      of(lane).c[e] = sum;
    }
}

bool hasMoreDigits(Format f, const uint32_t *words, int count) {
  uint32_t bits = 0;
  for (int i = 0; i < count; ++i)
    bits |= words[i];
  return isTf32(f) && bits % (1u << kUnusedOfTf32) != 0;
}

} // namespace

__attribute__((noinline)) void mma(float (&c)[4], const uint32_t (&a)[4],
                                   const uint32_t (&b)[2], Format typeOfA,
                                   Format typeOfB) {
  const uintptr_t pc = TMC_HERE;
  if (hasMoreDigits(typeOfA, a, 4) || hasMoreDigits(typeOfB, b, 2))
    report(FaultKind::Warp, pc,
           "an operand of mma isn't rounded to tf32: its lowest 13 bits aren't "
           "zeros");
  Product own{c, a, b, typeOfA, typeOfB};
  warpTogether("mma", &own, multiply, pc);
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

namespace {

struct Matrices {
  uint32_t *words;
  int count;
  bool transposed;
  unsigned char row[16];
};

void distribute(void *const *lanes) {
  auto of = [&](int lane) -> Matrices & {
    return *static_cast<Matrices *>(lanes[lane]);
  };
  for (int lane = 0; lane < kWarp; ++lane)
    for (int m = 0; m < of(lane).count; ++m)
      for (int e = 0; e < 2; ++e) {
        int row = lane / 4, column = lane % 4 * 2 + e;
        if (of(lane).transposed)
          std::swap(row, column);
        std::memcpy(reinterpret_cast<char *>(&of(lane).words[m]) + 2 * e,
                    of(8 * m + row).row + 2 * column, 2);
      }
}

std::string misalignedText(const char *what, uintptr_t at, int bytes) {
  return std::string(what) + " needs an address that is a multiple of " +
         std::to_string(bytes) + "; this one leaves " +
         std::to_string(at % uintptr_t(bytes));
}

} // namespace

__attribute__((noinline)) void loadMatrices(uint32_t *words, int count,
                                            bool transposed, const void *row) {
  const uintptr_t pc = TMC_HERE, at = reinterpret_cast<uintptr_t>(row);
  Matrices own{words, count, transposed, {}};
  std::memset(own.row, 0xff, sizeof own.row);
  if (at % sizeof own.row) {
    report(FaultKind::Misaligned, pc,
           misalignedText("a row of ldmatrix", at, sizeof own.row));
  } else if (!isShared(at)) {
    report(FaultKind::OutOfBounds, pc,
           "a row of ldmatrix isn't in shared memory");
  } else if (laneId() < 8 * count) {
    touch(at, sizeof own.row, Touch::Read, pc);
    std::memcpy(own.row, row, sizeof own.row);
  }
  warpTogether(transposed   ? "ldmatrix.trans"
               : count == 1 ? "ldmatrix.x1"
               : count == 2 ? "ldmatrix.x2"
                            : "ldmatrix.x4",
               &own, distribute, pc);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {

struct Copy {
  void *to;
  const void *from;
  int bytes, valid;
  uint64_t group;
  uintptr_t pc;
  unsigned char value[16];
};

struct Copies {
  uint32_t serial = 0; // of the block that they are of
  uint64_t closed = 0; // groups
  std::vector<Copy> underWay;
};

/// Of the thread that runs.
Copies &copies() {
  static auto *all = new std::vector<Copies>(kMostThreads);
  Copies &own = (*all)[self->thread];
  if (own.serial != self->serial) {
    own.serial = self->serial;
    own.closed = 0;
    own.underWay.clear();
  }
  return own;
}

void finish(const Copy &copy) {
  // Read at any moment until now.
  if (copy.valid > 0) {
    const auto from = reinterpret_cast<uintptr_t>(copy.from);
    touch(from, size_t(copy.valid), Touch::Read, copy.pc);
    if (std::memcmp(copy.from, copy.value, size_t(copy.valid)) != 0)
      report(FaultKind::Race, copy.pc,
             "what cp.async reads was changed before it was waited for");
  }
  std::memcpy(copy.to, copy.value, size_t(copy.bytes));
  finishCopy(reinterpret_cast<uintptr_t>(copy.to), size_t(copy.bytes), copy.pc);
}

} // namespace

__attribute__((noinline)) void copyAsync(void *to, const void *from, int bytes,
                                         int valid) {
  const uintptr_t pc = TMC_HERE, into = reinterpret_cast<uintptr_t>(to),
                  out = reinterpret_cast<uintptr_t>(from);
  if (into % uintptr_t(bytes) || out % uintptr_t(bytes)) {
    report(FaultKind::Misaligned, pc,
           misalignedText("cp.async", into % uintptr_t(bytes) ? into : out,
                          bytes));
    return;
  }
  if (!isShared(into) || (valid != 0 && !isDevice(out)) || valid < 0 ||
      valid > bytes) {
    report(FaultKind::OutOfBounds, pc,
           !isShared(into)              ? "cp.async writes shared memory only"
           : valid < 0 || valid > bytes ? "cp.async reads at most its size"
                                        : "cp.async reads device memory only");
    return;
  }
  Copy copy{to, from, bytes, valid, copies().closed, pc, {}};
  if (valid > 0 && !touch(out, size_t(valid), Touch::Read, pc))
    return;
  std::memcpy(copy.value, from, size_t(valid));
  if (startCopy(into, size_t(bytes), pc))
    copies().underWay.push_back(copy);
}

void commitGroup() { ++copies().closed; }

void waitGroup(int pending) {
  Copies &own = copies();
  size_t kept = 0;
  for (const Copy &copy : own.underWay)
    if (copy.group + uint64_t(pending) < own.closed)
      finish(copy);
    else
      own.underWay[kept++] = copy;
  own.underWay.resize(kept);
}

} // namespace tmc::emulator
