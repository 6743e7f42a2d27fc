//===- SwapFile.cpp - the arena of a step in a file ----------------------===//

#include "runtime/step/SwapFile.h"

#include "runtime/step/FileRing.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tmc {

namespace {

/// Bytes of a request: whole blocks, enough that eight keep a drive busy.
constexpr int64_t kPieceBytes = 512 << 10;
static_assert(kPieceBytes % kFileBlockBytes == 0);
/// Unaligned memory is copied through a buffer of this size.
constexpr int64_t kBounceBytes = 1 << 20;
/// Consecutive requests that transfer less than a page before the error.
constexpr int kMostStalls = 4;

/// The file's name on file systems without unnamed files. The name exists only
/// until the next line removes it.
constexpr const char *kSwapName = "tmc-swap";

Status worldError(const std::string &what, int error) {
  return {Code::World, what + ": " + std::strerror(error)};
}

bool isAligned(const void *memory) {
  return reinterpret_cast<uintptr_t>(memory) % uintptr_t(kFileAlign) == 0;
}

/// Memory that is freed at the end of its scope.
struct AlignedMemory {
  explicit AlignedMemory(int64_t bytes)
      : data(static_cast<char *>(
            std::aligned_alloc(size_t(kFileAlign), size_t(bytes)))) {}
  ~AlignedMemory() { std::free(data); }
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;
  char *data;
};

} // namespace

uint64_t checksumOf(const void *data, int64_t bytes) {
  // Eight chains of xor and multiplication by an odd number. Each step is a
  // bijection of the state, so a changed word always changes the final state.
  constexpr int kLanes = 8;
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[kLanes];
  for (int i = 0; i < kLanes; ++i)
    lanes[i] = uint64_t(i + 1) * 0xff51afd7ed558ccdu;
  const char *p = static_cast<const char *>(data);
  int64_t left = bytes;
  for (; left >= kLanes * 8; left -= kLanes * 8, p += kLanes * 8)
    for (int i = 0; i < kLanes; ++i) {
      uint64_t word;
      std::memcpy(&word, p + i * 8, 8);
      lanes[i] = std::rotl((lanes[i] ^ word) * kFactor, 29);
    }
  uint64_t sum = uint64_t(bytes) * kFactor;
  for (uint64_t lane : lanes)
    sum = std::rotl((sum ^ lane) * kFactor, 31);
  for (; left > 0; left -= 8, p += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, size_t(std::min<int64_t>(left, 8)));
    sum = std::rotl((sum ^ word) * kFactor, 29);
  }
  return sum ^ sum >> 32;
}

FileLane::FileLane() = default;
FileLane::~FileLane() { std::free(page_); }

