//===- DataFile.h - a file of a trainer's data ------------------*- C++ -*-===//
//
// The first bytes of a file identify its kind; an unknown kind is refused. A
// model that trains on other bytes as if they were tokens gives no error.
//
//     begins like                    is
//     .npy                           an array
//     .safetensors                   named arrays
//     20240520, 20240801 (llm.c)     tokens, u16 and u32
//     "BIN.TOK\n" (LLM.Q)            tokens, u32
//     text, '{' first                a sample a line (JsonLines.h)
//     Parquet, Arrow, zip, text, ..  refused by its name
//     none of these                  tokens, if the name or the user says so:
//                                    FILE:u16, FILE:u32, *.u16.bin, *.u32.bin,
//                                    or *.bin (u16)
//
// A *.bin file whose every second word is 0 could hold u16 or u32, so it is
// refused too.
//
// Files are read by system calls, not mapped. If another program truncates a
// file, the next read returns an error instead of raising a signal.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATAFILE_H
#define TMC_RUNTIME_STEP_DATAFILE_H

#include "runtime/kernels/DType.h"
#include "runtime/step/File.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tmc {

/// One `--data` value: FILE[:u16|:u32][+N], or FILE*SCALE[+SHIFT].
struct DataSpec {
  std::string path;
  std::optional<DType> raw; // U16, or I32 for u32: tokens without a header
  int64_t skipped = 0;      // tokens, by +N
  bool isScaled = false;    // numbers are multiplied by scale, and shifted
  double scale = 1, shift = 0;

  static DataSpec parse(const std::string &text);
};

/// An array in a file, unconverted.
struct ArrayView {
  DType type = DType::F32;
  bool isUnsigned = false; // I32 and I64 that hold u32 and u64 values
  std::vector<int64_t> shape;
  int64_t begin = 0; // of its bytes in the file
  int64_t elements() const;
  /// "u32", "f16".
  const char *typeName() const;
};

/// Parses the header of a .npy file (versions 1 to 3, C order, little-endian).
/// `head` holds the first bytes of a file of `fileBytes` bytes.
Status parseNpy(const std::string &shown, const std::string &head,
                int64_t fileBytes, ArrayView &array);

class DataFile {
public:
  /// Opens a file. From a .safetensors file, takes the tensor `name`, or its
  /// only tensor.
  static Status open(const DataSpec &spec, const std::string &name,
                     DataFile &file);

  const ArrayView &array() const { return array_; }
  const std::string &path() const { return path_; }
  /// Reads `count` unconverted elements, starting at element `first`.
  Status read(int64_t first, int64_t count, char *to) const;

private:
  Status openRaw(const DataSpec &spec);
  Status parseTokens(const std::string &head, const DataSpec &spec,
                     bool &isTokens);

  std::string path_;
  MappedFile file_;
  ArrayView array_;
};

/// Finds if a file holds samples in JSON, one a line: by its name, *.jsonl, or
/// by its first bytes.
Status isJsonLines(const std::string &path, const DataSpec &spec, bool &isOne);

/// Converts `count` elements of an array to the type of an input. Fails if a
/// value doesn't fit that type; the message begins with "element N", where N
/// counts from `first`.
Status convertElements(const ArrayView &array, const char *from, int64_t first,
                       int64_t count, const DataSpec &spec, DType to,
                       char *out);

/// Whether each element of an array can be converted to `to` by itself.
bool convertsTo(const ArrayView &array, DType to);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATAFILE_H
