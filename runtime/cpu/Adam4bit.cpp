//===- Adam4bit.cpp - AdamW with moments in 4 bits on cpu -----------------===//

#include "runtime/kernels/Adam4bit.h"
#include "runtime/cpu/AdamFactors.h"
#include "runtime/cpu/Updates.h"

namespace tmc {

using namespace updates;

namespace {

/// The codes of one moment: the two values of each byte, and the bounds of
/// codes.
struct NibbleTable {
  float pair[256][2];
  float bounds[adam::kNibbles - 1];

  explicit NibbleTable(bool isSigned) {
    for (int byte = 0; byte < 256; ++byte) {
      pair[byte][0] = adam::nibbleValue(isSigned, byte >> 4);
      pair[byte][1] = adam::nibbleValue(isSigned, byte & 15);
    }
    for (int code = 0; code + 1 < adam::kNibbles; ++code)
      bounds[code] = adam::nibbleBound(isSigned, code);
  }
};

const NibbleTable &nibblesOf(bool isSigned) {
  static const NibbleTable first(true), second(false);
  return isSigned ? first : second;
}

/// Converts a block's moments to floats and back.
struct NibbleMoments {
  alignas(64) float x[adam::kNibbleBlock];

  void read(const NibbleTable &table, const uint8_t *codes, float scale) {
    for (int i = 0; i < adam::kNibbleBlock / 2; ++i) {
      const float *pair = table.pair[codes[i]];
      x[2 * i] = pair[0] * scale;
      x[2 * i + 1] = pair[1] * scale;
    }
  }
  void write(const NibbleTable &table, uint8_t *codes, float *scale) const {
    V largest{};
    for (int i = 0; i < adam::kNibbleBlock; i += kWidth) {
      const V v = simd::load(x + i);
      largest = simd::max(largest, simd::max(v, -v));
    }
    float lanes[kWidth];
    simd::store(lanes, largest);
    *scale = adam::scaleOf(*std::max_element(lanes, lanes + kWidth));
    const V divisor = simd::splat(*scale);
    int32_t numbers[adam::kNibbleBlock];
    for (int i = 0; i < adam::kNibbleBlock; i += kWidth) {
      const V v = simd::load(x + i) / divisor;
      simd::VI code{};
      for (float bound : table.bounds)
        code -= v >= simd::splat(bound); // A mask's lanes are 0 or -1.
      std::memcpy(numbers + i, &code, sizeof code);
    }
    for (int i = 0; i < adam::kNibbleBlock / 2; ++i)
      codes[i] = uint8_t(numbers[2 * i] << 4 | numbers[2 * i + 1]);
  }
};

} // namespace

struct AdamW4bit::State {};
AdamW4bit::AdamW4bit(const Params &params) : params_(params) {}
AdamW4bit::~AdamW4bit() = default;

Status AdamW4bit::prepare(Device &) {
  (void)nibblesOf(true); // Built before the first step.
  return cpu::requireScratch("adamw4bit", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

namespace {

template <typename Param, typename Grad>
void adamw4bit(Stream &stream, const AdamParams &q, In ins, Out outs,
               void *scratch) {
  const NibbleTable &first = nibblesOf(true), &second = nibblesOf(false);
  const auto *grad = static_cast<const Grad *>(operand(ins, 1));
  const int64_t step = *longs(operand(ins, 7));
  float *squares = floats(result(outs, 5));
  if (isSkipped(&step, floats(operand(ins, 8))))
    return reportSquares(stream, grad, q.count, scratch, squares);
  const AdamFactors f(adam::factors(q, floats(operand(ins, 6)), &step,
                                    floats(operand(ins, 8))));
  auto *param = static_cast<Param *>(result(outs, 0));
  auto *firstCodes = static_cast<uint8_t *>(result(outs, 1));
  float *firstScales = floats(result(outs, 2));
  auto *secondCodes = static_cast<uint8_t *>(result(outs, 3));
  float *secondScales = floats(result(outs, 4));
  const RoundedCopy copy(q.copy, result(outs, 6));
  static_assert(kUpdateTile % adam::kNibbleBlock == 0);

  updateTiles(stream, q.count, grad, scratch, squares,
              [&](int64_t begin, int64_t end) {
                Chance<kDrawnValues<Param, float, 0>> chance(q.stream, step);
                NibbleMoments m, v;
                for (int64_t at = begin; at < end; at += adam::kNibbleBlock) {
                  const int64_t block = at / adam::kNibbleBlock;
                  m.read(first, firstCodes + at / 2, firstScales[block]);
                  v.read(second, secondCodes + at / 2, secondScales[block]);
                  for (int64_t i = 0; i < adam::kNibbleBlock; i += kWidth)
                    updateFinite(f, chance, grad, param, copy, at + i, kWidth,
                                 m.x + i, v.x + i);
                  m.write(first, firstCodes + at / 2, firstScales + block);
                  v.write(second, secondCodes + at / 2, secondScales + block);
                }
                return squaresOf(grad, begin, end);
              });
}

} // namespace

void AdamW4bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  withUpdated(params_.param, params_.grad, DType::F32,
              [&](auto param, auto grad, auto) {
                adamw4bit<decltype(param), decltype(grad)>(stream, params_, ins,
                                                           outs, scratch);
              });
}

} // namespace tmc
