#include "test/unit/reference/Harness.h"

#include "dialects/train/Train.h"
#include "driver/pipeline/Dialects.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tmc::test;
using tmc::reference::Tensor;

uint64_t Random::next() {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::unique_ptr<MLIRContext> tmc::test::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->allowUnregisteredDialects(); // for the attributes named test.*
  return context;
}

OwningOpRef<ModuleOp> tmc::test::parseFile(MLIRContext &context,
                                           StringRef path) {
  return parseSourceFile<ModuleOp>((TMC_SOURCE_DIR "/" + path).str(), &context);
}

OwningOpRef<ModuleOp> tmc::test::parse(MLIRContext &context, StringRef text) {
  return parseSourceString<ModuleOp>(text, &context);
}

/// `count` numbers in [0, 1), shuffled, no two nearer than 1 / (2 count).
static std::vector<double> distinctUnits(int64_t count, Random &random) {
  std::vector<double> result(count);
  for (int64_t i = 0; i < count; ++i)
    result[i] = (i + 0.5 * random.unit()) / count;
  for (int64_t i = count - 1; i > 0; --i)
    std::swap(result[i], result[random.below(i + 1)]);
  return result;
}

SmallVector<Tensor> tmc::test::randomInputs(FunctionOpInterface function,
                                            Random &random) {
  int64_t floats = 0;
  for (Type type : function.getArgumentTypes())
    if (isa<FloatType>(cast<ShapedType>(type).getElementType()))
      floats += cast<ShapedType>(type).getNumElements();
  std::vector<double> units = distinctUnits(floats, random);
  auto nextUnit = units.begin();

  SmallVector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    Tensor tensor(cast<ShapedType>(type));
    // Numbers of a step (its seed and its number count from 1, the learning
    // rate is positive), moments of optimizers, a loss's scale and counts.
    bool scalar = train::roleOf(function, i) == train::Role::Scalar;
    bool positive = scalar || function.getArgAttr(i, "test.positive") ||
                    function.getArgAttr(i, train::TrainDialect::kSlot);
    for (double &value : tensor.floats)
      value = 4 * *nextUnit++ * (positive ? 0.5 : 1) + (positive ? 0.5 : -2);
    auto below = function.getArgAttrOfType<IntegerAttr>(i, "test.below");
    for (int64_t &value : tensor.ints) {
      if (tensor.element == reference::Element::I1)
        value = random.below(2);
      else if (below)
        value = random.below(below.getInt());
      else if (scalar ||
               (positive && tensor.element == reference::Element::I64))
        value = random.between(1, 8);
      else
        value = random.between(-3, 4);
    }
    if (function.getArgAttr(i, "test.first"))
      for (int64_t row = 0; row < tensor.size(); row += tensor.shape.back())
        tensor.ints[row] = 1;
    inputs.push_back(std::move(tensor));
  }
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto param = train::copiedArg(function, i)) {
      inputs[i].floats = inputs[*param].floats;
      inputs[i].roundToElement();
    }
  return inputs;
}

std::string tmc::test::compare(ArrayRef<Tensor> expected,
                               ArrayRef<Tensor> actual, double tolerance) {
  if (expected.size() != actual.size())
    return llvm::formatv("{0} tensors instead of {1}", actual.size(),
                         expected.size());
  for (auto [i, e, a] : llvm::enumerate(expected, actual)) {
    if (e.shape != a.shape || e.element != a.element)
      return llvm::formatv("tensor {0} has another type", i);
    double scale = 1;
    for (double value : e.floats)
      if (std::isfinite(value))
        scale = std::max(scale, std::fabs(value));
    for (int64_t j = 0; j < e.size(); ++j) {
      double want = e.number(j), got = a.number(j);
      if (want == got || std::fabs(want - got) <= tolerance * scale)
        continue;
      return llvm::formatv("tensor {0} has {1:E12} instead of {2:E12} at "
                           "element {3}, where {4:E2} may be",
                           i, got, want, j, tolerance * scale);
    }
  }
  return "";
}
