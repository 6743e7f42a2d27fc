//===- Updates.h - common parts of updates on cuda --------------*- C++ -*-===//
//
// The elements of a block of threads, the random bits that round them, the sums
// of squares of the updates, and the table of the updates of a launch:
//
//     blocks   0 1 2 3 4 5 6 7 8        a piece of kPiece elements each
//     rows     |a    |b|c    |d|        firstBlock: 0, 3, 4, 7
//
// A single update is a table of one row. A block finds its row by its number,
// and its results don't depend on the other rows: updates have the same bits
// in any grouping.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_CUDA_UPDATES_H
#define TMC_RUNTIME_CUDA_UPDATES_H

#include "runtime/kernels/Optimizer.h"

#include "runtime/cuda/Launch.h"
#include "runtime/cuda/Vector.h"
#include "runtime/kernels/Stochastic.h"

namespace tmc::cuda {

/// Queues *out = the sum of squares of x, if `out` isn't null: one block per
/// kCudaUpdatePart elements, then addSquareParts().
template <typename T>
void squareSum(Queue &queue, const T *x, int64_t count, void *scratch,
               float *out);
extern template void squareSum(Queue &, const float *, int64_t, void *,
                               float *);
extern template void squareSum(Queue &, const bf16 *, int64_t, void *, float *);
extern template void squareSum(Queue &, const f16 *, int64_t, void *, float *);

/// The sums of squares of one launch that have several parts each.
class SquareSums {
public:
  /// Adds the sum of `count` elements' parts, if `out` isn't null and there are
  /// several parts.
  void add(int64_t count, const void *scratch, float *out);
  /// Queues one launch, which adds the parts of each sum by a fixed tree, and
  /// forgets the sums. Without sums it queues nothing.
  void launch(Queue &queue);

  struct Row {
    const double *partial;
    int64_t parts;
    float *out;
  };
  /// An argument of a kernel.
  struct Table {
    Row rows[kMostJoinedUpdates];
  };

private:
  Table table_ = {};
  int count_ = 0;
};

/// The place of a gradient's sum of squares, which blocks of an update make in
/// passing; null: it isn't wanted.
struct Squares {
  double *partial;
  float *out;
};

namespace {

constexpr int kBlock = 256;
/// Elements of one block of an update.
constexpr int64_t kPiece = kCudaUpdatePart;
static_assert(kPiece == 16 * kBlock);

/// The elements of one tensor that a block takes.
struct Piece {
  int64_t index, begin, end;
  bool isOnly;

  __device__ Piece(int64_t count, int64_t index)
      : index(index), begin(index * kPiece),
        end(begin + kPiece < count ? begin + kPiece : count),
        isOnly(count <= kPiece) {}
};

/// The updates of one launch, an argument of the kernel. `Params`: of the
/// kernel class, what the updates share; `Operands`: addresses of one of them.
template <typename Params, typename Operands> struct UpdateTable {
  struct Row {
    Operands to;
    Squares squares;
    int64_t count;
    double weightDecay;
    uint32_t stream;
    uint32_t firstBlock;
  };
  Params q;
  const float *rate;
  const int64_t *step;
  const float *clip;
  int32_t updates;
  Row rows[kMostJoinedUpdates];

  /// The row of this block.
  __device__ Row row() const {
    int low = 0, high = updates;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (rows[middle].firstBlock <= blockIdx.x ? low : high) = middle;
    }
    return rows[low];
  }
  /// The parameters of one row.
  __device__ Params of(const Row &row) const {
    Params own = q;
    own.count = row.count;
    own.weightDecay = row.weightDecay;
    own.stream = row.stream;
    return own;
  }
};

/// The addresses of an update with one moment, or none. Operands begin with the
/// parameter, the gradient and the states; the scalars follow from kScalars on.
/// Results are the parameter, the states, the sum of squares and the copy.
template <typename Param, typename Grad, typename Moment>
struct MomentOperands {
  const Grad *grad;
  Param *param;
  Moment *moment;
  void *copy;

