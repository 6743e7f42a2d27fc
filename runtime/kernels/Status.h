//===- Status.h - success, or a code and a sentence -------------*- C++ -*-===//
//
// What the runtime's functions return. The codes are the exit codes of the
// command line, so that a trainer can return them unchanged. A message is lower
// case, has no full stop, and carries quantities.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STATUS_H
#define TMC_RUNTIME_KERNELS_STATUS_H

#include <string>
#include <utility>

namespace tmc {

enum class Code : int {
  Ok = 0,
  BadInput = 1,    // a file, a value, a token is at fault
  Usage = 2,       // a flag or an argument is at fault
  OverBudget = 3,  // more memory is wanted than was planned
  Unsupported = 4, // an element type or a feature that a kernel doesn't have
  Defect = 70,     // a fault of ours
  World = 74,      // disk full, out of memory, no permission
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message)
      : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool isOk() const { return code_ == Code::Ok; }
  explicit operator bool() const { return isOk(); }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  Code code_ = Code::Ok;
  std::string message_;
};

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_STATUS_H
