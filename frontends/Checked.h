// Checked.h - arithmetic on sizes that come from a file.
//
// Every product or sum of a model's numbers uses these functions, so that no
// model can make a size wrap around.

#ifndef TMC_FRONTENDS_CHECKED_H
#define TMC_FRONTENDS_CHECKED_H

#include <cstdint>
#include <optional>

namespace tmc {

inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// The number of elements of a tensor with these dimensions; nothing if one is
/// negative or the product doesn't fit.
template <typename Range>
std::optional<int64_t> checkedNumElements(const Range &dims) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    auto product = checkedMul(count, dim);
    if (!product)
      return std::nullopt;
    count = *product;
  }
  return empty ? 0 : count;
}

/// True if [offset, offset + length) lies within [0, size).
inline bool fitsWithin(int64_t offset, int64_t length, int64_t size) {
  return offset >= 0 && length >= 0 && size >= 0 && offset <= size &&
         length <= size - offset;
}

} // namespace tmc

#endif // TMC_FRONTENDS_CHECKED_H
