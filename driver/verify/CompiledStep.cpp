#include "driver/verify/CompiledStep.h"

#include "dialects/nn/Ranks.h"
#include "driver/verify/Arguments.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tmc;
using reference::Tensor;

Mesh tmc::meshOf(train::StepOp step) {
  Mesh mesh;
  auto add = [&](auto op) {
    const int ranks = int(op.getRanks());
    switch (nn::runtimeAxis(op.getAxis())) {
    case tmc::Axis::Data:
      mesh.data = ranks;
      break;
    case tmc::Axis::Tensor:
      mesh.tensor = ranks;
      break;
    case tmc::Axis::Pipeline:
      mesh.pipeline = ranks;
      break;
    }
  };
  step.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<nn::SumOverOp, nn::ExchangeOp, nn::GatherOp>(add);
  });
  return mesh;
}

Expected<std::unique_ptr<CompiledStep>>
CompiledStep::open(train::StepOp step, const std::string &path,
                   const std::string &name, const std::string &directory,
                   int threads, uint64_t seed) {
  std::unique_ptr<CompiledStep> made(new CompiledStep(step));
  for (int rank = 0; rank < int(made->mesh().ranks()); ++rank) {
    auto library = StepLibrary::open(
        path, name, threads, seed,
        made->mesh().ranks() > 1 ? made->peers.of(rank) : nullptr);
    if (!library)
      return std::move(library.failure());
    made->libraries.push_back(std::move(*library));
    made->valuesOf.emplace_back(step, *made->libraries.back(), directory);
  }
  return made;
}

Expected<void> CompiledStep::load(const std::string &safetensors) {
  for (auto &library : libraries)
    TMC_TRY(library->load(safetensors));
  return {};
}

Expected<void> CompiledStep::write(int rank, ArrayRef<Tensor> inputs) {
  std::vector<char> bytes;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    if (isFed(step, i) || train::copiedArg(step, i))
      continue;
    bytes.resize(input.size() * reference::elementBytes(input.element));
    input.toBytes(bytes.data());
    TMC_TRY(valuesOf[rank].write(i, bytes.data()));
  }
  return {};
}

Expected<TensorBytes> CompiledStep::readAll(
    int rank,
    llvm::function_ref<Expected<TensorBytes>(const StepValues &)> read) {
  if (libraries.size() == 1)
    return read(valuesOf[0]);
  std::vector<std::optional<Expected<TensorBytes>>> all(libraries.size());
  peers.runAll([&](int each) {
    all[each].emplace(read(valuesOf[each]));
    return bool(*all[each]);
  });
  return std::move(*all[rank]);
}

Expected<TensorBytes> CompiledStep::readArgument(unsigned argument, int rank) {
  return readAll(rank, [&](const StepValues &values) {
    return values.readArgument(argument);
  });
}

Expected<TensorBytes> CompiledStep::readResult(unsigned result, int rank) {
  return readAll(rank, [&](const StepValues &values) {
    return values.readResult(result);
  });
}

Expected<std::vector<double>> CompiledStep::run(const RankTensors &inputs) {
  for (int rank = 0; rank < ranks(); ++rank)
    TMC_TRY(write(rank, inputs[rank]));
  std::vector<double> losses(libraries.size());
  std::vector<std::optional<Failure>> failures(libraries.size());
  peers.runAll([&](int rank) {
    Expected<double> loss = libraries[rank]->run();
    if (loss)
      losses[rank] = *loss;
    else
      failures[rank] = std::move(loss.failure());
    return bool(loss);
  });
  // The others fail because one does. That one fails first.
  for (std::optional<Failure> &each : failures)
    if (each && each->kind != FailureKind::World)
      return std::move(*each);
  for (std::optional<Failure> &each : failures)
    if (each)
      return std::move(*each);
  return losses;
}
