// AlgorithmRows.h - the table of products' algorithms in an emitted step.

#ifndef TMC_COMPILER_EMIT_ALGORITHMROWS_H
#define TMC_COMPILER_EMIT_ALGORITHMROWS_H

#include "compiler/target/AlgorithmFile.h"

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace tmc {

/// Prints the constant `algorithms`; nothing without a file or products.
void printAlgorithms(llvm::raw_ostream &os, const AlgorithmFile *file);

/// The field of StepProgram that holds the table, or "" without a file.
std::string algorithmField(const AlgorithmFile *file);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_ALGORITHMROWS_H
