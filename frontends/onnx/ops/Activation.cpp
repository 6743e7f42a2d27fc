// Activation.cpp - activation functions.

#include "frontends/common/ops/Activation.h"
#include "frontends/common/ops/Elementary.h"
#include "frontends/common/ops/Pointwise.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Registers `NAME` as a builder of the first input.
#define TMC_ACTIVATION(NAME, ...)                                              \
  static LogicalResult import##NAME(Node &n) {                                 \
    const Val x = n.input(0);                                                  \
    return n.set(__VA_ARGS__);                                                 \
  }                                                                            \
  static Register register##NAME(#NAME, import##NAME)

TMC_ACTIVATION(Relu, relu(n, x));
TMC_ACTIVATION(Sigmoid, sigmoid(n, x));
TMC_ACTIVATION(Swish, swish(n, x, n.floatAttr("alpha", 1)));
TMC_ACTIVATION(Gelu, gelu(n, x, n.stringAttr("approximate", "none") == "tanh"));
TMC_ACTIVATION(LeakyRelu, leakyRelu(n, x, n.floatAttr("alpha", 0.01)));
TMC_ACTIVATION(PRelu, prelu(n, x, n.input(1)));
TMC_ACTIVATION(Elu, exponentialUnit(n, x, n.floatAttr("alpha", 1), 1));
TMC_ACTIVATION(
    Selu, exponentialUnit(n, x, n.floatAttr("alpha", 1.67326319217681884765625),
                          n.floatAttr("gamma", 1.05070102214813232421875)));
TMC_ACTIVATION(Softplus, softplus(n, x));
TMC_ACTIVATION(Mish, mish(n, x));
TMC_ACTIVATION(Softsign, softsign(n, x));
TMC_ACTIVATION(HardSigmoid, hardSigmoid(n, x, n.floatAttr("alpha", 0.2),
                                        n.floatAttr("beta", 0.5)));
TMC_ACTIVATION(HardSwish, hardSwish(n, x));
TMC_ACTIVATION(Celu, celu(n, x, n.floatAttr("alpha", 1)));
TMC_ACTIVATION(ThresholdedRelu, thresholded(n, x, n.floatAttr("alpha", 1), 0));
TMC_ACTIVATION(Shrink,
               shrunk(n, x, n.floatAttr("lambd", 0.5), n.floatAttr("bias", 0)));

static LogicalResult importSwiGlu(Node &n) {
  ASSIGN_OR_FAIL(Val gate, swish(n, n.input(0), n.floatAttr("alpha", 1)));
  return n.set(multiply(n, {gate, n.input(1)}));
}
static Register swiGlu("SwiGLU", importSwiGlu);

/// A bound of Clip: a scalar that is known at compile time, or nothing.
static FailureOr<std::optional<double>> bound(Node &n, int i) {
  if (!n.has(i))
    return std::optional<double>();
  ASSIGN_OR_FAIL(Array array, n.array(i));
  if (array.size() != 1)
    return n.error("a bound of shape " + str(array.dims()));
  return std::optional<double>(array.floats()[0]);
}

static LogicalResult importClip(Node &n) {
  ASSIGN_OR_FAIL(std::optional<double> low, bound(n, 1));
  ASSIGN_OR_FAIL(std::optional<double> high, bound(n, 2));
  return n.set(clamp(n, n.input(0), low, high));
}
static Register clip("Clip", importClip);
