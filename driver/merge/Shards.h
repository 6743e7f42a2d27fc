// Shards.h - which tensor goes into which file of a model.
//
// Tensors fill a shard in their order; one that doesn't fit any more begins the
// next. A tensor larger than a shard has one to itself, before the shard that
// is being filled. A single shard has no index.
//
//     limit 10    sizes 4 4 4 12 2    shards {4 4} {12} {4 2}
//     model-00001-of-00003.safetensors, ..., model.safetensors.index.json
//
// Source: huggingface_hub 2.4.0, split_state_dict_into_shards_factory, which
// transformers saves by.

#ifndef TMC_DRIVER_MERGE_SHARDS_H
#define TMC_DRIVER_MERGE_SHARDS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

struct Shard {
  std::string file;
  std::vector<size_t> tensors; // Numbers in the list of sizes.
};

/// The shards of tensors with these sizes in bytes.
std::vector<Shard> splitIntoShards(const std::vector<int64_t> &sizes,
                                   int64_t mostBytes);

constexpr const char *kIndexFile = "model.safetensors.index.json";

/// The index of `shards`; `names` are those of the tensors.
std::string indexText(const std::vector<Shard> &shards,
                      const std::vector<std::string> &names,
                      int64_t totalBytes);

} // namespace tmc

#endif // TMC_DRIVER_MERGE_SHARDS_H
