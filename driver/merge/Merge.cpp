#include "driver/merge/Merge.h"

#include "compiler/support/FileWords.h"
#include "driver/merge/Adapter.h"
#include "driver/merge/ModelFiles.h"
#include "driver/merge/Shards.h"
#include "driver/pipeline/Folder.h"
#include "driver/pipeline/Interrupt.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace tmc;
namespace fs = std::filesystem;

namespace {

/// Numbers that are read, summed up and written at a time.
constexpr int64_t kPiece = 1 << 20;

Failure worldFailure(const std::string &what, const std::string &path) {
  return Failure::world("can't " + what + " '" + path +
                        "': " + std::strerror(errno));
}

/// A new folder beside the output, with its files; it takes the output's name
/// once all are written.
class Staging {
public:
  ~Staging() {
    if (!made)
      return;
    parent.removeFolder(name);
    keepWhenStopped(full);
  }

  Expected<void> create(const std::string &wanted) {
    fs::path path = fs::path(wanted).lexically_normal();
    if (!path.has_filename())
      path = path.parent_path(); // Without the slash at its end.
    output = path.filename().string();
    shown = wanted;
    const std::string place =
        path.has_parent_path() ? path.parent_path().string() : ".";
    if (output.empty() || output == "." || output == "..")
      return Failure::usage("-o '" + wanted + "' names no new folder");
    parent = Folder::open(place, Folder::Links::Followed);
    if (!parent)
      return worldFailure("open", place);
    TMC_TRY(checkOutput());
    const std::string start = "." + output + ".tmp.";
    removeAbandoned(start);
    name = start + std::to_string(getpid());
    full = place + "/" + name;
    removeWhenStopped(full, ""); // Before it is there: no signal is too early.
    made = mkdirat(parent.fd(), name.c_str(), 0777) == 0;
    if (made)
      return {};
    Failure failure = worldFailure("write in", place);
    keepWhenStopped(full);
    return failure;
  }
  const std::string &path() const { return full; }

  Expected<void> publish() {
    if (renameat(parent.fd(), name.c_str(), parent.fd(), output.c_str()))
      return worldFailure("make", shown);
    made = false;
    keepWhenStopped(full);
    if (fsync(parent.fd()))
      return worldFailure("sync the folder of", shown);
    return {};
  }

private:
  /// Nothing may be lost: the output is new, or an empty folder.
  Expected<void> checkOutput() const {
    const std::optional<struct stat> status = parent.status(output);
    if (!status)
      return {};
    const Folder old = parent.folder(output);
    if (!old)
      return Failure::usage("'" + shown + "' is there, and is no folder");
    if (!old.names().empty())
      return Failure::usage("'" + shown + "' isn't empty")
          .note("-o names a folder that is new or empty");
    return {};
  }
  /// Removes the folders of killed processes; in containers one of them may
  /// have had this one's number.
  void removeAbandoned(const std::string &start) const {
    for (const std::string &each : parent.names()) {
      llvm::StringRef number = each;
      pid_t process = 0;
      if (number.consume_front(start) && !number.getAsInteger(10, process) &&
          process > 0 &&
          (process == getpid() || (kill(process, 0) && errno == ESRCH)))
        parent.removeFolder(each);
    }
  }

  Folder parent;
  std::string output, name, full, shown;
  bool made = false;
};

struct Tensor {
  std::string name;
  const SetTensor *from = nullptr;
  const Change *change = nullptr;
  SafeTensor form; // As it is written.
};

class Merging {
public:
  explicit Merging(const MergeOptions &options) : options(options) {}

  Expected<MergeReport> run() {
    TMC_TRY(readBase());
    Expected<Adapter> read = readAdapter(options.adapter, base, facts);
    if (!read)
      return std::move(read.failure());
    adapter = std::move(*read);
    report.notes.insert(report.notes.end(), adapter.notes.begin(),
                        adapter.notes.end());
    list();
    Staging staging;
    TMC_TRY(staging.create(options.output));
    TMC_TRY(writeAll(staging.path()));
    TMC_TRY(staging.publish());
    return std::move(report);
  }

private:
  Expected<void> readBase() {
    std::error_code ignored;
    for (const std::string &folder : {options.base, options.adapter})
      if (!fs::is_directory(folder, ignored))
        return Failure::input("'" + folder + "' is no folder");
    if (Status s = SafetensorsSet::open(options.base, base); !s)
      return failureOf(s);
    Expected<std::optional<std::string>> text = readModelConfig(options.base);
    if (!text)
      return std::move(text.failure());
    config = std::move(*text);
    if (!config) {
      report.notes.push_back("'" + options.base + "' has no config.json");
      return {};
    }
    Expected<BaseFacts> read = factsOf(options.base + "/config.json", *config);
    if (!read)
      return std::move(read.failure());
    facts = *read;
    return {};
  }

