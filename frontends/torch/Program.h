// Program.h - an exported program, parsed: the graph of a .pt2.
//
//   models/model.json, schema major 8
//     graph_module.graph.nodes        calls of operators, in order
//                       .tensor_values  types and sizes of values
//     graph_module.signature          inputs: parameters, buffers, the user's;
//                                     outputs: the user's, new buffers
//     graph_module.module_call_graph  the tree of outputs, with the user's
//                                     names
//   data/weights/*_weights_config.json  name -> storage, type, sizes, strides
//
// The parser checks the structure of everything and fills plain structs, so
// that later code doesn't handle JSON.

#ifndef TMC_FRONTENDS_TORCH_PROGRAM_H
#define TMC_FRONTENDS_TORCH_PROGRAM_H

#include "frontends/common/Importer.h"
#include "frontends/torch/Archive.h"

namespace tmc::torch_import {

using namespace frontend;

/// The type with this number in the schema, if it is one of ours.
std::optional<ElementType> typeOfNumber(int64_t number);

/// True for types of complex numbers, which have no element type here.
bool isComplexNumber(int64_t number);

struct Block;

/// An argument of a call, an element of a list, or a result.
struct Arg {
  enum Kind {
    None,
    Tensor, ///< `text` names a value.
    Symbol, ///< The same for a number that the graph computes.
    Int,
    Float,
    Bool,
    String,
    Type, ///< `integer` is a number in the schema.
    List,
    Graph,
    Other, ///< Devices, layouts: no importer reads these.
  };
  Kind kind = None;
  std::string text;
  int64_t integer = 0;
  double number = 0;
  std::vector<Arg> list;
  std::shared_ptr<const Block> graph;
};

struct CallData {
  std::string target; ///< "aten.add.Tensor", "_operator.mul"
  std::string name;
  std::vector<std::pair<std::string, Arg>> arguments;
  std::vector<Arg> results;
  std::string stackTrace, modules; ///< The place in the user's code.
  /// The user's call, "detach_1;method_descriptor.detach".
  std::string origin;
  /// The call ran under torch.no_grad(): no gradient flows through its results.
  bool noGrad = false;

  /// "add" for "aten.add.Tensor", for any library; "_operator.mul" unchanged.
  std::string op() const;
  /// The names of the values that the call reads, and of those that it makes.
  std::vector<std::string> reads() const, makes() const;
  const Arg *argument(const std::string &name) const;
};

/// A value's type and sizes.
struct TensorMeta {
  std::optional<ElementType> type;
  int64_t typeNumber = 0;
  bool requiresGrad = false;
  bool isMeta = false; ///< It has no values, and its storage is meaningless.
  llvm::SmallVector<Declared::Dim, 4> dims; ///< Symbols are the program's own.
  llvm::SmallVector<int64_t, 4> hints;      ///< The sizes of the example.
  Dims strides; ///< In elements; only for stored tensors.
  int64_t offset = 0;
};

/// A graph that a call computes. Its names are separate from the outer graph's.
struct Block {
  std::vector<Arg> inputs, outputs;
  std::vector<CallData> calls;
  std::map<std::string, TensorMeta> tensors;
};

struct InputSpec {
  enum Kind { User, Parameter, Buffer, Constant } kind = User;
  std::string value;        ///< The graph's name.
  std::string target;       ///< The user's, for stored tensors.
  bool isPersistent = true; ///< In the model's state_dict.
};

struct OutputSpec {
  enum Kind { User, Loss, Mutation } kind = User;
  std::string value;
  std::string target; ///< The buffer or parameter that gets the value.
};

/// A tensor of the archive.
struct Payload {
  std::string entry; ///< In the archive.
  TensorMeta meta;
  bool isPickle = false;
};

struct Program {
  std::vector<CallData> calls;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> outputNames; ///< For the user's outputs; or empty.
  std::map<std::string, TensorMeta> tensors; ///< By value.
  std::map<std::string, Payload> payloads;   ///< By the user's name.
  /// The number of tensors in the example, if the file has it: fewer than
  /// inputs if one tensor was given for several.
  std::optional<int64_t> exampleTensors;
};

/// The number of tensors that the pickle in an archive of torch.save() builds;
/// nothing if it can't be parsed. Nothing is unpickled.
std::optional<int64_t> countTensors(std::string_view archive);

/// Inlines graphs within calls; calls that can't be inlined stay.
void inlineBlocks(Program &program);

/// Parses the program in `archive`. Fails with `Input` if it isn't one, with
/// `Unsupported` if its schema has another version.
Expected<Program> parseProgram(Archive &archive);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_PROGRAM_H
