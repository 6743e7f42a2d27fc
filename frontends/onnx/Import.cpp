#include "frontends/onnx/Import.h"
#include "frontends/onnx/Importer.h"

using namespace tmc;
using namespace tmc::onnx_import;

Expected<ImportedModel> tmc::importOnnx(const std::string &path,
                                        const ImportOptions &options,
                                        mlir::MLIRContext &context) {
  auto model = openModel(path);
  if (!model) {
    Failure failure = std::move(model.failure());
    if (failure.message.find(path) == std::string::npos)
      failure.notes.push_back("in " + path);
    return failure;
  }
  return OnnxImporter(std::move(*model), options, context).run();
}

Expected<ImportedModel> tmc::importOnnxBytes(std::string bytes,
                                             const std::string &directory,
                                             const ImportOptions &options,
                                             mlir::MLIRContext &context) {
  auto model = parseModel(std::move(bytes), directory);
  if (!model)
    return model.failure();
  return OnnxImporter(std::move(*model), options, context).run();
}
