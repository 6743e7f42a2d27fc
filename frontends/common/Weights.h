// Weights.h - where the values of a model's parameters are.
//
// Importing a model reads no parameter: a step is planned without a weight
// touched, and graph-only files, whose external data aren't shipped, import
// like any other. Whoever wants the values asks here, by name.

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
/// The tensors that a model's files hold, by number. A frontend derives its own
/// from it.
class TensorStore {
public:
  virtual ~TensorStore() = default;
  /// The bytes of tensor `index`: row-major, little endian, without alignment;
  /// valid as long as this object. Fails with `World` if a file is missing,
  /// with `Input` if it isn't what the model says.
  virtual Expected<std::string_view> read(int index) = 0;
  /// The file that holds them, for messages; empty for the model's own.
  virtual std::string fileOf(int index) const { return {}; }
};
} // namespace frontend

class Weights {
public:
  struct Entry {
    std::string name;
    int index; ///< Of the store.
  };
  /// What the model has and its graph doesn't read: counts of batches, a head
  /// that another task uses.
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
  /// Names of values that aren't of the model's state_dict: buffers that aren't
  /// persistent, constants.
  const std::vector<std::string> &transient() const { return without; }

  /// Where the values of `name` come from, for messages: "model.onnx.data".
  /// Empty if they are in the model's own file.
  std::string fileOf(const std::string &name) const;

  /// The bytes of `name`: row-major, little endian, of the argument's element
  /// type, not necessarily aligned; valid as long as this object. Fails with
  /// `World` if an external file is missing, with `Input` if it isn't what the
  /// model says.
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
