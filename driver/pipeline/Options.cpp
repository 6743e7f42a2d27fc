#include "driver/pipeline/Options.h"

#include "driver/pipeline/Config.h"
#include "driver/pipeline/Messages.h"
#include "frontends/SafeFile.h"
#include "runtime/kernels/Sizes.h"

#include "llvm/Support/MemoryBuffer.h"

#include <array>

using namespace tmc;

static constexpr std::array<const char *, 12> kPhaseNames = {
    "import", "raise", "split", "layout", "autodiff", "precision",
    "shape",  "plan",  "lower", "place",  "emit",     "link"};

const char *tmc::nameOf(Phase phase) { return kPhaseNames[size_t(phase)]; }

std::optional<Phase> tmc::phaseNamed(const std::string &name) {
  for (size_t i = 0; i < kPhaseNames.size(); ++i)
    if (name == kPhaseNames[i])
      return Phase(i);
  return std::nullopt;
}

std::vector<std::string> tmc::phaseNames() {
  return {kPhaseNames.begin(), kPhaseNames.end()};
}

bool tmc::wantsWeights(const CompileOptions &options) {
  bool printed = options.to && *options.to < Phase::Link;
  return options.emit != Artifact::Plan && options.emit != Artifact::Mlir &&
         !printed;
}

Expected<int64_t> tmc::parseSize(const std::string &text) {
  const SizeText size = readSize(text);
  if (size.fault)
    return Failure::usage("'" + text + "' is no size: " + size.fault)
        .note("write bytes, or a number with KiB, MiB, GiB (or KB, MB, GB)");
  if (!size.note.empty())
    note(size.note);
  return size.bytes;
}

Expected<Target> tmc::targetOf(const CompileOptions &options) {
  Expected<Target> target = targetNamed(options.target);
  for (const std::string &path : options.prices) {
    if (!target)
      break;
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
      return Failure::world("can't read the profile '" + path +
                            "': " + file.getError().message());
    if (absl::Status added =
            addOwnPrices((*file)->getBuffer().str(), path, *target);
        !added.ok())
      return Failure::input(std::string(added.message()))
          .note("the trainer's --profile=FILE writes one");
  }
  return target;
}

Expected<std::string> tmc::attentionOf(const CompileOptions &options,
                                       const Target &target) {
  const bool isThere = llvm::StringRef(TMC_CUDNN_FRONTEND) != "";
  if (options.attention != "cudnn")
    return isThere ? options.attention : std::string("own");
  if (target.backend != Backend::Cuda)
    return Failure::usage(
        "--attention=cudnn is for targets of cuda, not for '" + target.name +
        "'");
  if (!isThere)
    return Failure::unsupported(
               "this tmc was built without cuDNN or without the headers of its "
               "frontend, which --attention=cudnn needs")
        .note("pip install nvidia-cudnn-frontend and build again, or compile "
              "with --attention=own");
  return options.attention;
}

Expected<std::optional<AlgorithmFile>>
tmc::algorithmsOf(const CompileOptions &options, const Target &target) {
  if (options.algorithms.empty())
    return std::optional<AlgorithmFile>();
  if (target.backend != Backend::Cuda)
    return Failure::usage("--algorithms is for targets of cuda, not for '" +
                          target.name + "'");
  Expected<SafeFile> file = openByUser(options.algorithms);
  if (!file)
    return std::move(file.failure());
  absl::StatusOr<AlgorithmFile> read =
      algorithmsFromJson(std::string(file->bytes()), options.algorithms);
  if (!read.ok())
    return Failure::input(std::string(read.status().message()))
        .note("the trainer's --tune-algorithms=FILE writes one");
  return std::optional<AlgorithmFile>(*std::move(read));
}

Expected<Target> tmc::targetNamed(const std::string &text) {
  absl::StatusOr<Target> found = findTarget(text);
  if (found.ok())
    return *std::move(found);
  std::string message(found.status().message());
  if (absl::IsUnavailable(found.status()))
    return Failure::world(message);
  if (absl::IsInvalidArgument(found.status()))
    return Failure::input(message);
  Failure failure = Failure::usage(message);
  if (std::string meant = similarTarget(text); !meant.empty())
    failure.notes.push_back("did you mean '" + meant + "'?");
  std::string names;
  for (const std::string &name : targetNames())
    names += (names.empty() ? "" : ", ") + name;
  failure.notes.push_back("there are " + names);
  return failure;
}
