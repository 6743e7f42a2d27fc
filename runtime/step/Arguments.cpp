//===- Arguments.cpp - the trainer's command line -------------------------===//

#include "runtime/step/Arguments.h"

#include "runtime/kernels/Sizes.h"
#include "runtime/step/BaseFile.h"
#include "runtime/step/ConfigFile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tmc {

namespace {

struct Flag {
  const char *name, *value, *help;
};
constexpr Flag kFlags[] = {
    {"--data", "FILE|NAME=FILE",
     "tokens (FILE:u16, FILE:u32, llm.c's, LLM.Q's), .npy,\n"
     "                          .safetensors or .jsonl; several (A,B), or a "
     "glob;\n"
     "                          NAME=FILE+1: one token further on;\n"
     "                          NAME=FILE*SCALE+SHIFT: floats of a picture's "
     "bytes"},
    {"--pad-id", "N",
     "the token that fills up short rows of a .jsonl (default 0)"},
    {"--shuffle", "SEED", "a random order of the samples in each epoch"},
    {"--eval", "FILE|NAME=FILE",
     "print the loss over this data, as --data, at the end"},
    {"--eval-every", "N", "and after every N steps"},
    {"--steps", "N", "training steps to take now"},
    {"--epochs", "N",
     "train up to the end of the Nth pass over the data; beside\n"
     "                          --steps: up to the end that comes first"},
    {"--lr", "X", "learning rate (default 0.001)"},
    {"--lr-schedule", "SPEC",
     "constant, linear or cosine, then "
     "[:warmup=STEPS,min=FRACTION,total=STEPS]"},
    {"--weights", "FILE|DIR",
     "start from a .safetensors file, several (A,B), an index of\n"
     "                          shards or a folder (default: the values that "
     "tmc compile\n                          recorded or copied)"},
    {"--init", "random:SEED", "start from random numbers"},
    {"--adapter", "DIR", "start from an adapter of PEFT (--lora)"},
    {"--save", "DIR", "write a checkpoint there at the end and on Ctrl-C"},
    {"--save-every", "N", "and after every N steps"},
    {"--keep", "N",
     "keep the newest N of them, in DIR/step-000100 and so on,\n"
     "                          and in DIR/best the one with the least loss "
     "of --eval"},
    {"--save-weights", "[=WORDS]",
     "with each checkpoint, the model in\n"
     "                          DIR/model.safetensors, as it is, or in "
     "f32,\n"
     "                          bf16 or f16; `trained`: what is trained "
     "alone"},
    {"--save-prefix", "OLD=NEW",
     "names that begin with OLD begin with NEW in that file;\n"
     "                          either may be empty"},
    {"--save-adapter", "DIR",
     "with each checkpoint and at the end, the adapter, as\n"
     "                          PEFT's files (--lora)"},
    {"--save-base", "DIR",
     "first write the base in its codes, as bitsandbytes'\n"
     "                          files: for --weights and transformers "
     "(--base)"},
    {"--resume", "DIR", "go on from a checkpoint"},
    {"--resume-if-there", "DIR",
     "the same where there is one, else begin; --steps counts\n"
     "                          from the run's first step"},
    {"--log", "FILE", "write one JSON object per step (--resume: append)"},
    {"--config", "FILE",
     "flags from the table [train] of a TOML file; those given\n"
     "                          here win"},
    {"--threads", "N", "threads (default: one per core)"},
    {"--seed", "N", "seed of dropout and other draws (default 0)"},
    {"--poison", nullptr, "overwrite each buffer at its death (a check)"},
    {"--check-finite", nullptr,
     "stop at the first launch that makes NaN or "
     "infinity"},
    {"--profile", "[=FILE]",
     "say where the time goes, by kernel; into a .json\n"
     "                          file: by launch"},
    {"--trace", "FILE",
     "when each engine ran what in the last step, and when\n"
     "                          it should have: for Perfetto"},
    {"--nvme", "DIR", "where to keep what the plan puts into a file"},
    {"--host-threads", "N",
     "threads of updates on the host (default: the cores\n"
     "                          that --threads leaves)"},
    {"--link-bandwidth", "SIZE",
     "cpu: bytes a second of copies to and from the host, in\n"
     "                          each direction (an experiment)"},
    {"--network", "mpi|gloo|nccl",
     "what moves bytes between the ranks of a step for several\n"
     "                          devices (default: nccl for cards, if the step\n"
     "                          has it; else mpi under mpirun; else gloo)"},
    {"--network-timeout", "SECONDS",
     "how long a rank may stand still within a step (default\n"
     "                          120)"},
    {"--network-bandwidth", "SIZE",
     "bytes a second that a rank sends to the others at most\n"
     "                          (an experiment)"},
    {"--tune-algorithms", "FILE",
     "cuda: time the algorithms of each product, write the\n"
     "                          fastest for tmc compile --algorithms, and "
     "end"},
    {"--no-graph", nullptr, "cuda: each step queues its launches one by one"},
    {"--quiet", nullptr, "no line per step"},
    {"--help", nullptr, "this text"},
};

/// The Levenshtein distance.
size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

Status usage(const std::string &why) { return {Code::Usage, why}; }

Status wholeNumber(const std::string &flag, const std::string &text,
                   uint64_t &value) {
  value = 0;
  bool good = !text.empty();
  for (char c : text)
    good = good && c >= '0' && c <= '9' &&
           !__builtin_mul_overflow(value, uint64_t(10), &value) &&
           !__builtin_add_overflow(value, uint64_t(c - '0'), &value);
  return good ? Status::ok()
              : usage(flag + " takes a whole number, not '" + text + "'");
}

/// Parses "2GB", "500MiB", "1.5GB" or "4096" as bytes.
Status byteNumber(const std::string &flag, const std::string &text,
                  double &value, std::vector<std::string> &notes) {
  const SizeText size = readSize(text);
  value = double(size.bytes);
  if (!size.note.empty())
    notes.push_back(size.note);
  return !size.fault && size.bytes > 0
             ? Status::ok()
             : usage(flag + " takes a size such as 2GB or 500MiB, not '" +
                     text + "'");
}

/// Flags whose value is taken as it is.
constexpr struct {
  const char *name;
  std::string Arguments::*member;
} kPaths[] = {{"--trace", &Arguments::trace},
              {"--nvme", &Arguments::nvme},
              {"--adapter", &Arguments::adapter},
              {"--save-adapter", &Arguments::saveAdapter},
              {"--save-base", &Arguments::saveBase},
              {"--save", &Arguments::save},
              {"--resume", &Arguments::resume},
              {"--resume-if-there", &Arguments::resumeIfThere},
              {"--log", &Arguments::log}};

/// Flags whose value doesn't show that they were given.
struct GivenFlags {
  bool weights = false;
};

/// An epoch is a word of 32 bits in the order of samples.
constexpr uint64_t kMostEpochs = UINT32_MAX;

bool isDataFlag(const std::string &name) {
  for (const char *known : {"--data", "--eval", "--eval-every", "--epochs",
                            "--shuffle", "--pad-id"})
    if (name == known)
      return true;
  return false;
}

/// Sets the value of a flag of the data; `number`: the value, where it is one.
Status setDataFlag(const std::string &name, const std::string &value,
                   uint64_t number, Arguments &parsed) {
  if (name == "--data") {
    parsed.data.push_back(value);
  } else if (name == "--epochs") {
    if (number < 1 || number > kMostEpochs)
      return usage("--epochs takes a number from 1 to " +
                   std::to_string(kMostEpochs) + ", not '" + value + "'");
    parsed.epochs = int64_t(number);
  } else if (name == "--shuffle") {
    parsed.shuffle = number;
  } else if (name == "--pad-id") {
    if (number > uint64_t(INT32_MAX))
      return usage("--pad-id is too large");
    parsed.padId = int64_t(number);
  } else if (name == "--eval") {
    parsed.evaluation.push_back(value);
  } else if (name == "--eval-every") {
    parsed.evaluateEvery = int64_t(std::min<uint64_t>(number, INT64_MAX));
  }
  return Status::ok();
}

/// Reads the words of --save-weights.
Status setWeights(const std::string &value, Arguments &parsed) {
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    const std::string word = value.substr(at, end - at);
    at = end + 1;
    if (word == "f32")
      parsed.weightsType = DType::F32;
    else if (word == "bf16")
      parsed.weightsType = DType::BF16;
    else if (word == "f16" || word == "fp16")
      parsed.weightsType = DType::F16;
    else if (word == "trained")
      parsed.trainedAlone = true;
    else
      return usage("--save-weights takes f32, bf16, f16 and trained, not '" +
                   word + "'");
  }
  return Status::ok();
}

