//===- Json.h - JSON files for other programs -------------------*- C++ -*-===//
#ifndef TMC_RUNTIME_STEP_JSON_H
#define TMC_RUNTIME_STEP_JSON_H

#include "runtime/kernels/Names.h"
#include "runtime/kernels/Status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace tmc {

inline Status writeText(const std::string &path, const std::string &text) {
  std::FILE *file = std::fopen(path.c_str(), "we");
  const bool written =
      file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file && std::fclose(file) == 0;
  if (written && closed)
    return Status::ok();
  const int error = errno;
  struct stat info;
  if (file && !stat(path.c_str(), &info) && S_ISREG(info.st_mode))
    unlink(path.c_str()); // No partial file is left.
  return {Code::World, "can't write '" + path + "': " + std::strerror(error)};
}

} // namespace tmc

#endif // TMC_RUNTIME_STEP_JSON_H
