#include "driver/merge/ModelFiles.h"

#include "compiler/support/FileWords.h"
#include "compiler/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <sys/stat.h>

using namespace tmc;
using llvm::StringRef;

namespace {

constexpr char kConfigFile[] = "config.json";

/// Files that transformers saves beside weights and configuration.
constexpr const char *kCopied[] = {"generation_config.json",
                                   "tokenizer.json",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "vocab.json",
                                   "vocab.txt",
                                   "merges.txt",
                                   "tokenizer.model",
                                   "spiece.model",
                                   "sentencepiece.bpe.model",
                                   "chat_template.jinja",
                                   "chat_template.json",
                                   "preprocessor_config.json",
                                   "processor_config.json"};

bool exists(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

/// torch's name of a type.
StringRef torchName(DType type) {
  return type == DType::BF16  ? "bfloat16"
         : type == DType::F16 ? "float16"
         : type == DType::F64 ? "float64"
                              : "float32";
}

/// The end of the string that begins with the quote at `at`.
size_t stringEnd(StringRef text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    at += text[at] == '\\';
  return std::min(at + 1, text.size());
}

} // namespace

Expected<std::optional<std::string>>
tmc::readModelConfig(const std::string &folder) {
  if (!exists(folder + "/" + kConfigFile))
    return std::optional<std::string>();
  std::string text;
  if (Status s = readTextBeside(folder, kConfigFile, text); !s)
    return failureOf(s);
  return std::optional<std::string>(std::move(text));
}

Expected<BaseFacts> tmc::factsOf(const std::string &shown,
                                 const std::string &text) {
  Expected<llvm::json::Object> object = parseJsonObject(text);
  if (!object)
    return Failure{object.failure().kind,
                   "'" + shown + "' " + object.failure().message,
                   {}};
  // Models of text and pictures keep these in a part of their own.
  BaseFacts facts;
  const llvm::json::Object *parts[] = {object->getObject("text_config"),
                                       &*object};
  for (const llvm::json::Object *part : parts) {
    if (!part)
      continue;
    facts.tiesHead =
        part->getBoolean("tie_word_embeddings").value_or(facts.tiesHead);
    facts.vocabulary =
        part->getInteger("vocab_size").value_or(facts.vocabulary);
  }
  return facts;
}

std::string tmc::withDType(const std::string &text, DType type) {
  const StringRef all = text, name = torchName(type);
  constexpr StringRef kKeys[] = {"\"dtype\"", "\"torch_dtype\""};
  constexpr StringRef kTypes[] = {"\"float32\"", "\"float16\"", "\"bfloat16\"",
                                  "\"float64\""};
  std::string result;
  StringRef key; // The last string, if a colon follows.
  bool isChanged = false;
  for (size_t at = 0; at < all.size();) {
    if (all[at] != '"') {
      result += all[at++];
      continue;
    }
    const size_t end = stringEnd(all, at);
    const StringRef word = all.slice(at, end);
    const bool isKey = all.substr(end).ltrim().starts_with(":");
    if (!isKey && llvm::is_contained(kKeys, key) &&
        llvm::is_contained(kTypes, word)) {
      result += "\"" + name.str() + "\"";
      isChanged = true;
    } else {
      result += word;
    }
    key = isKey ? word : StringRef();
    at = end;
  }
  if (isChanged)
    return result;
  const size_t brace = result.find('{');
  const bool isEmpty = StringRef(result).substr(brace + 1).ltrim() == "}" ||
                       StringRef(result).substr(brace + 1).trim() == "}";
  return result.insert(brace + 1, "\n  \"torch_dtype\": \"" + name.str() +
                                      "\"" + (isEmpty ? "\n" : ","));
}

Expected<void> tmc::writeModelFile(const std::string &folder,
                                   const std::string &name,
                                   const std::string &text) {
  AtomicFile file;
  Status s = file.create(folder, name);
  if (s)
    s = file.write(text.data(), int64_t(text.size()));
  if (s)
    s = file.commit();
  if (!s)
    return failureOf(s);
  return {};
}

/// Copies one file, by pieces.
static Status copyFile(const std::string &from, const std::string &to,
                       const std::string &name) {
  MappedFile file;
  if (Status s = openBeside(from, name, file); !s)
    return s;
  AtomicFile copy;
  if (Status s = copy.create(to, name); !s)
    return s;
  constexpr int64_t kPieceBytes = 1 << 20;
  std::string piece(size_t(std::min(kPieceBytes, file.bytes())), '\0');
  for (int64_t at = 0; at < file.bytes(); at += kPieceBytes) {
    const int64_t some = std::min(kPieceBytes, file.bytes() - at);
    if (Status s = file.read(at, piece.data(), some); !s)
      return s;
    if (Status s = copy.write(piece.data(), some); !s)
      return s;
  }
  return copy.commit();
}

Expected<void> tmc::copyModelFiles(const std::string &from,
                                   const std::string &to) {
  for (const char *name : kCopied)
    if (exists(from + "/" + name))
      if (Status s = copyFile(from, to, name); !s)
        return failureOf(s);
  return {};
}
