// Messages.h - messages of tmc on standard error, for people or for programs.
//
// People read text, and so does a terminal:
//
//   tmc: error: the step doesn't fit the budget of 1.00 MiB (1048576 bytes)
//   tmc: note: no plan can exist below 3.75 MiB (3932160 bytes)
//
// With `--messages=json` each message is one line with one JSON object:
//
//   {"code":3,"kind":"error","message":"the step doesn't fit ...",
//    "nodes":[],"notes":["no plan can exist below ..."],
//    "numbers":{"budget_bytes":1048576,"impossible_below_bytes":3932160}}
//   {"kind":"warning","message":"..."}
//   {"kind":"note","message":"..."}
//   {"kind":"progress","message":"plan ..."}
//   {"kind":"summary","message":"the table of tmc plan"}
//
// An error ends the command with its code, and is the last line. `nodes` has an
// object with "op", "name", "line" and "reason" for each part of the model that
// isn't supported. Every line that a command writes after its flags are read
// has this form. Output of the host's compiler is in notes.

#ifndef TMC_DRIVER_PIPELINE_MESSAGES_H
#define TMC_DRIVER_PIPELINE_MESSAGES_H

#include "compiler/support/Failure.h"

#include <string>

namespace tmc {

enum class MessageFormat { Text, Json };

/// The format of all messages of this process from now on. Standard error is
/// one stream, and so the format is one for the process.
void setMessageFormat(MessageFormat format);
MessageFormat messageFormat();

/// Prints `failure`: "tmc: error: ..." and its notes.
void report(const Failure &failure);
/// Prints "tmc: warning: ...".
void warn(const std::string &message);
/// Prints "tmc: note: ...".
void note(const std::string &message);
/// Prints the text that a successful command ends with, of several lines.
void summarize(const std::string &text);

/// Shows `what` in the place of the progress that was shown before; "" takes it
/// away. On a terminal that is one line; a program gets an object for each
/// `what` that isn't empty.
void showProgress(const std::string &what);
/// True if somebody sees progress: a terminal, or a program that reads JSON.
bool isProgressSeen();

} // namespace tmc

#endif // TMC_DRIVER_PIPELINE_MESSAGES_H