Status setNetworkFlag(const std::string &name, const std::string &value,
                      uint64_t number, Arguments &parsed) {
  if (name == "--network") {
    if (value != "mpi" && value != "gloo" && value != "nccl")
      return usage("--network takes mpi, gloo or nccl, not '" + value + "'");
    parsed.network = value;
    return Status::ok();
  }
  if (name == "--network-bandwidth")
    return byteNumber(name, value, parsed.networkBytesPerSecond, parsed.notes);
  constexpr uint64_t kMostSeconds = 1000000;
  if (number < 1 || number > kMostSeconds)
    return usage("--network-timeout takes a number from 1 to " +
                 std::to_string(kMostSeconds) + ", not '" + value + "'");
  parsed.networkTimeout = double(number);
  return Status::ok();
}

/// Sets the value of one known flag. `inlineValue`: it was written as
/// --flag=value.
Status setFlag(const std::string &name, const std::string &value,
               bool inlineValue, Arguments &parsed, GivenFlags &given) {
  uint64_t number = 0;
  if (name == "--steps" || name == "--save-every" || name == "--threads" ||
      name == "--host-threads" || name == "--seed" || name == "--epochs" ||
      name == "--shuffle" || name == "--pad-id" || name == "--eval-every" ||
      name == "--keep" || name == "--network-timeout")
    if (Status s = wholeNumber(name, value, number); !s)
      return s;
  if (isDataFlag(name))
    return setDataFlag(name, value, number, parsed);
  for (const auto &path : kPaths)
    if (name == path.name)
      parsed.*path.member = value;
  if (name == "--steps") {
    if (number > uint64_t(INT64_MAX / 2))
      return usage("--steps is too large");
    parsed.steps = int64_t(number);
  } else if (name == "--save-every") {
    parsed.saveEvery = int64_t(std::min<uint64_t>(number, INT64_MAX));
  } else if (name == "--keep") {
    if (number < 1 || number > uint64_t(INT32_MAX))
      return usage("--keep takes a number from 1 to " +
                   std::to_string(INT32_MAX) + ", not '" + value + "'");
    parsed.keep = int64_t(number);
  } else if (name == "--threads" || name == "--host-threads") {
    if (number < 1 || number > 1024)
      return usage(name + " takes a number from 1 to 1024, not '" + value +
                   "'");
    (name == "--threads" ? parsed.threads : parsed.hostThreads) = int(number);
  } else if (name == "--link-bandwidth") {
    if (Status s =
            byteNumber(name, value, parsed.linkBytesPerSecond, parsed.notes);
        !s)
      return s;
  } else if (name == "--network" || name == "--network-timeout" ||
             name == "--network-bandwidth") {
    return setNetworkFlag(name, value, number, parsed);
  } else if (name == "--seed") {
    parsed.seed = number;
  } else if (name == "--lr") {
    char *end;
    parsed.rate = std::strtod(value.c_str(), &end);
    if (value.empty() || *end || !(parsed.rate >= 0) || parsed.rate > 1e30)
      return usage("--lr takes a non-negative number, not '" + value + "'");
  } else if (name == "--lr-schedule") {
    if (Status s = Schedule::parse(value, parsed.schedule); !s)
      return s;
  } else if (name == "--weights") {
    parsed.weights = value;
    given.weights = true;
  } else if (name == "--init") {
    if (value.compare(0, 7, "random:") ||
        !wholeNumber(name, value.substr(7), parsed.initSeed))
      return usage("--init takes random:SEED, not '" + value + "'");
    parsed.init = true;
  } else if (name == "--save-weights") {
    parsed.saveWeights = true;
    if (inlineValue)
      return setWeights(value, parsed);
  } else if (name == "--save-prefix") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos)
      return usage("--save-prefix takes OLD=NEW, not '" + value + "'");
    parsed.savePrefix = {value.substr(0, equals), value.substr(equals + 1)};
  } else if (name == "--poison") {
    parsed.poison = true;
  } else if (name == "--check-finite") {
    parsed.checkFinite = true;
  } else if (name == "--profile") {
    if (inlineValue && value.empty())
      return usage("--profile= needs a file; --profile alone prints a table");
    parsed.profile = true;
    parsed.profileFile = value;
  } else if (name == "--tune-algorithms") {
    if (value.empty())
      return usage("--tune-algorithms needs a file");
    parsed.tune = value;
  } else if (name == "--no-graph") {
    parsed.graph = false;
  } else if (name == "--quiet") {
    parsed.quiet = true;
  } else if (name == "--help") {
    parsed.help = true;
  }
  return Status::ok();
}

