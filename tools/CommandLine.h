// CommandLine.h - a command line with subcommands and flags.
//
// LLVM's command line parses. The code here first checks the words: it reports
// a mistake once, in one message with a suggestion, and prints the help.
//
//     tmc compile model.onnx --budgt 1GiB
//     tmc: error: unknown flag '--budgt'
//     tmc: note: did you mean '--budget'?
//
// `--messages=json` counts wherever it stands, so that a mistake before it is
// reported as JSON, too. `--config FILE` gives flags, and the words that aren't
// flags (runtime/step/ConfigFile.h); what the command line has itself wins.

#ifndef TMC_TOOLS_COMMANDLINE_H
#define TMC_TOOLS_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>
#include <vector>

namespace tmc {

struct Command {
  llvm::cl::SubCommand *parser;
  const char *words; // After its name: "MODEL [flags]".
  size_t wordCount;  // Words that aren't flags.
  const char *summary;
  const char *table = nullptr; // Of --config's file; null: it takes none.
  size_t moreWords = 0;        // Further words that it may have.
};

struct Program {
  const char *name, *summary, *version, *epilogue;
  llvm::ArrayRef<Command> commands;
};

/// Parses the command line `words`, the program's name first. The flags of
/// --config are among them afterwards. Returns the exit code to end with at
/// once, help and mistakes having been dealt with, or nothing if a command is
/// to be run.
std::optional<int> parseCommandLine(std::vector<std::string> &words,
                                    const Program &program);

/// The text of a file for --config that says what `words`, a parsed command
/// line, say, but for `--config` itself and the flags named in `without`.
std::string configText(llvm::ArrayRef<std::string> words,
                       const Program &program,
                       llvm::ArrayRef<llvm::StringRef> without);

} // namespace tmc

#endif // TMC_TOOLS_COMMANDLINE_H
