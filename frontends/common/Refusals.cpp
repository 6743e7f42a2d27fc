#include "frontends/common/Refusals.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <vector>

using namespace tmc;
using namespace tmc::frontend;

using llvm::StringRef;

namespace {
struct Way {
  const char *ops;  ///< Names, `x*` for a prefix; null: any operator.
  const char *what; ///< A part of the missing feature; null: the operator.
  const char *way;
};

/// The first that matches is reported.
constexpr Way kWays[] = {
    {"cond while_loop map_impl associative_scan If Loop", nullptr,
     "decide before the export, or compute both sides and choose by where()"},
    {"wrap_with_autocast autocast*", nullptr,
     "export without autocast; --precision chooses narrow types"},
    {"Multinomial randint randint_like randperm multinomial poisson geometric_ "
     "cauchy_ log_normal_",
     nullptr, "draw the numbers with the data, and give them as an input"},
    {"QuantizeLinear DequantizeLinear DynamicQuantizeLinear QLinear* "
     "ConvInteger MatMulInteger quantize* dequantize* fake_quantize* "
     "_weight_int*",
     nullptr, "export the model of floats; --precision chooses narrow types"},
    {nullptr, "complex numbers",
     "compute spectra with the data, or write complex numbers as pairs of "
     "floats"},
    {"String* RegexFullMatch LabelEncoder", nullptr,
     "make numbers of texts with the data"},
    {"NonMaxSuppression MaxRoiPool nms roi_align roi_pool", nullptr,
     "leave out what chooses boxes: the loss wants the scores before it"},
    {"nonzero* masked_select unique* _unique* bincount", nullptr,
     "keep all elements, and multiply by a mask or choose by where()"},
    {"_scaled_dot_product_*", nullptr,
     "keep the training export, which has scaled_dot_product_attention"},
    // Operators that torch 2.15 decomposes into supported ones.
    {"_safe_softmax cumulative_trapezoid fft_fftshift fft_ifftshift "
     "float_power gradient isclose isfinite isin isneginf isposinf istft "
     "linalg_matmul linalg_vander linalg_vecdot multi_margin_loss "
     "multilabel_margin_loss nanquantile norm_except_dim positive quantile "
     "renorm special_entr special_log_softmax special_ndtr special_round "
     "special_softmax special_xlog1py trapezoid trapz vander",
     nullptr,
     "export the program with run_decompositions(), which writes it with other "
     "operators"},
    {"einsum matmul mm bmm", "elements of type",
     "cast it to f32 before, or write it by products and sums"},
    {nullptr, "elements of type",
     "cast it before: to f32, or what is whole to i64"},
    {nullptr, "known when the model is compiled",
     "make it a constant, a buffer or a size"},
    {nullptr, "depends on the data",
     "keep all elements, and multiply by a mask or choose by where()"},
    {nullptr, "whose size isn't known",
     "keep all elements, and multiply by a mask or choose by where()"},
    {nullptr, "keys and values of the past",
     "export without a cache (use_cache=False)"},
    {nullptr, "scale_grad_by_freq",
     "build the table without scale_grad_by_freq"},
    {nullptr, "several lengths",
     "pad to one length, and leave the padding out of the loss"},
    {nullptr, "packed sequences",
     "pad to one length, and leave the padding out of the loss"},
    {nullptr, "the indices of the largest elements",
     "use the largest elements alone (return_indices=False)"},
    {nullptr, "padding by mode", "pad by a constant, reflected or repeated"},
    {nullptr, "resizing", "resize by nearest, linear or cubic"},
    {nullptr, "trips", "shorten the sequence, or export fewer steps"},
    {nullptr, "without a batch", "give it a batch of one"},
    {nullptr, "running statistics",
     "keep statistics in buffers of the module, or normalize by the sample"},
    {nullptr, "output ", "leave that output out of the model"},
    {nullptr, "result ", "leave that result out of the model"},
};
} // namespace

/// "nonzero" for "aten.nonzero.default", "Twist" for "com.acme.Twist".
static StringRef baseName(StringRef op) {
  auto [library, rest] = op.split('.');
  if (library == "aten" || library == "higher_order" ||
      library == "torchvision" || library == "prims")
    return rest.split('.').first;
  return op.rsplit('.').second.empty() ? op : op.rsplit('.').second;
}

static bool names(StringRef list, StringRef op) {
  llvm::SmallVector<StringRef> entries;
  list.split(entries, ' ');
  return llvm::any_of(entries, [&](StringRef entry) {
    return entry.consume_back("*") ? op.starts_with(entry) : op == entry;
  });
}

/// The usual way around `refusal`; empty if the refusal states one itself.
static std::string wayAround(const Refusal &refusal,
                             const std::string &otherwise) {
  StringRef op = baseName(refusal.op), what = refusal.what;
  for (const Way &way : kWays)
    if ((!way.ops || names(way.ops, op)) &&
        (way.what ? what.contains(way.what) : what.empty()))
      return way.way;
  if (what.contains("export"))
    return {};
  return what.empty() ? otherwise
                      : "write it with other operators, or compute it with "
                        "the data";
}

std::string tmc::frontend::listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamed; ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > kNamed)
    text += " and " + std::to_string(names.size() - kNamed) + " more";
  return text;
}

static FailurePlace placeOf(const Refusal &refusal) {
  StringRef line = refusal.line;
  line = line.trim();
  line.consume_front("(");
  line.consume_back(")");
  return {refusal.op, refusal.node, line.str(), refusal.what};
}

Failure tmc::frontend::allOf(llvm::ArrayRef<Refusal> refusals,
                             const std::string &otherwise) {
  struct Entry {
    const Refusal *first;
    std::vector<std::string> nodes;
    std::string way;
  };
  std::vector<Entry> entries;
  for (const Refusal &refusal : refusals) {
    auto known = llvm::find_if(entries, [&](const Entry &entry) {
      return entry.first->op == refusal.op && entry.first->what == refusal.what;
    });
    if (known == entries.end())
      known =
          entries.insert(known, {&refusal, {}, wayAround(refusal, otherwise)});
    std::string node = refusal.node + refusal.line;
    if (!llvm::is_contained(known->nodes, node))
      known->nodes.push_back(node);
  }
  Failure all = Failure::unsupported(
      "the model asks for " + std::to_string(entries.size()) +
      (entries.size() == 1 ? " thing that isn't" : " things that aren't") +
      " supported");
  for (const Refusal &refusal : refusals)
    all.places.push_back(placeOf(refusal));
  std::vector<std::string> ways; // Reported so far.
  for (const Entry &first : entries) {
    if (llvm::is_contained(ways, first.way))
      continue;
    ways.push_back(first.way);
    for (const Entry &entry : entries) {
      if (entry.way != first.way)
        continue;
      const Refusal &refusal = *entry.first;
      std::string times = std::to_string(entry.nodes.size()) +
                          (entry.nodes.size() == 1 ? " time" : " times");
      all.notes.push_back(refusal.what.empty() ? refusal.op + ", " + times +
                                                     ": " + listed(entry.nodes)
                          : entry.nodes.size() == 1
                              ? refusal.op + " '" + refusal.node + "'" +
                                    refusal.line + ": " + refusal.what
                              : refusal.op + ", " + times + " (" +
                                    listed(entry.nodes) + "): " + refusal.what);
    }
    if (!first.way.empty())
      all.notes.push_back("instead: " + first.way);
  }
  return all;
}
