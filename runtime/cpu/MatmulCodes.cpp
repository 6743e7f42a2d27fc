//===- MatmulCodes.cpp - products by frozen weights in codes on cpu -------===//

#include "runtime/kernels/MatmulCodes.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/FrozenCodes.h"
#include "runtime/cpu/GemmTyped.h"

namespace tmc {

struct MatmulCodes::State {};
MatmulCodes::MatmulCodes(const Params &params) : params_(params) {}
MatmulCodes::~MatmulCodes() = default;

Status MatmulCodes::prepare(Device &) {
  return cpu::requireScratch("matmul_codes", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void MatmulCodes::run(Stream &stream, In ins, Out outs, void *scratch,
                      bool accumulate) {
  const Params &p = params_;
  const void *codes = operand(ins, 1), *absmax = operand(ins, 2);
  const int64_t columns = p.transposeRhs ? p.k : p.n;
  const frozen::Stored stored =
      p.byRows ? frozen::Stored::rows(codes, absmax, columns)
               : frozen::Stored::blocks(codes, absmax,
                                        p.nested ? operand(ins, 3) : nullptr,
                                        p.k * p.n / frozen::kBlock);
  gemm::Matrix a{operand(ins, 0), p.transposeLhs ? p.m : p.k, 1, p.lhs};
  gemm::Matrix b{nullptr, columns, 1, p.lhs};
  b.stored = &stored;
  gemm::TypedProblem problem{};
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  problem.a = p.transposeLhs ? a.transposed() : a;
  problem.b = p.transposeRhs ? b.transposed() : b;
  problem.bias = p.bias ? operand(ins, 4) : nullptr;
  problem.c = result(outs, 0);
  problem.ldc = p.n;
  problem.out = p.out;
  problem.accumulate = accumulate;
  gemm::runTyped(stream, problem, scratch);
}

} // namespace tmc
