//===- File.cpp - opening and replacing files -----------------------------===//

#include "runtime/step/File.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace tmc {

namespace {
Status openError(const std::string &path, int error) {
  const bool theirs = error == ENOENT || error == ENOTDIR || error == EISDIR ||
                      error == EXDEV || error == ELOOP || error == EACCES;
  const char *why = std::strerror(error);
  if (error == EXDEV)
    why = "it lies outside the directory that may be read";
  else if (error == ELOOP)
    why = "it is, or passes through, a symbolic link";
  return {theirs ? Code::BadInput : Code::World,
          "can't open '" + path + "': " + why};
}

/// Opens a file below a directory, behind no symbolic link. -1 and errno on
/// failure.
int openIn(int directory, const std::string &name, int flags) {
  open_how how{};
  how.flags = uint64_t(flags) | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return int(syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how));
}

/// Code::World if bytes are missing.
Status readAll(int descriptor, const std::string &shown, int64_t at, void *to,
               int64_t bytes) {
  char *out = static_cast<char *>(to);
  while (bytes > 0) {
    const ssize_t done = pread(descriptor, out, size_t(bytes), off_t(at));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return {Code::World, "can't read '" + shown + "': " +
                               (done ? std::strerror(errno) : "it ends there")};
    out += done;
    at += done;
    bytes -= done;
  }
  return Status::ok();
}

/// Before the number of the process in the name of a temporary file.
std::string temporaryPrefix(const std::string &name) {
  return "." + name + ".tmp.";
}
} // namespace

std::string formatBytes(int64_t bytes) {
  const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", value,
                units[unit]);
  return text;
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(const_cast<char *>(data_), size_t(bytes_));
  if (descriptor_ >= 0)
    close(descriptor_);
}
MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      shown_(std::move(other.shown_)) {}
MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(shown_, other.shown_);
  return *this;
}

Status MappedFile::map(int descriptor, const std::string &shown,
                       bool refuseHardLinks, MappedFile &file) {
  struct stat info;
  if (fstat(descriptor, &info)) {
    const int error = errno;
    close(descriptor);
    return openError(shown, error);
  }
  Status bad;
  if (!S_ISREG(info.st_mode))
    bad = {Code::BadInput, "'" + shown + "' isn't a regular file"};
  else if (refuseHardLinks && info.st_nlink != 1)
    bad = {Code::BadInput, "'" + shown + "' has " +
                               std::to_string(info.st_nlink) +
                               " names; a file named by another one must have "
                               "one"};
  if (!bad) {
    close(descriptor);
    return bad;
  }
  file = MappedFile();
  file.bytes_ = info.st_size;
  file.descriptor_ = descriptor;
  file.shown_ = shown;
  if (info.st_size > 0) {
    void *data = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE,
                      descriptor, 0);
    if (data == MAP_FAILED) {
      const int error = errno;
      file = MappedFile();
      return {Code::World,
              "can't map '" + shown + "': " + std::strerror(error)};
    }
    file.data_ = static_cast<const char *>(data);
  }
  return Status::ok();
}

Status MappedFile::read(int64_t at, void *to, int64_t bytes) const {
  const Status done = readAll(descriptor_, shown_, at, to, bytes);
  struct stat info {};
  if (done || fstat(descriptor_, &info) || info.st_size >= bytes_)
    return done;
  return {Code::World, "'" + shown_ + "' was cut while it was read: it had " +
                           std::to_string(bytes_) + " bytes, and has " +
                           std::to_string(info.st_size)};
}

void MappedFile::release(const char *from, int64_t bytes) const {
  if (!data_)
    return;
  const int64_t page = sysconf(_SC_PAGESIZE), begin = from - data_;
  const int64_t first = begin - begin % page; // The mapping begins at a page.
  // Only a hint: if it fails, the pages stay in memory longer.
  (void)madvise(const_cast<char *>(data_ + first),
                size_t(begin + bytes - first), MADV_DONTNEED);
}

Status MappedFile::open(const std::string &path, MappedFile &file) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return openError(path, errno);
  return map(descriptor, path, false, file);
}

Status MappedFile::openBeneath(const std::string &directory,
                               const std::string &name, MappedFile &file) {
  const std::string shown = directory + "/" + name;
  if (name.empty() || name.find('\0') != std::string::npos)
    return {Code::BadInput, "a file in '" + directory + "' has a bad name"};
  const int base = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (base < 0)
    return openError(directory, errno);
  const int descriptor = openIn(base, name, O_RDONLY);
  const int error = errno;
  close(base);
  if (descriptor < 0)
    return openError(shown, error);
  return map(descriptor, shown, true, file);
}

