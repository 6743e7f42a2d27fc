#include "driver/merge/Shards.h"

#include "runtime/kernels/Names.h"

#include <cstdio>
#include <map>

using namespace tmc;

static std::string fileName(size_t number, size_t count) {
  if (count == 1)
    return "model.safetensors";
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors",
                number + 1, count);
  return text;
}

std::vector<Shard> tmc::splitIntoShards(const std::vector<int64_t> &sizes,
                                        int64_t mostBytes) {
  std::vector<Shard> shards;
  Shard filling;
  int64_t filled = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > mostBytes) {
      shards.push_back({"", {i}});
      continue;
    }
    if (sizes[i] > mostBytes - filled) {
      shards.push_back(std::move(filling));
      filling = {};
      filled = 0;
    }
    filling.tensors.push_back(i);
    filled += sizes[i];
  }
  if (!filling.tensors.empty())
    shards.push_back(std::move(filling));
  for (size_t i = 0; i < shards.size(); ++i)
    shards[i].file = fileName(i, shards.size());
  return shards;
}

std::string tmc::indexText(const std::vector<Shard> &shards,
                           const std::vector<std::string> &names,
                           int64_t totalBytes) {
  std::map<std::string, std::string> files;
  for (const Shard &shard : shards)
    for (size_t tensor : shard.tensors)
      files[names[tensor]] = shard.file;
  std::string text = "{\n  \"metadata\": {\n    \"total_size\": " +
                     std::to_string(totalBytes) + "\n  },\n  \"weight_map\": {";
  const char *comma = "\n    ";
  for (const auto &[name, file] : files) {
    text += comma + jsonQuoted(name) + ": " + jsonQuoted(file);
    comma = ",\n    ";
  }
  return text + "\n  }\n}\n";
}
