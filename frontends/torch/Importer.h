// Importer.h - an exported program, call by call.
//
// Passes the contents of Program.h to frontend::Importer. Features that only
// PyTorch has are here:
//
// - Symbols of the exporter ("s72") have no user names. A dimension is named
//   after its first occurrence, "input_ids.1"; --dim accepts either. Sizes of
//   the example with which the program was exported are the default.
// - Calls that write in place (relu_, add_, out=) give a new value to the name
//   that they write, to its other names, and to the views of the same memory
//   that are read later (Writes.cpp). Buffers that are written are state, and
//   so are written parameters that aren't trained.
// - A value that was made without gradients (torch.no_grad()) is cut where it
//   is read.
// - Tied weights are several names of one view of one storage: one argument.

#ifndef TMC_FRONTENDS_TORCH_IMPORTER_H
#define TMC_FRONTENDS_TORCH_IMPORTER_H

#include "frontends/common/Importer.h"
#include "frontends/torch/Call.h"
#include "frontends/torch/Tensors.h"

#include <set>

namespace tmc::torch_import {

/// True if the value `name` holds complex numbers.
bool holdsComplex(const Program &program, const std::string &name);
/// True if the call reads or makes complex numbers.
bool isOfComplex(const Program &program, const CallData &call);

/// The names of a program that share memory.
struct SharedNames {
  /// The first name of the memory of `name`.
  const std::string &memoryOf(const std::string &name) const;
  /// The first name of the view of a memory that `name` is.
  const std::string &nameOf(const std::string &name) const;

  /// Values of the same memory: for each, the first of them.
  std::map<std::string, std::string> memory;
  /// Values that are the same view of a memory: for each, the first of them.
  std::map<std::string, std::string> same;
  /// The origin of a view: its source, its call, and whether the call is
  /// certain to make a view and not a copy.
  struct View {
    std::string of;
    size_t call = 0;
    bool isCertain = true;
  };
  std::map<std::string, View> views;
};

/// A value that a call writes, and the call's name of the new value; empty if
/// there is none.
struct Write {
  std::string value, result;
};
std::vector<Write> writesOf(const CallData &call);

class TorchImporter : public Importer {
public:
  TorchImporter(Program program, std::unique_ptr<ArchiveTensors> tensors,
                const ImportOptions &options, mlir::MLIRContext &context);

  Expected<ImportedModel> run();

  /// True if the value `name` holds complex numbers.
  bool isComplex(const std::string &name) const {
    return holdsComplex(program, name);
  }

private:
  // In the order in which `run` calls them.
  void checkOperators();
  mlir::LogicalResult checkExample();
  void findWrites();
  void refuseTrained(const StoredTensor &tensor);
  mlir::LogicalResult readTensors();
  mlir::FailureOr<std::vector<Declared>> inputs();
  mlir::LogicalResult importCalls();
  mlir::LogicalResult importWrite(Call &call, size_t index, ImportFn fn,
                                  llvm::ArrayRef<Write> writes);
  mlir::LogicalResult written(Call &call, size_t index,
                              const std::string &value, const Val &next);
  mlir::LogicalResult moveStatistics(Call &call, size_t index, ImportFn fn,
                                     llvm::ArrayRef<Write> writes);
  void cutGradients(const CallData &call, mlir::Location loc);
  void updateWritten();
  void setAll(const std::string &root, const Val &v);
  std::vector<std::string> readLater(const std::string &self,
                                     size_t index) const;
  mlir::LogicalResult spread(Call &call, const std::string &self,
                             llvm::ArrayRef<std::string> stale);
  std::vector<Output> outputs();
  std::optional<std::pair<ElementType, Dims>>
  declaredType(const std::string &name) const override;

  ArchiveTensors &archive() { return static_cast<ArchiveTensors &>(*store); }

  Program program;
  /// The user's name of a symbol: "input_ids.1" for "s72".
  std::map<std::string, std::string> symbolNames;
  SharedNames shared;
  /// The last call that reads a value; the number of calls for a result.
  std::map<std::string, size_t> lastRead;
  /// Values that are read where gradients flow.
  std::set<std::string> readWithGrad;
  /// Values that calls without gradients make.
  std::set<std::string> madeWithoutGrad;
  /// The call that writes a stored tensor, by the user's name.
  std::map<std::string, size_t> writer;
};

/// True if the call is a normalization that updates the given statistics.
bool movesStatistics(const CallData &call);

/// The importer of `op`, also for an in-place form; or null.
ImportFn importerOf(const std::string &op, bool ofComplex = false);

/// The location of a call: its place in the model, and the user's line.
mlir::Location locationOf(const CallData &call, mlir::MLIRContext &context);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_IMPORTER_H
