// Import.h - from a .pt2 file, an exported program of PyTorch, to the nn
// dialect.
//
//   model.pt2 ──Archive──> entries ──Program──> calls ──operators──> module
//       │                                                              │
//       └── storages stay in the file <── Tensors ── names ────────────┘
//
// frontends/common/Import.h describes the module. The program may be a training
// export (torch.export.export) or a decomposed one (run_decompositions()). The
// program states which tensors are parameters; one that doesn't require a
// gradient isn't trained. No Python runs, and no pickle is executed.
//
// Operators are imported by functions that register themselves, one file per
// family in ops/; Call.h shows how to add one.

#ifndef TMC_FRONTENDS_TORCH_IMPORT_H
#define TMC_FRONTENDS_TORCH_IMPORT_H

#include "frontends/common/Import.h"

namespace tmc {

/// Imports the program at `path`.
Expected<ImportedModel> importTorch(const std::string &path,
                                    const ImportOptions &options,
                                    mlir::MLIRContext &context);

} // namespace tmc

#endif // TMC_FRONTENDS_TORCH_IMPORT_H
