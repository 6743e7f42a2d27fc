//===- CublasLt.cpp - a stand-in for cuBLASLt -----------------------------===//
//
// The part of cuBLASLt's interface that a program of ours may use, over plain
// loops, from the library's documentation ("cublasLtMatmul()"): column-major
// matrices with leading dimensions and strided batches, operations on A and B,
// a bias per row of D, alpha and beta.
//
// Each call is checked as the documentation demands: descriptors that agree in
// sizes, the table of supported types (CublasLtTypes.h), leading dimensions,
// alignments that an algorithm was chosen for, the workspace's size and its
// alignment to 256 bytes. What the library refuses gets the library's status.
// What it would not notice is reported: operands and scales outside of their
// buffers or never written, a bias pointer that is null, a workspace that
// overlaps an operand. Workspaces hold garbage before and after.
//
// A query offers three algorithms: one sum along k; k cut into parts whose sums
// are added in order (through the workspace, in the type of the sums); and sums
// along blocks of k. They differ in the last bits. Which comes first is a hash
// of the shape, the types, the alignment and the workspace's limit, as it may
// be in the library: a result that depends on the choice differs between them.
//
//===----------------------------------------------------------------------===//

#include <cublasLt.h>

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/CublasLtAlgorithm.h"
#include "test/cuda/emulator/CublasLtTypes.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Runtime.h"
#include "test/cuda/emulator/Shadow.h"
#include "test/cuda/emulator/Streams.h"
#include "test/cuda/emulator/Types.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>
#include <thread>
#include <vector>

using namespace tmc::emulator;

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque : MatmulOperation {};
struct cublasLtMatrixLayoutOpaque : MatrixLayout {};
struct cublasLtMatmulPreferenceOpaque {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256}; // A, B, C, D
};

