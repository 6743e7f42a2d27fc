// CompiledStep.h - a compiled step, on each rank of its mesh.
//
// A step for one device has one rank. The ranks of others are threads of this
// process (LocalPeers.h), each with a step of the same library.

#ifndef TMC_DRIVER_VERIFY_COMPILEDSTEP_H
#define TMC_DRIVER_VERIFY_COMPILEDSTEP_H

#include "compiler/reference/Tensor.h"
#include "driver/verify/LocalPeers.h"
#include "driver/verify/StepLibrary.h"
#include "driver/verify/StepValues.h"

#include <memory>
#include <string>
#include <vector>

namespace tmc {

/// The mesh that a step is for, by its ops; one rank if it has none of a mesh.
Mesh meshOf(train::StepOp step);

/// Tensors by rank, in the order of the arguments or results.
using RankTensors = std::vector<llvm::SmallVector<reference::Tensor>>;

class CompiledStep {
public:
  /// Loads the library at `path`, of a step with this name ("": none), for each
  /// rank. `directory` names the step in messages.
  static Expected<std::unique_ptr<CompiledStep>>
  open(train::StepOp step, const std::string &path, const std::string &name,
       const std::string &directory, int threads, uint64_t seed);

  const Mesh &mesh() const { return meshOfRanks; }
  int ranks() const { return int(libraries.size()); }
  StepLibrary &library(int rank = 0) { return *libraries[rank]; }
  const StepValues &values(int rank = 0) const { return valuesOf[rank]; }

  /// Loads the file on each rank.
  Expected<void> load(const std::string &safetensors);
  /// The values of an argument or a result of one rank. All ranks read it: each
  /// may keep a part.
  Expected<TensorBytes> readArgument(unsigned argument, int rank = 0);
  Expected<TensorBytes> readResult(unsigned result, int rank = 0);
  /// Runs one step of all ranks on these arguments. Returns their losses.
  Expected<std::vector<double>> run(const RankTensors &inputs);

private:
  explicit CompiledStep(train::StepOp step)
      : step(step), meshOfRanks(meshOf(step)), peers(meshOfRanks) {}
  /// Calls `read` with the values of each rank; returns what it says of `rank`.
  Expected<TensorBytes>
  readAll(int rank,
          llvm::function_ref<Expected<TensorBytes>(const StepValues &)> read);
  Expected<void> write(int rank, llvm::ArrayRef<reference::Tensor> inputs);

  mutable train::StepOp step; // Ops' accessors aren't const.
  const Mesh meshOfRanks;
  LocalPeers peers;
  std::vector<std::unique_ptr<StepLibrary>> libraries; ///< By rank.
  std::vector<StepValues> valuesOf;                    ///< By rank.
};

} // namespace tmc

#endif // TMC_DRIVER_VERIFY_COMPILEDSTEP_H