Status SwapFile::prepare(FileLane &lane) const {
  if (hasRing_)
    lane.ring_ = Ring::create(fd_);
  lane.page_ = std::aligned_alloc(size_t(kFileAlign), size_t(kFileAlign));
  return lane.page_ ? Status::ok()
                    : worldError("can't have a page of memory", ENOMEM);
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

Status SwapFile::create(const std::string &directory, int64_t bytes,
                        const SwapFileOptions &options,
                        std::unique_ptr<SwapFile> &arena) {
  if (bytes < 0 || bytes > INT64_MAX / 2)
    return {Code::BadInput,
            "a swap file of " + std::to_string(bytes) + " bytes can't exist"};
  std::unique_ptr<SwapFile> made(new SwapFile);
  made->directory_ = directory;
  made->bytes_ = bytes;
  made->faults_ = options.faults;
  if (Status s = made->open(directory, options.useDirect); !s)
    return s;
  made->blocks_.resize(size_t(fileBlocks(bytes)));
  if (options.useRing) {
    // A kernel may support rings but not these requests: try one.
    std::unique_ptr<Ring> ring = Ring::create(made->fd_);
    AlignedMemory page(kFileAlign);
    Ring::Done done;
    made->hasRing_ = ring && page.data &&
                     ring->submit(false, page.data, kFileAlign, 0, 0) &&
                     ring->wait(done) && done.result >= 0;
  }
  arena = std::move(made);
  return Status::ok();
}

SwapFile::~SwapFile() {
  if (fd_ >= 0)
    close(fd_);
  if (directoryFd_ >= 0)
    close(directoryFd_); // this releases the lock
}

Status SwapFile::open(const std::string &directory, bool direct) {
  const std::string where = "can't keep a swap file in '" + directory + "'";
  directoryFd_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directoryFd_ < 0)
    return worldError(where, errno);
  if (flock(directoryFd_, LOCK_EX | LOCK_NB))
    return errno == EWOULDBLOCK
               ? Status(Code::World, where + ": another step uses it; each "
                                             "needs a directory of its own")
               : worldError(where + ", which can't be locked", errno);
  constexpr int flags = O_RDWR | O_CLOEXEC;
  if (direct)
    fd_ = openat(directoryFd_, ".", flags | O_TMPFILE | O_DIRECT, 0600);
  direct_ = fd_ >= 0;
  if (fd_ < 0)
    fd_ = openat(directoryFd_, ".", flags | O_TMPFILE, 0600);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // The lock excludes other steps, so an existing file of an earlier step is
    // empty.
    struct stat info;
    if (!fstatat(directoryFd_, kSwapName, &info, AT_SYMLINK_NOFOLLOW)) {
      if (!S_ISREG(info.st_mode) || info.st_size != 0)
        return {Code::World, where + ": '" + kSwapName +
                                 "' is there and isn't ours; it is left alone"};
      (void)unlinkat(directoryFd_, kSwapName, 0);
    }
    fd_ = openat(directoryFd_, kSwapName, flags | O_CREAT | O_EXCL | O_NOFOLLOW,
                 0600);
    if (fd_ >= 0)
      (void)unlinkat(directoryFd_, kSwapName, 0);
  }
  if (fd_ < 0)
    return worldError(where, errno);
  // Allocates the whole file now: a full disk should fail before hours of
  // training.
  const int64_t bytes = fileBlocks(bytes_) * kFileBlockBytes;
  int error = bytes && fallocate(fd_, 0, 0, off_t(bytes)) ? errno : 0;
  if (error == EOPNOTSUPP || error == ENOSYS)
    error = ftruncate(fd_, off_t(bytes)) ? errno : 0;
  if (!error)
    return Status::ok();
  struct statvfs room;
  const bool known = !fstatvfs(directoryFd_, &room);
  return {Code::World,
          where + " of " + std::to_string(bytes) +
              " bytes: " + std::strerror(error) +
              (known ? ", " +
                           std::to_string(uint64_t(room.f_bavail) *
                                          uint64_t(room.f_frsize)) +
                           " bytes are free"
                     : "")};
}

std::string SwapFile::description() const {
  return std::string(hasRing_ ? "io_uring" : "pread and pwrite") +
         (direct_ ? ", direct" : ", through the page cache");
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

void SwapFile::note(int64_t offset, const char *data, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kFileBlockBytes) {
    const int64_t length = std::min(kFileBlockBytes, bytes - at);
    Block &block = blocks_[size_t((offset + at) / kFileBlockBytes)];
    block.lastSum = block.length ? block.sum : 0;
    block.lastStep = block.step;
    block.sum = checksumOf(data + at, length);
    block.step = step_;
    block.length = uint32_t(length);
  }
}

Status SwapFile::verify(int64_t offset, const char *data, int64_t bytes) const {
  for (int64_t at = 0; at < bytes; at += kFileBlockBytes) {
    const int64_t length = std::min(kFileBlockBytes, bytes - at);
    const Block &block = blocks_[size_t((offset + at) / kFileBlockBytes)];
    const uint64_t sum = checksumOf(data + at, length);
    if (sum == block.sum)
      continue;
    const std::string what = std::to_string(length) + " bytes at " +
                             std::to_string(offset + at) + " of " + place();
    const std::string step = std::to_string(block.step);
    if (sum == block.lastSum)
      return {Code::World, what + " are stale: they are of step " +
                               std::to_string(block.lastStep) +
                               ", and what step " + step +
                               " wrote there was lost"};
    return {Code::World, what + " are damaged: they aren't what step " + step +
                             " wrote there"};
  }
  return Status::ok();
}

