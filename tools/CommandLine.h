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
// reported as JSON, too.

#ifndef TMC_TOOLS_COMMANDLINE_H
#define TMC_TOOLS_COMMANDLINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>

namespace tmc {

struct Command {
  llvm::cl::SubCommand *parser;
  const char *words; // After its name: "MODEL [flags]".
  size_t wordCount;  // Words that aren't flags.
  const char *summary;
};

struct Program {
  const char *name, *summary, *version, *epilogue;
  llvm::ArrayRef<Command> commands;
};

/// Parses the command line. Returns the exit code to end with at once, help and
/// mistakes having been dealt with, or nothing if a command is to be run.
std::optional<int> parseCommandLine(int argc, char **argv,
                                    const Program &program);

} // namespace tmc

#endif // TMC_TOOLS_COMMANDLINE_H
