//===- FragmentKernels.h - products by tensor cores, for tests --*- C++ -*-===//
//
// Kernels over runtime/cuda/TensorCore.h: fragments straight from memory, for
// each type; and a product as a kernel of the backend would do it, tiles of
// which arrive by copyAsync while the ones before are multiplied. nvcc compiles
// them for every architecture, the emulator runs them.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_FRAGMENTKERNELS_H
#define TMC_TEST_CUDA_FRAGMENTKERNELS_H

#include "runtime/cuda/TensorCore.h"

namespace tmc::test {

using cuda::Element;

/// c[16, 8] += a[16, k] b[8, k]^T, of which rows are 32 bytes: one warp.
template <Element A, Element B>
__global__ void oneProduct(const uint32_t *a, const uint32_t *b, float *c) {
  const int lane = int(threadIdx.x), g = lane / 4, t = lane % 4;
  cuda::FragmentA left;
  cuda::FragmentB right;
  cuda::FragmentC sums;
  for (int half = 0; half < 2; ++half) {
    for (int lower = 0; lower < 2; ++lower) {
      left.words[2 * half + lower] = a[(g + 8 * lower) * 8 + 4 * half + t];
      for (int e = 0; e < 2; ++e)
        sums.sums[2 * lower + e] = c[(g + 8 * lower) * 8 + 2 * t + e];
    }
    right.words[half] = b[g * 8 + 4 * half + t];
  }
  cuda::mma<A, B>(sums, left, right);
  for (int lower = 0; lower < 2; ++lower)
    for (int e = 0; e < 2; ++e)
      c[(g + 8 * lower) * 8 + 2 * t + e] = sums.sums[2 * lower + e];
}

/// Sizes of the product below: a block's tile of C, and a stage of k.
constexpr int kTileRows = 32, kTileColumns = 16, kStage = 32;
constexpr int kProductThreads = 64, kStages = 2;
/// Rows of tiles, in bytes: 16 more than their elements, so that the eight rows
/// of a matrix lie in different banks.
constexpr int kRowOfK = 2 * kStage + 16, kRowOfN = 2 * kTileColumns + 16;
/// Of B[n, k] or, where it is transposed, B[k, n].
constexpr int kTileBytes =
    kTileRows * kRowOfK + (kTileColumns * kRowOfK > kStage * kRowOfN
                               ? kTileColumns * kRowOfK
                               : kStage * kRowOfN);
constexpr int kProductSharedBytes = kStages * kTileBytes;

/// Starts to copy [row0, row0 + Rows) x [column0, column0 + Columns) of a
/// row-major matrix of 2-byte elements; what is outside of it becomes zeros.
template <int Rows, int Columns>
__device__ __forceinline__ void startTile(const uint16_t *from, int rows,
                                          int columns, int row0, int column0,
                                          unsigned char *tile) {
  constexpr int kChunks = Columns / 8;
  for (int i = int(threadIdx.x); i < Rows * kChunks; i += kProductThreads) {
    const int row = i / kChunks, column = i % kChunks * 8;
    const bool inside = row0 + row < rows && column0 + column < columns;
    cuda::copyAsync<16>(
        tile + row * (2 * Columns + 16) + 2 * column,
        inside ? from + int64_t(row0 + row) * columns + column0 + column : from,
        inside ? 16 : 0);
  }
}

/// c[m, n] = a[m, k] b, where b is [n, k] or, if `ByRows`, [k, n]. The last
/// dimensions are multiples of 8.
template <Element T, bool ByRows>
__global__ void product(const uint16_t *a, const uint16_t *b, float *c, int m,
                        int n, int k) {
  TMC_DYNAMIC_SHARED(tiles);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int row0 = int(blockIdx.y) * kTileRows;
  const int column0 = int(blockIdx.x) * kTileColumns;
  cuda::FragmentC sums[2] = {};
  auto start = [&](int stage) {
    unsigned char *left = tiles + stage % kStages * kTileBytes;
    unsigned char *right = left + kTileRows * kRowOfK;
    startTile<kTileRows, kStage>(a, m, k, row0, stage * kStage, left);
    if constexpr (ByRows)
      startTile<kStage, kTileColumns>(b, k, n, stage * kStage, column0, right);
    else
      startTile<kTileColumns, kStage>(b, n, k, column0, stage * kStage, right);
  };
  const int stages = (k + kStage - 1) / kStage;
  start(0);
  cuda::commitGroup();
  for (int stage = 0; stage < stages; ++stage) {
    if (stage + 1 < stages)
      start(stage + 1);
    cuda::commitGroup(); // the last one is empty, so that the count holds
    cuda::waitGroup<1>();
    __syncthreads();
    const unsigned char *left = tiles + stage % kStages * kTileBytes;
    const unsigned char *right = left + kTileRows * kRowOfK;
    for (int at = 0; at < kStage; at += 16) {
      // Matrices in the order of a fragment's words: rows first, then k.
      cuda::FragmentA x;
      cuda::loadMatrices<4>(x.words, left + (warp * 16 + lane % 16) * kRowOfK +
                                         2 * at + lane / 16 * 16);
      // Of both groups of eight columns, k first.
      uint32_t y[4];
      if constexpr (ByRows)
        cuda::loadMatrices<4, true>(y, right + (at + lane % 16) * kRowOfN +
                                           lane / 16 * 16);
      else
        cuda::loadMatrices<4>(y, right + (lane / 16 * 8 + lane % 8) * kRowOfK +
                                     2 * at + lane / 8 % 2 * 16);
      cuda::mma<T>(sums[0], x, {{y[0], y[1]}});
      cuda::mma<T>(sums[1], x, {{y[2], y[3]}});
    }
    __syncthreads(); // before the next but one stage takes this one's place
  }
  for (int group = 0; group < 2; ++group)
    for (int e = 0; e < 4; ++e) {
      const int row = row0 + warp * 16 + lane / 4 + 8 * (e / 2);
      const int column = column0 + group * 8 + lane % 4 * 2 + e % 2;
      if (row < m && column < n)
        c[int64_t(row) * n + column] = sums[group].sums[e];
    }
}

/// words[lane][i] = what loadMatrices gives of 8 * Count rows of 16 bytes.
template <int Count, bool Transposed>
__global__ void matrices(const uint32_t *rows, uint32_t *words) {
  TMC_DYNAMIC_SHARED(memory);
  uint32_t *shared = reinterpret_cast<uint32_t *>(memory);
  const int lane = int(threadIdx.x);
  for (int i = lane; i < 32 * Count; i += 32)
    shared[i] = rows[i];
  __syncwarp();
  uint32_t own[Count];
  cuda::loadMatrices<Count, Transposed>(own, shared + lane % (8 * Count) * 4);
  for (int i = 0; i < Count; ++i)
    words[lane * Count + i] = own[i];
}

} // namespace tmc::test

#endif // TMC_TEST_CUDA_FRAGMENTKERNELS_H
