// Cases.h - the functions of test/unit/dialects/cases, and what tests ask of
// them.
//
// A case is a function of one op (constants aside), small enough for finite
// differences. All cases together cover every op: OpContractTest.cpp says which
// one they miss. Beside the attributes that Harness.h knows, an argument or a
// result may be marked
//   test.constant    no gradient leads to, or comes from, here

#ifndef TMC_TEST_UNIT_DIALECTS_CASES_H
#define TMC_TEST_UNIT_DIALECTS_CASES_H

#include "test/unit/reference/Harness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tmc::test {

/// All cases, with the context they live in.
class Cases {
public:
  static Cases &get();

  mlir::MLIRContext &getContext() { return *context; }
  llvm::ArrayRef<mlir::func::FuncOp> getFunctions() const { return functions; }

  /// The op that the case is about: the last before the return.
  static mlir::Operation *getOp(mlir::func::FuncOp function);

private:
  Cases();
  std::unique_ptr<mlir::MLIRContext> context;
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  llvm::SmallVector<mlir::func::FuncOp> functions;
};

} // namespace tmc::test

#endif // TMC_TEST_UNIT_DIALECTS_CASES_H
