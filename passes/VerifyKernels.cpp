// VerifyKernels.cpp - -tmc-verify-kernels: every kernel has code for its types.

#include "passes/OnTarget.h"

#include "compiler/analysis/Storage.h"
#include "dialects/interfaces/Fault.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "passes/Passes.h.inc"

namespace {

/// "(bf16, bf16) -> bf16": the element types of `op`'s operands and results.
std::string elementTypes(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [&](TypeRange types) {
    llvm::interleaveComma(types, os,
                          [&](Type type) { os << getElementTypeOrSelf(type); });
  };
  os << '(';
  print(op->getOperandTypes());
  os << ") -> ";
  print(op->getResultTypes());
  return text;
}

/// False if `op` needs a kernel and there is none for its types.
bool hasKernel(Operation *op, Backend backend) {
  if (auto kernel = dyn_cast<KernelOpInterface>(op)) {
    SmallVector<MemRefType> layouts;
    for (Value operand : op->getOperands())
      layouts.push_back(layoutOf(operand));
    return kernel.getKernel(layouts, backend).supported;
  }
  // Tensor dialects' computations are in fused kernels at this phase.
  bool computes =
      isa<PointwiseOpInterface>(op) || isa<nn::NNDialect>(op->getDialect());
  return !computes || isView(op);
}

struct VerifyKernels : impl::VerifyKernelsBase<VerifyKernels> {
  using VerifyKernelsBase::VerifyKernelsBase;
  VerifyKernels(VerifyKernelsOptions options, PassTarget target)
      : VerifyKernelsBase(std::move(options)), given(std::move(target)) {}

  void runOnOperation() override {
    FailureOr<Target> device = given.of(getOperation(), target);
    if (failed(device))
      return signalPassFailure();
    // Each missing kernel is reported once.
    llvm::MapVector<StringAttr, SmallVector<Operation *>> lacking;
    getOperation()->walk([&](Operation *op) {
      if (!op->getParentOfType<train::StepOp>() ||
          op->getParentOfType<nn::FusedOp>() || hasKernel(op, device->backend))
        return;
      lacking[StringAttr::get(&getContext(),
                              op->getName().getStringRef() + elementTypes(op))]
          .push_back(op);
    });
    if (lacking.empty())
      return;
    std::optional<InFlightDiagnostic> said;
    for (auto &[key, ops] : lacking) {
      Operation *op = ops.front();
      auto describe = [&](Diagnostic &diag) {
        diag << "'" << op->getName() << "' on " << elementTypes(op);
        if (ops.size() > 1)
          diag << " (" << ops.size() << " times)";
      };
      if (!said) {
        said.emplace(emitFault(op->getLoc(), FailureKind::Unsupported));
        *said << (device->backend == Backend::Cpu ? "cpu" : "cuda")
              << " has no kernel for ";
        describe(*said->getUnderlyingDiagnostic());
      } else {
        Diagnostic &note = said->attachNote(op->getLoc()) << "nor for ";
        describe(note);
      }
    }
    said.reset();
    signalPassFailure();
  }

private:
  PassTarget given;
};
} // namespace

std::unique_ptr<Pass> createVerifyKernels(VerifyKernelsOptions options,
                                          PassTarget target) {
  return std::make_unique<VerifyKernels>(std::move(options), std::move(target));
}
} // namespace tmc
