#include "compiler/target/AlgorithmFile.h"

#include "compiler/support/Json.h"
#include "runtime/kernels/AlgorithmFields.h"

#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <optional>

using namespace tmc;
namespace json = llvm::json;

static constexpr int64_t kSchema = 1;
/// A step has some dozens of different products, and a product some dozen
/// values.
static constexpr int64_t kMostProducts = 4096;
static constexpr size_t kMostText = 512;
static constexpr JsonLimits kLimits{.maxDepth = 8,
                                    .maxValues = 32 * kMostProducts};

/// The text under `key`, if it may stand in a step's source.
static std::optional<std::string> textOf(const json::Object &object,
                                         llvm::StringRef key) {
  const auto text = object.getString(key);
  if (!text || text->empty() || text->size() > kMostText ||
      !llvm::all_of(*text, [](char c) { return llvm::isPrint(c); }))
    return std::nullopt;
  return text->str();
}

absl::StatusOr<AlgorithmFile> tmc::algorithmsFromJson(const std::string &text,
                                                      const std::string &name) {
  auto bad = [&](const std::string &why) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no table of algorithms: ", why));
  };
  Expected<json::Object> read = parseJsonObject(text, kLimits);
  if (!read)
    return bad("it " + read.failure().message);
  if (auto schema = read->getInteger("schema"); schema != kSchema)
    return bad(absl::StrCat("its schema is ",
                            schema ? absl::StrCat(*schema) : "missing",
                            "; this tmc reads ", kSchema));
  AlgorithmFile file;
  const auto device = textOf(*read, "device");
  const auto library = read->getInteger("library");
  const json::Array *products = read->getArray("products");
  if (!device || !library || *library < 0 || !products)
    return bad("it lacks its device, library or products");
  if (products->size() > size_t(kMostProducts))
    return bad(absl::StrCat("it has more than ", kMostProducts, " products"));
  file.device = *device;
  file.library = *library;
  for (const json::Value &value : *products) {
    const json::Object *row = value.getAsObject();
    const auto product = row ? textOf(*row, "product") : std::nullopt;
    if (!product)
      return bad("a product lacks its text");
    ProductAlgorithm algorithm;
    for (const AlgorithmField &field : kAlgorithmFields) {
      const auto number = row->getInteger(field.name);
      if (!number || *number < 0 || *number > field.most)
        return bad(absl::StrCat("'", *product, "' has no ", field.name,
                                " from 0 to ", field.most));
      algorithm.*field.number = int32_t(*number);
    }
    if (!isReproducible(algorithm))
      return bad(absl::StrCat("the sums of '", *product,
                              "' have no fixed order with reduction ",
                              algorithm.reduction));
    if (!file.products.try_emplace(*product, algorithm).second)
      return bad(absl::StrCat("it has '", *product, "' twice"));
  }
  llvm::SHA256 hash;
  hash.update(text);
  file.sha256 = llvm::toHex(hash.final(), /*LowerCase=*/true);
  return file;
}
