//===- LibraryFaultsTest.cpp - planted faults of the host's calls ---------===//
//
// Products and convolutions that the libraries would refuse or spoil, and
// transfers and streams that lack a wait. What a library refuses is answered by
// its status; the rest is reported.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/Faults.h"

#include <cublasLt.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

using namespace tmc::emulator;
using namespace tmc::test;

namespace {

/// D[m, n] = A[m, k] B[k, n], column-major.
struct Product {
  int64_t m = 8, n = 8, k = 8, lda = 8, ldb = 8, ldd = 8;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F, type = CUDA_R_32F, out = CUDA_R_32F;
  int32_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr, *scaleA = nullptr, *scaleB = nullptr,
             *scaleD = nullptr;
  int32_t modeA = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  int32_t modeB = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  int32_t batch = 1;
  uint32_t alignment = 16;
  uint64_t workspaceLimit = 1 << 20;
  size_t less = 0;         // than the workspace that the algorithm wants
  int shift = 0;           // floats, of A
  int workspaceShift = 0;  // bytes
  bool otherShape = false; // the algorithm was chosen for another product
  int which = 0;           // candidate
  bool keeps = false;      // what the operands hold, in place of zeros
};

struct Buffers {
  Device<float> a, b, d;
  Device<char> workspace{1 << 20};
  explicit Buffers(size_t floats = 64) : a(floats), b(floats), d(floats) {}
};

/// The status of the query, or else of the call.
cublasStatus_t run(const Product &p, const Buffers &buffers,
                   const std::vector<float> *values = nullptr,
                   bool written = true) {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t a, b, d;
  cublasLtMatmulPreference_t preference;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&op, p.compute, p.scale);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &p.transA, 4);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSB, &p.transB, 4);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_EPILOGUE, &p.epilogue,
                                 4);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias,
                                 sizeof p.bias);
  if (p.scaleA)
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                   &p.scaleA, sizeof p.scaleA);
  if (p.scaleB)
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                                   &p.scaleB, sizeof p.scaleB);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_A_SCALE_MODE,
                                 &p.modeA, sizeof p.modeA);
  cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_B_SCALE_MODE,
                                 &p.modeB, sizeof p.modeB);
  if (p.scaleD)
    cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
                                   &p.scaleD, sizeof p.scaleD);
  const bool ta = p.transA != CUBLAS_OP_N, tb = p.transB != CUBLAS_OP_N;
  cublasLtMatrixLayoutCreate(&a, p.type, uint64_t(ta ? p.k : p.m),
                             uint64_t(ta ? p.m : p.k), p.lda);
  cublasLtMatrixLayoutCreate(&b, p.type, uint64_t(tb ? p.n : p.k),
                             uint64_t(tb ? p.k : p.n), p.ldb);
  cublasLtMatrixLayoutCreate(&d, p.out, uint64_t(p.m), uint64_t(p.n), p.ldd);
  for (cublasLtMatrixLayout_t layout : {a, b, d})
    cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                     &p.batch, 4);
  cublasLtMatmulPreferenceCreate(&preference);
  cublasLtMatmulPreferenceSetAttribute(preference,
                                       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                       &p.workspaceLimit, 8);
  for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    cublasLtMatmulPreferenceSetAttribute(preference, operand, &p.alignment, 4);
  cublasLtMatmulHeuristicResult_t found[3] = {};
  int count = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, op, a, b, d, d, preference, 3, found, &count);
  if (status == CUBLAS_STATUS_SUCCESS && p.otherShape) {
    const int64_t more = p.lda + 1;
    cublasLtMatrixLayoutSetAttribute(a, CUBLASLT_MATRIX_LAYOUT_LD, &more, 8);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    const float *from =
        written && !p.keeps ? buffers.a.written() : buffers.a.get();
    if (values)
      for (auto [to, which] :
           {std::pair{buffers.a.get(), 0}, {buffers.b.get(), 1}})
        cudaMemcpyAsync(
            to, which ? std::vector<float>(64, 1.0f).data() : values->data(),
            256, cudaMemcpyHostToDevice, nullptr);
    const auto &chosen = found[p.which % count];
    const double one = 1, zero = 0;
    const float oneF = 1, zeroF = 0;
    const bool f64 = p.scale == CUDA_R_64F;
    status = cublasLtMatmul(
        handle, op, f64 ? static_cast<const void *>(&one) : &oneF,
        from + p.shift, a,
        values || p.keeps ? buffers.b.get() : buffers.b.written(), b,
        f64 ? static_cast<const void *>(&zero) : &zeroF, buffers.d.get(), d,
        buffers.d.get(), d, &chosen.algo,
        buffers.workspace.get() + p.workspaceShift,
        chosen.workspaceSize - p.less, nullptr);
    cudaDeviceSynchronize();
  }
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatrixLayoutDestroy(a);
  cublasLtMatrixLayoutDestroy(b);
  cublasLtMatrixLayoutDestroy(d);
  cublasLtMatmulDescDestroy(op);
  cublasLtDestroy(handle);
  return status;
}

} // namespace

