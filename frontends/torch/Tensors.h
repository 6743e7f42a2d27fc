// Tensors.h - the values of stored tensors, from the archive's storages.
//
//   weight_0   [ . . . . . . . . . . . . ]       one storage, raw bytes
//   "a.weight"   sizes 2 x 3, strides 3 x 1, offset 0
//   "b.weight"       sizes 3 x 2, strides 1 x 3, offset 6
//
// A tensor whose elements lie in row-major order is a range of the mapped
// archive. Any other view is gathered when it is read.

#ifndef TMC_FRONTENDS_TORCH_TENSORS_H
#define TMC_FRONTENDS_TORCH_TENSORS_H

#include "frontends/torch/Program.h"

namespace tmc::torch_import {

class ArchiveTensors : public TensorStore {
public:
  explicit ArchiveTensors(Archive archive) : archive(std::move(archive)) {}

  Expected<std::string_view> read(int index) override;

  /// Adds a tensor. Fails with `Input` if its sizes, strides and offset
  /// contradict each other or the storage; with `Unsupported` if it is a
  /// pickle.
  Expected<void> add(const std::string &name, const Payload &payload);

  Archive archive;

private:
  struct View {
    std::string name, entry;
    ElementType type;
    Dims dims, strides;
    int64_t offset = 0, count = 0;
    int64_t storageBytes = 0; ///< The minimal size of the storage.
    bool rowMajor = true;
    std::string gathered;
  };
  std::vector<View> views;
};

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_TENSORS_H
