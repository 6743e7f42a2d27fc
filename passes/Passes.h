// Passes.h - one pass, one file; the records are in Passes.td.

#ifndef TMC_PASSES_PASSES_H
#define TMC_PASSES_PASSES_H

#include "dialects/mem/Mem.h"
#include "dialects/nn/NN.h"
#include "dialects/train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

struct LoraSpec;
/// -tmc-adapt with a specification that was read.
std::unique_ptr<mlir::Pass> createAdapt(const LoraSpec &spec,
                                        const std::vector<std::string> &train);
} // namespace tmc

#endif // TMC_PASSES_PASSES_H
