//===- SafetensorsSet.cpp - the tensors of a model in several files -------===//

#include "runtime/step/SafetensorsSet.h"

#include "runtime/step/Identity.h"
#include "runtime/step/JsonReader.h"
#include "runtime/step/WeightsRecord.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace tmc {

namespace {

/// As for the header of a file; a name and its file take some 150 bytes.
constexpr int64_t kMaxIndexBytes = 100'000'000;
/// Files that are open at a time. The largest models have some 200.
constexpr size_t kMostShards = 1000;

constexpr char kFileEnd[] = ".safetensors";
constexpr char kIndexEnd[] = ".index.json";

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// "DIR" of "DIR/name"; "." of "name".
std::string folderOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "."
         : slash == 0               ? "/"
                                    : path.substr(0, slash);
}

/// The hash that names the content of `folder`/`name`, if that is a link as
/// Hugging Face's cache has them: `../../blobs/HASH`. Else "".
std::string blobOf(const std::string &folder, const std::string &name) {
  static const std::string start = "../../blobs/";
  char target[256];
  const std::string path = folder + "/" + name;
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  if (length <= 0 || size_t(length) == sizeof target)
    return "";
  const std::string link(target, size_t(length));
  if (link.compare(0, start.size(), start) != 0)
    return "";
  const std::string hash = link.substr(start.size());
  const char *digits = "0123456789abcdef";
  return hash.find_first_not_of(digits) == std::string::npos ? hash : "";
}

/// Opens `name` in `folder`, where neither may be trusted.
template <typename File>
Status openIn(const std::string &folder, const std::string &name, File &file) {
  const std::string blob = blobOf(folder, name);
  return blob.empty() ? File::openBeneath(folder, name, file)
                      : File::openBeneath(folder + "/../../blobs", blob, file);
}

/// The reason why an index may not name this file, or "".
std::string fileFault(const std::string &name) {
  if (name.empty() || name == "." || name == "..")
    return "names no file";
  if (name.find('/') != std::string::npos)
    return "isn't beside the index";
  return "";
}

/// Reads {"weight_map": {name: file}}; other keys are skipped.
bool readIndex(JsonReader &at, std::map<std::string, std::string> &files) {
  bool found = false;
  const auto entry = [&](const std::string &name) {
    std::string file;
    if (!at.checkName(name) || !at.string(file) || !at.checkName(file))
      return false;
    if (const std::string fault = fileFault(file); !fault.empty())
      return at.fail("the file '" + visible(file, /*isName=*/true) + "' " +
                     fault);
    return files.emplace(name, file).second ||
           at.fail("the name '" + name + "' occurs twice");
  };
  const bool isSound = at.object([&](const std::string &key) {
    if (key != "weight_map")
      return at.skip();
    if (found)
      return at.fail("a second weight_map");
    found = true;
    return at.object(entry);
  });
  return isSound && at.finish() &&
         (!files.empty() || at.fail("no weight_map with a name in it"));
}

} // namespace

Status openBeside(const std::string &folder, const std::string &name,
                  MappedFile &file) {
  return openIn(folder, name, file);
}

Status readTextBeside(const std::string &folder, const std::string &name,
                      std::string &text) {
  constexpr int64_t kMostBytes = 1 << 24;
  MappedFile file;
  if (Status s = openIn(folder, name, file); !s)
    return s;
  if (file.bytes() > kMostBytes)
    return {Code::BadInput, "'" + folder + "/" + name + "' has " +
                                std::to_string(file.bytes()) + " bytes"};
  text.resize(size_t(file.bytes()));
  return file.read(0, text.data(), file.bytes());
}

