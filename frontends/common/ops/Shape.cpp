#include "frontends/common/ops/Shape.h"
#include "frontends/Checked.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::frontend;

FailureOr<Val> tmc::frontend::reshaped(Site &s, const Val &x,
                                       ArrayRef<int64_t> dims) {
  auto before = checkedNumElements(x.dims), after = checkedNumElements(dims);
  if (!after || before != after)
    return s.error("a tensor of shape " + str(x.dims) +
                   " can't take the shape " + str(dims));
  if (s.foldable(x)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    return Val(array.reshaped(dims));
  }
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  return Val(s.reshape(value, dims));
}

FailureOr<Val> tmc::frontend::viewed(Site &s, const Val &x, Dims dims) {
  int64_t known = 1;
  int inferred = -1;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (dim == -1) {
      if (inferred >= 0)
        return s.error("leaves two dimensions open in " + str(dims));
      inferred = i;
      continue;
    }
    auto product = checkedMul(known, dim);
    if (dim < 0 || !product)
      return s.error("asks for the shape " + str(dims));
    known = *product;
  }
  if (inferred >= 0) {
    auto count = checkedNumElements(x.dims);
    if (!count || known == 0 || *count % known)
      return s.error("a tensor of shape " + str(x.dims) +
                     " can't take the shape " + str(dims));
    dims[inferred] = *count / known;
  }
  return reshaped(s, x, dims);
}

FailureOr<Val> tmc::frontend::squeeze(Site &s, const Val &x,
                                      std::optional<Dims> axes) {
  Dims dims;
  for (auto [i, dim] : llvm::enumerate(x.dims)) {
    bool drop =
        axes ? llvm::is_contained(*axes, static_cast<int64_t>(i)) : dim == 1;
    if (drop && dim != 1)
      return s.error("squeezes dimension " + Twine(i) + " of shape " +
                     str(x.dims));
    if (!drop)
      dims.push_back(dim);
  }
  return reshaped(s, x, dims);
}

FailureOr<Val> tmc::frontend::unsqueeze(Site &s, const Val &x,
                                        ArrayRef<int64_t> axes) {
  int64_t rank = x.rank() + axes.size();
  SmallVector<bool> isNew(rank);
  for (int64_t entry : axes) {
    ASSIGN_OR_FAIL(int64_t axis, s.axis(entry, rank));
    if (isNew[axis])
      return s.error("an axis is named twice in " + str(axes));
    isNew[axis] = true;
  }
  Dims dims;
  size_t next = 0;
  for (bool one : isNew)
    dims.push_back(one ? 1 : x.dims[next++]);
  return reshaped(s, x, dims);
}

FailureOr<Val> tmc::frontend::transpose(Site &s, const Val &x,
                                        ArrayRef<int64_t> perm) {
  SmallVector<bool> seen(x.rank());
  bool valid = static_cast<int64_t>(perm.size()) == x.rank();
  for (int64_t dim : perm) {
    valid = valid && dim >= 0 && dim < x.rank() && !seen[dim];
    if (valid)
      seen[dim] = true;
  }
  if (!valid)
    return s.error("permutes shape " + str(x.dims) + " by " + str(perm));
  if (s.foldable(x)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    return Val(array.transposed(perm));
  }
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  // A permutation that only moves dimensions of size 1 is a reshape.
  Dims moved, dims;
  for (int64_t dim : perm) {
    dims.push_back(x.dims[dim]);
    if (x.dims[dim] != 1)
      moved.push_back(dim);
  }
  if (llvm::is_sorted(moved))
    return Val(s.reshape(value, dims));
  return Val(nn::TransposeOp::create(s.b, s.loc, value, perm));
}

FailureOr<Val> tmc::frontend::expand(Site &s, const Val &x,
                                     ArrayRef<int64_t> wanted) {
  auto dims = broadcastShape(x.dims, wanted);
  if (!dims || !checkedNumElements(*dims))
    return s.error("a tensor of shape " + str(x.dims) +
                   " can't be expanded to " + str(wanted));
  if (x.isConst()) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    return Val(array.broadcastTo(*dims));
  }
  ASSIGN_OR_FAIL(Value value, s.broadcast(x, *dims));
  return Val(value);
}

/// Each dimension d becomes [times, d], then one again.
FailureOr<Val> tmc::frontend::tile(Site &s, const Val &x,
                                   ArrayRef<int64_t> times) {
  if (static_cast<int64_t>(times.size()) != x.rank())
    return s.error("repeats shape " + str(x.dims) + " by " + str(times));
  Dims apart, repeated, dims;
  for (auto [dim, count] : llvm::zip(x.dims, times)) {
    auto product = checkedMul(dim, count);
    if (count < 0 || !product)
      return s.error("repeats shape " + str(x.dims) + " by " + str(times));
    apart.append({1, dim});
    repeated.append({count, dim});
    dims.push_back(*product);
  }
  if (!checkedNumElements(dims))
    return s.error("the number of elements is too large");
  if (s.foldable(x)) {
    ASSIGN_OR_FAIL(Array array, s.arrayOf(x));
    Array wide = array.reshaped(apart).broadcastTo(repeated);
    if (wide.size() <= kMaxFoldElements)
      return Val(wide.reshaped(dims));
  }
  ASSIGN_OR_FAIL(Value value, s.materialise(x));
  Val split(s.reshape(value, apart));
  ASSIGN_OR_FAIL(Value wide, s.broadcast(split, repeated));
  return Val(s.reshape(wide, dims));
}
