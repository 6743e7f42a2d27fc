//===- WindowTest.cpp - sliding windows of the cuda kernels ---------------===//

#include "runtime/cuda/Window.h"

#include "gtest/gtest.h"

using tmc::cuda::Window;

/// outputsOf() has all outputs that use an input of [begin, end), and begins
/// and ends no further than a window without holes would.
static void checkOutputs(const Window &w, int64_t begin, int64_t end) {
  int64_t first = -1, last = -1, least, after;
  for (int64_t in = begin; in < end; ++in)
    for (int64_t tap = 0; tap < w.taps; ++tap)
      if (const int64_t out = w.output(in, tap); out >= 0) {
        first = first < 0 || out < first ? out : first;
        last = out > last ? out : last;
      }
  w.outputsOf(begin, end - begin, least, after);
  EXPECT_LE(0, least);
  EXPECT_LE(least, after);
  EXPECT_LE(after, w.outSize);
  EXPECT_LE(after - least, (end - begin - 1 + w.reach()) / w.stride + 1);
  if (first >= 0) {
    EXPECT_LE(least, first);
    EXPECT_GT(after, last);
  }
}

TEST(Window, OutputIsTheInverseOfInput) {
  int64_t seen = 0;
  for (int64_t size : {1, 5, 8})
    for (int64_t taps : {1, 2, 3})
      for (int64_t stride : {1, 2, 3})
        for (int64_t pad : {0, 1, 2})
          for (int64_t dilation : {1, 2}) {
            const int64_t reach = (taps - 1) * dilation + 1;
            if (size + 2 * pad < reach)
              continue;
            const Window w{size, (size + 2 * pad - reach) / stride + 1,
                           taps, stride,
                           pad,  dilation};
            int64_t forward = 0, backward = 0;
            for (int64_t tap = 0; tap < taps; ++tap) {
              for (int64_t out = 0; out < w.outSize; ++out)
                if (const int64_t in = w.input(out, tap); in >= 0) {
                  EXPECT_LT(in, size);
                  EXPECT_EQ(w.output(in, tap), out);
                  ++forward;
                }
              for (int64_t in = 0; in < size; ++in)
                backward += w.output(in, tap) >= 0;
            }
            EXPECT_EQ(forward, backward);
            int64_t covered = 0;
            for (int64_t out = 0; out < w.outSize; ++out)
              covered += w.covered(out);
            EXPECT_EQ(covered, forward);
            for (int64_t in = 0; in < size; ++in)
              for (int64_t end = in + 1; end <= size; ++end)
                checkOutputs(w, in, end);
            seen += forward;
          }
  EXPECT_GT(seen, 500);
}
