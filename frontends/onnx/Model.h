// Model.h - an ONNX file, opened, bounded and parsed.
//
// The graph is in protobuf messages; the data of larger tensors stay in the
// mapped file and are found through `TensorData` (see Wire.h).

#ifndef TMC_FRONTENDS_ONNX_MODEL_H
#define TMC_FRONTENDS_ONNX_MODEL_H

#include "compiler/support/Failure.h"
#include "frontends/SafeFile.h"
#include "frontends/common/Array.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>

namespace tmc::onnx_import {

using namespace frontend;

/// The type with this TensorProto.DataType number, if it is one of ours.
std::optional<ElementType> typeOfNumber(int64_t number);

/// The place of a tensor's bytes. No byte has been read yet, and an external
/// file may be missing.
struct TensorData {
  enum Place {
    InFile,   ///< `length` bytes of the model's own file, from `offset`.
    External, ///< The same of the file `location`, beside the model.
    Inline,   ///< `bytes`.
  };
  std::string name;
  ElementType type = ElementType::F32;
  Dims dims;
  Place place = Inline;
  int64_t offset = 0;
  int64_t length = 0;
  std::string location;
  std::string bytes;
};

/// The files of a model, mapped as they are needed.
class ModelFiles {
public:
  ModelFiles(SafeFile model, std::string owned, std::string directory)
      : model(std::move(model)), owned(std::move(owned)),
        directory(std::move(directory)) {}

  std::string_view modelBytes() const {
    return owned.empty() ? model.bytes() : std::string_view(owned);
  }
  /// The bytes of `data`, row-major, little endian, without alignment. Fails
  /// with `World` if an external file is missing, with `Input` if it is too
  /// short or may not be opened.
  Expected<std::string_view> read(const TensorData &data);

private:
  SafeFile model;
  std::string owned;
  std::string directory;
  std::map<std::string, SafeFile> external;
};

struct Model {
  std::unique_ptr<ModelFiles> files;
  onnx::ModelProto proto;
  /// Version of each operator set that the model names; "" is ONNX's own.
  std::map<std::string, int64_t> opsets;
};

/// Opens and parses the model at `path`.
Expected<Model> openModel(const std::string &path);

/// Parses a model that is in memory; its external files lie in `directory`.
Expected<Model> parseModel(std::string bytes, const std::string &directory);

/// The place of the bytes of `tensor`. Fails with `Input` if type, shape and
/// size contradict each other.
Expected<TensorData> locate(const onnx::TensorProto &tensor);

/// The elements of `tensor`.
Expected<Array> readArray(ModelFiles &files, const TensorData &data);

/// The metadata entry `key` of a node, value or graph (fields that libonnx's
/// classes lack), or an empty string.
std::string metadata(const google::protobuf::Message &message, int field,
                     const std::string &key);

// The numbers of the field metadata_props in messages for which libonnx 1.12
// lacks it.
constexpr int kNodeMetadata = 9;
constexpr int kValueMetadata = 4;
constexpr int kGraphMetadata = 16;

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_MODEL_H
