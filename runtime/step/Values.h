//===- Values.h - moves values between files and steps ----------*- C++ -*-===//
//
// The common part of loading values (Values.cpp) and checkpoints
// (Checkpoint.cpp). Tensors move in pieces, so no large copy is made.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_VALUES_H
#define TMC_RUNTIME_STEP_VALUES_H

#include "runtime/step/Homes.h"
#include "runtime/step/Safetensors.h"
#include "runtime/step/SafetensorsSet.h"

#include <string>
#include <vector>

namespace tmc {
struct SavedWeights;
}

namespace tmc::values {

/// Bytes moved at a time.
constexpr int64_t kPieceBytes = 1 << 20;

/// The float types that are converted between files and steps.
inline bool isPlainFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 ||
         type == DType::BF16;
}

/// Element i of an array of plain floats.
float floatAt(DType type, const char *data, int64_t i);

/// Whether all of `count` plain floats are finite.
bool isFinite(DType type, const char *data, int64_t count);

/// The tensors with a value between two steps: parameters, states, moments.
inline bool isValue(const TensorInfo &info) {
  return info.role == Role::Param || info.role == Role::State ||
         info.role == Role::Moment;
}

/// A parameter that isn't trained: part of the base.
inline bool isBase(const TensorInfo &info) {
  return info.role == Role::Param && !info.trainable;
}

/// The tensor of `file`, a SafetensorsFile or a SafetensorsSet, under one of
/// the names of `info`, or null.
template <typename File>
auto tensorFor(const File &file, const TensorInfo &info)
    -> decltype(file.find(info.name)) {
  auto found = file.find(info.name);
  for (int32_t i = 0; i < info.aliasCount && !found; ++i)
    found = file.find(info.aliases[i]);
  return found;
}

bool sameShape(const TensorInfo &info, const SafeTensor &tensor);

/// Copies one tensor of a file to its place, floats converted to the step's
/// type.
Status place(const Homes &homes, const SafetensorsFile &file,
             const SafeTensor &tensor, const TensorInfo &info);

/// Copies or encodes a tensor of a set to its place, codes with their maxima.
Status placeOrEncode(const StepProgram &program, const Homes &homes,
                     const SafetensorsSet &file, const SetTensor &tensor,
                     const TensorInfo &info);

/// Calls f(bytes, count) for the pieces of a tensor of a file, in order. F is
/// Status(char *, int64_t bytes) and may change the piece. Returns the first
/// error.
template <typename F>
Status eachFilePiece(const SafetensorsFile &file, const SafeTensor &tensor,
                     F &&f) {
  const int64_t bytes = tensor.end - tensor.begin;
  std::vector<char> piece(size_t(bytes < kPieceBytes ? bytes : kPieceBytes));
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const int64_t some = bytes - at < kPieceBytes ? bytes - at : kPieceBytes;
    if (Status s = file.read(tensor, at, piece.data(), some); !s)
      return s;
    if (Status s = f(piece.data(), some); !s)
      return s;
  }
  return Status::ok();
}

/// Fills states whose initial value is a number, and shards with zeros, before
/// any values are given.
Status startStates(const StepProgram &program, const Homes &homes);

/// Fills states and moments as a fresh run starts with them: the first values
/// are written one by one.
Status startOptimizer(const StepProgram &program, const Homes &homes);

/// Rounds the copies of `weight` again, or of all weights if it is null.
Status roundCopies(const StepProgram &program, const Homes &homes,
                   const TensorInfo *weight = nullptr);

/// Code::Usage if a parameter was never written. `given`: by tensor, whether it
/// was.
Status checkParams(const StepProgram &program, const std::vector<bool> &given);
/// Code::Usage if an input that takes data was never written.
Status checkInputs(const StepProgram &program, const std::vector<bool> &given);

/// The parameters that a load of `path` would leave without a value: no file
/// has them, and they are no adapters.
Status findLacking(const StepProgram &program, const std::string &path,
                   std::vector<std::string> &names);

/// The failure, without reading a value, of a file with these weights: tensors
/// that are codes (Code::Unsupported), and names that it can't have.
Status checkSaved(const StepProgram &program, const SavedWeights &how);

/// Checks that a checkpoint's bytes have the checksum that was written.
Status checkSum(const SafetensorsFile &file);

/// "'a', 'b', 'c' and 3 more".
std::string listNames(const std::vector<std::string> &names);

} // namespace tmc::values

#endif // TMC_RUNTIME_STEP_VALUES_H
