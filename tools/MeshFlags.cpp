#include "tools/MeshFlags.h"

#include "llvm/ADT/StringExtras.h"

using namespace tmc;

/// Of `zero`.
static constexpr int64_t kMostLevel = 3;

static Failure noDevices(llvm::StringRef text) {
  return Failure::usage("--devices=" + text.str() +
                        " isn't a number from 1 to " +
                        std::to_string(kMostRanks));
}

static Failure noParallel(llvm::StringRef text, const std::string &why) {
  return Failure::usage("--parallel=" + text.str() + ": " + why);
}

Expected<void> tmc::readMesh(llvm::StringRef devices, llvm::StringRef parallel,
                             CompileOptions &options) {
  int64_t count = 1;
  if (!devices.empty() &&
      (devices.getAsInteger(10, count) || count < 1 || count > kMostRanks))
    return noDevices(devices);
  options.mesh.data = int(count);
  llvm::SmallVector<llvm::StringRef> parts;
  parallel.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    int64_t number = -1;
    if (value.getAsInteger(10, number))
      return noParallel(parallel, "'" + part.str() + "' isn't NAME=NUMBER");
    if (name == "zero") {
      if (number < 0 || number > kMostLevel)
        return noParallel(parallel, "zero is 0, 1, 2 or 3");
      options.shardLevel = number;
    } else if (name == "dp") {
      if (number < 1 || number > kMostRanks ||
          (!devices.empty() && number != count))
        return noParallel(
            parallel, devices.empty() ? "dp is a number from 1 to " +
                                            std::to_string(kMostRanks)
                                      : "dp isn't --devices=" + devices.str());
      options.mesh.data = int(number);
    } else if (name == "tp" || name == "pp") {
      if (number != 1)
        return Failure::unsupported("--parallel: " + name.str() +
                                    " can only be 1 yet");
    } else {
      return noParallel(parallel,
                        "'" + name.str() + "' is none of dp, tp, pp, zero");
    }
  }
  return {};
}