  static constexpr size_t kScalars = 3;
  static MomentOperands of(In ins, Out outs) {
    return {.grad = static_cast<const Grad *>(operand(ins, 1)),
            .param = static_cast<Param *>(result(outs, 0)),
            .moment = static_cast<Moment *>(result(outs, 1)),
            .copy = result(outs, kScalars)};
  }
};

/// Those of one with two moments in codes, each with a scale for each block.
struct MomentCodes {
  uint8_t *codes;
  float *scales;
};
inline MomentCodes codesOf(Out outs, size_t first) {
  return {static_cast<uint8_t *>(result(outs, first)),
          static_cast<float *>(result(outs, first + 1))};
}
template <typename Param, typename Grad> struct CodedOperands {
  const Grad *grad;
  Param *param;
  MomentCodes first, second;
  void *copy;

  static constexpr size_t kScalars = 6;
  static CodedOperands of(In ins, Out outs) {
    return {.grad = static_cast<const Grad *>(operand(ins, 1)),
            .param = static_cast<Param *>(result(outs, 0)),
            .first = codesOf(outs, 1),
            .second = codesOf(outs, 3),
            .copy = result(outs, kScalars)};
  }
};

/// The rows of a launch of updates on the host's side.
template <typename Params, typename Operands> class JoinedUpdates {
public:
  using Table = UpdateTable<Params, Operands>;
  // 4 KiB are the least that a launch may have on any card.
  static_assert(sizeof(Table) <= 4096);

  /// `kernel` runs a table. `ins`: of any of the updates; they share the
  /// scalars rate, step and the factor that clips.
  JoinedUpdates(Queue &queue, void (*kernel)(Table), const Params &params,
                In ins)
      : queue_(queue), kernel_(kernel) {
    constexpr size_t at = Operands::kScalars;
    table_.q = params;
    table_.rate = static_cast<const float *>(operand(ins, at));
    table_.step = static_cast<const int64_t *>(operand(ins, at + 1));
    table_.clip = static_cast<const float *>(operand(ins, at + 2));
  }

  void add(const Params &params, In ins, Out outs, void *scratch) {
    if (table_.updates == kMostJoinedUpdates)
      launch();
    auto *out = static_cast<float *>(result(outs, Operands::kScalars - 1));
    table_.rows[table_.updates++] = {
        .to = Operands::of(ins, outs),
        .squares = {static_cast<double *>(scratch), out},
        .count = params.count,
        .weightDecay = params.weightDecay,
        .stream = uint32_t(params.stream),
        .firstBlock = blocks_};
    blocks_ += uint32_t(ceilDivide(params.count, kPiece));
    sums_.add(params.count, scratch, out);
  }

  void launch() {
    cuda::launch(queue_, kernel_, dim3(blocks_), dim3(kBlock), 0, table_);
    sums_.launch(queue_);
    table_.updates = 0;
    blocks_ = 0;
  }

private:
  Queue &queue_;
  void (*kernel_)(Table);
  Table table_ = {};
  SquareSums sums_;
  uint32_t blocks_ = 0;
};

/// Queues the runs of a kernel class, each launch a table of `kernel`.
template <typename Params, typename Operands, typename K>
void launchJoined(Queue &queue, void (*kernel)(UpdateTable<Params, Operands>),
                  std::initializer_list<UpdateRun<K>> runs) {
  JoinedUpdates<Params, Operands> joined(
      queue, kernel, runs.begin()->update.params(), runs.begin()->ins);
  for (const auto &[update, ins, outs, scratch] : runs)
    joined.add(update.params(), ins, outs, scratch);
  joined.launch();
}

/// The square root of an element, or of each of a run.
struct Root {
  template <typename V> __device__ V operator()(V x) const {
    return lanewise(x, [](float v) { return sqrtf(v); });
  }
};

/// The block's part of a sum of squares: thread t adds the runs of four t, t +
/// 256, ... in order, then threads combine in halves. Called by all threads.
template <typename T>
__device__ void squarePart(const T *x, const Piece &piece,
                           const Squares &squares) {
  if (!squares.out)
    return;
  __shared__ double shared[kBlock];
  const int64_t begin = piece.begin, end = piece.end;
  float sum = 0;
  auto add = [&](float value) { sum = fmaf(value, value, sum); };
  const bool aligned = isAligned(x);
#pragma unroll
  for (int64_t i = begin + 4 * int64_t(threadIdx.x); i < begin + kPiece;
       i += 4 * kBlock) {
    if (aligned && i + 4 <= end) {
      const Floats<4> run = loadLanes<4, true>(x + i);
      for (int e = 0; e < 4; ++e)
        add(run[e]);
    } else {
      for (int e = 0; e < 4; ++e)
        if (i + e < end)
          add(loadLanes<1>(x + i + e));
    }
  }
  const double total = blockReduce(double(sum), shared, AddOp{});
  if (threadIdx.x != 0)
    return;
  if (piece.isOnly)
    *squares.out = float(total);
  else
    squares.partial[piece.index] = total;
}

/// The random bits by which a thread rounds a run of elements; `Count` values
/// for each element.
template <int Count> struct Chance {
  static constexpr int kRun = kRoundedElements;
  PhiloxWords words[Count];

  __device__ void draw(const Philox &draws, int64_t run) {
#pragma unroll
    for (int which = 0; which < Count; ++which)
      words[which] = draws.quad(uint64_t(kRoundedValues * run + which));
  }
  __device__ uint16_t rounded(int which, int element, float x) const {
    const uint32_t chance =
        words[which].w[element / 2] >> (element % 2 * 16) & 0xffffu;
    return uint16_t(stochasticBits(x, chance));
  }
  __device__ void store(int, int, float *p, float x) const { *p = x; }
  __device__ void store(int which, int element, bf16 *p, float x) const {
    p->bits = rounded(which, element, x);
  }
  /// A whole run, by accesses of 16 bytes.
  __device__ void storeRun(int, float *p, Floats<kRun> x) const {
    storeLanes<kRun, true>(p, x);
  }
  __device__ void storeRun(int which, bf16 *p, Floats<kRun> x) const {
    Lanes<uint16_t, kRun> bits;
#pragma unroll
    for (int e = 0; e < kRun; ++e)
      bits[e] = rounded(which, e, x[e]);
    storeRaw<kRun, true>(reinterpret_cast<uint16_t *>(p), bits);
  }
};

/// Without rounding.
template <> struct Chance<0> {
  static constexpr int kRun = 4;

  __device__ void draw(const Philox &, int64_t) {}
  __device__ void store(int, int, float *p, float x) const { *p = x; }
  __device__ void storeRun(int, float *p, Floats<kRun> x) const {
    storeLanes<kRun, true>(p, x);
  }
};

/// Calls run(chance, i) for the whole runs of the piece if `aligned`, and
/// one(chance, i, element of a run) for the other elements.
template <int Count, typename R, typename F>
__device__ void eachRun(const Piece &piece, int64_t stream, const int64_t *step,
                        bool aligned, R &&run, F &&one) {
  constexpr int kRun = Chance<Count>::kRun;
  const Philox draws = roundingDraws(stream, *step);
  const int64_t begin = piece.begin, end = piece.end;
  for (int64_t i = begin + int64_t(threadIdx.x) * kRun; i < end;
       i += kBlock * kRun) {
    Chance<Count> chance;
    chance.draw(draws, i / kRun);
    if (aligned && i + kRun <= end) {
      run(chance, i);
      continue;
    }
#pragma unroll
    for (int element = 0; element < kRun; ++element)
      if (i + element < end)
        one(chance, i + element, element);
  }
}

inline float *floats(void *p) { return static_cast<float *>(p); }
inline const float *floats(const void *p) {
  return static_cast<const float *>(p);
}
inline int64_t *longs(void *p) { return static_cast<int64_t *>(p); }
inline const int64_t *longs(const void *p) {
  return static_cast<const int64_t *>(p);
}

} // namespace
} // namespace tmc::cuda

#endif // TMC_RUNTIME_CUDA_UPDATES_H
