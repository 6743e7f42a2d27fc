// Failure.h - the reason why `tmc` can't do a task.
//
// A failure carries the exit code that `tmc` ends with, one message (lower
// case, no full stop, with quantities) and notes that give the place, in the
// model's own names. A failure is a value: only the command prints it.
//
// Programs get the same facts without a sentence to take apart: quantities by
// name, and the parts of the model that aren't supported.

#ifndef TMC_COMPILER_SUPPORT_FAILURE_H
#define TMC_COMPILER_SUPPORT_FAILURE_H

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tmc {

/// The exit codes of `tmc`.
enum class FailureKind : int {
  Input = 1,      ///< The model is at fault.
  Usage = 2,      ///< The command line is at fault: a flag is missing or wrong.
  OverBudget = 3, ///< The step doesn't fit; the notes suggest changes.
  Unsupported = 4, ///< The model needs something that tmc doesn't have.
  Defect = 70,     ///< tmc is at fault.
  World = 74,      ///< A file can't be opened or read.
};

/// A part of the model that a failure is about, in the model's own names. An
/// empty field is unknown.
struct FailurePlace {
  std::string op;     ///< The operator.
  std::string name;   ///< The name of the node.
  std::string line;   ///< The line of the user's program: "model.py:12".
  std::string reason; ///< The unsupported part; empty: all of it.
};

struct Failure {
  FailureKind kind = FailureKind::Input;
  std::string message;
  std::vector<std::string> notes;
  /// The quantities of the message, by name; names of bytes end in "_bytes".
  std::vector<std::pair<std::string, int64_t>> numbers = {};
  /// All unsupported parts of the model, as many as there are.
  std::vector<FailurePlace> places = {};

  int exitCode() const { return static_cast<int>(kind); }
  Failure &&note(std::string text) && {
    notes.emplace_back() = std::move(text); // gcc 12 warns about push_back.
    return std::move(*this);
  }

  static Failure input(std::string message) {
    return {FailureKind::Input, std::move(message), {}};
  }
  static Failure usage(std::string message) {
    return {FailureKind::Usage, std::move(message), {}};
  }
  static Failure unsupported(std::string message) {
    return {FailureKind::Unsupported, std::move(message), {}};
  }
  static Failure defect(std::string message) {
    return {FailureKind::Defect, std::move(message), {}};
  }
  static Failure world(std::string message) {
    return {FailureKind::World, std::move(message), {}};
  }
};

/// A value, or the failure that prevented it.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state(std::move(value)) {}
  Expected(Failure failure) : state(std::move(failure)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() {
    assert(*this && "no value");
    return std::get<0>(state);
  }
  const T &operator*() const {
    assert(*this && "no value");
    return std::get<0>(state);
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }
  Failure &failure() { return std::get<1>(state); }
  const Failure &failure() const { return std::get<1>(state); }

private:
  std::variant<T, Failure> state;
};

/// Success, or the failure that prevented it.
template <> class [[nodiscard]] Expected<void> {
public:
  Expected() = default;
  Expected(Failure failure) : state(std::move(failure)) {}

  explicit operator bool() const { return !state; }
  Failure &failure() { return *state; }
  const Failure &failure() const { return *state; }

private:
  std::optional<Failure> state;
};

/// Evaluates an `Expected<void>` and returns its failure, if it has one, from
/// the function around it.
#define TMC_TRY(...)                                                           \
  do {                                                                         \
    if (::tmc::Expected<void> tmcTried = (__VA_ARGS__); !tmcTried)             \
      return std::move(tmcTried.failure());                                    \
  } while (false)

} // namespace tmc

#endif // TMC_COMPILER_SUPPORT_FAILURE_H