const SetTensor *SafetensorsSet::find(const std::string &name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Status SafetensorsSet::add(SafetensorsFile &&file) {
  for (const auto &[name, tensor] : file.tensors()) {
    SetTensor entry;
    static_cast<SafeTensor &>(entry) = tensor;
    entry.file = files_.size();
    const auto [at, isNew] = tensors_.emplace(name, std::move(entry));
    if (!isNew)
      return {Code::BadInput, "'" + name + "' is in two shards, '" +
                                  files_[at->second.file].path() + "' and '" +
                                  file.path() + "'"};
  }
  files_.push_back(std::move(file));
  return Status::ok();
}

Status SafetensorsSet::openIndex(const std::string &folder,
                                 const MappedFile &file,
                                 const std::string &shown) {
  const auto bad = [&](const std::string &why) {
    return Status(Code::BadInput,
                  "'" + shown + "' isn't a sound index of shards: " + why);
  };
  index_ = shown;
  if (file.bytes() > kMaxIndexBytes)
    return bad("it has " + std::to_string(file.bytes()) +
               " bytes; at most 100000000 are allowed");
  std::string text(size_t(file.bytes()), '\0');
  if (Status s = file.read(0, text.data(), file.bytes()); !s)
    return s;
  std::map<std::string, std::string> fileOf;
  JsonReader reader(text, "index");
  if (!readIndex(reader, fileOf))
    return bad(reader.error());
  std::set<std::string> names;
  for (const auto &entry : fileOf)
    names.insert(entry.second);
  if (names.size() > kMostShards)
    return bad("it names " + std::to_string(names.size()) +
               " files; at most 1000 are allowed");

  std::map<std::string, size_t> numbers;
  for (const std::string &name : names) {
    SafetensorsFile shard;
    if (Status s = openIn(folder, name, shard); !s)
      return {s.code(), s.message() + "; '" + shown + "' names it"};
    numbers[name] = files_.size();
    if (Status s = add(std::move(shard)); !s)
      return s;
  }
  for (const auto &[name, shard] : fileOf) {
    const SetTensor *tensor = find(name);
    if (!tensor || tensor->file != numbers[shard])
      return bad("'" + name + "' isn't in '" + shard + "'" +
                 (tensor ? ", but in '" + files_[tensor->file].path() + "'"
                         : std::string()));
  }
  return Status::ok();
}

Status SafetensorsSet::openFolder(const std::string &folder,
                                  const std::string &stem) {
  const std::string name = stem + kFileEnd, index = name + kIndexEnd;
  const auto exists = [&](const std::string &name) {
    struct stat info;
    return lstat((folder + "/" + name).c_str(), &info) == 0;
  };
  if (exists(name)) {
    SafetensorsFile file;
    if (Status s = openIn(folder, name, file); !s)
      return s;
    return add(std::move(file));
  }
  if (!exists(index)) {
    std::string message =
        "'" + folder + "' has no " + name + " and no " + index;
    // The names of the same in pickles.
    for (const std::string &old : {"pytorch_" + stem + ".bin", stem + ".bin"})
      if (exists(old))
        message += "; '" + old + "' is a pickle, which isn't read";
    return {Code::BadInput, message};
  }
  MappedFile file;
  if (Status s = openIn(folder, index, file); !s)
    return s;
  return openIndex(folder, file, folder + "/" + index);
}

Status SafetensorsSet::openList(const std::string &paths) {
  for (size_t at = 0; at <= paths.size();) {
    const size_t end = std::min(paths.find(',', at), paths.size());
    SafetensorsFile file;
    if (Status s = SafetensorsFile::open(paths.substr(at, end - at), file); !s)
      return s;
    if (Status s = add(std::move(file)); !s)
      return s;
    at = end + 1;
  }
  return Status::ok();
}

/// The values beside a record count before those of its files.
Status SafetensorsSet::openRecord(const std::string &path) {
  WeightsRecord record;
  if (Status s = readRecord(path, record); !s)
    return s;
  if (record.files.size() > kMostShards)
    return {Code::BadInput, "'" + path + "' names " +
                                std::to_string(record.files.size()) +
                                " files; at most 1000 are allowed"};
  if (record.hasBeside) {
    SafetensorsFile own;
    const std::string name = folderOf(path) + "/" + kOwnWeightsFile;
    if (Status s = SafetensorsFile::open(name, own); !s)
      return s;
    if (Status s = checkShipped(name, record.identity); !s)
      return s;
    if (Status s = add(std::move(own)); !s)
      return s;
  }
  const size_t first = files_.size();
  for (const WeightsRecord::File &each : record.files) {
    SafetensorsFile file;
    if (Status s = SafetensorsFile::open(each.path, file); !s)
      return {s.code(), s.message() + "; '" + path + "' names it"};
    std::string header;
    if (Status s = headerDigits(file, header); !s)
      return s;
    if (header != each.header)
      return {Code::BadInput,
              "'" + each.path +
                  "' has changed since the step was compiled with it: its "
                  "header is another one; compile the model again"};
    for (const auto &[name, tensor] : file.tensors()) {
      SetTensor entry;
      static_cast<SafeTensor &>(entry) = tensor;
      entry.file = files_.size();
      const std::string own = record.nameInModel(name);
      if (own.empty())
        continue;
      const auto [at, isNew] = tensors_.emplace(own, std::move(entry));
      if (!isNew && at->second.file >= first)
        return {Code::BadInput, "'" + at->first + "' is in '" +
                                    files_[at->second.file].path() +
                                    "' and in '" + each.path + "'"};
    }
    files_.push_back(std::move(file));
  }
  return Status::ok();
}

Status SafetensorsSet::open(const std::string &path, SafetensorsSet &set,
                            const std::string &stem) {
  set = SafetensorsSet();
  set.path_ = path;
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    std::string folder = path;
    while (folder.size() > 1 && folder.back() == '/')
      folder.pop_back();
    return set.openFolder(folder, stem);
  }
  if (isRecordPath(path))
    return set.openRecord(path);
  if (endsWith(path, kIndexEnd)) {
    MappedFile file;
    if (Status s = MappedFile::open(path, file); !s)
      return s;
    return set.openIndex(folderOf(path), file, path);
  }
  if (path.find(',') != std::string::npos && stat(path.c_str(), &info) != 0)
    return set.openList(path);
  SafetensorsFile file;
  if (Status s = SafetensorsFile::open(path, file); !s)
    return s;
  return set.add(std::move(file));
}

} // namespace tmc
