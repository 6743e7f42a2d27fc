//===- FragmentsTest.cpp - mma, ldmatrix and cp.async in the emulator -----===//
//
// Products by fragments against plain loops, bit by bit: the emulator adds in
// the order of k. Then kernels with one fault each, as in FaultsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "test/cuda/Faults.h"
#include "test/cuda/FragmentKernels.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace cuda = tmc::cuda;
using namespace tmc::emulator;
using namespace tmc::test;
using tmc::cuda::Element;

#define RUN(kernel, grid, block, shared, ...)                                  \
  TMC_LAUNCH(kernel, dim3(grid), dim3(block), shared, nullptr, __VA_ARGS__)

namespace {

template <typename T>
Device<T> &upload(Device<T> &to, const std::vector<T> &v) {
  cudaMemcpyAsync(to.get(), v.data(), v.size() * sizeof(T),
                  cudaMemcpyHostToDevice, nullptr);
  return to;
}
template <typename T> std::vector<T> download(const Device<T> &from, size_t n) {
  std::vector<T> v(n);
  cudaMemcpyAsync(v.data(), from.get(), n * sizeof(T), cudaMemcpyDeviceToHost,
                  nullptr);
  cudaDeviceSynchronize();
  return v;
}

/// Numbers of several magnitudes and both signs, so that the order of a sum
/// shows in its last bits.
float numberAt(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z ^= z >> 29;
  z *= 0xbf58476d1ce4e5b9u;
  const float mantissa = float(int64_t(z >> 40) - (1 << 23)) / float(1 << 22);
  return std::ldexp(mantissa, int(z >> 8 & 7) - 4);
}

int bytesOf(Element type) {
  return type == Element::TF32                           ? 4
         : type == Element::BF16 || type == Element::F16 ? 2
                                                         : 1;
}

/// Element k of a row of 32 bytes.
void store(Element type, unsigned char *row, int k, float x) {
  uint32_t bits = encode(cuda::formatOf(type), x, true);
  if (type == Element::TF32)
    bits <<= 13;
  std::memcpy(row + bytesOf(type) * k, &bits, size_t(bytesOf(type)));
}
float valueOf(Element type, const unsigned char *row, int k) {
  uint32_t bits = 0;
  std::memcpy(&bits, row + bytesOf(type) * k, size_t(bytesOf(type)));
  return decode(cuda::formatOf(type),
                type == Element::TF32 ? bits >> 13 : bits);
}

template <Element A, Element B> void checkProduct() {
  const int depth = 32 / bytesOf(A);
  std::vector<uint32_t> a(16 * 8), b(8 * 8);
  std::vector<float> c(16 * 8);
  auto *left = reinterpret_cast<unsigned char *>(a.data());
  auto *right = reinterpret_cast<unsigned char *>(b.data());
  uint64_t number = uint64_t(A) * 1000 + uint64_t(B) * 100000;
  for (int k = 0; k < depth; ++k) {
    for (int i = 0; i < 16; ++i)
      store(A, left + 32 * i, k, numberAt(++number));
    for (int j = 0; j < 8; ++j)
      store(B, right + 32 * j, k, numberAt(++number));
  }
  for (float &x : c)
    x = numberAt(++number);
  Device<uint32_t> da(16 * 8), db(8 * 8);
  Device<float> dc(16 * 8);
  upload(da, a), upload(db, b), upload(dc, c);
  const uint32_t *pa = da.get(), *pb = db.get();
  float *pc = dc.get();
  const auto kernel = oneProduct<A, B>;
  RUN(kernel, 1, 32, 0, pa, pb, pc);
  const std::vector<float> got = download(dc, c.size());
  int different = 0;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      const size_t at = size_t(i) * 8 + size_t(j);
      float sum = c[at], backwards = sum;
      for (int k = 0; k < depth; ++k)
        sum = std::fma(valueOf(A, left + 32 * i, k),
                       valueOf(B, right + 32 * j, k), sum);
      for (int k = depth; k-- > 0;)
        backwards = std::fma(valueOf(A, left + 32 * i, k),
                             valueOf(B, right + 32 * j, k), backwards);
      EXPECT_EQ(got[at], sum) << i << ", " << j;
      different += sum != backwards;
    }
  EXPECT_GT(different, 10) << "the order doesn't show";
}

uint16_t halfBits(Element type, float x) {
  return uint16_t(encode(cuda::formatOf(type), x));
}

