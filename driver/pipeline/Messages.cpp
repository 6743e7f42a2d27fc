#include "driver/pipeline/Messages.h"

#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <unistd.h>

using namespace tmc;
namespace json = llvm::json;

static MessageFormat chosenFormat = MessageFormat::Text;

void tmc::setMessageFormat(MessageFormat format) { chosenFormat = format; }
MessageFormat tmc::messageFormat() { return chosenFormat; }

static bool isJson() { return chosenFormat == MessageFormat::Json; }
static bool isColoured() { return isatty(2) && !getenv("NO_COLOR"); }

/// A string of JSON holds UTF-8 only; a path may hold any bytes.
static json::Value textOf(const std::string &text) {
  return json::isUTF8(text) ? text : json::fixUTF8(text);
}

/// Writes the line at once: a program waits for it.
static void print(json::Object message) {
  llvm::errs() << visible(jsonText(std::move(message)));
  llvm::errs().flush();
}

static void print(const char *kind, const std::string &message) {
  if (isJson())
    return print(json::Object{{"kind", kind}, {"message", textOf(message)}});
  llvm::errs() << "tmc: " << kind << ": " << visible(message) << "\n";
}

void tmc::report(const Failure &failure) {
  if (isJson()) {
    json::Array notes, nodes;
    json::Object numbers;
    for (const std::string &note : failure.notes)
      notes.push_back(textOf(note));
    for (const FailurePlace &place : failure.places)
      nodes.push_back(json::Object{{"op", textOf(place.op)},
                                   {"name", textOf(place.name)},
                                   {"line", textOf(place.line)},
                                   {"reason", textOf(place.reason)}});
    for (const auto &[name, value] : failure.numbers)
      numbers[name] = value;
    return print(json::Object{{"kind", "error"},
                              {"code", failure.exitCode()},
                              {"message", textOf(failure.message)},
                              {"notes", std::move(notes)},
                              {"numbers", std::move(numbers)},
                              {"nodes", std::move(nodes)}});
  }
  llvm::raw_ostream &os = llvm::errs();
  os << "tmc: " << (isColoured() ? "\033[31merror:\033[0m " : "error: ")
     << visible(failure.message) << "\n";
  for (const std::string &note : failure.notes)
    os << "tmc: note: " << visible(note) << "\n";
}

void tmc::warn(const std::string &message) { print("warning", message); }
void tmc::note(const std::string &message) { print("note", message); }

void tmc::summarize(const std::string &text) {
  if (isJson())
    return print("summary", text);
  llvm::errs() << visible(text);
}

void tmc::showProgress(const std::string &what) {
  if (!isJson())
    llvm::errs() << "\r\033[K" << visible(what);
  else if (!what.empty())
    print("progress", what);
}

bool tmc::isProgressSeen() { return isJson() || isatty(2); }
