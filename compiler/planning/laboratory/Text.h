// Text.h - sizes in human notation, and the JSON of `--json`.

#ifndef TMC_COMPILER_PLANNING_LABORATORY_TEXT_H
#define TMC_COMPILER_PLANNING_LABORATORY_TEXT_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tmc::planning {

/// "4096", "12GiB", "1.5 MB": bytes, as runtime/kernels/Sizes.h reads them. An
/// error repeats the text.
absl::StatusOr<int64_t> parseSize(std::string_view text);

/// "0.8x": the factor, as an exact decimal fraction; `times` applies it.
struct Factor {
  int64_t numerator = 1;
  int64_t denominator = 1;
  /// ceil(factor * bytes).
  int64_t times(int64_t bytes) const;
};
absl::StatusOr<Factor> parseFactor(std::string_view text);

/// Writes one JSON object or array after another, with commas where they
/// belong and one member per line at the top.
class JsonWriter {
public:
  void beginObject() { open('{'); }
  void endObject() { close('}'); }
  void beginArray() { open('['); }
  void endArray() { close(']'); }
  void key(std::string_view name);
  void value(int64_t v);
  void value(double v); // Shortest form that reads back the same.
  void value(bool v);
  void value(std::string_view v);
  void value(const char *v) { value(std::string_view(v)); }
  void null();
  template <typename T> void member(std::string_view name, T v) {
    key(name);
    value(v);
  }
  void nullMember(std::string_view name) {
    key(name);
    null();
  }
  std::string take() { return std::move(out) + "\n"; }

private:
  void open(char c);
  void close(char c);
  void separate();
  std::string out;
  int depth = 0;
  bool first = true;
  bool afterKey = false;
};

} // namespace tmc::planning

#endif // TMC_COMPILER_PLANNING_LABORATORY_TEXT_H
