// Target.h - the description of a target: rates, sizes, and the backend.
//
// A description is constants, and never depends on the machine that runs tmc:
// the same input gives the same plan everywhere. `--target` names one
// (`cpu:v3`, `cuda:rtx3060`), a CUDA architecture (`cuda:sm_90`: its largest
// known card), or a file that `tmc calibrate` wrote.
//
// A kernel's price comes from what is known best (Prices.h): its own time, the
// roofline of its family in a calibration, a class of kernels that were
// measured on this card or on a similar one, or the roofline of its type of
// products. Built-in targets have such rooflines from published peak rates; the
// f32 roofline also holds for kernels without products. Host.h describes the
// transfers to the spaces beside the device.

#ifndef TMC_COMPILER_TARGET_TARGET_H
#define TMC_COMPILER_TARGET_TARGET_H

#include "compiler/target/Host.h"
#include "compiler/target/Network.h"
#include "compiler/target/Prices.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Machine.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tmc {

/// By the type of products. F32 always exists; a type without units in the
/// device, or without known rates, is missing.
using Rooflines = std::map<ProductType, Roofline>;

struct Target {
  std::string name;
  Backend backend = Backend::Cpu;
  std::string arch; // "sm_90"; an instruction set of cpuArchs().
  PriceSource rates = PriceSource::Nominal; // Of the rooflines.
  /// The bytes of each space that a step may take; -1: unknown, and no limit.
  PerSpace<int64_t> memoryBytes = PerSpace<int64_t>::all(-1);
  /// A card doesn't determine its host's memory: `memoryBytes` beside the
  /// device is an assumption.
  bool isHostAssumed = false;
  int64_t reservedBytes = 0; // Of the device: context and library handles.
  Rooflines rooflines;       // For kernels outside `families`.
  /// By the kernel's class in the runtime ("Matmul"), "Fused" for generated
  /// ones. Any type may be missing.
  std::map<std::string, Rooflines> families;
  /// The first class that holds for a kernel has its price.
  std::vector<KernelClass> classes;
  bool areClassesScaled = false; // They were measured on another card.
  int64_t processors = 0;        // Multiprocessors of a card; 0: no classes.
  /// The card that measured the classes, in words, and the day; or empty.
  std::string measuredOn, measuredDate;
  /// Own times of kernels, by their objects: seconds.
  std::map<std::string, double> ownSeconds;
  std::string ownMeasuredOn; // The device of those times, or empty.
  /// The card that a name of an architecture stands for, or empty.
  std::string standsFor;
  int64_t arenaAlignment = 256; // For every buffer.
  PerEngine<Channel> copies;    // Of the engines that copy.
  /// Between the ranks of a mesh.
  NetworkLevels network = networkOf(Fabric::Ethernet);
  /// Of an optimizer's rule that the host runs; bytes are of the host's memory.
  Roofline updates;
  /// The host's memory has this rate, for copies and updates; 0: no limit. The
  /// rates of a calibration need none: all engines worked together.
  double hostBytesPerSecond = 0;

  /// The roofline of a kernel of `family` with products of `type`: the family's
  /// own roofline, else the target's, else those of f32, again the family's own
  /// first.
  const Roofline &rooflineOf(const std::string &family, ProductType type) const;
  Price price(const KernelWork &work) const;
  /// The architecture that code is compiled for, independent of the source of
  /// the rates: "cpu:v4", "cuda:sm_90".
  std::string compiledFor() const;
};

/// The instruction sets of x86-64 that the cpu backend is compiled for, each a
/// superset of the one before it:
///
///     v3       AVX2, FMA, F16C, BMI (x86-64-v3)
///     v4       AVX-512 F, BW, CD, DQ, VL (x86-64-v4)
///     v4-bf16  AVX512_BF16
///     v4-amx   AMX tiles of bf16
///
/// Source: the x86-64 psABI, micro-architecture levels.
const std::vector<std::string> &cpuArchs();

/// The set that `cpu` stands for, fixed when tmc was configured.
std::string defaultCpuArch();

/// The target named `text`, or described by the file of that path. NotFound if
/// there is neither; another error if the file can't be read or isn't a
/// description.
absl::StatusOr<Target> findTarget(const std::string &text);

/// The names that `findTarget` knows, for messages.
std::vector<std::string> targetNames();

/// The name that is closest to `text`, or "" if none is close.
std::string similarTarget(const std::string &text);

/// True if `findTarget` would take `text` for the path of a file.
bool isTargetFile(const std::string &text);

/// The classes of a card that was measured (compiler/target/cards), as the file
/// has them: "card", "measured_on", "date", "processors", "classes".
struct MeasuredCard {
  std::string card, measuredOn, date;
  int64_t processors = 0;
  std::vector<KernelClass> classes;
};
absl::StatusOr<MeasuredCard> measuredCardFromJson(const std::string &json,
                                                  const std::string &name);

/// The schema of the trainer's profiles (runtime/step/Profile.h).
constexpr int64_t kProfileSchema = 3;

/// Adds the times of kernels from a profile, which the trainer's `--profile`
/// wrote: the mean of all runs of an object. `name` is used in errors.
absl::Status addOwnPrices(const std::string &json, const std::string &name,
                          Target &target);

/// A description as a file (JSON), and back. Files of older schemas are read as
/// well (TargetFile.cpp): the built-in target supplies their missing figures of
/// host, file and network. `name` is used in errors.
std::string targetToJson(const Target &target);
absl::StatusOr<Target> targetFromJson(const std::string &json,
                                      const std::string &name);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_TARGET_H
