// Call.h - the interface of an operator's importer, and its registration.
//
// An operator is one function and one line, for all its overloads:
//
//   static LogicalResult importGelu(Call &c) {
//     ASSIGN_OR_FAIL(std::string approximate, c.text("approximate", "none"));
//     return c.set(gelu(c, c.tensor("self"), approximate == "tanh"));
//   }
//   static Register gelu("gelu", importGelu);
//
// A file leaves out each argument that has its default: the importer states the
// default where it reads the argument. Sizes that the exported program computes
// are numbers by now, because every symbol is bound. Site.h describes values,
// building and failure.
//
// A call records the arguments that its importer reads. An argument that is
// given, isn't read and differs from ATen's default refuses the call
// (Unread.cpp): no request of a program is silently ignored. `ignore` names
// arguments without a meaning for this call.
//
// The name is ATen's without the overload. A name that ends in an underscore
// isn't registered: it is the operator without the underscore, with a new value
// for `self` (see Importer.h).

#ifndef TMC_FRONTENDS_TORCH_CALL_H
#define TMC_FRONTENDS_TORCH_CALL_H

#include "frontends/torch/Program.h"

#include <set>

namespace tmc::torch_import {

class TorchImporter;

class Call : public Site {
public:
  Call(TorchImporter &reader, const CallData &data, mlir::Location loc);

  TorchImporter &reader;
  const CallData &data;
  /// Dimensions at the end of operands that the operator doesn't count: the
  /// dimension of the pairs of complex numbers.
  int64_t hidden = 0;

  std::string opName() const override { return data.target; }
  std::string nodeName() const override { return data.name; }

  /// The argument in the file, or null; it counts as read.
  const Arg *argument(const std::string &name) const;
  /// These arguments have no effect here, with any value.
  void ignore(std::initializer_list<const char *> names) const;
  /// Refuses the call if an argument is given that its importer hasn't read.
  mlir::LogicalResult checkAllRead();

  /// True if the argument is given and isn't None.
  bool has(const std::string &name) const;
  /// A tensor, or a number as a tensor without dimensions; absent if it isn't
  /// given.
  Val tensor(const std::string &name) const;
  /// True if the argument is a tensor of complex numbers.
  bool isComplex(const std::string &name) const;
  /// The tensors of a list; entries may be absent.
  mlir::FailureOr<llvm::SmallVector<Val>> tensors(const std::string &name);
  mlir::FailureOr<int64_t> integer(const std::string &name,
                                   std::optional<int64_t> otherwise);
  mlir::FailureOr<double> number(const std::string &name,
                                 std::optional<double> otherwise);
  mlir::FailureOr<bool> flag(const std::string &name, bool otherwise);
  mlir::FailureOr<std::string> text(const std::string &name,
                                    const std::string &otherwise);
  /// A list of integers, or one integer as a list.
  mlir::FailureOr<Dims> integers(const std::string &name,
                                 std::optional<Dims> otherwise);
  mlir::FailureOr<ElementType> type(const std::string &name,
                                    ElementType otherwise);
  /// Dimension `name` of a tensor of `rank` dimensions; if the rank is 0, 0 and
  /// -1 are valid.
  mlir::FailureOr<int64_t> dim(const std::string &name,
                               std::optional<int64_t> otherwise, int64_t rank);
  /// Several dimensions, ascending; all if none is given.
  mlir::FailureOr<Dims> dims(const std::string &name, int64_t rank);
  /// Dimensions of a tensor of `rank` dimensions, without its `hidden` ones.
  mlir::FailureOr<int64_t> axis(int64_t axis, int64_t rank) {
    return Site::axis(axis, rank - hidden);
  }
  mlir::FailureOr<Dims> axes(Dims list, int64_t rank) {
    return Site::axes(std::move(list), rank - hidden);
  }

  // Results.
  bool isUsed(size_t i) const;
  mlir::LogicalResult set(size_t i, Val v);
  mlir::LogicalResult set(Val v) { return set(0, std::move(v)); }
  mlir::LogicalResult set(mlir::FailureOr<Val> v) {
    return failed(v) ? mlir::failure() : set(0, std::move(*v));
  }

private:
  mutable std::set<std::string> wereRead;
};

/// True if the argument is a Python number: it doesn't promote types within its
/// category.
bool isNumber(const Call &c, const std::string &name);
/// A list of numbers; empty if it isn't given.
mlir::FailureOr<llvm::SmallVector<double>> numbers(Call &c,
                                                   const std::string &name);
/// The elements of `v`, which must be known.
mlir::FailureOr<Array> known(Call &c, const Val &v);
/// Sets the only result, which is a list.
mlir::LogicalResult setList(Call &c, llvm::ArrayRef<Val> values);

/// The common type of operands by PyTorch's rules: tensors with dimensions take
/// precedence over those without, both over Python's numbers. Each of `values`
/// is cast to it.
struct Promoted {
  llvm::SmallVector<Val> values;
  ElementType type;
};
mlir::FailureOr<Promoted> promote(Call &c, llvm::ArrayRef<std::string> names);
ElementType promoteTypes(ElementType a, ElementType b);

using ImportFn = mlir::LogicalResult (*)(Call &);

/// An entry of the table of operators.
struct Register {
  Register(const char *name, ImportFn fn);
};

/// An entry of the table of complex operators, which import calls that read or
/// make complex numbers (ops/Complex.cpp).
struct RegisterComplex {
  RegisterComplex(const char *name, ImportFn fn);
};

/// The importer of an operator, or null.
ImportFn findOperator(llvm::StringRef name, bool ofComplex = false);

/// The names of all operators in the table, sorted.
std::vector<std::string> operatorNames();

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_CALL_H
