//===- Row.h - a row in the body of a fused kernel --------------*- C++ -*-===//
//
// A fused kernel's body is a function of a row. For each row it makes passes
// over the columns; each pass is a lambda over `Columns<N>`, N consecutive
// columns. For instance, x - mean(x):
//
//     const float *x = x_ + row.index * 768;
//     const auto sums = row.template reduce<Sum>([&](auto c) {
//       return results(c.load(x));
//     });
//     const float mean = sums[0] * (1.0f / 768.0f);
//     row.each([&](auto c) { c.store(y, c.load(x) - c.spread(mean)); });
//
// On the cpu a row is walked by one thread, in vectors; on cuda by the threads
// of a warp or of a block, each of which runs the body.
//
// A reduction has a fixed tree. On the cpu: column c belongs to lane c % 64;
// lanes add up in order of columns; then the upper half of the lanes is added
// to the lower half, until one is left. The width of a vector has no influence.
// On cuda: column c belongs to the thread that loads it, in order; then lanes,
// threads of a warp and warps combine in halves.
//
// A sum over rows has a fixed tree, too: a tile's rows in order, then the
// tiles. On the cpu, tiles are added in order. On cuda, lane l of a warp adds
// the tiles l, l + 32, ..., and then lanes combine in halves. If rows are a
// warp's, warp w of a block adds the rows w, w + 8, ... of a tile, and then the
// warps are added in order. While a tile of cuda runs, its sums are in
// registers if they fit: in each row a thread has the same columns.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_ROW_H
#define TMC_RUNTIME_KERNELS_ROW_H

#include "runtime/kernels/Draws.h"
#include "runtime/kernels/FusedShape.h"
#include "runtime/kernels/Math.h"
#include "runtime/kernels/RowEnd.h"
#include "runtime/kernels/Storage.h"

#include <type_traits>

namespace tmc {

//===----------------------------------------------------------------------===//
// Kinds of reductions, and several of them at once
//===----------------------------------------------------------------------===//

struct Sum {
  static constexpr float init = 0;
  template <typename V> TMC_HD static V combine(V a, V b) { return a + b; }
};
struct Max {
  static constexpr float init = -__builtin_inff();
  template <typename V> TMC_HD static V combine(V a, V b) { return max(a, b); }
};
struct Min {
  static constexpr float init = __builtin_inff();
  template <typename V> TMC_HD static V combine(V a, V b) { return min(a, b); }
};

/// The values of a reducing pass for each element, and the reduced values.
template <typename V, int N> struct Results {
  V v[N];
  TMC_HD V operator[](int i) const { return v[i]; }
};
template <typename V, typename... Vs>
TMC_HD TMC_INLINE Results<V, 1 + sizeof...(Vs)> results(V first, Vs... rest) {
  return {{first, rest...}};
}

template <typename... Kinds> struct Combine {
  static constexpr int count = sizeof...(Kinds);
  /// The initial value of entry k.
  TMC_HD static constexpr float init(int k) {
    float value = 0;
    int i = 0;
    ((i++ == k ? void(value = Kinds::init) : void()), ...);
    (void)k, (void)i;
    return value;
  }
  /// Combines two numbers of entry k.
  TMC_HD static TMC_INLINE float one(int k, float a, float b) {
    int i = 0;
    ((i++ == k ? void(a = Kinds::combine(a, b)) : void()), ...);
    (void)k, (void)i, (void)b;
    return a;
  }
  /// Combines entry i by kind i.
  template <typename V> TMC_HD static TMC_INLINE void into(V *acc, const V *v) {
    int i = 0;
    ((acc[i] = Kinds::combine(acc[i], v[i]), ++i), ...);
  }
  template <typename V> TMC_HD static TMC_INLINE void start(V *acc) {
    int i = 0;
    ((acc[i++] = splat<lanesOf<V>>(Kinds::init)), ...);
  }
};

//===----------------------------------------------------------------------===//
// Partial sums over rows
//===----------------------------------------------------------------------===//

/// The place of a tile's sums over its rows.
struct Sums {
  float *partials = nullptr; // of this row of tiles; of all when finishing
  FusedTiling tiling{};
  int columnSums = 0;

