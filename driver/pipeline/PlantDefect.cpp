#include "driver/pipeline/PlantDefect.h"

#include "dialects/interfaces/Fault.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <csignal>

using namespace mlir;

namespace {

struct PlantDefect : PassWrapper<PlantDefect, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlantDefect)

  PlantDefect() = default;
  PlantDefect(const PlantDefect &other) : PassWrapper(other) {
    kind = other.kind.getValue();
  }

  StringRef getArgument() const final { return "tmc-plant-defect"; }
  StringRef getDescription() const final { return "go wrong, for tests"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (kind == "crash")
      (void)std::raise(SIGSEGV);
    if (kind == "invalid") // A block without its terminator.
      return module.getBody()
          ->front()
          .getRegion(0)
          .front()
          .getTerminator()
          ->erase();
    if (kind == "stranger") { // An op that no later phase knows.
      OpBuilder b =
          OpBuilder::atBlockEnd(&module.getBody()->back().getRegion(0).front());
      arith::ConstantIndexOp::create(b, module.getLoc(), 0);
      return;
    }
    if (kind == "fault")
      emitFault(module.getLoc(), tmc::FailureKind::Unsupported)
          << "a planted fault";
    if (kind == "error")
      module.emitError("a planted error");
    signalPassFailure();
  }

  Option<std::string> kind{*this, "kind", llvm::cl::init("silent"),
                           llvm::cl::desc("how to go wrong")};
};

} // namespace

std::unique_ptr<Pass> tmc::createPlantDefect(const std::string &kind) {
  auto pass = std::make_unique<PlantDefect>();
  pass->kind = kind;
  return pass;
}

void tmc::registerPlantDefect() { PassRegistration<PlantDefect>(); }
