//===- CudnnTest.cpp - what is assumed of cuDNN, asked of it --------------===//
//
// cuDNN answers for cards that aren't there: which attention and convolutions
// it computes, and with how much workspace. For cards of each generation and
// many shapes,
//
//   - it has a deterministic plan for what whyNotCudnn() lets it compute
//   - the plan's workspace is within the scratchCap() of the kernel class
//   - most of what whyNotCudnn() refuses because of the library, it refuses
//
// An f32 result of a filter gradient of 16 bits is among the first: the kernels
// of Conv.cu rely on it, so that they gather no windows.
//
//     cudnn-test [all]      all shapes on all cards; else some
//
// Plans hold compiled kernels, which cuDNN loads into the driver. There is
// none: ask_cudnn.py runs this program beside an empty one.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CudnnGraph.h"
#include "runtime/kernels/Conv.h"

#include <cstdio>
#include <cstring>
#include <string>

using namespace tmc;
using namespace tmc::cuda;

namespace {

/// Figures of cudaDeviceProp that cuDNN looks at. Sources: CUDA C++ Programming
/// Guide, "Compute Capabilities"; the makers' data sheets.
struct Card {
  const char *name;
  int capability, multiprocessors, sharedBytes, threads, blocks;
  int l2MiB;
};
constexpr Card kCards[] = {
    {"H200", 90, 132, 232448, 2048, 32, 50},
    {"A100", 80, 108, 166912, 2048, 32, 40},
    {"RTX 3060", 86, 28, 101376, 1536, 16, 3},
    {"RTX 4090", 89, 128, 101376, 1536, 24, 72},
    {"B200", 100, 148, 232448, 2048, 32, 126},
    {"RTX 5090", 120, 170, 101376, 1536, 24, 96},
};

std::string jsonOf(const Card &card) {
  char text[1024];
  std::snprintf(
      text, sizeof text,
      R"({"maxGridSize": [2147483647, 65535, 65535],)"
      R"( "maxBlockSize": [1024, 1024, 64], "deviceVer": %d,)"
      R"( "driverVer": 13000, "multiProcessorCount": %d,)"
      R"( "regsPerBlock": 65536, "warpSize": 32,)"
      R"( "maxSharedMemoryPerBlock": 49152,)"
      R"( "maxSharedMemoryPerBlockOptin": %d,)"
      R"( "reservedSharedMemoryPerBlock": 1024,)"
      R"( "maxRegistersPerSM": 65536, "maxCtasPerSM": %d,)"
      R"( "maxThreadsPerBlock": 1024, "maxThreadsPerSM": %d,)"
      R"( "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,)"
      R"( "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,)"
      R"( "l2CacheSize": %d, "deviceName": "%s", "cudaDeviceId": 0,)"
      R"( "totalGlobalMem": 85899345920})",
      card.capability * 10, card.multiprocessors, card.sharedBytes, card.blocks,
      card.threads, card.l2MiB << 20, card.name);
  return text;
}

/// q, k and v of one product, where they may be.
AttentionParams shapeOf(int64_t batch, int64_t heads, int64_t kvHeads,
                        int64_t queries, int64_t keys, int64_t headDim,
                        bool causal, DType type) {
  const bool isJoined = queries == keys;
  const int64_t all = (heads + 2 * kvHeads) * headDim;
  const int64_t ofQ = isJoined ? all : heads * headDim;
  const int64_t ofK = isJoined ? all : kvHeads * headDim;
  AttentionParams p{};
  p.type = type;
  p.batch = batch;
  p.heads = heads;
  p.kvHeads = kvHeads;
  p.queries = queries;
  p.keys = keys;
  p.headDim = headDim;
  p.q = {queries * ofQ, ofQ, headDim};
  p.k = p.v = {keys * ofK, ofK, headDim};
  p.causal = causal;
  p.scale = 0.125;
  p.packed = isJoined;
  return p;
}

struct Counts {
  int asked = 0, wrong = 0;
};

/// Asks about one attention, or its gradient.
void ask(const Card &card, AttentionPass pass, const AttentionParams &p,
         Counts &counts) {
  const bool isGradient = pass == AttentionPass::Gradient;
  const char *why = whyNotCudnn(p, isGradient, card.capability);
  const int64_t cap = isGradient
                          ? CudnnAttentionGrad::scratchCap(p, Backend::Cuda)
                          : CudnnAttention::scratchCap(p, Backend::Cuda);
  int64_t bytes = -1;
  const Status status = askCudnn(jsonOf(card), pass, p, card.capability, bytes);
  ++counts.asked;
  const bool isWrong = why ? bool(status) : !status || bytes > cap;
  counts.wrong += isWrong;
  auto n = [](int64_t x) { return static_cast<long long>(x); };
  std::printf("%s%s %s %lldx%lld/%lld heads of %lld, %lld to %lld%s%s: ",
              isWrong ? "WRONG " : "", card.name,
              isGradient ? "gradient" : "output", n(p.batch), n(p.heads),
              n(p.kvHeads), n(p.headDim), n(p.queries), n(p.keys),
              p.causal ? ", causal" : "", p.type == DType::F16 ? ", f16" : "");
  if (status)
    std::printf("%lld bytes, %lld planned%s%s\n", n(bytes), n(cap),
                why ? "; refused: " : "", why ? why : "");
  else
    std::printf("%s%s%s\n", status.message().c_str(), why ? "; refused: " : "",
                why ? why : "");
  std::fflush(stdout);
}