  TMC_HD float *column(int k) const { return partials + k * tiling.paddedCols; }
  TMC_HD float *total(int k) const {
    return partials + columnSums * tiling.paddedCols + k;
  }
};

#ifdef TMC_CUDA
/// `Count` values of each column of a row in registers, of a thread that walks
/// its columns in `Steps` steps of `Width`, and up to one more.
template <int Count, int Steps, int Width> struct ColumnRegisters {
  struct Column {
    const ColumnRegisters &registers;
    int k;
  };
  TMC_HD Column column(int k) const { return {*this, k}; }

  // Mutable as memory behind a pointer is.
  mutable Lanes<float, Width> columns[Count > 0 ? Count : 1]
                                     [Steps > 0 ? Steps : 1];
  mutable float tails[Count > 0 ? Count : 1];
};

/// A tile's sums over its rows in registers.
template <int ColumnSums, int Totals, int Steps, int Width>
struct RegisterSums : ColumnRegisters<ColumnSums, Steps, Width> {
  struct Total {
    const RegisterSums &sums;
    int k;
  };
  TMC_HD Total total(int k) const { return {*this, k}; }
  mutable float totals[Totals > 0 ? Totals : 1];
};
#endif

#ifdef TMC_CUDA
/// Waits until the threads of a warp have finished their reads so far.
TMC_HD TMC_INLINE void settleLines() {
#if defined(__CUDA_ARCH__) || defined(TMC_CUDA_EMULATED)
  __syncwarp();
#endif
}
/// Combines the parts of a warp's threads in halves; all get the result.
template <typename Kind, typename V> TMC_HD V overLines(V part) {
#if defined(__CUDA_ARCH__) || defined(TMC_CUDA_EMULATED)
  for (int offset = 16; offset > 0; offset /= 2) {
    V other = part;
    if constexpr (lanesOf<V> == 1) {
      other = __shfl_xor_sync(0xffffffffu, part, offset);
    } else {
      for (int i = 0; i < lanesOf<V>; ++i)
        other[i] = __shfl_xor_sync(0xffffffffu, part[i], offset);
    }
    part = Kind::combine(part, other);
  }
#endif
  return part;
}
#endif

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// N columns of a row, from `at` on. Pointer arguments point at column 0. On
/// cuda, `step` counts a thread's columns. With `Lines`, so many threads have
/// the same columns; they share the work of totals, and the first one stores.
template <int N, bool Aligned = false, int Lines = 1> struct Columns {
  int64_t at;
  int step = 0;
  int line = 0;

  template <typename T> TMC_HD TMC_INLINE auto load(const T *row) const {
    askAhead<0>(row);
    return loadLanes<N, Aligned>(row + at);
  }
#ifdef TMC_CUDA
  template <typename Column>
  TMC_HD TMC_INLINE auto load(const Column &column) const
      -> decltype(void(column.registers), Floats<N>()) {
    return inRegisters(column);
  }
#endif
  template <typename T, typename V>
  TMC_HD TMC_INLINE void store(T *row, V value) const {
    askAhead<1>(row);
#ifdef TMC_CUDA
    if constexpr (Lines > 1) {
      settleLines(); // `row` may be an operand's place that all of them read.
      if (line != 0)
        return;
    }
#endif
    storeLanes<N, Aligned>(row + at, value);
  }
  /// store() of values that are bf16 numbers already.
  template <typename V>
  TMC_HD TMC_INLINE void storeRounded(bf16 *row, V value) const {
#ifdef TMC_CUDA
    store(row, value);
#else
    askAhead<1>(row);
    storeUpper<N>(row + at, value);
#endif
  }
  /// Elements at[i] of a table, one by one, for views in which the columns
  /// aren't contiguous in memory.
  template <typename T>
  TMC_HD TMC_INLINE auto gather(const T *table, Longs<N> index) const {
    if constexpr (N == 1) {
      return loadLanes<1>(table + index);
    } else {
      decltype(loadLanes<N>(table)) r{};
      for (int i = 0; i < N; ++i) {
        auto x = loadLanes<1>(table + index[i]);
#ifndef TMC_PACKED_LANES
        if constexpr (sizeof(x) == 1)
          r[i] = -int(x);
        else
#endif
          r[i] = x;
      }
      return r;
    }
  }
  /// Element `index` of a table, which all of these columns share.
  template <typename T>
  TMC_HD TMC_INLINE auto loadSame(const T *table, int64_t index) const {
    return spread(loadLanes<1>(table + index));
  }
  /// Prefetches the data one page ahead, where the hardware prefetcher stops.
  /// If the row is shorter, that is in the next row.
  template <int Write, typename T>
  TMC_HD TMC_INLINE void askAhead([[maybe_unused]] const T *row) const {
#ifndef TMC_CUDA
    if constexpr (N > 1)
      __builtin_prefetch(reinterpret_cast<const char *>(row + at) + 4096,
                         Write);
#endif
  }
  /// One number per row, for each of its columns.
  TMC_HD TMC_INLINE auto spread(float x) const { return splat<N>(x); }
  TMC_HD TMC_INLINE auto spread(int32_t x) const { return splat<N>(x); }
  TMC_HD TMC_INLINE auto spread(int64_t x) const { return splat<N>(x); }
  TMC_HD TMC_INLINE auto spread(bool x) const { return splatMask<N>(x); }

  /// The numbers of the columns.
  TMC_HD TMC_INLINE Longs<N> index() const {
    if constexpr (N == 1) {
      return at;
    } else {
      Longs<N> r;
      for (int i = 0; i < N; ++i)
        r[i] = at + i;
      return r;
    }
  }
  TMC_HD TMC_INLINE Floats<N> random(Draws &draws) const {
    return draws.at<N>(at);
  }
  /// Adds to this tile's sum over rows.
  template <typename Kind>
  TMC_HD TMC_INLINE void add(float *partial, Floats<N> value) const {
    storeLanes<N, Aligned>(
        partial + at,
        Kind::combine(loadLanes<N, Aligned>((const float *)partial + at),
                      value));
  }
#ifdef TMC_CUDA
  /// This thread's part of what is in registers.
  template <typename Column>
  TMC_HD TMC_INLINE auto &inRegisters(const Column &column) const {
    if constexpr (N == 1)
      return column.registers.tails[column.k];
    else
      return column.registers.columns[column.k][step];
  }
  template <typename Column, typename V>
  TMC_HD TMC_INLINE auto store(const Column &column, V value) const
      -> decltype(void(column.registers)) {
    inRegisters(column) = value;
  }
  template <typename Kind, typename Column>
  TMC_HD TMC_INLINE auto add(const Column &column, Floats<N> value) const
      -> decltype(void(column.registers)) {
    auto &sum = inRegisters(column);
    sum = Kind::combine(sum, value);
  }
#endif
  /// The sum over all rows: of the tiles' partials.
  template <typename Kind>
  TMC_HD TMC_INLINE Floats<N> total(const Sums &sums, int k) const {
    const float *partial = sums.column(k) + at;
#ifdef TMC_CUDA
    if constexpr (Lines > 1) {
      auto part = splat<N>(Kind::init);
      for (int64_t t = line; t < sums.tiling.rowTiles; t += Lines)
        part = Kind::combine(
            part,
            loadLanes<N, Aligned>(partial + t * sums.tiling.partialFloats));
      return overLines<Kind>(part);
    }
#endif
    Floats<N> sum = loadLanes<N, Aligned>(partial);
    for (int64_t t = 1; t < sums.tiling.rowTiles; ++t)
      sum = Kind::combine(
          sum, loadLanes<N, Aligned>(partial + t * sums.tiling.partialFloats));
    return sum;
  }
};

//===----------------------------------------------------------------------===//
// A row
//===----------------------------------------------------------------------===//

/// Columns in multiples of this fill whole vectors on every machine.
constexpr int64_t kWholeColumns = 64;
/// Rows of so few columns are faster without vectors.
constexpr int64_t kFewColumns = 4;

/// The walk over columns [begin, end) of row `index`. Unless `Ragged`, their
/// number is a multiple of kWholeColumns, and no tail is compiled. On cuda a
/// thread takes `Width` columns at once and makes `Steps` steps if that isn't
/// 0; `Kept` values of a row are in registers between passes if that isn't 0;
/// for `Lines`, see Columns. On the cpu, `Few` is the number of a row's columns
/// if they are at most kFewColumns, else 0: they are taken one by one.
template <bool Ragged, int Steps = 0, int Lines = 1, int Width = 4,
          int Kept = 0, int Few = 0>
class Row {
public:
  int64_t index, begin, end;
  /// The place of this row's kept values between passes.
  float *keptValues;
  int64_t keptStride;

#ifdef TMC_CUDA
  [[no_unique_address]] std::conditional_t<
      Kept != 0, ColumnRegisters<Kept, Steps, Width>, std::false_type>
      keptRegisters;
#endif

