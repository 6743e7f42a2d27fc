// Spectrum.cpp - Fourier transforms.

#include "frontends/common/ops/Spectrum.h"
#include "frontends/common/ops/Shape.h"
#include "frontends/onnx/Model.h"
#include "frontends/onnx/Node.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// The number in input `i`.
static FailureOr<double> numberOf(Node &n, int i) {
  ASSIGN_OR_FAIL(Array array, n.array(i));
  if (array.size() != 1)
    return n.error("input " + Twine(i) + " has shape " + str(array.dims()));
  return array.floats()[0];
}

/// The integer in input `i`.
static FailureOr<int64_t> wholeOf(Node &n, int i) {
  ASSIGN_OR_FAIL(Array array, n.array(i));
  if (array.size() != 1 || isFloat(array.type()))
    return n.error("input " + Twine(i) + " is no whole number");
  return array.ints()[0];
}

static LogicalResult importDFT(Node &n) {
  const Val x = n.input(0);
  // Set 20 made the axis an input and changed its default.
  int64_t entry = n.opset < 20 ? n.intAttr("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) {
    ASSIGN_OR_FAIL(entry, wholeOf(n, 2));
  }
  Fourier how;
  ASSIGN_OR_FAIL(how.axis, n.axis(entry, x.rank()));
  how.inverse = n.intAttr("inverse", 0);
  how.oneSided = n.intAttr("onesided", 0);
  int64_t size = x.dims[how.axis];
  how.points = how.inverse && how.oneSided ? 2 * (size - 1) : size;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(how.points, wholeOf(n, 1));
  }
  return n.set(fourier(n, x, how));
}
static Register dft("DFT", importDFT);

static LogicalResult importSTFT(Node &n) {
  Val signal = n.input(0);
  const Val window = n.input(2);
  if (signal.rank() == 2) {
    ASSIGN_OR_FAIL(signal, unsqueeze(n, signal, {2}));
  }
  ASSIGN_OR_FAIL(int64_t step, wholeOf(n, 1));
  int64_t points = 0;
  if (n.has(3)) {
    ASSIGN_OR_FAIL(points, wholeOf(n, 3));
  } else if (window.rank() == 1) {
    points = window.dims[0];
  } else {
    return n.error("has neither a window nor a frame_length");
  }
  return n.set(
      shortFourier(n, signal, window, points, step, n.intAttr("onesided", 1)));
}
static Register stft("STFT", importSTFT);

static LogicalResult importMelWeightMatrix(Node &n) {
  MelScale mel;
  ASSIGN_OR_FAIL(mel.bands, wholeOf(n, 0));
  ASSIGN_OR_FAIL(mel.points, wholeOf(n, 1));
  ASSIGN_OR_FAIL(mel.rate, numberOf(n, 2));
  ASSIGN_OR_FAIL(mel.low, numberOf(n, 3));
  ASSIGN_OR_FAIL(mel.high, numberOf(n, 4));
  auto type = typeOfNumber(n.intAttr("output_datatype", 1));
  if (!type)
    return n.unsupported("weights of another type");
  return n.set(melWeights(n, mel, *type));
}
static Register melWeightMatrix("MelWeightMatrix", importMelWeightMatrix);
