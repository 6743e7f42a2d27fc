// KernelPieces.h - bodies of generated kernels in the files that are compiled.
//
// Objects of compiled pieces are kept by their text, so kernels that two steps
// share should be the same text in both, in files with the same content. Two
// plans of a model, two exports of it or two optimizers differ in the numbers
// of kernels, in the names that comments give, and in a few kernels:
//
//     step.cpp            in a piece
//     struct fused_17 {   struct fused_4f1c... {   a hash of what is computed
//       float *out0; // h.3.mlp.act
//
// Bodies go to files by their hashes' leading bits: a file that would get too
// long is split by the next bit, so a body more or less changes one file, or
// splits it.

#ifndef TMC_COMPILER_EMIT_KERNELPIECES_H
#define TMC_COMPILER_EMIT_KERNELPIECES_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tmc {

struct KernelBody {
  std::string name, text; // The text defines a struct of that name.
};

/// The body of the kernel `name` without comments, under a name that follows
/// from what is left of its text.
KernelBody canonicalBody(llvm::StringRef name, llvm::StringRef text);

/// The bodies, each name once, in files of about as much text.
std::vector<std::vector<KernelBody>>
groupBodies(std::vector<KernelBody> bodies);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_KERNELPIECES_H
