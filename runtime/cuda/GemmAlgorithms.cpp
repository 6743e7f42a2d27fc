//===- GemmAlgorithms.cpp - algorithms of cuBLASLt's products -------------===//

#include "runtime/cuda/GemmAlgorithms.h"

#include "runtime/kernels/AlgorithmFields.h"
#include "runtime/kernels/Quantize.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace tmc::cuda {

static_assert(kNoReduction == CUBLASLT_REDUCTION_SCHEME_NONE &&
              kReductionInWorkspace == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);

cudaDataType_t dataType(DType type) {
  switch (type) {
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F64:
    return CUDA_R_64F;
  case DType::F8E4M3:
    return CUDA_R_8F_E4M3;
  case DType::F8E5M2:
    return CUDA_R_8F_E5M2;
  default:
    return CUDA_R_32F;
  }
}

cublasComputeType_t computeType(const Matmul::Params &params) {
  return params.out == DType::F64 ? CUBLAS_COMPUTE_64F
         : params.tf32            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                  : CUBLAS_COMPUTE_32F;
}

cudaDataType_t scaleType(const Matmul::Params &params) {
  return params.out == DType::F64 ? CUDA_R_64F : CUDA_R_32F;
}

//===----------------------------------------------------------------------===//
// Texts and numbers
//===----------------------------------------------------------------------===//

