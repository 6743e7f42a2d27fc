# Reading MLIR's headers takes longer than compiling what stands below them: they
# are read once, by TmcMlirHeaders, and every target that calls tmc_use_headers
# starts from there. No source may rely on that: each includes what it uses.
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
  <llvm/ADT/StringExtras.h>
  <llvm/Support/FormatVariadic.h>
  <llvm/Support/raw_ostream.h>)
# One header serves libraries and programs alike only if both are built one way.
target_compile_options(tmc_mlir INTERFACE -fPIC -pthread)

function(tmc_use_headers target)
  target_precompile_headers(${target} REUSE_FROM TmcMlirHeaders)
endfunction()
