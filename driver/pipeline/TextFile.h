// TextFile.h - files that the user named, whole: read, and written completely
// or not at all.

#ifndef TMC_DRIVER_PIPELINE_TEXTFILE_H
#define TMC_DRIVER_PIPELINE_TEXTFILE_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <string>

namespace tmc {

/// Writes a complete file or leaves the old one: a full disk leaves no half
/// file. A file that isn't regular (a terminal, a pipe) is written directly.
Expected<void> writeText(const std::string &path, const std::string &text);

/// The content of a regular file of at most `mostBytes`. Errors: `World` if it
/// can't be read, `Input` if it is no regular file or larger.
Expected<std::string> readText(const std::string &path, int64_t mostBytes);

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_TEXTFILE_H
