// Emit.h - from a placed mem.program to C++ or CUDA text.
//
// The text is one file, `step.cpp` or `step.cu`, which differ only in their
// kernels' backend. It holds the bodies of generated kernels, a struct with one
// object per different kernel, `run` with one launch per line in the order of
// the plan, and the table (`runtime/step/Program.h`) that tells the runtime
// where everything is. The text keeps the model's names, and states for each
// launch the buffers that it writes, their offsets, and how long they live:
//
//     // 118 h.3.mlp.act: 12.0 MiB at +301 MiB, alive [118, 127)
//     k.fused_17.run(s, {at(0x2000)}, {at(0x12d00000)}, nullptr);
//     s.launched(118);

#ifndef TMC_COMPILER_EMIT_EMIT_H
#define TMC_COMPILER_EMIT_EMIT_H

#include "compiler/emit/StepInterface.h"
#include "compiler/target/AlgorithmFile.h"
#include "dialects/mem/Mem.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Mesh.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tmc {

/// The files of a step's adapter: the text of adapter_config.json, or "" for a
/// step without adapters, and the beginning of names in the graph that is
/// another one in the files of weights.
struct AdapterFiles {
  std::string config;
  std::string prefixInModel, prefixInFile;
};

struct EmitOptions {
  std::string model; // Its name, for messages.
  Backend backend = Backend::Cpu;
  Mesh mesh;                // The ranks that run the step.
  std::string target;       // As for `--target`: "cpu:v4", "cuda:sm_90".
  int64_t budgetBytes = -1; // -1: no limit.
  /// The device's memory that the plan leaves free outside the arena.
  int64_t reservedBytes = 0;
  double predictedSeconds = -1;
  double unconstrainedSeconds = -1;
  /// For each entry of the program, on its engine; empty: unknown.
  std::vector<double> entrySeconds;
  std::string fileDirectory; // The swap file's default directory.
  /// The trainer's log says these: the version of tmc, and the fingerprints of
  /// the model and of the plan.
  std::string version, modelFingerprint, planFingerprint;
  AdapterFiles adapter;
  const AlgorithmFile *algorithms = nullptr; // For products; null: none.
};

/// The same step as text to read, and in pieces to compile in parallel.
struct StepText {
  std::string whole; // step.cpp or step.cu; compiles by itself.
  /// The text without the bodies of generated kernels: it does no arithmetic.
  std::string main;
  /// The bodies, in files of similar length (KernelPieces.h).
  std::vector<std::string> kernels;
};

/// The text of the step in `module`, which holds one placed program and its
/// kernels. Fails, with a diagnostic that names the kernel or op, if one of
/// them has no text.
mlir::FailureOr<StepText> emitStep(mlir::ModuleOp module,
                                   const EmitOptions &options);

/// The text of step.h: how to embed the step, and its tensors' names.
std::string emitHeader(mem::ProgramOp program, const EmitOptions &options,
                       const StepInterface &interface);

/// A hash of the saved tensors, which distinguishes checkpoints of different
/// models.
std::string fingerprintOf(mem::ProgramOp program);

/// A C++ literal of a kernel's parameter.
std::string literal(mlir::Attribute value);

/// "12.0 MiB", for comments and reports.
std::string readableBytes(int64_t bytes);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_EMIT_H
