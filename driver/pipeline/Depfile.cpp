#include "driver/pipeline/Depfile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace tmc;
using llvm::StringRef;

// Source for make: chapters 4.2 and 4.3 of its manual, and 6.3.1 for variables.
// For ninja: depfile_parser.in.cc, whose names hold no other characters.
constexpr StringRef kEscaped = " #:";
constexpr StringRef kRefused = "\\;|<>*?[]^`";
/// A target with `%` is a pattern, one with `=` the value of a variable.
constexpr StringRef kRefusedInTargets = "%=";

/// The character of `name` that can't be written; 0: none.
static char unwritable(StringRef name, RulePart part) {
  for (char c : name)
    if (c == 0 || uint8_t(c) < 0x20 || c == 0x7f || kRefused.contains(c) ||
        (part == RulePart::Target && kRefusedInTargets.contains(c)))
      return c ? c : '\n';
  // `lib(member)` is a part of an archive. Ninja keeps the backslash of a colon
  // before a space.
  if (name.ends_with(")") || name.ends_with(":"))
    return name.back();
  return 0;
}

std::optional<std::string> tmc::makeName(const std::string &name,
                                         RulePart part) {
  if (name.empty() || unwritable(name, part))
    return std::nullopt;
  // A home directory, and an option.
  std::string text = name[0] == '~' || name[0] == '-' ? "./" : "";
  for (char c : name) {
    if (kEscaped.contains(c))
      text += '\\';
    if (c == '$')
      text += '$';
    text += c;
  }
  return text;
}

Expected<void> tmc::checkMakeNames(const std::vector<std::string> &names,
                                   RulePart part) {
  for (const std::string &name : names)
    if (char c = unwritable(name, part)) {
      std::string shown;
      llvm::raw_string_ostream os(shown);
      llvm::printEscapedString(name, os);
      return Failure::usage("a depfile can't name '" + shown +
                            "': make and ninja read " +
                            (uint8_t(c) < 0x20 || c == 0x7f
                                 ? std::string("control characters")
                                 : "'" + std::string(1, c) + "'") +
                            " as their own")
          .note("give the file another name, or leave out -MD and -MF");
    }
  return {};
}

/// Names below each other, ` \` at the end of each line but the last.
static std::string listed(const std::vector<std::string> &names,
                          RulePart part) {
  std::vector<std::string> words;
  for (const std::string &name : names)
    words.push_back(makeName(name, part).value_or(""));
  return llvm::join(words, " \\\n ");
}

/// Names with `=` go last: make takes `: NAME=...` for a variable.
static std::vector<std::string> inOrder(std::vector<std::string> names) {
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string &name) {
                          return name.find('=') == std::string::npos;
                        });
  return names;
}

Expected<void> tmc::checkRule(const DependRule &rule) {
  for (auto done : {checkMakeNames(rule.targets, RulePart::Target),
                    checkMakeNames(rule.prerequisites, RulePart::Prerequisite)})
    if (!done)
      return done;
  // Then all of them have one.
  if (!rule.prerequisites.empty() &&
      StringRef(inOrder(rule.prerequisites)[0]).contains('='))
    return checkMakeNames(rule.prerequisites, RulePart::Target);
  return {};
}

Expected<void> tmc::writeDepfile(const std::string &path,
                                 const DependRule &rule) {
  TMC_TRY(checkRule(rule));
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (!error) {
    os << listed(rule.targets, RulePart::Target) << ": \\\n "
       << listed(inOrder(rule.prerequisites), RulePart::Prerequisite) << "\n";
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return Failure::world("can't write '" + path + "': " + error.message());
  return {};
}
