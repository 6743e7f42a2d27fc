#include "compiler/planning/laboratory/Text.h"

#include "compiler/support/Escape.h"
#include "runtime/kernels/Sizes.h"

#include "absl/strings/str_cat.h"

#include <charconv>
#include <cmath>
#include <limits>

using namespace tmc::planning;

namespace {

/// Digits with at most one point, exactly; leaves the rest of the text.
struct Decimal {
  int64_t digits = 0;
  int64_t scale = 1;
  bool any = false;
};

Decimal takeDecimal(std::string_view &text) {
  Decimal d;
  bool point = false;
  while (!text.empty()) {
    char c = text.front();
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      if (d.digits > std::numeric_limits<int64_t>::max() / 10 - 1 ||
          d.scale > int64_t(1) << 40)
        return {};
      d.digits = d.digits * 10 + (c - '0');
      d.scale *= point ? 10 : 1;
      d.any = true;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  return d;
}

} // namespace

absl::StatusOr<int64_t> tmc::planning::parseSize(std::string_view text) {
  const SizeText size = readSize(text);
  if (size.fault)
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' isn't a size (", size.fault,
                     "): bytes, or a number with KiB, MiB, GiB, KB, MB or GB"));
  return size.bytes;
}

absl::StatusOr<Factor> tmc::planning::parseFactor(std::string_view text) {
  std::string_view rest = text;
  Decimal d = takeDecimal(rest);
  if (!d.any || rest != "x")
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' isn't a factor such as 0.8x"));
  return Factor{d.digits, d.scale};
}

int64_t Factor::times(int64_t bytes) const {
  __int128 product =
      (__int128(numerator) * bytes + denominator - 1) / denominator;
  constexpr int64_t most = std::numeric_limits<int64_t>::max() / 4;
  return product > most ? most : int64_t(product);
}

void JsonWriter::separate() {
  if (afterKey) {
    afterKey = false;
    return;
  }
  if (depth == 0)
    return;
  if (!first)
    out += ',';
  if (depth == 1)
    out += "\n  ";
  else if (!first)
    out += ' ';
}

void JsonWriter::open(char c) {
  separate();
  out += c;
  ++depth;
  first = true;
}

void JsonWriter::close(char c) {
  --depth;
  if (depth == 0 && !first)
    out += '\n';
  out += c;
  first = false;
}

void JsonWriter::key(std::string_view name) {
  value(name);
  out += ": ";
  afterKey = true;
}

void JsonWriter::value(int64_t v) {
  separate();
  out += std::to_string(v);
  first = false;
}

void JsonWriter::value(double v) {
  if (!std::isfinite(v))
    return null();
  separate();
  char buffer[40];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, end);
  first = false;
}

void JsonWriter::value(bool v) {
  separate();
  out += v ? "true" : "false";
  first = false;
}

void JsonWriter::null() {
  separate();
  out += "null";
  first = false;
}

void JsonWriter::value(std::string_view v) {
  separate();
  out += jsonQuoted(v);
  first = false;
}
