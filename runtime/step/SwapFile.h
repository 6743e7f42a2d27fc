//===- SwapFile.h - the arena of a step in a file --------------*- C++ -*-===//
//
// One unnamed file in the user's directory, of the size that the plan gives. It
// disappears with the process, however the process ends. The directory is
// locked while a step uses it, so a second process is refused.
//
//     host arena                    file
//     | 64 KiB | 64 KiB | 20 KiB |  offset: a multiple of 64 KiB
//          block    block   block   a table beside it, in host memory:
//                                   checksum, length and step of each block
//
// Every read is checked against the table. An error names the block's place and
// its kind: data of an earlier step (a lost write), or damage. If a transfer
// needs bytes beyond its own (the rest of a last page), it uses a page of its
// lane.
//
// Transfers are direct if kernel and file system support it. They use io_uring
// with several pieces at a time if the kernel has it, else pread and pwrite.
// `description()` names the mode.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_SWAPFILE_H
#define TMC_RUNTIME_STEP_SWAPFILE_H

#include "runtime/kernels/Machine.h"
#include "runtime/kernels/Status.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tmc {

/// Alignment of host addresses that engines move, and of direct transfers.
constexpr int64_t kFileAlign = infoOf(SpaceKind::Host).alignment;
/// Offsets of transfers are multiples of this; each block has a checksum.
constexpr int64_t kFileBlockBytes = infoOf(SpaceKind::File).alignment;
constexpr int64_t kFileTableEntryBytes = 32;

constexpr int64_t fileBlocks(int64_t arenaBytes) {
  return (arenaBytes + kFileBlockBytes - 1) / kFileBlockBytes;
}
/// Host memory, in bytes, of the table of this many blocks.
constexpr int64_t fileTableBytes(int64_t blocks) {
  return blocks * kFileTableEntryBytes;
}

/// Decides the result of a transfer. Tests plant faults here.
class TransferFaults {
public:
  virtual ~TransferFaults() = default;
  struct Verdict {
    int64_t bytes;     // to attempt, at most the requested ones
    int error = 0;     // an errno that the transfer ends with
    bool lost = false; // a write that reports success and writes nothing
  };
  virtual Verdict before(bool /*writes*/, int64_t /*offset*/, int64_t bytes) {
    return {bytes};
  }
  /// Called after a read with the bytes that it transferred.
  virtual void after(int64_t /*offset*/, char * /*data*/, int64_t /*bytes*/) {}
};

struct SwapFileOptions {
  bool useRing = true, useDirect = true;
  TransferFaults *faults = nullptr;
};

class Ring; // FileRing.h

/// One engine's access to the file: transfers of one lane run in order.
class FileLane {
public:
  FileLane();
  ~FileLane();
  FileLane(const FileLane &) = delete;
  FileLane &operator=(const FileLane &) = delete;

private:
  friend class SwapFile;
  std::unique_ptr<Ring> ring_;
  void *page_ = nullptr;
};

class SwapFile {
public:
  /// Fails with Code::World if the directory can't be used: another process has
  /// it, it doesn't exist, or it has too little space.
  static Status create(const std::string &directory, int64_t bytes,
                       const SwapFileOptions &options,
                       std::unique_ptr<SwapFile> &arena);
  ~SwapFile();
  SwapFile(const SwapFile &) = delete;
  SwapFile &operator=(const SwapFile &) = delete;

  int64_t bytes() const { return bytes_; }
  const std::string &directory() const { return directory_; }
  /// "io_uring, direct", "pread and pwrite, through the page cache", ...
  std::string description() const;

  /// The step that later writes belong to. Call it while no transfer runs.
  void setStep(int64_t step) { step_ = uint32_t(step); }

  /// Gives a lane its buffers, so that its transfers allocate nothing.
  Status prepare(FileLane &lane) const;

  /// `offset` is a multiple of kFileBlockBytes. With a lane, the memory must be
  /// aligned to kFileAlign. Without one, any memory is allowed and any number
  /// of threads may call, each for its own blocks.
  Status write(int64_t offset, const void *from, int64_t bytes,
               FileLane *lane = nullptr);
  Status read(int64_t offset, void *to, int64_t bytes,
              FileLane *lane = nullptr);
  /// The same at any offset, for tensors that share blocks: rows of a larger
  /// one, which can be read as a whole when all parts are written. Any number
  /// of threads may call for different bytes.
  Status writePart(int64_t offset, const void *from, int64_t bytes);
  Status readPart(int64_t offset, void *to, int64_t bytes);
  /// Marks these bytes as dead: reading them is an error.
  void forget(int64_t offset, int64_t bytes);

private:
  struct Block {
    uint64_t sum = 0, lastSum = 0; // now, and before the last write
    uint32_t step = 0, lastStep = 0;
    uint32_t length = 0; // 0: empty
    uint32_t reserved = 0;
  };
  static_assert(sizeof(Block) == kFileTableEntryBytes);
  struct Piece;

  SwapFile() = default;
  Status open(const std::string &directory, bool direct);
  Status checkPlace(const char *what, int64_t offset, const void *memory,
                    int64_t bytes, bool hasLane) const;
  void note(int64_t offset, const char *data, int64_t bytes);
  /// The block with this byte, the bytes that it holds, and the place in it.
  struct Part {
    int64_t block, held, at;
  };
  Part partAt(int64_t offset) const;
  std::mutex partMutex_; // for changes of a part of a block
  Status verify(int64_t offset, const char *data, int64_t bytes) const;
  Status transfer(bool writes, int64_t offset, char *data, int64_t bytes,
                  FileLane *lane);
  /// Moves whole pages, one request after the other.
  Status moveNow(bool writes, int64_t offset, char *data, int64_t bytes);
  /// The same through the lane's ring, with several requests at a time.
  Status moveQueued(bool writes, int64_t offset, char *data, int64_t bytes,
                    Ring &ring);
  Status failed(bool writes, int64_t offset, int64_t bytes, int error) const;
  Status ended(int64_t offset) const;
  std::string place() const { return "the swap file in '" + directory_ + "'"; }

  std::string directory_;
  int directoryFd_ = -1, fd_ = -1;
  bool direct_ = false, hasRing_ = false;
  int64_t bytes_ = 0;
  uint32_t step_ = 0;
  TransferFaults *faults_ = nullptr;
  std::vector<Block> blocks_;
};

/// The checksum of a block; a change of any single bit changes it.
uint64_t checksumOf(const void *data, int64_t bytes);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_SWAPFILE_H
