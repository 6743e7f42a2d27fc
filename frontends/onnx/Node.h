// Node.h - the interface of an operator's importer, and its registration.
//
// An operator is one function and one line:
//
//   static LogicalResult importRelu(Node &n) {
//     return n.set(relu(n, n.input(0)));
//   }
//   static Register relu("Relu", importRelu);
//
// The function reads the node's inputs and attributes in ONNX's spelling and
// calls the builder that defines their meaning (frontends/common/ops), or
// builds ops itself if no other format has the operator. Site.h describes
// values, building and failure.
//
// A node records the inputs and attributes that its importer reads. A given
// input that isn't read refuses the node, and so does an attribute that isn't
// read and differs from its default (Unread.cpp): no request of a model is
// silently ignored. `ignore` names those without a meaning for this node.

#ifndef TMC_FRONTENDS_ONNX_NODE_H
#define TMC_FRONTENDS_ONNX_NODE_H

#include "frontends/common/Site.h"

#include <set>

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
} // namespace onnx

namespace tmc::onnx_import {

using namespace frontend;

class OnnxImporter;

class Node : public Site {
public:
  Node(OnnxImporter &reader, const onnx::NodeProto &proto, mlir::Location loc,
       int64_t opset);

  OnnxImporter &reader;
  const onnx::NodeProto &proto;
  int64_t opset; ///< The version of the node's domain.

  std::string opName() const override;
  std::string nodeName() const override;

  // Inputs. Absent optional ones have kind Absent.
  int numInputs() const;
  int numOutputs() const;
  bool has(int i) const { return input(i).kind != Val::Absent; }
  const Val &input(int i) const;
  llvm::SmallVector<Val> inputs() const;
  /// These attributes have no effect here, with any value.
  void ignore(std::initializer_list<const char *> names) const;
  /// Input `i` has no effect here.
  void ignoreInput(int i) const { readInputs.insert(i); }
  /// Refuses the node if an input or an attribute is given that its importer
  /// hasn't read.
  mlir::LogicalResult checkAllRead();

  /// True if something reads output `i`.
  bool isUsed(int i) const;

  /// Input `i` in the IR. Fails if it is absent or of a type that the IR lacks.
  mlir::FailureOr<mlir::Value> value(int i);
  /// The elements of input `i`, which must be constant and small.
  mlir::FailureOr<Array> array(int i);
  /// The elements of input `i` as integers, in row-major order.
  mlir::FailureOr<Dims> ints(int i);
  /// True if input `i` is constant and small enough to compute with.
  using Site::foldable;
  bool foldable(int i) const { return foldable(input(i)); }

  // Attributes.
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t intAttr(llvm::StringRef name, int64_t otherwise) const;
  /// The shortest decimal number that rounds to the f32 attribute.
  double floatAttr(llvm::StringRef name, double otherwise) const;
  std::string stringAttr(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<Dims> intsAttr(llvm::StringRef name) const;

  /// Several axes, ascending, from the attribute `axes` or input `i`; nothing
  /// if neither is given.
  using Site::axes;
  mlir::FailureOr<std::optional<Dims>> axes(int i, int64_t rank);

  // Results.
  mlir::LogicalResult set(int i, Val v);
  mlir::LogicalResult set(Val v) { return set(0, std::move(v)); }
  mlir::LogicalResult set(mlir::FailureOr<Val> v) {
    return failed(v) ? mlir::failure() : set(0, std::move(*v));
  }

private:
  mutable std::set<int> readInputs;
  mutable std::set<std::string> readAttributes;
};

using ImportFn = mlir::LogicalResult (*)(Node &);

/// An entry of the table of operators.
struct Register {
  /// Operators of ONNX's own domain.
  Register(const char *name, ImportFn fn) : Register("", name, fn) {}
  Register(const char *domain, const char *name, ImportFn fn);
};

/// The importer of an operator, or null.
ImportFn findOperator(llvm::StringRef domain, llvm::StringRef name);

/// The names of all operators in the table, sorted.
std::vector<std::string> operatorNames();

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_NODE_H
