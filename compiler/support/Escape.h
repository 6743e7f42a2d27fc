// Escape.h - text of a file, escaped for the languages that tmc writes.
//
// A name in a model's file may hold any characters except control characters,
// which the readers refuse. The code that writes such a text passes it through
// the function of the output's language, and no other code escapes it:
//
//   C++ comment   inComment     // 3 a*?b: 12.0 MiB at +301 MiB.
//   C++ string    cppString     {.name = "a*/b\342\200\256", ...
//   C++ names     none          fused_17: our own words and numbers
//   HTML          inHtml        a &lt;b&gt;
//   terminal      visible       a\u202eb     (runtime/kernels/Names.h)
//   JSON          jsonQuoted    "a\u202eb"   (runtime/kernels/Names.h)
//                 jsonText      a whole document (compiler/support/Json.h)
//   MLIR          its printer   "a\E2\80\AEb"

#ifndef TMC_COMPILER_SUPPORT_ESCAPE_H
#define TMC_COMPILER_SUPPORT_ESCAPE_H

#include "runtime/kernels/Names.h"

#include <string>
#include <string_view>

namespace tmc {

/// `text` for a comment of C or C++, of either kind: printable ASCII of at most
/// 100 characters, without a backslash and without marks that begin or end a
/// comment; a question mark replaces each forbidden character. The caller ends
/// its comment with a full stop, so that no text of a file ends a line.
std::string inComment(std::string_view text);

/// `text` as a string literal of C++, with its quotes. A compiler makes the
/// same bytes from the literal in any character set of its source.
std::string cppString(std::string_view text);

/// `text` for HTML, between tags or as a quoted attribute; hidden characters
/// are written as escapes.
std::string inHtml(std::string_view text);

/// True if `text` is an identifier of C++, or several joined by `::`: such text
/// is printed without quotes.
bool isCppName(std::string_view text);

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_ESCAPE_H
