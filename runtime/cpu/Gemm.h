//===- Gemm.h - matrix products in memory, with sums in f32 -----*- C++ -*-===//
//
//   c[i, j] (+)= sum_k a(i, k) b(k, j) (+ bias[j])
//
// Packed panels and a register-blocked inner kernel, as in BLIS. Products of
// libraries allocate up to 15 MB a call, or need dense operands and lose half
// their speed if a leading dimension is a multiple of 4 KiB. Here all memory is
// the caller's scratch, which is small:
//
//     m and k in slabs of a:
//       pack the slab, in parallel             shared, in the L2 cache
//       panels of kPanelN columns, in parallel:
//         k in steps of kGemmDepth:            (results add up in c, in order)
//           pack b's panel                     per worker, in the L1 cache
//           for each kPanelM rows: inner kernel
//
// A slab is one step deep, so that it can be high, unless c is so large that
// passing over it once per step costs more. The order of additions to an
// element of c depends on k alone: results have the same bits for any number of
// threads and any m, n. A panel is computed by one thread. Narrow operands are
// widened when they are packed: their product has the same bits as that of
// completely widened operands. A factor b that is stored as codes is decoded a
// panel at a time.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_GEMM_H
#define TMC_RUNTIME_CPU_GEMM_H

#include "runtime/cpu/Simd.h"
#include "runtime/kernels/DType.h"

#include <cstdint>

namespace tmc {

class Stream;
namespace frozen {
struct Stored;
}

namespace gemm {

#if defined(__AVX512F__)
constexpr int kPanelM = 14; // 28 accumulators of 32 registers
#else
constexpr int kPanelM = 6; // 12 of 16
#endif
constexpr int kVectors = 2;
constexpr int kPanelN = kVectors * simd::kWidth;

/// Powers of two that multiply the elements: the factor of (i, j) is at ((row +
/// i) / rows, (column + j) / columns) of a matrix of scales.
struct BlockScales {
  const float *data = nullptr; // null: none
  int64_t rowStride = 0, colStride = 0;
  int64_t rows = 1, columns = 1;
  int64_t row = 0, column = 0;

  float at(int64_t i, int64_t j) const {
    return data[(row + i) / rows * rowStride +
                (column + j) / columns * colStride];
  }
  BlockScales transposed() const {
    return {data, colStride, rowStride, columns, rows, column, row};
  }
};

/// A matrix in memory: element (i, j) is at data[i * rowStride + j *
/// colStride], in elements of `type`, a float type; one of the strides is 1.
struct Matrix {
  const void *data;
  int64_t rowStride, colStride;
  DType type = DType::F32;
  /// The type to which f32 elements are rounded when read; F32: not rounded.
  DType readAs = DType::F32;
  BlockScales scales = {}; // only for 8-bit elements
  /// Codes in place of data, as which element `first` comes first; decoded to
  /// elements of `type`.
  const frozen::Stored *stored = nullptr;
  int64_t first = 0;

  /// True for floats that aren't rounded.
  bool isPlain() const {
    return type == DType::F32 && readAs == DType::F32 && !stored;
  }
  /// True if every element is read as a bf16 number.
  bool isBF16() const {
    return type == DType::BF16 || readAs == DType::BF16 ||
           (sizeOf(type) == 1 && !scales.data);
  }
  const float *floats() const { return static_cast<const float *>(data); }
  /// The matrix that begins `elements` elements later.
  Matrix shifted(int64_t elements) const {
    Matrix moved = *this;
    if (stored)
      moved.first += elements;
    else
      moved.data = static_cast<const char *>(data) + elements * sizeOf(type);
    return moved;
  }
  Matrix transposed() const {
    return {data,   colStride,           rowStride, type,
            readAs, scales.transposed(), stored,    first};
  }
  /// The part from (row, column) on.
  Matrix at(int64_t row, int64_t column) const {
    Matrix part = shifted(row * rowStride + column * colStride);
    part.scales.row += row;
    part.scales.column += column;
    return part;
  }
};

struct Problem {
  int64_t m, n, k;
  Matrix a, b;       // a: [m, k]; b: [k, n]
  const float *bias; // [n], or nullptr
  float *c;          // [m, n]
  int64_t ldc;
  bool accumulate; // c += instead of c =

  /// Products of bf16 numbers and their sums treat denormals as zeros, as the
  /// instructions for them do, so that all processors give the same bits.
  bool flushesDenormals() const { return a.isBF16() && b.isBF16(); }
};

/// Runs the product on the stream's threads. scratch: Matmul::scratchCap() for
/// f32.
void run(Stream &stream, const Problem &problem, void *scratch);

constexpr int64_t kLineFloats = 16;

/// Cache lines that are needed after this inner kernel. They are prefetched a
/// few at a time along its loop: all at once would fill the buffers that its
/// own loads need. Line l is at base + (l & mask) * fast + (l >> shift) * slow.
struct Ahead {
  const float *base = nullptr;
  int64_t fast = 0, slow = 0, mask = 0;
  int shift = 0;
  int64_t line = 0, end = 0;

  void fetch(int64_t count) {
    for (; count > 0 && line < end; --count, ++line)
      __builtin_prefetch(base + (line & mask) * fast + (line >> shift) * slow,
                         0, 2);
  }
};

/// Packs rows [0, m) x columns [0, k) of `a` into panels of kPanelM rows, k
/// outermost within a panel: panel p at to + p * kPanelM * k. The last panel
/// holds only the existing rows.
void packA(const Matrix &a, int64_t m, int64_t k, float *to);
/// Packs k x n (n <= kPanelN) of `b`, row by row; each row has kPanelN
/// elements, zeros after n.
void packB(const Matrix &b, int64_t k, int64_t n, float *to);
/// Bytes of a decoded panel: kGemmDepth by kPanelN floats.
constexpr int64_t kDecodedBytes = 256 * kPanelN * 4;
/// k x n (k <= 256, n <= kPanelN) of `b`, which is stored as codes, decoded in
/// `panel`, which has kDecodedBytes.
Matrix decoded(const Matrix &b, int64_t k, int64_t n, void *panel);
/// c[m, n] (+)= packed a (m <= kPanelM rows) times packed b; n <= kPanelN.
void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, const float *bias);
/// The same, with a prefetch of lines that are needed soon.
void inner(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
           float *c, int64_t ldc, bool accumulate, Ahead &ahead);

/// The same with `a` unpacked: row i at a + i * kPanelN. It adds the products
/// to c one by one, so that cutting k into pieces changes no bit.
void innerRowMajor(int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c, int64_t ldc, bool accumulate);

} // namespace gemm
} // namespace tmc

#endif // TMC_RUNTIME_CPU_GEMM_H
