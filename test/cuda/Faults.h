//===- Faults.h - how tests expect a planted fault --------------*- C++ -*-===//
#ifndef TMC_TEST_CUDA_FAULTS_H
#define TMC_TEST_CUDA_FAULTS_H

#include "test/cuda/emulator/Orders.h"
#include "test/cuda/emulator/Report.h"

#include "gtest/gtest.h"

#include <fstream>
#include <functional>
#include <string>

namespace tmc::test {

/// Device memory that starts unwritten.
template <typename T> class Device {
public:
  explicit Device(int64_t count) : count_(count) {
    EXPECT_EQ(
        cudaMalloc(reinterpret_cast<void **>(&at_), size_t(count) * sizeof(T)),
        cudaSuccess);
  }
  ~Device() { free(); }
  Device(const Device &) = delete;
  T *get() const { return at_; }
  /// Filled with zeros.
  T *written() const {
    cudaMemsetAsync(at_, 0, size_t(count_) * sizeof(T), nullptr);
    cudaDeviceSynchronize();
    return at_;
  }
  void free() {
    EXPECT_EQ(cudaFree(at_), cudaSuccess);
    at_ = nullptr;
  }

private:
  int64_t count_;
  T *at_ = nullptr;
};

/// Seeds that each planted fault is tried with.
constexpr uint64_t kFaultSeeds = 6;

/// "File.cpp:12 File.cpp:14 ", the lines of `file`, a source of this folder's,
/// that `name` marks.
inline std::string markedLines(std::string file, const std::string &name) {
  file = TMC_FAULTS_FOLDER + file.substr(file.rfind('/'));
  std::ifstream text(file);
  EXPECT_TRUE(text) << "can't read the lines of " << file;
  std::string lines, line;
  for (int number = 1; std::getline(text, line); ++number)
    if (line.size() > name.size() + 6 &&
        line.substr(line.size() - name.size() - 6) == "FAULT " + name)
      lines +=
          file.substr(file.rfind('/') + 1) + ":" + std::to_string(number) + " ";
  return lines;
}

/// Runs the body under each seed; nothing else than a fault of that kind may be
/// found, in a kernel of that name, at a marked line (unless `onHost`: at
/// none).
inline void expectFault(emulator::FaultKind kind, const std::string &name,
                        const std::function<void()> &body, bool onHost = false,
                        const std::string &file = __builtin_FILE()) {
  const uint64_t before = emulator::seed();
  // What a launch has too much of is at no line.
  const bool atALine = !onHost && kind != emulator::FaultKind::SharedLimit;
  const std::string lines = atALine ? markedLines(file, name) : "";
  EXPECT_NE(lines.empty(), atALine) << "no line is marked for " << name;
  for (uint64_t seed = 0; seed < kFaultSeeds; ++seed) {
    emulator::setSeed(seed);
    emulator::Collect collect;
    body();
    cudaDeviceSynchronize();
    bool found = false;
    for (const emulator::Fault &fault : collect.faults()) {
      found = found || fault.kind == kind;
      // What races may also be read before it is written.
      EXPECT_TRUE(fault.kind == kind ||
                  (kind == emulator::FaultKind::Race &&
                   fault.kind == emulator::FaultKind::Uninitialised))
          << name << ", seed " << seed << ": " << fault.message();
      if (!onHost) {
        EXPECT_NE(fault.kernel.find(name), std::string::npos)
            << fault.message();
        EXPECT_EQ(fault.block[0], '(');
        EXPECT_EQ(fault.thread[0], '(');
      }
      EXPECT_TRUE(!atALine ||
                  lines.find(fault.where + " ") != std::string::npos)
          << name << " is at " << lines << "\n"
          << fault.message();
    }
    EXPECT_TRUE(found) << name << " isn't found under seed " << seed;
  }
  emulator::setSeed(before);
}

/// Nothing is found under any seed.
inline void expectClean(const std::function<void()> &body) {
  const uint64_t before = emulator::seed();
  for (uint64_t seed = 0; seed < 50; ++seed) {
    emulator::setSeed(seed);
    emulator::Collect collect;
    body();
    cudaDeviceSynchronize();
    for (const emulator::Fault &fault : collect.faults())
      ADD_FAILURE() << "seed " << seed << ": " << fault.message();
  }
  emulator::setSeed(before);
}

} // namespace tmc::test

#endif // TMC_TEST_CUDA_FAULTS_H
