#include "frontends/common/ops/Spatial.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

static Dims pooledDims(Value y, int64_t rank) {
  Dims dims(nn::tensorType(y).getShape());
  if (rank == 3)
    dims.erase(dims.begin() + 2);
  return dims;
}

FailureOr<Val> tmc::frontend::maxPool(Site &s, const Val &x,
                                      const WindowSpec &spec) {
  if (failed(checkFloats(s, x)))
    return failure();
  ASSIGN_OR_FAIL(Window w, windowOf(s, x, spec));
  ASSIGN_OR_FAIL(Value input, asImage(s, x));
  Value y = nn::MaxPoolOp::create(s.b, s.loc, input, w.strides, w.padding,
                                  w.dilations, /*channels_last=*/false, w.size);
  return Val(s.reshape(y, pooledDims(y, x.rank())));
}

FailureOr<Val> tmc::frontend::averagePool(Site &s, const Val &x,
                                          const WindowSpec &spec,
                                          bool countPadding) {
  if (failed(checkFloats(s, x)))
    return failure();
  if (countPadding && spec.ceil)
    return s.unsupported("a mean over padding with ceil_mode");
  ASSIGN_OR_FAIL(Window w, windowOf(s, x, spec));
  ASSIGN_OR_FAIL(Value input, asImage(s, x));
  Value y = nn::AvgPoolOp::create(s.b, s.loc, input, w.strides, w.padding,
                                  w.dilations, /*channels_last=*/false, w.size,
                                  countPadding);
  return Val(s.reshape(y, pooledDims(y, x.rank())));
}

FailureOr<Val> tmc::frontend::globalPool(Site &s, const Val &x,
                                         nn::ReduceKind kind, bool mean) {
  if (!isFloat(x.type) || x.rank() < 3)
    return s.error("an input of shape " + str(x.dims));
  Dims over, dims(x.dims);
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) {
    over.push_back(d);
    count *= dims[d];
    dims[d] = 1;
  }
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Value y = nn::ReduceOp::create(s.b, s.loc, value, kind, over);
  if (mean)
    y = nn::scale(s.b, s.loc, y, 1.0 / count);
  return Val(s.reshape(y, dims));
}