  /// The tensors in the order of the base's files, as they are written.
  void list() {
    for (const auto &[name, from] : base.tensors()) {
      Tensor tensor{name, &from, nullptr, from};
      if (const auto found = adapter.changes.find(name);
          found != adapter.changes.end())
        tensor.change = &found->second;
      if (options.type && isMergeable(from.type))
        tensor.form.type = *options.type;
      tensors.push_back(std::move(tensor));
    }
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor &x, const Tensor &y) {
                       return std::pair(x.from->file, x.from->begin) <
                              std::pair(y.from->file, y.from->begin);
                     });
    report.tensors = tensors.size();
    report.changed = adapter.changes.size();
  }

  static int64_t elementsOf(const Tensor &tensor) {
    return (tensor.from->end - tensor.from->begin) / sizeOf(tensor.from->type);
  }

  Expected<void> writeAll(const std::string &folder) {
    std::vector<int64_t> sizes;
    std::vector<std::string> names;
    for (const Tensor &tensor : tensors) {
      sizes.push_back(elementsOf(tensor) * sizeOf(tensor.form.type));
      names.push_back(tensor.name);
      report.bytes += sizes.back();
    }
    const std::vector<Shard> shards =
        splitIntoShards(sizes, options.shardBytes);
    report.files = shards.size();
    for (const Shard &shard : shards)
      if (Expected<void> done = writeShard(folder, shard); !done) {
        endProgress();
        return done;
      }
    endProgress();
    if (shards.size() > 1)
      TMC_TRY(writeModelFile(folder, kIndexFile,
                             indexText(shards, names, report.bytes)));
    if (config)
      TMC_TRY(writeModelFile(folder, "config.json",
                             options.type ? withDType(*config, *options.type)
                                          : *config));
    return copyModelFiles(options.base, folder);
  }

  Expected<void> writeShard(const std::string &folder, const Shard &shard) {
    std::vector<std::pair<std::string, SafeTensor>> forms;
    for (size_t i : shard.tensors)
      forms.emplace_back(tensors[i].name, tensors[i].form);
    const std::string header = safetensorsHeader(forms, {{"format", "pt"}});
    AtomicFile file;
    Status s = file.create(folder, shard.file);
    if (s)
      s = file.write(header.data(), int64_t(header.size()));
    if (!s)
      return failureOf(s);
    for (size_t i : shard.tensors)
      TMC_TRY(writeTensor(tensors[i], file));
    if (Status synced = file.commit(); !synced)
      return failureOf(synced);
    return {};
  }

  Expected<void> writeTensor(const Tensor &tensor, AtomicFile &file) {
    if (!tensor.change || tensor.change->whole)
      return writePieces(tensor, nullptr, file);
    Expected<LowRank> product = lowRankOf(adapter, *tensor.change);
    if (!product)
      return std::move(product.failure());
    return writePieces(tensor, &*product, file);
  }

  Expected<void> writePieces(const Tensor &tensor, const LowRank *product,
                             AtomicFile &file) {
    const bool isReplaced = tensor.change && tensor.change->whole;
    const SafetensorsSet &set = isReplaced ? adapter.tensors : base;
    const SetTensor &from = isReplaced ? *tensor.change->whole : *tensor.from;
    const DType to = tensor.form.type;
    const bool isCopied = !product && from.type == to;
    const int64_t count = elementsOf(tensor), inSize = sizeOf(from.type),
                  outSize = sizeOf(to), most = std::min(count, kPiece);
    in.resize(size_t(most * inSize));
    out.resize(isCopied ? 0 : size_t(most * outSize));
    for (int64_t at = 0; at < count; at += kPiece) {
      const int64_t some = std::min(kPiece, count - at);
      Status s = set.read(from, at * inSize, in.data(), some * inSize);
      if (!s)
        return failureOf(s);
      if (!isCopied) {
        const int64_t tooLarge = mergeRows(from.type, in.data(), to, out.data(),
                                           at, some, product, threads());
        if (tooLarge)
          return Failure::input(
              "'" + tensor.name + "' has " + std::to_string(tooLarge) +
              " numbers that are too large for " + nameOf(to));
      }
      s = file.write(isCopied ? in.data() : out.data(), some * outSize);
      if (!s)
        return failureOf(s);
      showProgress(some * outSize);
    }
    return {};
  }

  static int threads() {
    constexpr unsigned kMost = 16;
    return int(std::clamp(std::thread::hardware_concurrency(), 1u, kMost));
  }

  void showProgress(int64_t bytes) {
    written += bytes;
    const int64_t percent = written * 100 / std::max<int64_t>(report.bytes, 1);
    if (!options.progress || percent == shownPercent)
      return;
    shownPercent = percent;
    options.progress("merging: " + std::to_string(percent) + " %");
  }
  void endProgress() const {
    if (options.progress && shownPercent >= 0)
      options.progress("");
  }

  const MergeOptions &options;
  MergeReport report;
  SafetensorsSet base;
  std::optional<std::string> config;
  BaseFacts facts;
  Adapter adapter;
  std::vector<Tensor> tensors;
  std::vector<char> in, out;
  int64_t written = 0, shownPercent = -1;
};

} // namespace

Expected<MergeReport> tmc::mergeAdapter(const MergeOptions &options) {
  return Merging(options).run();
}
