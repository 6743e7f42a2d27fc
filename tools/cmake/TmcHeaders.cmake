# Reading headers takes longer than compiling what stands below them. Those of MLIR
# and of the dialects are read once, by TmcMlirHeaders, and every target that calls
# tmc_use_headers starts from there. What links no MLIR lists what it reads most
# beside its sources. No source may rely on that: each includes what it uses.
file(WRITE ${PROJECT_BINARY_DIR}/MlirHeaders.cpp "")
add_library(TmcMlirHeaders OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/MlirHeaders.cpp)
target_link_libraries(TmcMlirHeaders PRIVATE tmc_mlir)
target_precompile_headers(TmcMlirHeaders PRIVATE
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/DialectImplementation.h>
  <mlir/IR/IRMapping.h>
  <mlir/IR/Matchers.h>
  <mlir/IR/OpImplementation.h>
  <mlir/IR/PatternMatch.h>
  <mlir/IR/SymbolTable.h>
  <mlir/IR/Verifier.h>
  <mlir/Interfaces/SideEffectInterfaces.h>
  <mlir/Pass/Pass.h>
  <absl/status/statusor.h>
  <absl/strings/str_cat.h>
  <llvm/ADT/StringExtras.h>
  <llvm/Support/FormatVariadic.h>
  <llvm/Support/raw_ostream.h>
  ${PROJECT_SOURCE_DIR}/dialects/nn/NN.h
  ${PROJECT_SOURCE_DIR}/dialects/train/Train.h
  ${PROJECT_SOURCE_DIR}/dialects/mem/Mem.h)
add_dependencies(TmcMlirHeaders TmcInterfacesIncGen TmcNNIncGen TmcTrainIncGen TmcMemIncGen)
# One header serves libraries and programs alike only if both are built one way.
target_compile_options(tmc_mlir INTERFACE -fPIC -pthread)

# For sources without MLIR: what most of them read of the standard library.
set(TMC_STANDARD_HEADERS <algorithm> <cmath> <functional> <limits> <map> <memory>
    <numeric> <optional> <set> <string> <thread> <utility> <vector>)

function(tmc_use_headers target)
  target_precompile_headers(${target} REUSE_FROM TmcMlirHeaders)
endfunction()
