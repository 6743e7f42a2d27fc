//===- Matmul.cpp - batched matrix products on cpu ------------------------===//

#include "runtime/kernels/Matmul.h"

#include "runtime/cpu/Checks.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/GemmTyped.h"

namespace tmc {

static_assert(gemm::kPanelN <= kGemmPanelN);
static_assert(kGemmRowStep % gemm::kPanelM == 0);

struct Matmul::State {};
Matmul::Matmul(const Params &params) : params_(params) {}
Matmul::~Matmul() = default;

Status Matmul::prepare(Device &) {
  return cpu::requireScratch("matmul", scratchCap(params_, Backend::Cpu),
                             params_.scratchBytes);
}

void Matmul::run(Stream &stream, In ins, Out outs, void *scratch,
                 bool accumulate) {
  const Params &p = params_;
  if (!p.isSingle())
    return gemm::runTyped(stream, p, operand(ins, 0), operand(ins, 1),
                          p.bias ? operand(ins, 2) : nullptr, result(outs, 0),
                          scratch, accumulate);
  gemm::Problem problem{};
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  problem.a = {static_cast<const float *>(operand(ins, 0)),
               p.transposeLhs ? 1 : p.k, p.transposeLhs ? p.m : 1};
  problem.b = {static_cast<const float *>(operand(ins, 1)),
               p.transposeRhs ? 1 : p.n, p.transposeRhs ? p.k : 1};
  problem.bias = p.bias ? static_cast<const float *>(operand(ins, 2)) : nullptr;
  problem.c = static_cast<float *>(result(outs, 0));
  problem.ldc = p.n;
  problem.accumulate = accumulate;
  gemm::run(stream, problem, scratch, p.batch, p.m * p.k, p.k * p.n, p.m * p.n);
}

} // namespace tmc
