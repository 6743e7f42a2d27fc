// Locations.cpp - the place of a node in the user's model.
//
// For each node the dynamo exporter notes the path of its modules and the
// Python stack; the TorchScript exporter puts the path in the node's name.
// Lines of the user's source go only into locations, never into written files.

#include "frontends/onnx/Importer.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tmc::onnx_import;

/// The entries of a list in Python's notation: "['', 'a', 'a.b']".
static SmallVector<StringRef> pythonList(StringRef text) {
  SmallVector<StringRef> entries;
  while (true) {
    size_t open = text.find_first_of("'\"");
    if (open == StringRef::npos)
      return entries;
    size_t close = text.find(text[open], open + 1);
    if (close == StringRef::npos)
      return entries;
    entries.push_back(text.slice(open + 1, close));
    text = text.drop_front(close + 1);
  }
}

/// "addmm_12" -> "addmm": the number is the exporter's count.
static StringRef withoutCount(StringRef name) {
  StringRef stem = name.rtrim("0123456789");
  return stem.size() < name.size() && stem.size() > 1 && stem.ends_with("_")
             ? stem.drop_back()
             : name;
}

static std::string pathOf(const onnx::NodeProto &node) {
  std::string scopes =
      metadata(node, kNodeMetadata, "pkg.torch.onnx.name_scopes");
  SmallVector<StringRef> path = pythonList(scopes);
  if (path.size() >= 2) {
    StringRef module = path[path.size() - 2], op = withoutCount(path.back());
    return module.empty() ? op.str() : (module + "." + op).str();
  }
  if (!path.empty() && !path.back().empty())
    return withoutCount(path.back()).str();
  std::string name = cleanName(node.name());
  if (!name.empty())
    return name;
  return node.output_size() ? cleanName(node.output(0)) : node.op_type();
}

Location tmc::onnx_import::locationOf(const onnx::NodeProto &node,
                                      MLIRContext &context) {
  std::string trace =
      metadata(node, kNodeMetadata, "pkg.torch.onnx.stack_trace");
  return NameLoc::get(StringAttr::get(&context, pathOf(node)),
                      Location(lineOf(trace, context)));
}
