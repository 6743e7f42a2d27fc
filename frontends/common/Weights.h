// Weights.h - the values of a model's parameters.
//
// Importing a model reads no parameter: a step is planned without its weights,
// and graph-only files without their external data import like any other. This
// class reads values on demand, by name.

#ifndef TMC_FRONTENDS_COMMON_WEIGHTS_H
#define TMC_FRONTENDS_COMMON_WEIGHTS_H

#include "compiler/support/Failure.h"
#include "frontends/common/ElementType.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tmc {

namespace frontend {
/// The tensors in a model's files, by number. Each frontend derives a class of
/// its own.
class TensorStore {
public:
  virtual ~TensorStore() = default;
  /// The bytes of tensor `index`: row-major, little endian, without alignment;
  /// valid as long as this object. Fails with `World` if a file is missing,
  /// with `Input` if the file contradicts the model.
  virtual Expected<std::string_view> read(int index) = 0;
  /// The file that holds the tensor, for messages; empty for the model's own.
  virtual std::string fileOf(int index) const { return {}; }
};
} // namespace frontend

class Weights {
public:
  struct Entry {
    std::string name;
    int index; ///< In the store.
  };
  /// A tensor of the model that its graph doesn't read: a count of batches, a
  /// head for another task.
  struct Unused : Entry {
    std::vector<std::string> aliases;
    frontend::ElementType type;
    std::vector<int64_t> shape;
  };
  Weights(std::unique_ptr<frontend::TensorStore> store,
          std::vector<Entry> entries, std::vector<Unused> unused = {},
          std::vector<std::string> transient = {})
      : store(std::move(store)), entries(std::move(entries)),
        rest(std::move(unused)), without(std::move(transient)) {}

  /// The name of each parameter and state, in the order of the arguments.
  std::vector<std::string> names() const;

  const std::vector<Unused> &unused() const { return rest; }
  /// Names of values outside the model's state_dict: non-persistent buffers,
  /// constants.
  const std::vector<std::string> &transient() const { return without; }

  /// The file of the values of `name`, for messages: "model.onnx.data". Empty
  /// if they are in the model's own file.
  std::string fileOf(const std::string &name) const;

  /// The bytes of `name`: row-major, little endian, of the argument's element
  /// type, not necessarily aligned; valid as long as this object. Fails with
  /// `World` if an external file is missing, with `Input` if the file
  /// contradicts the model.
  Expected<std::string_view> read(const std::string &name);
  Expected<std::string_view> read(const Unused &tensor);

private:
  const Entry *find(const std::string &name) const;

  std::unique_ptr<frontend::TensorStore> store;
  std::vector<Entry> entries;
  std::vector<Unused> rest;
  std::vector<std::string> without;
};

} // namespace tmc

#endif // TMC_FRONTENDS_COMMON_WEIGHTS_H
