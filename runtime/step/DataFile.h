//===- DataFile.h - a file of a trainer's data ------------------*- C++ -*-===//
//
// A file is known by what it begins with, or it is refused: bytes of any other
// kind read as tokens train a model without a word.
//
//     begins like                    is
//     .npy                           an array
//     .safetensors                   named arrays
//     20240520, 20240801 (llm.c)     tokens, u16 and u32
//     "BIN.TOK\n" (LLM.Q)            tokens, u32
//     Parquet, Arrow, zip, JSON, ..  refused by its name
//     none of these                  tokens, where the name or the user says
//     so:
//                                    FILE:u16, FILE:u32, *.u16.bin, *.u32.bin,
//                                    or *.bin (u16)
//
// A *.bin whose every second word is 0 holds u32 as likely as u16, and says
// nothing of which: it is refused, too.
//
// Files are read by calls, not by mapping: one that another program cuts is an
// error of the next read, not a signal.
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

/// What `--data` says of one file: FILE[:u16|:u32][+N], or FILE*SCALE[+SHIFT].
struct DataSpec {
  std::string path;
  std::optional<DType> raw; // U16, or I32 for u32: tokens without a header
  int64_t skipped = 0;      // tokens, by +N
  bool isScaled = false;    // numbers are multiplied by scale, and moved
  double scale = 1, shift = 0;

  static DataSpec parse(const std::string &text);
};

/// An array in a file, unconverted.
struct ArrayView {
  DType type = DType::F32;
  bool isUnsigned = false; // I32 and I64 that hold u32 and u64
  std::vector<int64_t> shape;
  int64_t begin = 0; // of its bytes in the file
  int64_t elements() const;
  /// "u32", "f16".
  const char *typeName() const;
};

/// Parses the header of a .npy file (versions 1 to 3, C order, little-endian):
/// `head` are the first bytes of a file that has `fileBytes`.
Status parseNpy(const std::string &shown, const std::string &head,
                int64_t fileBytes, ArrayView &array);

class DataFile {
public:
  /// Opens a file. Of a .safetensors file it takes the tensor `name`, or the
  /// only one.
  static Status open(const DataSpec &spec, const std::string &name,
                     DataFile &file);

  const ArrayView &array() const { return array_; }
  const std::string &path() const { return path_; }
  /// Reads `count` elements from number `first` on, as they are.
  Status read(int64_t first, int64_t count, char *to) const;

private:
  Status openRaw(const DataSpec &spec);
  Status parseTokens(const std::string &head, const DataSpec &spec,
                     bool &isTokens);

  std::string path_;
  MappedFile file_;
  ArrayView array_;
};

/// `count` elements of an array in the type of an input. Fails where a number
/// isn't one of that type: the message begins with "element N". Numbers are
/// counted from `first`, for messages.
Status convertElements(const ArrayView &array, const char *from, int64_t first,
                       int64_t count, const DataSpec &spec, DType to,
                       char *out);

/// Whether elements of an array can become elements of `to`, each by itself.
bool convertsTo(const ArrayView &array, DType to);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATAFILE_H