void SwapFile::forget(int64_t offset, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kFileBlockBytes)
    blocks_[size_t((offset + at) / kFileBlockBytes)] = {};
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Status SwapFile::checkPlace(const char *what, int64_t offset,
                            const void *memory, int64_t bytes,
                            bool hasLane) const {
  const auto defect = [&](const std::string &why) {
    return Status(Code::Defect, std::string(what) + " of " +
                                    std::to_string(bytes) + " bytes at " +
                                    std::to_string(offset) + " of " + place() +
                                    " " + why);
  };
  if (offset < 0 || bytes < 0 || offset > bytes_ - bytes)
    return defect("is outside its " + std::to_string(bytes_));
  if (offset % kFileBlockBytes)
    return defect("doesn't begin at a block");
  if (hasLane && !isAligned(memory))
    return defect("has memory that isn't aligned");
  return Status::ok();
}

Status SwapFile::failed(bool writes, int64_t offset, int64_t bytes,
                        int error) const {
  struct stat info;
  if (!writes && !fstat(fd_, &info) &&
      info.st_size < fileBlocks(bytes_) * kFileBlockBytes)
    return ended(offset);
  return worldError(std::string("can't ") + (writes ? "write " : "read ") +
                        std::to_string(bytes) + " bytes at " +
                        std::to_string(offset) + " of " + place(),
                    error);
}

Status SwapFile::ended(int64_t offset) const {
  struct stat info;
  const bool known = !fstat(fd_, &info);
  return {
      Code::World,
      place() + " was truncated: nothing can be read at " +
          std::to_string(offset) +
          (known ? ", it has " + std::to_string(info.st_size) + " bytes" : "")};
}

/// A request and its progress.
struct SwapFile::Piece {
  int64_t offset = 0, bytes = 0, done = 0;
  int64_t most = 0; // bytes of the current request (a planted fault)
  char *data = nullptr;
  int stalls = 0;
  bool writes = false;

  char *next() const { return data + done; }
  int64_t at() const { return offset + done; }
  int64_t left() const { return bytes - done; }

  /// The planted fault of the next request: nullopt sends the request to the
  /// file; a number is returned as its result.
  std::optional<int64_t> plan(TransferFaults *faults) {
    TransferFaults::Verdict verdict{left()};
    if (faults)
      verdict = faults->before(writes, at(), left());
    most = verdict.bytes;
    if (verdict.error)
      return -verdict.error;
    if (verdict.lost || !verdict.bytes)
      return verdict.bytes;
    return std::nullopt;
  }

  /// Takes the result of a request. Returns 0 to continue, an errno on failure,
  /// or -1 at the end of the file.
  int take(int64_t result) {
    result = std::min(result, most);
    if (result < 0)
      return result == -EINTR || result == -EAGAIN ? 0 : int(-result);
    if (result == 0 && !writes)
      return -1;
    // Continues at a page boundary.
    const int64_t brought =
        result >= left() ? left() : result / kFileAlign * kFileAlign;
    stalls = brought ? 0 : stalls + 1;
    done += brought;
    return stalls < kMostStalls ? 0 : EIO;
  }
};

Status SwapFile::moveNow(bool writes, int64_t offset, char *data,
                         int64_t bytes) {
  Piece piece{offset, bytes, 0, 0, data, 0, writes};
  while (piece.left() > 0) {
    const std::optional<int64_t> planted = piece.plan(faults_);
    int64_t result;
    if (planted)
      result = *planted;
    else if (writes)
      result = pwrite(fd_, piece.next(), size_t(piece.left()), piece.at());
    else
      result = pread(fd_, piece.next(), size_t(piece.left()), piece.at());
    if (result < 0 && !planted)
      result = -errno;
    if (result > 0 && !writes && faults_)
      faults_->after(piece.at(), piece.next(), result);
    if (const int error = piece.take(result))
      return error < 0 ? ended(piece.at())
                       : failed(writes, piece.at(), piece.left(), error);
  }
  return Status::ok();
}

