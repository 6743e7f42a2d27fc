#include "driver/merge/MergeRows.h"

#include "runtime/kernels/Storage.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

using namespace tmc;

/// Columns whose sums a thread holds at a time: 32 KiB of doubles.
static constexpr int64_t kColumns = 4096;

namespace {

double valueOf(float x) { return double(x); }
double valueOf(double x) { return x; }
double valueOf(bf16 x) { return double(widen(x)); }
double valueOf(f16 x) { return double(widen(x)); }

/// x as a float, rounded to odd: a later rounding to a type with at least two
/// bits less is then that of x itself.
/// Source: Boldo, Melquiond, "Emulation of a FMA and Correctly Rounded Sums:
/// Proved Algorithms Using Rounding to Odd" (IEEE TC 2008).
float oddFloat(double x) {
  const float nearest = float(x);
  if (!(double(nearest) != x) || std::isnan(x))
    return nearest;
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof bits);
  if (std::abs(double(nearest)) > std::abs(x))
    --bits; // Toward zero.
  bits |= 1;
  float odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

void round(double x, float &to) { to = float(x); }
void round(double x, double &to) { to = x; }
template <typename T> void round(double x, T &to) {
  to = narrow<T>(oddFloat(x));
}

/// Calls f with a value of the type.
template <typename F> void withMergeable(DType type, F &&f) {
  switch (type) {
  case DType::F32:
    return f(float{});
  case DType::F64:
    return f(double{});
  case DType::BF16:
    return f(bf16{});
  default:
    return f(f16{});
  }
}

/// sums[j] += the product at (row, column + j).
void addProduct(const LowRank &product, int64_t row, int64_t column,
                int64_t count, double *sums) {
  for (int64_t k = 0; k < product.rank; ++k) {
    const double left = double(product.left[size_t(row * product.rank + k)]);
    const float *right = product.right.data() + k * product.columns + column;
    for (int64_t j = 0; j < count; ++j)
      sums[j] += left * double(right[j]);
  }
}

template <typename In, typename Out>
int64_t mergePart(const In *in, Out *out, int64_t begin, int64_t count,
                  const LowRank *product) {
  double sums[kColumns];
  int64_t tooLarge = 0;
  for (int64_t at = 0; at < count;) {
    int64_t some = std::min(count - at, kColumns);
    if (product) {
      const int64_t row = (begin + at) / product->columns,
                    column = (begin + at) % product->columns;
      some = std::min(some, product->columns - column);
      std::fill_n(sums, some, 0.0);
      addProduct(*product, row, column, some, sums);
    }
    for (int64_t j = 0; j < some; ++j) {
      const double w = valueOf(in[at + j]);
      const double sum = product ? w + product->scale * sums[j] : w;
      round(sum, out[at + j]);
      tooLarge += std::isfinite(sum) && !std::isfinite(valueOf(out[at + j]));
    }
    at += some;
  }
  return tooLarge;
}

} // namespace

void tmc::widenTo(DType type, const void *values, int64_t count, float *out) {
  withMergeable(type, [&](auto like) {
    const auto *from = static_cast<const decltype(like) *>(values);
    for (int64_t i = 0; i < count; ++i)
      out[i] = float(valueOf(from[i]));
  });
}

int64_t tmc::mergeRows(DType inType, const void *in, DType outType, void *out,
                       int64_t begin, int64_t count, const LowRank *product,
                       int threads) {
  const int64_t share = (count + threads - 1) / threads;
  std::vector<int64_t> tooLarge(static_cast<size_t>(threads));
  const auto work = [&](int64_t thread) {
    const int64_t from = thread * share, to = std::min(count, from + share);
    if (from >= to)
      return;
    withMergeable(inType, [&](auto inLike) {
      withMergeable(outType, [&](auto outLike) {
        tooLarge[size_t(thread)] =
            mergePart(static_cast<const decltype(inLike) *>(in) + from,
                      static_cast<decltype(outLike) *>(out) + from,
                      begin + from, to - from, product);
      });
    });
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(work, thread);
  work(0);
  int64_t all = 0;
  for (std::thread &other : others)
    other.join();
  for (int64_t each : tooLarge)
    all += each;
  return all;
}
