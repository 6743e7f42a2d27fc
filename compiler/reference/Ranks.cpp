// Ranks.cpp - ops of the ranks of a mesh, and functions run on all of them.

#include "dialects/nn/Ranks.h"
#include "compiler/reference/Interpreter.h"

#include <condition_variable>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace tmc;
using namespace tmc::nn;
using namespace tmc::reference;

/// Adds element `from` of `source` to element `to` of `sum`.
static void add(Tensor &sum, int64_t to, const Tensor &source, int64_t from) {
  if (sum.isFloat())
    sum.floats[to] += source.floats[from];
  else
    sum.ints[to] += source.ints[from];
}

/// Writes shard `place` of `whole`, of `size` elements, from element `at` of
/// `to` on. Padding stays zero.
static void copyShard(Tensor &to, int64_t at, int64_t size, const Tensor &whole,
                      int64_t place) {
  for (int64_t i = 0; i < size && place * size + i < whole.size(); ++i)
    to.set(at + i, whole, place * size + i);
}

/// Calls visit(rank, at, element) for each element of each row of `op`'s table
/// that ranks look up: it is element `at` of the rank's rows and `element` of
/// the table.
template <typename OpTy, typename Visit>
static LogicalResult eachRowElement(OpTy op, const Tensor &ids, Visit &&visit) {
  auto table = cast<RankedTensorType>(op.getTable());
  const int64_t width = llvm::product_of(table.getShape().drop_front());
  const int64_t rows = ids.size() / int64_t(op.getRanks());
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.ints[i];
    if (id < 0 || id >= table.getDimSize(0))
      return op.emitError("id ")
             << id << " at position " << i << " is outside [0, "
             << table.getDimSize(0) << ")";
    for (int64_t j = 0; j < width; ++j)
      visit(i / rows, i % rows * width + j, id * width + j);
  }
  return success();
}

void tmc::reference::addRanks(OpTable &table) {
  table.add<SumOverOp>([](SumOverOp op, OpCall &call) -> LogicalResult {
    FailureOr<std::vector<Tensor>> all = call.fromRanks(
        runtimeAxis(op.getAxis()), op.getRanks(), call.in(op.getInput()));
    if (failed(all))
      return failure();
    for (const Tensor &each : *all)
      for (int64_t i = 0; i < each.size(); ++i)
        add(call.out(0), i, each, i);
    return success();
  });
  table.add<SpreadOp>([](SpreadOp op, OpCall &call) {
    call.out(0) = call.in(op.getInput());
    return success();
  });
  table.add<ExchangeOp>([](ExchangeOp op, OpCall &call) -> LogicalResult {
    tmc::Axis axis = runtimeAxis(op.getAxis());
    FailureOr<std::vector<Tensor>> all =
        call.fromRanks(axis, op.getRanks(), call.in(op.getInput()));
    if (failed(all))
      return failure();
    const int64_t piece = call.out(0).size() / int64_t(op.getRanks());
    for (auto [r, each] : llvm::enumerate(*all))
      copyShard(call.out(0), r * piece, piece, each, call.placeOn(axis));
    return success();
  });
  table.add<SumPiecesOp>([](SumPiecesOp op, OpCall &call) {
    const Tensor &input = call.in(op.getInput());
    Tensor &out = call.out(0);
    for (int64_t i = 0; i < input.size(); ++i)
      add(out, i % out.size(), input, i);
    return success();
  });
  table.add<GatherOp>([](GatherOp op, OpCall &call) -> LogicalResult {
    FailureOr<std::vector<Tensor>> all = call.fromRanks(
        runtimeAxis(op.getAxis()), op.getRanks(), call.in(op.getInput()));
    if (failed(all))
      return failure();
    Tensor &out = call.out(0);
    int64_t at = 0;
    for (const Tensor &each : *all)
      for (int64_t i = 0; i < each.size() && at < out.size(); ++i)
        out.set(at++, each, i);
    return success();
  });
  table.add<ShardOfOp>([](ShardOfOp op, OpCall &call) -> LogicalResult {
    Tensor &out = call.out(0);
    copyShard(out, 0, out.size(), call.in(op.getInput()),
              call.placeOn(runtimeAxis(op.getAxis())));
    return success();
  });
  table.add<EmbeddingPiecesOp>(
      [](EmbeddingPiecesOp op, OpCall &call) -> LogicalResult {
        const Tensor &shard = call.in(op.getShard());
        Tensor &out = call.out(0);
        const int64_t first =
            call.placeOn(runtimeAxis(op.getAxis())) * shard.size();
        const int64_t piece = out.size() / int64_t(op.getRanks());
        return eachRowElement(op, call.in(op.getIds()),
                              [&](int64_t rank, int64_t at, int64_t element) {
                                const int64_t own = element - first,
                                              to = rank * piece + at;
                                if (own >= 0 && own < shard.size())
                                  out.set(to, shard, own);
                                else
                                  out.floats[to] = -0.0;
                              });
      });
  table.add<EmbeddingGradShardOp>([](EmbeddingGradShardOp op,
                                     OpCall &call) -> LogicalResult {
    const Tensor &grad = call.in(op.getGrad());
    Tensor &out = call.out(0);
    if (const Tensor *acc = call.inOrNull(op.getAcc()))
      out.floats = acc->floats;
    const int64_t first = call.placeOn(runtimeAxis(op.getAxis())) * out.size();
    const int64_t each = grad.size() / int64_t(op.getRanks());
    return eachRowElement(op, call.in(op.getIds()),
                          [&](int64_t rank, int64_t at, int64_t element) {
                            const int64_t own = element - first;
                            if (own >= 0 && own < out.size())
                              out.floats[own] += grad.floats[rank * each + at];
                          });
  });
}

