// DoubleProduct.cpp - matrix products in double.

#include "compiler/reference/DoubleProduct.h"

#include <algorithm>
#include <thread>
#include <vector>

using namespace tmc::reference;

namespace {

/// Four doubles: one register, or two where registers are narrower.
using V = double __attribute__((vector_size(32), aligned(8), may_alias));
constexpr int64_t kLanes = 4;
/// Rows and columns of the product in registers: 12 of the 16 registers of AVX2
/// hold sums.
constexpr int64_t kRows = 4, kVectors = 3, kColumns = kVectors * kLanes;
static_assert(kVectors == 3, "multiply() names them");
/// The sizes of packed blocks: a piece of y, as wide as the registers' columns,
/// fits in the first cache (24 KiB), a block of x in the second (192 KiB).
constexpr int64_t kDepth = 256, kHeight = 96, kWidth = 768;
/// The least number of elements, or multiplications, for which a thread pays.
constexpr int64_t kWorthAThread = 1 << 18;

/// Packs columns [p0, p1) of x's rows [0, m), in groups of kRows rows, with
/// zeros after the last row.
void packRows(MatrixView x, int64_t m, int64_t p0, int64_t p1, double *to) {
  for (int64_t i0 = 0; i0 < m; i0 += kRows)
    for (int64_t p = p0; p < p1; ++p)
      for (int64_t i = i0; i < i0 + kRows; ++i)
        *to++ = i < m ? x.data[i * x.rowStep + p * x.columnStep] : 0;
}

/// The same for columns [j0, j1) of y.
void packColumns(MatrixView y, int64_t p0, int64_t p1, int64_t j0, int64_t j1,
                 double *to) {
  for (int64_t j = j0; j < j1; j += kColumns) {
    const int64_t some = std::min(kColumns, j1 - j);
    for (int64_t p = p0; p < p1; ++p, to += kColumns) {
      const double *from = y.data + p * y.rowStep + j * y.columnStep;
      for (int64_t c = 0; c < some; ++c)
        to[c] = from[c * y.columnStep];
      std::fill(to + some, to + kColumns, 0.0);
    }
  }
}

/// sums[kRows][kColumns] = the product of two packed pieces.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "fma", "default")))
#endif
void multiply(const double *x, const double *y, int64_t depth, double *sums) {
  // Named variables: the compiler may keep an array in memory.
  V a[kRows] = {}, b[kRows] = {}, c[kRows] = {};
  for (int64_t p = 0; p < depth; ++p, x += kRows, y += kColumns) {
    const V *right = reinterpret_cast<const V *>(y);
    const V first = right[0], second = right[1], third = right[2];
    for (int64_t i = 0; i < kRows; ++i) {
      a[i] += x[i] * first;
      b[i] += x[i] * second;
      c[i] += x[i] * third;
    }
  }
  V *to = reinterpret_cast<V *>(sums);
  for (int64_t i = 0; i < kRows; ++i, to += kVectors) {
    to[0] = a[i];
    to[1] = b[i];
    to[2] = c[i];
  }
}

int64_t roundedUp(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// A block of the product, by one thread; rows of `out` are `step` elements
/// apart.
void addBlock(double *out, int64_t step, MatrixView x, MatrixView y, int64_t m,
              int64_t k, int64_t n) {
  // Many products are tiny: clearing whole blocks would take longer than they.
  const int64_t mostDepth = std::min(k, kDepth);
  std::vector<double> left(
      size_t(std::min(kHeight, roundedUp(m, kRows)) * mostDepth)),
      right(size_t(std::min(kWidth, roundedUp(n, kColumns)) * mostDepth));
  for (int64_t j0 = 0; j0 < n; j0 += kWidth) {
    const int64_t j1 = std::min(n, j0 + kWidth);
    for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const int64_t p1 = std::min(k, p0 + kDepth), depth = p1 - p0;
      packColumns(y, p0, p1, j0, j1, right.data());
      for (int64_t i0 = 0; i0 < m; i0 += kHeight) {
        const int64_t rows = std::min(kHeight, m - i0);
        MatrixView block = x;
        block.data += i0 * x.rowStep;
        packRows(block, rows, p0, p1, left.data());
        for (int64_t j = j0; j < j1; j += kColumns)
          for (int64_t i = 0; i < rows; i += kRows) {
            alignas(32) double sums[kRows * kColumns];
            multiply(left.data() + i * depth, right.data() + (j - j0) * depth,
                     depth, sums);
            const int64_t height = std::min(kRows, rows - i);
            const int64_t width = std::min(kColumns, j1 - j);
            for (int64_t r = 0; r < height; ++r) {
              double *to = out + (i0 + i + r) * step + j;
              for (int64_t c = 0; c < width; ++c)
                to[c] += sums[r * kColumns + c];
            }
          }
      }
    }
  }
}

} // namespace

void tmc::reference::inParts(
    int64_t count, int64_t work,
    const std::function<void(int64_t, int64_t)> &body) {
  int64_t threads = std::min(work / kWorthAThread, count);
  if (threads > 1) // The number of processors is read from a file.
    threads = std::min<int64_t>(threads, std::thread::hardware_concurrency());
  if (threads <= 1)
    return body(0, count);
  std::vector<std::thread> others;
  auto part = [&](int64_t i) { return count * i / threads; };
  for (int64_t i = 1; i < threads; ++i)
    others.emplace_back([&, i] { body(part(i), part(i + 1)); });
  body(0, part(1));
  for (std::thread &other : others)
    other.join();
}

void tmc::reference::addProduct(double *out, MatrixView x, MatrixView y,
                                int64_t m, int64_t k, int64_t n) {
  // Threads share the longer side, in whole registers.
  const bool cutsRows = m > n;
  const int64_t unit = cutsRows ? kRows : kColumns, all = cutsRows ? m : n;
  inParts((all + unit - 1) / unit, m * k * n, [&](int64_t first, int64_t last) {
    const int64_t begin = first * unit,
                  size = std::min(all, last * unit) - begin;
    MatrixView left = x, right = y;
    if (cutsRows) {
      left.data += begin * x.rowStep;
      addBlock(out + begin * n, n, left, right, size, k, n);
    } else {
      right.data += begin * y.columnStep;
      addBlock(out + begin, n, left, right, m, k, size);
    }
  });
}
