//===- Json.h - what the runtime writes for other programs ------*- C++ -*-===//
#ifndef TMC_RUNTIME_STEP_JSON_H
#define TMC_RUNTIME_STEP_JSON_H

#include "runtime/kernels/Names.h"
#include "runtime/kernels/Status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace tmc {

inline Status writeText(const std::string &path, const std::string &text) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  const bool written =
      file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file && std::fclose(file) == 0;
  if (written && closed)
    return Status::ok();
  return {Code::World, "can't write '" + path + "': " + std::strerror(errno)};
}

} // namespace tmc

#endif // TMC_RUNTIME_STEP_JSON_H
