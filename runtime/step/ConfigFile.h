//===- ConfigFile.h - flags from a file -------------------------*- C++ -*-===//
//
// `--config FILE.toml` gives flags to tmc and to a trainer. A file has a table
// for each of them, so that one file describes an experiment:
//
//     [compile]                       # tmc compile, plan and explain
//     model = "gpt2-124m.onnx"
//     target = "cuda:rtx3060"
//     budget = "12GiB"
//     dim = ["sequence=1024"]         # a flag that may occur several times
//
//     [train]                         # the trainer
//     data = ["train-*.bin"]
//     steps = 2000
//     lr = 3e-4
//     quiet = true                    # a flag without a value
//
// A key is the name of a flag. A flag on the command line wins. The file is
// TOML 1.0, of which it may have what a flag can say: tables of one name,
// strings of one line, decimal numbers, booleans, and arrays of strings and
// numbers. The rest of TOML is refused with its line.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_CONFIGFILE_H
#define TMC_RUNTIME_STEP_CONFIGFILE_H

#include "runtime/kernels/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// A key of a table, with the texts of its values.
struct ConfigFlag {
  enum Kind { Value, Switch, List };
  std::string name;
  Kind kind = Value;
  bool isOn = false;               // A switch's.
  std::vector<std::string> values; // One of a value, none of a switch.

  /// The words of a command line that say the same: "--dim=sequence=1024".
  std::vector<std::string> words() const;
};

struct ConfigTable {
  std::string name;
  std::vector<ConfigFlag> flags;
};

/// Reads the text of a file. Fails with Code::BadInput and the line for what
/// isn't as above; also where a table or a key is there twice.
Status parseConfig(std::string_view text, std::vector<ConfigTable> &tables);

/// Reads the table `name` ("compile" or "train") of the file at `path`; empty
/// if there is none. Fails for tables with other names, too.
Status readConfig(const std::string &path, const std::string &name,
                  ConfigTable &table);

/// `text` as a string of TOML. Bytes that aren't UTF-8 become U+FFFD.
std::string tomlQuoted(std::string_view text);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_CONFIGFILE_H