Status SwapFile::moveQueued(bool writes, int64_t offset, char *data,
                            int64_t bytes, Ring &ring) {
  Piece pieces[Ring::kDepth];
  int waiting[Ring::kDepth], waitingCount = 0; // pieces to continue
  int freeSlots[Ring::kDepth], freeCount = Ring::kDepth, onTheWay = 0;
  for (int i = 0; i < Ring::kDepth; ++i)
    freeSlots[i] = i;
  int64_t next = 0;
  Status status;
  auto settle = [&](int slot, int64_t result) {
    Piece &piece = pieces[slot];
    if (result > 0 && !writes && faults_)
      faults_->after(piece.at(), piece.next(), result);
    const int error = piece.take(result);
    if (error && status)
      status = error < 0 ? ended(piece.at())
                         : failed(writes, piece.at(), piece.left(), error);
    if (!error && piece.left() > 0) {
      waiting[waitingCount++] = slot;
      return;
    }
    if (!error && !writes && status)
      status = verify(piece.offset, piece.data, piece.bytes);
    freeSlots[freeCount++] = slot;
  };
  while (true) {
    while (status && (waitingCount || (freeCount && next < bytes))) {
      int slot;
      if (waitingCount) {
        slot = waiting[--waitingCount];
      } else {
        slot = freeSlots[--freeCount];
        const int64_t some = std::min(kPieceBytes, bytes - next);
        pieces[slot] = {offset + next, some, 0, 0, data + next, 0, writes};
        if (writes)
          note(offset + next, data + next, some);
        next += some;
      }
      Piece &piece = pieces[slot];
      if (const std::optional<int64_t> planted = piece.plan(faults_))
        settle(slot, *planted);
      else if (ring.submit(writes, piece.next(), piece.left(), piece.at(),
                           uint64_t(slot)))
        ++onTheWay;
      else
        settle(slot, -errno);
    }
    if (!onTheWay)
      return status;
    Ring::Done done;
    if (!ring.wait(done))
      return failed(writes, offset, bytes, errno);
    --onTheWay;
    settle(int(done.tag), done.result);
  }
}

Status SwapFile::transfer(bool writes, int64_t offset, char *data,
                          int64_t bytes, FileLane *lane) {
  const int64_t blocks = bytes / kFileBlockBytes * kFileBlockBytes;
  if (lane && lane->ring_) {
    if (Status s = moveQueued(writes, offset, data, blocks, *lane->ring_); !s)
      return s;
  } else {
    for (int64_t at = 0; at < blocks; at += kPieceBytes) {
      const int64_t some = std::min(kPieceBytes, blocks - at);
      if (writes)
        note(offset + at, data + at, some);
      if (Status s = moveNow(writes, offset + at, data + at, some); !s)
        return s;
      if (!writes)
        if (Status s = verify(offset + at, data + at, some); !s)
          return s;
    }
  }
  // The last block isn't whole, and its last page may be partial.
  const int64_t rest = bytes - blocks;
  if (!rest)
    return Status::ok();
  offset += blocks;
  data += blocks;
  if (writes)
    note(offset, data, rest);
  const int64_t pages = rest / kFileAlign * kFileAlign;
  if (Status s = moveNow(writes, offset, data, pages); !s)
    return s;
  if (rest > pages) {
    FileLane own;
    if (!lane)
      if (Status s = prepare(own); !s)
        return s;
    char *page = static_cast<char *>(lane ? lane->page_ : own.page_);
    if (writes) {
      std::memcpy(page, data + pages, size_t(rest - pages));
      std::memset(page + (rest - pages), 0, size_t(kFileAlign - rest + pages));
    }
    if (Status s = moveNow(writes, offset + pages, page, kFileAlign); !s)
      return s;
    if (!writes)
      std::memcpy(data + pages, page, size_t(rest - pages));
  }
  return writes ? Status::ok() : verify(offset, data, rest);
}

Status SwapFile::write(int64_t offset, const void *from, int64_t bytes,
                       FileLane *lane) {
  if (Status s = checkPlace("a write", offset, from, bytes, lane); !s)
    return s;
  // A write only reads the memory.
  char *data = const_cast<char *>(static_cast<const char *>(from));
  if (isAligned(from) || !direct_)
    return transfer(true, offset, data, bytes, lane);
  AlignedMemory bounce(kBounceBytes);
  if (!bounce.data)
    return worldError("can't have memory for a transfer", ENOMEM);
  for (int64_t at = 0; at < bytes; at += kBounceBytes) {
    const int64_t some = std::min(kBounceBytes, bytes - at);
    std::memcpy(bounce.data, data + at, size_t(some));
    if (Status s = transfer(true, offset + at, bounce.data, some, lane); !s)
      return s;
  }
  return Status::ok();
}