  TMC_HD auto kept(int k) const {
#ifdef TMC_CUDA
    if constexpr (Kept != 0)
      return keptRegisters.column(k);
    else
#endif
      return keptValues + k * keptStride;
  }

  /// Elements that exist once per row, or once in total.
  template <typename T> TMC_HD auto load(const T *p) const {
    const auto value = loadLanes<1>(p);
    if (end - begin == 1)
      settle(); // The only column may be overwritten.
    return value;
  }
  template <typename T, typename V> TMC_HD void store(T *p, V value) const {
    settle(); // `p` may be an operand's place that all threads read before.
    if (isFirst())
      storeLanes<1>(p, value);
  }
  template <typename Kind> TMC_HD void add(float *partial, float value) const {
    if (isFirst())
      *partial = Kind::combine(*partial, value);
  }
#ifdef TMC_CUDA
  // A row's number is the same in all of its threads, and so are sums of them.
  template <typename Total>
  TMC_HD auto store(const Total &total, float value) const
      -> decltype(void(total.sums)) {
    total.sums.totals[total.k] = value;
  }
  template <typename Kind, typename Total>
  TMC_HD auto add(const Total &total, float value) const
      -> decltype(void(total.sums)) {
    float &sum = total.sums.totals[total.k];
    sum = Kind::combine(sum, value);
  }
#endif
  template <typename Kind> TMC_HD float total(const Sums &sums, int k) const {
    const float *partial = sums.total(k);
#ifdef TMC_CUDA
    if constexpr (Lines > 1) {
      float part = Kind::init;
      for (int64_t t = line; t < sums.tiling.rowTiles; t += Lines)
        part = Kind::combine(part, partial[t * sums.tiling.partialFloats]);
      return overLines<Kind>(part);
    }
#endif
    float sum = *partial;
    for (int64_t t = 1; t < sums.tiling.rowTiles; ++t)
      sum = Kind::combine(sum, partial[t * sums.tiling.partialFloats]);
    return sum;
  }

#ifdef TMC_CUDA
  // Threads of a row: `threads` of them, a warp or a whole block; this thread
  // has number `thread`. If a row has fewer than 4 columns per thread, some are
  // idle. With `Lines`, a warp has one of these numbers.
  int thread, threads;
  int line = 0;
  bool aligned;

