// Adapter.h - an adapter of PEFT, matched with the base that it is merged into.
//
//     adapter_model.safetensors                                 base
//     base_model.model.X.lora_A.weight  [r, in]    \
//     base_model.model.X.lora_B.weight  [out, r]   /  change    X.weight
//     base_model.model.X.lora_embedding_A  [r, V]  \
//     base_model.model.X.lora_embedding_B  [C, r]  /  change    X.weight [V, C]
//     base_model.model.Y.weight                       replaces  Y.weight
//
// The last are trained whole: modules_to_save, and biases. Each name of the
// adapter has its place in the base, or the adapter isn't for this base. A base
// may lack the first part of all names ("transformer."), or have one more
// ("model."), as files of models without their head do; then a note says so.
//
// W is [out, in], or [in, out] (fan_in_fan_out). If it isn't square its
// shape decides, since PEFT keeps one flag for layers of both kinds.

#ifndef TMC_DRIVER_MERGE_ADAPTER_H
#define TMC_DRIVER_MERGE_ADAPTER_H

#include "driver/merge/AdapterConfig.h"
#include "driver/merge/MergeRows.h"
#include "runtime/step/SafetensorsSet.h"

#include <map>
#include <string>
#include <vector>

namespace tmc {

/// The change of one tensor of the base.
struct Change {
  /// Both null: `whole` replaces the tensor.
  const SetTensor *a = nullptr, *b = nullptr, *whole = nullptr;
  std::string name; // The adapter's, for `a` or `whole`.
  double scale = 0;
  bool isEmbedding = false;
  bool isTransposed = false; // W is [in, out].
};

struct Adapter {
  SafetensorsSet tensors;
  std::map<std::string, Change> changes; // By the names of the base.
  std::vector<std::string> notes;
};

/// The facts of a base that decide whether an adapter fits.
struct BaseFacts {
  bool tiesHead = false;  // tie_word_embeddings of config.json
  int64_t vocabulary = 0; // vocab_size of it; 0: unknown.
};

/// Reads the adapter in `folder`, a folder of PEFT. Fails with `Unsupported`
/// for what a merge can't honour, with `Input` if it isn't sound or isn't for
/// `base`.
Expected<Adapter> readAdapter(const std::string &folder,
                              const SafetensorsSet &base,
                              const BaseFacts &facts);

/// The matrices of a change, read into memory and laid out for the rows of W.
/// Fails if a number isn't finite.
Expected<LowRank> lowRankOf(const Adapter &adapter, const Change &change);

} // namespace tmc

#endif // TMC_DRIVER_MERGE_ADAPTER_H
