//===- Machine.h - the memories and the engines of a machine ----*- C++ -*-===//
//
// A step keeps its bytes in *spaces* and works on *engines*. This file lists
// both, once. The planner, the mem dialect, the runtime, the reports and the C
// interface read these two tables, so a new space or engine is one row here,
// and an answer in each place that must treat it in a way of its own.
//
//                  h2d              file-read
//      device  <---------   host  <-----------   file
//              --------->         ----------->
//     compute      d2h      host    file-write
//
// Engines run beside each other, each first in, first out. An engine either
// copies bytes from one space to another, or runs kernels on the bytes of one
// space. A transfer of a file goes through bytes of the host: its scratch.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MACHINE_H
#define TMC_RUNTIME_KERNELS_MACHINE_H

#include <cstddef>
#include <cstdint>

namespace tmc {

/// A kind of memory. Device is the one that the budget is about.
enum class SpaceKind : uint8_t { Device, Host, File };

struct SpaceInfo {
  SpaceKind kind;
  const char *name; // In problems, IR, reports and messages.
};

inline constexpr SpaceInfo kSpaces[] = {
    {SpaceKind::Device, "device"},
    {SpaceKind::Host, "host"},
    {SpaceKind::File, "file"},
};
inline constexpr size_t kSpaceCount = sizeof(kSpaces) / sizeof(*kSpaces);

/// A kind of engine. Compute runs the device's kernels, the only one that runs
/// in the order of the program's own list.
enum class EngineKind : uint8_t {
  Compute,
  DeviceToHost,
  HostToDevice,
  FileRead,
  FileWrite,
  Host
};

struct EngineInfo {
  EngineKind kind;
  const char *name; // In problems, IR, reports, traces and messages.
  const char *work; // For people: "to the host", "updates on the host".
  SpaceKind reads, writes;
  bool copies; // It moves bytes as they are. Otherwise it runs kernels.
  /// The space of its scratch, where that isn't one that it reads or writes by
  /// pointer (a file's bytes have no address).
  SpaceKind scratch;
};

inline constexpr EngineInfo kEngines[] = {
    {EngineKind::Compute, "compute", "kernels", SpaceKind::Device,
     SpaceKind::Device, false, SpaceKind::Device},
    {EngineKind::DeviceToHost, "d2h", "to the host", SpaceKind::Device,
     SpaceKind::Host, true, SpaceKind::Host},
    {EngineKind::HostToDevice, "h2d", "to the device", SpaceKind::Host,
     SpaceKind::Device, true, SpaceKind::Host},
    {EngineKind::FileRead, "file-read", "from the file", SpaceKind::File,
     SpaceKind::Host, true, SpaceKind::Host},
    {EngineKind::FileWrite, "file-write", "to the file", SpaceKind::Host,
     SpaceKind::File, true, SpaceKind::Host},
    {EngineKind::Host, "host", "kernels on the host", SpaceKind::Host,
     SpaceKind::Host, false, SpaceKind::Host},
};
inline constexpr size_t kEngineCount = sizeof(kEngines) / sizeof(*kEngines);

constexpr const SpaceInfo &infoOf(SpaceKind kind) {
  return kSpaces[size_t(kind)];
}
constexpr const EngineInfo &infoOf(EngineKind kind) {
  return kEngines[size_t(kind)];
}
constexpr const char *nameOf(SpaceKind kind) { return infoOf(kind).name; }
constexpr const char *nameOf(EngineKind kind) { return infoOf(kind).name; }

/// The engine that copies from one space to another; null if none does.
constexpr const EngineInfo *copyEngine(SpaceKind from, SpaceKind to) {
  for (const EngineInfo &engine : kEngines)
    if (engine.copies && engine.reads == from && engine.writes == to)
      return &engine;
  return nullptr;
}

/// Whether an engine reads or writes bytes of `space`.
constexpr bool touches(EngineKind engine, SpaceKind space) {
  return infoOf(engine).reads == space || infoOf(engine).writes == space;
}

/// One T for each space or engine, in the order of the tables.
template <typename T> struct PerSpace {
  T of[kSpaceCount] = {};
  constexpr T &operator[](SpaceKind kind) { return of[size_t(kind)]; }
  constexpr const T &operator[](SpaceKind kind) const {
    return of[size_t(kind)];
  }
  bool operator==(const PerSpace &) const = default;
};
template <typename T> struct PerEngine {
  T of[kEngineCount] = {};
  constexpr T &operator[](EngineKind kind) { return of[size_t(kind)]; }
  constexpr const T &operator[](EngineKind kind) const {
    return of[size_t(kind)];
  }
  bool operator==(const PerEngine &) const = default;
};

namespace detail {
constexpr bool tablesAreInOrder() {
  for (size_t s = 0; s < kSpaceCount; ++s)
    if (size_t(kSpaces[s].kind) != s)
      return false;
  for (size_t e = 0; e < kEngineCount; ++e)
    if (size_t(kEngines[e].kind) != e)
      return false;
  return true;
}
} // namespace detail
static_assert(detail::tablesAreInOrder(), "a row's place is its kind");

} // namespace tmc

#endif // TMC_RUNTIME_KERNELS_MACHINE_H
