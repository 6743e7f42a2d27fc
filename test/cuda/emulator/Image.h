//===- Image.h - symbols of the program that holds the kernels --*- C++ -*-===//
//
// The kernels and the emulator are linked into one executable or one shared
// library. Its symbol table says what no compiler tells at run time: the
// variables that are static __shared__ memory, their names and sizes, and the
// names of kernels, which mostly have internal linkage.
//
// A static __shared__ variable is a static one aligned to kSharedSlot bytes
// (see Language.h): more than a block may have, so that each lies alone in a
// slot, and what reaches beyond its end hits no other variable.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_IMAGE_H
#define TMC_TEST_CUDA_EMULATOR_IMAGE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tmc::emulator {

/// A power of two above the 48 KiB that static shared memory may take.
constexpr size_t kSharedSlot = 64 << 10;

struct SharedVariable {
  std::string name; // "shared in tmc::cuda::lossOfRow(...)"
  uintptr_t at;
  size_t bytes;
};

struct Image {
  std::string path;
  uintptr_t base = 0; // what is added to addresses in the file
  uintptr_t begin = 0, end = 0;
  /// Read-only parts: constants of the program.
  std::vector<std::pair<uintptr_t, uintptr_t>> constants;
  /// In order of their address.
  std::vector<SharedVariable> shared;

  bool contains(uintptr_t address) const {
    return address >= begin && address < end;
  }
  bool isConstant(uintptr_t address, size_t bytes) const {
    for (auto [from, to] : constants)
      if (address >= from && address + bytes <= to)
        return true;
    return false;
  }
  /// The demangled function that starts at or before an address.
  std::string functionAt(uintptr_t address) const;
  /// Its mangled name, or null.
  const char *symbolAt(uintptr_t address) const;

private:
  friend const Image &image();
  struct Function {
    uintptr_t at;
    std::string name; // mangled
  };
  std::vector<Function> functions; // in order of their address
  void read();
};

/// Of the executable or library that this code is in; read when first asked.
const Image &image();
/// image().base, once that has been called; each access needs it.
extern uintptr_t imageBase;

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_IMAGE_H
