//===- FrozenValues.h - fills frozen parameters in codes --------*- C++ -*-===//
//
// A frozen parameter may be stored as codes (StoredInfo in Program.h). Its
// numbers come piece by piece from a file or from a rule, and are encoded on
// the way to their home, so that the parameter is never in memory as a whole:
//
//     file or rule --> 1 MiB of floats --> codes --> home
//                                      \-> maxima, all of them --> home
//
// Nested maxima need the mean of all maxima first. So n / 16 bytes of maxima
// are held for the n numbers of a parameter, and pieces of at most 8 MiB in
// all: `load_staging_bytes` of plan.json (driver/pipeline/Candidate.cpp).
//
// A checkpoint that bitsandbytes wrote has codes and maxima already. They are
// copied as they are, after a check that they have the same meaning.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_FROZENVALUES_H
#define TMC_RUNTIME_STEP_FROZENVALUES_H

#include "runtime/step/SafetensorsSet.h"
#include "runtime/step/Values.h"

#include <functional>

namespace tmc::values {

/// The end of the name of the text that says what codes in 4 bits mean.
constexpr const char *kQuantState = ".quant_state.bitsandbytes__nf4";

/// Writes numbers [first, first + count) of a parameter to `to`. `first` is a
/// multiple of 64.
using NumberSource =
    std::function<Status(int64_t first, int64_t count, float *to)>;

/// Encodes the numbers of `source` as the parameter whose codes `codes` are.
/// Code::BadInput if a number isn't finite.
Status encodeFrozen(const StepProgram &program, const Homes &homes,
                    const TensorInfo &codes, const NumberSource &source);

/// The name of the parameter whose codes `codes` are, in `file`; "": `file`
/// doesn't have it.
std::string frozenNameIn(const SafetensorsSet &file, const TensorInfo &codes);

/// Fills the parameter from the tensor `name` of `file`: numbers, or codes of
/// bitsandbytes. Code::BadInput if the file has another shape, or codes of
/// another meaning.
Status placeFrozen(const StepProgram &program, const Homes &homes,
                   const SafetensorsSet &file, const std::string &name,
                   const TensorInfo &codes);

} // namespace tmc::values

#endif // TMC_RUNTIME_STEP_FROZENVALUES_H
