// BuiltinHosts.h - the assumed host machines of built-in cards.
//
// A card doesn't determine its host's memory or drive: one machine of the
// card's time represents all, with published rates. A calibration measures the
// actual machine.

#ifndef TMC_COMPILER_TARGET_BUILTINHOSTS_H
#define TMC_COMPILER_TARGET_BUILTINHOSTS_H

#include "compiler/target/Target.h"

#include <cstdint>

namespace tmc {

/// By processor and memory.
enum class HostMachine : uint8_t {
  XeonDDR5,   // PCIe 5 server.
  EpycDDR4,   // PCIe 4 server.
  XeonDDR4,   // PCIe 3 server.
  RyzenPcie5, // PCIe 5 card in a desktop.
  RyzenDDR5,  // PCIe 4 card in a desktop.
  RyzenDDR4   // PCIe 4 card in an older desktop.
};

/// Gives `target` the rates of transfers and of updates on that machine.
void describeHost(HostMachine machine, Target &target);
/// The rates of the machine's drive alone.
void describeFile(HostMachine machine, Target &target);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_BUILTINHOSTS_H
