#include "frontends/common/Weights.h"

using namespace tmc;

std::vector<std::string> Weights::names() const {
  std::vector<std::string> result;
  for (const Entry &entry : entries)
    result.push_back(entry.name);
  return result;
}

const Weights::Entry *Weights::find(const std::string &name) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

std::string Weights::fileOf(const std::string &name) const {
  const Entry *entry = find(name);
  return entry ? store->fileOf(entry->index) : std::string();
}

Expected<std::string_view> Weights::read(const std::string &name) {
  const Entry *entry = find(name);
  if (!entry)
    return Failure::input("the model has no parameter '" + name + "'");
  return store->read(entry->index);
}

Expected<std::string_view> Weights::read(const Unused &tensor) {
  return store->read(tensor.index);
}
