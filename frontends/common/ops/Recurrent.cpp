#include "frontends/common/ops/Recurrent.h"
#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/common/ops/PadConcatSplit.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/common/ops/Shape.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// A longer sequence would be a graph of millions of ops.
constexpr int64_t kMaxSteps = 4096;

namespace {
class Layer {
public:
  Layer(Site &s, const Recurrence &r, int64_t hidden)
      : s(s), r(r), hidden(hidden) {}

  /// Gate `i` of `x` [B, gates * H].
  FailureOr<Val> gate(const Val &x, int i) {
    return strided(s, x, 1, r.gates[i] * hidden, 1, hidden);
  }
  /// The rows of gate `i` in the state's weights, or in a bias.
  FailureOr<Val> rows(const Val &w, int i) {
    return w.isAbsent() ? w : strided(s, w, 0, r.gates[i] * hidden, 1, hidden);
  }
  FailureOr<Val> peephole(int i) {
    return strided(s, r.peepholes, 0, i * hidden, 1, hidden);
  }

  LogicalResult step(const Val &input, Val &state, Val &cell) {
    switch (r.kind) {
    case Recurrence::Gru:
      return gru(input, state);
    case Recurrence::Lstm:
      return lstm(input, state, cell);
    default:
      break;
    }
    ASSIGN_OR_FAIL(Val inner, linear(s, state, r.wState, r.bState));
    ASSIGN_OR_FAIL(Val both, add(s, {input, inner}));
    ASSIGN_OR_FAIL(state, r.kind == Recurrence::Relu
                              ? relu(s, both)
                              : hyperbolicTangent(s, both));
    return success();
  }

private:
  LogicalResult lstm(const Val &input, Val &state, Val &cell) {
    ASSIGN_OR_FAIL(Val inner, linear(s, state, r.wState, r.bState));
    ASSIGN_OR_FAIL(Val all, add(s, {input, inner}));
    SmallVector<Val> parts;
    for (int i = 0; i < 4; ++i) {
      ASSIGN_OR_FAIL(Val part, gate(all, i));
      parts.push_back(part);
    }
    bool peeps = !r.peepholes.isAbsent();
    // The peepholes of i and f read the old cell, that of o the new one.
    auto peep = [&](Val &part, int i) -> LogicalResult {
      ASSIGN_OR_FAIL(Val w, peephole(i));
      ASSIGN_OR_FAIL(Val seen, multiply(s, {w, cell}));
      ASSIGN_OR_FAIL(part, add(s, {part, seen}));
      return success();
    };
    if (peeps && (failed(peep(parts[0], 0)) || failed(peep(parts[1], 2))))
      return failure();
    ASSIGN_OR_FAIL(Val in, sigmoid(s, parts[0]));
    ASSIGN_OR_FAIL(Val forget, sigmoid(s, parts[1]));
    ASSIGN_OR_FAIL(Val fresh, hyperbolicTangent(s, parts[2]));
    ASSIGN_OR_FAIL(Val kept, multiply(s, {forget, cell}));
    ASSIGN_OR_FAIL(Val added, multiply(s, {in, fresh}));
    ASSIGN_OR_FAIL(cell, add(s, {kept, added}));
    if (peeps && failed(peep(parts[3], 1)))
      return failure();
    ASSIGN_OR_FAIL(Val out, sigmoid(s, parts[3]));
    ASSIGN_OR_FAIL(Val shown, hyperbolicTangent(s, cell));
    ASSIGN_OR_FAIL(state, multiply(s, {out, shown}));
    return success();
  }

  /// state' = (1 - z) n + z state.
  LogicalResult gru(const Val &input, Val &state) {
    ASSIGN_OR_FAIL(Val inner, linear(s, state, r.wState, r.bState));
    SmallVector<Val> seen, held;
    for (int i = 0; i < 3; ++i) {
      ASSIGN_OR_FAIL(Val a, gate(input, i));
      ASSIGN_OR_FAIL(Val b, gate(inner, i));
      seen.push_back(a);
      held.push_back(b);
    }
    ASSIGN_OR_FAIL(Val resets, add(s, {seen[0], held[0]}));
    ASSIGN_OR_FAIL(resets, sigmoid(s, resets));
    ASSIGN_OR_FAIL(Val keeps, add(s, {seen[1], held[1]}));
    ASSIGN_OR_FAIL(keeps, sigmoid(s, keeps));
    Val inside;
    if (r.resetAfter) {
      ASSIGN_OR_FAIL(inside, multiply(s, {resets, held[2]}));
    } else {
      ASSIGN_OR_FAIL(Val reset, multiply(s, {resets, state}));
      ASSIGN_OR_FAIL(Val w, rows(r.wState, 2));
      ASSIGN_OR_FAIL(Val bias, rows(r.bState, 2));
      ASSIGN_OR_FAIL(inside, linear(s, reset, w, bias));
    }
    ASSIGN_OR_FAIL(Val fresh, add(s, {seen[2], inside}));
    ASSIGN_OR_FAIL(fresh, hyperbolicTangent(s, fresh));
    ASSIGN_OR_FAIL(Val way, subtract(s, {state, fresh}));
    ASSIGN_OR_FAIL(way, multiply(s, {keeps, way}));
    ASSIGN_OR_FAIL(state, add(s, {fresh, way}));
    return success();
  }

  Site &s;
  const Recurrence &r;
  int64_t hidden;
};
} // namespace

FailureOr<Recurrent> tmc::frontend::recur(Site &s, const Recurrence &r) {
  int64_t gates = r.kind == Recurrence::Lstm  ? 4
                  : r.kind == Recurrence::Gru ? 3
                                              : 1;
  bool fits = r.x.rank() == 3 && r.wInput.rank() == 2 && r.wState.rank() == 2 &&
              isFloat(r.x.type);
  int64_t hidden = fits ? r.wState.dims[1] : 0;
  fits = fits && r.wInput.dims == Dims{gates * hidden, r.x.dims[2]} &&
         r.wState.dims[0] == gates * hidden;
  if (!fits)
    return s.error("inputs of shape " + str(r.x.dims) + " and weights of " +
                   str(r.wInput.dims) + " and " + str(r.wState.dims));
  int64_t steps = r.x.dims[0], batch = r.x.dims[1];
  if (steps < 1 || steps > kMaxSteps)
    return s.unsupported("a sequence of " + Twine(steps) + " steps");

  Recurrent result;
  Val zeros(Array::splat(r.x.type, {batch, hidden}, 0));
  result.state = r.state.isAbsent() ? zeros : r.state;
  result.cell = r.cell.isAbsent() ? zeros : r.cell;
  for (const Val *v : {&result.state, &result.cell})
    if (v->dims != zeros.dims)
      return s.error("a state of shape " + str(v->dims) + " where " +
                     str(zeros.dims) + " is due");
  ASSIGN_OR_FAIL(Val all, linear(s, r.x, r.wInput, r.bInput));
  SmallVector<Val> outputs(steps);
  Layer layer(s, r, hidden);
  for (int64_t i = 0; i < steps; ++i) {
    int64_t at = r.reverse ? steps - 1 - i : i;
    ASSIGN_OR_FAIL(Val input, strided(s, all, 0, at, 1, 1));
    ASSIGN_OR_FAIL(input, reshaped(s, input, {batch, gates * hidden}));
    if (failed(layer.step(input, result.state, result.cell)))
      return failure();
    ASSIGN_OR_FAIL(outputs[at], unsqueeze(s, result.state, {0}));
  }
  ASSIGN_OR_FAIL(result.outputs, concat(s, outputs, 0));
  return result;
}
