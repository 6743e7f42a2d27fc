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
//     network
//
// Engines run beside each other, each first in, first out. An engine either
// copies bytes from one space to another, or runs kernels on the bytes of one
// space. A transfer of a file goes through bytes of the host: its scratch. The
// network moves bytes between the devices of a group, and each device's part of
// that reads and writes bytes of the device.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_KERNELS_MACHINE_H
#define TMC_RUNTIME_KERNELS_MACHINE_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tmc {

/// A kind of memory. Device, the first, is the one that the budget is about.
enum class SpaceKind : uint8_t {
  Device,
  Host,
  File,
};

struct SpaceInfo {
  SpaceKind kind;
  const char *name; // In problems, IR, reports, steps and messages.
  /// The processor reaches its bytes by pointer, and its arena is a mapping.
  /// The bytes of another space are read and written by calls.
  bool hasAddresses;
  /// Offsets and sizes in its arena are multiples of this many bytes; 0: of the
  /// target's alignment. Transfers that bypass the page cache (O_DIRECT) need
  /// the host's, and each block of a file has a checksum.
  int64_t alignment;
};

inline constexpr SpaceInfo kSpaces[] = {
    {SpaceKind::Device, "device", true, 0},
    {SpaceKind::Host, "host", true, 4096},
    {SpaceKind::File, "file", false, 64 << 10},
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
  Host,
  Network,
};

struct EngineInfo {
  EngineKind kind;
  const char *name; // In problems, IR, reports, traces and messages.
  const char *work; // For people: "to the host", "updates on the host".
  SpaceKind reads, writes;
  /// It moves bytes from one space to another as they are. Otherwise it runs
  /// kernels: those of the network also move bytes within their space.
  bool copies;
};

inline constexpr EngineInfo kEngines[] = {
    {EngineKind::Compute, "compute", "kernels", SpaceKind::Device,
     SpaceKind::Device, false},
    {EngineKind::DeviceToHost, "d2h", "to the host", SpaceKind::Device,
     SpaceKind::Host, true},
    {EngineKind::HostToDevice, "h2d", "to the device", SpaceKind::Host,
     SpaceKind::Device, true},
    {EngineKind::FileRead, "file-read", "from the file", SpaceKind::File,
     SpaceKind::Host, true},
    {EngineKind::FileWrite, "file-write", "to the file", SpaceKind::Host,
     SpaceKind::File, true},
    {EngineKind::Host, "host", "kernels on the host", SpaceKind::Host,
     SpaceKind::Host, false},
    {EngineKind::Network, "network", "between devices", SpaceKind::Device,
     SpaceKind::Device, false},
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

constexpr bool onDevice(SpaceKind kind) { return kind == SpaceKind::Device; }

/// The row of a name, or null.
constexpr const SpaceInfo *findSpace(std::string_view name) {
  for (const SpaceInfo &space : kSpaces)
    if (space.name == name)
      return &space;
  return nullptr;
}
constexpr const EngineInfo *findEngine(std::string_view name) {
  for (const EngineInfo &engine : kEngines)
    if (engine.name == name)
      return &engine;
  return nullptr;
}

/// `q.wait(engine("d2h"), 3)`: how emitted steps name rows. A name that isn't
/// in the table doesn't compile.
consteval SpaceKind space(std::string_view name) {
  return findSpace(name)->kind;
}
consteval EngineKind engine(std::string_view name) {
  return findEngine(name)->kind;
}

/// The engine that computes on the bytes of a space; null if none does.
constexpr const EngineInfo *kernelEngine(SpaceKind space) {
  for (const EngineInfo &engine : kEngines)
    if (!engine.copies && engine.kind != EngineKind::Network &&
        engine.reads == space)
      return &engine;
  return nullptr;
}

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

/// Whether an engine reads or writes the device's bytes.
constexpr bool touchesDevice(EngineKind engine) {
  return touches(engine, SpaceKind::Device);
}

namespace detail {
/// Walks through the rows of a table and one value for each.
template <typename Info, typename T> struct Rows {
  struct Row {
    const Info &row;
    T &value;
  };
  const Info *row;
  T *value;
  constexpr Row operator*() const { return {*row, *value}; }
  constexpr Rows &operator++() { return ++row, ++value, *this; }
  constexpr bool operator!=(const T *end) const { return value != end; }
};
template <typename Info, typename T> Rows(const Info *, T *) -> Rows<Info, T>;
} // namespace detail

/// One T for each space or engine, in the order of the tables.
template <typename T> struct PerSpace {
  T of[kSpaceCount] = {};

  /// The same value for each space.
  static constexpr PerSpace all(const T &value) {
    PerSpace result;
    for (T &each : result.of)
      each = value;
    return result;
  }
  constexpr T &device() { return (*this)[SpaceKind::Device]; }
  constexpr const T &device() const { return (*this)[SpaceKind::Device]; }
  constexpr T &operator[](SpaceKind kind) { return of[size_t(kind)]; }
  constexpr const T &operator[](SpaceKind kind) const {
    return of[size_t(kind)];
  }
  /// `for (auto [space, value] : figures)`
  constexpr auto begin() { return detail::Rows{kSpaces, of}; }
  constexpr auto begin() const { return detail::Rows{kSpaces, of}; }
  constexpr const T *end() const { return of + kSpaceCount; }
  bool operator==(const PerSpace &) const = default;
};
template <typename T> struct PerEngine {
  T of[kEngineCount] = {};

  static constexpr PerEngine all(const T &value) {
    PerEngine result;
    for (T &each : result.of)
      each = value;
    return result;
  }
  constexpr T &operator[](EngineKind kind) { return of[size_t(kind)]; }
  constexpr const T &operator[](EngineKind kind) const {
    return of[size_t(kind)];
  }
  /// `for (auto [engine, value] : figures)`
  constexpr auto begin() { return detail::Rows{kEngines, of}; }
  constexpr auto begin() const { return detail::Rows{kEngines, of}; }
  constexpr const T *end() const { return of + kEngineCount; }
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
