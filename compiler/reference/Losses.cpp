// Losses.cpp - cross-entropy, alone and fused with its product. The chunk size
// of the fused op changes no number here.

#include "compiler/reference/Interpreter.h"
#include "dialects/nn/NN.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc::nn;
using namespace tmc::reference;

using Row = std::vector<double>;

static double logSumExp(const Row &row) {
  double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double value : row)
    sum += std::exp(value - largest);
  return largest + std::log(sum);
}

/// Row `r` of a matrix.
static Row rowOf(const Tensor &matrix, int64_t r) {
  auto begin = matrix.floats.begin() + r * matrix.shape[1];
  return Row(begin, begin + matrix.shape[1]);
}

/// Row `r` of x times the transpose of `table`.
static Row productRow(const Tensor &x, const Tensor &table, const Tensor *bias,
                      int64_t r) {
  int64_t width = x.shape[1];
  Row row(table.shape[0], 0.0);
  if (bias)
    row.assign(bias->floats.begin(), bias->floats.end());
  for (int64_t v = 0; v < table.shape[0]; ++v)
    for (int64_t c = 0; c < width; ++c)
      row[v] += x.floats[r * width + c] * table.floats[v * width + c];
  return row;
}

/// -1 in a row that doesn't count; failure if the label is no class.
template <typename OpTy>
static FailureOr<int64_t> labelOf(OpTy op, const Tensor &labels, int64_t r,
                                  int64_t classes) {
  int64_t label = labels.ints[r];
  if (label == int64_t(op.getIgnoreIndex()))
    return -1;
  if (label < 0 || label >= classes)
    return op.emitError("label ")
           << label << " of row " << r << " is outside [0, " << classes << ")";
  return label;
}

/// The number of classes in rows of `columns`.
template <typename OpTy> static int64_t classesOf(OpTy op, int64_t columns) {
  return op.getVocabulary() ? int64_t(*op.getVocabulary()) : columns;
}

/// Loss and log-sum-exp, where `logits(r)` is row r of the logits.
template <typename OpTy, typename F>
static LogicalResult crossEntropy(OpTy op, OpCall &call, int64_t columns,
                                  F logits) {
  const Tensor &labels = call.in(op.getLabels());
  const int64_t classes = classesOf(op, columns);
  double loss = 0;
  for (int64_t r = 0; r < labels.size(); ++r) {
    Row row = logits(r);
    row.resize(classes);
    double lse = call.out(1).floats[r] = logSumExp(row);
    FailureOr<int64_t> label = labelOf(op, labels, r, classes);
    if (failed(label))
      return failure();
    if (*label >= 0)
      loss += lse - row[*label];
  }
  call.out(0).floats[0] = call.in(op.getWeight()).floats[0] * loss;
  return success();
}

/// scale * (exp(row - lse) - onehot(label)), or zeros; zeros behind the
/// classes.
template <typename OpTy>
static FailureOr<Row> rowGradient(OpTy op, OpCall &call, int64_t r, double lse,
                                  Row row) {
  const int64_t classes = classesOf(op, row.size());
  FailureOr<int64_t> label = labelOf(op, call.in(op.getLabels()), r, classes);
  if (failed(label))
    return failure();
  if (*label < 0)
    return Row(row.size(), 0.0);
  double scale = call.in(op.getScale()).floats[0];
  for (auto [v, value] : llvm::enumerate(row))
    value = int64_t(v) < classes
                ? scale * (std::exp(value - lse) - (int64_t(v) == *label))
                : 0;
  return row;
}

namespace {

/// Writes dx = dlogits * table, dtable = transposed dlogits * x, dbias = the
/// sum of the rows of dlogits, to the op's results from `first` on.
struct LinearGradients {
  template <typename OpTy>
  LinearGradients(OpTy op, OpCall &call, int first)
      : x(call.factor(op.getX(), op.getProductType())),
        table(call.factor(op.getTable(), op.getProductType())),
        bias(op.getBias() ? &call.in(op.getBias()) : nullptr),
        dx(call.out(first)), dtable(call.out(first + 1)),
        dbias(bias ? &call.out(first + 2) : nullptr) {
    if (op.getAcc())
      dtable.floats = call.in(op.getAcc()).floats;
  }

  Row logits(int64_t r) const { return productRow(x, table, bias, r); }

