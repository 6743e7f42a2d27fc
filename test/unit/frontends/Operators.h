// Operators.h - what the tests of both frontends' operators share.

#ifndef TMC_TEST_UNIT_FRONTENDS_OPERATORS_H
#define TMC_TEST_UNIT_FRONTENDS_OPERATORS_H

#include "test/unit/passes/Validation.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tmc::test {

/// What `function` gives, in double.
inline mlir::FailureOr<llvm::SmallVector<reference::Tensor>>
inDouble(mlir::FunctionOpInterface function,
         llvm::SmallVector<reference::Tensor> inputs) {
  return reference::interpret(function, std::move(inputs),
                              {reference::Rounding::None, nullptr});
}

/// Whether two numbers are the same, NaN included, or nearly so.
inline bool agree(double a, double b, double absolute) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::fabs(a - b) <= absolute + 1e-5 * std::fabs(b);
}

/// Where `want` is a number that f32 has, so is `got`.
inline void expectNumbers(llvm::StringRef name, const reference::Tensor &want,
                          const reference::Tensor &got) {
  constexpr double kLargest = 1e30;
  for (int64_t k = 0; k < want.size(); ++k)
    if (std::fabs(want.number(k)) <= kLargest) {
      EXPECT_TRUE(std::isfinite(got.number(k)))
          << name.str() << "[" << k << "] is " << got.number(k)
          << " instead of " << want.number(k);
    }
}

/// What the files of `directory` that end so are called without that, sorted.
inline std::vector<std::string> stemsIn(const std::string &directory,
                                        llvm::StringRef ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(directory, error), end;
       at != end && !error; at.increment(error)) {
    llvm::StringRef file = llvm::sys::path::filename(at->path());
    if (file.consume_back(ending))
      names.push_back(file.str());
  }
  llvm::sort(names);
  return names;
}

/// A case's name as GoogleTest takes one.
inline std::string testName(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

} // namespace tmc::test

#endif // TMC_TEST_UNIT_FRONTENDS_OPERATORS_H
