//===- GemmTiles.cpp - products of bf16 factors on AMX's tiles ------------===//

#include "runtime/cpu/GemmTiles.h"

#ifndef __AMX_BF16__

namespace tmc::gemm {
bool knowsTiles() { return false; }
void runTiles(Stream &, const Problem &, void *) { __builtin_unreachable(); }
} // namespace tmc::gemm

#else

#include "runtime/cpu/BF16Elements.h"
#include "runtime/cpu/GemmRun.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/TransposeBlock.h"
#include "runtime/kernels/Matmul.h"
#include "runtime/step/Processor.h"

#include <algorithm>

namespace tmc::gemm {

namespace {

/// Rows of a tile, and pairs or sums in each row.
constexpr int64_t kTile = 16;
/// Rows and columns of the sums in four tiles, and numbers along k in one step.
constexpr int64_t kBlock = 2 * kTile;
constexpr int64_t kStep = 2 * kTile;
static_assert(kWidth == kTile && kPanelN == kBlock);
static_assert(kGemmDepth % kStep == 0);

/// The cut of a slab into tiles: rows of a block of a, pairs of a step. They
/// are below the full size only if the slab has fewer rows, or the sum is
/// shorter.
struct Cut {
  int64_t rows, pairs;

  Cut(int64_t slabRows, int64_t k)
      : rows(std::min(kBlock, slabRows)), pairs(std::min(kTile, (k + 1) / 2)) {}
  int64_t blocks(int64_t slabRows) const {
    return (slabRows + rows - 1) / rows;
  }
  int64_t steps(int64_t depth) const {
    return (depth + 2 * pairs - 1) / (2 * pairs);
  }
  int64_t upper() const { return std::min(rows, kTile); } // of a block's rows
};

/// The sizes of the tiles, in the processor's format. Tiles 0 to 3 hold sums, 4
/// and 5 parts of a, 6 and 7 parts of b.
struct alignas(64) Palette {
  uint8_t palette = 1, startRow = 0;
  uint8_t reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  explicit Palette(const Cut &cut) {
    const int64_t lower = cut.rows - cut.upper();
    auto set = [&](int tile, int64_t height, int64_t dwords) {
      rows[tile] = uint8_t(height);
      rowBytes[tile] = uint16_t(height ? 4 * dwords : 0);
    };
    for (int column : {0, 1}) {
      set(column, cut.upper(), kTile);
      set(2 + column, lower, kTile);
      set(6 + column, cut.pairs, kTile);
    }
    set(4, cut.upper(), cut.pairs);
    set(5, lower, cut.pairs);
  }
};

/// Configures this thread's tiles during its lifetime.
class TileState {
public:
  explicit TileState(const Palette &palette) { _tile_loadconfig(&palette); }
  ~TileState() { _tile_release(); }
  TileState(const TileState &) = delete;
  TileState &operator=(const TileState &) = delete;
};

/// The pairs of a line of `count` numbers from `from` on, `stride` apart, then
/// zeros up to kTile pairs.
template <typename T>
VU linePairs(const T *from, int64_t stride, int64_t count) {
  if (stride == 1 && count >= kStep)
    return loadPairs(from);
  alignas(64) float numbers[2][kTile] = {};
  for (int64_t p = 0; p < std::min(count, kStep); ++p)
    numbers[p % 2][p / 2] = widen(from[p * stride]);
  return pairsOf(simd::load(numbers[0]), simd::load(numbers[1]));
}

/// Pair q of `count` <= kTile adjacent lines: number p of the lines is at from
/// + p * along.
template <typename T>
VU crossPairs(const T *from, int64_t along, int64_t count, int64_t q,
              int64_t depth) {
  if (2 * q >= depth)
    return VU{};
  const V first = loadSome(from + 2 * q * along, count);
  return pairsOf(first, 2 * q + 1 < depth
                            ? loadSome(from + (2 * q + 1) * along, count)
                            : V{});
}

/// Stores the first `pairs` pairs of a row.
void storePairs(float *to, VU row, int64_t pairs) {
  _mm512_mask_storeu_ps(to, lanes(pairs), (V)row);
}

/// Packs a step of up to kTile rows: `rows` exist and `height` are written,
/// each with `pairs` pairs. depth: of the step.
template <typename T>
void packTileA(const T *from, int64_t rowStride, int64_t colStride,
               int64_t rows, int64_t height, int64_t pairs, int64_t depth,
               float *to) {
  if (colStride != 1 && rowStride == 1) {
    alignas(64) float across[kTile * kTile], turned[kTile * kTile];
    for (int64_t q = 0; q < kTile; ++q)
      simd::store(across + q * kTile,
                  (V)crossPairs(from, colStride, rows, q, depth));
    simd::transposeBlock(across, kTile, turned, kTile);
    for (int64_t r = 0; r < height; ++r)
      storePairs(to + r * pairs, (VU)simd::load(turned + r * kTile), pairs);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    storePairs(to + r * pairs,
               linePairs(from + r * rowStride, colStride, depth), pairs);
  std::fill(to + rows * pairs, to + height * pairs, 0.0f);
}

/// Packs rows [first, end) and `depth` columns of the slab `a` to their places
/// in the packed slab. Blocks are whole, except at the end of the slab.
void packA(const Matrix &a, const Cut &cut, int64_t first, int64_t end,
           int64_t blocks, int64_t depth, float *to) {
  const int64_t block = cut.rows * cut.pairs;
  withBF16Elements(a, [&](const auto *data) {
    for (int64_t s = 0; s < cut.steps(depth); ++s)
      for (int64_t r = first; r < end; r += cut.rows) {
        float *at = to + (s * blocks + r / cut.rows) * block;
        const int64_t d = s * 2 * cut.pairs;
        for (int64_t t = 0; t < cut.rows; t += kTile)
          packTileA(data + (r + t) * a.rowStride + d * a.colStride, a.rowStride,
                    a.colStride, std::clamp<int64_t>(end - r - t, 0, kTile),
                    std::min(kTile, cut.rows - t), cut.pairs, depth - d,
                    at + t * cut.pairs);
      }
  });
}

/// Packs depth x n (n <= kBlock) of b: rows of kBlock pairs, zeros after n and
/// after depth.
void packB(const Matrix &b, const Cut &cut, int64_t depth, int64_t n,
           float *to) {
  withBF16Elements(b, [&](const auto *data) {
    for (int64_t j = 0; j < kBlock; j += kTile) {
      const int64_t columns = std::clamp<int64_t>(n - j, 0, kTile);
      const auto *from = data + j * b.colStride;
      for (int64_t s = 0; s < cut.steps(depth); ++s) {
        float *at = to + s * cut.pairs * kBlock + j;
        const int64_t d = s * 2 * cut.pairs;
        if (b.colStride == 1) {
          const auto *rows = from + d * b.rowStride;
          for (int64_t q = 0; q < cut.pairs; ++q) {
            // The next panel's rows: the hardware prefetcher doesn't follow
            // them.
            for (int64_t p : {2 * q, 2 * q + 1})
              __builtin_prefetch(rows + p * b.rowStride + kBlock, 0, 2);
            simd::store(at + q * kBlock, (V)crossPairs(rows, b.rowStride,
                                                       columns, q, depth - d));
          }
          continue;
        }
        alignas(64) float lines[kTile * kTile] = {}, turned[kTile * kTile];
        for (int64_t c = 0; c < columns; ++c)
          simd::store(lines + c * kTile,
                      (V)linePairs(from + c * b.colStride + d * b.rowStride,
                                   b.rowStride, depth - d));
        simd::transposeBlock(lines, kTile, turned, kTile);
        for (int64_t q = 0; q < cut.pairs; ++q)
          simd::store(at + q * kBlock, simd::load(turned + q * kTile));
      }
    }
  });
}

/// The sums of a block of a and a panel of b, `steps` deep, to `sums`, rows of
/// kBlock. The steps of a are `aStep` apart.
template <bool isHigh>
void multiply(const Cut &cut, int64_t steps, const float *a, int64_t aStep,
              const float *b, float *sums) {
  constexpr int bytes = kBlock * 4;
  const int aBytes = int(cut.pairs * 4);
  _tile_zero(0);
  _tile_zero(1);
  if (isHigh) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t s = 0; s < steps; ++s) {
    _tile_loadd(6, b, bytes);
    _tile_loadd(4, a, aBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTile, bytes);
    _tile_dpbf16ps(1, 4, 7);
    if (isHigh) {
      _tile_loadd(5, a + kTile * cut.pairs, aBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    a += aStep;
    b += cut.pairs * kBlock;
  }
  _tile_stored(0, sums, bytes);
  _tile_stored(1, sums + kTile, bytes);
  if (isHigh) {
    _tile_stored(2, sums + kTile * kBlock, bytes);
    _tile_stored(3, sums + kTile * kBlock + kTile, bytes);
  }
}

/// c [m, n] (+)= sums (+ bias).
void put(int64_t m, int64_t n, const float *sums, const float *bias, float *c,
         int64_t ldc, bool accumulate) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; j += kWidth) {
      const __mmask16 some = lanes(std::min<int64_t>(kWidth, n - j));
      V x = simd::load(sums + i * kBlock + j);
      if (bias)
        x += (V)_mm512_maskz_loadu_ps(some, bias + j);
      float *to = c + i * ldc + j;
      if (accumulate)
        x = (V)_mm512_maskz_loadu_ps(some, to) + x;
      _mm512_mask_storeu_ps(to, some, x);
    }
}

} // namespace

bool knowsTiles() { return true; }

void runTiles(Stream &stream, const Problem &now, void *scratch) {
  static const bool permitted = permitTiles();
  (void)permitted; // If the process may not use tiles, the step isn't started.
  const int64_t m = now.m, n = now.n, k = now.k;
  const auto [slabDepth, slabRows, panels, perTile, tiles, packedA, packedB,
              packedBFloats] = Cuts(now, scratch);

  for (int64_t i0 = 0; i0 < m; i0 += slabRows) {
    const int64_t rows = std::min(slabRows, m - i0);
    const Cut cut(rows, k);
    const Palette palette(cut);
    const int64_t blocks = cut.blocks(rows);
    const int64_t blockFloats = cut.rows * cut.pairs;
    for (int64_t s0 = 0; s0 < k; s0 += slabDepth) {
      const int64_t slab = std::min(slabDepth, k - s0);
      // The place of the numbers from d0 on in the packed slab.
      auto slabAt = [&](int64_t d0) {
        return packedA + d0 / (2 * cut.pairs) * blocks * blockFloats;
      };
      auto packBlock = [&](int64_t block, int64_t) {
        const int64_t first = block * cut.rows;
        for (int64_t d0 = 0; d0 < slab; d0 += kGemmDepth)
          packA(now.a.at(i0, s0 + d0), cut, first,
                std::min(rows, first + cut.rows), blocks,
                std::min(kGemmDepth, slab - d0), slabAt(d0));
      };
      if (tiles == 1)
        for (int64_t block = 0; block < blocks; ++block)
          packBlock(block, 0);
      else
        parallelFor(stream, blocks, packBlock);
      auto computeTile = [&](int64_t tile, int64_t worker) {
        float *packed = packedB + worker * packedBFloats;
        alignas(64) float sums[kBlock * kBlock];
        const TileState state(palette);
        const int64_t last = std::min(panels, (tile + 1) * perTile);
        for (int64_t panel = tile * perTile; panel < last; ++panel) {
          const int64_t j0 = panel * kPanelN;
          const int64_t columns = std::min<int64_t>(kPanelN, n - j0);
          for (int64_t d0 = 0; d0 < slab; d0 += kGemmDepth) {
            const int64_t depth = std::min(kGemmDepth, slab - d0);
            alignas(64) char decodedB[kDecodedBytes];
            const Matrix b = now.b.at(s0 + d0, j0);
            packB(b.stored ? decoded(b, depth, columns, decodedB) : b, cut,
                  depth, columns, packed);
            // Not while packing: widening of codes uses denormals.
            const simd::DenormalMode mode(true);
            const bool add = now.accumulate || s0 + d0 > 0;
            const float *bias =
                now.bias && s0 + d0 == 0 ? now.bias + j0 : nullptr;
            for (int64_t block = 0; block < blocks; ++block) {
              const int64_t r = block * cut.rows;
              const int64_t height = std::min(cut.rows, rows - r);
              float *c = now.c + (i0 + r) * now.ldc + j0;
              // They are prefetched while the tiles are multiplied.
              for (int64_t i = 0; i < height; ++i)
                for (int64_t j = 0; j < kBlock; j += kLineFloats)
                  __builtin_prefetch(c + i * now.ldc + j, 1);
              (cut.rows > kTile
                   ? multiply<true>
                   : multiply<false>)(cut, cut.steps(depth),
                                      slabAt(d0) + block * blockFloats,
                                      blocks * blockFloats, packed, sums);
              put(height, columns, sums, bias, c, now.ldc, add);
            }
          }
        }
      };
      if (tiles == 1)
        computeTile(0, 0);
      else
        parallelFor(stream, tiles, gemmWorkers(m, n, k), computeTile);
    }
  }
}

} // namespace tmc::gemm

#endif