template <Element T, bool ByRows> void checkTiles(int m, int n, int k) {
  std::vector<uint16_t> a(size_t(m) * size_t(k)), b(size_t(k) * size_t(n));
  uint64_t number = 77;
  for (uint16_t &x : a)
    x = halfBits(T, numberAt(++number));
  for (uint16_t &x : b)
    x = halfBits(T, numberAt(++number));
  Device<uint16_t> da(int64_t(a.size())), db(int64_t(b.size()));
  Device<float> dc(int64_t(m) * n);
  upload(da, a), upload(db, b);
  const uint16_t *pa = da.get(), *pb = db.get();
  float *pc = dc.get();
  const auto kernel = product<T, ByRows>;
  const dim3 grid(unsigned(n + kTileColumns - 1) / kTileColumns,
                  unsigned(m + kTileRows - 1) / kTileRows);
  RUN(kernel, grid, kProductThreads, kProductSharedBytes, pa, pb, pc, m, n, k);
  const std::vector<float> got = download(dc, size_t(m) * size_t(n));
  const Format f = cuda::formatOf(T);
  auto at = [](int row, int columns, int column) {
    return size_t(row) * size_t(columns) + size_t(column);
  };
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l)
        sum = std::fma(decode(f, a[at(i, k, l)]),
                       decode(f, b[ByRows ? at(l, n, j) : at(j, k, l)]), sum);
      ASSERT_EQ(got[at(i, n, j)], sum) << i << ", " << j;
    }
}

template <int Count, bool Transposed> void checkMatrices() {
  std::vector<uint32_t> rows(size_t(32 * Count));
  for (size_t i = 0; i < rows.size(); ++i) // element e is e
    rows[i] = uint32_t(2 * i | (2 * i + 1) << 16);
  Device<uint32_t> from(32 * Count), to(32 * Count);
  upload(from, rows);
  const uint32_t *p = from.get();
  uint32_t *q = to.get();
  const auto kernel = matrices<Count, Transposed>;
  RUN(kernel, 1, 32, 128 * Count, p, q);
  const std::vector<uint32_t> got = download(to, rows.size());
  for (int lane = 0; lane < 32; ++lane)
    for (int m = 0; m < Count; ++m)
      for (int e = 0; e < 2; ++e) {
        const int group = lane / 4, element = lane % 4 * 2 + e;
        const int want =
            64 * m + (Transposed ? element * 8 + group : group * 8 + element);
        EXPECT_EQ(int(got[size_t(lane * Count + m)] >> 16 * e & 0xffff), want);
      }
}

} // namespace

TEST(Fragments, OneProduct) {
  checkProduct<Element::BF16, Element::BF16>();
  checkProduct<Element::F16, Element::F16>();
  checkProduct<Element::TF32, Element::TF32>();
  checkProduct<Element::E4M3, Element::E4M3>();
  checkProduct<Element::E4M3, Element::E5M2>();
  checkProduct<Element::E5M2, Element::E4M3>();
  checkProduct<Element::E5M2, Element::E5M2>();
}

TEST(Fragments, Matrices) {
  checkMatrices<1, false>();
  checkMatrices<2, false>();
  checkMatrices<4, false>();
  checkMatrices<1, true>();
  checkMatrices<2, true>();
  checkMatrices<4, true>();
}

TEST(Fragments, TilesInFlight) {
  expectClean([] {
    checkTiles<Element::BF16, false>(40, 24, 72); // edges everywhere
    checkTiles<Element::BF16, true>(40, 24, 72);
  });
  checkTiles<Element::F16, false>(32, 16, 8); // one stage, most of it zeros
  checkTiles<Element::F16, true>(1, 8, 200);
}

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

