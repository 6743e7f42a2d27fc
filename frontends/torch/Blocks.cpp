// Blocks.cpp - inlines the graphs within calls.
//
//   exporter's graph                                here
//   y = wrap_with_set_grad_enabled(False, g, x)     g.h = f(x)
//     g(a): h = f(a); return h                      y = detach(g.h)
//
// torch.no_grad() computes its values as usual, and cuts the gradients of the
// values that it makes or writes. torch.enable_grad(), a disabled autocast, and
// a checkpoint (tmc plans recomputation itself) are replaced by their graphs.
// Other calls of graphs stay, and are refused as operators without an importer.

#include "frontends/torch/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace tmc;
using namespace tmc::torch_import;

namespace {
class Inliner {
public:
  explicit Inliner(Program &program) : program(program) {}
  std::vector<CallData> inlined(std::vector<CallData> calls);

private:
  bool expand(const CallData &call, std::vector<CallData> &into);

  Program &program;
};

/// The outer names of a block's values.
class Names {
public:
  explicit Names(std::string prefix) : prefix(std::move(prefix)) {}
  void set(const std::string &inner, std::string outer) {
    known[inner] = std::move(outer);
  }
  bool has(const std::string &inner) const { return known.contains(inner); }
  std::string of(const std::string &inner) const {
    auto found = known.find(inner);
    return found == known.end() ? prefix + inner : found->second;
  }
  void rename(Arg &argument) const {
    if (argument.kind == Arg::Tensor || argument.kind == Arg::Symbol)
      argument.text = of(argument.text);
    for (Arg &element : argument.list)
      rename(element);
  }

private:
  std::string prefix;
  llvm::StringMap<std::string> known;
};
} // namespace

/// True if the call computes its block without changes; then `cuts` is true if
/// gradients end at the block's results.
static bool isPlain(const CallData &call, bool &cuts) {
  auto flag = [&](size_t i) -> std::optional<bool> {
    if (i >= call.arguments.size() ||
        call.arguments[i].second.kind != Arg::Bool)
      return std::nullopt;
    return call.arguments[i].second.integer != 0;
  };
  cuts = false;
  if (call.target == "higher_order.wrap_with_set_grad_enabled") {
    cuts = flag(0) == false;
    return flag(0).has_value();
  }
  if (call.target == "higher_order.wrap_with_autocast")
    return flag(2) == false; // (device, type, enabled, ...)
  return call.target == "higher_order.tag_activation_checkpoint";
}

bool Inliner::expand(const CallData &call, std::vector<CallData> &into) {
  bool cuts;
  auto graph = llvm::find_if(call.arguments, [](const auto &argument) {
    return argument.second.kind == Arg::Graph;
  });
  if (graph == call.arguments.end() || !isPlain(call, cuts))
    return false;
  const Block &block = *graph->second.graph;
  std::vector<std::string> results = call.makes();
  std::vector<Arg> operands;
  for (auto at = graph + 1; at != call.arguments.end(); ++at)
    if (at->first.empty())
      operands.push_back(at->second);
  if (operands.size() != block.inputs.size() ||
      results.size() != block.outputs.size())
    return false;
  Names names(call.name + ".");
  for (auto [inner, outer] : llvm::zip(block.inputs, operands)) {
    if (inner.text.empty())
      continue; // A constant, which the block contains as well.
    if (outer.text.empty())
      return false;
    names.set(inner.text, outer.text);
  }
  for (const Arg &output : block.outputs)
    if (output.text.empty())
      return false;
  // An output without a cut gets the result's name in the call that makes it.
  std::vector<size_t> left;
  for (auto [i, output] : llvm::enumerate(block.outputs))
    if (cuts || names.has(output.text))
      left.push_back(i);
    else
      names.set(output.text, results[i]);

  for (const auto &[name, meta] : block.tensors)
    program.tensors.try_emplace(names.of(name), meta);
  for (CallData inner : inlined(block.calls)) {
    for (auto &[name, argument] : inner.arguments)
      names.rename(argument);
    for (Arg &result : inner.results)
      names.rename(result);
    inner.noGrad |= cuts;
    into.push_back(std::move(inner));
  }
  for (size_t i : left) {
    CallData copy;
    copy.target = cuts ? "aten.detach.default" : "aten.clone.default";
    copy.name = results[i];
    copy.stackTrace = call.stackTrace;
    copy.modules = call.modules;
    copy.noGrad = cuts;
    Arg from = block.outputs[i], to = from;
    names.rename(from);
    to.text = results[i];
    copy.arguments.push_back({"self", from});
    copy.results.push_back(to);
    into.push_back(std::move(copy));
  }
  return true;
}

std::vector<CallData> Inliner::inlined(std::vector<CallData> calls) {
  std::vector<CallData> flat;
  for (CallData &call : calls)
    if (!expand(call, flat))
      flat.push_back(std::move(call));
  return flat;
}

void tmc::torch_import::inlineBlocks(Program &program) {
  program.calls = Inliner(program).inlined(std::move(program.calls));
}
