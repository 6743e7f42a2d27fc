//===- Memory.h - device memory and pinned host memory ----------*- C++ -*-===//
//
// Pieces of the device's range of addresses, each between red zones that no
// kernel may touch. A freed piece isn't given out again while the range lasts:
// what uses it later is found.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_MEMORY_H
#define TMC_TEST_CUDA_EMULATOR_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace tmc::emulator {

enum class MemoryKind {
  Device,  // cudaMalloc: starts unwritten
  Pinned,  // cudaHostAlloc: of the host, and readable by copies
  Managed, // of both; tests' buffers: what the host does isn't seen, so it
           // counts as written
};

/// Null where the range is used up. Device memory is aligned to 256 bytes as
/// cudaMalloc's is, and to no more.
void *allocate(size_t bytes, MemoryKind kind);
/// False where no piece begins there.
bool release(void *p);

struct Piece {
  uintptr_t at;
  size_t bytes;
  MemoryKind kind;
  bool live;
};
/// The piece that holds an address, or that is nearest below; null: none.
const Piece *pieceAt(uintptr_t at);
/// "offset 20 of a buffer of 128 bytes".
std::string placeName(uintptr_t at);

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_MEMORY_H
