//===- GemmTyped.cpp - products with narrow results on cpu ----------------===//

#include "runtime/cpu/GemmTyped.h"

#include "runtime/cpu/NarrowRows.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc::gemm {

/// Rows of a block that one thread converts at a time.
constexpr int64_t kConvertRows = 32;

/// Calls f(first row, rows) for all rows, in parallel.
template <typename F>
static void eachRows(Stream &stream, int64_t rows, F &&f) {
  parallelFor(stream, (rows + kConvertRows - 1) / kConvertRows,
              [&](int64_t tile, int64_t) {
                const int64_t first = tile * kConvertRows;
                f(first, std::min(kConvertRows, rows - first));
              });
}

/// Turns row `row` of a block of sums into the final values for `out`: scales
/// it, and adds the bias and the existing values.
static void scaleRow(const TypedProblem &p, float *row, int64_t n,
                     const float *bias, const StoredRows &out) {
  const float left = p.lhsScale ? *p.lhsScale : 1;
  const float right = p.rhsScale ? *p.rhsScale : 1;
  for (int64_t j = 0; j < n; ++j)
    row[j] = row[j] * left * right;
  for (int64_t j = 0; bias && j < n; ++j)
    row[j] += bias[j];
  constexpr int64_t kPiece = 256;
  for (int64_t j0 = 0; p.accumulate && j0 < n; j0 += kPiece) {
    const int64_t columns = std::min(kPiece, n - j0);
    float before[kPiece];
    const StoredRows from = out.shifted(j0);
    if (out.type == DType::F32)
      std::copy_n(from.floats(), columns, before);
    else
      widenRows(from, 1, columns, before, 0);
    for (int64_t j = 0; j < columns; ++j)
      row[j0 + j] += before[j];
  }
}

void runTyped(Stream &stream, const TypedProblem &p, void *scratch) {
  Problem now{};
  now.k = p.k;
  now.accumulate = p.accumulate;
  if (p.out == DType::F32 && !p.scalesSums()) {
    now.m = p.m;
    now.n = p.n;
    now.a = p.a;
    now.b = p.b;
    now.bias = static_cast<const float *>(p.bias);
    now.c = static_cast<float *>(p.c);
    now.ldc = p.ldc;
    return run(stream, now, scratch);
  }
  const NarrowResultScratch bytes(p.m, p.n, p.k);
  char *at = static_cast<char *>(scratch);
  float *block = reinterpret_cast<float *>(at);
  float *bias = reinterpret_cast<float *>(at + bytes.block);
  void *product = at + bytes.block + bytes.bias;
  if (p.scalesSums())
    now.accumulate = false;
  const StoredRows out{p.c, p.ldc, p.out};
  for (int64_t j = 0; j < p.n; j += kNarrowResultColumns) {
    now.n = std::min(kNarrowResultColumns, p.n - j);
    const float *wideBias = nullptr;
    if (p.bias) {
      const StoredRows from = StoredRows{p.bias, 0, p.out}.shifted(j);
      if (p.out == DType::F32)
        std::copy_n(from.floats(), now.n, bias);
      else
        widenRows(from, 1, now.n, bias, 0);
      wideBias = bias;
    }
    now.bias = p.scalesSums() ? nullptr : wideBias;
    for (int64_t i = 0; i < p.m; i += kNarrowResultRows) {
      now.m = std::min(kNarrowResultRows, p.m - i);
      now.a = p.a.at(i, 0);
      now.b = p.b.at(0, j);
      now.c = block;
      now.ldc = now.n;
      const StoredRows to = out.row(i).shifted(j);
      if (now.accumulate)
        eachRows(stream, now.m, [&](int64_t r, int64_t rows) {
          widenRows(to.row(r), rows, now.n, block + r * now.n, now.n);
        });
      run(stream, now, product);
      eachRows(stream, now.m, [&](int64_t r, int64_t rows) {
        for (int64_t i = r; p.scalesSums() && i < r + rows; ++i)
          scaleRow(p, block + i * now.n, now.n, wideBias, to.row(i));
        if (p.out != DType::F32)
          return narrowRows(block + r * now.n, now.n, rows, now.n, to.row(r));
        for (int64_t i = r; i < r + rows; ++i)
          std::copy_n(block + i * now.n, now.n, to.row(i).floats());
      });
    }
  }
}

} // namespace tmc::gemm
