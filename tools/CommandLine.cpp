#include "tools/CommandLine.h"

#include "compiler/support/FileWords.h"
#include "driver/pipeline/Messages.h"
#include "runtime/step/ConfigFile.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cassert>

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

namespace {

/// A flag, or a word that isn't one.
struct Word {
  cl::Option *flag = nullptr;
  StringRef name;                 // A flag's, as it was written.
  std::optional<StringRef> value; // Of a flag; or the word.
};

/// Splits what stands behind a command's name.
tmc::Expected<std::vector<Word>> split(ArrayRef<std::string> arguments,
                                       const Program &program,
                                       const Command &command) {
  std::vector<Word> words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--") {
      for (StringRef word : arguments.drop_front(i + 1))
        words.push_back({nullptr, "", word});
      break;
    }
    if (!argument.starts_with("-") || argument == "-") {
      words.push_back({nullptr, "", argument});
      continue;
    }
    auto [name, value] = argument.ltrim('-').split('=');
    auto found = command.parser->OptionsMap.find(name);
    if (found == command.parser->OptionsMap.end()) {
      SmallVector<StringRef> names;
      for (cl::Option *flag : flagsOf(command))
        names.push_back(flag->ArgStr);
      StringRef meant = nearest(name, names);
      return Failure::usage("unknown flag '" + argument.split('=').first.str() +
                            "'")
          .note(!meant.empty() ? "did you mean '" + dashed(meant) + "'?"
                               : std::string(program.name) + " " +
                                     command.parser->getName().str() +
                                     " --help lists the flags");
    }
    words.push_back({found->second, name, std::nullopt});
    if (argument.contains('='))
      words.back().value = value;
    else if (found->second->getValueExpectedFlag() == cl::ValueRequired) {
      if (++i == arguments.size())
        return Failure::usage(
            dashed(name) + " needs a value: " + found->second->ValueStr.str());
      words.back().value = arguments[i];
    }
  }
  return words;
}

constexpr StringLiteral kConfig = "config";
/// The key of the word that isn't a flag.
constexpr StringLiteral kModel = "model";

/// True for a flag that may occur several times.
bool isList(const cl::Option *flag) {
  return flag && flag->getNumOccurrencesFlag() == cl::ZeroOrMore;
}

/// True for a flag that is there or not.
bool isSwitch(const Word &word) {
  return word.flag && word.flag->getValueExpectedFlag() != cl::ValueRequired;
}

/// The words that a key of a file stands for. A key of another command that
/// reads the same table stands for none.
tmc::Expected<std::vector<std::string>> wordsOf(const ConfigFlag &flag,
                                                const Program &program,
                                                const Command &command) {
  auto found = command.parser->OptionsMap.find(flag.name);
  if (found == command.parser->OptionsMap.end()) {
    for (const Command &other : program.commands)
      if (other.table && StringRef(other.table) == command.table &&
          other.parser->OptionsMap.count(flag.name))
        return std::vector<std::string>();
    // Its words are refused as those of a command line are.
    return std::vector<std::string>{"--" + flag.name};
  }
  const bool takesValue =
      found->second->getValueExpectedFlag() == cl::ValueRequired;
  if (takesValue == (flag.kind == ConfigFlag::Switch))
    return Failure::usage(flag.name + (takesValue
                                           ? " takes a value, not true or false"
                                           : " is true or false"));
  if (!isList(found->second) && flag.values.size() > 1)
    return Failure::usage(flag.name + " takes one value, not an array");
  return flag.words();
}

