//===- Sized.h - structs of the C interface by their size -------*- C++ -*-===//
//
// A struct of tmc.h begins with its size, `uint32_t size`, as the program
// knows it, and grows at its end only:
//
//     the program's    | size | a | b |          an older tmc.h
//     the library's    | size | a | b | c |      c stays unwritten, reads as 0
//
//     the program's    | size | a | b | c | d |  a newer tmc.h
//     the library's    | size | a | b | c |      d is written as 0, and must
//                                                read as 0
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_SIZED_H
#define TMC_RUNTIME_STEP_SIZED_H

#include "runtime/kernels/Status.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

namespace tmc {

/// No struct of the interface becomes larger, so greater sizes are no sizes.
constexpr uint32_t kMostStructBytes = 4096;

/// Code::Usage if no tmc.h has a struct `name` of `size` bytes; `least` is the
/// size in version 1.
inline Status checkStructSize(const char *name, uint32_t size, uint32_t least) {
  if (size >= least && size <= kMostStructBytes && size % 8 == 0)
    return Status::ok();
  return {Code::Usage, std::string(name) + " has " + std::to_string(least) +
                           " bytes or more, and size is " +
                           std::to_string(size) + ": set it to sizeof(" + name +
                           ")"};
}

/// Copies `full` to the program's struct `out`, as far as that goes.
template <typename T>
Status giveSized(const char *name, const T &full, uint32_t least, T *out) {
  if (!out)
    return {Code::Usage, std::string("there is no place for a ") + name};
  const uint32_t size = out->size;
  if (Status s = checkStructSize(name, size, least); !s)
    return s;
  char *bytes = reinterpret_cast<char *>(out);
  const size_t known = std::min(size_t(size), sizeof(T));
  std::memcpy(bytes, &full, known);
  std::memset(bytes + known, 0, size - known);
  std::memcpy(bytes, &size, sizeof size);
  return Status::ok();
}

/// Copies the program's struct `given` to `full`, whose other fields become 0.
/// Code::Unsupported if the program sets a field that isn't in T.
template <typename T>
Status takeSized(const char *name, const T *given, uint32_t least, T &full) {
  const uint32_t size = given->size;
  if (Status s = checkStructSize(name, size, least); !s)
    return s;
  const char *bytes = reinterpret_cast<const char *>(given);
  const size_t known = std::min(size_t(size), sizeof(T));
  std::memset(&full, 0, sizeof full);
  std::memcpy(&full, bytes, known);
  if (std::all_of(bytes + known, bytes + size, [](char c) { return c == 0; }))
    return Status::ok();
  return {Code::Unsupported, std::string("a field of ") + name +
                                 " is set that this library doesn't know: "
                                 "compile the step by a newer tmc"};
}

} // namespace tmc

#endif // TMC_RUNTIME_STEP_SIZED_H
