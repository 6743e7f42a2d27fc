#include "frontends/torch/Import.h"
#include "frontends/torch/Importer.h"

using namespace tmc;
using namespace tmc::torch_import;

Expected<ImportedModel> tmc::importTorch(const std::string &path,
                                         const ImportOptions &options,
                                         mlir::MLIRContext &context) {
  auto file = openByUser(path);
  if (!file)
    return file.failure();
  auto archive = Archive::open(std::move(*file));
  if (!archive)
    return archive.failure();
  auto tensors = std::make_unique<ArchiveTensors>(std::move(*archive));
  auto program = parseProgram(tensors->archive);
  if (!program)
    return program.failure();
  return TorchImporter(std::move(*program), std::move(tensors), options,
                       context)
      .run();
}
