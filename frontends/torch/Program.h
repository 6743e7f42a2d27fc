// Program.h - an exported program, parsed: the graph of a .pt2.
//
//   models/model.json, schema major 8
//     graph_module.graph.nodes        calls of operators, in order
//                       .tensor_values  types and sizes of values
//     graph_module.signature          which inputs are parameters, buffers, the
//                                     user's; which outputs are new buffers
//     graph_module.module_call_graph  the tree of outputs, with the user's
//     names
//   data/weights/*_weights_config.json  name -> storage, type, sizes, strides
//
// Everything is checked for its shape here, and held in plain structs: what
// comes later knows no JSON.

#ifndef TMC_FRONTENDS_TORCH_PROGRAM_H
#define TMC_FRONTENDS_TORCH_PROGRAM_H

#include "frontends/common/Importer.h"
#include "frontends/torch/Archive.h"

namespace tmc::torch_import {

using namespace frontend;

/// The type with this number of the schema, if it is one of ours.
std::optional<ElementType> typeOfNumber(int64_t number);

/// True for the types of complex numbers, which no element type here is.
bool isComplexNumber(int64_t number);

struct Block;

/// An argument of a call, an element of a list, or a result.
struct Arg {
  enum Kind {
    None,
    Tensor, ///< `text` names a value.
    Symbol, ///< The same of a number that the graph computes.
    Int,
    Float,
    Bool,
    String,
    Type, ///< `integer` is a number of the schema.
    List,
    Graph,
    Other, ///< Devices, layouts: no importer looks at these.
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
  std::string stackTrace, modules; ///< Where the user wrote it.
  /// What the user called, "detach_1;method_descriptor.detach".
  std::string origin;
  /// It ran under torch.no_grad(): no gradient flows through what it makes.
  bool noGrad = false;

  /// "add" of "aten.add.Tensor", of any library; "_operator.mul" is whole.
  std::string op() const;
  /// The names of the values that it reads, and of those that it makes.
  std::vector<std::string> reads() const, makes() const;
  const Arg *argument(const std::string &name) const;
};

/// A value's type and sizes.
struct TensorMeta {
  std::optional<ElementType> type;
  int64_t typeNumber = 0;
  bool requiresGrad = false;
  bool isMeta = false; ///< It has no values, and its storage says nothing.
  llvm::SmallVector<Declared::Dim, 4> dims; ///< Symbols are the program's own.
  llvm::SmallVector<int64_t, 4> hints;      ///< The sizes of the example.
  Dims strides; ///< In elements; of stored tensors only.
  int64_t offset = 0;
};

/// A graph that a call computes. Its names are its own.
struct Block {
  std::vector<Arg> inputs, outputs;
  std::vector<CallData> calls;
  std::map<std::string, TensorMeta> tensors;
};

struct InputSpec {
  enum Kind { User, Parameter, Buffer, Constant } kind = User;
  std::string value;        ///< The graph's name.
  std::string target;       ///< The user's, of what is stored.
  bool isPersistent = true; ///< Of the model's state_dict.
};

struct OutputSpec {
  enum Kind { User, Loss, Mutation } kind = User;
  std::string value;
  std::string target; ///< The buffer or parameter that gets the value.
};

/// A tensor of the archive.
struct Payload {
  std::string entry; ///< Of the archive.
  TensorMeta meta;
  bool isPickle = false;
};

struct Program {
  std::vector<CallData> calls;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> outputNames; ///< Of the user's outputs; or empty.
  std::map<std::string, TensorMeta> tensors; ///< By value.
  std::map<std::string, Payload> payloads;   ///< By the user's name.
  /// How many tensors the example was made of, where the file says it: fewer
  /// than inputs if one tensor was given for several.
  std::optional<int64_t> exampleTensors;
};

/// How many tensors the pickle of an archive that torch.save() wrote builds;
/// nothing if it isn't understood. Nothing is unpickled.
std::optional<int64_t> countTensors(std::string_view archive);

/// Puts graphs within calls in place of the calls; those that can't be stay.
void inlineBlocks(Program &program);

/// Parses the program in `archive`. Fails with `Input` if it isn't one, with
/// `Unsupported` if its schema is another.
Expected<Program> parseProgram(Archive &archive);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_PROGRAM_H