namespace {
/// Removes the files of killed runs: names made of `prefix`, the number of a
/// process that no longer exists (or of this process), and random digits.
void removeLeftovers(int directory, const std::string &prefix) {
  DIR *entries = fdopendir(dup(directory));
  if (!entries)
    return;
  while (const dirent *entry = readdir(entries)) {
    const char *name = entry->d_name;
    if (std::strncmp(name, prefix.c_str(), prefix.size()) != 0)
      continue;
    char *end;
    const long number = std::strtol(name + prefix.size(), &end, 10);
    if ((*end && *end != '.') || number <= 0)
      continue;
    if (number == getpid() || (kill(pid_t(number), 0) && errno == ESRCH))
      unlinkat(directory, name, 0);
  }
  closedir(entries);
}
} // namespace

AtomicFile::~AtomicFile() {
  discard();
  for (const int descriptor : {directory_, readable_})
    if (descriptor >= 0)
      close(descriptor);
}

void AtomicFile::discard() {
  if (file_ < 0)
    return;
  close(file_);
  file_ = -1;
  if (isOwner_)
    unlinkat(directory_, temporary_.c_str(), 0);
}

Status AtomicFile::fail(const char *what) {
  const int error = errno;
  discard();
  std::string message = std::string("can't ") + what + " '" + shown_ +
                        "': " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    message += "; what was saved there before is untouched";
  return {Code::World, message};
}

Status AtomicFile::create(const std::string &directory,
                          const std::string &name) {
  if (!writes_)
    return Status::ok();
  shown_ = directory + "/" + name;
  name_ = name;
  if (mkdir(directory.c_str(), 0777) && errno != EEXIST)
    return fail("make the directory of");
  directory_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0)
    return fail("open the directory of");
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    return fail("name");
  char digits[20];
  std::snprintf(digits, sizeof digits, ".%016llx",
                static_cast<unsigned long long>(random));
  temporary_ = temporaryPrefix(name) + std::to_string(getpid()) + digits;
  removeLeftovers(directory_, temporaryPrefix(name));
  file_ = openat(directory_, temporary_.c_str(),
                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file_ < 0)
    return fail("create");
  return Status::ok();
}

bool AtomicFile::join(const std::string &directory, const std::string &name,
                      const std::string &temporary, int64_t bytes) {
  shown_ = directory + "/" + name;
  name_ = name;
  isOwner_ = false;
  temporary_ = temporary;
  if (temporary.compare(0, temporaryPrefix(name).size(), temporaryPrefix(name)))
    return false;
  directory_ = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  file_ = directory_ < 0 ? -1 : openIn(directory_, temporary, O_WRONLY);
  struct stat info;
  if (file_ >= 0 && (fstat(file_, &info) || !S_ISREG(info.st_mode) ||
                     info.st_nlink != 1 || info.st_size != bytes))
    discard();
  return file_ >= 0;
}

Status AtomicFile::write(const void *data, int64_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0 && writes_) {
    const size_t some = size_t(bytes < (64 << 20) ? bytes : (64 << 20));
    const ssize_t done = ::write(file_, at, some);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return fail("write");
    at += done;
    bytes -= done;
  }
  return Status::ok();
}

Status AtomicFile::resize(int64_t bytes) {
  return ftruncate(file_, off_t(bytes)) ? fail("write") : Status::ok();
}

Status AtomicFile::writeAt(int64_t at, const void *data, int64_t bytes) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    const ssize_t done = pwrite(file_, from, size_t(bytes), off_t(at));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return fail("write");
    from += done;
    at += done;
    bytes -= done;
  }
  return Status::ok();
}

Status AtomicFile::sync() {
  return fsync(file_) ? fail("write") : Status::ok();
}

Status AtomicFile::readBack(int64_t at, void *to, int64_t bytes) {
  if (readable_ < 0)
    readable_ = openIn(directory_, temporary_, O_RDONLY);
  if (readable_ < 0)
    return fail("read");
  return readAll(readable_, shown_, at, to, bytes);
}

Status AtomicFile::commit() {
  if (!writes_)
    return Status::ok();
  if (Status s = sync(); !s)
    return s;
  const int file = file_;
  if (renameat(directory_, temporary_.c_str(), directory_, name_.c_str()))
    return fail("replace");
  file_ = -1;
  close(file);
  if (fsync(directory_))
    return fail("sync the directory of");
  return Status::ok();
}

} // namespace tmc