/// Checks what flags say together.
Status checkTogether(const Arguments &parsed, const GivenFlags &given,
                     const StepValueKinds &kinds) {
  const bool resumes = !parsed.resume.empty();
  const bool isBoth = given.weights && parsed.init && !kinds.hasAdapters;
  if (isBoth || (resumes && (given.weights || parsed.init) && !kinds.hasBase))
    return usage("only one of --weights, --init and --resume can say where the "
                 "parameters start");
  if (resumes && !parsed.resumeIfThere.empty())
    return usage("only one of --resume and --resume-if-there can say where to "
                 "go on");
  if (resumes && !parsed.adapter.empty())
    return usage("--adapter can't be given with --resume: the checkpoint has "
                 "the adapter");
  if (!kinds.hasAdapters && !(parsed.adapter + parsed.saveAdapter).empty())
    return usage("the step has no adapters: tmc compile --lora gives it some");
  if (!kinds.hasCodes && !parsed.saveBase.empty())
    return usage("the step stores no parameter as codes: tmc compile --base "
                 "nf4 makes one that does");
  if (!parsed.resume.empty() && parsed.seed)
    return usage("--seed can't be given with --resume: the checkpoint has the "
                 "seed");
  if (resumes && parsed.shuffle)
    return usage("--shuffle can't be given with --resume: the checkpoint has "
                 "the order of the samples");
  if (!parsed.steps && !parsed.epochs)
    return usage("--steps or --epochs is missing");
  if (parsed.data.empty())
    return usage("--data is missing");
  if (parsed.saveEvery && parsed.save.empty() && parsed.saveAdapter.empty())
    return usage("--save-every needs --save");
  if (parsed.keep && parsed.save.empty())
    return usage("--keep needs --save");
  if (parsed.evaluateEvery && parsed.evaluation.empty())
    return usage("--eval-every needs --eval");
  if (parsed.saveWeights && parsed.save.empty())
    return usage("--save-weights needs --save");
  if (parsed.savePrefix != std::pair<std::string, std::string>() &&
      !parsed.saveWeights)
    return usage("--save-prefix needs --save-weights");
  return Status::ok();
}

} // namespace

