# Reading headers takes longer than compiling what stands below them. Those of MLIR
# and of the dialects are read once, by TmcMlirHeaders, and every target that calls
# tmc_use_headers starts from there. What links no MLIR lists what it reads most
# beside its sources. No source may rely on that: each includes what it uses.
file(WRITE ${PROJECT_BINARY_DIR}/MlirHeaders.cpp "")

# clang's precompiled header has 85 MB instead of g++'s 492, and holds instances of templates
# that g++ makes in each file: a file is compiled in half of the time. clang comes with
# clang-tidy. g++ compiles the runtime, as it compiles steps, and the planner.
set(TMC_CLANG_DEFAULT ON)
find_program(TMC_CLANG_PROGRAM clang++-22)
mark_as_advanced(TMC_CLANG_PROGRAM)
if(NOT TMC_CLANG_PROGRAM OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU OR TMC_SANITIZE)
  set(TMC_CLANG_DEFAULT OFF)
endif()
option(TMC_CLANG "Compile files that read MLIR with clang" ${TMC_CLANG_DEFAULT})
set(TMC_MLIR_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
# Other levels of optimization for files that read MLIR. clang's precompiled header serves
# one level alone; at -O2 clang vectorizes loops that g++ vectorizes at -O3.
set(TMC_MLIR_LESS -O1)
set(TMC_MLIR_MORE -O3)
if(TMC_CLANG)
  set(TMC_MLIR_LESS)
  set(TMC_MLIR_MORE)
  # A header is known by its content, not its time. With a precompiled header clang warns of
  # functions that libstdc++ itself deprecates and uses: it marks none without __DEPRECATED.
  set(TMC_MLIR_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/cmake/with.sh ${TMC_MLIR_LAUNCHER}
    ${TMC_CLANG_PROGRAM} -fpch-instantiate-templates -Xclang -fno-pch-timestamp -U__DEPRECATED --)
endif()
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
set_target_properties(TmcMlirHeaders PROPERTIES CXX_COMPILER_LAUNCHER "${TMC_MLIR_LAUNCHER}")
add_dependencies(TmcMlirHeaders TmcInterfacesIncGen TmcNNIncGen TmcTrainIncGen TmcMemIncGen)
# One header serves libraries and programs alike only if both are built one way.
target_compile_options(tmc_mlir INTERFACE -fPIC -pthread)

# For sources without MLIR: what most of them read of the standard library.
set(TMC_STANDARD_HEADERS <algorithm> <cmath> <functional> <limits> <map> <memory>
    <numeric> <optional> <set> <string> <thread> <utility> <vector>)

function(tmc_use_headers target)
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${TMC_MLIR_LAUNCHER}")
  target_precompile_headers(${target} REUSE_FROM TmcMlirHeaders)
endfunction()
