//===- FrozenCodes.h - frozen weights as codes on cpu -----------*- C++ -*-===//
//
// Encoding, for a loader, and decoding of pieces of a row, for a product that
// packs its factor (runtime/kernels/FrozenCodes.h has the formats):
//
//     encode(values, n, codes, absmax);           n numbers, in pieces of 64 k
//     nest(absmax, n / 64, maxima, nested);       once all of absmax is known
//     decode(Nf4{codes, Maxima(maxima, nested, n / 64)}, at, 256, row);
//
// Decoding makes the 16 values of a block once, rounded to the type of the
// result, and looks them up. T is float, bf16 or f16.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CPU_FROZENCODES_H
#define TMC_RUNTIME_CPU_FROZENCODES_H

#include "runtime/kernels/FrozenCodes.h"
#include "runtime/kernels/Storage.h"

namespace tmc::frozen {

/// The maxima of blocks, in f32 or nested.
class Maxima {
public:
  explicit Maxima(const float *absmax) : plain_(absmax) {}
  /// Codes of `blocks` maxima; `nested` has nestedFloats(blocks) floats.
  Maxima(const uint8_t *codes, const float *nested, int64_t blocks)
      : codes_(codes), nested_(nested),
        offset_(nested[nestedFloats(blocks) - 1]) {}
  float of(int64_t block) const;

private:
  const float *plain_ = nullptr;
  const uint8_t *codes_ = nullptr;
  const float *nested_ = nullptr;
  float offset_ = 0;
};

struct Nf4 {
  const uint8_t *codes;
  Maxima maxima;
};

/// The tensors of a step as Nf4: `nested` is null if maxima are in f32.
inline Nf4 nf4Of(const void *codes, const void *absmax, const void *nested,
                 int64_t blocks) {
  const auto *packed = static_cast<const uint8_t *>(codes);
  if (nested)
    return {packed, Maxima(static_cast<const uint8_t *>(absmax),
                           static_cast<const float *>(nested), blocks)};
  return {packed, Maxima(static_cast<const float *>(absmax))};
}

/// A stored tensor in either format. Rows of `columns` numbers have a maximum
/// each; 0: blocks of nf4.
struct Stored {
  Nf4 nf4;
  const int8_t *codes;
  const float *absmax;
  int64_t columns;

  static Stored blocks(const void *codes, const void *absmax,
                       const void *nested, int64_t count) {
    return {nf4Of(codes, absmax, nested, count), nullptr, nullptr, 0};
  }
  static Stored rows(const void *codes, const void *absmax, int64_t columns) {
    return {{nullptr, Maxima(nullptr)},
            static_cast<const int8_t *>(codes),
            static_cast<const float *>(absmax),
            columns};
  }
};

/// Numbers [begin, begin + count) of the tensor, in one row.
template <typename T>
void decode(const Stored &stored, int64_t begin, int64_t count, T *out);

/// Codes and maxima of `count` numbers, a multiple of kBlock. Writes count / 2
/// bytes of codes and count / kBlock maxima.
template <typename T>
void encode(const T *values, int64_t count, uint8_t *codes, float *absmax);

/// Codes of maxima; `nested` gets nestedFloats(blocks) floats. The offset is
/// summed up in double, in order.
void nest(const float *absmax, int64_t blocks, uint8_t *codes, float *nested);

/// Elements [begin, begin + count) of the tensor. Whole blocks are the fastest.
template <typename T>
void decode(const Nf4 &stored, int64_t begin, int64_t count, T *out);

/// The largest magnitude of a row's piece, or `absmax` if that is larger.
template <typename T>
float rowAbsmax(const T *values, int64_t count, float absmax = 0);

/// The 8-bit codes of a row's piece, and the other way.
template <typename T>
void encodeRow(const T *values, int64_t count, float absmax, int8_t *codes);
template <typename T>
void decodeRow(const int8_t *codes, int64_t count, float absmax, T *out);

} // namespace tmc::frozen

#endif // TMC_RUNTIME_CPU_FROZENCODES_H
