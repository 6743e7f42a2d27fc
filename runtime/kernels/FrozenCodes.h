//===- FrozenCodes.h - weights that aren't trained, as codes ----*- C++ -*-===//
//
// A frozen weight is read by products and never updated, so that it can be
// stored in fewer bits. Two formats, both of bitsandbytes, whose checkpoints
// hold them:
//
//     nf4     4 bits a number. A block of 64 numbers, in the order of memory,
//             has one absmax in f32, and a code is one of 16 levels:
//                 w = round(level[code] * absmax)
//             A byte holds two codes, the first in the high bits.
//
//             w     | 64 numbers | 64 numbers | ...
//             codes | 32 bytes   | 32 bytes   | ...       w.numel() / 2 bytes
//             absmax| f32        | f32        | ...       w.numel() / 64 floats
//
//     nested  absmax itself as codes of 8 bits, in blocks of 256:
//                 absmax = map[code] * nested[block] + offset
//             The offset is the mean of absmax. It is kept behind the last
//             nested maximum: one tensor holds both. 4.127 bits a number.
//
//     int8    8 bits a number. A row has one absmax in f32:
//                 w = round(code * absmax * (1 / 127))
//
// Products and sums are in f32, without fma, in the order that is written here,
// and one rounding to the type of the result (f32, bf16, f16) comes last. So
// both backends and all instruction sets give the same bits. They are those of
// bitsandbytes, with two exceptions: its cpu library takes the codes of absmax
// from a table of 65,536 bins, which differs from the nearest one in at most 1
// % of them, and its offset is a sum in f32.
//
// The op of the compiler is nn.dequantize, its kernel Dequantize.h.
//
// Numbers must be finite; the codes of others have no meaning.
//
// Sources: Dettmers, Pagnoni, Holtzman, Zettlemoyer, "QLoRA: Efficient
// Finetuning of Quantized LLMs" (NeurIPS 2023); Dettmers, Lewis, Belkada,
// Zettlemoyer, "LLM.int8()" (NeurIPS 2022); bitsandbytes 0.50.2.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_FROZENCODES_H
#define TMC_RUNTIME_KERNELS_FROZENCODES_H

#include "runtime/kernels/Portable.h"

#include <cstdint>

