#include "driver/calibrate/ProbeRun.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace llvm;
using namespace tmc;

tmc::Expected<void> tmc::writeProbeFile(const std::string &path,
                                        const std::string &bytes) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  os << bytes;
  os.close();
  if (!error && !os.has_error())
    return {};
  os.clear_error();
  return Failure::world("can't write '" + path + "'");
}

std::string tmc::npyOf(const ProbeInput &input) {
  int64_t count = 1;
  std::string shape;
  for (int64_t size : input.shape) {
    count *= size;
    shape += std::to_string(size) + ", ";
  }
  std::string header =
      (llvm::Twine("{'descr': '") + (input.isTokens ? "<i8" : "<f4") +
       "', 'fortran_order': False, 'shape': (" + shape + "), }")
          .str();
  constexpr size_t kAlignment = 64, kPreamble = 10;
  header.resize((header.size() + kPreamble + kAlignment) / kAlignment *
                        kAlignment -
                    kPreamble,
                ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += char(header.size() & 0xff);
  bytes += char(header.size() >> 8);
  bytes += header;
  std::mt19937_64 random(1); // The standard defines its output.
  for (int64_t i = 0; i < count; ++i) {
    if (input.isTokens) {
      int64_t value = int64_t(random() % uint64_t(input.limit));
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    } else {
      float value = float(int64_t(random() >> 40)) / float(1 << 23) - 1;
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
  }
  return bytes;
}

tmc::Expected<tmc::ProbeEnd> tmc::runProbe(const ProbeRun &run) {
  const std::string log = run.directory + ".log";
  std::vector<std::string> words = {run.directory + "/train", "--init=random:1",
                                    "--quiet"};
  words.insert(words.end(), run.flags.begin(), run.flags.end());
  if (run.threads > 0)
    words.push_back("--threads=" + std::to_string(run.threads));
  SmallVector<StringRef> arguments(words.begin(), words.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log),
                                          StringRef(log)};
  // LLVM's code for a child that it ended at the time limit.
  constexpr int kTimedOut = -2;
  std::string error;
  int code = sys::ExecuteAndWait(words[0], arguments, std::nullopt, redirects,
                                 run.limitSeconds, 0, &error);
  if (code == 0)
    return ProbeEnd::Finished;
  if (code == kTimedOut && run.limitSeconds > 0)
    return ProbeEnd::TimedOut;
  Failure failure = Failure::world("the probe '" + run.name +
                                   "' ended with code " + std::to_string(code) +
                                   (error.empty() ? "" : ": " + error));
  if (auto text = MemoryBuffer::getFile(log))
    failure.notes.push_back((*text)->getBuffer().trim().str());
  return failure;
}
