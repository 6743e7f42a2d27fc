//===- GemmTyped.cpp - products of narrow operands on cpu -----------------===//

#include "runtime/cpu/GemmTyped.h"

#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/Simd.h"
#include "runtime/kernels/Storage.h"

#include <algorithm>

namespace tmc::gemm {
namespace {

/// Rows of a block that one thread converts at a time.
constexpr int64_t kConvertRows = 32;

/// Calls f with a null pointer to the type that holds a narrow `type`.
template <typename F> void withStorage(DType type, F &&f) {
  switch (type) {
  case DType::BF16:
    return f(static_cast<bf16 *>(nullptr));
  case DType::F16:
    return f(static_cast<f16 *>(nullptr));
  case DType::F8E4M3:
    return f(static_cast<f8e4m3 *>(nullptr));
  case DType::F8E5M2:
    return f(static_cast<f8e5m2 *>(nullptr));
  default:
    __builtin_unreachable(); // Matmul::takes()
  }
}

template <typename T> void widenRow(const T *from, int64_t count, float *to) {
  constexpr int N = simd::kWidth;
  int64_t i = 0;
  for (; i + N <= count; i += N)
    storeLanes<N>(to + i, loadLanes<N>(from + i));
  for (; i < count; ++i)
    to[i] = widen(from[i]);
}

template <typename T> void narrowRow(const float *from, int64_t count, T *to) {
  constexpr int N = simd::kWidth;
  int64_t i = 0;
  for (; i + N <= count; i += N)
    storeLanes<N>(to + i, loadLanes<N>(from + i));
  for (; i < count; ++i)
    to[i] = narrow<T>(from[i]);
}

/// A matrix of any type as it is stored: rows of contiguous elements.
struct Stored {
  const void *data;
  DType type;
  int64_t stride; // from row to row, in elements

  const char *at(int64_t row, int64_t column) const {
    return static_cast<const char *>(data) +
           (row * stride + column) * sizeOf(type);
  }
};

/// `rows` x `cols` of `from`, from (row, column) on, as floats: in place, or
/// widened to `block`.
Matrix floatsOf(Stream &stream, const Stored &from, int64_t row, int64_t column,
                int64_t rows, int64_t cols, float *block) {
  if (from.type == DType::F32)
    return {reinterpret_cast<const float *>(from.at(row, column)), from.stride,
            1};
  withStorage(from.type, [&](auto *storage) {
    using T = std::remove_pointer_t<decltype(storage)>;
    parallelFor(stream, (rows + kConvertRows - 1) / kConvertRows,
                [&](int64_t tile, int64_t) {
                  const int64_t end = std::min(rows, (tile + 1) * kConvertRows);
                  for (int64_t r = tile * kConvertRows; r < end; ++r)
                    widenRow(
                        reinterpret_cast<const T *>(from.at(row + r, column)),
                        cols, block + r * cols);
                });
  });
  return {block, cols, 1};
}

/// The same rows and columns as the product reads them.
Matrix transposed(Matrix matrix, bool isTransposed) {
  if (isTransposed)
    std::swap(matrix.rowStride, matrix.colStride);
  return matrix;
}

/// Rounds rows x cols of `block` into `to`.
void narrowBlock(Stream &stream, const float *block, int64_t rows, int64_t cols,
                 const Stored &to) {
  withStorage(to.type, [&](auto *storage) {
    using T = std::remove_pointer_t<decltype(storage)>;
    parallelFor(stream, (rows + kConvertRows - 1) / kConvertRows,
                [&](int64_t tile, int64_t) {
                  const int64_t end = std::min(rows, (tile + 1) * kConvertRows);
                  for (int64_t r = tile * kConvertRows; r < end; ++r)
                    narrowRow(
                        block + r * cols, cols,
                        reinterpret_cast<T *>(const_cast<char *>(to.at(r, 0))));
                });
  });
}

/// The product of matrices that Params describes, less its batch.
class Product {
public:
  Product(Stream &stream, const Matmul::Params &params, void *scratch)
      : stream(stream), p(params) {
    const TypedGemmScratch bytes(p);
    char *at = static_cast<char *>(scratch);
    auto take = [&](int64_t size) {
      float *piece = reinterpret_cast<float *>(at);
      at += size;
      return piece;
    };
    lhsBlock = take(bytes.lhs);
    rhsBlock = take(bytes.rhs);
    outBlock = take(bytes.out);
    biasBlock = take(bytes.bias);
    packed = take(bytes.product);
  }

  void run(Stored lhs, Stored rhs, const void *bias, Stored out,
           bool accumulate) {
    for (int64_t i = 0; i < p.m; i += kTypedBlock)
      for (int64_t j = 0; j < p.n; j += kTypedBlock)
        block(lhs, rhs, bias, out, accumulate, i, j);
  }

private:
  /// The block of out at (i, j).
  void block(const Stored &lhs, const Stored &rhs, const void *bias,
             const Stored &out, bool accumulate, int64_t i, int64_t j) {
    Problem now{};
    now.m = std::min(kTypedBlock, p.m - i);
    now.n = std::min(kTypedBlock, p.n - j);
    const Stored to{out.at(i, j), out.type, out.stride};
    const bool inPlace = out.type == DType::F32;
    if (!inPlace && accumulate)
      floatsOf(stream, to, 0, 0, now.m, now.n, outBlock);
    now.c = inPlace ? reinterpret_cast<float *>(const_cast<char *>(to.at(0, 0)))
                    : outBlock;
    now.ldc = inPlace ? out.stride : now.n;
    if (bias)
      now.bias =
          floatsOf(stream, {bias, out.type, 0}, 0, j, 1, now.n, biasBlock).data;
    for (int64_t s = 0; s < p.k || s == 0; s += kTypedBlock) {
      now.k = std::min(kTypedBlock, p.k - s);
      now.a = p.transposeLhs
                  ? floatsOf(stream, lhs, s, i, now.k, now.m, lhsBlock)
                  : floatsOf(stream, lhs, i, s, now.m, now.k, lhsBlock);
      now.a = transposed(now.a, p.transposeLhs);
      now.b = p.transposeRhs
                  ? floatsOf(stream, rhs, j, s, now.n, now.k, rhsBlock)
                  : floatsOf(stream, rhs, s, j, now.k, now.n, rhsBlock);
      now.b = transposed(now.b, p.transposeRhs);
      now.accumulate = accumulate || s > 0;
      gemm::run(stream, now, packed);
      now.bias = nullptr;
    }
    if (!inPlace)
      narrowBlock(stream, outBlock, now.m, now.n, to);
  }

  Stream &stream;
  const Matmul::Params &p;
  float *lhsBlock, *rhsBlock, *outBlock, *biasBlock, *packed;
};

} // namespace

void runTyped(Stream &stream, const Matmul::Params &p, const void *lhs,
              const void *rhs, const void *bias, void *out, void *scratch,
              bool accumulate) {
  Product product(stream, p, scratch);
  auto item = [](const void *base, DType type, int64_t index, int64_t elements,
                 int64_t stride) {
    return Stored{static_cast<const char *>(base) +
                      index * elements * sizeOf(type),
                  type, stride};
  };
  for (int64_t b = 0; b < p.batch; ++b)
    product.run(item(lhs, p.lhs, b, p.m * p.k, p.transposeLhs ? p.m : p.k),
                item(rhs, p.rhs, b, p.k * p.n, p.transposeRhs ? p.k : p.n),
                bias, item(out, p.out, b, p.m * p.n, p.n), accumulate);
}

} // namespace tmc::gemm
