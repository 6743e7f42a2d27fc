// Lookups.cpp - reads rows of a table, and adds rows into one.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

/// The id `ids[i]`, or failure if the table of `rows` has no such row.
template <typename OpTy>
static FailureOr<int64_t> rowOf(OpTy op, const Tensor &ids, int64_t i,
                                int64_t rows) {
  int64_t id = ids.ints[i];
  if (id < 0 || id >= rows)
    return op.emitError("id ")
           << id << " at position " << i << " is outside [0, " << rows << ")";
  return id;
}

void tmc::reference::addLookups(OpTable &table) {
  table.add<EmbeddingOp>([](EmbeddingOp op, OpCall &call) -> LogicalResult {
    const Tensor &rows = call.in(op.getTable());
    const Tensor &ids = call.in(op.getIds());
    int64_t width = numElements(ArrayRef<int64_t>(rows.shape).drop_front());
    for (int64_t i = 0; i < ids.size(); ++i) {
      FailureOr<int64_t> row = rowOf(op, ids, i, rows.shape[0]);
      if (failed(row))
        return failure();
      for (int64_t j = 0; j < width; ++j)
        call.out(0).set(i * width + j, rows, *row * width + j);
    }
    return success();
  });

  table.add<EmbeddingGradOp>(
      [](EmbeddingGradOp op, OpCall &call) -> LogicalResult {
        const Tensor &ids = call.in(op.getIds());
        const Tensor &grad = call.in(op.getGrad());
        Tensor &out = call.out(0);
        if (const Tensor *acc = call.inOrNull(op.getAcc()))
          out.floats = acc->floats;
        int64_t width = numElements(ArrayRef<int64_t>(out.shape).drop_front());
        for (int64_t i = 0; i < ids.size(); ++i) {
          FailureOr<int64_t> row = rowOf(op, ids, i, out.shape[0]);
          if (failed(row))
            return failure();
          for (int64_t j = 0; j < width; ++j)
            out.floats[*row * width + j] += grad.floats[i * width + j];
        }
        return success();
      });
}
