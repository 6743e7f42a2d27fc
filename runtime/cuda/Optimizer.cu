//===- Optimizer.cu - updates of parameters on cuda -----------------------===//
//
// The updates are pointwise: a thread takes every kBlock-th run of four
// elements of its block's piece, or of eight if one quad of random numbers
// rounds a run; whole runs by accesses of 16 bytes where all operands are
// aligned. Scalar factors are computed in f64 and rounded once, by one thread
// of each block. A block also adds up the squares of its piece of the gradient;
// if there are several pieces, a last block adds theirs by a fixed tree.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Updates.h"
#include "runtime/kernels/Adam.h"

namespace tmc {

namespace cuda {
namespace {

template <typename Param, typename Grad, typename Moment> struct AdamOperands {
  const Grad *grad;
  Param *param;
  Moment *first, *second;
  void *copy;

  static constexpr size_t kScalars = 4;
  static AdamOperands of(In ins, Out outs) {
    return {.grad = static_cast<const Grad *>(operand(ins, 1)),
            .param = static_cast<Param *>(result(outs, 0)),
            .first = static_cast<Moment *>(result(outs, 1)),
            .second = static_cast<Moment *>(result(outs, 2)),
            .copy = result(outs, kScalars)};
  }
};

template <typename Param, typename Grad, typename Moment>
__global__ void __launch_bounds__(kBlock)
    adamw(UpdateTable<AdamW::Params, AdamOperands<Param, Grad, Moment>> table) {
  const auto row = table.row();
  const Piece piece(row.count, blockIdx.x - row.firstBlock);
  const Grad *__restrict__ grad = row.to.grad;
  squarePart(grad, piece, row.squares);
  if (isSkipped(table.step, table.clip))
    return;
  __shared__ adam::Factors shared;
  if (threadIdx.x == 0)
    shared = adam::factors(table.of(row), table.rate, table.step, table.clip);
  __syncthreads();
  const adam::Factors f = shared;
  Param *param = row.to.param;
  Moment *first = row.to.first, *second = row.to.second;
  const RoundedCopy copy(table.q.copy, row.to.copy);
  constexpr int kDrawn = kDrawnValues<Param, Moment, 2>,
                N = Chance<kDrawn>::kRun;
  eachRun<kDrawn>(
      piece, row.stream, table.step,
      isAligned(grad) && isAligned(param) && isAligned(first) &&
          isAligned(second) && isAligned(copy.address()),
      [&](const auto &chance, int64_t i) {
        Floats<N> m = loadLanes<N, true>(first + i),
                  v = loadLanes<N, true>(second + i);
        const Floats<N> p =
            adam::update(f, loadLanes<N, true>(grad + i),
                         loadLanes<N, true>(param + i), m, v, Root{});
        chance.storeRun(0, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<N, true>(i, p);
        chance.storeRun(1, first + i, m);
        chance.storeRun(2, second + i, v);
      },
      [&](const auto &chance, int64_t i, int element) {
        float m = loadLanes<1>(first + i), v = loadLanes<1>(second + i);
        const float p = adam::update(f, loadLanes<1>(grad + i),
                                     loadLanes<1>(param + i), m, v, Root{});
        chance.store(0, element, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<1>(i, p);
        chance.store(1, element, first + i, m);
        chance.store(2, element, second + i, v);
      });
}

/// The codes of one moment, in a block's shared memory.
struct CodeTable {
  float value[adam::kCodes], above[adam::kCodes];

  /// Called by all threads; a barrier must follow.
  __device__ void fill(bool isSigned) {
    for (int c = int(threadIdx.x); c < adam::kCodes; c += int(blockDim.x)) {
      value[c] = adam::codeValue(isSigned, c);
      above[c] =
          c + 1 < adam::kCodes
              ? adam::boundBetween(value[c], adam::codeValue(isSigned, c + 1))
              : 1.0f;
    }
  }
};

/// A block of threads takes a piece, one block of codes at a time, with one
/// element per thread.
template <typename Param, typename Grad>
__global__ void __launch_bounds__(kBlock)
    adamw8bit(UpdateTable<AdamParams, CodedOperands<Param, Grad>> table) {
  const auto row = table.row();
  const Piece piece(row.count, blockIdx.x - row.firstBlock);
  const Grad *__restrict__ grad = row.to.grad;
  squarePart(grad, piece, row.squares);
  if (isSkipped(table.step, table.clip))
    return;
  static_assert(kBlock == adam::kCodeBlock && kPiece % kBlock == 0);
  __shared__ adam::Factors shared;
  __shared__ CodeTable firstTable, secondTable;
  __shared__ float reduced[kBlock];
  if (threadIdx.x == 0)
    shared = adam::factors(table.of(row), table.rate, table.step, table.clip);
  firstTable.fill(true);
  secondTable.fill(false);
  __syncthreads();
  const adam::Factors f = shared;
  Param *param = row.to.param;
  const auto [firstCodes, firstMost] = row.to.first;
  const auto [secondCodes, secondMost] = row.to.second;
  const RoundedCopy copy(table.q.copy, row.to.copy);
  [[maybe_unused]] const Philox draws = roundingDraws(row.stream, *table.step);
  const int64_t end = piece.end;
  for (int64_t from = piece.begin; from < end; from += kBlock) {
    const int64_t i = from + threadIdx.x, block = from / kBlock;
    float m = 0, v = 0;
    if (i < end) {
      m = firstTable.value[firstCodes[i]] * firstMost[block];
      v = secondTable.value[secondCodes[i]] * secondMost[block];
      const float g = loadLanes<1>(grad + i);
      float p = loadLanes<1>(param + i);
      if (adam::isFinite(g)) {
        p = adam::update(f, g, p, m, v, Root{});
        if constexpr (isNarrow<Param>)
          param[i].bits =
              uint16_t(stochasticBits(p, roundingBits(draws, i, 0)));
        else
          param[i] = p;
      }
      if constexpr (!isNarrow<Param>)
        copy.store<1>(i, p);
    }
    // All threads have read the maxima: blockReduce begins with a barrier.
    const float mostM = blockReduce(fabsf(m), reduced, MaxOp{});
    const float mostV = blockReduce(v, reduced, MaxOp{});
    if (i < end) {
      firstCodes[i] = uint8_t(
          adam::nearestCode(m / adam::divisorOf(mostM), firstTable.above));
      secondCodes[i] = uint8_t(
          adam::nearestCode(v / adam::divisorOf(mostV), secondTable.above));
    }
    if (threadIdx.x == 0) {
      firstMost[block] = mostM;
      secondMost[block] = mostV;
    }
  }
}

template <typename Param, typename Grad, typename Moment>
__global__ void __launch_bounds__(kBlock)
    sgd(UpdateTable<Sgd::Params, MomentOperands<Param, Grad, Moment>> table) {
  const auto row = table.row();
  const Piece piece(row.count, blockIdx.x - row.firstBlock);
  const Grad *__restrict__ grad = row.to.grad;
  squarePart(grad, piece, row.squares);
  if (isSkipped(table.step, table.clip))
    return;
  const Sgd::Params q = table.of(row);
  Param *param = row.to.param;
  Moment *buffer = row.to.moment;
  const RoundedCopy copy(q.copy, row.to.copy);
  const float decay = float(q.weightDecay), momentum = float(q.momentum);
  const float damped = float(1 - q.dampening);
  const float minusRate = -*table.rate;
  const float scale = table.clip ? *table.clip : 1.0f;
  const bool firstStep = *table.step <= 1;
  constexpr int kDrawn = kDrawnValues<Param, Moment, 1>,
                N = Chance<kDrawn>::kRun;
  const bool hasBuffer = q.momentum != 0 && buffer;
  // The parameter moved by `g`, and the buffer, of a value or of a run of them.
  auto moved = [&](auto g, auto p, auto &b) {
    g = g * scale;
    if (q.weightDecay != 0)
      g = g + decay * p;
    if (hasBuffer) {
      b = firstStep ? g : b * momentum + damped * g;
      g = q.nesterov ? g + momentum * b : b;
    }
    return p + minusRate * g;
  };
  eachRun<kDrawn>(
      piece, row.stream, table.step,
      isAligned(grad) && isAligned(param) && isAligned(buffer) &&
          isAligned(copy.address()),
      [&](const auto &chance, int64_t i) {
        Floats<N> b{};
        if (hasBuffer && !firstStep)
          b = loadLanes<N, true>(buffer + i);
        const Floats<N> p = moved(Floats<N>(loadLanes<N, true>(grad + i)),
                                  Floats<N>(loadLanes<N, true>(param + i)), b);
        if (hasBuffer)
          chance.storeRun(1, buffer + i, b);
        chance.storeRun(0, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<N, true>(i, p);
      },
      [&](const auto &chance, int64_t i, int element) {
        float b = 0;
        if (hasBuffer && !firstStep)
          b = loadLanes<1>(buffer + i);
        const float p = moved(float(loadLanes<1>(grad + i)),
                              float(loadLanes<1>(param + i)), b);
        if (hasBuffer)
          chance.store(1, element, buffer + i, b);
        chance.store(0, element, param + i, p);
        if constexpr (!isNarrow<Param>)
          copy.store<1>(i, p);
      });
}

template <typename T>
__global__ void __launch_bounds__(kBlock)
    squareParts(const T *__restrict__ x, int64_t count, Squares squares) {
  squarePart(x, Piece(count, blockIdx.x), squares);
}

/// A block adds the parts of one sum.
__global__ void __launch_bounds__(kBlock) addParts(SquareSums::Table table) {
  __shared__ double shared[kBlock];
  const SquareSums::Row row = table.rows[blockIdx.x];
  double sum = 0;
  for (int64_t i = threadIdx.x; i < row.parts; i += kBlock)
    sum += row.partial[i];
  const double total = blockReduce(sum, shared, AddOp{});
  if (threadIdx.x == 0)
    *row.out = float(total);
}

/// The addresses of one launch; they fit its arguments easily.
struct NormPiece {
  const float *squares[kNormPiece];
};

/// Adds the square sums of one piece, in order, to *total; the last piece
/// writes the results.
__global__ void __launch_bounds__(kBlock)
    addSquares(NormPiece piece, int64_t count, bool first, bool last,
               double maxNorm, const float *scale, double *total, float *norm,
               float *clip) {
  __shared__ float squares[kNormPiece];
  for (int64_t i = threadIdx.x; i < count; i += kBlock)
    squares[i] = *piece.squares[i];
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  double sum = first ? 0 : *total;
  for (int64_t i = 0; i < count; ++i)
    sum += squares[i];
  if (!last) {
    *total = sum;
    return;
  }
  const double divisor = scale ? *scale : 1.0;
  const double root = sqrt(sum) / divisor;
  if (norm)
    *norm = float(root);
  if (clip)
    *clip = clipScaleOf(root, maxNorm, divisor);
}

__global__ void lossScale(LossScale::Params q, const float *norm, float *scale,
                          int64_t *clean, int64_t *count, int64_t *step) {
  *step = moveLossScale(q, *norm, *scale, *clean, *count);
}

} // namespace

void SquareSums::add(int64_t count, const void *scratch, float *out) {
  if (out && count > kPiece)
    table_.rows[count_++] = {static_cast<const double *>(scratch),
                             ceilDivide(count, kPiece), out};
}

void SquareSums::launch(Queue &queue) {
  cuda::launch(queue, addParts, dim3(unsigned(count_)), dim3(kBlock), 0,
               table_);
  count_ = 0;
}

template <typename T>
void squareSum(Queue &queue, const T *x, int64_t count, void *scratch,
               float *out) {
  if (!out)
    return;
  launch(queue, squareParts<T>, blocksFor(count, kPiece), dim3(kBlock), 0, x,
         count, Squares{static_cast<double *>(scratch), out});
  SquareSums sum;
  sum.add(count, scratch, out);
  sum.launch(queue);
}
template void squareSum(Queue &, const float *, int64_t, void *, float *);
template void squareSum(Queue &, const bf16 *, int64_t, void *, float *);
template void squareSum(Queue &, const f16 *, int64_t, void *, float *);

} // namespace cuda

using cuda::floats;
using cuda::longs;

struct AdamW::State : cuda::Prepared {};
AdamW::AdamW(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AdamW::~AdamW() = default;

Status AdamW::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("adamw", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void AdamW::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runJoined(stream, {{*this, ins, outs, scratch}});
}

void AdamW::runJoined(Stream &stream,
                      std::initializer_list<UpdateRun<AdamW>> runs) {
  const UpdateRun<AdamW> &one = *runs.begin();
  const Params &q = one.update.params_;
  cuda::Queue queue(*one.update.state_->device, stream, "adamw");
  withUpdated(q.param, q.grad, q.moment, [&](auto p, auto g, auto m) {
    cuda::launchJoined(
        queue, cuda::adamw<decltype(p), decltype(g), decltype(m)>, runs);
  });
}

struct AdamW8bit::State : cuda::Prepared {};
AdamW8bit::AdamW8bit(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
AdamW8bit::~AdamW8bit() = default;

Status AdamW8bit::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("adamw8bit", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void AdamW8bit::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runJoined(stream, {{*this, ins, outs, scratch}});
}

void AdamW8bit::runJoined(Stream &stream,
                          std::initializer_list<UpdateRun<AdamW8bit>> runs) {
  const UpdateRun<AdamW8bit> &one = *runs.begin();
  const Params &q = one.update.params_;
  cuda::Queue queue(*one.update.state_->device, stream, "adamw8bit");
  withUpdated(q.param, q.grad, DType::F32, [&](auto p, auto g, auto) {
    cuda::launchJoined(queue, cuda::adamw8bit<decltype(p), decltype(g)>, runs);
  });
}

struct Sgd::State : cuda::Prepared {};
Sgd::Sgd(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
Sgd::~Sgd() = default;

Status Sgd::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("sgd", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void Sgd::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  runJoined(stream, {{*this, ins, outs, scratch}});
}

void Sgd::runJoined(Stream &stream,
                    std::initializer_list<UpdateRun<Sgd>> runs) {
  const UpdateRun<Sgd> &one = *runs.begin();
  const Params &q = one.update.params_;
  cuda::Queue queue(*one.update.state_->device, stream, "sgd");
  withUpdated(q.param, q.grad, q.moment, [&](auto p, auto g, auto m) {
    cuda::launchJoined(queue, cuda::sgd<decltype(p), decltype(g), decltype(m)>,
                       runs);
  });
}

struct SquareSum::State : cuda::Prepared {};
SquareSum::SquareSum(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
SquareSum::~SquareSum() = default;

Status SquareSum::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return cuda::requireScratch("square_sum", scratchCap(params_, Backend::Cuda),
                              params_.scratchBytes);
}

void SquareSum::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "square_sum");
  withGradient(params_.type, [&](auto type) {
    cuda::squareSum(queue, static_cast<const decltype(type) *>(operand(ins, 0)),
                    params_.count, scratch, floats(result(outs, 0)));
  });
}

struct GradNorm::State : cuda::Prepared {};
GradNorm::GradNorm(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
GradNorm::~GradNorm() = default;

Status GradNorm::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  // One running sum, needed only if the addresses don't fit one launch.
  return cuda::requireScratch(
      "grad_norm", params_.count > kNormPiece ? int64_t(sizeof(double)) : 0,
      params_.scratchBytes);
}

void GradNorm::run(Stream &stream, In ins, Out outs, void *scratch, bool) {
  cuda::Queue queue(*state_->device, stream, "grad_norm");
  const int64_t count = params_.count;
  for (int64_t from = 0; from < count || from == 0; from += kNormPiece) {
    cuda::NormPiece piece{};
    const int64_t here = count - from < kNormPiece ? count - from : kNormPiece;
    for (int64_t i = 0; i < here; ++i)
      piece.squares[i] = floats(ins.begin()[from + i]);
    launch(queue, cuda::addSquares, dim3(1), dim3(cuda::kBlock), 0, piece, here,
           from == 0, from + here == count, params_.maxNorm,
           params_.isScaled ? floats(operand(ins, count)) : nullptr,
           static_cast<double *>(scratch), floats(result(outs, 0)),
           floats(result(outs, 1)));
  }
}

struct LossScale::State : cuda::Prepared {};
LossScale::LossScale(const Params &params)
    : params_(params), state_(std::make_unique<State>()) {}
LossScale::~LossScale() = default;

Status LossScale::prepare(Device &device) {
  state_->device = &cuda::deviceOf(device);
  return Status::ok();
}

void LossScale::run(Stream &stream, In ins, Out outs, void *, bool) {
  cuda::Queue queue(*state_->device, stream, "loss_scale");
  launch(queue, cuda::lossScale, dim3(1), dim3(1), 0, params_,
         floats(operand(ins, 0)), floats(result(outs, 0)),
         longs(result(outs, 1)), longs(result(outs, 2)),
         longs(result(outs, 3)));
}

} // namespace tmc