namespace {

struct FieldText {
  std::string operator()(DType type) const {
    std::string text = nameOf(type);
    for (char &c : text)
      c = char(std::toupper(static_cast<unsigned char>(c)));
    return text;
  }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(int64_t number) const {
    return std::to_string(number);
  }
};

/// An algorithm's number as the library stores it.
struct Attribute {
  int32_t ProductAlgorithm::*number;
  cublasLtMatmulAlgoConfigAttributes_t name;
  size_t bytes;
};
constexpr Attribute kAttributes[] = {
    {&ProductAlgorithm::id, CUBLASLT_ALGO_CONFIG_ID, 4},
    {&ProductAlgorithm::tile, CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {&ProductAlgorithm::stages, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {&ProductAlgorithm::splitK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    {&ProductAlgorithm::reduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {&ProductAlgorithm::swizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {&ProductAlgorithm::custom, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {&ProductAlgorithm::innerShape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {&ProductAlgorithm::clusterShape, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
     2}};
static_assert(std::size(kAttributes) == std::size(kAlgorithmFields));

} // namespace

std::string productText(const Matmul::Params &params, int64_t lhsStride) {
  std::string text = "Matmul";
  auto add = [&](std::string_view name, const std::string &value) {
    text += " " + std::string(name) + "=" + value;
  };
  params.visit([&](std::string_view name, const auto &value, bool isGiven) {
    if (isGiven)
      add(name, FieldText()(value));
  });
  if (lhsStride)
    add("lhsStride", std::to_string(lhsStride));
  return text;
}

std::optional<ProductAlgorithm> numbersOf(const cublasLtMatmulAlgo_t &from) {
  ProductAlgorithm numbers;
  for (const Attribute &attribute : kAttributes) {
    uint32_t wide = 0;
    uint16_t narrow = 0;
    size_t written = 0;
    if (cublasLtMatmulAlgoConfigGetAttribute(
            &from, attribute.name,
            attribute.bytes == 2 ? static_cast<void *>(&narrow) : &wide,
            attribute.bytes, &written) != CUBLAS_STATUS_SUCCESS ||
        wide > INT32_MAX)
      return std::nullopt;
    numbers.*attribute.number =
        int32_t(attribute.bytes == 2 ? uint32_t(narrow) : wide);
  }
  return numbers;
}

std::optional<GemmAlgorithm> algorithmOf(const ProductAlgorithm &numbers,
                                         const GemmCall &call,
                                         const Matmul::Params &params,
                                         int64_t limit) {
  GemmAlgorithm made;
  const cudaDataType_t out = dataType(params.out);
  if (cublasLtMatmulAlgoInit(call.handle, computeType(params),
                             scaleType(params), dataType(params.rhs),
                             dataType(params.lhs), out, out, numbers.id,
                             &made.algorithm) != CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  for (const Attribute &attribute : kAttributes) {
    if (attribute.name == CUBLASLT_ALGO_CONFIG_ID) // It can't be set again.
      continue;
    const int32_t wide = numbers.*attribute.number;
    const uint16_t narrow = uint16_t(wide);
    if (cublasLtMatmulAlgoConfigSetAttribute(
            &made.algorithm, attribute.name,
            attribute.bytes == 2 ? static_cast<const void *>(&narrow) : &wide,
            attribute.bytes) != CUBLAS_STATUS_SUCCESS)
      return std::nullopt;
  }
  cublasLtMatmulHeuristicResult_t checked = {};
  if (cublasLtMatmulAlgoCheck(call.handle, call.operation, call.a, call.b,
                              call.c, call.c, &made.algorithm,
                              &checked) != CUBLAS_STATUS_SUCCESS ||
      checked.state != CUBLAS_STATUS_SUCCESS ||
      checked.workspaceSize > size_t(limit))
    return std::nullopt;
  made.workspaceBytes = checked.workspaceSize;
  return made;
}

//===----------------------------------------------------------------------===//
// Measurement
//===----------------------------------------------------------------------===//

namespace {

constexpr int kRounds = 7;

/// A float type's numbers in [1/2, 1): the bits that they share, and those of
/// the sign and the fraction.
struct Numbers {
  uint64_t exponent, free;
};
Numbers numbersBelowOne(DType type) {
  switch (type) {
  case DType::F64:
    return {0x3fe0000000000000, 0x800fffffffffffff};
  case DType::F16:
    return {0x3800, 0x83ff};
  case DType::BF16:
    return {0x3f00, 0x807f};
  case DType::F8E4M3:
    return {0x30, 0x87};
  case DType::F8E5M2:
    return {0x38, 0x83};
  default:
    return {0x3f000000, 0x807fffff};
  }
}

/// Fills an operand, some numbers at a time, always with the same ones.
void fill(CudaDevice &device, char *to, int64_t elements, DType type) {
  const int64_t size = sizeOf(type), bytes = elements * size;
  constexpr int64_t kPieceBytes = 1 << 20;
  std::vector<char> piece(size_t(std::min(bytes, kPieceBytes)));
  const Numbers numbers = numbersBelowOne(type);
  uint64_t random = 1;
  for (size_t at = 0; at < piece.size(); at += size_t(size)) {
    // Source: Knuth, MMIX; the upper bits are the random ones.
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t upper = random >> 32 | random << 32;
    const uint64_t number = numbers.exponent | (upper & numbers.free);
    std::memcpy(piece.data() + at, &number, size_t(size)); // Little-endian.
  }
  for (int64_t at = 0; at < bytes; at += kPieceBytes)
    device.upload(to + at, piece.data(), std::min(kPieceBytes, bytes - at));
}

void fillScales(CudaDevice &device, char *to, int64_t count) {
  const std::vector<float> ones(size_t(count), 1.0f);
  device.upload(to, ones.data(), count * int64_t(sizeof(float)));
}

/// Takes pieces of the arena, one behind the other.
class Pieces {
public:
  Pieces(char *arena, int64_t bytes) : arena_(arena), left_(bytes) {}
  /// Null if there isn't enough left.
  char *take(int64_t bytes) {
    const int64_t whole =
        (bytes + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
    if (!arena_ || whole > left_)
      return nullptr;
    char *piece = arena_;
    arena_ += whole;
    left_ -= whole;
    return piece;
  }

private:
  char *arena_;
  int64_t left_;
};

/// The events around each run.
class Events {
public:
  explicit Events(size_t runs) : events_(2 * runs) {}
  ~Events() {
    for (cudaEvent_t event : events_)
      if (event)
        (void)cudaEventDestroy(event);
  }
  Events(const Events &) = delete;
  Events &operator=(const Events &) = delete;

  Status create() {
    for (cudaEvent_t &event : events_)
      if (Status s = check(cudaEventCreateWithFlags(&event, cudaEventDefault));
          !s)
        return s;
    return Status::ok();
  }
  Status begin(size_t run, cudaStream_t stream) {
    return check(cudaEventRecord(events_[2 * run], stream));
  }
  Status end(size_t run, cudaStream_t stream) {
    return check(cudaEventRecord(events_[2 * run + 1], stream));
  }
  Status seconds(size_t run, double &to) {
    float milliseconds = 0;
    Status s = check(cudaEventElapsedTime(&milliseconds, events_[2 * run],
                                          events_[2 * run + 1]));
    to = double(milliseconds) * 1e-3;
    return s;
  }
  static Status check(cudaError_t error) {
    return error == cudaSuccess
               ? Status::ok()
               : Status(Code::World, std::string("can't time a product: ") +
                                         cudaGetErrorString(error));
  }

private:
  std::vector<cudaEvent_t> events_;
};

} // namespace

std::optional<TunedOperands> TunedOperands::place(CudaDevice &device,
                                                  const Matmul::Params &p,
                                                  int64_t lhsStride) {
  const int64_t lhsRows = p.transposeLhs ? p.k : p.m,
                lhsColumns = p.transposeLhs ? p.m : p.k,
                rhsRows = p.transposeRhs ? p.n : p.k,
                rhsColumns = p.transposeRhs ? p.k : p.n;
  const int64_t lhs = p.batch * lhsRows * (lhsStride ? lhsStride : lhsColumns);
  const int64_t rhs = p.batch * p.k * p.n;
  auto scales = [&](int64_t rows, int64_t columns, int64_t blockRows) {
    return !p.scaled   ? int64_t(0)
           : !p.packed ? int64_t(1)
                       : PackedScales{rows, columns, blockRows > 1}.count();
  };
  const int64_t lhsScales = scales(lhsRows, lhsColumns, p.lhsBlockRows),
                rhsScales = scales(rhsRows, rhsColumns, p.rhsBlockRows);
  Pieces pieces(device.arena(SpaceKind::Device),
                device.highWaterBytes(SpaceKind::Device));
  char *at[] = {pieces.take(lhs * sizeOf(p.lhs)),
                pieces.take(rhs * sizeOf(p.rhs)),
                pieces.take(p.bias ? p.n * sizeOf(p.out) : 0),
                pieces.take(lhsScales * 4),
                pieces.take(rhsScales * 4),
                pieces.take(p.batch * p.m * p.n * sizeOf(p.out)),
                pieces.take(p.scratchBytes)};
  if (std::find(std::begin(at), std::end(at), nullptr) != std::end(at))
    return std::nullopt;
  fill(device, at[0], lhs, p.lhs);
  fill(device, at[1], rhs, p.rhs);
  if (p.bias)
    fill(device, at[2], p.n, p.out);
  fillScales(device, at[3], lhsScales);
  fillScales(device, at[4], rhsScales);
  return TunedOperands{{at[0], at[1], at[2], at[3], at[4]}, at[5], at[6]};
}

Status timeCandidates(CudaDevice &device,
                      const std::vector<GemmAlgorithm> &candidates,
                      const std::function<Status(const GemmAlgorithm &)> &run,
                      std::vector<double> &seconds) {
  const size_t count = candidates.size();
  cudaStream_t stream = nativeOf(device.compute());
  seconds.assign(count, -1);
  std::vector<bool> works(count);
  for (size_t i = 0; i < count; ++i)
    works[i] = run(candidates[i]).isOk();
  Events events(count * kRounds);
  if (Status s = events.create(); !s)
    return s;
  for (size_t round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < count; ++i) {
      if (!works[i])
        continue;
      const size_t at = round * count + i;
      if (Status s = events.begin(at, stream); !s)
        return s;
      works[i] = run(candidates[i]).isOk();
      if (Status s = events.end(at, stream); !s)
        return s;
    }
  if (Status s = device.synchronize(); !s)
    return s;
  for (size_t i = 0; i < count; ++i) {
    if (!works[i])
      continue;
    double its[kRounds];
    for (size_t round = 0; round < kRounds; ++round)
      if (Status s = events.seconds(round * count + i, its[round]); !s)
        return s;
    std::nth_element(its, its + kRounds / 2, its + kRounds);
    seconds[i] = its[kRounds / 2];
  }
  return Status::ok();
}

} // namespace tmc::cuda
