// Page.h - parts of the pages: marks that texts replace, and the facts that
// tell one page from another.

#ifndef TMC_COMPILER_REPORT_PAGE_H
#define TMC_COMPILER_REPORT_PAGE_H

#include "compiler/report/Planned.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>

namespace tmc {

/// A mark of a page, "<!--TITLE-->", and the HTML for it.
using Filling = std::pair<llvm::StringRef, std::string>;

/// Replaces marks in `page` by texts. A mark inside a text isn't replaced.
std::string filled(llvm::StringRef page, llvm::ArrayRef<Filling> fillings);

/// The version, the date, the command and the fingerprints, as HTML.
std::string madeHtml(const Provenance &made);

/// A table of HTML. Cells are texts, which it escapes.
class HtmlTable {
public:
  struct Column {
    std::string name;
    bool isNumber = false;
  };
  /// `label`: for readers of the page that don't see it.
  HtmlTable(std::string label, std::vector<Column> columns);
  void row(const std::vector<std::string> &cells);
  size_t size() const { return rows.size(); }
  /// The first rows, and the rest where it is asked for.
  std::string html() const;

private:
  std::string part(size_t begin, size_t end) const;
  std::string label;
  std::vector<Column> columns;
  std::vector<std::string> rows; // As HTML.
};

/// Values over a number, as a line.
struct Line {
  std::vector<std::pair<double, double>> points; // By ascending first.
  bool isDashed = false;
};

/// A picture of lines with both axes; `label` says what it shows.
std::string linesSvg(const std::string &label, const std::string &xName,
                     const std::string &yName, llvm::ArrayRef<Line> lines);

/// A page of sections without a script. `title` and `subtitle` are texts,
/// `body` is HTML.
std::string plainPage(const std::string &title, const std::string &subtitle,
                      const std::string &body);

/// A heading, a text about it, and the content, which is HTML.
std::string section(const std::string &title, const std::string &text,
                    const std::string &content);

/// The words of a command as a shell reads them.
std::string commandText(llvm::ArrayRef<std::string> words);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PAGE_H
