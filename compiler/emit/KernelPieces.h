// KernelPieces.h - bodies of generated kernels in the files that are compiled.
//
// Objects of compiled pieces are cached by their text, so kernels that two
// steps share should have the same text in both, in files with the same
// content. Two plans of a model, two exports of it or two optimizers differ in
// the numbers of kernels, in the names that comments give, and in a few
// kernels:
//
//   step.cpp            in a piece
//   struct fused_17 {   struct fused_4f1c... {   a hash of the code
//     float *out0; // h.3.mlp.act
//
// The leading bits of a body's hash choose its file. A file that would get too
// long is split by the next bit, so one body more or less changes one file, or
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

/// The body of the kernel `name` without comments, under a name that is a hash
/// of the remaining text.
KernelBody canonicalBody(llvm::StringRef name, llvm::StringRef text);

/// The bodies, each name once, in files of similar length.
std::vector<std::vector<KernelBody>>
groupBodies(std::vector<KernelBody> bodies);

} // namespace tmc

#endif // TMC_COMPILER_EMIT_KERNELPIECES_H
