// Escape.h - what a file says, in the languages that tmc writes.
//
// A name of a model's file may hold whatever its author likes but for control
// characters, which the readers refuse. Whoever writes such a text passes it
// through the function of the language it is written in, and nothing else does:
//
//   C++ comment   inComment     // 3 a*?b: 12.0 MiB at +301 MiB.
//   C++ string    cppString     {.name = "a*/b\342\200\256", ...
//   C++ names     none          fused_17: our own words and numbers
//   HTML          inHtml        a &lt;b&gt;
//   terminal      visible       a\u202eb (runtime/kernels/Names.h) JSON
//   jsonQuoted    "a\u202eb"              (runtime/kernels/Names.h)
//                 jsonText      a whole document (compiler/support/Json.h)
//   MLIR          its printer   "a\E2\80\AEb"

#ifndef TMC_COMPILER_SUPPORT_ESCAPE_H
#define TMC_COMPILER_SUPPORT_ESCAPE_H

#include "runtime/kernels/Names.h"

#include <string>
#include <string_view>

namespace tmc {

/// `text` within a comment of C or C++, of either kind: printable ASCII of at
/// most 100 characters, without a backslash and without marks that begin or end
/// a comment; a question mark stands for what can't be there. Whoever writes a
/// comment ends it with a full stop, so that no text of a file ends a line.
std::string inComment(std::string_view text);

/// `text` as a string of C++, with its quotes. The compiler makes the same
/// bytes of it, whatever the character set of its source.
std::string cppString(std::string_view text);

/// `text` within HTML, between tags or as an attribute in quotes; what would be
/// hidden is written out.
std::string inHtml(std::string_view text);

/// True if `text` is an identifier of C++, or several joined by `::`: what we
/// print without quotes.
bool isCppName(std::string_view text);

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_ESCAPE_H
