// PackedHeads.h - packed gradients of attention against those apart.
#ifndef TMC_TEST_UNIT_RUNTIME_PACKEDHEADS_H
#define TMC_TEST_UNIT_RUNTIME_PACKEDHEADS_H

#include "runtime/kernels/Attention.h"

#include <cstring>

namespace tmc::test {

/// True if gradients may be packed.
inline bool canPack(const AttentionParams &p) {
  return p.queries == p.keys && !p.bias;
}

/// Elements of the packed result.
inline int64_t packedElements(const AttentionParams &p) {
  return p.batch * p.queries * (p.heads + 2 * p.kvHeads) * p.headDim;
}

/// True if each row of `packed` is a row of dq, one of dk and one of dv, bit
/// for bit.
inline bool isPackedOf(const AttentionParams &p, const void *packed,
                       const void *dq, const void *dk, const void *dv) {
  auto at = static_cast<const char *>(packed);
  const int64_t headBytes = p.headDim * sizeOf(p.type);
  for (int64_t row = 0; row < p.batch * p.queries; ++row)
    for (auto [part, heads] :
         {std::pair(dq, p.heads), {dk, p.kvHeads}, {dv, p.kvHeads}}) {
      const int64_t bytes = heads * headBytes;
      if (std::memcmp(at, static_cast<const char *>(part) + row * bytes,
                      size_t(bytes)) != 0)
        return false;
      at += bytes;
    }
  return true;
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_PACKEDHEADS_H