void askBoth(const Card &card, const AttentionParams &p, Counts &counts) {
  ask(card, AttentionPass::Forward, p, counts);
  ask(card, AttentionPass::Gradient, p, counts);
}

/// A square window on square images, padded by half of it.
ConvParams convOf(DType type, int64_t batch, int64_t size, int64_t in,
                  int64_t out, int64_t window, int64_t stride = 1,
                  int64_t groups = 1) {
  ConvParams p{};
  p.type = type;
  p.filter = DType::F32;
  p.batch = batch;
  p.inHeight = p.inWidth = size;
  p.inChannels = in;
  p.outChannels = out;
  p.kernelHeight = p.kernelWidth = window;
  p.strideHeight = p.strideWidth = stride;
  p.padTop = p.padLeft = p.padBottom = p.padRight = window / 2;
  p.outHeight = p.outWidth = (size + window / 2 * 2 - window) / stride + 1;
  p.dilationHeight = p.dilationWidth = 1;
  p.groups = groups;
  return p;
}

/// Asks about a pass of a convolution.
void ask(const Card &card, ConvPass pass, const ConvParams &p, Counts &counts) {
  const char *why = whyNotCudnn(p, pass);
  const int64_t most = kCudaConvScratchBytes - kCudaConvAlign;
  int64_t bytes = -1;
  const Status status =
      askCudnn(jsonOf(card), pass, p, card.capability, most, bytes);
  ++counts.asked;
  const bool isWrong = why ? bool(status) : !status || bytes > most;
  counts.wrong += isWrong;
  constexpr const char *kPasses[] = {"output", "input gradient",
                                     "filter gradient"};
  auto n = [](int64_t x) { return static_cast<long long>(x); };
  std::printf("%s%s %s of %s: %lld images %lldx%lld, %lld to %lld channels in "
              "%lld groups, window %lldx%lld, stride %lld: ",
              isWrong ? "WRONG " : "", card.name, kPasses[int(pass)],
              std::string(nameOf(p.type)).c_str(), n(p.batch), n(p.inHeight),
              n(p.inWidth), n(p.inChannels), n(p.outChannels), n(p.groups),
              n(p.kernelHeight), n(p.kernelWidth), n(p.strideHeight));
  if (status)
    std::printf("%lld bytes%s%s\n", n(bytes), why ? "; refused: " : "",
                why ? why : "");
  else
    std::printf("%s%s%s\n", status.message().c_str(), why ? "; refused: " : "",
                why ? why : "");
  std::fflush(stdout);
}

void askAll(const Card &card, const ConvParams &p, Counts &counts) {
  ask(card, ConvPass::Forward, p, counts);
  ask(card, ConvPass::GradInput, p, counts);
  if (!isHalf(p.type) || !whyNotCudnn(p, ConvPass::GradFilter))
    ask(card, ConvPass::GradFilter, p, counts);
}

/// A ResNet's, and filters that the library has no sums of.
void askConvolutions(const Card &card, Counts &counts) {
  constexpr DType bf16 = DType::BF16, f32 = DType::F32;
  askAll(card, convOf(bf16, 256, 56, 64, 64, 3), counts);
  for (ConvPass pass : {ConvPass::Forward, ConvPass::GradInput})
    ask(card, pass, convOf(bf16, 256, 14, 1024, 2048, 1, 2), counts);
  ask(card, ConvPass::Forward, convOf(bf16, 256, 224, 3, 64, 7, 2), counts);
  askAll(card, convOf(f32, 256, 56, 64, 64, 3), counts);
  askAll(card, convOf(f32, 8, 28, 32, 32, 3, 1, 32), counts);
  for (auto [in, out] : {std::pair{3, 64}, std::pair{8, 5}})
    ask(card, ConvPass::GradFilter, convOf(bf16, 8, 16, in, out, 3), counts);
}

