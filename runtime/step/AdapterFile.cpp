//===- AdapterFile.cpp - reads PEFT's files of an adapter -----------------===//
//
// saveAdapter is in ModelFile.cpp, with the other files that a step writes.
//
//===----------------------------------------------------------------------===//

#include "runtime/step/AdapterFile.h"
#include "runtime/step/AdapterSettings.h"
#include "runtime/step/SafetensorsSet.h"
#include "runtime/step/Values.h"

#include <set>

namespace tmc {

using namespace values;

namespace {

constexpr const char *kConfigFile = "adapter_config.json";

std::string numberText(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// Compares an adapter's configuration with that of the step.
Status compare(const std::string &shown, const AdapterSettings &found,
               const AdapterSettings &wanted) {
  auto differs = [&](const char *key, const std::string &its,
                     const std::string &ours) {
    return Status(Code::BadInput, "'" + shown + "' has " + key + " " + its +
                                      "; the step is compiled for " + ours);
  };
  auto word = [](bool flag) { return flag ? "true" : "false"; };
  if (found.kind != "LORA")
    return {Code::Unsupported, "'" + shown + "' is of the peft_type '" +
                                   found.kind + "', not LORA"};
  if (found.dora)
    return {Code::Unsupported,
            "'" + shown + "' asks for use_dora, which a step doesn't have"};
  if (found.rank != wanted.rank)
    return differs("r", numberText(found.rank), numberText(wanted.rank));
  if (found.alpha != wanted.alpha)
    return differs("lora_alpha", numberText(found.alpha),
                   numberText(wanted.alpha));
  if (found.rankStabilized != wanted.rankStabilized)
    return differs("use_rslora", word(found.rankStabilized),
                   word(wanted.rankStabilized));
  if (found.ranks != wanted.ranks || found.alphas != wanted.alphas)
    return {
        Code::BadInput,
        "'" + shown + "' has another " +
            (found.ranks != wanted.ranks ? "rank_pattern" : "alpha_pattern") +
            " than the step is compiled for"};
  return Status::ok();
}

Status checkConfig(const StepProgram &program, const std::string &directory) {
  std::string text;
  if (Status s = readTextBeside(directory, kConfigFile, text); !s)
    return s;
  const std::string shown = directory + "/" + kConfigFile;
  AdapterSettings found, wanted;
  if (Status s = readAdapterSettings(shown, text, found); !s)
    return s;
  if (Status s = readAdapterSettings("the step", program.adapterConfig, wanted);
      !s)
    return s;
  return compare(shown, found, wanted);
}

/// Checks that `set` has the tensors of the step's adapters and no others.
Status checkNames(const StepProgram &program, const SafetensorsSet &set) {
  std::vector<std::string> missing, strange;
  std::set<std::string> known;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (const TensorInfo &info = program.tensors[i]; isInAdapter(info)) {
      const std::string name = nameInAdapter(program, info);
      known.insert(name);
      if (!set.find(name))
        missing.push_back(name);
    }
  for (const auto &entry : set.tensors())
    if (!known.count(entry.first))
      strange.push_back(entry.first);
  const std::string of =
      "'" + set.path() + "' isn't an adapter of this step: it ";
  if (!missing.empty())
    return {
        Code::BadInput,
        of + "has no " + listNames(missing) +
            (strange.empty() ? std::string() : ", but " + listNames(strange))};
  if (!strange.empty())
    return {Code::BadInput,
            of + "has " + listNames(strange) + ", which the step lacks"};
  return Status::ok();
}

/// Checks the shape, type and numbers of one tensor.
Status checkTensor(const SafetensorsSet &set, const SetTensor &tensor,
                   const TensorInfo &info, const std::string &name) {
  if (!sameShape(info, tensor) || !isPlainFloat(tensor.type))
    return {Code::BadInput, "'" + name + "' in '" + set.path() +
                                "' is of another shape or type than the "
                                "step's '" +
                                info.name + "'"};
  bool isGood = true;
  auto look = [&](const char *data, int64_t bytes) {
    isGood &= isFinite(tensor.type, data, bytes / sizeOf(tensor.type));
    return Status::ok();
  };
  if (Status s = eachFilePiece(set.files()[tensor.file], tensor, look); !s)
    return s;
  if (!isGood)
    return {Code::BadInput, "'" + name + "' in '" + set.path() +
                                "' holds numbers that aren't finite"};
  return Status::ok();
}

} // namespace

std::string nameInFiles(const StepProgram &program, const char *name) {
  const std::string own = name, prefix = program.prefixInModel;
  return own.compare(0, prefix.size(), prefix) == 0
             ? program.prefixInFile + own.substr(prefix.size())
             : own;
}

std::string nameInAdapter(const StepProgram &program, const TensorInfo &info) {
  return "base_model.model." + nameInFiles(program, info.name);
}

Status loadAdapter(Step &step, const std::string &directory) {
  if (Status s = checkValues(step); !s)
    return s;
  const StepProgram &program = step.program();
  if (Status s = checkConfig(program, directory); !s)
    return s;
  SafetensorsSet set;
  if (Status s = SafetensorsSet::open(directory, set, "adapter_model"); !s)
    return s;
  if (Status s = checkNames(program, set); !s)
    return s;
  auto each = [&](auto &&f) {
    for (int64_t i = 0; i < program.tensorCount; ++i)
      if (const TensorInfo &info = program.tensors[i]; isInAdapter(info)) {
        const std::string name = nameInAdapter(program, info);
        if (Status s = f(*set.find(name), info, name); !s)
          return s;
      }
    return Status::ok();
  };
  if (Status s = each([&](const SetTensor &tensor, const TensorInfo &info,
                          const std::string &name) {
        return checkTensor(set, tensor, info, name);
      });
      !s)
    return s;
  return each([&](const SetTensor &tensor, const TensorInfo &info,
                  const std::string &) {
    if (Status s = place(step.homes(), set.files()[tensor.file], tensor, info);
        !s)
      return s;
    return roundCopies(program, step.homes(), &info);
  });
}

} // namespace tmc
