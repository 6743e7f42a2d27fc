// Example.cpp - counts the tensors in the example of an export.
//
//   data/sample_inputs/model.pt     an archive of its own, by torch.save()
//     archive/data.pkl              ((ids, ids), {}): one tensor, twice
//
// A pickle is a program for a machine with a stack. Each tensor that it builds
// loads its storage with one opcode, BINPERSID; a repeated tensor comes from
// the memo. So this code counts the opcodes. It skips each opcode by its
// length, and runs nothing of the program.

#include "frontends/torch/Program.h"

#include "llvm/Support/Endian.h"

using namespace tmc;
using llvm::StringRef;

/// A local header of a zip file, up to the name of its entry.
constexpr size_t kZipHeader = 30;
/// The most opcodes of the pickle that are read.
constexpr int64_t kMaxOpcodes = int64_t(1) << 20;

/// The bytes from the beginning of a zip's first entry, if that is an
/// uncompressed pickle.
static std::optional<StringRef> firstPickle(StringRef zip) {
  if (zip.size() < kZipHeader || !zip.starts_with("PK\3\4"))
    return std::nullopt;
  const auto *at = zip.bytes_begin();
  unsigned method = llvm::support::endian::read16le(at + 8);
  size_t name = llvm::support::endian::read16le(at + 26);
  size_t extra = llvm::support::endian::read16le(at + 28);
  if (method != 0 || zip.size() < kZipHeader + name + extra ||
      !zip.substr(kZipHeader, name).ends_with("data.pkl"))
    return std::nullopt;
  return zip.drop_front(kZipHeader + name + extra);
}

/// The number of bytes after opcode `op` that belong to it; nothing if the
/// opcode is unknown or `rest` is too short.
static std::optional<size_t> operandSize(char op, StringRef rest) {
  auto counted = [&](size_t width) -> std::optional<size_t> {
    if (rest.size() < width)
      return std::nullopt;
    size_t size = 0;
    for (size_t i = width; i-- > 0;)
      size = size << 8 | static_cast<unsigned char>(rest[i]);
    return width + size;
  };
  auto lines = [&](int count) -> std::optional<size_t> {
    size_t size = 0;
    while (count-- > 0) {
      size_t end = rest.find('\n', size);
      if (end == StringRef::npos)
        return std::nullopt;
      size = end + 1;
    }
    return size;
  };
  switch (op) {
  case '(':
  case ')':
  case '}':
  case ']':
  case 't':
  case '\x85':
  case '\x86':
  case '\x87':
  case '\x88':
  case '\x89':
  case 'N':
  case 'Q':
  case 'R':
  case 'b':
  case 'a':
  case 'e':
  case 's':
  case 'u':
  case '.':
  case '0':
  case '1':
  case '2':
  case 'd':
  case 'l':
  case '\x81':
    return 0;
  case '\x80':
  case 'q':
  case 'h':
  case 'K':
    return 1;
  case 'M':
    return 2;
  case 'J':
  case 'r':
  case 'j':
    return 4;
  case 'G':
    return 8;
  case '\x8a':
  case 'U':
    return counted(1);
  case 'X':
  case 'T':
    return counted(4);
  case 'c':
    return lines(2);
  default:
    return std::nullopt;
  }
}

std::optional<int64_t>
tmc::torch_import::countTensors(std::string_view archive) {
  std::optional<StringRef> pickle =
      firstPickle(StringRef(archive.data(), archive.size()));
  if (!pickle)
    return std::nullopt;
  int64_t tensors = 0;
  StringRef rest = *pickle;
  for (int64_t i = 0; i < kMaxOpcodes && !rest.empty(); ++i) {
    char op = rest.front();
    rest = rest.drop_front();
    if (op == '.')
      return tensors;
    tensors += op == 'Q';
    std::optional<size_t> size = operandSize(op, rest);
    if (!size || *size > rest.size())
      return std::nullopt;
    rest = rest.drop_front(*size);
  }
  return std::nullopt;
}
