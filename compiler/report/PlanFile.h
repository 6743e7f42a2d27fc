// PlanFile.h - a directory that `tmc compile` wrote, as reports about it read
// it: the figures of plan.json and the trace.

#ifndef TMC_COMPILER_REPORT_PLANFILE_H
#define TMC_COMPILER_REPORT_PLANFILE_H

#include "compiler/report/PlanTrace.h"
#include "compiler/report/Planned.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>

namespace tmc {

/// The kind of a figure: how it is shown, and how two of them are compared.
enum class Unit { Bytes, Seconds, Percent, Count, Text };

/// A figure of plan.json.
struct PlanFigure {
  const char *title;
  const char *path; // The keys, joined by dots: "spaces.host.arena_bytes".
  Unit unit;
};

/// plan.json of this schema.
class PlanFile {
public:
  /// Error: `text` is no plan.json of this schema.
  static Expected<PlanFile> read(llvm::StringRef text);

  /// Nothing: the file has no such number, or null.
  std::optional<double> number(llvm::StringRef path) const;
  /// "": the file has no such text, or null.
  std::string text(llvm::StringRef path) const;
  /// The figure in words; "": unknown.
  std::string shown(const PlanFigure &figure) const;
  Provenance made() const;

private:
  const llvm::json::Value *find(llvm::StringRef path) const;
  llvm::json::Object fields;
};

/// A directory's plan.
struct PlanDirectory {
  std::string name; // As it was given.
  PlanFile plan;
  PlanTrace trace;
};

/// `text` with blanks behind or before it, up to `width` characters.
std::string atLeft(std::string text, size_t width);
std::string atRight(const std::string &text, size_t width);

/// "1.25 GiB", "3.40 ms", "7.03 %", "12".
std::string shownAs(Unit unit, double value);
/// The second figure over the first: "+1.2 MiB", "-3.4 %"; "": the same, or not
/// to be compared.
std::string differenceAs(Unit unit, double first, double second);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PLANFILE_H
