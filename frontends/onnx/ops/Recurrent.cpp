// Recurrent.cpp - RNN, GRU and LSTM: one layer, in one direction or both.

#include "frontends/common/ops/Recurrent.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Entry `i` along dimension 0 of an optional input.
static FailureOr<Val> entry(Node &n, const Val &v, int64_t i) {
  if (v.isAbsent())
    return v;
  if (v.rank() == 0 || i >= v.dims[0])
    return n.error("has an input of shape " + str(v.dims));
  ASSIGN_OR_FAIL(Val row, strided(n, v, 0, i, 1, 1));
  return squeeze(n, row, Dims{0});
}

/// The activations must be the operator's own.
static LogicalResult checkActivations(Node &n, Recurrence::Kind &kind,
                                      int64_t directions) {
  n.ignore({"activation_alpha", "activation_beta"}); // These take none.
  const auto *a = n.attribute("activations");
  if (!a)
    return success();
  SmallVector<std::string> own{"Sigmoid", "Tanh"};
  if (kind == Recurrence::Lstm)
    own.push_back("Tanh");
  if (kind == Recurrence::Tanh) {
    own = {"Tanh"};
    if (a->strings_size() && StringRef(a->strings(0)).lower() == "relu") {
      kind = Recurrence::Relu;
      own = {"Relu"};
    }
  }
  bool same = a->strings_size() == directions * int64_t(own.size());
  for (int i = 0; same && i < a->strings_size(); ++i)
    same = StringRef(a->strings(i)).equals_insensitive(own[i % own.size()]);
  return same ? success()
              : n.unsupported("activations other than the operator's own");
}

static LogicalResult layer(Node &n, Recurrence::Kind kind) {
  Val x = n.input(0);
  if (x.rank() != 3 || n.input(1).rank() != 3 || n.input(2).rank() != 3)
    return n.error("inputs of shape " + str(x.dims));
  n.ignore({"hidden_size"}); // The weights determine it.
  std::string direction = n.stringAttr("direction", "forward");
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (failed(checkActivations(n, kind, directions)))
    return failure();
  if (n.attribute("clip") || n.intAttr("input_forget", 0))
    return n.unsupported("clipped or coupled gates");
  bool batchFirst = n.intAttr("layout", 0);
  Val states = n.input(5), cells = n.input(6);
  if (batchFirst) {
    for (Val *v : {&x, &states, &cells})
      if (!v->isAbsent()) {
        ASSIGN_OR_FAIL(*v, transpose(n, *v, {1, 0, 2}));
      }
  }
  if (n.has(4)) {
    ASSIGN_OR_FAIL(Dims lengths, n.ints(4));
    for (int64_t length : lengths)
      if (length != x.dims[0])
        return n.unsupported("sequences of several lengths");
  }
  SmallVector<Val> outputs, lastStates, lastCells;
  for (int64_t i = 0; i < directions; ++i) {
    Recurrence r;
    r.kind = kind;
    r.x = x;
    ASSIGN_OR_FAIL(r.wInput, entry(n, n.input(1), i));
    ASSIGN_OR_FAIL(r.wState, entry(n, n.input(2), i));
    ASSIGN_OR_FAIL(Val biases, entry(n, n.input(3), i));
    if (!biases.isAbsent()) {
      int64_t half = biases.dims[0] / 2;
      ASSIGN_OR_FAIL(r.bInput, strided(n, biases, 0, 0, 1, half));
      ASSIGN_OR_FAIL(r.bState, strided(n, biases, 0, half, 1, half));
    }
    ASSIGN_OR_FAIL(r.state, entry(n, states, i));
    if (kind == Recurrence::Lstm) {
      ASSIGN_OR_FAIL(r.cell, entry(n, cells, i));
      ASSIGN_OR_FAIL(r.peepholes, entry(n, n.input(7), i));
    }
    r.reverse = i == 1 || direction == "reverse";
    // ONNX orders an LSTM's gates as i, o, f, g, and a GRU's as z, r, n.
    r.gates = kind == Recurrence::Lstm  ? Dims{0, 2, 3, 1}
              : kind == Recurrence::Gru ? Dims{1, 0, 2}
                                        : Dims{0};
    r.resetAfter = n.intAttr("linear_before_reset", 0);
    ASSIGN_OR_FAIL(Recurrent done, recur(n, r));
    int64_t axis = batchFirst ? 2 : 1;
    Val y = done.outputs;
    if (batchFirst) {
      ASSIGN_OR_FAIL(y, transpose(n, y, {1, 0, 2}));
    }
    ASSIGN_OR_FAIL(y, unsqueeze(n, y, {axis}));
    outputs.push_back(y);
    for (auto [list, last] : {std::pair(&lastStates, done.state),
                              std::pair(&lastCells, done.cell)}) {
      ASSIGN_OR_FAIL(Val wide, unsqueeze(n, last, {batchFirst ? 1 : 0}));
      list->push_back(wide);
    }
  }
  int64_t axis = batchFirst ? 1 : 0;
  ASSIGN_OR_FAIL(Val y, concat(n, outputs, batchFirst ? 2 : 1));
  ASSIGN_OR_FAIL(Val last, concat(n, lastStates, axis));
  if (failed(n.set(0, y)) || failed(n.set(1, last)))
    return failure();
  if (kind != Recurrence::Lstm)
    return success();
  ASSIGN_OR_FAIL(Val lastCell, concat(n, lastCells, axis));
  return n.set(2, lastCell);
}

static LogicalResult importLstm(Node &n) { return layer(n, Recurrence::Lstm); }
static Register lstm("LSTM", importLstm);
static LogicalResult importGru(Node &n) { return layer(n, Recurrence::Gru); }
static Register gru("GRU", importGru);
static LogicalResult importRnn(Node &n) { return layer(n, Recurrence::Tanh); }
static Register rnn("RNN", importRnn);
