//===- Homes.cpp - where the tensors of a program are ---------------------===//

#include "runtime/step/Homes.h"

#include "runtime/kernels/Ranks.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tmc {

/// All bits set: a NaN in every float type, minus one in every integer type.
static constexpr int kPoison = 0xff;
/// Written at a time.
static constexpr int64_t kZeroBytes = 1 << 20;
/// Sampled from each piece that is written.
static constexpr int64_t kSampleBytes = 1024;

static int64_t placeOf(const Device &device) {
  return device.peers ? device.peers->place(Axis::Data) : 0;
}

static int64_t tensorPlaceOf(const Device &device) {
  return device.peers ? device.peers->place(Axis::Tensor) : 0;
}

bool Homes::writesFiles() const {
  return placeOf(device_) == 0 && tensorPlaceOf(device_) == 0;
}

std::pair<int64_t, int64_t> Homes::heldBytes(const TensorInfo &tensor) const {
  if (!tensor.shard)
    return {0, tensor.pieceElements() * sizeOf(tensor.type)};
  const int64_t place = placeOf(device_), size = sizeOf(tensor.type);
  return {tensor.shardBegin(place) * size, tensor.shardEnd(place) * size};
}

Region Homes::regionOf(const TensorInfo &tensor, int64_t first,
                       int64_t bytes) const {
  // A shard begins at an element of the first of its tensors.
  const int64_t before =
      tensor.shard ? placeOf(device_) * tensor.shard - tensor.shardFrom : 0;
  return {tensor.offset + first - before * sizeOf(tensor.type), bytes,
          tensor.type, tensor.space};
}

Status Homes::writeHeld(const TensorInfo &tensor, int64_t first,
                        const void *from, int64_t bytes) const {
  const int64_t at = regionOf(tensor, first, bytes).offset;
  switch (tensor.space) {
  case SpaceKind::Device:
    device_.upload(device_.arena(tensor.space) + at, from, bytes);
    return Status::ok();
  case SpaceKind::Host:
    std::memcpy(device_.arena(tensor.space) + at, from, size_t(bytes));
    return Status::ok();
  case SpaceKind::File:
    return file_->writePart(at, from, bytes);
  }
  return Status::ok();
}

Status Homes::clearShard(const TensorInfo &tensor) const {
  const std::vector<char> zeros(static_cast<size_t>(kZeroBytes));
  const int64_t size = tensor.shard * sizeOf(tensor.type);
  const int64_t begin = placeOf(device_) * size;
  for (int64_t at = 0; at < size; at += kZeroBytes)
    if (Status s = writeHeld(tensor, begin + at, zeros.data(),
                             std::min(kZeroBytes, size - at));
        !s)
      return s;
  return Status::ok();
}

Status Homes::readHeld(const TensorInfo &tensor, int64_t first, void *to,
                       int64_t bytes) const {
  return read(regionOf(tensor, first, bytes), to);
}

Status Homes::write(const TensorInfo &tensor, int64_t first, const void *from,
                    int64_t bytes) const {
  if ((tensor.shard || tensor.chunk) && samples_) {
    const int64_t sample[2] = {tensor.offset + first, bytes};
    samples_->fetch_add(
        checksumOf(from, std::min<int64_t>(bytes, kSampleBytes)) *
        (checksumOf(sample, sizeof sample) | 1));
  }
  const auto [begin, end] = heldBytes(tensor);
  const int64_t place = tensorPlaceOf(device_), size = sizeOf(tensor.type);
  int64_t at = std::max(begin, tensor.pieceBefore(place, first / size) * size);
  const int64_t last =
      std::min(end, tensor.pieceBefore(place, (first + bytes) / size) * size);
  while (at < last) {
    int64_t some = last - at;
    if (const int64_t chunk = tensor.chunk * size)
      some = std::min(some, chunk - at % chunk);
    const char *source = static_cast<const char *>(from) +
                         (tensor.inWhole(place, at / size) * size - first);
    if (Status s = writeHeld(tensor, at, source, some); !s)
      return s;
    at += some;
  }
  return Status::ok();
}

Status Homes::read(const TensorInfo &tensor, int64_t first, void *to,
                   int64_t bytes) const {
  if (!tensor.chunk)
    return readPiece(tensor, first, to, bytes);
  const int64_t size = sizeOf(tensor.type), chunk = tensor.chunk * size;
  std::vector<char> piece;
  for (int64_t owner = 0; owner < tensor.pieces; ++owner) {
    const int64_t begin = tensor.pieceBefore(owner, first / size) * size;
    const int64_t end =
        tensor.pieceBefore(owner, (first + bytes) / size) * size;
    if (begin == end)
      continue;
    piece.resize(size_t(end - begin));
    // All ranks make the same calls: the others read as much of their pieces.
    if (Status s = readPiece(tensor, begin, piece.data(), end - begin); !s)
      return s;
    if (device_.peers)
      if (Status s = device_.peers->share(Axis::Tensor, int(owner),
                                          piece.data(), end - begin);
          !s)
        return s;
    for (int64_t at = begin; at < end;) {
      const int64_t some = std::min(end - at, chunk - at % chunk);
      std::memcpy(static_cast<char *>(to) +
                      (tensor.inWhole(owner, at / size) * size - first),
                  piece.data() + (at - begin), size_t(some));
      at += some;
    }
  }
  return Status::ok();
}

Status Homes::readPiece(const TensorInfo &tensor, int64_t first, void *to,
                        int64_t bytes) const {
  if (!tensor.shard)
    return readHeld(tensor, first, to, bytes);
  const int64_t place = placeOf(device_), size = sizeOf(tensor.type);
  for (int64_t at = first; at < first + bytes;) {
    const int64_t owner = tensor.shardOf(at / size);
    const int64_t end = std::min(first + bytes, tensor.shardEnd(owner) * size);
    char *target = static_cast<char *>(to) + (at - first);
    if (owner == place)
      if (Status s = readHeld(tensor, at, target, end - at); !s)
        return s;
    if (device_.peers)
      if (Status s =
              device_.peers->share(Axis::Data, int(owner), target, end - at);
          !s)
        return s;
    at = end;
  }
  return Status::ok();
}

Status Homes::read(const Region &region, void *to) const {
  switch (region.space) {
  case SpaceKind::Device:
    device_.download(to, device_.arena(region.space) + region.offset,
                     region.bytes);
    return Status::ok();
  case SpaceKind::Host:
    std::memcpy(to, device_.arena(region.space) + region.offset,
                size_t(region.bytes));
    return Status::ok();
  case SpaceKind::File:
    return file_->readPart(region.offset, to, region.bytes);
  }
  return Status::ok();
}

void Homes::poison(const Region &region) const {
  switch (region.space) {
  case SpaceKind::Device:
    return device_.poison(device_.arena(region.space) + region.offset,
                          region.bytes);
  case SpaceKind::Host:
    std::memset(device_.arena(region.space) + region.offset, kPoison,
                size_t(region.bytes));
    return;
  case SpaceKind::File:
    return file_->forget(region.offset, region.bytes);
  }
}

} // namespace tmc
