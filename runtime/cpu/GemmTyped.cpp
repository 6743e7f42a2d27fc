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

void runTyped(Stream &stream, const TypedProblem &p, void *scratch) {
  Problem now{};
  now.k = p.k;
  now.accumulate = p.accumulate;
  if (p.out == DType::F32) {
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
  const StoredRows out{p.c, p.ldc, p.out};
  for (int64_t j = 0; j < p.n; j += kNarrowResultColumns) {
    now.n = std::min(kNarrowResultColumns, p.n - j);
    if (p.bias) {
      widenRows(StoredRows{p.bias, 0, p.out}.shifted(j), 1, now.n, bias, 0);
      now.bias = bias;
    }
    for (int64_t i = 0; i < p.m; i += kNarrowResultRows) {
      now.m = std::min(kNarrowResultRows, p.m - i);
      now.a = p.a.at(i, 0);
      now.b = p.b.at(0, j);
      now.c = block;
      now.ldc = now.n;
      const StoredRows to = out.row(i).shifted(j);
      if (p.accumulate)
        eachRows(stream, now.m, [&](int64_t r, int64_t rows) {
          widenRows(to.row(r), rows, now.n, block + r * now.n, now.n);
        });
      run(stream, now, product);
      eachRows(stream, now.m, [&](int64_t r, int64_t rows) {
        narrowRows(block + r * now.n, now.n, rows, now.n, to.row(r));
      });
    }
  }
}

} // namespace tmc::gemm
