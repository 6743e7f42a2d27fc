#include "tools/MeshFlags.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace tmc;

/// The largest value of `zero`.
static constexpr int64_t kMostLevel = 3;
/// Steps in one directory.
static constexpr size_t kMostMeshes = 8;

/// Reads a number of ranks.
static bool readRanks(llvm::StringRef word, int &number) {
  return !word.getAsInteger(10, number) && number >= 1 && number <= kMostRanks;
}

/// Reads the numbers of ranks, one for each step.
static Expected<void> readDevices(llvm::StringRef devices, bool mayBeSeveral,
                                  CompileOptions &options) {
  std::set<int> numbers;
  for (llvm::StringRef word : llvm::split(devices, ',')) {
    int number = 0;
    if (!readRanks(word, number))
      return Failure::usage(
          "--devices=" + devices.str() + " isn't a number from 1 to " +
          std::to_string(kMostRanks) + ", or several with commas");
    numbers.insert(number);
  }
  if (numbers.size() > kMostMeshes)
    return Failure::usage("--devices takes " + std::to_string(kMostMeshes) +
                          " numbers at most");
  for (int number : numbers) {
    options.mesh.data = number;
    options.meshes.push_back(options.mesh);
  }
  options.mesh = options.meshes.front();
  if (options.meshes.size() > 1 && !mayBeSeveral)
    return Failure::usage("--devices takes several numbers with tmc compile "
                          "alone");
  return {};
}

static Failure noParallel(llvm::StringRef text, const std::string &why) {
  return Failure::usage("--parallel=" + text.str() + ": " + why);
}

/// Deals the ranks of each mesh to the axes. `data`: the number that the user
/// gave, or 0.
static Expected<void> dealRanks(llvm::StringRef devices,
                                llvm::StringRef parallel, int data, int tensor,
                                CompileOptions &options) {
  if (options.meshes.empty()) {
    options.mesh.data = std::max(data, 1);
    options.mesh.tensor = tensor;
    if (options.mesh.ranks() > kMostRanks)
      return noParallel(parallel, "there are more than " +
                                      std::to_string(kMostRanks) + " ranks");
    return {};
  }
  for (Mesh &mesh : options.meshes) {
    const int64_t ranks = mesh.data;
    mesh.tensor = tensor;
    mesh.data = int(ranks / tensor);
    if (mesh.ranks() != ranks)
      return noParallel(parallel,
                        "tp doesn't divide --devices=" + devices.str());
    if (data && data != mesh.data)
      return noParallel(parallel, std::string(tensor > 1 ? "dp x tp" : "dp") +
                                      " isn't --devices=" + devices.str());
  }
  options.mesh = options.meshes.front();
  return {};
}

Expected<void> tmc::readMesh(llvm::StringRef devices, llvm::StringRef parallel,
                             bool mayBeSeveral, CompileOptions &options) {
  if (!devices.empty())
    TMC_TRY(readDevices(devices, mayBeSeveral, options));
  // A free number of micro-batches frees the order of their sums, too.
  bool sumsAreFree =
      leverTable()[kMicroBatches].isFree(options.levers[kMicroBatches]);
  int data = 0, tensor = 1;
  llvm::SmallVector<llvm::StringRef> parts;
  parallel.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, value] = part.split('=');
    int number = -1;
    if (name == "sums") {
      if (value != "whole" && value != "shards" && value != "auto")
        return noParallel(parallel, "sums are whole, shards or auto");
      options.sums = value == "whole"    ? RankSums::Whole
                     : value == "shards" ? RankSums::Shards
                                         : RankSums::Auto;
      sumsAreFree = false;
      continue;
    }
    if (value.getAsInteger(10, number))
      return noParallel(parallel, "'" + part.str() + "' isn't NAME=NUMBER");
    if (name == "zero") {
      if (number < 0 || number > kMostLevel)
        return noParallel(parallel, "zero is 0, 1, 2 or 3");
      options.shardLevel = number;
    } else if (name == "whole") {
      if (number < 0)
        return noParallel(parallel, "whole is a number of parameters");
      options.wholeParams = number;
    } else if (name == "dp") {
      if (!readRanks(value, number))
        return noParallel(parallel, "dp is a number from 1 to " +
                                        std::to_string(kMostRanks));
      data = number;
    } else if (name == "tp") {
      if (!readRanks(value, number))
        return noParallel(parallel, "tp is a number from 1 to " +
                                        std::to_string(kMostRanks));
      tensor = number;
    } else if (name == "pp") {
      if (number != 1)
        return Failure::unsupported("--parallel: " + name.str() +
                                    " can only be 1 yet");
    } else {
      return noParallel(parallel,
                        "'" + name.str() +
                            "' is none of dp, tp, pp, zero, whole, sums");
    }
  }
  if (sumsAreFree)
    options.sums = RankSums::Auto;
  if (options.wholeParams && options.shardLevel != kMostLevel)
    return noParallel(parallel, "whole=" + std::to_string(options.wholeParams) +
                                    " needs zero=3");
  return dealRanks(devices, parallel, data, tensor, options);
}
