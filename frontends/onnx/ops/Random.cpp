// Random.cpp - dropout, from counter-based random numbers.

#include "frontends/onnx/Importer.h"
#include "frontends/onnx/ops/Pointwise.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::onnx_import;

/// Uniform numbers of shape `dims`, keyed by sample: dimension 0 of what
/// nn.random makes must be a whole number of rows per sample.
static FailureOr<Value> uniform(Node &n, ArrayRef<int64_t> dims) {
  Value seed = n.importer.seed(), samples = n.importer.samples();
  if (!seed || !samples)
    return failure();
  Type element = n.b.getF32Type();
  int64_t batch = n.importer.batchSize(), count = 1;
  for (int64_t dim : dims)
    count *= dim;
  if (count % batch)
    return n.unsupported("random numbers of shape " + str(dims) +
                         " for a batch of " + Twine(batch));
  Dims drawn(dims);
  if (dims.empty() || dims[0] % batch)
    drawn = {count};
  Value u = nn::RandomOp::create(n.b, n.loc, n.tensorType(drawn, element), seed,
                                 samples, n.importer.nextStream());
  return n.reshape(u, dims);
}

static LogicalResult importDropout(Node &n) {
  const Val in = n.input(0);
  double p = 0.5;
  if (n.has(1)) {
    ASSIGN_OR_FAIL(Array ratio, n.array(1));
    if (ratio.size() != 1)
      return n.error("a ratio of shape " + str(ratio.dims()));
    p = shortest(ratio.floats()[0]);
  }
  bool training = false;
  if (n.has(2)) {
    ASSIGN_OR_FAIL(Dims flag, n.ints(2));
    training = flag.size() == 1 && flag[0];
  }
  if (!(p >= 0 && p <= 1))
    return n.error("a ratio of " + std::to_string(p));
  if (!training || p == 0) {
    if (failed(n.set(in)))
      return failure();
    return n.isUsed(1)
               ? n.set(1, Val(Array::splatInt(ElementType::Bool, in.dims, 1)))
               : success();
  }
  if (!isFloat(in.type))
    return n.unsupported("elements of type " + nameOf(in.type));
  ASSIGN_OR_FAIL(Value x, n.value(0));
  ASSIGN_OR_FAIL(Value u, uniform(n, in.dims));
  Value kept = arith::CmpFOp::create(n.b, n.loc, arith::CmpFPredicate::OGE, u,
                                     like(n.b, n.loc, u, p));
  Value scaled = p < 1 ? nn::scale(n.b, n.loc, x, 1 / (1 - p)) : x;
  Value y =
      arith::SelectOp::create(n.b, n.loc, kept, scaled, like(n.b, n.loc, x, 0));
  if (failed(n.set(y)))
    return failure();
  return n.isUsed(1) ? n.set(1, Val(kept)) : success();
}
static Register dropout("Dropout", importDropout);
