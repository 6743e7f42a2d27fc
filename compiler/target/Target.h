// Target.h - the description of a target: rates, sizes, and the backend.
//
// A description is constants, and never depends on the machine that runs tmc:
// the same input gives the same plan everywhere. `--target` names one
// (`cpu:v3`, `cuda:rtx3060`), a CUDA architecture (`cuda:sm_90`: its largest
// known card), or a file that `tmc calibrate` wrote.
//
// A kernel's time is that of a roofline plus a launch time (Roofline.h). A
// device's rate of operations depends on the type of products: products of f32,
// of f32 rounded to TF32, of 16-bit and of 8-bit floats each have a roofline.
// Built-in targets have these rates for large matrix products and device
// memory; the f32 roofline also holds for all kernels without products. A
// calibration has one roofline for each family of kernels that it measured.
// Host.h describes the transfers to the spaces beside the device.

#ifndef TMC_COMPILER_TARGET_TARGET_H
#define TMC_COMPILER_TARGET_TARGET_H

#include "compiler/target/Host.h"
#include "compiler/target/Roofline.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/Machine.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tmc {

/// The type of a product's factors; the sum is f32. A device multiplies the
/// later types faster, if it has units for them.
enum class ProductType : uint8_t { F32, TF32, Bits16, Bits8 };
constexpr ProductType kProductTypes[] = {ProductType::F32, ProductType::TF32,
                                         ProductType::Bits16,
                                         ProductType::Bits8};

/// "f32", "tf32", "16-bit", "8-bit": the words of target files.
const char *nameOf(ProductType type);

/// The type in which operands of `type` are multiplied.
ProductType productTypeOf(DType type);

/// The source of a target's rates: peak rates that the maker publishes, a rough
/// description of a processor, or a calibration.
enum class RateSource : uint8_t { Published, Nominal, Measured };
/// "published", "nominal", "measured": the words of plan.json.
const char *nameOf(RateSource source);

/// By the type of products. F32 always exists; a type without units in the
/// device, or without known rates, is missing.
using Rooflines = std::map<ProductType, Roofline>;

struct Target {
  std::string name;
  Backend backend = Backend::Cpu;
  std::string arch; // "sm_90"; an instruction set of cpuArchs().
  RateSource rates = RateSource::Nominal;
  /// -1: unknown, and no limit.
  PerSpace<int64_t> memoryBytes = PerSpace<int64_t>::all(-1);
  int64_t reservedBytes = 0; // Of the device: context and library handles.
  Rooflines rooflines;       // For kernels outside `families`.
  /// By the kernel's class in the runtime ("Matmul"), "Fused" for generated
  /// ones. Any type may be missing.
  std::map<std::string, Rooflines> families;
  int64_t arenaAlignment = 256; // For every buffer.
  PerEngine<Channel> copies;    // Of the engines that copy.
  /// Of an optimizer's rule that the host runs; bytes are of the host's memory.
  Roofline updates;

  /// The roofline of a kernel of `family` with products of `type`: the family's
  /// own roofline, else the target's, else those of f32, again the family's own
  /// first.
  const Roofline &rooflineOf(const std::string &family, ProductType type) const;
  /// Seconds of such a kernel.
  double seconds(const std::string &family, ProductType type, int64_t flops,
                 int64_t bytes) const;
  /// The same in picoseconds, at least 1: the unit of planning costs.
  int64_t picoseconds(const std::string &family, ProductType type,
                      int64_t flops, int64_t bytes) const;
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

/// A description as a file (JSON), and back. Files of older schemas are read as
/// well (TargetFile.cpp): the built-in target supplies their missing figures of
/// host and file. `name` is used in errors.
std::string targetToJson(const Target &target);
absl::StatusOr<Target> targetFromJson(const std::string &json,
                                      const std::string &name);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_TARGET_H
