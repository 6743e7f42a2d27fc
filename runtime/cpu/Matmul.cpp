//===- Matmul.cpp - batched matrix products on cpu ------------------------===//

#include "runtime/kernels/Matmul.h"

#include "runtime/cpu/Checks.h"
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
  const gemm::Matrix a{operand(ins, 0), p.transposeLhs ? 1 : p.k,
                       p.transposeLhs ? p.m : 1, p.lhs, p.readAs()};
  const gemm::Matrix b{operand(ins, 1), p.transposeRhs ? 1 : p.n,
                       p.transposeRhs ? p.k : 1, p.rhs, p.readAs()};
  gemm::TypedProblem problem{};
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  problem.bias = p.bias ? operand(ins, 2) : nullptr;
  problem.ldc = p.n;
  problem.out = p.out;
  problem.accumulate = accumulate;
  for (int64_t i = 0; i < p.batch; ++i) {
    problem.a = a.shifted(i * p.m * p.k);
    problem.b = b.shifted(i * p.k * p.n);
    problem.c =
        static_cast<char *>(result(outs, 0)) + i * p.m * p.n * sizeOf(p.out);
    gemm::runTyped(stream, problem, scratch);
  }
}

} // namespace tmc