TEST(LibraryFaults, WhatCublasLtRefuses) {
  Buffers buffers;
  EXPECT_EQ(run({}, buffers), CUBLAS_STATUS_SUCCESS);
  const struct {
    const char *what;
    Product product;
    cublasStatus_t status;
  } refused[] = {
      {"a leading dimension below the rows",
       {.lda = 7},
       CUBLAS_STATUS_INVALID_VALUE},
      {"sums in f64 of f32",
       {.compute = CUBLAS_COMPUTE_64F},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"f64 with a bias",
       {.m = 4,
        .n = 4,
        .k = 4,
        .lda = 4,
        .ldb = 4,
        .ldd = 4,
        .compute = CUBLAS_COMPUTE_64F,
        .scale = CUDA_R_64F,
        .type = CUDA_R_64F,
        .out = CUDA_R_64F,
        .epilogue = CUBLASLT_EPILOGUE_BIAS,
        .bias = buffers.b.get()},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"f32 operands and a bf16 result",
       {.out = CUDA_R_16BF},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"fp8 that isn't transposed",
       {.type = CUDA_R_8F_E4M3, .out = CUDA_R_32F},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a scale of what isn't fp8",
       {.scaleA = buffers.b.get()},
       CUBLAS_STATUS_INVALID_VALUE},
      {"fp8 with the scale of a result that isn't",
       {.m = 16,
        .n = 4,
        .k = 16,
        .lda = 16,
        .ldb = 16,
        .ldd = 16,
        .type = CUDA_R_8F_E4M3,
        .transA = CUBLAS_OP_T,
        .scaleD = buffers.b.get()},
       CUBLAS_STATUS_INVALID_VALUE},
      {"fp8 as it must be",
       {.m = 16,
        .n = 4,
        .k = 16,
        .lda = 16,
        .ldb = 16,
        .ldd = 16,
        .type = CUDA_R_8F_E4M3,
        .transA = CUBLAS_OP_T,
        .scaleA = buffers.b.written()},
       CUBLAS_STATUS_SUCCESS},
      {"fp8 at places that are aligned to 4 bytes",
       {.m = 16,
        .n = 4,
        .k = 16,
        .lda = 16,
        .ldb = 16,
        .ldd = 16,
        .type = CUDA_R_8F_E4M3,
        .transA = CUBLAS_OP_T,
        .alignment = 4},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"scale type f64", {.scale = CUDA_R_64F}, CUBLAS_STATUS_NOT_SUPPORTED},
      {"an epilogue that the stand-in lacks",
       {.epilogue = CUBLASLT_EPILOGUE_DGELU},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a bias without an address",
       {.epilogue = CUBLASLT_EPILOGUE_BIAS},
       CUBLAS_STATUS_INVALID_VALUE},
      {"a limit that no algorithm fits",
       {.workspaceLimit = 1000},
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a workspace too small", {.less = 1}, CUBLAS_STATUS_INVALID_VALUE},
      {"a workspace that isn't aligned",
       {.workspaceShift = 16},
       CUBLAS_STATUS_INVALID_VALUE},
      {"operands less aligned than was said",
       {.m = 4, .n = 4, .k = 4, .shift = 1},
       CUBLAS_STATUS_INVALID_VALUE},
      {"an algorithm of another shape",
       {.m = 4, .otherShape = true},
       CUBLAS_STATUS_INVALID_VALUE},
      {"sizes that don't agree",
       {.transA = CUBLAS_OP_T, .transB = CUBLAS_OP_T},
       CUBLAS_STATUS_SUCCESS}, // square: they do
  };
  for (const auto &r : refused)
    EXPECT_EQ(int(run(r.product, buffers)), int(r.status)) << r.what;
}

TEST(LibraryFaults, WhatCublasLtWouldNotNotice) {
  Buffers buffers;
  expectFault(
      FaultKind::OutOfBounds, "a leading dimension too large",
      [&] { run({.lda = 9}, buffers); }, true);
  expectFault(
      FaultKind::OutOfBounds, "a view too near to its buffer's end",
      [&] { run({.shift = 4}, buffers); }, true);
  expectFault(
      FaultKind::Uninitialised, "an operand that nobody wrote",
      [&] {
        Buffers fresh;
        run({}, fresh, nullptr, false);
      },
      true);
  expectFault(
      FaultKind::OutOfBounds, "a bias of too few elements",
      [&] {
        Device<float> bias(4);
        run({.epilogue = CUBLASLT_EPILOGUE_BIAS, .bias = bias.written()},
            buffers);
      },
      true);
  expectFault(
      FaultKind::Resource, "a descriptor destroyed twice",
      [] {
        cublasLtMatrixLayout_t layout;
        cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 1, 1, 1);
        cublasLtMatrixLayoutDestroy(layout);
        EXPECT_NE(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
      },
      true);
}

namespace {

/// A product of fp8 with scales of blocks, 2 along k: A's rows have vectors,
/// B's columns share one scale.
struct Blocks {
  static constexpr int64_t kM = 16, kN = 8, kK = 144;
  Buffers buffers{kM * kK};
  Device<float> scalesA{2 * kM}, scalesB{4};
  Product product{.m = kM,
                  .n = kN,
                  .k = kK,
                  .lda = kK,
                  .ldb = kK,
                  .ldd = kM,
                  .type = CUDA_R_8F_E4M3,
                  .transA = CUBLAS_OP_T,
                  .scaleA = scalesA.written(),
                  .scaleB = scalesB.written(),
                  .modeA = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                  .modeB = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F};

  template <typename F> Product with(F change) const {
    Product changed = product;
    change(changed);
    return changed;
  }
};

} // namespace

TEST(LibraryFaults, WhatCublasLtRefusesOfBlocks) {
  Blocks blocks;
  Device<float> more(1024);
  const auto vectors = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
             squares = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
             whole = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  auto statusOf = [&](auto change) {
    return run(blocks.with(change), blocks.buffers);
  };
  EXPECT_EQ(statusOf([](Product &) {}), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(statusOf([&](Product &p) { // The other way round.
              std::swap(p.modeA, p.modeB);
              p.scaleA = p.scaleB = more.written();
            }),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(statusOf([&](Product &p) {
              p.modeB = vectors;
              p.scaleB = more.written();
            }),
            CUBLAS_STATUS_SUCCESS);
  const struct {
    const char *what;
    Product product;
    cublasStatus_t status;
  } refused[] = {
      {"squares of both", blocks.with([&](Product &p) { p.modeA = squares; }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"blocks of A, one scale of B",
       blocks.with([&](Product &p) { p.modeB = whole; }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"one scale of A, blocks of B",
       blocks.with([&](Product &p) { p.modeA = whole; }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a scale for each row, which the stand-in lacks",
       blocks.with([](Product &p) {
         p.modeA = p.modeB = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
       }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"scales of blocks of f32",
       blocks.with([](Product &p) { p.type = CUDA_R_32F; }),
       CUBLAS_STATUS_INVALID_VALUE},
      {"no scales", blocks.with([](Product &p) { p.scaleB = nullptr; }),
       CUBLAS_STATUS_INVALID_VALUE},
      {"scales that aren't aligned to 16 bytes",
       blocks.with([&](Product &p) { p.scaleA = more.written() + 1; }),
       CUBLAS_STATUS_INVALID_VALUE},
      {"a result of fp8",
       blocks.with([](Product &p) { p.out = CUDA_R_8F_E4M3; }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a number of columns that isn't a multiple of 4",
       blocks.with([](Product &p) { p.n = 6; }), CUBLAS_STATUS_NOT_SUPPORTED},
      {"k that isn't a multiple of 16", blocks.with([](Product &p) {
         p.k = 136;
         p.lda = p.ldb = 136;
       }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"a batch", blocks.with([](Product &p) { p.batch = 2; }),
       CUBLAS_STATUS_NOT_SUPPORTED},
      {"A that isn't transposed", blocks.with([](Product &p) {
         p.transA = CUBLAS_OP_N;
         p.lda = 16;
       }),
       CUBLAS_STATUS_NOT_SUPPORTED},
  };
  for (const auto &r : refused)
    EXPECT_EQ(int(run(r.product, blocks.buffers)), int(r.status)) << r.what;
}

TEST(LibraryFaults, WhatCublasLtWouldNotNoticeOfBlocks) {
  Blocks blocks;
  auto expect = [&](FaultKind kind, const char *what, auto change) {
    expectFault(
        kind, what, [&] { run(blocks.with(change), blocks.buffers); }, true);
  };
  Device<float> few(2 * Blocks::kM - 1), unpadded(2);
  expect(FaultKind::OutOfBounds, "fewer scales than rows and blocks",
         [&](Product &p) { p.scaleA = few.written(); });
  expect(FaultKind::OutOfBounds, "squares without the numbers in between",
         [&](Product &p) { p.scaleB = unpadded.written(); });
  expectFault(
      FaultKind::Uninitialised, "scales that nobody wrote",
      [&] {
        Device<float> fresh(2 * Blocks::kM);
        run(blocks.with([&](Product &p) { p.scaleA = fresh.get(); }),
            blocks.buffers);
      },
      true);
}

// By the documentation's layouts, with powers of two: each way of summing gives
// the same.
TEST(LibraryFaults, ScalesOfBlocksAreWhereTheDocumentationSays) {
  // 300 along k are 3 blocks; 136 rows are 2 squares.
  constexpr int64_t m = 136, n = 8, k = 304, blocks = 3;
  Buffers buffers(m * k / 4);
  std::vector<uint8_t> ones(m * k, 0x38); // 1 in E4M3
  for (float *to : {buffers.a.get(), buffers.b.get()})
    cudaMemcpyAsync(to, ones.data(), size_t(to == buffers.a.get() ? m : n) * k,
                    cudaMemcpyHostToDevice, nullptr);
  Device<float> squares(4 * 2), vectors(n * blocks);
  std::vector<float> square(4 * 2, 1e30f), vector(n * blocks);
  auto ofSquare = [](int64_t row, int64_t block) {
    return std::ldexp(1.0f, int(2 * block + row));
  };
  auto ofVector = [](int64_t column, int64_t block) {
    return std::ldexp(1.0f, int(column - 3 * block));
  };
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t row = 0; row < 2; ++row)
      square[size_t(row * 4 + b)] = ofSquare(row, b);
    for (int64_t j = 0; j < n; ++j)
      vector[size_t(b * n + j)] = ofVector(j, b);
  }
  cudaMemcpyAsync(squares.get(), square.data(), square.size() * 4,
                  cudaMemcpyHostToDevice, nullptr);
  cudaMemcpyAsync(vectors.get(), vector.data(), vector.size() * 4,
                  cudaMemcpyHostToDevice, nullptr);
  for (int which = 0; which < 3; ++which) {
    EXPECT_EQ(run({.m = m,
                   .n = n,
                   .k = k,
                   .lda = k,
                   .ldb = k,
                   .ldd = m,
                   .type = CUDA_R_8F_E4M3,
                   .transA = CUBLAS_OP_T,
                   .scaleA = squares.get(),
                   .scaleB = vectors.get(),
                   .modeA = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                   .modeB = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                   .which = which,
                   .keeps = true},
                  buffers),
              CUBLAS_STATUS_SUCCESS);
    std::vector<float> out(m * n);
    cudaMemcpyAsync(out.data(), buffers.d.get(), out.size() * 4,
                    cudaMemcpyDeviceToHost, nullptr);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float want = 0;
        for (int64_t b = 0; b < blocks; ++b)
          want +=
              float(b < 2 ? 128 : 48) * ofSquare(i / 128, b) * ofVector(j, b);
        ASSERT_EQ(out[size_t(j * m + i)], want) << i << ", " << j;
      }
  }
}

TEST(LibraryFaults, AlgorithmsDifferInTheLastBits) {
  // A sum of which the order shows: 1e8 swallows what comes before -1e8.
  Buffers buffers;
  std::vector<float> a(64, 0.375f);
  a[0] = 1e8f;
  a[40] = -1e8f;
  std::set<float> results;
  for (int which = 0; which < 3; ++which) {
    run({.m = 1,
         .n = 1,
         .k = 64,
         .lda = 1,
         .ldb = 64,
         .ldd = 1,
         .which = which},
        buffers, &a);
    float result = 0;
    cudaMemcpyAsync(&result, buffers.d.get(), 4, cudaMemcpyDeviceToHost,
                    nullptr);
    results.insert(result);
  }
  EXPECT_EQ(results.size(), 3u);
}

//===----------------------------------------------------------------------===//
// Transfers and streams
//===----------------------------------------------------------------------===//

namespace {

struct Pinned {
  float *at = nullptr;
  Pinned() {
    cudaHostAlloc(reinterpret_cast<void **>(&at), 256, cudaHostAllocDefault);
    std::memset(at, 0, 256);
  }
  ~Pinned() { cudaFreeHost(at); }
};

__global__ void addOne(const float *x, float *y) {
  y[threadIdx.x] = x[threadIdx.x] + 1; // FAULT addOne
}

/// Two streams, the second of which needs what the first one writes. The first
/// has much to do before.
void passAlong(bool waits) {
  cudaStream_t first, second;
  cudaEvent_t done;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  Device<float> x(64), y(64), z(64);
  float *px = x.get(), *py = y.get(), *pz = z.get();
  cudaMemsetAsync(px, 0, 256, first);
  for (int i = 0; i < 4; ++i)
    TMC_LAUNCH(addOne, dim3(1), dim3(64), 0, first, px, py);
  cudaEventRecord(done, first);
  if (waits)
    cudaStreamWaitEvent(second, done, 0);
  TMC_LAUNCH(addOne, dim3(1), dim3(64), 0, second, py, pz);
  cudaStreamSynchronize(second);
  cudaDeviceSynchronize();
  cudaEventDestroy(done);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

/// How many of `seeds` orders find something.
int foundUnder(int seeds, const std::function<void()> &body) {
  const uint64_t before = seed();
  int found = 0;
  for (int s = 0; s < seeds; ++s) {
    setSeed(uint64_t(s));
    Collect collect;
    body();
    cudaDeviceSynchronize();
    found += !collect.faults().empty();
  }
  setSeed(before);
  return found;
}

} // namespace

namespace {

/// Two streams and an event; all three are done with at the end.
struct TwoStreams {
  cudaStream_t first, second;
  cudaEvent_t event;
  TwoStreams() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~TwoStreams() {
    cudaDeviceSynchronize();
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  /// The second waits for what the first has been given so far.
  void connect() const {
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
  }
};
#define ADD(STREAM, FROM, TO)                                                  \
  TMC_LAUNCH(addOne, dim3(1), dim3(64), 0, STREAM, FROM, TO)

} // namespace

TEST(StreamFaults, Races) {
  Device<float> x(64), y(64), z(64);
  const float *px = x.written();
  float *py = y.written(), *pz = z.written();
  // Whichever runs first, and whatever it leaves there.
  expectFault(FaultKind::Race, "addOne", [=] { // a read of what is written
    TwoStreams s;
    ADD(s.first, px, py);
    ADD(s.second, py, pz);
  });
  expectFault(FaultKind::Race, "addOne", [=] { // two writers of one value
    TwoStreams s;
    ADD(s.first, px, py);
    ADD(s.second, px, py);
  });
  expectFault(FaultKind::Race, "addOne", [=] { // the event comes too early
    TwoStreams s;
    s.connect();
    ADD(s.first, px, py);
    ADD(s.second, py, pz);
  });
  expectFault(FaultKind::Race, "addOne", [=] { // the host waits for another
    TwoStreams s;
    ADD(s.first, px, py);
    cudaStreamSynchronize(s.second);
    ADD(s.second, py, pz);
  });
  expectFault(
      FaultKind::Race, "two fills",
      [=] {
        TwoStreams s;
        cudaMemsetAsync(py, 0, 256, s.first);
        cudaMemsetAsync(py + 32, 0, 64, s.second);
      },
      true);
  expectFault(
      FaultKind::Race, "a copy of what a kernel writes",
      [=] {
        TwoStreams s;
        ADD(s.first, px, py);
        cudaMemcpyAsync(pz, py, 256, cudaMemcpyDeviceToDevice, s.second);
      },
      true);
  expectFault(
      FaultKind::Race, "a fill of what a kernel reads",
      [=] {
        TwoStreams s;
        ADD(s.first, py, pz);
        cudaMemsetAsync(py, 0, 256, s.second);
      },
      true);
  expectClean([=] {
    {
      TwoStreams s;
      cudaMemsetAsync(py, 0, 256, s.first);
      ADD(s.first, px, py);
      s.connect();
      ADD(s.second, py, pz);
      cudaMemcpyAsync(py, pz, 256, cudaMemcpyDeviceToDevice, s.second);
    }
    TwoStreams s;
    ADD(s.first, px, py); // both read
    ADD(s.second, px, pz);
    cudaStreamSynchronize(s.first);
    ADD(s.second, py, pz);
    cudaEventRecord(s.event, s.second);
    cudaEventSynchronize(s.event);
    ADD(s.first, pz, py);
  });
  // By way of a third.
  expectClean([=] {
    TwoStreams s, more;
    ADD(s.first, px, py);
    s.connect();
    cudaEventRecord(more.event, s.second);
    cudaStreamWaitEvent(more.first, more.event, 0);
    ADD(more.first, py, pz);
  });
}

TEST(StreamFaults, AMissingEvent) {
  EXPECT_EQ(foundUnder(20, [] { passAlong(false); }), 20);
  EXPECT_EQ(foundUnder(50, [] { passAlong(true); }), 0);
}

TEST(StreamFaults, PinnedMemoryChangedTooEarly) {
  EXPECT_GE(foundUnder(20,
                       [] {
                         Pinned host;
                         Device<float> x(64);
                         cudaMemcpyAsync(x.get(), host.at, 256,
                                         cudaMemcpyHostToDevice, nullptr);
                         host.at[3] = 7; // no wait
                         cudaDeviceSynchronize();
                       }),
            5);
  EXPECT_EQ(foundUnder(20,
                       [] {
                         Pinned host;
                         Device<float> x(64);
                         cudaMemcpyAsync(x.get(), host.at, 256,
                                         cudaMemcpyHostToDevice, nullptr);
                         cudaStreamSynchronize(nullptr);
                         host.at[3] = 7;
                       }),
            0);
}

TEST(StreamFaults, AReadTooEarlySeesGarbage) {
  setSeed(1);
  Pinned host;
  Device<float> x(64);
  const float *from = x.written();
  cudaMemcpyAsync(host.at, from, 256, cudaMemcpyDeviceToHost, nullptr);
  EXPECT_TRUE(std::isnan(host.at[0]));
  cudaDeviceSynchronize();
  EXPECT_EQ(host.at[0], 0);
  setSeed(0);
}

TEST(StreamFaults, CallsThatCannotBeRight) {
  expectFault(
      FaultKind::Transfer, "a copy in the wrong direction",
      [] {
        Device<float> x(4);
        float host[4] = {};
        EXPECT_NE(cudaMemcpyAsync(host, x.written(), 16, cudaMemcpyHostToDevice,
                                  nullptr),
                  cudaSuccess);
      },
      true);
  expectFault(
      FaultKind::Resource, "memory freed twice",
      [] {
        void *p = nullptr;
        cudaMalloc(&p, 64);
        EXPECT_EQ(cudaFree(p), cudaSuccess);
        EXPECT_NE(cudaFree(p), cudaSuccess);
      },
      true);
  expectFault(
      FaultKind::OutOfBounds, "a copy longer than its buffer",
      [] {
        Device<float> x(4);
        const float host[8] = {};
        cudaMemcpyAsync(x.get(), host, 32, cudaMemcpyHostToDevice, nullptr);
        cudaDeviceSynchronize();
      },
      true);
  expectFault(
      FaultKind::OutOfBounds, "a fill of freed memory",
      [] {
        Device<float> x(4);
        float *p = x.get();
        x.free();
        cudaMemsetAsync(p, 0, 16, nullptr);
        cudaDeviceSynchronize();
      },
      true);
}
