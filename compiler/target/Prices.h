// Prices.h - a kernel's predicted time, and the source of the prediction.
//
// Planning trades time for memory, so its plans are as good as its prices. A
// price comes from the first of these that knows the kernel:
//
//     measured    the kernel's own time on this card, found by its object
//     class       kernels like it were measured on this card
//     stale       the same, but the kernels have been rewritten since
//     scaled      kernels like it were measured on another card, or with
//                 another type of products: the share of the peak rate that
//                 they reached holds here as well
//     published   a roofline of the maker's peak rates
//     nominal     a rough description of a processor
//
// An object is a kernel of the runtime with its parameters, as one line of
// text. It doesn't depend on the step or on the kernel's name there:
//
//     Matmul lhs=BF16 rhs=BF16 out=F32 m=768 n=3072 k=8192 ...
//     Fused rows=8192 cols=768 columnSums=3 ... body=5d0c9a1f22e07b6c
//
// A class is a family of the runtime and conditions on the parameters. Its
// price is a roofline whose launch time counts for each launch of the device:
//
//     seconds = launches * launch + max(flops / flops per second,
//                                       bytes / bytes per second)
//
// Products of matrices fill the card in waves. A wave is a tile of the result
// for each of the card's multiprocessors, and the last wave takes as long as
// any other. `tileSeconds` of a class is a tile's own time beside its
// operations. Few tiles are cut along k (split k), at the price of writing and
// reading the parts of the sums.

#ifndef TMC_COMPILER_TARGET_PRICES_H
#define TMC_COMPILER_TARGET_PRICES_H

#include "compiler/target/Roofline.h"
#include "runtime/kernels/DType.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// The type of a product's factors; the sum is f32. A device multiplies the
/// later types faster, if it has units for them.
enum class ProductType : uint8_t { F32, TF32, Bits16, Bits8 };
constexpr ProductType kProductTypes[] = {ProductType::F32, ProductType::TF32,
                                         ProductType::Bits16,
                                         ProductType::Bits8};

/// "f32", "tf32", "16-bit", "8-bit": the words of target files and objects.
const char *nameOf(ProductType type);

/// The type in which operands of `type` are multiplied.
ProductType productTypeOf(DType type);

/// From the most to the least certain.
enum class PriceSource : uint8_t {
  Measured,
  Class,
  Stale,
  Scaled,
  Published,
  Nominal
};
constexpr PriceSource kPriceSources[] = {
    PriceSource::Measured, PriceSource::Class,     PriceSource::Stale,
    PriceSource::Scaled,   PriceSource::Published, PriceSource::Nominal};
/// "measured", "class", ...: the words of plan.json.
const char *nameOf(PriceSource source);

/// The work of one run of a kernel.
struct KernelWork {
  std::string family; // Its class in the runtime, "Fused" for generated ones.
  ProductType products = ProductType::F32;
  bool hasProducts = false; // False: `products` is f32 and means nothing.
  int64_t flops = 0, bytes = 0;
  int64_t launches = 1; // Of the device.
  std::string object;   // Empty: unknown.

  /// A parameter's text; of the object, or one of `products`, `flops`, `bytes`
  /// and `launches`. None: the object lacks it, or it has no products.
  std::optional<std::string> parameter(std::string_view name) const;
  std::optional<int64_t> number(std::string_view name) const;
};

/// A price, and an interval in which the time should lie. The interval is empty
/// (`most` < `least`) if nothing is known about it.
struct Price {
  int64_t picoseconds = 1;
  int64_t least = 0, most = -1; // picoseconds
  PriceSource source = PriceSource::Nominal;
};

/// The prices of a step's kernels, all trips of its loops together.
struct PriceSum {
  std::map<PriceSource, int64_t> picoseconds;
  int64_t least = 0, most = 0; // picoseconds; most < least: unknown.
  /// The families whose kernels were measured before they were rewritten.
  std::set<std::string> stale;

  void add(const Price &price, int64_t times, const std::string &family);
  int64_t total() const;
  /// The source of most of the time.
  PriceSource mainSource() const;
};

/// Kernels with one price.
struct KernelClass {
  std::string family; // "*": all families.
  /// Conditions that all hold, "products=16-bit headDim<=64 dropout>0"; numbers
  /// are compared as numbers, other words must be equal.
  std::string where;
  Roofline roofline;
  double tileSeconds = 0; // > 0: a product of matrices, in waves.
  /// Nine of ten measured kernels were within this share of their price.
  double error = 0;
  /// The kernel's version when it was measured (kernelVersion); empty: another
  /// type or family was.
  std::string version;

  bool holds(const KernelWork &work) const;
  double seconds(const KernelWork &work, int64_t processors) const;
};

/// The reason why `where` is no list of conditions, or "".
std::string faultOfConditions(std::string_view where);

/// A number that changes with the source text of a family's kernels on cuda;
/// empty for an unknown family.
std::string kernelVersion(std::string_view family);

} // namespace tmc

#endif // TMC_COMPILER_TARGET_PRICES_H
