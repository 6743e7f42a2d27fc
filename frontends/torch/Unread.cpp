// Unread.cpp - refuses arguments that a file gives and an importer doesn't
// read.

#include "frontends/common/Defaults.h"
#include "frontends/torch/Call.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

/// ATen's defaults.
static const Defaults &defaults() {
  static constexpr Defaults::Line lines[] = {
#define TMC_DEFAULTS(OP, ARGUMENTS) {OP, ARGUMENTS},
#include "frontends/torch/Defaults.inc"
#undef TMC_DEFAULTS
  };
  static const Defaults table{lines};
  return table;
}

/// True for arguments that choose a tensor's place or layout, or the library
/// that computes it, and so change no number. Devices, layouts and orders of
/// memory have the kind Other.
static bool changesNoNumber(const std::string &name, const Arg &argument) {
  static const std::set<StringRef> names = {
      "pin_memory",   "non_blocking",    "copy",         "implicit",
      "cudnn_enable", "cudnn_enabled",   "benchmark",    "deterministic",
      "allow_tf32",   "physical_layout", "compute_mode", "path"};
  return argument.kind == Arg::Other || names.count(name);
}

static bool isPlain(const Arg &argument) {
  return argument.kind == Arg::Int || argument.kind == Arg::Float ||
         argument.kind == Arg::Bool;
}

/// The number of a plain argument.
static double numberOf(const Arg &argument) {
  return argument.kind == Arg::Float ? argument.number
                                     : static_cast<double>(argument.integer);
}

static bool isDefault(StringRef text, const Arg &argument) {
  if (isPlain(argument))
    return isNumber(text, numberOf(argument));
  if (argument.kind == Arg::String)
    return text == argument.text;
  if (argument.kind != Arg::List || !llvm::all_of(argument.list, isPlain))
    return false;
  SmallVector<double> values;
  for (const Arg &element : argument.list)
    values.push_back(numberOf(element));
  return isList(text, values);
}

/// The argument in Python's notation.
static std::string written(const Arg &argument) {
  std::string text;
  llvm::raw_string_ostream out(text);
  switch (argument.kind) {
  case Arg::Bool:
    return argument.integer ? "True" : "False";
  case Arg::Int:
    return std::to_string(argument.integer);
  case Arg::Float:
    out << llvm::format("%g", argument.number);
    return text;
  case Arg::String:
    return "'" + argument.text + "'";
  case Arg::Tensor:
  case Arg::Symbol:
    return argument.text;
  case Arg::List:
    out << "[";
    llvm::interleaveComma(argument.list, out,
                          [&](const Arg &each) { out << written(each); });
    out << "]";
    return text;
  default:
    return "...";
  }
}

LogicalResult Call::checkAllRead() {
  for (const auto &[name, argument] : data.arguments) {
    std::optional<StringRef> usual = defaults().find(data.op(), name);
    if (wereRead.count(name) || changesNoNumber(name, argument) ||
        (argument.kind == Arg::None && !usual) ||
        (usual && isDefault(*usual, argument)))
      continue;
    return unsupported("argument " + name + "=" + written(argument));
  }
  return success();
}