/// Adds the flags of --config to `arguments`, before those that are there.
tmc::Expected<void> addConfig(std::vector<std::string> &arguments,
                              const Program &program, const Command &command) {
  tmc::Expected<std::vector<Word>> given = split(arguments, program, command);
  if (!given)
    return std::move(given.failure());
  std::string path;
  for (const Word &word : *given)
    if (word.flag && word.name == kConfig)
      path = word.value->str();
  if (path.empty())
    return {};
  ConfigTable table;
  if (Status s = readConfig(path, command.table, table); !s)
    return failureOf(s);
  auto isGiven = [&](StringRef name) {
    return llvm::any_of(*given, [&](const Word &word) {
      return word.flag && word.name == name;
    });
  };
  const bool hasWord =
      llvm::any_of(*given, [](const Word &word) { return !word.flag; });
  std::vector<std::string> added;
  for (const ConfigFlag &flag : table.flags) {
    if (flag.name == kConfig)
      return Failure::usage("'" + path +
                            "': a file of flags can't name another one");
    if (isGiven(flag.name))
      continue;
    if (flag.name == kModel) {
      if (flag.kind != ConfigFlag::Value)
        return Failure::usage("'" + path + "': " + flag.name +
                              " takes one text");
      if (!hasWord)
        added.push_back(flag.values[0]);
      continue;
    }
    tmc::Expected<std::vector<std::string>> words =
        wordsOf(flag, program, command);
    if (!words)
      return Failure::usage("'" + path + "': " + words.failure().message);
    llvm::append_range(added, *words);
  }
  arguments.insert(arguments.begin(), added.begin(), added.end());
  return {};
}

} // namespace

/// Checks the words of one command before LLVM's parser, with better messages.
static std::optional<int> look(std::vector<std::string> &arguments,
                               const Program &program, const Command &command) {
  for (StringRef argument : arguments) {
    if (argument == "--")
      break;
    if (argument == "--help" || argument == "-h") {
      printHelp(program, command);
      return 0;
    }
  }
  if (command.table)
    if (tmc::Expected<void> done = addConfig(arguments, program, command);
        !done)
      return wrong(std::move(done.failure()));
  tmc::Expected<std::vector<Word>> all = split(arguments, program, command);
  if (!all)
    return wrong(std::move(all.failure()));
  SmallVector<StringRef> words;
  for (const Word &word : *all)
    if (!word.flag)
      words.push_back(*word.value);
  const size_t most = command.wordCount + command.moreWords;
  if (words.size() > most)
    return wrong(
        Failure::usage("'" + words[most].str() + "' is one argument too many"));
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
static void chooseMessages(ArrayRef<std::string> arguments) {
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
      value = i + 1 < arguments.size() ? StringRef(arguments[i + 1]) : "";
    setMessageFormat(value == "json" ? MessageFormat::Json
                                     : MessageFormat::Text);
  }
}

std::optional<int> tmc::parseCommandLine(std::vector<std::string> &words,
                                         const Program &program) {
  chooseMessages(ArrayRef(words).drop_front());
  StringRef first = words.size() > 1 ? StringRef(words[1]) : "";
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
  std::vector<std::string> arguments(words.begin() + 2, words.end());
  if (std::optional<int> code = look(arguments, program, *command))
    return code;
  words.resize(2);
  llvm::append_range(words, arguments);
  SmallVector<const char *> texts;
  for (const std::string &word : words)
    texts.push_back(word.c_str());
  std::string said;
  raw_string_ostream os(said);
  if (cl::ParseCommandLineOptions(int(texts.size()), texts.data(), "", &os))
    return std::nullopt;
  if (said.empty()) // It concerns a value, and was printed.
    return int(FailureKind::Usage);
  // Without the program's name.
  said = StringRef(said).split('\n').first.split(": ").second.str();
  return wrong(Failure::usage(said));
}

std::string tmc::configText(ArrayRef<std::string> words, const Program &program,
                            ArrayRef<StringRef> without) {
  const Command *command = llvm::find_if(program.commands, [&](auto &known) {
    return words[1] == known.parser->getName();
  });
  tmc::Expected<std::vector<Word>> all =
      split(words.drop_front(2), program, *command);
  assert(all && "the words were parsed");
  // By name, in the order of the first occurrence.
  llvm::MapVector<StringRef, std::vector<Word>> keys;
  for (const Word &word : *all)
    if (!word.flag)
      keys[kModel].push_back(word);
    else if (word.name != kConfig && !is_contained(without, word.name))
      keys[word.flag->ArgStr].push_back(word);
  std::string text = std::string("[") + command->table + "]\n";
  for (const auto &[name, values] : keys) {
    SmallVector<std::string> texts;
    for (const Word &word : values)
      texts.push_back(isSwitch(word) ? word.value.value_or("true").str()
                                     : tomlQuoted(*word.value));
    const std::string value =
        isList(values[0].flag) ? "[" + join(texts, ", ") + "]" : texts[0];
    text += name.str() + " = " + value + "\n";
  }
  return text;
}