namespace {

constexpr int kThreads = 64;

/// Each thread copies 16 bytes, and reads those of the thread that it shares
/// its place with in the other warp.
struct Lane {
  int own, other;
  __device__ explicit Lane(unsigned thread)
      : own(4 * int(thread)), other(4 * ((int(thread) + 32) % kThreads)) {}
};
#define SHARED_FLOATS(NAME)                                                    \
  TMC_DYNAMIC_SHARED(memory);                                                  \
  float *NAME = reinterpret_cast<float *>(memory)

__global__ void copiesAndWaits(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  cuda::commitGroup();
  cuda::waitGroup<0>();
  __syncthreads();
  y[blockIdx.x * kThreads + threadIdx.x] = s[lane.other];
}
__global__ void waitLeftOut(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  cuda::commitGroup();
  __syncthreads();
  y[threadIdx.x] = s[lane.other]; // FAULT waitLeftOut
}
__global__ void ownCopyTooEarly(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  y[threadIdx.x] = s[lane.own]; // FAULT ownCopyTooEarly
  cuda::commitGroup();
  cuda::waitGroup<0>();
}
__global__ void commitLeftOut(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  cuda::waitGroup<0>();
  __syncthreads();
  y[threadIdx.x] = s[lane.other]; // FAULT commitLeftOut
}
/// The older of two groups is over when one may be under way; the other isn't.
__global__ void olderOfTwoGroups(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  cuda::commitGroup();
  cuda::copyAsync<16>(s + 4 * kThreads + lane.own, x + lane.own);
  cuda::commitGroup();
  cuda::waitGroup<1>();
  __syncthreads();
  y[threadIdx.x] = s[lane.other];
}
__global__ void wrongGroupCount(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own);
  cuda::commitGroup();
  cuda::copyAsync<16>(s + 4 * kThreads + lane.own, x + lane.own);
  cuda::commitGroup();
  cuda::waitGroup<1>();
  __syncthreads();
  y[threadIdx.x] = s[4 * kThreads + lane.other]; // FAULT wrongGroupCount
}
__global__ void waitBehindTheBarrier(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own); // FAULT waitBehindTheBarrier
  cuda::commitGroup();
  __syncthreads();
  cuda::waitGroup<0>();
  y[threadIdx.x] = s[lane.other]; // FAULT waitBehindTheBarrier
}
__global__ void nextStageTooEarly(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  for (int stage = 0; stage < 2; ++stage) {
    cuda::copyAsync<16>(s + lane.own, x + lane.own); // FAULT nextStageTooEarly
    cuda::commitGroup();
    cuda::waitGroup<0>();
    __syncthreads();
    y[threadIdx.x] = s[lane.other]; // FAULT nextStageTooEarly
  }
}
__global__ void sourceChanges(float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + lane.own); // FAULT sourceChanges
  x[lane.own] += 1;
  cuda::commitGroup();
  cuda::waitGroup<0>();
  y[threadIdx.x] = s[lane.own];
}
__global__ void copyOfAnOddPlace(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  cuda::copyAsync<16>(s + lane.own, x + 1); // FAULT copyOfAnOddPlace
  cuda::commitGroup();
  cuda::waitGroup<0>();
  y[threadIdx.x] = 0;
}
__global__ void copyBeyondTheBuffer(const float *x, float *y) {
  SHARED_FLOATS(s);
  const Lane lane(threadIdx.x);
  const float *from = x + lane.own + 4;
  cuda::copyAsync<16>(s + lane.own, from); // FAULT copyBeyondTheBuffer
  cuda::commitGroup();
  cuda::waitGroup<0>();
  y[threadIdx.x] = 0;
}

__device__ __forceinline__ void fillRows(float *s) {
  for (int i = int(threadIdx.x); i < 256; i += 32)
    s[i] = float(i);
}
__global__ void rowsInOrder(float *y) {
  SHARED_FLOATS(s);
  fillRows(s);
  __syncwarp();
  uint32_t words[4];
  cuda::loadMatrices<4>(words, s + 4 * threadIdx.x);
  y[threadIdx.x] = float(words[0]);
}
__global__ void misalignedRow(float *y) {
  SHARED_FLOATS(s);
  fillRows(s);
  __syncwarp();
  uint32_t words[4];
  cuda::loadMatrices<4>(words, s + 5 * threadIdx.x); // FAULT misalignedRow
  y[threadIdx.x] = float(words[0]);
}
__global__ void rowsWithoutSync(float *y) {
  SHARED_FLOATS(s);
  const int i = int(threadIdx.x);
  for (int e = 0; e < 4; ++e)
    s[32 * e + i] = 1; // FAULT rowsWithoutSync
  uint32_t words[4];
  cuda::loadMatrices<4>(words, s + 4 * i); // FAULT rowsWithoutSync
  y[i] = float(words[0]);
}
__global__ void rowsOfGlobalMemory(float *y) {
  uint32_t words[1];
  cuda::loadMatrices<1>(words, y); // FAULT rowsOfGlobalMemory
  y[threadIdx.x] = float(words[0]);
}
__global__ void rowsBehindTheTile(float *y) {
  SHARED_FLOATS(s);
  for (int i = int(threadIdx.x); i < 124; i += 32)
    s[i] = 1;
  __syncwarp();
  uint32_t words[4];
  cuda::loadMatrices<4>(words, s + 4 * threadIdx.x); // FAULT rowsBehindTheTile
  y[threadIdx.x] = float(words[0]);
}
__global__ void lanesDiverged(float *y) {
  cuda::FragmentC c = {};
  if (threadIdx.x < 16)
    cuda::mma<Element::BF16>(c, {}, {}); // FAULT lanesDiverged
  y[threadIdx.x] = c.sums[0];
}
__global__ void twoPlaces(float *y) {
  cuda::FragmentC c = {};
  if (threadIdx.x < 16)
    cuda::mma<Element::BF16>(c, {}, {}); // FAULT twoPlaces
  else
    cuda::mma<Element::BF16>(c, {}, {{1, 1}}); // FAULT twoPlaces
  y[threadIdx.x] = c.sums[0];
}
__global__ void laneThatLeft(float *y) {
  cuda::FragmentC c = {};
  if (threadIdx.x == 31)
    return;
  cuda::mma<Element::BF16>(c, {}, {}); // FAULT laneThatLeft
  y[threadIdx.x] = c.sums[0];
}
__global__ void halfAWarp(float *y) {
  cuda::FragmentC c = {};
  cuda::mma<Element::BF16>(c, {}, {}); // FAULT halfAWarp
  y[threadIdx.x] = c.sums[0];
}
__global__ void notRounded(float *y) {
  cuda::FragmentC c = {};
  cuda::mma<Element::TF32>(c, {{0x3f800001, 0, 0, 0}}, {}); // FAULT notRounded
  y[threadIdx.x] = c.sums[0];
}

} // namespace

