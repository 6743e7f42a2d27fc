// Importer.h - an exported program, call by call.
//
// Tells frontend::Importer what Program.h holds. What PyTorch alone has is
// here:
//
// - Symbols of the exporter ("s72") have no names of the user's. A dimension is
//   called by where it first occurs, "input_ids.1"; --dim takes either. Sizes
//   of the example that the program was exported with are the default.
// - Calls that write in place (relu_, add_) give a new value to the name that
//   they write, to its other names, and to the views of the same memory that
//   are read later (Writes.cpp).
// - Tied weights are several names of one view of one storage: one argument.

#ifndef TMC_FRONTENDS_TORCH_IMPORTER_H
#define TMC_FRONTENDS_TORCH_IMPORTER_H

#include "frontends/common/Importer.h"
#include "frontends/torch/Call.h"
#include "frontends/torch/Tensors.h"

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
  bool isOfComplex(const CallData &call) const;
  void findWrites();
  mlir::LogicalResult readTensors();
  mlir::FailureOr<std::vector<Declared>> inputs();
  std::map<std::string, int64_t> proposedDims() const;
  mlir::LogicalResult importCalls();
  mlir::LogicalResult importWrite(Call &call, size_t index, ImportFn fn);
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
};

/// True if `op` writes its first argument: "add_", not "__and__".
bool writesInPlace(llvm::StringRef op);

/// The importer of `op`, also of one that writes in place; or null.
ImportFn importerOf(const std::string &op, bool ofComplex = false);

/// The location of a call: its place in the model, and the user's line.
mlir::Location locationOf(const CallData &call, mlir::MLIRContext &context);

} // namespace tmc::torch_import

#endif // TMC_FRONTENDS_TORCH_IMPORTER_H
