// NetworkCompilerTest.cpp - the libraries that this machine can compile open,
// and are those of this version.

#include "driver/pipeline/NetworkCompiler.h"
#include "runtime/network/Network.h"
#include "test/unit/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

using namespace tmc;
using tmc::test::TemporaryDirectory;

namespace {

struct NetworkCompiler : ::testing::Test {
  TemporaryDirectory directory;
  Installation installation = *Installation::find();

  Expected<std::vector<std::string>> compile(const std::string &name) {
    return compileNetworks(
        installation, Backend::Cpu, name, directory / "scratch-",
        [&](const std::string &file) { return directory / file; });
  }
};

TEST_F(NetworkCompiler, WhatIsHereIsCompiledAndOpens) {
  for (const NetworkTool &tool :
       findNetworks(installation, Backend::Cpu, directory / "scratch-")) {
    EXPECT_EQ(tool.command.empty(), !tool.missing.empty());
    auto files = compile(tool.name);
    ASSERT_EQ(bool(files), tool.missing.empty());
    if (!files) {
      EXPECT_EQ(files.failure().kind, FailureKind::World);
      EXPECT_EQ(files.failure().notes, std::vector<std::string>{tool.missing});
      continue;
    }
    EXPECT_EQ(*files, std::vector<std::string>{tool.file});
    void *library =
        dlopen((directory / tool.file).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    auto *version = reinterpret_cast<NetworkVersionFunction *>(
        dlsym(library, kNetworkVersionName));
    ASSERT_TRUE(version);
    EXPECT_EQ(version(), kNetworkVersion);
    EXPECT_TRUE(dlsym(library, kNetworkOpenName));
  }
  // Nothing but the libraries stays.
  for (const auto &entry : std::filesystem::directory_iterator(directory.path))
    EXPECT_EQ(entry.path().extension(), ".so") << entry.path();
}

TEST_F(NetworkCompiler, WithoutToolsTheFixesAreNamed) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  setenv("MPICXX", "no-such-compiler", 1);
  auto files = compile("mpi");
  setenv("PATH", path.c_str(), 1);
  unsetenv("MPICXX");
  ASSERT_FALSE(files);
  EXPECT_EQ(files.failure().message,
            "this machine can't compile the network's library 'mpi'");
  ASSERT_EQ(files.failure().notes.size(), 1u);
  EXPECT_EQ(files.failure().notes[0],
            "mpi: there is no 'mpicxx': apt-get install libopenmpi-dev "
            "openmpi-bin, or set MPICXX");
}

} // namespace