  template <typename OpTy>
  LogicalResult add(OpTy op, OpCall &call, int64_t r, double lse, Row logits) {
    FailureOr<Row> row = rowGradient(op, call, r, lse, std::move(logits));
    if (failed(row))
      return failure();
    int64_t width = x.shape[1];
    for (int64_t v = 0; v < table.shape[0]; ++v) {
      if (dbias)
        dbias->floats[v] += (*row)[v];
      for (int64_t c = 0; c < width; ++c) {
        dx.floats[r * width + c] += (*row)[v] * table.floats[v * width + c];
        dtable.floats[v * width + c] += (*row)[v] * x.floats[r * width + c];
      }
    }
    return success();
  }

  const Tensor x, table, *bias;
  Tensor &dx, &dtable, *dbias;
};

} // namespace

void tmc::reference::addLosses(OpTable &table) {
  table.add<CrossEntropyOp>([](CrossEntropyOp op, OpCall &call) {
    const Tensor &logits = call.in(op.getLogits());
    return crossEntropy(op, call, logits.shape[1],
                        [&](int64_t r) { return rowOf(logits, r); });
  });

  table.add<CrossEntropyGradOp>(
      [](CrossEntropyGradOp op, OpCall &call) -> LogicalResult {
        const Tensor &logits = call.in(op.getLogits());
        for (int64_t r = 0; r < logits.shape[0]; ++r) {
          FailureOr<Row> row = rowGradient(
              op, call, r, call.in(op.getLse()).floats[r], rowOf(logits, r));
          if (failed(row))
            return failure();
          std::copy(row->begin(), row->end(),
                    call.out(0).floats.begin() + r * logits.shape[1]);
        }
        return success();
      });

  table.add<CrossEntropyWithGradOp>([](CrossEntropyWithGradOp op,
                                       OpCall &call) -> LogicalResult {
    const Tensor &logits = call.in(op.getLogits());
    double loss = 0;
    for (int64_t r = 0; r < logits.shape[0]; ++r) {
      Row row = rowOf(logits, r), classes = row;
      classes.resize(classesOf(op, row.size()));
      FailureOr<int64_t> label =
          labelOf(op, call.in(op.getLabels()), r, classes.size());
      if (failed(label))
        return failure();
      const double lse = logSumExp(classes);
      if (*label >= 0)
        loss += lse - classes[*label];
      FailureOr<Row> gradient = rowGradient(op, call, r, lse, std::move(row));
      if (failed(gradient))
        return failure();
      std::copy(gradient->begin(), gradient->end(),
                call.out(1).floats.begin() + r * logits.shape[1]);
    }
    call.out(0).floats[0] = call.in(op.getWeight()).floats[0] * loss;
    return success();
  });

  table.add<LinearCrossEntropyOp>([](LinearCrossEntropyOp op, OpCall &call) {
    const Tensor x = call.factor(op.getX(), op.getProductType());
    const Tensor table = call.factor(op.getTable(), op.getProductType());
    const Tensor *bias = op.getBias() ? &call.in(op.getBias()) : nullptr;
    return crossEntropy(op, call, table.shape[0], [&](int64_t r) {
      return productRow(x, table, bias, r);
    });
  });

  table.add<LinearCrossEntropyGradOp>(
      [](LinearCrossEntropyGradOp op, OpCall &call) -> LogicalResult {
        LinearGradients gradients(op, call, 0);
        for (int64_t r = 0; r < gradients.x.shape[0]; ++r)
          if (failed(gradients.add(op, call, r, call.in(op.getLse()).floats[r],
                                   gradients.logits(r))))
            return failure();
        return success();
      });

  table.add<LinearCrossEntropyWithGradOp>(
      [](LinearCrossEntropyWithGradOp op, OpCall &call) -> LogicalResult {
        LinearGradients gradients(op, call, 1);
        double loss = 0;
        for (int64_t r = 0; r < gradients.x.shape[0]; ++r) {
          Row row = gradients.logits(r);
          const int64_t classes = classesOf(op, row.size());
          double lse = logSumExp(Row(row.begin(), row.begin() + classes));
          FailureOr<int64_t> label =
              labelOf(op, call.in(op.getLabels()), r, classes);
          if (failed(label))
            return failure();
          if (*label >= 0)
            loss += lse - row[*label];
          if (failed(gradients.add(op, call, r, lse, std::move(row))))
            return failure();
        }
        call.out(0).floats[0] = call.in(op.getWeight()).floats[0] * loss;
        return success();
      });
}