namespace tmc::frozen {

//===----------------------------------------------------------------------===//
// NF4
//===----------------------------------------------------------------------===//

/// Numbers that share an absmax, and maxima that share a nested one.
constexpr int kBlock = 64;
constexpr int kNestedBlock = 256;
constexpr int kLevels = 16;

/// A table that is passed by value: to a kernel of a card, as an argument.
template <int N> struct Table { float value[N]; };

/// The values of the codes: quantiles of a normal distribution, scaled to
/// [-1, 1].
TMC_HD constexpr Table<kLevels> levels() {
  return {{-1.0f, -0.6961928009986877f, -0.5250730514526367f,
           -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
           -0.09105003625154495f, 0.0f, 0.07958029955625534f,
           0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
           0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f,
           1.0f}};
}

/// The bounds between neighbours of a map, in f32; a bound belongs to the lower
/// one.
template <int N> TMC_HD constexpr Table<N - 1> midpoints(const Table<N> &map) {
  Table<N - 1> bounds{};
  for (int i = 0; i + 1 < N; ++i)
    bounds.value[i] = (map.value[i] + map.value[i + 1]) / 2;
  return bounds;
}

/// The factor that scales numbers of at most `absmax` to [-1, 1]. Below 1e-38
/// it stays finite, and the numbers keep within a part of that.
TMC_HD inline float inverseOf(float absmax) {
  constexpr float kLeast = 1e-38f;
  return 1.0f / (absmax < kLeast ? kLeast : absmax);
}

/// The code of `x`, a number times inverseOf: how many bounds are below it.
TMC_HD inline int codeOf(float x, const Table<kLevels - 1> &bounds) {
  int code = 0;
  for (int i = 0; i + 1 < kLevels; ++i)
    code += x > bounds.value[i];
  return code;
}

/// The code of element `at` of packed codes.
TMC_HD inline int codeAt(const uint8_t *packed, int64_t at) {
  return packed[at / 2] >> (at % 2 ? 0 : 4) & 15;
}

//===----------------------------------------------------------------------===//
// Nested maxima
//===----------------------------------------------------------------------===//

constexpr int kMapped = 256;

/// The signed dynamic map: seven decades, cut into 1, 2, 4, .. 64 intervals,
/// whose middles are the values; their negatives; 0 and 1. A literal, because
/// bitsandbytes takes the middles between bounds in f32: 72 of them differ in
/// the last bit from adam::codeValue, which are the nearest to the true ones.
TMC_HD constexpr Table<kMapped> dynamicMap() {
  constexpr int kPositive = 127;
  constexpr float kMiddles[kPositive] = {
      5.50000038e-07f, 3.25000019e-06f, 7.7499999e-06f,  2.12499981e-05f,
      4.37499984e-05f, 6.62500024e-05f, 8.87499991e-05f, 0.000156250011f,
      0.000268750038f, 0.000381250022f, 0.000493750034f, 0.000606250076f,
      0.00071875006f,  0.000831249985f, 0.000943750085f, 0.00128124992f,
      0.00184375001f,  0.00240624999f,  0.00296874996f,  0.00353124971f,
      0.00409374991f,  0.00465624966f,  0.00521875033f,  0.00578125007f,
      0.00634374982f,  0.00690625003f,  0.00746874977f,  0.00803124998f,
      0.00859375019f,  0.00915624946f,  0.00971874967f,  0.0114062503f,
      0.0142187504f,   0.0170312505f,   0.0198437516f,   0.0226562507f,
      0.0254687499f,   0.028281251f,    0.0310937501f,   0.0339062512f,
      0.0367187522f,   0.0395312496f,   0.0423437469f,   0.0451562516f,
      0.047968749f,    0.05078125f,     0.053593751f,    0.0564062484f,
      0.0592187531f,   0.0620312504f,   0.0648437515f,   0.0676562563f,
      0.0704687461f,   0.0732812509f,   0.0760937482f,   0.078906253f,
      0.0817187577f,   0.0845312476f,   0.0873437524f,   0.0901562497f,
      0.0929687545f,   0.0957812592f,   0.0985937491f,   0.107031256f,
      0.12109375f,     0.135156244f,    0.149218753f,    0.163281247f,
      0.177343756f,    0.19140625f,     0.205468744f,    0.219531253f,
      0.233593747f,    0.247656241f,    0.26171875f,     0.275781274f,
      0.289843738f,    0.303906262f,    0.317968726f,    0.33203125f,
      0.346093744f,    0.360156238f,    0.374218762f,    0.388281226f,
      0.40234375f,     0.416406244f,    0.430468738f,    0.444531262f,
      0.458593726f,    0.47265625f,     0.486718714f,    0.500781238f,
      0.514843702f,    0.528906226f,    0.54296875f,     0.557031274f,
      0.571093798f,    0.585156262f,    0.599218726f,    0.61328125f,
      0.627343774f,    0.641406298f,    0.655468762f,    0.669531226f,
      0.68359375f,     0.697656274f,    0.711718798f,    0.725781262f,
      0.739843726f,    0.75390625f,     0.767968774f,    0.782031238f,
      0.796093762f,    0.810156226f,    0.82421875f,     0.838281274f,
      0.852343738f,    0.866406262f,    0.880468726f,    0.89453125f,
      0.908593774f,    0.922656238f,    0.936718762f,    0.950781226f,
      0.96484375f,     0.978906274f,    0.992968738f};
  Table<kMapped> map{};
  for (int i = 0; i < kPositive; ++i) {
    map.value[kPositive + 1 + i] = kMiddles[i];
    map.value[kPositive - 1 - i] = -kMiddles[i];
  }
  map.value[kMapped - 1] = 1;
  return map;
}

/// The nearest code of `x`, an absmax less the offset, times inverseOf.
TMC_HD inline int mappedCodeOf(float x, const Table<kMapped - 1> &bounds) {
  int code = 0;
  for (int step = kMapped / 2; step; step /= 2)
    if (x > bounds.value[code + step - 1])
      code += step;
  return code;
}

/// The floats of nested maxima of `blocks` blocks, with the offset.
TMC_HD constexpr int64_t nestedFloats(int64_t blocks) {
  return (blocks + kNestedBlock - 1) / kNestedBlock + 1;
}

/// An absmax, from its value in the map.
TMC_HD inline float nestedAbsmax(float mapped, float nested, float offset) {
  return mapped * nested + offset;
}

//===----------------------------------------------------------------------===//
// 8 bits by rows
//===----------------------------------------------------------------------===//

constexpr float kMostCode = 127;
/// 1 / 127, as bitsandbytes has it.
constexpr float kPerCode = 7.874015718698502e-3f;

/// The factor of a row; finite for rows that are nearly zero. It is rounded
/// twice, because torch computes `127 / absmax` so.
TMC_HD inline float rowFactor(float absmax) {
  constexpr float kLargest = 3.4028234663852886e38f;
  const float factor = 1.0f / absmax * kMostCode;
  return absmax == 0 ? 0 : factor < kLargest ? factor : kLargest;
}

/// The nearest integer of each lane, the even one of two: the sum has a unit of
/// one. For numbers of at most 2^22.
template <typename F> TMC_HD inline F nearestInteger(F x) {
  constexpr float kUnit = 12582912.0f; // 1.5 * 2^23
  return (x + kUnit) - kUnit;
}

/// The code of `w` in a row.
TMC_HD inline int8_t rowCode(float w, float factor) {
  return int8_t(nearestInteger(w * factor));
}

/// Before it is rounded to the type of the result.
TMC_HD inline float rowValue(int8_t code, float absmax) {
  return float(code) * absmax * kPerCode;
}

} // namespace tmc::frozen

#endif // TMC_RUNTIME_KERNELS_FROZENCODES_H
