//===- Homes.cpp - where the tensors of a program are ---------------------===//

#include "runtime/step/Homes.h"

#include <cstring>

namespace tmc {

/// All bits set: a NaN in every float type, minus one in every integer type.
static constexpr int kPoison = 0xff;

Status Homes::write(const TensorInfo &tensor, int64_t first, const void *from,
                    int64_t bytes) const {
  const int64_t at = tensor.offset + first;
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

Status Homes::read(const TensorInfo &tensor, int64_t first, void *to,
                   int64_t bytes) const {
  return read({tensor.offset + first, bytes, tensor.type, tensor.space}, to);
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
