// BuiltinHosts.h - the machines that built-in cards are assumed to be in.
//
// A card says neither what memory its host has nor which drive: one machine of
// the card's time stands for all, with published rates. A calibration says what
// a machine at hand does.

#ifndef TMC_COMPILER_TARGET_BUILTINHOSTS_H
#define TMC_COMPILER_TARGET_BUILTINHOSTS_H

#include "compiler/target/Host.h"

#include <cstdint>

namespace tmc {

/// By processor and memory.
enum class HostMachine : uint8_t {
  XeonDDR5,  // PCIe 5 server.
  EpycDDR4,  // PCIe 4 server.
  XeonDDR4,  // PCIe 3 server.
  RyzenDDR5, // PCIe 4 card in a desktop.
  RyzenDDR4  // PCIe 4 card in an older desktop.
};

HostDescription hostOf(HostMachine machine);
FileDescription fileOf(HostMachine machine);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_BUILTINHOSTS_H
