// Machine.h - spaces and engines in IR, by the names of the machine's tables.

#ifndef TMC_DIALECTS_INTERFACES_MACHINE_H
#define TMC_DIALECTS_INTERFACES_MACHINE_H

#include "mlir/IR/DialectImplementation.h"

#include "runtime/kernels/Machine.h"

namespace tmc {
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, SpaceKind kind);
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, EngineKind kind);
/// "device = 512, host = 4096"
llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                              const PerSpace<int64_t> &bytes);

llvm::hash_code hash_value(const PerSpace<int64_t> &bytes);
} // namespace tmc

namespace mlir {
template <> struct FieldParser<tmc::SpaceKind> {
  static FailureOr<tmc::SpaceKind> parse(AsmParser &parser);
};
template <> struct FieldParser<tmc::EngineKind> {
  static FailureOr<tmc::EngineKind> parse(AsmParser &parser);
};
template <> struct FieldParser<tmc::PerSpace<int64_t>> {
  static FailureOr<tmc::PerSpace<int64_t>> parse(AsmParser &parser);
};
} // namespace mlir

#endif // TMC_DIALECTS_INTERFACES_MACHINE_H
