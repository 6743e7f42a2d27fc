#include "compiler/target/BuiltinHosts.h"

using namespace tmc;

namespace {

constexpr double kGiga = 1e9;

/// A generation of PCI Express: rates of 16 lanes to a card and 4 to a drive.
struct Pcie {
  double linkGigabytesPerSecond;
  double readGigabytesPerSecond, writeGigabytesPerSecond;
};

// Links: copies of large pinned buffers, one direction at a time, as NVIDIA's
// nvbandwidth prints them (host_to_device_memcpy_ce): 55 of 63 GB/s on PCIe 5
// (H100), 25 of 31.5 on PCIe 4 (A100), 12 of 15.75 on PCIe 3 (V100). Drives:
// sequential rates of Samsung's data sheets: PM1743, PM9A3, PM983.
constexpr Pcie kPcie5 = {55, 14, 7.1}, kPcie4 = {25, 6.8, 4},
               kPcie3 = {12, 3.2, 2};

/// One socket: a card's transfers and updates use the memory next to it.
struct Machine {
  Pcie pcie;
  double memoryGigabytesPerSecond; // Channels x 8 bytes x transfers a second.
  double gigaflops; // In f32: cores x GHz x 64 with AVX-512, 32 with AVX2.
};

/// By HostMachine, from the makers' product pages.
constexpr Machine kMachines[] = {
    // Xeon Platinum 8480+: 56 cores of 2.0 GHz, 8 channels of DDR5-4800.
    {kPcie5, 307.2, 56 * 2.0 * 64},
    // EPYC 7742 (DGX A100): 64 cores of 2.25 GHz, 8 channels of DDR4-3200.
    {kPcie4, 204.8, 64 * 2.25 * 32},
    // Xeon Platinum 8168 (DGX-2): 24 cores of 2.7 GHz, 6 channels of DDR4-2666.
    {kPcie3, 128, 24 * 2.7 * 64},
    // Ryzen 9 9950X: 16 cores of 4.3 GHz, 2 channels of DDR5-5600.
    {kPcie5, 89.6, 16 * 4.3 * 64},
    // Ryzen 9 7950X: 16 cores of 4.5 GHz, 2 channels of DDR5-5200.
    {kPcie4, 83.2, 16 * 4.5 * 32},
    // Ryzen 9 5950X: 16 cores of 3.4 GHz, 2 channels of DDR4-3200.
    {kPcie4, 51.2, 16 * 3.4 * 32}};

/// The share of the memory's peak rate that a streaming kernel reaches, or all
/// transfers and updates together: an assumption, until a calibration measures
/// it.
constexpr double kStreamShare = 0.8;

/// The time from the call to the first byte of an asynchronous copy; of a read
/// from a drive at a queue depth of one; and the start time of threads.
constexpr double kLinkLatencySeconds = 10e-6, kFileLatencySeconds = 100e-6,
                 kUpdateLaunchSeconds = 10e-6;

const Machine &machineOf(HostMachine machine) {
  return kMachines[static_cast<int>(machine)];
}

} // namespace

void tmc::describeHost(HostMachine machine, Target &target) {
  const Machine &m = machineOf(machine);
  const Channel link = {kLinkLatencySeconds,
                        m.pcie.linkGigabytesPerSecond * kGiga};
  target.copies[EngineKind::DeviceToHost] = link;
  target.copies[EngineKind::HostToDevice] = link;
  target.updates = {kUpdateLaunchSeconds, m.gigaflops * kGiga,
                    kStreamShare * m.memoryGigabytesPerSecond * kGiga};
  target.hostBytesPerSecond = target.updates.bytesPerSecond;
  describeFile(machine, target);
}

void tmc::describeFile(HostMachine machine, Target &target) {
  const Pcie &pcie = machineOf(machine).pcie;
  target.copies[EngineKind::FileRead] = {kFileLatencySeconds,
                                         pcie.readGigabytesPerSecond * kGiga};
  target.copies[EngineKind::FileWrite] = {kFileLatencySeconds,
                                          pcie.writeGigabytesPerSecond * kGiga};
}
