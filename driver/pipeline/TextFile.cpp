#include "driver/pipeline/TextFile.h"

#include "compiler/support/FileWords.h"
#include "runtime/step/File.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

static std::error_code writeTo(llvm::raw_fd_ostream &os,
                               const std::string &text) {
  os << text;
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

Expected<void> tmc::writeText(const std::string &path,
                              const std::string &text) {
  auto failed = [&](const std::error_code &error) {
    return Failure::world("can't write '" + path + "': " + error.message());
  };
  std::error_code error;
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
    llvm::raw_fd_ostream os(path, error);
    if (!error)
      error = writeTo(os, text);
    return error ? Expected<void>(failed(error)) : Expected<void>();
  }
  auto file = llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%");
  if (!file)
    return failed(llvm::errorToErrorCode(file.takeError()));
  llvm::raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  if ((error = writeTo(os, text))) {
    llvm::consumeError(file->discard());
    return failed(error);
  }
  if (llvm::Error kept = file->keep(path))
    return failed(llvm::errorToErrorCode(std::move(kept)));
  return {};
}

Expected<std::string> tmc::readText(const std::string &path,
                                    int64_t mostBytes) {
  MappedFile file;
  if (Status opened = MappedFile::open(path, file); !opened)
    return failureOf(opened);
  if (file.bytes() > mostBytes)
    return Failure::input("'" + path + "' has " + formatBytes(file.bytes()) +
                          ", more than the " + formatBytes(mostBytes) +
                          " that a file of this kind may have");
  std::string text(size_t(file.bytes()), '\0');
  if (Status read = file.read(0, text.data(), file.bytes()); !read)
    return failureOf(read);
  return text;
}
