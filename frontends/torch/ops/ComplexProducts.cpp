// ComplexProducts.cpp - sums of products of complex numbers.
//
//   (a + ib)(c + id) = (ac - bd) + i(ad + bc)
//
// each term a product of real matrices.

#include "frontends/common/ops/Einsum.h"
#include "frontends/common/ops/Linear.h"
#include "frontends/torch/Importer.h"
#include "frontends/torch/ops/Complex.h"

using namespace mlir;
using namespace tmc;
using namespace tmc::torch_import;

namespace {
/// A factor's parts; a real factor has no imaginary part.
struct Factor {
  Val real, imaginary;
};
using ProductFn = llvm::function_ref<FailureOr<Val>(const Val &, const Val &)>;
} // namespace

static FailureOr<Factor> factorOf(Call &c, const Val &v, bool isComplex) {
  Factor factor;
  if (!isComplex) {
    ASSIGN_OR_FAIL(factor.real, castTo(c, v, ElementType::F32));
    return factor;
  }
  ASSIGN_OR_FAIL(factor.real, halfOf(c, v, 0));
  ASSIGN_OR_FAIL(factor.imaginary, halfOf(c, v, 1));
  return factor;
}

/// x times y, where `product` multiplies real factors.
static FailureOr<Factor> times(Call &c, const Factor &x, const Factor &y,
                               ProductFn product) {
  Factor result;
  ASSIGN_OR_FAIL(result.real, product(x.real, y.real));
  for (auto [a, b] :
       {std::pair(&x.imaginary, &y.real), std::pair(&x.real, &y.imaginary)}) {
    if (a->isAbsent() || b->isAbsent())
      continue;
    ASSIGN_OR_FAIL(Val mixed, product(*a, *b));
    if (!result.imaginary.isAbsent()) {
      ASSIGN_OR_FAIL(mixed, add(c, {result.imaginary, mixed}));
    }
    result.imaginary = mixed;
  }
  if (!x.imaginary.isAbsent() && !y.imaginary.isAbsent()) {
    ASSIGN_OR_FAIL(Val both, product(x.imaginary, y.imaginary));
    ASSIGN_OR_FAIL(result.real, subtract(c, {result.real, both}));
  }
  return result;
}

static LogicalResult setFactor(Call &c, const Factor &y) {
  Expression real(c, y.real);
  return setParts(c, real,
                  y.imaginary.isAbsent() ? real.number(0)
                                         : Expression(c, y.imaginary));
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

static LogicalResult ofMatrices(Call &c, const char *right) {
  ASSIGN_OR_FAIL(Factor x, factorOf(c, c.tensor("self"), c.isComplex("self")));
  ASSIGN_OR_FAIL(Factor y, factorOf(c, c.tensor(right), c.isComplex(right)));
  ASSIGN_OR_FAIL(Factor product,
                 times(c, x, y, [&](const Val &a, const Val &b) {
                   return matmul(c, a, b);
                 }));
  return setFactor(c, product);
}
static LogicalResult importMatmul(Call &c) { return ofMatrices(c, "other"); }
static RegisterComplex matmulOp("matmul", importMatmul);
static LogicalResult importMm(Call &c) { return ofMatrices(c, "mat2"); }
static RegisterComplex mm("mm", importMm);
static RegisterComplex bmm("bmm", importMm);

//===----------------------------------------------------------------------===//
// Einstein's summation
//===----------------------------------------------------------------------===//

/// The product of all operands is a sum of terms. Each term takes the real or
/// the imaginary part of each operand, times i to the number of imaginary
/// parts.
static LogicalResult importEinsum(Call &c) {
  constexpr size_t kMostOperands = 6; // 2^6 sums.
  ASSIGN_OR_FAIL(std::string equation, c.text("equation", ""));
  ASSIGN_OR_FAIL(SmallVector<Val> operands, c.tensors("tensors"));
  const Arg *names = c.data.argument("tensors");
  if (!names || names->list.size() != operands.size() || operands.empty())
    return c.error("takes no list of tensors");
  if (operands.size() > kMostOperands)
    return c.unsupported("complex numbers in " + Twine(operands.size()) +
                         " operands");
  SmallVector<Factor> factors;
  for (auto [v, name] : llvm::zip(operands, names->list)) {
    ASSIGN_OR_FAIL(Factor factor,
                   factorOf(c, v, c.reader.isComplex(name.text)));
    factors.push_back(factor);
  }
  Factor result;
  for (unsigned choice = 0; choice < 1u << factors.size(); ++choice) {
    SmallVector<Val> parts;
    unsigned power = 0;
    for (auto [i, factor] : llvm::enumerate(factors)) {
      bool isImaginary = choice >> i & 1;
      power += isImaginary;
      parts.push_back(isImaginary ? factor.imaginary : factor.real);
    }
    if (llvm::any_of(parts, [](const Val &v) { return v.isAbsent(); }))
      continue;
    ASSIGN_OR_FAIL(Val term, einsum(c, equation, parts));
    Val &sum = power % 2 ? result.imaginary : result.real;
    const bool isNegative = power % 4 >= 2;
    if (sum.isAbsent()) {
      ASSIGN_OR_FAIL(sum, isNegative ? negate(c, term) : FailureOr<Val>(term));
    } else {
      ASSIGN_OR_FAIL(sum, isNegative ? subtract(c, {sum, term})
                                     : add(c, {sum, term}));
    }
  }
  return setFactor(c, result);
}
static RegisterComplex einsumOp("einsum", importEinsum);