StepValueKinds StepValueKinds::of(const StepProgram &program) {
  StepValueKinds kinds;
  kinds.hasAdapters = *program.adapterConfig;
  kinds.hasCodes = tmc::hasCodes(program);
  for (int64_t i = 0; i < program.tensorCount; ++i)
    kinds.hasBase |=
        program.tensors[i].role == Role::Param && !program.tensors[i].trainable;
  return kinds;
}

/// The row of a flag; null: there is none.
static const Flag *findFlag(const std::string &name) {
  for (const Flag &known : kFlags)
    if (name == known.name)
      return &known;
  return nullptr;
}

/// The words that a key of --config's file stands for.
static Status addWords(const ConfigFlag &key, std::vector<std::string> &words) {
  const Flag *flag = findFlag("--" + key.name);
  const bool isSwitch = key.kind == ConfigFlag::Switch;
  // Others are refused as those of a command line are.
  if (flag) {
    const bool isOptional = flag->value && flag->value[0] == '[';
    if (isSwitch ? flag->value && !isOptional : !flag->value)
      return usage(key.name + (isSwitch ? " takes a value, not true or false"
                                        : " is true or false"));
    const bool isList = key.name == "data" || key.name == "eval";
    if (!isList && key.values.size() > 1)
      return usage(key.name + " takes one value, not an array");
  }
  for (std::string &word : key.words())
    words.push_back(std::move(word));
  return Status::ok();
}

