//===- DataPaths.h - the files of one --data value --------------*- C++ -*-===//
//
// Several files are one stream, in this order:
//
//     a.jsonl,b.jsonl     a list
//     train-*.bin         a glob: the names that match, in the order of their
//                         bytes, so that each machine has the same stream
//
// A file whose whole name is the text is that file, whatever its name holds.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_DATAPATHS_H
#define TMC_RUNTIME_STEP_DATAPATHS_H

#include "runtime/kernels/Status.h"

#include <string>
#include <vector>

namespace tmc {

/// Lists the files of `text`, at least one. Files of a list need not exist. A
/// glob that matches no file is Code::BadInput, an empty name Code::Usage.
Status listPaths(const std::string &text, std::vector<std::string> &paths);

/// True if each file of `text` is there.
bool pathsExist(const std::string &text);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_DATAPATHS_H
