// Page.h - parts of the pages: marks that texts replace, and the facts that tell
// one page from another.

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

/// The words of a command as a shell reads them.
std::string commandText(llvm::ArrayRef<std::string> words);

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PAGE_H