namespace {

/// What every algorithm takes at least, so that there are products that don't
/// fit their workspace.
constexpr uint64_t kLeastWorkspace = 64 << 10;
constexpr size_t kWorkspaceAlign = 256;

/// The least duration of a product by each way; see slowProducts.
double leastSeconds[kWays];

template <typename T> std::set<const T *> &live() {
  static auto *all = new std::set<const T *>;
  return *all;
}
template <typename T> bool isLive(const T *p) { return live<T>().count(p); }
template <typename T> cublasStatus_t destroy(T *p, const char *call) {
  if (!live<T>().erase(p)) {
    report(FaultKind::Resource, 0,
           std::string(call) + " of what doesn't exist");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}

struct Call {
  MatmulOperation op;
  MatrixLayout a, b, c, d;
  int64_t m, n, k;

  uint64_t hash() const {
    uint64_t h = 0;
    auto add = [&](uint64_t x) { h = (h ^ x) * 0x9e3779b97f4a7c15u + 1; };
    for (const MatrixLayout *l : {&a, &b, &c, &d}) {
      add(l->rows);
      add(l->cols);
      add(uint64_t(l->ld));
      add(l->type);
      add(uint64_t(l->batch));
    }
    add(op.compute);
    add(uint64_t(op.transA) * 3 + uint64_t(op.transB));
    add(op.epilogue | uint64_t(op.modeA) << 16 | uint64_t(op.modeB) << 24);
    return h ^ (h >> 29);
  }

  uint32_t hashOfItsTypes() const {
    return hashOfTypes(op.compute, op.scale, a.type, b.type, c.type, d.type);
  }

  /// Whether tensor cores would multiply these types, if only a size, a leading
  /// dimension or an address were a multiple of 16 bytes.
  bool missesTensorCores(const void *const at[4]) const {
    const bool ta = op.transA != CUBLAS_OP_N, tb = op.transB != CUBLAS_OP_N;
    if (a.type != CUDA_R_16F && a.type != CUDA_R_16BF &&
        a.type != CUDA_R_8F_E4M3 && a.type != CUDA_R_8F_E5M2 &&
        !(a.type == CUDA_R_32F && op.compute == CUBLAS_COMPUTE_32F_FAST_TF32))
      return false;
    auto misses = [](int64_t elements, cudaDataType_t type) {
      return elements * int64_t(bytesOf(type)) % 16 != 0;
    };
    auto isOdd = [](const void *p) {
      return reinterpret_cast<uintptr_t>(p) % 16 != 0;
    };
    return misses(ta ? k : m, a.type) || misses(tb ? n : k, b.type) ||
           misses(m, d.type) || misses(a.ld, a.type) || misses(b.ld, b.type) ||
           misses(d.ld, d.type) || isOdd(at[0]) || isOdd(at[1]) || isOdd(at[3]);
  }
};

/// Whether the descriptors describe a product that the library has.
cublasStatus_t describe(cublasLtMatmulDesc_t op, cublasLtMatrixLayout_t a,
                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                        cublasLtMatrixLayout_t d, Call &call) {
  if (!isLive(op) || !isLive(a) || !isLive(b) || !isLive(c) || !isLive(d))
    return CUBLAS_STATUS_INVALID_VALUE;
  call = {*op, *a, *b, *c, *d, 0, 0, 0};
  const bool ta = op->transA != CUBLAS_OP_N, tb = op->transB != CUBLAS_OP_N;
  call.m = int64_t(ta ? a->cols : a->rows);
  call.k = int64_t(ta ? a->rows : a->cols);
  call.n = int64_t(tb ? b->rows : b->cols);
  const int64_t k2 = int64_t(tb ? b->cols : b->rows);
  for (const MatrixLayout *l : {a, b, c, d})
    if (l->ld < int64_t(l->rows) || l->batch < 1 || l->batch != d->batch)
      return CUBLAS_STATUS_INVALID_VALUE;
  if (call.k != k2 || c->rows != d->rows || c->cols != d->cols ||
      call.m != int64_t(d->rows) || call.n != int64_t(d->cols))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!scalesFit(call.op, call.a, call.b, call.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  return isSupported(call.op, call.a, call.b, call.c, call.d)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_NOT_SUPPORTED;
}

uint64_t workspaceOf(Way way, const Call &call) {
  const uint64_t sum = call.op.compute == CUBLAS_COMPUTE_64F ? 8 : 4;
  const uint64_t sums = uint64_t(kParts * call.m * call.n * call.d.batch) * sum;
  return std::max(kLeastWorkspace, way == Way::Parts ? sums : 0);
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

struct Operands {
  const void *a, *b, *c;
  void *d;
  double alpha, beta;
};

/// A whole operand, one matrix after the other, as T.
template <typename T>
std::vector<T> load(const void *from, const MatrixLayout &l, double scale,
                    bool isTF32) {
  std::vector<T> out(size_t(l.batch) * l.rows * l.cols);
  size_t at = 0;
  for (int64_t n = 0; n < l.batch; ++n)
    for (uint64_t j = 0; j < l.cols; ++j)
      for (uint64_t i = 0; i < l.rows; ++i)
        out[at++] =
            T(readElement(from, l.type,
                          n * l.stride + int64_t(j) * l.ld + int64_t(i)) *
              scale);
  for (T &x : out)
    if (isTF32)
      x = T(decode(kTf32, encode(kTf32, float(x))));
  return out;
}

/// What becomes of a sum: element (i, j) of D.
template <typename T>
void finish(const Call &call, const Operands &o, int64_t batch, int64_t i,
            int64_t j, T sum) {
  const MatmulOperation &op = call.op;
  sum *= T(o.alpha);
  if (o.beta != 0)
    sum +=
        T(o.beta) * T(readElement(o.c, call.c.type,
                                  batch * call.c.stride + j * call.c.ld + i));
  if (op.epilogue & CUBLASLT_EPILOGUE_BIAS)
    sum += T(readElement(op.bias, biasType(op, call.a, call.c, call.d),
                         batch * op.biasStride + i));
  if (op.epilogue & CUBLASLT_EPILOGUE_RELU)
    sum = sum > 0 ? sum : T(0);
  writeElement(o.d, call.d.type, batch * call.d.stride + j * call.d.ld + i,
               double(sum) * scaleOf(op.scaleD));
}

/// A^T B of fp8 with scales of blocks: the sum of each 128 products is
/// multiplied by both scales. Sums of them are added along k, in parts of k, or
/// made of shorter ones, so that the last bits differ.
void multiplyBlocks(const Call &call, Way way, const Operands &o) {
  const MatmulOperation &op = call.op;
  const std::vector<float> a = load<float>(o.a, call.a, 1, false);
  const std::vector<float> b = load<float>(o.b, call.b, 1, false);
  const auto *scalesA = static_cast<const float *>(op.scaleA),
             *scalesB = static_cast<const float *>(op.scaleB);
  const int64_t k = call.k, blocks = (k + kScaleBlock - 1) / kScaleBlock;
  const int64_t step = way == Way::Parts ? (blocks + kParts - 1) / kParts : 1;
  for (int64_t j = 0; j < call.n; ++j)
    for (int64_t i = 0; i < call.m; ++i) {
      const float *x = a.data() + i * k, *y = b.data() + j * k;
      float sum = 0;
      for (int64_t block0 = 0; block0 < blocks; block0 += step) {
        float part = 0;
        for (int64_t block = block0; block < std::min(blocks, block0 + step);
             ++block) {
          const float scale =
              scalesA[scaleOfBlock(op.modeA, call.m, k, i, block)] *
              scalesB[scaleOfBlock(op.modeB, call.n, k, j, block)];
          const int64_t end = std::min(k, (block + 1) * kScaleBlock);
          const int64_t length = way == Way::Blocks ? kBlock : kScaleBlock;
          float dot = 0;
          for (int64_t l0 = block * kScaleBlock; l0 < end; l0 += length) {
            float piece = 0;
            for (int64_t l = l0; l < std::min(end, l0 + length); ++l)
              piece += x[l] * y[l];
            dot += piece;
          }
          part += scale * dot;
        }
        sum += part;
      }
      finish(call, o, 0, i, j, sum);
    }
}

template <typename T> void multiply(const Call &call, Way way, Operands o) {
  const MatmulOperation &op = call.op;
  const int64_t m = call.m, n = call.n, k = call.k;
  const bool ta = op.transA != CUBLAS_OP_N, tb = op.transB != CUBLAS_OP_N;
  const bool isTF32 = op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const std::vector<T> a = load<T>(o.a, call.a, scaleOf(op.scaleA), isTF32);
  const std::vector<T> b = load<T>(o.b, call.b, scaleOf(op.scaleB), isTF32);
  std::vector<T> sums(static_cast<size_t>(m)), part(static_cast<size_t>(m));
  const int64_t step = way == Way::Whole   ? k
                       : way == Way::Parts ? (k + kParts - 1) / kParts
                                           : kBlock;
  for (int64_t batch = 0; batch < call.d.batch; ++batch) {
    const T *x = a.data() + batch * m * k, *y = b.data() + batch * k * n;
    for (int64_t j = 0; j < n; ++j) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t l0 = 0; l0 < k; l0 += step) {
        std::fill(part.begin(), part.end(), T(0));
        for (int64_t l = l0; l < std::min(k, l0 + step); ++l) {
          const T right = tb ? y[j + l * n] : y[l + j * k];
          const T *left = ta ? x + l : x + l * m;
          const int64_t stride = ta ? k : 1;
          for (int64_t i = 0; i < m; ++i)
            part[size_t(i)] += left[i * stride] * right;
        }
        for (int64_t i = 0; i < m; ++i)
          sums[size_t(i)] += part[size_t(i)];
      }
      for (int64_t i = 0; i < m; ++i)
        finish(call, o, batch, i, j, sums[size_t(i)]);
    }
  }
}

/// Every column of an operand, as the library would touch it.
bool touchMatrix(const void *p, const MatrixLayout &l, Touch kind,
                 const char *what) {
  const int64_t size = int64_t(bytesOf(l.type));
  const char *at = static_cast<const char *>(p);
  for (int64_t n = 0; n < l.batch; ++n) {
    if (l.ld == int64_t(l.rows)) {
      if (!touchAll(at + n * l.stride * size, l.rows * l.cols * size_t(size),
                    kind, what))
        return false;
      continue;
    }
    for (uint64_t j = 0; j < l.cols; ++j)
      if (!touchAll(at + (n * l.stride + int64_t(j) * l.ld) * size,
                    l.rows * size_t(size), kind, what))
        return false;
  }
  return true;
}

bool overlap(const void *p, size_t bytes, const void *q, size_t more) {
  const auto a = reinterpret_cast<uintptr_t>(p);
  const auto b = reinterpret_cast<uintptr_t>(q);
  return bytes && more && a < b + more && b < a + bytes;
}
size_t extentOf(const MatrixLayout &l) {
  return size_t((l.batch - 1) * l.stride + int64_t(l.cols - 1) * l.ld +
                int64_t(l.rows)) *
         bytesOf(l.type);
}

void runProduct(const Call &call, Way way, const Operands &o, void *workspace,
                size_t bytes) {
  for (auto [p, l] : {std::pair{o.a, &call.a},
                      {o.b, &call.b},
                      {static_cast<const void *>(o.d), &call.d}})
    if (overlap(workspace, bytes, p, extentOf(*l)))
      report(FaultKind::Library, 0,
             "cublasLtMatmul: the workspace overlaps an operand");
  if (bytes && !touchAll(workspace, bytes, Touch::Write,
                         "cublasLtMatmul, its workspace,"))
    return;
  std::memset(workspace, 0xff, bytes);
  if (bytes)
    setWritten(reinterpret_cast<uintptr_t>(workspace), bytes, false);
  if (!touchMatrix(o.a, call.a, Touch::Read, "cublasLtMatmul, its A,") ||
      !touchMatrix(o.b, call.b, Touch::Read, "cublasLtMatmul, its B,") ||
      (o.beta != 0 &&
       !touchMatrix(o.c, call.c, Touch::Read, "cublasLtMatmul, its C,")))
    return;
  const bool isBlocked = isBlockScaled(call.op);
  auto touchScales = [&](const void *p, int32_t mode, int64_t outer,
                         const char *what) {
    return !isBlocked ||
           touchAll(p, size_t(scalesOfBlocks(mode, outer, call.k)) * 4,
                    Touch::Read, what);
  };
  if (!touchScales(call.op.scaleA, call.op.modeA, call.m,
                   "cublasLtMatmul, A's scales,") ||
      !touchScales(call.op.scaleB, call.op.modeB, call.n,
                   "cublasLtMatmul, B's scales,"))
    return;
  if ((call.op.epilogue & CUBLASLT_EPILOGUE_BIAS) &&
      !touchAll(call.op.bias,
                size_t(call.m) *
                    bytesOf(biasType(call.op, call.a, call.c, call.d)),
                Touch::Read, "cublasLtMatmul, its bias,"))
    return;
  if (!touchMatrix(o.d, call.d, Touch::Write, "cublasLtMatmul, its D,"))
    return;
  ++counts().productsByWay[size_t(way)];
  std::this_thread::sleep_for(
      std::chrono::duration<double>(leastSeconds[size_t(way)]));
  if (isBlocked)
    multiplyBlocks(call, way, o);
  else if (call.op.compute == CUBLAS_COMPUTE_64F)
    multiply<double>(call, way, o);
  else
    multiply<float>(call, way, o);
}

/// The way by which an algorithm computes a product, if it can.
std::optional<Way> wayFor(const Algorithm &algorithm, const Call &call) {
  if (algorithm.magic != kAlgorithmMagic ||
      algorithm.types != call.hashOfItsTypes())
    return std::nullopt;
  const std::optional<Way> way = wayOf(algorithm.options);
  return way == Way::Parts && call.k < kParts ? std::nullopt : way;
}

template <typename T>
cublasStatus_t set(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof to)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool misaligned(const void *p, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(p) % alignment != 0;
}

} // namespace

void tmc::emulator::slowProducts(Way way, double seconds) {
  leastSeconds[size_t(way)] = seconds;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  live<cublasLtContext>().insert(*handle = new cublasLtContext);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy(handle, "cublasLtDestroy");
}
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "not supported (emulated)"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value (emulated)"
                                                 : "an emulated failure";
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *p,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *p = new cublasLtMatmulDescOpaque;
  (*p)->compute = compute;
  (*p)->scale = scale;
  live<cublasLtMatmulDescOpaque>().insert(*p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p) {
  return destroy(p, "cublasLtMatmulDescDestroy");
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t bytes) {
  if (!isLive(p) || !value)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(p->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(p->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(p->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(p->bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return set(p->biasStride, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(p->biasType, value, bytes);
  case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
    return set(p->scaleA, value, bytes);
  case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
    return set(p->scaleB, value, bytes);
  case CUBLASLT_MATMUL_DESC_D_SCALE_POINTER:
    return set(p->scaleD, value, bytes);
  case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
    return set(p->modeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
    return set(p->modeB, value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *p,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  *p = new cublasLtMatrixLayoutOpaque;
  static_cast<MatrixLayout &>(**p) = {type, rows, cols, ld, 1, 0};
  live<cublasLtMatrixLayoutOpaque>().insert(*p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t p) {
  return destroy(p, "cublasLtMatrixLayoutDestroy");
}
cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t p,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t bytes) {
  if (!isLive(p) || !value)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(p->batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(p->stride, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_LD:
    return set(p->ld, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_ROWS:
    return set(p->rows, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_COLS:
    return set(p->cols, value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p) {
  live<cublasLtMatmulPreferenceOpaque>()
      .insert(*p = new cublasLtMatmulPreferenceOpaque);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return destroy(p, "cublasLtMatmulPreferenceDestroy");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  if (!isLive(p) || !value)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(p->workspace, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(p->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return set(p->alignment[0], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return set(p->alignment[1], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return set(p->alignment[2], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(p->alignment[3], value, bytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int requested,
    cublasLtMatmulHeuristicResult_t results[], int *count) {
  *count = 0;
  if (!isLive(handle) || !isLive(preference) || requested < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  Call call;
  if (cublasStatus_t s = describe(operation, a, b, c, d, call);
      s != CUBLAS_STATUS_SUCCESS)
    return s;
  // Of fp8, pointers are aligned to 16 bytes as rows are: no other kernel.
  for (uint32_t alignment : preference->alignment)
    if (isFp8(call.a.type) && alignment < 16)
      return CUBLAS_STATUS_NOT_SUPPORTED;
  const uint64_t shape = call.hash();
  uint64_t choice = shape ^ preference->workspace;
  for (uint32_t alignment : preference->alignment)
    choice = (choice ^ alignment) * 0x9e3779b97f4a7c15u;
  for (uint64_t i = 0; i < 3 && *count < requested; ++i) {
    const Way way = Way((i + (choice >> 40)) % 3);
    // Partial sums go through the workspace, in the type of the sums.
    if (way == Way::Parts &&
        (call.k < kParts ||
         !(preference->reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)))
      continue;
    const uint64_t workspace = workspaceOf(way, call);
    if (workspace > preference->workspace)
      continue;
    Algorithm algorithm{
        kAlgorithmMagic, optionsOf(way), call.hashOfItsTypes(), shape, {}};
    for (int operand = 0; operand < 4; ++operand)
      algorithm.alignment[operand] =
          uint8_t(std::min(preference->alignment[operand], 128u));
    cublasLtMatmulHeuristicResult_t &result = results[(*count)++];
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t
cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *algo,
                        cublasLtMatmulHeuristicResult_t *result) {
  Call call;
  if (!isLive(handle) || !algo || !result)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t s = describe(operation, a, b, c, d, call);
      s != CUBLAS_STATUS_SUCCESS)
    return s;
  const Algorithm algorithm = algorithmIn(*algo);
  const std::optional<Way> way = wayFor(algorithm, call);
  if (!way)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = workspaceOf(*way, call);
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
               const void *alpha, const void *aAt, cublasLtMatrixLayout_t a,
               const void *bAt, cublasLtMatrixLayout_t b, const void *beta,
               const void *cAt, cublasLtMatrixLayout_t c, void *dAt,
               cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t bytes, cudaStream_t stream) {
  Call call;
  if (!isLive(handle) || !alpha || !beta || !algo ||
      shouldFail("cublasLtMatmul"))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t s = describe(operation, a, b, c, d, call);
      s != CUBLAS_STATUS_SUCCESS)
    return s;
  const Algorithm algorithm = algorithmIn(*algo);
  const std::optional<Way> way = wayFor(algorithm, call);
  if (!way || (algorithm.shape && algorithm.shape != call.hash()))
    return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t wanted = workspaceOf(*way, call);
  if (bytes < wanted || misaligned(workspace, kWorkspaceAlign))
    return CUBLAS_STATUS_INVALID_VALUE;
  if ((call.op.epilogue & CUBLASLT_EPILOGUE_BIAS) && !call.op.bias)
    return CUBLAS_STATUS_INVALID_VALUE;
  const void *at[] = {aAt, bAt, cAt, dAt};
  for (int i = 0; i < 4; ++i)
    if (misaligned(at[i], algorithm.alignment[i]))
      return CUBLAS_STATUS_INVALID_VALUE;
  // In place, or elsewhere altogether.
  if (cAt != dAt ? overlap(cAt, extentOf(call.c), dAt, extentOf(call.d))
                 : call.c.ld != call.d.ld || call.c.type != call.d.type)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Operands operands{aAt,
                          bAt,
                          cAt,
                          dAt,
                          readElement(alpha, call.op.scale, 0),
                          readElement(beta, call.op.scale, 0)};
  ++counts().kernels;
  counts().unalignedProducts += call.missesTensorCores(at);
  const WorkKey key = keyOf(call.hash(), *way, operands, workspace,
                            call.op.bias, call.op.scaleA, call.op.scaleB);
  queueWork(stream, "cublasLtMatmul", key,
            [=] { runProduct(call, *way, operands, workspace, wanted); });
  return CUBLAS_STATUS_SUCCESS;
}
}