  TMC_HD bool isFirst() const { return begin == 0 && thread == 0 && line == 0; }

  /// Waits until all threads of the row have finished their reads so far.
  TMC_HD void settle() const {
#if defined(__CUDA_ARCH__) || defined(TMC_CUDA_EMULATED)
    if (threads * Lines > 32)
      __syncthreads();
    else
      __syncwarp();
#endif
  }

  template <typename Fn> TMC_HD void each(Fn fn) const {
    const int64_t whole = begin + (end - begin) / Width * Width;
    if (aligned)
      steps<true>(whole, fn);
    else
      steps<false>(whole, fn);
    if constexpr (Ragged)
      if (whole + thread < end)
        fn(Columns<1, false, Lines>{whole + thread, 0, line});
  }
  template <bool Aligned, typename Fn>
  TMC_HD TMC_INLINE void steps(int64_t whole, Fn &fn) const {
    int64_t c = begin + thread * Width;
    if constexpr (Steps > 0) {
      // Unrolled, so that what belongs to a step can be in registers.
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int step = 0; step < Steps; ++step, c += threads * Width)
        if (c < whole)
          fn(Columns<Width, Aligned, Lines>{c, step, line});
    } else {
      for (; c < whole; c += threads * Width)
        fn(Columns<Width, Aligned, Lines>{c, 0, line});
    }
  }

  template <typename... Kinds, typename Fn>
  TMC_HD Results<float, sizeof...(Kinds)> reduce(Fn fn) const {
    constexpr int n = sizeof...(Kinds);
    using All = Combine<Kinds...>;
    Floats<Width> lanes[n];
    float tail[n];
    All::start(lanes);
    All::start(tail);
    each([&](auto c) {
      auto r = fn(c);
      if constexpr (sizeof(r) == sizeof(tail))
        All::into(tail, r.v);
      else
        All::into(lanes, r.v);
    });
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int half = Width / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) {
        float a[n], b[n];
        for (int k = 0; k < n; ++k) {
          a[k] = lanes[k][i];
          b[k] = lanes[k][i + half];
        }
        All::into(a, b);
        for (int k = 0; k < n; ++k)
          lanes[k][i] = a[k];
      }
    Results<float, n> all;
    for (int k = 0; k < n; ++k)
      all.v[k] = lanes[k][0];
    All::into(all.v, tail);
#if defined(__CUDA_ARCH__) || defined(TMC_CUDA_EMULATED)
    for (int offset = 16; offset > 0; offset /= 2) {
      float other[n];
      for (int k = 0; k < n; ++k)
        other[k] = __shfl_xor_sync(0xffffffffu, all.v[k], offset);
      All::into(all.v, other);
    }
    if (threads > 32) {
      __shared__ float warps[n][32];
      __syncthreads(); // the last reduction's values have been read
      if (thread % 32 == 0)
        for (int k = 0; k < n; ++k)
          warps[k][thread / 32] = all.v[k];
      __syncthreads();
      for (int k = 0; k < n; ++k)
        all.v[k] = warps[k][0];
      for (int w = 1; w < threads / 32; ++w) {
        float other[n];
        for (int k = 0; k < n; ++k)
          other[k] = warps[k][w];
        All::into(all.v, other);
      }
    }
#endif
    return all;
  }

