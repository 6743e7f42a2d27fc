#include "driver/verify/GivenValues.h"

#include "compiler/support/FileWords.h"
#include "driver/verify/Arguments.h"
#include "runtime/step/SafetensorsSet.h"
#include "runtime/step/WeightsRecord.h"

using namespace mlir;
using namespace tmc;

Expected<void> GivenValues::open(const VerifyOptions &options,
                                 train::StepOp step, CompiledStep &compiled) {
  given.resize(compiled.ranks());
  if (!options.data.empty())
    TMC_TRY(openData(options.data, step, compiled));
  if (!options.weights.empty()) {
    weightsFile = options.weights;
    return readWeights(step, compiled);
  }
  const std::string own = shippedIn(options.directory);
  return own.empty() ? Expected<void>() : readOwn(own, step, compiled);
}

/// Opens --data for the arguments for which the trainer would need data.
Expected<void> GivenValues::openData(const std::vector<std::string> &data,
                                     train::StepOp step,
                                     CompiledStep &compiled) {
  DataInputs wanted;
  wanted.ranks = compiled.mesh().data;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const tmc_tensor *tensor =
        compiled.library().find(compiled.values().tensorsOf(i).front().name);
    if ((tensor->role != TMC_BATCH && tensor->role != TMC_SCALAR) ||
        isFed(step, i))
      continue;
    TensorInfo info{};
    info.name = tensor->name;
    info.type = DType(tensor->dtype);
    info.rank = tensor->rank;
    std::copy(tensor->dims, tensor->dims + tensor->rank, info.dims);
    info.role = Role(tensor->role);
    if (tensor->role == TMC_BATCH && tensor->rank > 0)
      wanted.samplesPerStep = std::max(wanted.samplesPerStep, tensor->dims[0]);
    inputs.push_back(info);
  }
  for (const TensorInfo &info : inputs)
    wanted.inputs.push_back(&info);
  readers.resize(compiled.ranks());
  DataOptions some;
  some.needsAll = false;
  for (int rank = 0; rank < compiled.ranks(); ++rank) {
    wanted.rank = compiled.mesh().place(tmc::Axis::Data, rank);
    if (Status s = DataReader::create(wanted, data, readers[rank], some); !s)
      return failureOf(s);
  }
  return {};
}

Expected<void> GivenValues::readBatch(int64_t number) {
  for (auto [reader, its] : llvm::zip(readers, given)) {
    reader.setPosition(number - 1);
    Status s = reader.next(
        [&](const TensorInfo &input, const char *data, int64_t bytes) {
          its[input.name].assign(data, data + bytes);
          return Status::ok();
        });
    if (!s)
      return failureOf(s);
  }
  return {};
}

void GivenValues::give(const std::string &name, const TensorBytes &bytes) {
  for (auto &its : given)
    its[name] = bytes;
}

/// Reads the values that `tmc compile` wrote beside the step: all values of the
/// model, or those that it has without its weights (tables, statistics); the
/// others are drawn.
Expected<void> GivenValues::readOwn(const std::string &path, train::StepOp step,
                                    CompiledStep &compiled) {
  SafetensorsSet file;
  if (Status s = SafetensorsSet::open(path, file); !s)
    return Failure::input(s.message());
  weightsFile = path;
  const StepValues &values = compiled.values();
  const std::vector<unsigned> arguments = values.ofModel();
  const bool hasAll = llvm::all_of(arguments, [&](unsigned i) {
    return llvm::all_of(values.tensorsOf(i),
                        [&](auto &tensor) { return file.find(tensor.name); });
  });
  if (hasAll)
    return readWeights(step, compiled);
  for (unsigned i : arguments)
    if (std::optional<TensorBytes> bytes = values.from(file, i))
      give(train::argName(step, i).str(), *bytes);
  weightsFile += ", others drawn";
  return {};
}

Expected<void> GivenValues::readWeights(train::StepOp step,
                                        CompiledStep &compiled) {
  TMC_TRY(compiled.load(weightsFile));
  for (unsigned i : compiled.values().ofModel()) {
    auto bytes = compiled.readArgument(i);
    if (!bytes)
      return std::move(bytes.failure());
    give(train::argName(step, i).str(), *bytes);
  }
  return {};
}
