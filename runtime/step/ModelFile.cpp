//===- ModelFile.cpp - files of the model's values alone ------------------===//
//
// Models and adapters, which PyTorch and transformers read. Checkpoints are in
// Checkpoint.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/step/AdapterFile.h"
#include "runtime/step/Step.h"
#include "runtime/step/Values.h"
#include "runtime/step/ValuesFile.h"

#include <set>
#include <sstream>

namespace tmc {

using namespace values;

/// Takes the values from `beside` that belong to the model but that no step
/// needs. PyTorch's batch norm counts its batches beside its statistics. The
/// new count is the file's count plus the `moved` steps that updated the
/// statistics.
static Status passOn(const StepProgram &program, int64_t moved,
                     const std::string &beside, FileContents &contents) {
  if (Status s = SafetensorsFile::open(beside, contents.beside); !s)
    return s;
  auto meta = [&](const char *key) -> std::string {
    auto found = contents.beside.metadata().find(key);
    return found == contents.beside.metadata().end() ? "" : found->second;
  };
  if (meta(kMakerKey) != kMaker)
    return Status::ok(); // A file of the user: its content is unknown.
  std::set<std::string> known;
  for (const Named &named : contents.tensors)
    known.insert(named.name);
  std::istringstream transient(meta(kTransientKey));
  for (std::string name; std::getline(transient, name);) {
    known.insert(name);
    std::erase_if(contents.tensors,
                  [&](const Named &named) { return named.name == name; });
  }
  const std::string end = "num_batches_tracked";
  for (const auto &[name, tensor] : contents.beside.tensors()) {
    if (known.count(name))
      continue;
    Passed passed{name, tensor};
    if (name.size() >= end.size() && tensor.type == DType::I64 &&
        name.compare(name.size() - end.size(), end.size(), end) == 0) {
      const std::string statistic =
          name.substr(0, name.size() - end.size()) + "running_mean";
      for (int64_t i = 0; i < program.tensorCount; ++i)
        if (program.tensors[i].role == Role::State &&
            statistic == program.tensors[i].name)
          passed.added = moved;
    }
    contents.passed.push_back(std::move(passed));
  }
  return Status::ok();
}

static Status checkStored(const StepProgram &program, bool trainedAlone) {
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (program.tensors[i].stored && !trainedAlone)
      return {Code::Unsupported,
              std::string("'") + program.tensors[i].name +
                  "' is stored as codes: the model's weights are what the step "
                  "was loaded from, and a checkpoint has what it trains"};
  return Status::ok();
}

/// Gives all tensors the names that they have in the file.
static Status rename(const SavedWeights &how, FileContents &contents) {
  std::set<std::string> names;
  auto give = [&](std::string &name) {
    const std::string old = name;
    if (!name.compare(0, how.oldPrefix.size(), how.oldPrefix))
      name = how.newPrefix + name.substr(how.oldPrefix.size());
    if (const std::string fault = name.empty() ? "is empty" : nameFault(name);
        !fault.empty())
      return Status(Code::BadInput,
                    "'" + old + "': its name in the file " + fault);
    if (!names.insert(name).second)
      return Status(Code::BadInput,
                    "two tensors would be '" + name + "' in the file");
    return Status::ok();
  };
  for (Named &named : contents.tensors)
    if (Status s = give(named.name); !s)
      return s;
  for (Passed &passed : contents.passed)
    if (Status s = give(passed.name); !s)
      return s;
  return Status::ok();
}

/// Lists the tensors of a file of weights. `moved`: as of passOn.
static Status listWeights(const StepProgram &program, const SavedWeights &how,
                          int64_t moved, FileContents &contents) {
  if (Status s = checkStored(program, how.trainedAlone); !s)
    return s;
  for (int64_t i = 0; i < program.tensorCount; ++i) {
    const TensorInfo &info = program.tensors[i];
    const bool isSaved = info.role == Role::Param
                             ? info.trainable || !how.trainedAlone
                             : info.role == Role::State && !how.trainedAlone;
    if (!isSaved)
      continue;
    contents.tensors.push_back({info.name, &info});
    // PyTorch's state_dict lists a tied weight under each of its names.
    for (int32_t k = 0; k < info.aliasCount; ++k)
      contents.tensors.push_back({info.aliases[k], &info});
  }
  if (!how.beside.empty() && !how.trainedAlone)
    if (Status s = passOn(program, moved, how.beside, contents); !s)
      return s;
  return rename(how, contents);
}

Status values::checkSaved(const StepProgram &program, const SavedWeights &how) {
  FileContents contents;
  return listWeights(program, how, 0, contents);
}

Status Step::saveWeights(const std::string &directory,
                         const SavedWeights &how) {
  if (!lost_)
    return lost_;
  if (!checkParams(program_, given_))
    return {Code::Usage, "there is nothing to save yet"};
  FileContents contents;
  if (Status s = listWeights(program_, how, steps_ - skipped_, contents); !s)
    return s;
  // transformers opens only files with this entry.
  contents.metadata = {{"format", "pt"}};
  contents.type = how.type;
  contents.step = steps_;
  return writeFile(homes(), directory, kModelFile, contents);
}

Status saveAdapter(const Step &step, const std::string &directory) {
  if (Status s = checkValues(step); !s)
    return s;
  const StepProgram &program = step.program();
  const std::string config = program.adapterConfig;
  AtomicFile out(step.homes().writesFiles());
  if (Status s = out.create(directory, "adapter_config.json"); !s)
    return s;
  if (Status s = out.write(config.data(), int64_t(config.size())); !s)
    return s;
  FileContents contents;
  for (int64_t i = 0; i < program.tensorCount; ++i)
    if (const TensorInfo &info = program.tensors[i]; isInAdapter(info))
      contents.tensors.push_back({nameInAdapter(program, info), &info});
  contents.metadata = {{"format", "pt"}};
  contents.type = DType::F32;
  contents.step = step.steps();
  if (Status s = writeFile(step.homes(), directory, "adapter_model.safetensors",
                           contents);
      !s)
    return s;
  return out.commit();
}

} // namespace tmc
