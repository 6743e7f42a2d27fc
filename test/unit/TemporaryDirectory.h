// TemporaryDirectory.h - a directory of a test's own, that vanishes with it.

#ifndef TMC_TEST_UNIT_TEMPORARYDIRECTORY_H
#define TMC_TEST_UNIT_TEMPORARYDIRECTORY_H

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace tmc::test {

struct TemporaryDirectory {
  std::filesystem::path path;

  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "tmc-test-XXXXXX";
    if (!mkdtemp(name.data())) {
      perror(name.c_str());
      abort();
    }
    path = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  std::string operator/(const std::string &name) const { return path / name; }
};

} // namespace tmc::test

#endif // TMC_TEST_UNIT_TEMPORARYDIRECTORY_H
