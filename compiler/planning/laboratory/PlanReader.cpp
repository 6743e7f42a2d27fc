#include "compiler/planning/laboratory/PlanFile.h"

#include "runtime/step/JsonReader.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

using namespace tmc::planning;

namespace {

/// The most bytes, offsets and alignments of a file: sums of two fit 63 bits.
constexpr int64_t kMostBytes = int64_t(1) << 61;

/// Reads one plan. Each function returns false after the first failure.
class PlanReader {
public:
  explicit PlanReader(std::string_view text) : at(text, "plan") {}

  absl::StatusOr<PlanFile> read() {
    if (!object([&](const std::string &key) { return member(key); }) ||
        !at.finish())
      return absl::InvalidArgumentError(absl::StrCat(inEntry, at.error()));
    if (!hasSequence)
      return absl::InvalidArgumentError("the plan has no 'sequence'");
    return std::move(plan);
  }

private:
  /// An object without repeated keys.
  bool object(const std::function<bool(const std::string &)> &each) {
    std::set<std::string> seen;
    return at.object([&](const std::string &key) {
      return at.checkName(key) &&
             (seen.insert(key).second ||
              at.fail(absl::StrCat("the key '", key, "' stands twice"))) &&
             each(key);
    });
  }

  bool list(const std::function<bool()> &each) {
    if (!at.expect('['))
      return false;
    if (at.accept(']'))
      return true;
    do {
      if (!each())
        return false;
    } while (at.accept(','));
    return at.expect(']');
  }

  /// A number of at least `least` and at most `most`.
  bool number(const std::string &what, int64_t least, int64_t most,
              int64_t &out) {
    const int64_t place = at.position();
    return at.whole(out) &&
           ((least <= out && out <= most) ||
            at.failAt(place, absl::StrCat(what, " is ", out, ", not from ",
                                          least, " to ", most)));
  }

  /// True if null comes next; then it is read.
  bool isNull() {
    std::string_view word;
    return at.isNext('n') && at.raw(word) &&
           (word == "null" || at.fail("a value expected"));
  }

  /// The same, or null.
  bool claim(const std::string &what, std::optional<int64_t> &out) {
    if (isNull() || !at.error().empty())
      return at.error().empty();
    out.emplace();
    return number(what, 0, kMostBytes, *out);
  }

  /// `name` of the device alone, or a list for each space.
  bool claims(const std::string &key, std::vector<std::optional<int64_t>> &out,
              bool isList) {
    if (!out.empty())
      return at.fail("one space is stated twice, as the device's and in a "
                     "list");
    const std::string what = absl::StrCat("'", key, "'");
    auto one = [&] { return claim(what, out.emplace_back()); };
    return isList ? list(one) : one();
  }

  bool member(const std::string &key) {
    if (key == "sequence")
      return sequence();
    if (isNull() || !at.error().empty())
      return at.error().empty();
    if (key == "homes")
      return list([&] { return at.whole(plan.homes.emplace_back()); });
    if (key == "cost" || key == "makespan")
      return plan.makespan
                 ? at.fail("the time is stated twice, as 'cost' and 'makespan'")
                 : claim(absl::StrCat("'", key, "'"), plan.makespan);
    if (key == "peak" || key == "peaks")
      return claims(key, plan.peaks, key == "peaks");
    if (key == "budget" || key == "budgets")
      return claims(key, plan.budgets, key == "budgets");
    if (key == "arenas")
      return list([&] { return arena(plan.arenas.emplace_back()); });
    if (key == "offered")
      return offered(plan.offered.emplace());
    return at.skip();
  }

  bool sequence() {
    hasSequence = true;
    if (isNull())
      return at.fail("'sequence' is null: no plan was found for that budget");
    return list([&] {
      const size_t n = plan.isGraph ? plan.nodes.size() : plan.entries.size();
      if (n == 0)
        plan.isGraph = !at.isNext('[');
      if (plan.isGraph ? at.whole(plan.nodes.emplace_back())
                       : entry(plan.entries.emplace_back()))
        return true;
      inEntry = absl::StrCat("entry ", n, " of 'sequence': ");
      return false;
    });
  }

  bool entry(PlanFile::Entry &e) {
    return at.expect('[') && at.whole(e.segment) && at.expect(',') &&
           at.whole(e.recipe) && at.expect(',') && at.whole(e.instruction) &&
           at.expect(',') && at.whole(e.work) && at.expect(',') &&
           number("a done", 0, 1, e.done) && at.expect(',') && list([&] {
             auto &[read, written] = e.overwrites.emplace_back();
             return at.expect('[') && at.whole(read) && at.expect(',') &&
                    at.whole(written) && at.expect(']');
           }) &&
           at.expect(']');
  }

  bool arena(StatedArena &out) {
    return object([&](const std::string &key) {
      if (key == "space")
        return at.whole(out.space);
      if (key == "alignment")
        return number("'alignment'", 1, kMostBytes, out.alignment);
      if (key == "bytes")
        return claim("'bytes'", out.bytes);
      if (key == "buffers")
        return list([&] { return buffer(out.buffers.emplace_back()); });
      return at.skip();
    });
  }

  bool buffer(Buffer &b) {
    return at.expect('[') && at.string(b.name) && at.expect(',') &&
           number("the begin of a buffer", 0, kMostBytes, b.lifetime.begin) &&
           at.expect(',') &&
           number("the end of a buffer", 0, kMostBytes, b.lifetime.end) &&
           at.expect(',') &&
           number("the size of a buffer", 0, kMostBytes, b.bytes) &&
           at.expect(',') &&
           number("the offset of a buffer", 0, kMostBytes, b.fixedOffset) &&
           at.expect(']');
  }

  bool offered(OfferedMoves &out) {
    const std::pair<std::string_view, int64_t *> rates[] = {
        {"bandwidth", &out.bandwidth},
        {"host_bandwidth", &out.hostBandwidth},
        {"memory_bandwidth", &out.memoryBandwidth},
        {"file_bandwidth", &out.fileBandwidth},
        {"file_write_bandwidth", &out.fileWriteBandwidth}};
    return object([&](const std::string &key) {
      for (const auto &[name, rate] : rates)
        if (key == name) // A file may be absent, and a limit of the memory.
          return number(absl::StrCat("'", key, "'"),
                        !key.starts_with("file") && !key.starts_with("memory"),
                        OfferedMoves::kMostBandwidth, *rate);
      return key == "move" ? moveClass(out.moveClass) : at.skip();
    });
  }

  bool moveClass(size_t &out) {
    std::string name;
    if (!at.string(name))
      return false;
    const auto &all = OfferedMoves::kClasses;
    out = size_t(std::find(all.begin(), all.end(), name) - all.begin());
    return out < all.size() ||
           at.fail("'move' isn't all, activations or states");
  }

  tmc::JsonReader at;
  PlanFile plan;
  bool hasSequence = false;
  std::string inEntry; // The entry of the first failure, for messages.
};

} // namespace

absl::StatusOr<PlanFile> tmc::planning::parsePlan(std::string_view text) {
  return PlanReader(text).read();
}
