#include "frontends/SafeFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace tmc;

SafeFile &SafeFile::operator=(SafeFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(name, other.name);
  return *this;
}

SafeFile::~SafeFile() {
  if (size)
    munmap(const_cast<char *>(data), size);
}

static Failure cannotOpen(const std::string &path, int error) {
  return Failure::world("cannot open '" + path + "': " + std::strerror(error));
}

Expected<SafeFile> SafeFile::fromDescriptor(int fd, std::string path) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    int error = errno;
    close(fd);
    return cannotOpen(path, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return Failure::input("'" + path + "' is not a regular file");
  }
  SafeFile file;
  file.name = std::move(path);
  if (info.st_size > 0) {
    void *at = mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (at == MAP_FAILED)
      return cannotOpen(file.name, error);
    file.data = static_cast<const char *>(at);
    file.size = info.st_size;
    return file;
  }
  close(fd);
  return file;
}

Expected<SafeFile> tmc::openByUser(const std::string &path) {
  // O_NONBLOCK: don't wait for a writer if this is a pipe.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    int error = errno;
    Failure failure = cannotOpen(path, error);
    // A wrong name is the user's fault; any other error is the system's.
    if (error == ENOENT || error == ENOTDIR || error == EISDIR ||
        error == EACCES || error == ELOOP || error == ENAMETOOLONG)
      failure.kind = FailureKind::Input;
    return failure;
  }
  return SafeFile::fromDescriptor(fd, path);
}

/// Does the work of openat2 step by step, for kernels and sandboxes without it:
/// opens every component without following a link, and refuses "..".
static int walkBeneath(int root, const std::string &name) {
  int at = dup(root);
  size_t begin = 0;
  while (at >= 0) {
    size_t end = name.find('/', begin);
    std::string part = name.substr(begin, end - begin);
    bool last = end == std::string::npos;
    if (part == "..") {
      close(at);
      errno = EXDEV;
      return -1;
    }
    int next = at;
    if (!part.empty() && part != ".") {
      int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
      next = openat(at, part.c_str(), last ? flags : flags | O_DIRECTORY);
      int error = errno;
      close(at);
      errno = error;
    }
    if (last)
      return next;
    at = next;
    begin = end + 1;
  }
  return at;
}

static int resolveBeneath(int root, const std::string &name) {
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = syscall(SYS_openat2, root, name.c_str(), &how, sizeof(how));
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return walkBeneath(root, name);
  return fd;
}

Expected<SafeFile> tmc::openBeneath(const std::string &directory,
                                    const std::string &name) {
  if (name.empty() || name.find('\0') != std::string::npos)
    return Failure::input("the name of an external file is empty or holds a "
                          "zero byte");
  if (name.front() == '/')
    return Failure::input("external file '" + name +
                          "' is absolute; it must lie beside the model");
  std::string where = directory.empty() ? "." : directory;
  int root = open(where.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    return cannotOpen(where, errno);
  int fd = resolveBeneath(root, name);
  int error = errno;
  close(root);
  if (fd < 0) {
    if (error == EXDEV)
      return Failure::input("external file '" + name +
                            "' lies outside the model's directory");
    if (error == ELOOP)
      return Failure::input("external file '" + name +
                            "' is reached by a symbolic link");
    return Failure::world("cannot open external file '" + name +
                          "': " + std::strerror(error));
  }
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink != 1) {
    close(fd);
    return Failure::input("external file '" + name + "' has " +
                          std::to_string(info.st_nlink) +
                          " hard links; it must have one");
  }
  return SafeFile::fromDescriptor(fd, name);
}
