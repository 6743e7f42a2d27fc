#include "frontends/common/ops/Random.h"
#include "frontends/common/Importer.h"

#include <cmath>

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

/// Dimension 0 of an nn.random result must be a whole number of rows per
/// sample.
FailureOr<Value> tmc::frontend::uniform(Site &s, ArrayRef<int64_t> dims) {
  Value seed = s.importer.forward.seed(),
        samples = s.importer.forward.samples();
  if (!seed || !samples)
    return failure();
  Type element = s.b.getF32Type();
  int64_t batch = s.importer.forward.batch, count = 1;
  for (int64_t dim : dims)
    count *= dim;
  if (count % batch)
    return s.unsupported("random numbers of shape " + str(dims) +
                         " for a batch of " + Twine(batch));
  Dims drawn(dims);
  if (dims.empty() || dims[0] % batch)
    drawn = {count};
  Value u = nn::RandomOp::create(s.b, s.loc, s.tensorType(drawn, element), seed,
                                 samples, s.importer.forward.nextStream());
  return s.reshape(u, dims);
}

FailureOr<Value> tmc::frontend::normal(Site &s, ArrayRef<int64_t> dims) {
  ASSIGN_OR_FAIL(Value u, uniform(s, dims));
  ASSIGN_OR_FAIL(Value v, uniform(s, dims));
  // 1 - u is never 0.
  Value far = nn::sub(s.b, s.loc, s.like(u, 1), u);
  far = nn::scale(s.b, s.loc, math::LogOp::create(s.b, s.loc, far), -2);
  far = math::SqrtOp::create(s.b, s.loc, far);
  Value turn = nn::scale(s.b, s.loc, v, 2 * M_PI);
  return nn::mul(s.b, s.loc, far, math::CosOp::create(s.b, s.loc, turn));
}

FailureOr<Dropout> tmc::frontend::dropout(Site &s, const Val &in, double p) {
  if (!(p >= 0 && p <= 1))
    return s.error("a ratio of " + std::to_string(p));
  if (p == 0)
    return Dropout{in, Val(Array::splatInt(ElementType::Bool, in.dims, 1))};
  if (failed(checkFloats(s, in)))
    return failure();
  ASSIGN_OR_FAIL(Value x, s.materialise(in));
  ASSIGN_OR_FAIL(Value u, uniform(s, in.dims));
  Value kept = arith::CmpFOp::create(s.b, s.loc, arith::CmpFPredicate::OGE, u,
                                     s.like(u, p));
  Value scaled = p < 1 ? nn::scale(s.b, s.loc, x, 1 / (1 - p)) : x;
  Value y = arith::SelectOp::create(s.b, s.loc, kept, scaled, s.like(x, 0));
  return Dropout{Val(y), Val(kept)};
}
