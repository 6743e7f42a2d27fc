// Recurrent.cpp - torch.nn's recurrent layers, stacked and in both directions.

#include "frontends/common/ops/Recurrent.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Random.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/torch/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

static FailureOr<Val> part(Call &c, const Val &states, int64_t i) {
  if (states.isAbsent())
    return states;
  if (states.rank() != 3 || i >= states.dims[0])
    return c.error("has states of shape " + str(states.dims));
  ASSIGN_OR_FAIL(Val state, strided(c, states, 0, i, 1, 1));
  return squeeze(c, state, Dims{0});
}

static LogicalResult layers(Call &c, Recurrence::Kind kind) {
  if (c.has("batch_sizes"))
    return c.unsupported("packed sequences");
  bool isLstm = kind == Recurrence::Lstm;
  Val states, cells;
  if (isLstm) {
    ASSIGN_OR_FAIL(SmallVector<Val> both, c.tensors("hx"));
    if (both.size() != 2)
      return c.error("has " + Twine(both.size()) + " states");
    states = both[0];
    cells = both[1];
  } else {
    states = c.tensor("hx");
  }
  ASSIGN_OR_FAIL(SmallVector<Val> params, c.tensors("params"));
  ASSIGN_OR_FAIL(bool hasBiases, c.flag("has_biases", true));
  ASSIGN_OR_FAIL(int64_t count, c.integer("num_layers", 1));
  ASSIGN_OR_FAIL(double share, c.number("dropout", 0));
  ASSIGN_OR_FAIL(bool train, c.flag("train", false));
  ASSIGN_OR_FAIL(bool isBoth, c.flag("bidirectional", false));
  ASSIGN_OR_FAIL(bool batchFirst, c.flag("batch_first", false));
  int64_t directions = isBoth ? 2 : 1, each = hasBiases ? 4 : 2;
  if (count < 1 ||
      static_cast<int64_t>(params.size()) != count * directions * each)
    return c.unsupported(Twine(params.size()) + " weights for " + Twine(count) +
                         " layers");
  Val x = c.tensor("input");
  if (x.rank() != 3)
    return c.unsupported("inputs of shape " + str(x.dims));
  if (batchFirst) {
    ASSIGN_OR_FAIL(x, transpose(c, x, {1, 0, 2}));
  }
  SmallVector<Val> lastStates, lastCells;
  for (int64_t layer = 0; layer < count; ++layer) {
    SmallVector<Val> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      int64_t at = layer * directions + direction;
      ArrayRef<Val> weights = ArrayRef<Val>(params).slice(at * each, each);
      Recurrence r;
      r.kind = kind;
      r.x = x;
      r.wInput = weights[0];
      r.wState = weights[1];
      if (hasBiases) {
        r.bInput = weights[2];
        r.bState = weights[3];
      }
      ASSIGN_OR_FAIL(r.state, part(c, states, at));
      ASSIGN_OR_FAIL(r.cell, part(c, cells, at));
      r.reverse = direction == 1;
      r.gates = {0, 1, 2, 3};
      ASSIGN_OR_FAIL(Recurrent done, recur(c, r));
      outputs.push_back(done.outputs);
      lastStates.push_back(done.state);
      lastCells.push_back(done.cell);
    }
    ASSIGN_OR_FAIL(x, concat(c, outputs, 2));
    if (layer + 1 < count) {
      ASSIGN_OR_FAIL(Dropout dropped, dropout(c, x, train ? share : 0));
      x = dropped.y;
    }
  }
  if (batchFirst) {
    ASSIGN_OR_FAIL(x, transpose(c, x, {1, 0, 2}));
  }
  if (failed(c.set(0, x)))
    return failure();
  if (c.isUsed(1)) {
    ASSIGN_OR_FAIL(Val last, stacked(c, lastStates, 0));
    if (failed(c.set(1, last)))
      return failure();
  }
  if (isLstm && c.isUsed(2)) {
    ASSIGN_OR_FAIL(Val last, stacked(c, lastCells, 0));
    return c.set(2, last);
  }
  return success();
}

static LogicalResult importLstm(Call &c) { return layers(c, Recurrence::Lstm); }
static Register lstm("lstm", importLstm);
static LogicalResult importGru(Call &c) { return layers(c, Recurrence::Gru); }
static Register gru("gru", importGru);
static LogicalResult importTanh(Call &c) { return layers(c, Recurrence::Tanh); }
static Register rnnTanh("rnn_tanh", importTanh);
static LogicalResult importRelu(Call &c) { return layers(c, Recurrence::Relu); }
static Register rnnRelu("rnn_relu", importRelu);

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

static LogicalResult cell(Call &c, Recurrence::Kind kind) {
  Recurrence r;
  r.kind = kind;
  bool isLstm = kind == Recurrence::Lstm;
  if (isLstm) {
    ASSIGN_OR_FAIL(SmallVector<Val> both, c.tensors("hx"));
    if (both.size() != 2)
      return c.error("has " + Twine(both.size()) + " states");
    r.state = both[0];
    r.cell = both[1];
  } else {
    r.state = c.tensor("hx");
  }
  if (c.tensor("input").rank() != 2)
    return c.unsupported("inputs of shape " + str(c.tensor("input").dims));
  ASSIGN_OR_FAIL(r.x, unsqueeze(c, c.tensor("input"), {0}));
  r.wInput = c.tensor("w_ih");
  r.wState = c.tensor("w_hh");
  r.bInput = c.tensor("b_ih");
  r.bState = c.tensor("b_hh");
  r.gates = {0, 1, 2, 3};
  ASSIGN_OR_FAIL(Recurrent done, recur(c, r));
  if (isLstm && failed(c.set(1, done.cell)))
    return failure();
  return c.set(done.state);
}
static LogicalResult importLstmCell(Call &c) {
  return cell(c, Recurrence::Lstm);
}
static Register lstmCell("lstm_cell", importLstmCell);
static LogicalResult importGruCell(Call &c) { return cell(c, Recurrence::Gru); }
static Register gruCell("gru_cell", importGruCell);
static LogicalResult importTanhCell(Call &c) {
  return cell(c, Recurrence::Tanh);
}
static Register tanhCell("rnn_tanh_cell", importTanhCell);
static LogicalResult importReluCell(Call &c) {
  return cell(c, Recurrence::Relu);
}
static Register reluCell("rnn_relu_cell", importReluCell);
