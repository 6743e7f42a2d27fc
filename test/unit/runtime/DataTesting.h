//===- DataTesting.h - data files for the tiny program ----------*- C++ -*-===//
#ifndef TMC_TEST_UNIT_RUNTIME_DATATESTING_H
#define TMC_TEST_UNIT_RUNTIME_DATATESTING_H

#include "Testing.h"
#include "TinyProgram.h"

#include "runtime/step/Data.h"
#include "runtime/step/Step.h"
#include "test/unit/TemporaryDirectory.h"

#include <fstream>

namespace tmc::test {

class Data : public ::testing::Test {
protected:
  Data() {
    program_ = tiny::program();
    StepOptions options;
    options.device.threads = 1;
    EXPECT_TRUE(Step::create(program_, options, step_));
  }

  std::string file(const char *name, const std::string &bytes) {
    const std::string path = dir_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string tokens(const char *name, int64_t count, int64_t limit = 100) {
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) {
      bytes += char(i % limit & 255);
      bytes += char(i % limit >> 8);
    }
    return file(name, bytes);
  }
  Status open(std::vector<std::string> specs, const DataOptions &options = {}) {
    return DataReader::create(DataInputs::of(program_), specs, reader_,
                              options);
  }
  Status next() {
    return reader_.next(
        [&](const TensorInfo &input, const char *bytes, int64_t count) {
          return step_->write(input, bytes, count);
        });
  }
  std::vector<int64_t> read(const char *name) {
    std::vector<int64_t> v(tiny::kRows);
    EXPECT_TRUE(step_->read(*step_->find(name), v.data(), 8 * tiny::kRows));
    return v;
  }
  /// The program leaves no label out from now on.
  void countAllLabels() {
    tensors_.assign(program_.tensors, program_.tensors + program_.tensorCount);
    for (TensorInfo &info : tensors_)
      info.allowIgnore = false;
    program_.tensors = tensors_.data();
  }
  void fails(std::vector<std::string> specs, Code code, const char *why) {
    const Status s = open(specs);
    EXPECT_EQ(s.code(), code);
    EXPECT_NE(s.message().find(why), std::string::npos) << s.message();
  }

  TemporaryDirectory dir_;
  StepProgram program_;
  std::vector<TensorInfo> tensors_; // A changed program has these.
  std::unique_ptr<Step> step_;
  DataReader reader_;
};

inline std::string npy(const char *descr, const char *shape, size_t bytes) {
  std::string header = std::string("{'descr': '") + descr +
                       "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size() & 255) +
         char(header.size() >> 8) + header + std::string(bytes, '\1');
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_RUNTIME_DATATESTING_H