Status SwapFile::read(int64_t offset, void *to, int64_t bytes, FileLane *lane) {
  if (Status s = checkPlace("a read", offset, to, bytes, lane); !s)
    return s;
  for (int64_t at = 0; at < bytes; at += kFileBlockBytes) {
    const Block &block = blocks_[size_t((offset + at) / kFileBlockBytes)];
    const int64_t wanted = std::min(kFileBlockBytes, bytes - at);
    if (int64_t(block.length) != wanted)
      return {Code::Defect,
              "a read of " + std::to_string(wanted) + " bytes at " +
                  std::to_string(offset + at) + " of " + place() + ", where " +
                  (block.length ? std::to_string(block.length) + " bytes are"
                                : "nothing is")};
  }
  char *data = static_cast<char *>(to);
  if (isAligned(to) || !direct_)
    return transfer(false, offset, data, bytes, lane);
  AlignedMemory bounce(kBounceBytes);
  if (!bounce.data)
    return worldError("can't have memory for a transfer", ENOMEM);
  for (int64_t at = 0; at < bytes; at += kBounceBytes) {
    const int64_t some = std::min(kBounceBytes, bytes - at);
    if (Status s = transfer(false, offset + at, bounce.data, some, lane); !s)
      return s;
    std::memcpy(data + at, bounce.data, size_t(some));
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Parts of blocks
//===----------------------------------------------------------------------===//

SwapFile::Part SwapFile::partAt(int64_t offset) const {
  const int64_t number = offset / kFileBlockBytes;
  return {number * kFileBlockBytes, int64_t(blocks_[size_t(number)].length),
          offset % kFileBlockBytes};
}

Status SwapFile::writePart(int64_t offset, const void *from, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > bytes_ - bytes)
    return checkPlace("a write", offset, from, bytes, false);
  const char *data = static_cast<const char *>(from);
  AlignedMemory block(kFileBlockBytes);
  if (!block.data)
    return worldError("can't have memory for a transfer", ENOMEM);
  while (bytes > 0) {
    int64_t some = bytes / kFileBlockBytes * kFileBlockBytes;
    if (offset % kFileBlockBytes == 0 && some > 0) {
      if (Status s = write(offset, data, some); !s)
        return s;
    } else {
      // The block may hold bytes of the parts before and behind.
      std::lock_guard lock(partMutex_);
      const Part part = partAt(offset);
      some = std::min(bytes, kFileBlockBytes - part.at);
      const int64_t held = std::max(part.held, part.at + some);
      std::memset(block.data, 0, size_t(held));
      if (part.held > 0 && (part.at > 0 || part.held > some))
        if (Status s = read(part.block, block.data, part.held); !s)
          return s;
      std::memcpy(block.data + part.at, data, size_t(some));
      if (Status s = write(part.block, block.data, held); !s)
        return s;
    }
    offset += some;
    data += some;
    bytes -= some;
  }
  return Status::ok();
}

Status SwapFile::readPart(int64_t offset, void *to, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > bytes_ - bytes)
    return checkPlace("a read", offset, to, bytes, false);
  char *data = static_cast<char *>(to);
  AlignedMemory block(kFileBlockBytes);
  if (!block.data)
    return worldError("can't have memory for a transfer", ENOMEM);
  while (bytes > 0) {
    const Part part = partAt(offset);
    int64_t some = bytes / kFileBlockBytes * kFileBlockBytes;
    if (part.at == 0 && some > 0) {
      if (Status s = read(offset, data, some); !s)
        return s;
    } else {
      some = std::min(bytes, kFileBlockBytes - part.at);
      // A block that holds less is read as if it held enough, for the message.
      if (Status s =
              read(part.block, block.data, std::max(part.held, part.at + some));
          !s)
        return s;
      std::memcpy(data, block.data + part.at, size_t(some));
    }
    offset += some;
    data += some;
    bytes -= some;
  }
  return Status::ok();
}

} // namespace tmc
