//===- Values.h - values on their way between files and steps ---*- C++ -*-===//
//
// What loading values (Values.cpp) and checkpoints (Checkpoint.cpp) have in
// common. Tensors go a piece at a time, so that no copy of a large one is made.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_VALUES_H
#define TMC_RUNTIME_STEP_VALUES_H

#include "runtime/step/Homes.h"
#include "runtime/step/Safetensors.h"

#include <string>
#include <vector>

namespace tmc::values {

/// Bytes moved at a time.
constexpr int64_t kPieceBytes = 1 << 20;

/// The floats that are converted on their way between files and steps.
inline bool isPlainFloat(DType type) {
  return type == DType::F64 || type == DType::F32 || type == DType::F16 ||
         type == DType::BF16;
}

/// Element i of plain floats.
float floatAt(DType type, const char *data, int64_t i);

/// Whether all of `count` plain floats are finite.
bool isFinite(DType type, const char *data, int64_t count);

/// What has a value between two steps: parameters, states, moments.
inline bool isValue(const TensorInfo &info) {
  return info.role == Role::Param || info.role == Role::State ||
         info.role == Role::Moment;
}

bool sameShape(const TensorInfo &info, const SafeTensor &tensor);

/// Copies one tensor of a file to its place, floats as the step has them.
Status place(const Homes &homes, const SafetensorsFile &file,
             const SafeTensor &tensor, const TensorInfo &info);

/// Calls f(bytes, count) for a tensor of a file, a piece after the other.
/// F is Status(char *, int64_t bytes), which may change the piece; the first
/// that fails is returned.
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

/// "'a', 'b', 'c' and 3 more".
std::string listNames(const std::vector<std::string> &names);

} // namespace tmc::values

#endif // TMC_RUNTIME_STEP_VALUES_H
