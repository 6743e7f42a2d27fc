//===- GemmPack.cpp - packing narrow operands of products -----------------===//

#include "runtime/cpu/GemmPack.h"

#include "runtime/cpu/FrozenCodes.h"
#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/TransposeBlock.h"
#include "runtime/kernels/Matmul.h"

#include <algorithm>

namespace tmc::gemm {

using simd::kWidth;

namespace {

/// Transposes rows of kWidth contiguous elements: kWidth rows of `rows`
/// elements each, `toStride` apart.
template <int Rows, bool Narrow, typename T>
void turn(const T *from, int64_t stride, float *to, int64_t toStride) {
  alignas(64) float block[Rows * kWidth];
  for (int i = 0; i < Rows; ++i)
    widenRow<kWidth>(from + i * stride, block + i * kWidth);
  simd::transposeBlock<Rows, Narrow>(block, kWidth, to, toStride);
}

template <typename T>
void packPanelA(const T *from, int64_t rowStride, int64_t colStride,
                int64_t rows, int64_t k, float *to) {
  int64_t p = 0;
  if (rows == kPanelM && colStride == 1)
    for (; p + kWidth <= k; p += kWidth)
      turn<kPanelM, true>(from + p, rowStride, to + p * kPanelM, kPanelM);
  for (; p < k; ++p) {
    const T *column = from + p * colStride;
    if (rowStride == 1)
      widenRow(column, rows, to + p * rows);
    else
      for (int64_t i = 0; i < rows; ++i)
        to[p * rows + i] = widen(column[i * rowStride]);
  }
}

/// Packs `panels` times kPanelM rows whose columns are contiguous, in the order
/// of memory. A store is a whole vector: what is beyond its panel's column is
/// overwritten by the next column.
template <typename T>
void packColumns(const T *from, int64_t colStride, int64_t panels, int64_t k,
                 float *to) {
  static_assert(kPanelM <= kWidth);
  for (int64_t p = 0; p + 1 < k; ++p) {
    const T *column = from + p * colStride;
    __builtin_prefetch(column + 2 * colStride);
    for (int64_t i = 0; i < panels; ++i)
      widenRow<kWidth>(column + i * kPanelM, to + (i * k + p) * kPanelM);
  }
  // The last column is followed by no other one that could be read.
  for (int64_t i = 0; i < panels; ++i)
    widenRow(from + (k - 1) * colStride + i * kPanelM, kPanelM,
             to + (i * k + k - 1) * kPanelM);
}

template <typename T>
void packPanelB(const T *from, int64_t rowStride, int64_t colStride, int64_t k,
                int64_t n, float *to) {
  int64_t p = 0;
  if (rowStride == 1 && n == kPanelN)
    for (; p + kWidth <= k; p += kWidth)
      for (int j = 0; j < kPanelN; j += kWidth)
        turn<kWidth, false>(from + p + j * colStride, colStride,
                            to + p * kPanelN + j, kPanelN);
  for (; p < k; ++p) {
    const T *row = from + p * rowStride;
    if (colStride == 1)
      widenRow(row, n, to + p * kPanelN);
    else
      for (int64_t j = 0; j < n; ++j)
        to[p * kPanelN + j] = widen(row[j * colStride]);
    std::fill(to + p * kPanelN + n, to + (p + 1) * kPanelN, 0.0f);
  }
}

/// Multiplies `count` rows of packed numbers, `width` each and `stride` apart,
/// by their scales: number (i, j) by the scale of element (i, j) of a matrix.
void scalePacked(const BlockScales &scales, int64_t count, int64_t width,
                 int64_t stride, float *packed) {
  constexpr int64_t kMost = std::max(kPanelM, kPanelN);
  float factors[kMost];
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || (scales.row + i) % scales.rows == 0)
      for (int64_t j = 0; j < width; ++j)
        factors[j] = scales.at(i, j);
    for (int64_t j = 0; j < width; ++j)
      packed[i * stride + j] *= factors[j];
  }
}

/// Calls f with a value of the type as which the elements are read.
template <typename F> void withElements(const Matrix &matrix, F &&f) {
  if (matrix.type != DType::F32)
    return withStorage(matrix.type, f);
  if (matrix.readAs == DType::TF32)
    return f(ReadAs<tf32>{});
  if (matrix.readAs == DType::F16)
    return f(ReadAs<f16>{});
  f(ReadAs<bf16>{});
}

} // namespace

void packNarrowA(const Matrix &a, int64_t m, int64_t k, float *to) {
  withElements(a, [&](auto like) {
    using T = decltype(like);
    int64_t i = 0;
    if (a.rowStride == 1 && a.colStride != 1 && k > 0) {
      const int64_t panels = m / kPanelM;
      packColumns(static_cast<const T *>(a.data), a.colStride, panels, k, to);
      i = panels * kPanelM;
    }
    for (; i < m; i += kPanelM)
      packPanelA(static_cast<const T *>(a.at(i, 0).data), a.rowStride,
                 a.colStride, std::min<int64_t>(kPanelM, m - i), k, to + i * k);
  });
  for (int64_t i = 0; a.scales.data && i < m; i += kPanelM) {
    const int64_t rows = std::min<int64_t>(kPanelM, m - i);
    scalePacked(a.at(i, 0).scales.transposed(), k, rows, rows, to + i * k);
  }
}

void packNarrowB(const Matrix &b, int64_t k, int64_t n, float *to) {
  withElements(b, [&](auto like) {
    using T = decltype(like);
    packPanelB(static_cast<const T *>(b.data), b.rowStride, b.colStride, k, n,
               to);
  });
  if (b.scales.data)
    scalePacked(b.scales, k, n, kPanelN, to);
}

template <typename T>
static Matrix decodedAs(const Matrix &b, int64_t k, int64_t n, T *panel) {
  Matrix to{panel, kPanelN, 1, b.type};
  if (b.colStride == 1) {
    for (int64_t p = 0; p < k; ++p)
      frozen::decode(*b.stored, b.first + p * b.rowStride, n,
                     panel + p * kPanelN);
    return to;
  }
  to = Matrix{panel, 1, k, b.type};
  for (int64_t j = 0; j < n; ++j)
    frozen::decode(*b.stored, b.first + j * b.colStride, k, panel + j * k);
  return to;
}

static_assert(kDecodedBytes == kGemmDepth * kPanelN * 4);

Matrix decoded(const Matrix &b, int64_t k, int64_t n, void *panel) {
  if (b.type == DType::BF16)
    return decodedAs(b, k, n, static_cast<bf16 *>(panel));
  if (b.type == DType::F16)
    return decodedAs(b, k, n, static_cast<f16 *>(panel));
  return decodedAs(b, k, n, static_cast<float *>(panel));
}

} // namespace tmc::gemm
