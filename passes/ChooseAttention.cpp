// ChooseAttention.cpp - -tmc-choose-attention: own attention, or cuDNN's.

#include "passes/OnTarget.h"

#include "compiler/analysis/KernelObject.h"
#include "compiler/analysis/Storage.h"
#include "dialects/nn/AttentionLibrary.h"
#include "dialects/nn/NN.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace tmc {
#define GEN_PASS_DEF_CHOOSEATTENTION
#include "passes/Passes.h.inc"

namespace {
using namespace nn;

/// 90 for "sm_90" and "sm_90a"; 0 if `arch` is none of a card.
int capabilityOf(StringRef arch) {
  int capability = 0;
  if (!arch.consume_front("sm_") || arch.consumeInteger(10, capability))
    return 0;
  return capability;
}

/// "2 of 5 kernels of attention".
std::string countOf(size_t some, size_t all) {
  return std::to_string(some) + " of " + std::to_string(all) +
         (all == 1 ? " kernel" : " kernels") + " of attention";
}

struct ChooseAttention : impl::ChooseAttentionBase<ChooseAttention> {
  using ChooseAttentionBase::ChooseAttentionBase;
  ChooseAttention(ChooseAttentionOptions options, PassTarget target)
      : ChooseAttentionBase(std::move(options)), given(std::move(target)) {}

  void runOnOperation() override {
    if (attention != "auto" && attention != "own" && attention != "cudnn") {
      getOperation()->emitError("attention is auto, own or cudnn, not '")
          << attention << "'";
      return signalPassFailure();
    }
    FailureOr<Target> device = given.of(getOperation(), target);
    if (failed(device))
      return signalPassFailure();
    if (device->backend != Backend::Cuda || attention == "own")
      return;
    size_t all = 0, own = 0;
    llvm::MapVector<StringRef, size_t> reasons;
    llvm::StringSet<> texts;
    getOperation()->walk([&](Operation *op) {
      if (!isa<AttentionOp, AttentionGradOp, PackedAttentionGradOp>(op))
        return;
      ++all;
      const std::string why = choose(op, *device);
      if (why.empty())
        return;
      ++own;
      ++reasons[texts.insert(why).first->first()];
      remark::missed(op->getLoc(),
                     remark::RemarkOpts::name("StaysOwn").category("attention"))
          << why;
    });
    if (attention == "cudnn")
      report(all, own, reasons);
  }

private:
  PassTarget given;

  /// Gives `op` to the library, or says why not.
  std::string choose(Operation *op, const Target &device) {
    SmallVector<MemRefType> layouts;
    for (Value operand : op->getOperands())
      layouts.push_back(layoutOf(operand));
    std::string why = whyNotByCudnn(op, layouts, capabilityOf(device.arch));
    if (!why.empty())
      return why;
    if (attention == "cudnn") {
      setByCudnn(op);
      return "";
    }
    auto price = [&] {
      auto kernel = cast<KernelOpInterface>(op);
      return device.price(
          kernelWork(kernel, kernel.getKernel(layouts, Backend::Cuda)));
    };
    const Price own = price();
    setByCudnn(op);
    const Price its = price();
    const bool isMeasured =
        its.source == PriceSource::Measured || its.source == PriceSource::Class;
    if (isMeasured && its.picoseconds < own.picoseconds)
      return "";
    op->removeAttr(kByCudnn);
    return isMeasured ? "its measured time is no less"
                      : "no measured time of it is known for the target";
  }

  void report(size_t all, size_t own,
              const llvm::MapVector<StringRef, size_t> &reasons) {
    if (own == 0 && all > 0)
      return;
    InFlightDiagnostic said = emitWarning(getOperation()->getLoc());
    if (all == 0) {
      said << "--attention=cudnn has no effect: there is no attention";
      return;
    }
    said << "--attention=cudnn: " << countOf(own, all)
         << (own == 1 ? " stays" : " stay") << " own:";
    const char *separator = " ";
    for (const auto &[why, count] : reasons) {
      said << separator << why << " (" << count << ")";
      separator = "; ";
    }
  }
};
} // namespace

std::unique_ptr<Pass> createChooseAttention(ChooseAttentionOptions options,
                                            PassTarget target) {
  return std::make_unique<ChooseAttention>(std::move(options),
                                           std::move(target));
}
} // namespace tmc