/// Adds the flags of --config that `arguments` doesn't have itself, before
/// those that it has.
static Status addConfig(std::vector<std::string> &arguments) {
  std::string path;
  std::vector<std::string> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    const bool isInline = name.size() < arguments[i].size();
    const Flag *flag = findFlag(name);
    if (!flag)
      continue;
    given.push_back(name);
    const bool isNext = flag->value && flag->value[0] != '[' && !isInline;
    if (isNext && ++i == arguments.size())
      break;
    if (name == "--config")
      path = isInline ? arguments[i].substr(name.size() + 1) : arguments[i];
  }
  if (path.empty())
    return Status::ok();
  ConfigTable table;
  if (Status s = readConfig(path, "train", table); !s)
    return s;
  std::vector<std::string> words;
  for (const ConfigFlag &key : table.flags) {
    Status done = Status::ok();
    if (key.name == "config")
      done = usage("a file of flags can't name another one");
    else if (std::find(given.begin(), given.end(), "--" + key.name) ==
             given.end())
      done = addWords(key, words);
    if (!done)
      return {done.code(), "'" + path + "': " + done.message()};
  }
  arguments.insert(arguments.begin(), words.begin(), words.end());
  return Status::ok();
}

Arguments withoutOutput(Arguments arguments) {
  arguments.quiet = true;
  for (std::string *path :
       {&arguments.log, &arguments.trace, &arguments.profileFile})
    path->clear();
  arguments.profile = false;
  return arguments;
}

Status parseArguments(std::vector<std::string> arguments, Arguments &parsed,
                      const StepValueKinds &kinds) {
  if (Status s = addConfig(arguments); !s)
    return s;
  GivenFlags given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    bool inlineValue = false;
    if (const size_t equals = name.find('=');
        name.compare(0, 2, "--") == 0 && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      inlineValue = true;
    }
    const Flag *flag = findFlag(name);
    if (!flag) {
      if (name.empty() || name[0] != '-')
        return usage("'" + name + "' isn't a flag; data is given by --data");
      const Flag *nearest = &kFlags[0];
      for (const Flag &known : kFlags)
        if (distance(name, known.name) < distance(name, nearest->name))
          nearest = &known;
      return usage("unknown flag '" + name + "'; did you mean '" +
                   nearest->name + "'?");
    }
    const bool optional = flag->value && flag->value[0] == '[';
    if (flag->value && !inlineValue && !optional) {
      if (i + 1 == arguments.size())
        return usage(name + " needs a value: " + flag->value);
      value = arguments[++i];
    }
    if (!flag->value && inlineValue)
      return usage(name + " takes no value");

    if (Status s = setFlag(name, value, inlineValue, parsed, given); !s)
      return s;
  }
  if (parsed.help || !parsed.tune.empty())
    return Status::ok();
  return checkTogether(parsed, given, kinds);
}

std::string helpText(const std::string &program, const StepProgram &step) {
  std::string text =
      "usage: " + program +
      " --data FILE --steps N | --epochs N [flags]\n\ntrains a compiled "
      "step\n\n";
  for (const Flag &flag : kFlags) {
    std::string left = std::string("  ") + flag.name;
    if (flag.value)
      left += std::string(flag.value[0] == '[' ? "" : " ") + flag.value;
    left.resize(std::max<size_t>(left.size() + 2, 26), ' ');
    text += left + flag.help;
    if (std::string(flag.name) == "--nvme" && *step.fileDirectory)
      text += std::string("\n") + std::string(26, ' ') +
              "(default, from tmc compile: '" + step.fileDirectory + "')";
    text += "\n";
  }
  return text + "\nexit codes: 0 done (Ctrl-C included), 1 the input is at "
                "fault, 2 usage,\n3 more memory wanted than planned, 4 "
                "unsupported, 70 a defect,\n74 the world is at fault (disk "
                "full)\n";
}

} // namespace tmc
