//===- FileArena.h - the arena of a step in a file --------------*- C++ -*-===//
//
// One file without a name in a directory that the user gives, as large as the
// plan says, and gone when the process is, however it ends. The directory is
// locked while a step uses it: a second process is refused.
//
//     host arena                    file
//     | 64 KiB | 64 KiB | 20 KiB |  offset: a multiple of 64 KiB
//          block    block   block   a table beside it, in host memory:
//                                   checksum, length and step of each block
//
// Every read compares what came with the table. A block that differs is named
// with its place: as what an earlier step left there, where it is that (a write
// was lost), else as damaged. What a transfer needs beyond its own bytes (the
// rest of a last page) goes through a page of its lane.
//
// Transfers are direct where kernel and file system have it, and go through
// io_uring where the kernel has it, several pieces at a time; else by pread and
// pwrite. `description()` says which.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_FILEARENA_H
#define TMC_RUNTIME_STEP_FILEARENA_H

#include "runtime/kernels/Status.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tmc {

/// Of host addresses that engines move, and of what goes to the device at once.
constexpr int64_t kFileAlign = 4096;
/// Offsets of transfers are multiples of this; each block has a checksum.
constexpr int64_t kFileBlockBytes = 64 << 10;
constexpr int64_t kFileTableEntryBytes = 32;

constexpr int64_t fileBlocks(int64_t arenaBytes) {
  return (arenaBytes + kFileBlockBytes - 1) / kFileBlockBytes;
}
/// Bytes of host memory that the table of so many blocks takes.
constexpr int64_t fileTableBytes(int64_t blocks) {
  return blocks * kFileTableEntryBytes;
}

/// What is about to become of a transfer. For tests: faults are planted here.
class TransferFaults {
public:
  virtual ~TransferFaults() = default;
  struct Verdict {
    int64_t bytes;     // to attempt, at most those asked for
    int error = 0;     // an errno that the transfer ends with
    bool lost = false; // a write that reports success and writes nothing
  };
  virtual Verdict before(bool /*writes*/, int64_t /*offset*/, int64_t bytes) {
    return {bytes};
  }
  /// A read has brought that.
  virtual void after(int64_t /*offset*/, char * /*data*/, int64_t /*bytes*/) {}
};

struct FileArenaOptions {
  bool useRing = true, useDirect = true;
  TransferFaults *faults = nullptr;
};

class Ring; // FileRing.h

/// One engine's way to the file: transfers of one lane follow each other.
class FileLane {
public:
  FileLane();
  ~FileLane();
  FileLane(const FileLane &) = delete;
  FileLane &operator=(const FileLane &) = delete;

private:
  friend class FileArena;
  std::unique_ptr<Ring> ring_;
  void *page_ = nullptr;
};

class FileArena {
public:
  /// Fails with Code::World where the directory can't be used: another process
  /// has it, it isn't there, it has too little room.
  static Status create(const std::string &directory, int64_t bytes,
                       const FileArenaOptions &options,
                       std::unique_ptr<FileArena> &arena);
  ~FileArena();
  FileArena(const FileArena &) = delete;
  FileArena &operator=(const FileArena &) = delete;

  int64_t bytes() const { return bytes_; }
  const std::string &directory() const { return directory_; }
  /// "io_uring, direct", "pread and pwrite, through the page cache", ...
  std::string description() const;

  /// What the blocks that are written from now on belong to. While no transfer
  /// runs.
  void setStep(int64_t step) { step_ = uint32_t(step); }

  /// Gives a lane what its transfers need: they allocate nothing.
  Status prepare(FileLane &lane) const;

  /// `offset` is a multiple of kFileBlockBytes. With a lane, the memory is
  /// aligned to kFileAlign; without, any memory will do, and any number of
  /// threads may call, each for blocks of its own.
  Status write(int64_t offset, const void *from, int64_t bytes,
               FileLane *lane = nullptr);
  Status read(int64_t offset, void *to, int64_t bytes,
              FileLane *lane = nullptr);
  /// What is there is dead: reading it is an error.
  void forget(int64_t offset, int64_t bytes);

private:
  struct Block {
    uint64_t sum = 0, lastSum = 0; // now, and before the last write
    uint32_t step = 0, lastStep = 0;
    uint32_t length = 0; // 0: nothing
    uint32_t reserved = 0;
  };
  static_assert(sizeof(Block) == kFileTableEntryBytes);
  struct Piece;

  FileArena() = default;
  Status open(const std::string &directory, bool direct);
  Status checkPlace(const char *what, int64_t offset, const void *memory,
                    int64_t bytes, bool hasLane) const;
  void note(int64_t offset, const char *data, int64_t bytes);
  Status verify(int64_t offset, const char *data, int64_t bytes) const;
  Status transfer(bool writes, int64_t offset, char *data, int64_t bytes,
                  FileLane *lane);
  /// Whole pages, one request after the other.
  Status moveNow(bool writes, int64_t offset, char *data, int64_t bytes);
  /// The same by the lane's ring, several at a time.
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

/// Of a block's bytes; every change of one bit changes it.
uint64_t checksumOf(const void *data, int64_t bytes);

} // namespace tmc

#endif // TMC_RUNTIME_STEP_FILEARENA_H
