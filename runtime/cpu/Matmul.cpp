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

/// A factor as the product reads it; in memory it has rows of `columns`.
static gemm::Matrix factor(const void *data, DType type, int64_t columns,
                           bool transposed, ScaleBlock block,
                           const void *scales) {
  gemm::Matrix stored{data, columns, 1, type};
  if (!block.isWhole())
    stored.scales = {static_cast<const float *>(scales),
                     blocksIn(columns, block.columns), 1, block.rows,
                     block.columns};
  return transposed ? stored.transposed() : stored;
}

/// Matrix `i` of a batch; matrices are `elements` apart.
static gemm::Matrix ofBatch(gemm::Matrix matrix, int64_t i, int64_t elements,
                            int64_t scales) {
  matrix = matrix.shifted(i * elements);
  if (matrix.scales.data)
    matrix.scales.data += i * scales;
  return matrix;
}

static int64_t scalesIn(int64_t rows, int64_t columns, ScaleBlock block) {
  return block.isWhole()
             ? 0
             : blocksIn(rows, block.rows) * blocksIn(columns, block.columns);
}

void Matmul::run(Stream &stream, In ins, Out outs, void *scratch,
                 bool accumulate) {
  const Params &p = params_;
  const ScaleBlock lhsBlock{p.lhsBlockRows, p.lhsBlockColumns},
      rhsBlock{p.rhsBlockRows, p.rhsBlockColumns};
  const int64_t lhsRows = p.transposeLhs ? p.k : p.m,
                rhsRows = p.transposeRhs ? p.n : p.k;
  const int64_t lhsColumns = p.transposeLhs ? p.m : p.k,
                rhsColumns = p.transposeRhs ? p.k : p.n;
  gemm::Matrix a = factor(operand(ins, 0), p.lhs, lhsColumns, p.transposeLhs,
                          lhsBlock, operand(ins, 3));
  gemm::Matrix b = factor(operand(ins, 1), p.rhs, rhsColumns, p.transposeRhs,
                          rhsBlock, operand(ins, 4));
  a.readAs = b.readAs = p.readAs();
  gemm::TypedProblem problem{};
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  problem.bias = p.bias ? operand(ins, 2) : nullptr;
  problem.ldc = p.n;
  problem.out = p.out;
  problem.accumulate = accumulate;
  if (p.scaled && lhsBlock.isWhole())
    problem.lhsScale = static_cast<const float *>(operand(ins, 3));
  if (p.scaled && rhsBlock.isWhole())
    problem.rhsScale = static_cast<const float *>(operand(ins, 4));
  for (int64_t i = 0; i < p.batch; ++i) {
    problem.a =
        ofBatch(a, i, p.m * p.k, scalesIn(lhsRows, lhsColumns, lhsBlock));
    problem.b =
        ofBatch(b, i, p.k * p.n, scalesIn(rhsRows, rhsColumns, rhsBlock));
    problem.c =
        static_cast<char *>(result(outs, 0)) + i * p.m * p.n * sizeOf(p.out);
    gemm::runTyped(stream, problem, scratch);
  }
}

} // namespace tmc
