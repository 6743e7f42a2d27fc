//===- Typed.cpp - values of narrow types for kernels' tests --------------===//

#include "Typed.h"

#include "runtime/kernels/Storage.h"

namespace tmc::test {

/// Calls f with each of `count` elements at `bytes`, as what holds `type`.
template <typename F>
static void forEach(DType type, unsigned char *bytes, int64_t count, F &&f) {
  auto all = [&](auto like) {
    auto *at = reinterpret_cast<decltype(like) *>(bytes);
    for (int64_t i = 0; i < count; ++i)
      f(at[i], i);
  };
  switch (type) {
  case DType::BF16:
    return all(bf16{});
  case DType::F16:
    return all(f16{});
  case DType::F8E4M3:
    return all(f8e4m3{});
  case DType::F8E5M2:
    return all(f8e5m2{});
  default:
    return all(0.0f);
  }
}

Typed::Typed(DType type, const Floats &exact)
    : type(type), values(exact), bytes(exact.size() * sizeOf(type)) {
  forEach(type, bytes, exact.size(), [&](auto &to, int64_t i) {
    using T = std::decay_t<decltype(to)>;
    if constexpr (isNarrow<T>)
      to = narrow<T>(exact[i]);
    else
      to = exact[i];
  });
  read();
}

void Typed::read() {
  forEach(type, bytes, values.size(), [&](auto &from, int64_t i) {
    using T = std::decay_t<decltype(from)>;
    if constexpr (isNarrow<T>)
      values[i] = widen(from);
    else
      values[i] = from;
  });
}

double roundingOf(DType type) {
  switch (type) {
  case DType::BF16:
    return 0x1p-8;
  case DType::F16:
    return 0x1p-11;
  case DType::F8E4M3:
    return 0x1p-4;
  case DType::F8E5M2:
    return 0x1p-3;
  default:
    return 0x1p-24;
  }
}

} // namespace tmc::test
