#include "compiler/emit/KernelPieces.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <algorithm>
#include <cstdint>

using namespace llvm;
using namespace tmc;

/// The most bytes of kernels' text in a file of several kernels. Files hold
/// half to two thirds of it on average, and compiling that much takes as long
/// as reading the headers.
static constexpr size_t kFileBytes = 16 << 10;

static uint64_t hashOf(StringRef text) {
  std::array<uint8_t, 32> digest =
      SHA256::hash(ArrayRef(text.bytes_begin(), text.size()));
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof hash; ++i)
    hash = hash << 8 | digest[i];
  return hash;
}

/// `text` without comments to the end of a line, and without empty lines. The
/// text of a body has `//` only in comments.
static std::string withoutComments(StringRef text) {
  std::string kept;
  for (StringRef line : split(text, '\n'))
    if (StringRef code = line.split("//").first.rtrim(); !code.empty())
      kept += (code + "\n").str();
  return kept;
}

/// `text` with `other` in place of `name` wherever `name` is a whole word.
static std::string renamed(StringRef text, StringRef name, StringRef other) {
  auto isWord = [](char c) { return isAlnum(c) || c == '_'; };
  std::string result;
  for (size_t at; (at = text.find(name)) != StringRef::npos;) {
    StringRef rest = text.drop_front(at + name.size());
    bool whole = (at == 0 || !isWord(text[at - 1])) &&
                 (rest.empty() || !isWord(rest.front()));
    result += text.take_front(at);
    result += whole ? other : name;
    text = rest;
  }
  return result + text.str();
}

KernelBody tmc::canonicalBody(StringRef name, StringRef text) {
  std::string code = withoutComments(text);
  // The placeholder "fused_" isn't the name of any printed kernel.
  uint64_t hash = hashOf(renamed(code, name, "fused_"));
  std::string own = "fused_" + utohexstr(hash, /*LowerCase=*/true, 16);
  return {own, renamed(code, name, own) + "\n"};
}

namespace {
struct Hashed {
  uint64_t hash;
  KernelBody body;
};
} // namespace

/// Adds the files of `bodies`, which are sorted and have equal hash bits above
/// `bit`.
static void addFiles(MutableArrayRef<Hashed> bodies, int bit,
                     std::vector<std::vector<KernelBody>> &files) {
  size_t bytes = 0;
  for (const Hashed &each : bodies)
    bytes += each.body.text.size();
  if (bodies.size() > 1 && bytes > kFileBytes && bit >= 0) {
    Hashed *middle = partition_point(
        bodies, [bit](const Hashed &each) { return !(each.hash >> bit & 1); });
    size_t first = middle - bodies.begin();
    addFiles(bodies.take_front(first), bit - 1, files);
    addFiles(bodies.drop_front(first), bit - 1, files);
  } else if (!bodies.empty()) {
    std::vector<KernelBody> &file = files.emplace_back();
    for (Hashed &each : bodies)
      file.push_back(std::move(each.body));
  }
}

std::vector<std::vector<KernelBody>>
tmc::groupBodies(std::vector<KernelBody> bodies) {
  std::vector<Hashed> sorted;
  for (KernelBody &body : bodies) {
    uint64_t hash = hashOf(body.text);
    sorted.push_back({hash, std::move(body)});
  }
  stable_sort(sorted, [](const Hashed &a, const Hashed &b) {
    return std::pair(a.hash, StringRef(a.body.name)) <
           std::pair(b.hash, StringRef(b.body.name));
  });
  sorted.erase(llvm::unique(sorted,
                            [](const Hashed &a, const Hashed &b) {
                              return a.body.name == b.body.name;
                            }),
               sorted.end());
  std::vector<std::vector<KernelBody>> files;
  addFiles(sorted, 63, files);
  return files;
}