#else

  bool isFirst() const { return begin == 0; }
  void settle() const {}

  template <typename Fn> TMC_INLINE void each(Fn fn) const {
    if constexpr (Few > 0) {
#pragma GCC unroll 4
      for (int i = 0; i < Few; ++i)
        fn(Columns<1>{i});
      return;
    }
    const int64_t last = end; // else it is read again after each store
    int64_t c = begin;
    for (; c + kLanes <= last; c += kLanes)
      fn(Columns<kLanes>{c});
    if constexpr (Ragged)
      if (c < last)
        fn(LastColumns{c, int(last - c)});
  }

  template <typename... Kinds, typename Fn>
  TMC_INLINE Results<float, sizeof...(Kinds)> reduce(Fn fn) const {
    constexpr int n = sizeof...(Kinds), registers = kTree / kLanes;
    using All = Combine<Kinds...>;
    if constexpr (Few > 0)
      return reduceFew<All, n>(fn);
    using V = Floats<kLanes>;
    V acc[registers][n];
    for (int r = 0; r < registers; ++r)
      All::start(acc[r]);
    const int64_t last = end;
    int64_t c = begin;
    for (; c + kTree <= last; c += kTree) {
#pragma GCC unroll 16
      for (int r = 0; r < registers; ++r)
        All::into(acc[r], fn(Columns<kLanes>{c + r * kLanes}).v);
    }
    if constexpr (Ragged)
      if (c < last)
        reduceTail<All, n>(acc, fn, c);
    for (int half = registers / 2; half > 0; half /= 2)
#pragma GCC unroll 16
      for (int r = 0; r < half; ++r)
        All::into(acc[r], acc[r + half]);
#pragma GCC unroll 16
    for (int half = kLanes / 2; half > 0; half /= 2) {
      // Moves the upper half down; the values of the upper lanes are then
      // unused.
      V upper[n];
      for (int k = 0; k < n; ++k)
        upper[k] = __builtin_shuffle(acc[0][k], laneNumbers() + half);
      All::into(acc[0], upper);
    }
    Results<float, n> all;
    for (int k = 0; k < n; ++k)
      all.v[k] = acc[0][k][0];
    return all;
  }

private:
  static constexpr int kTree = 64;

  static TMC_INLINE Ints<kLanes> laneNumbers() {
    Ints<kLanes> r;
    for (int i = 0; i < kLanes; ++i)
      r[i] = i;
    return r;
  }

  /// The last columns from c on, fewer than kTree, each in its lane.
  template <typename All, int n, typename V, typename Fn>
  void reduceTail(V (*acc)[n], Fn fn, int64_t c) const {
    int64_t lane = 0;
    for (; c + kLanes <= end; c += kLanes, lane += kLanes)
      All::into(acc[lane / kLanes], fn(Columns<kLanes>{c}).v);
    if (c == end)
      return;
    const int count = int(end - c);
    V *at = acc[lane / kLanes];
    const auto r = fn(LastColumns{c, count});
    const auto used = asMask(laneNumbers() < count);
    V both[n];
    for (int k = 0; k < n; ++k)
      both[k] = at[k];
    All::into(both, r.v);
    for (int k = 0; k < n; ++k)
      at[k] = select(used, both[k], at[k]);
  }

  /// The tree of reduce() for columns that are a lane each. Lanes without a
  /// column change nothing.
  template <typename All, int n, typename Fn>
  TMC_INLINE Results<float, n> reduceFew(Fn fn) const {
    Results<float, n> lanes[kFewColumns];
#pragma GCC unroll 4
    for (int i = 0; i < kFewColumns; ++i) {
      All::start(lanes[i].v);
      if (i < Few)
        All::into(lanes[i].v, fn(Columns<1>{i}).v);
    }
#pragma GCC unroll 4
    for (int half = kFewColumns / 2; half > 0; half /= 2)
#pragma GCC unroll 4
      for (int i = 0; i < half; ++i)
        All::into(lanes[i].v, lanes[i + half].v);
    return lanes[0];
  }
#endif
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_ROW_H