void askMoreConvolutions(const Card &card, Counts &counts) {
  constexpr DType bf16 = DType::BF16, f16 = DType::F16, f32 = DType::F32;
  for (DType type : {bf16, f16, f32}) {
    askAll(card, convOf(type, 8, 28, 32, 32, 3, 1, 32), counts);
    askAll(card, convOf(type, 8, 28, 32, 64, 3, 2, 4), counts);
    askAll(card, convOf(type, 256, 56, 64, 256, 1), counts);
    ConvParams uneven = convOf(type, 4, 17, 16, 24, 3, 2);
    uneven.padTop = uneven.padLeft = 0;
    uneven.outHeight = uneven.outWidth = 8;
    askAll(card, uneven, counts);
    ConvParams spread = convOf(type, 4, 17, 16, 24, 3);
    spread.dilationHeight = spread.dilationWidth = 2;
    spread.padTop = spread.padBottom = spread.padLeft = spread.padRight = 2;
    askAll(card, spread, counts);
    ConvParams text = convOf(type, 4, 64, 8, 16, 1);
    text.inHeight = text.outHeight = 1;
    text.kernelWidth = 16;
    text.padLeft = text.padRight = 8;
    text.outWidth = 65;
    askAll(card, text, counts);
  }
  for (auto [size, channels] : {std::pair{56, 128}, std::pair{28, 256},
                                std::pair{14, 512}, std::pair{8, 1024}})
    askAll(card, convOf(bf16, 128, size, channels, channels, 3), counts);
  ask(card, ConvPass::GradFilter, convOf(bf16, 256, 14, 1024, 2048, 1, 2),
      counts);
  askAll(card, convOf(bf16, 1, 64, 320, 320, 3), counts);
  askAll(card, convOf(bf16, 2, 16, 16, 32, 9, 4), counts);
  askAll(card, convOf(f32, 2, 17, 3, 5, 5), counts);
  // Tensors of more than 2^31 elements.
  askAll(card, convOf(bf16, 256, 512, 64, 64, 3), counts);
  if (card.capability / 10 != 10)
    ask(card, ConvPass::GradFilter, convOf(bf16, 8, 28, 32, 32, 3, 1, 4),
        counts);
}

/// GPT-2 and Llama, rows that are no whole tile, and the smallest.
void askSome(const Card &card, Counts &counts) {
  constexpr DType bf16 = DType::BF16;
  askBoth(card, shapeOf(8, 12, 12, 1024, 1024, 64, true, bf16), counts);
  askBoth(card, shapeOf(1, 32, 8, 2048, 2048, 128, true, bf16), counts);
  askBoth(card, shapeOf(2, 4, 2, 197, 197, 80, false, DType::F16), counts);
  askBoth(card, shapeOf(2, 4, 4, 2, 2, 8, true, bf16), counts);
  askBoth(card, shapeOf(2, 8, 1, 100, 257, 128, true, bf16), counts);
}

void askMore(const Card &card, Counts &counts) {
  constexpr DType bf16 = DType::BF16;
  for (int64_t headDim : {16, 32, 40, 72, 96, 112, 128})
    askBoth(card, shapeOf(2, 4, 1, 256, 256, headDim, true, bf16), counts);
  for (int64_t length : {7, 16, 50, 64, 65, 128, 129, 1000, 4096})
    for (bool causal : {true, false})
      askBoth(card, shapeOf(2, 6, 2, length, length, 64, causal, bf16), counts);
  askBoth(card, shapeOf(2, 8, 1, 64, 64, 128, true, bf16), counts);
  askBoth(card, shapeOf(2, 4, 4, 64, 300, 64, false, DType::F16), counts);
  askBoth(card, shapeOf(2, 4, 4, 300, 64, 64, false, bf16), counts);
  askBoth(card, shapeOf(2, 4, 2, 1, 77, 64, true, bf16), counts);
  askBoth(card, shapeOf(2, 4, 2, 77, 1, 64, false, bf16), counts);
  ask(card, AttentionPass::Forward, shapeOf(2, 4, 2, 256, 256, 256, true, bf16),
      counts);
}

/// Shapes that the library refuses itself.
void askRefused(const Card &card, Counts &counts) {
  constexpr DType bf16 = DType::BF16;
  const auto gradient = AttentionPass::Gradient;
  ask(card, gradient, shapeOf(2, 4, 4, 1, 1, 64, true, bf16), counts);
  ask(card, gradient, shapeOf(2, 4, 4, 256, 256, 136, true, bf16), counts);
  askBoth(card, shapeOf(2, 4, 4, 256, 64, 64, true, bf16), counts);
  askBoth(card, shapeOf(2, 4, 4, 64, 64, 60, true, bf16), counts);
}

} // namespace

int main(int argc, char **argv) {
  const bool all = argc > 1 && !std::strcmp(argv[1], "all");
  Counts counts;
  for (const Card &card : kCards) {
    askSome(card, counts);
    askConvolutions(card, counts);
    if (!all)
      continue;
    askMore(card, counts);
    askMoreConvolutions(card, counts);
    askRefused(card, counts);
  }
  if (!all)
    askRefused(kCards[0], counts);
  std::printf("%d asked, %d wrong\n", counts.asked, counts.wrong);
  return counts.wrong > 0 || counts.asked == 0;
}
