//===- Dequantize.cpp - frozen weights back from codes on cpu -------------===//

#include "runtime/kernels/Dequantize.h"

#include "runtime/cpu/FrozenCodes.h"
#include "runtime/cpu/Parallel.h"

#include <algorithm>

namespace tmc {

namespace {

/// Numbers that one thread decodes at a time: whole blocks.
constexpr int64_t kTile = 1 << 14;
static_assert(kTile % frozen::kBlock == 0);

template <typename T>
void decodeRows(Stream &stream, const Dequantize::Params &p, In ins, T *out) {
  const auto *codes = static_cast<const int8_t *>(operand(ins, 0));
  const auto *absmax = static_cast<const float *>(operand(ins, 1));
  const int64_t height = std::max<int64_t>(1, kTile / p.columns);
  parallelFor(stream, (p.rows + height - 1) / height,
              [&](int64_t tile, int64_t) {
                const int64_t last = std::min(p.rows, (tile + 1) * height);
                for (int64_t row = tile * height; row < last; ++row)
                  frozen::decodeRow(codes + row * p.columns, p.columns,
                                    absmax[row], out + row * p.columns);
              });
}

template <typename T>
void decodeBlocks(Stream &stream, const Dequantize::Params &p, In ins, T *out) {
  const int64_t count = p.rows * p.columns;
  const frozen::Nf4 stored = frozen::nf4Of(operand(ins, 0), operand(ins, 1),
                                           p.nested ? operand(ins, 2) : nullptr,
                                           count / frozen::kBlock);
  parallelFor(stream, (count + kTile - 1) / kTile, [&](int64_t tile, int64_t) {
    const int64_t first = tile * kTile;
    frozen::decode(stored, first, std::min(kTile, count - first), out + first);
  });
}

} // namespace

struct Dequantize::State {};
Dequantize::Dequantize(const Params &params) : params_(params) {}
Dequantize::~Dequantize() = default;

Status Dequantize::prepare(Device &) { return Status::ok(); }

void Dequantize::run(Stream &stream, In ins, Out outs, void *, bool) {
  const Params &p = params_;
  auto decodeAs = [&](auto like) {
    auto *out = static_cast<decltype(like) *>(result(outs, 0));
    return p.byRows ? decodeRows(stream, p, ins, out)
                    : decodeBlocks(stream, p, ins, out);
  };
  if (p.out == DType::BF16)
    return decodeAs(bf16());
  if (p.out == DType::F16)
    return decodeAs(f16());
  decodeAs(float());
}

} // namespace tmc
