#include "driver/calibrate/ProfileLaunches.h"

#include "compiler/support/Json.h"
#include "runtime/kernels/Attention.h"

#include "llvm/ADT/StringSwitch.h"

#include <algorithm>

using namespace tmc;
namespace json = llvm::json;

/// The type of a kernel's factors, as its object names it.
static ProductType factorsOf(const KernelWork &work) {
  if (work.parameter("tf32") == "true")
    return ProductType::TF32;
  std::string type =
      work.parameter("type").value_or(work.parameter("lhs").value_or(""));
  if (type == "F32") // A mixed product has the narrower type.
    type = work.parameter("rhs").value_or(type);
  return llvm::StringSwitch<ProductType>(type)
      .Cases({"BF16", "F16"}, ProductType::Bits16)
      .Cases({"F8E4M3", "F8E5M2"}, ProductType::Bits8)
      .Default(ProductType::F32);
}

ProductType tmc::productsOf(const std::string &object) {
  KernelWork work;
  work.object = object;
  const llvm::StringRef family = llvm::StringRef(object).split(' ').first;
  if (family.starts_with("Attention")) {
    // Other heads are multiplied in f32.
    const bool isForTensorCores =
        work.parameter("type") != "F16" &&
        work.number("headDim").value_or(0) <= kMostTensorChannels;
    return isForTensorCores ? factorsOf(work) : ProductType::F32;
  }
  const bool multiplies = family == "Matmul" ||
                          family.starts_with("LinearCrossEntropy") ||
                          family == "Conv" || family == "ConvGradInput" ||
                          family == "ConvGradFilter";
  return multiplies ? factorsOf(work) : ProductType::F32;
}

Expected<void> tmc::keepFastest(const std::string &profile,
                                std::vector<MeasuredLaunch> &launches) {
  Expected<json::Object> read = parseJsonObject(profile);
  if (!read)
    return Failure::defect("a profile " + read.failure().message);
  const json::Array *rows = read->getArray("launches");
  const json::Object *objects = read->getObject("objects");
  if (!rows)
    return Failure::defect("a profile has no launches");
  launches.resize(rows->size());
  int64_t last = 0;   // The row of the latest launch of the device.
  int64_t joined = 0; // The following rows that ran with it.
  for (int64_t i = 0; i < int64_t(rows->size()); ++i) {
    const json::Object *row = (*rows)[size_t(i)].getAsObject();
    if (!row)
      return Failure::defect("a profile has a launch that is no object");
    auto number = [&](const char *name) {
      return row->getNumber(name).value_or(0);
    };
    if (joined > 0) {
      --joined;
      launches[size_t(last)].flops += number("flops");
      launches[size_t(last)].bytes += number("bytes");
      continue;
    }
    last = i;
    joined = std::max<int64_t>(row->getInteger("together").value_or(1), 1) - 1;
    MeasuredLaunch &measured = launches[size_t(i)];
    measured.family = row->getString("family").value_or("").str();
    measured.flops = number("flops");
    measured.bytes = number("bytes");
    const auto kernel = row->getString("kernel");
    const auto object =
        objects && kernel ? objects->getString(*kernel) : std::nullopt;
    measured.products = productsOf(object.value_or("").str());
    const double seconds = number("least_seconds");
    if (seconds > 0 && (measured.seconds <= 0 || seconds < measured.seconds))
      measured.seconds = seconds;
  }
  return {};
}
