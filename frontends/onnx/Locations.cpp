// Locations.cpp - where a node is in the user's model.
//
// The dynamo exporter notes for each node the path of modules it came from and
// the Python stack; the TorchScript exporter puts the path in the node's name.
// Lines of the user's source go into locations only, never into what is
// written out.

#include "frontends/onnx/Importer.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tmc::onnx_import;

std::string tmc::onnx_import::cleanName(StringRef name) {
  name = name.ltrim('/');
  std::string clean;
  for (char c : name)
    clean += c == '/' ? '.' : c;
  return clean;
}

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

/// The innermost frame of a stack trace: `File "x.py", line 12, in forward`.
/// The path is cut to what follows the packages' folder, else to the file.
static LocationAttr lineOf(const onnx::NodeProto &node, MLIRContext &context) {
  std::string trace =
      metadata(node, kNodeMetadata, "pkg.torch.onnx.stack_trace");
  StringRef text(trace);
  size_t at = text.rfind("File \"");
  if (at == StringRef::npos)
    return UnknownLoc::get(&context);
  auto [file, rest] = text.drop_front(at + 6).split("\", line ");
  unsigned line;
  if (rest.consumeInteger(10, line))
    return UnknownLoc::get(&context);
  if (file.starts_with("/")) {
    StringRef packages = "/site-packages/";
    size_t cut = file.find(packages);
    file = cut == StringRef::npos ? file.drop_front(file.rfind('/') + 1)
                                  : file.drop_front(cut + packages.size());
  }
  return FileLineColLoc::get(&context, file, line, 0);
}

Location tmc::onnx_import::locationOf(const onnx::NodeProto &node,
                                      MLIRContext &context) {
  return NameLoc::get(StringAttr::get(&context, pathOf(node)),
                      Location(lineOf(node, context)));
}
