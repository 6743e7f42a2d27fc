#include "frontends/torch/Tensors.h"
#include "frontends/Checked.h"

#include <algorithm>
#include <cstring>

using namespace tmc;
using namespace tmc::torch_import;

/// The most elements of a view that repeats elements: gathering the view must
/// not take more memory than the file has bytes.
constexpr int64_t kMaxRepeated = int64_t(1) << 24;

Expected<void> ArchiveTensors::add(const std::string &name,
                                   const Payload &payload) {
  if (payload.isPickle)
    return Failure::unsupported("'" + name + "' is stored as a pickle")
        .note("pickles are programs, and aren't run: save the model again with "
              "torch 2.9 or later");
  const TensorMeta &meta = payload.meta;
  if (!meta.type)
    return Failure::unsupported("'" + name + "' has elements of type number " +
                                std::to_string(meta.typeNumber));
  View view;
  view.name = name;
  view.entry = payload.entry;
  view.type = *meta.type;
  for (const Declared::Dim &dim : meta.dims) {
    if (!dim.symbol.empty())
      return Failure::input("'" + name + "' has no fixed size");
    view.dims.push_back(dim.size);
  }
  view.strides = meta.strides;
  view.offset = meta.offset;
  auto count = checkedNumElements(view.dims);
  bool valid =
      count && view.strides.size() == view.dims.size() && view.offset >= 0;
  // The end of the elements, and the stride of a row-major layout.
  int64_t end = view.offset, next = 1;
  for (size_t i = view.dims.size(); valid && i-- > 0;) {
    int64_t dim = view.dims[i], stride = view.strides[i];
    valid = stride >= 0;
    auto reach = checkedMul(std::max<int64_t>(dim - 1, 0), stride);
    auto sum = reach ? checkedAdd(end, *reach) : std::nullopt;
    auto product = checkedMul(next, std::max<int64_t>(dim, 1));
    valid = valid && sum && product;
    if (!valid)
      break;
    if (dim > 1 && stride != next)
      view.rowMajor = false;
    end = *sum;
    next = *product;
  }
  if (valid && *count == 0) { // It reads no element, for any offset.
    view.offset = 0;
    view.rowMajor = true;
    end = -1;
  }
  auto past = valid ? checkedAdd(end, 1) : std::nullopt;
  auto bytes = past ? checkedMul(*past, sizeInFile(view.type)) : std::nullopt;
  if (!bytes || !checkedMul(*count, sizeInFile(view.type)))
    return Failure::input("'" + name + "' of sizes " + str(view.dims) +
                          " and strides " + str(view.strides) +
                          " is no view of a storage");
  view.count = *count;
  view.storageBytes = *bytes;
  if (!view.rowMajor && view.count > kMaxRepeated && view.count > *past)
    return Failure::input("'" + name + "' repeats " + std::to_string(*past) +
                          " elements to " + std::to_string(view.count));
  if (int64_t size = archive.sizeOf(view.entry);
      size >= 0 && size < view.storageBytes)
    return Failure::input("'" + name + "' needs " +
                          std::to_string(view.storageBytes) + " bytes of '" +
                          view.entry + "', which has " + std::to_string(size));
  views.push_back(std::move(view));
  return {};
}

Expected<std::string_view> ArchiveTensors::read(int index) {
  View &view = views[index];
  int64_t size = sizeInFile(view.type);
  // A compressed storage may inflate only to the end of its views.
  int64_t reached = view.storageBytes;
  if (archive.sizeOf(view.entry) > reached)
    for (const View &other : views)
      if (other.entry == view.entry)
        reached = std::max(reached, other.storageBytes);
  auto storage = archive.read(view.entry, reached);
  if (!storage) {
    Failure failure = std::move(storage.failure());
    failure.notes.push_back("it holds the values of '" + view.name + "'");
    return failure;
  }
  if (view.rowMajor)
    return storage->substr(view.offset * size, view.count * size);
  if (!view.gathered.empty() || view.count == 0)
    return std::string_view(view.gathered);
  std::string bytes(view.count * size, '\0');
  Dims position(view.dims.size(), 0);
  int64_t at = view.offset;
  for (int64_t i = 0; i < view.count; ++i) {
    std::memcpy(&bytes[i * size], storage->data() + at * size, size);
    for (size_t d = view.dims.size(); d-- > 0;) {
      at += view.strides[d];
      if (++position[d] < view.dims[d])
        break;
      at -= view.strides[d] * view.dims[d];
      position[d] = 0;
    }
  }
  view.gathered = std::move(bytes);
  return std::string_view(view.gathered);
}
