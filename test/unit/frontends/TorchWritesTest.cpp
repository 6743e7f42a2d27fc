// TorchWritesTest.cpp - what ATen's operators write, by all of its schemas.

#include "frontends/torch/WrittenArguments.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace tmc::torch_import;
using llvm::StringRef;

/// A line of written.txt (make_written.py) is an overload and the arguments
/// that its schema marks as written.
TEST(WrittenArguments, AreThoseOfTheSchemas) {
  auto file = llvm::MemoryBuffer::getFile(TMC_SOURCE_DIR
                                          "/test/unit/frontends/written.txt");
  ASSERT_TRUE(bool(file));
  int64_t overloads = 0;
  for (llvm::line_iterator line(**file); !line.is_at_end(); ++line) {
    auto [overload, arguments] = line->split(' ');
    EXPECT_EQ(llvm::join(writtenArguments(("aten." + overload).str()), " "),
              arguments)
        << overload.str();
    ++overloads;
  }
  EXPECT_GE(overloads, 1400);
}

TEST(WrittenArguments, AreNoneOfOtherOperators) {
  for (StringRef target :
       {"aten.add.Tensor", "aten.__and__.Tensor", "aten.dropout.default",
        "aten.to.dtype_layout", "_operator.add", "aten.sort.default"})
    EXPECT_TRUE(writtenArguments(target).empty()) << target.str();
}
