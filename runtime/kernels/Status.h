//===- Status.h - success, or a code and a sentence -------------*- C++ -*-===//
//
// The result type of the runtime's functions. The codes are the exit codes of
// the command line, so a trainer can return them unchanged. A message is lower
// case, has no full stop, and gives quantities.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_STATUS_H
#define TMC_RUNTIME_KERNELS_STATUS_H

#include <string>
#include <utility>

namespace tmc {

enum class Code : int {
  Ok = 0,
  BadInput = 1,    // a wrong file, value or token
  Usage = 2,       // a wrong flag or argument
  OverBudget = 3,  // needs more memory than planned
  Unsupported = 4, // a kernel lacks the element type or feature
  Defect = 70,     // a bug in tmc
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
