//===- CardMain.cpp - the kernels' tests, on a card -----------------------===//
//
// The tests hand addresses of local variables to kernels. A card reads memory
// of the host where it is pinned, at the same address: the tests run on a stack
// that is. Buffers are managed memory (Testing.h).
//
// What was seen of the libraries on an H100 with CUDA 13.0, and is allowed
// where kOnCard is set:
//
//   cuBLASLt   rounds some products in 16 bits once more before it adds a bias;
//              adds up products of 8-bit codes with 13 bits (Hopper's units)
//   cuDNN      takes transforms for convolutions in f32, whose sums are off by
//              twice what a sum of products in any order is
//
//===----------------------------------------------------------------------===//

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <pthread.h>

namespace {

constexpr size_t kStackBytes = size_t(64) << 20;

void *runTests(void *failed) {
  *static_cast<int *>(failed) = RUN_ALL_TESTS();
  return nullptr;
}

} // namespace

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (testing::GTEST_FLAG(list_tests))
    return RUN_ALL_TESTS();
  void *stack = nullptr;
  if (cudaError_t e = cudaHostAlloc(&stack, kStackBytes, cudaHostAllocMapped);
      e != cudaSuccess) {
    std::fprintf(stderr, "can't pin a stack: %s\n", cudaGetErrorString(e));
    return 1;
  }
  pthread_attr_t attributes;
  pthread_t thread;
  int failed = 1;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStackBytes);
  if (pthread_create(&thread, &attributes, runTests, &failed)) {
    std::fprintf(stderr, "can't start a thread\n");
    return 1;
  }
  pthread_join(thread, nullptr);
  return failed;
}
