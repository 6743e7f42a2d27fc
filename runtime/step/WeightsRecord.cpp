//===- WeightsRecord.cpp - the values that a compilation left -------------===//

#include "runtime/step/WeightsRecord.h"

#include "runtime/step/Identity.h"
#include "runtime/step/JsonReader.h"

#include <unistd.h>

namespace tmc {

namespace {

constexpr int64_t kMostRecordBytes = 1 << 20;
constexpr size_t kDigits = 16;

bool isDigits(const std::string &text) {
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Reads {"in_file": OLD, "in_model": NEW}.
bool readPrefix(JsonReader &at, WeightsRecord &record) {
  return at.object([&](const std::string &key) {
    if (key == "in_file")
      return at.string(record.inFile) && at.checkName(record.inFile);
    if (key == "in_model")
      return at.string(record.inModel) && at.checkName(record.inModel);
    return at.skip();
  });
}

bool readFile(JsonReader &at, WeightsRecord::File &file) {
  const bool isSound = at.object([&](const std::string &key) {
    if (key == "path")
      return at.string(file.path);
    if (key == "header")
      return at.string(file.header);
    return at.skip();
  });
  return isSound && ((!file.path.empty() && isDigits(file.header)) ||
                     at.fail("a file without its path and its header's hash"));
}

bool readFiles(JsonReader &at, WeightsRecord &record) {
  if (!at.expect('['))
    return false;
  if (at.accept(']'))
    return true;
  do {
    record.files.emplace_back();
    if (!readFile(at, record.files.back()))
      return false;
  } while (at.accept(','));
  return at.expect(']');
}

} // namespace

std::string WeightsRecord::nameInModel(const std::string &name) const {
  if (name.compare(0, inFile.size(), inFile) == 0)
    return inModel + name.substr(inFile.size());
  return name.compare(0, inModel.size(), inModel) == 0 ? "" : name;
}

/// Source: FNV-1a with 64 bits, Fowler, Noll, Vo.
Status headerDigits(const SafetensorsFile &file, std::string &digits) {
  std::string header(size_t(file.headerBytes()), '\0');
  if (Status s = file.file().read(0, header.data(), file.headerBytes()); !s)
    return s;
  uint64_t sum = 0xcbf29ce484222325u;
  for (char c : header)
    sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char text[kDigits + 1];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(sum));
  digits = text;
  return Status::ok();
}

std::string recordText(const WeightsRecord &record) {
  std::string text = "{\n  \"" + std::string(kMakerKey) +
                     "\": " + jsonQuoted(kMaker) + ",\n  \"" + kIdentityKey +
                     "\": " + jsonQuoted(record.identity) + ",\n";
  if (record.inFile != record.inModel)
    text += "  \"prefix\": {\"in_file\": " + jsonQuoted(record.inFile) +
            ", \"in_model\": " + jsonQuoted(record.inModel) + "},\n";
  text += "  \"files\": [";
  for (size_t i = 0; i < record.files.size(); ++i)
    text += std::string(i ? "," : "") +
            "\n    {\"path\": " + jsonQuoted(record.files[i].path) +
            ", \"header\": " + jsonQuoted(record.files[i].header) + "}";
  return text +
         "\n  ],\n  \"beside\": " + (record.hasBeside ? "true" : "false") +
         "\n}\n";
}

bool isRecordPath(const std::string &path) {
  return path.substr(path.rfind('/') + 1) == kRecordFile;
}

Status readRecord(const std::string &path, WeightsRecord &record) {
  record = WeightsRecord();
  MappedFile file;
  if (Status s = MappedFile::open(path, file); !s)
    return s;
  const auto bad = [&](const std::string &why) {
    return Status(Code::BadInput,
                  "'" + path + "' isn't a sound record of weights: " + why);
  };
  if (file.bytes() > kMostRecordBytes)
    return bad("it has " + std::to_string(file.bytes()) +
               " bytes; at most 1048576 are allowed");
  std::string text(size_t(file.bytes()), '\0');
  if (Status s = file.read(0, text.data(), file.bytes()); !s)
    return s;
  JsonReader at(text, "record");
  std::string maker;
  const bool isSound = at.object([&](const std::string &key) {
    if (key == kMakerKey)
      return at.string(maker);
    if (key == kIdentityKey)
      return at.string(record.identity);
    if (key == "prefix")
      return readPrefix(at, record);
    if (key == "files")
      return readFiles(at, record);
    std::string_view value;
    if (key != "beside")
      return at.skip();
    const bool isRead = at.raw(value);
    record.hasBeside = value == "true";
    return isRead;
  });
  if (!isSound || !at.finish())
    return bad(at.error());
  return maker == kMaker
             ? Status::ok()
             : bad("it isn't made by '" + std::string(kMaker) + "'");
}

std::string shippedIn(const std::string &folder) {
  for (const char *name : {kRecordFile, kOwnWeightsFile}) {
    const std::string path = folder + "/" + name;
    if (access(path.c_str(), F_OK) == 0)
      return path;
  }
  return "";
}

std::string unusedIn(const std::string &folder) {
  const std::string path = folder + "/" + kOwnWeightsFile;
  return !folder.empty() && access(path.c_str(), F_OK) == 0 ? path : "";
}

Status checkShipped(const std::string &path, const std::string &identity) {
  std::string found = identity;
  if (isRecordPath(path)) {
    WeightsRecord record;
    if (readRecord(path, record))
      found = record.identity;
  } else if (SafetensorsFile file;
             !path.empty() && SafetensorsFile::open(path, file)) {
    const auto said = [&](const char *key) {
      const auto at = file.metadata().find(key);
      return at == file.metadata().end() ? std::string() : at->second;
    };
    if (said(kMakerKey) == kMaker)
      found = said(kIdentityKey);
  }
  // The reader of the values says why they can't be read.
  if (found == identity)
    return Status::ok();
  return {Code::BadInput,
          "'" + path +
              "' is of another compilation than this trainer: "
              "compile the model again, or move the file away and "
              "give --weights FILE"};
}

} // namespace tmc
