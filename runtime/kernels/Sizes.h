//===- Sizes.h - numbers of bytes as people write them ----------*- C++ -*-===//
//
// All flags of tmc, of tmc-solve and of the trainer that take a size read it
// here:
//
//     4096   12GiB   1.5 MB   800KiB   12G (12GiB; the caller says so)
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_SIZES_H
#define TMC_RUNTIME_KERNELS_SIZES_H

#include <cstdint>
#include <string>
#include <string_view>

namespace tmc {

struct SizeText {
  int64_t bytes = 0; // Rounded down.
  const char *fault =
      nullptr; // The reason why the text is no size; null: none.
  /// "12G is read as 12GiB" if the unit is a letter alone; else empty.
  std::string note;
};

/// Sizes of up to 2^62 bytes. K, M, G, T with iB are binary, with B decimal.
inline SizeText readSize(std::string_view text) {
  const std::string_view whole = text;
  // The number is digits / scale. A fraction counts to twelve places.
  constexpr int64_t kMostBytes = int64_t(1) << 62, kMostScale = 1000000000000;
  constexpr __int128 kMostDigits = __int128(kMostBytes) * kMostScale;
  __int128 digits = 0, scale = 1;
  bool hasPoint = false, hasDigit = false;
  if (!text.empty() && text[0] == '-')
    return {0, "it is negative", ""};
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text[0] == '.' && !hasPoint) {
      hasPoint = true;
      continue;
    }
    if (text[0] < '0' || text[0] > '9')
      break;
    hasDigit = true;
    if (hasPoint && scale == kMostScale)
      continue;
    if (digits > kMostDigits)
      return {0, "it is over 2^62 bytes", ""};
    digits = digits * 10 + (text[0] - '0');
    scale *= hasPoint ? 10 : 1;
  }
  if (!hasDigit)
    return {0, "it doesn't begin with a number", ""};
  const std::string_view number = whole.substr(0, whole.size() - text.size());
  while (!text.empty() && text[0] == ' ')
    text.remove_prefix(1);
  constexpr std::string_view kLetters = "KMGT";
  int64_t unit = 0;
  std::string note;
  if (text.empty() || text == "B")
    unit = 1;
  int64_t binary = 1, decimal = 1;
  for (const char letter : kLetters) {
    binary *= 1024;
    decimal *= 1000;
    if (text.empty() || (text[0] != letter && text[0] != letter - 'A' + 'a'))
      continue;
    const std::string_view rest = text.substr(1);
    if (rest.empty()) {
      unit = binary;
      note = std::string(whole) + " is read as " + std::string(number) +
             letter + "iB";
    } else if (text[0] == letter && (rest == "iB" || rest == "B")) {
      unit = rest == "iB" ? binary : decimal;
    }
  }
  if (!unit)
    return {0, "its unit is unknown", ""};
  // 2^122 at most, by the limit of digits.
  if (digits > kMostDigits / unit || digits * unit / scale > kMostBytes)
    return {0, "it is over 2^62 bytes", ""};
  return {int64_t(digits * unit / scale), nullptr, note};
}

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_SIZES_H
