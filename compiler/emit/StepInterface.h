// StepInterface.h - the interface of an emitted step to a program.
//
// ## Identity
// The files of a directory belong together: a trainer starts from the weights
// beside it, a program is compiled with step.h and linked with the library. A
// compilation that is killed while it publishes them leaves parts of two steps.
// So each part holds the same identity, a hash of the step's text and weights,
// and the start of a step compares:
//
//     step.h               tmc_step_create passes it to the library
//     weights.safetensors  "step" in its metadata; train compares
//     step.mlir            its first line; tmc verify compares
//
// ## Name
// A program links one library whose functions are tmc_step_create, ... Every
// other one is compiled with a name of its own, `--name gan_d`: then its
// functions are gan_d_step_create, ... (text of step.cpp, which calls the
// first), and only those are exported.

#ifndef TMC_COMPILER_EMIT_STEPINTERFACE_H
#define TMC_COMPILER_EMIT_STEPINTERFACE_H

#include <cstdint>
#include <initializer_list>
#include <string>

namespace tmc {

struct StepInterface {
  std::string name;     // "": tmc_step_create, ...
  std::string identity; // Hexadecimal digits.
};

/// A hash of `parts`, with 16 digits.
std::string identityOf(std::initializer_list<std::string> parts);

/// The last part of step.cpp.
std::string interfaceText(const StepInterface &step);

/// The contents of step.h after its first comment.
std::string interfaceHeader(const StepInterface &step, int64_t arenaBytes);

/// The version script with which the library is linked.
std::string exportedNames(const StepInterface &step);

/// The first line of step.mlir.
std::string identityComment(const std::string &identity);
/// The identity in that line of `text`; "" if it has none.
std::string identityIn(const std::string &text);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_STEPINTERFACE_H
