#include "tools/CommandLine.h"

#include "driver/pipeline/Messages.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tmc;

static int wrong(Failure failure) {
  report(failure);
  return failure.exitCode();
}

/// The one of `names` that the user probably meant by `word`, or "".
static StringRef nearest(StringRef word, ArrayRef<StringRef> names) {
  StringRef best;
  unsigned bestDistance = std::max<size_t>(2, word.size() / 2);
  for (StringRef name : names)
    if (unsigned distance = word.edit_distance(name, true, bestDistance);
        distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  return best;
}

static std::string dashed(StringRef flag) {
  return (flag.size() == 1 || flag == "MD" || flag == "MF" || flag == "MT"
              ? "-"
              : "--") +
         flag.str();
}

/// The visible flags of `command`, by name.
static SmallVector<cl::Option *> flagsOf(const Command &command) {
  SmallVector<cl::Option *> flags;
  for (auto &entry : command.parser->OptionsMap)
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden &&
        !entry.second->isPositional() &&
        entry.second->Categories[0]->getName() == "options")
      flags.push_back(entry.second);
  llvm::sort(flags, [](cl::Option *a, cl::Option *b) {
    return a->ArgStr.compare_insensitive(b->ArgStr) < 0;
  });
  return flags;
}

static void printOverview(raw_ostream &os, const Program &program) {
  os << program.name << " - " << program.summary << "\n\n";
  for (const Command &command : program.commands)
    os << "  "
       << left_justify((Twine(program.name) + " " +
                        command.parser->getName().str() + " " + command.words)
                           .str(),
                       28)
       << "  " << command.summary << "\n";
  os << "\n" << program.epilogue;
}

static void printHelp(const Program &program, const Command &command) {
  raw_ostream &os = outs();
  os << "usage: " << program.name << " " << command.parser->getName() << " "
     << command.words << "\n\n"
     << command.summary << "\n\n";
  constexpr size_t kColumn = 26;
  for (cl::Option *flag : flagsOf(command)) {
    std::string left = "  " + dashed(flag->ArgStr);
    if (!flag->ValueStr.empty())
      left += " " + flag->ValueStr.str();
    if (left.size() + 2 > kColumn)
      os << left << "\n" << std::string(kColumn, ' ');
    else
      os << left_justify(left, kColumn);
    os << flag->HelpStr << "\n";
  }
  os << "  " << left_justify("--help", kColumn - 2) << "this text\n";
}

/// Checks the words of one command before LLVM's parser, with better messages.
static std::optional<int> look(ArrayRef<char *> arguments,
                               const Program &program, const Command &command) {
  SmallVector<StringRef> words, names;
  for (cl::Option *flag : flagsOf(command))
    names.push_back(flag->ArgStr);
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      printHelp(program, command);
      return 0;
    }
    if (argument == "--") {
      words.append(arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (!argument.starts_with("-") || argument == "-") {
      words.push_back(argument);
      continue;
    }
    auto [name, value] = argument.ltrim('-').split('=');
    auto found = command.parser->OptionsMap.find(name);
    if (found == command.parser->OptionsMap.end()) {
      Failure failure = Failure::usage("unknown flag '" +
                                       argument.split('=').first.str() + "'");
      StringRef meant = nearest(name, names);
      failure.notes.push_back(!meant.empty()
                                  ? "did you mean '" + dashed(meant) + "'?"
                                  : std::string(program.name) + " " +
                                        command.parser->getName().str() +
                                        " --help lists the flags");
      return wrong(failure);
    }
    bool takesValue =
        found->second->getValueExpectedFlag() == cl::ValueRequired;
    if (takesValue && !argument.contains('=') && ++i == arguments.size())
      return wrong(Failure::usage(
          dashed(name) + " needs a value: " + found->second->ValueStr.str()));
  }
  if (words.size() > command.wordCount)
    return wrong(Failure::usage("'" + words[command.wordCount].str() +
                                "' is one argument too many"));
  if (words.size() < command.wordCount)
    return wrong(
        Failure::usage(StringRef(command.words).split(' ').first.str() +
                       " is missing")
            .note(std::string("usage: ") + program.name + " " +
                  command.parser->getName().str() + " " + command.words));
  return std::nullopt;
}

/// Sets the format of messages by the last `--messages`. A value that isn't a
/// format is the caller's to refuse.
static void chooseMessages(ArrayRef<char *> arguments) {
  constexpr StringLiteral kFlag = "messages";
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--")
      return;
    if (!argument.starts_with("-"))
      continue;
    auto [name, value] = argument.ltrim('-').split('=');
    if (name != kFlag)
      continue;
    if (!argument.contains('='))
      value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    setMessageFormat(value == "json" ? MessageFormat::Json
                                     : MessageFormat::Text);
  }
}

std::optional<int> tmc::parseCommandLine(int argc, char **argv,
                                         const Program &program) {
  chooseMessages(ArrayRef(argv, argc).drop_front());
  StringRef first = argc > 1 ? argv[1] : "";
  if (first.empty()) {
    printOverview(errs(), program);
    return int(FailureKind::Usage);
  }
  if (first == "--help" || first == "-h" || first == "help") {
    printOverview(outs(), program);
    return 0;
  }
  if (first == "--version") {
    outs() << program.version << "\n";
    return 0;
  }
  SmallVector<StringRef> names;
  const Command *command = nullptr;
  for (const Command &known : program.commands) {
    names.push_back(known.parser->getName());
    if (first == known.parser->getName())
      command = &known;
  }
  if (!command) {
    bool isFlag = first.starts_with("-");
    Failure failure = Failure::usage(
        isFlag ? "a command comes first, not '" + first.str() + "'"
               : "there is no command '" + first.str() + "'");
    StringRef meant = isFlag ? StringRef() : nearest(first, names);
    failure.notes.push_back(meant.empty()
                                ? "the commands are " + join(names, ", ")
                                : "did you mean '" + meant.str() + "'?");
    return wrong(failure);
  }
  if (std::optional<int> code =
          look(ArrayRef(argv + 2, argv + argc), program, *command))
    return code;
  std::string said;
  raw_string_ostream os(said);
  if (cl::ParseCommandLineOptions(argc, argv, "", &os))
    return std::nullopt;
  if (said.empty()) // It concerns a value, and was printed.
    return int(FailureKind::Usage);
  // Without the program's name.
  said = StringRef(said).split('\n').first.split(": ").second.str();
  return wrong(Failure::usage(said));
}
