//===- QuantState.cpp - reads the meaning of codes in 4 bits --------------===//

#include "runtime/step/QuantState.h"

#include "runtime/step/JsonReader.h"
#include "runtime/step/Program.h"

namespace tmc::values {

std::string readQuantState(std::string_view text, QuantState &state) {
  JsonReader at(text, "quant_state");
  const bool isGood = at.object([&](const std::string &key) {
    if (key == "quant_type")
      return at.string(state.type);
    if (key == "blocksize")
      return at.integer(state.block);
    if (key == "nested_blocksize")
      return at.integer(state.nestedBlock);
    if (key == "nested_offset")
      return at.number(state.offset);
    if (key != "shape")
      return at.skip();
    state.shape.clear();
    if (!at.expect('['))
      return false;
    do {
      if (!at.integer(state.shape.emplace_back()))
        return false;
    } while (state.shape.size() < size_t(kMaxRank) && at.accept(','));
    return at.expect(']');
  });
  return isGood && at.finish() ? "" : at.error();
}

} // namespace tmc::values
