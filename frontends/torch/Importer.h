// Importer.h - an exported program, call by call.
//
// Tells frontend::Importer what Program.h holds. What PyTorch alone has is
// here:
//
// - Symbols of the exporter ("s72") have no names of the user's. A dimension is
//   called by where it first occurs, "input_ids.1"; --dim takes either. Sizes
//   of the example that the program was exported with are the default.
// - Calls that write in place (relu_, add_, out=) give a new value to the name
//   that they write, to its other names, and to the views of the same memory
//   that are read later (Writes.cpp). Buffers, and parameters that aren't
//   trained, are state where they are written.
// - What ran without gradients (torch.no_grad()) is cut where it is read.
// - Tied weights are several names of one view of one storage: one argument.

#ifndef TMC_FRONTENDS_TORCH_IMPORTER_H
#define TMC_FRONTENDS_TORCH_IMPORTER_H

#include "frontends/common/Importer.h"
#include "frontends/torch/Call.h"
#include "frontends/torch/Tensors.h"

#include <set>

namespace tmc::torch_import {

class TorchImporter : public Importer {
public:
  TorchImporter(Program program, std::unique_ptr<ArchiveTensors> tensors,
                const ImportOptions &options, mlir::MLIRContext &context);

  Expected<ImportedModel> run();

  /// True if the value `name` is of complex numbers.
  bool isComplex(const std::string &name) const;

private:
  // In the order in which `run` calls them.
  void dropChecks();
  void checkOperators();
  mlir::LogicalResult checkExample();
  bool isOfComplex(const CallData &call) const;
  void findWrites();
  void refuseTrained(const StoredTensor &tensor);
  mlir::LogicalResult readTensors();
  mlir::FailureOr<std::vector<Declared>> inputs();
  std::map<std::string, int64_t> proposedDims() const;
  mlir::LogicalResult importCalls();
  /// A value that a call writes, and what the call calls the new one; empty
  /// where it has no name.
  struct Write {
    std::string value, result;
  };
  std::vector<Write> writesOf(const CallData &call) const;
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
  const std::string &memoryOf(const std::string &name) const;
  const std::string &nameOf(const std::string &name) const;

  Program program;
  /// What the user calls a symbol: "input_ids.1" for "s72".
  std::map<std::string, std::string> symbolNames;
  /// Values that are the same memory: the first of them, by each.
  std::map<std::string, std::string> memory;
  /// Values that are the same view of it.
  std::map<std::string, std::string> same;
  /// How a view came to be: of which value, by which call, and whether that
  /// call may have made a copy.
  struct View {
    std::string of;
    size_t call = 0;
    bool isCertain = true;
  };
  std::map<std::string, View> views;
  /// The last call that reads a value; one more than there are for a result.
  std::map<std::string, size_t> lastRead;
  /// What is read where gradients flow.
  std::set<std::string> readWithGrad;
  /// What calls without gradients make.
  std::set<std::string> madeWithoutGrad;
  /// The call that writes a stored tensor, by the user's name.
  std::map<std::string, size_t> writer;
};

/// True if the call is a normalization that moves the statistics it is given.
bool movesStatistics(const CallData &call);

/// The importer of `op`, also of one that writes in place; or null.
ImportFn importerOf(const std::string &op, bool ofComplex = false);

/// The location of a call: its place in the model, and the user's line.
mlir::Location locationOf(const CallData &call, mlir::MLIRContext &context);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_IMPORTER_H
