#include "driver/pipeline/Reproducer.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>

using namespace tmc;

namespace {

/// The stream to which MLIR prints the reproducer after a failed pass.
struct TextStream : mlir::ReproducerStream {
  explicit TextStream(std::string &text) : stream(text) {}
  llvm::StringRef description() override { return "reproducer"; }
  llvm::raw_ostream &os() override { return stream; }
  llvm::raw_string_ostream stream;
};

} // namespace

Reproducer::Reproducer(mlir::PassManager &manager,
                       std::function<bool()> isDefect) {
  manager.enableCrashReproducerGeneration(
      [this, isDefect](
          std::string &error) -> std::unique_ptr<mlir::ReproducerStream> {
        failed = true;
        if (isDefect())
          return std::make_unique<TextStream>(text);
        error = "none is wanted";
        return nullptr;
      });
}

std::string Reproducer::write() const { return writeReproducer(text); }

std::string tmc::writeReproducer(const std::string &text) {
  llvm::SmallString<128> path;
  llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, path);
  llvm::sys::path::append(path, "tmc-crash-XXXXXX.mlir");
  // Mode 0600; mkstemps never follows a link at that path.
  const int fd =
      mkstemps(const_cast<char *>(path.c_str()), int(sizeof ".mlir" - 1));
  std::error_code error;
  if (fd < 0)
    error = std::error_code(errno, std::generic_category());
  if (!error) {
    llvm::raw_fd_ostream os(fd, /*shouldClose=*/true);
    os << text;
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return "the reproducer '" + path.str().str() +
           "' can't be written: " + error.message();
  return "please report it with " + path.str().str() +
         ", which 'tmc-opt --run-reproducer' runs";
}