TEST(FragmentFaults, Copies) {
  Device<float> x(4 * kThreads), y(3 * kThreads);
  float *p = x.written(), *q = y.get();
  const int bytes = 16 * kThreads;
  expectFault(FaultKind::Race, "waitLeftOut",
              [=] { RUN(waitLeftOut, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Race, "ownCopyTooEarly",
              [=] { RUN(ownCopyTooEarly, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Race, "commitLeftOut",
              [=] { RUN(commitLeftOut, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Race, "wrongGroupCount",
              [=] { RUN(wrongGroupCount, 1, kThreads, 2 * bytes, p, q); });
  expectFault(FaultKind::Race, "waitBehindTheBarrier",
              [=] { RUN(waitBehindTheBarrier, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Race, "nextStageTooEarly",
              [=] { RUN(nextStageTooEarly, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Race, "sourceChanges",
              [=] { RUN(sourceChanges, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::Misaligned, "copyOfAnOddPlace",
              [=] { RUN(copyOfAnOddPlace, 1, kThreads, bytes, p, q); });
  expectFault(FaultKind::OutOfBounds, "copyBeyondTheBuffer",
              [=] { RUN(copyBeyondTheBuffer, 1, kThreads, bytes, p, q); });
  expectClean([=] {
    RUN(copiesAndWaits, 3, kThreads, bytes, p, q);
    RUN(olderOfTwoGroups, 1, kThreads, 2 * bytes, p, q);
  });
}

TEST(FragmentFaults, Matrices) {
  Device<float> y(kThreads);
  float *q = y.written();
  expectFault(FaultKind::Misaligned, "misalignedRow",
              [=] { RUN(misalignedRow, 1, 32, 1024, q); });
  expectFault(FaultKind::Race, "rowsWithoutSync",
              [=] { RUN(rowsWithoutSync, 1, 32, 512, q); });
  expectFault(FaultKind::OutOfBounds, "rowsOfGlobalMemory",
              [=] { RUN(rowsOfGlobalMemory, 1, 32, 512, q); });
  expectFault(FaultKind::OutOfBounds, "rowsBehindTheTile",
              [=] { RUN(rowsBehindTheTile, 1, 32, 496, q); });
  expectClean([=] { RUN(rowsInOrder, 1, 32, 1024, q); });
}

TEST(FragmentFaults, Products) {
  Device<float> y(kThreads);
  float *q = y.written();
  expectFault(FaultKind::Warp, "lanesDiverged",
              [=] { RUN(lanesDiverged, 1, 32, 0, q); });
  expectFault(FaultKind::Warp, "twoPlaces",
              [=] { RUN(twoPlaces, 1, 32, 0, q); });
  expectFault(FaultKind::Warp, "laneThatLeft",
              [=] { RUN(laneThatLeft, 1, 32, 0, q); });
  expectFault(FaultKind::Warp, "halfAWarp",
              [=] { RUN(halfAWarp, 1, 16, 0, q); });
  expectFault(FaultKind::Warp, "notRounded",
              [=] { RUN(notRounded, 1, 32, 0, q); });
}