namespace {

/// The ranks take turns: each runs from one meeting to the next. All run the
/// same program, so a meeting is over when each has come.
class Table {
public:
  explicit Table(const Mesh &mesh)
      : mesh(mesh), brought(mesh.ranks()), runs(mesh.ranks(), 1) {}

  /// Waits until it is the rank's turn.
  void begin(int rank) {
    std::unique_lock lock(mutex);
    moved.wait(lock, [&] { return turn == rank; });
  }
  /// A rank that fails or never comes breaks all later meetings.
  void end(int rank, bool isFine) {
    std::lock_guard lock(mutex);
    isBroken |= !isFine || present != 0;
    runs[rank] = 0;
    pass(rank);
  }

  std::vector<Tensor> meet(int rank, tmc::Axis axis, int64_t ranks,
                           const Tensor &mine) {
    std::unique_lock lock(mutex);
    const int64_t meeting = over;
    isBroken |= llvm::is_contained(runs, 0);
    brought[rank] = mine;
    if (++present == mesh.ranks()) {
      lying = std::exchange(brought, std::vector<Tensor>(mesh.ranks()));
      present = 0;
      ++over;
    }
    pass(rank);
    moved.wait(lock, [&] { return turn == rank; });
    std::vector<Tensor> all;
    if (isBroken || over == meeting || mesh.size(axis) != ranks)
      return all;
    for (int member : mesh.group(axis, rank))
      all.push_back(lying[member]);
    return all;
  }

private:
  void pass(int rank) {
    for (int64_t i = 1; i <= mesh.ranks(); ++i) {
      turn = int((rank + i) % mesh.ranks());
      if (runs[turn])
        break;
    }
    moved.notify_all();
  }

  const Mesh &mesh;
  std::mutex mutex;
  std::condition_variable moved;
  int turn = 0;
  std::vector<Tensor> brought, lying; // By rank.
  std::vector<char> runs;             // By rank.
  int64_t present = 0;                // Ranks that have come to the meeting.
  int64_t over = 0;                   // Meetings.
  bool isBroken = false;
};

class Seat final : public Meetings {
public:
  Seat(Table &table, const Mesh &mesh, int rank)
      : table(table), mesh(mesh), rank(rank) {}
  int64_t place(tmc::Axis axis) const override {
    return mesh.place(axis, rank);
  }
  std::vector<Tensor> exchange(tmc::Axis axis, int64_t ranks,
                               const Tensor &mine) override {
    return table.meet(rank, axis, ranks, mine);
  }

private:
  Table &table;
  const Mesh &mesh;
  int rank;
};

} // namespace

FailureOr<std::vector<SmallVector<Tensor>>>
tmc::reference::interpretRanks(Operation *function, const Mesh &mesh,
                               std::vector<SmallVector<Tensor>> inputs,
                               const InterpreterOptions &options) {
  Table table(mesh);
  std::vector<SmallVector<Tensor>> results(mesh.ranks());
  std::vector<char> isFine(mesh.ranks());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < int(mesh.ranks()); ++rank)
    threads.emplace_back([&, rank] {
      table.begin(rank);
      Seat seat(table, mesh, rank);
      InterpreterOptions own = options;
      own.meetings = &seat;
      FailureOr<SmallVector<Tensor>> done =
          interpret(function, std::move(inputs[rank]), own);
      isFine[rank] = succeeded(done);
      if (isFine[rank])
        results[rank] = std::move(*done);
      table.end(rank, isFine[rank]);
    });
  for (std::thread &thread : threads)
    thread.join();
  if (llvm::is_contained(isFine, 0))
    return failure();
  return results;
}
