//===- Report.cpp - what the emulator found, and where --------------------===//

#include "test/cuda/emulator/Report.h"

#include "test/cuda/emulator/Image.h"
#include "test/cuda/emulator/Schedule.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <unistd.h>

namespace tmc::emulator {

namespace {

struct State {
  std::set<std::tuple<FaultKind, const void *, std::string>> seen;
  std::vector<Fault> collected;
  size_t count = 0;
  int collectors = 0;
  bool faulty = false; // and nobody took it
};
State &state() {
  static State *s = new State; // reports come until the very end
  return *s;
}

std::string baseName(const std::string &path) {
  return path.substr(path.rfind('/') + 1);
}

std::string place(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," +
         std::to_string(z) + ")";
}

void add(FaultKind kind, const std::string &where, const std::string &text) {
  State &s = state();
  Fault fault{kind, "", "", "", where, text};
  const void *kernel = nullptr;
  if (inKernel()) {
    kernel = currentKernel();
    fault.kernel = functionName(reinterpret_cast<uintptr_t>(kernel));
    fault.block = place(current.block.x, current.block.y, current.block.z);
    fault.thread = place(current.thread.x, current.thread.y, current.thread.z);
  }
  if (!s.seen.emplace(kind, kernel, where).second)
    return;
  ++s.count;
  if (s.collectors) {
    s.collected.push_back(fault);
    return;
  }
  s.faulty = true;
  std::fprintf(stderr, "emulator: %s\n", fault.message().c_str());
}

} // namespace

const char *nameOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::Race:
    return "race";
  case FaultKind::OutOfBounds:
    return "out of bounds";
  case FaultKind::Uninitialised:
    return "uninitialised read";
  case FaultKind::Misaligned:
    return "misaligned access";
  case FaultKind::Barrier:
    return "divergent barrier";
  case FaultKind::Warp:
    return "warp operation";
  case FaultKind::Deadlock:
    return "deadlock";
  case FaultKind::SharedLimit:
    return "shared memory";
  case FaultKind::Atomic:
    return "atomic operation";
  case FaultKind::Library:
    return "library call";
  case FaultKind::Transfer:
    return "transfer";
  case FaultKind::Resource:
    return "resource";
  case FaultKind::Stale:
    return "stale graph";
  }
  return "";
}

std::string Fault::message() const {
  std::string out = nameOf(kind);
  if (!kernel.empty())
    out += " in " + kernel + ", block " + block + ", thread " + thread;
  if (!where.empty())
    out += ", at " + where;
  return out + ": " + text;
}

void report(FaultKind kind, uintptr_t pc, const std::string &text) {
  add(kind, pc ? sourceLine(pc) : "", text);
}
void reportAt(FaultKind kind, const std::string &where,
              const std::string &text) {
  add(kind, baseName(where), text);
}

std::string sourceLine(uintptr_t pc, bool callers) {
  static auto *known = new std::map<uintptr_t, std::vector<std::string>>;
  auto [entry, fresh] = known->try_emplace(pc);
  std::vector<std::string> &lines = entry->second;
  if (fresh && image().contains(pc)) {
    // The call is before the return address.
    char command[4200];
    std::snprintf(command, sizeof command,
                  "addr2line -i -e '%s' 0x%lx 2>/dev/null",
                  image().path.c_str(), (unsigned long)(pc - 1 - image().base));
    if (FILE *pipe = popen(command, "r")) {
      char line[4096];
      while (std::fgets(line, sizeof line, pipe)) {
        std::string text = baseName(line);
        text = text.substr(0, text.find_first_of(" \n"));
        // The words of the language stand in headers.
        if (!text.empty() && text[0] != '?' &&
            std::string(line).find("/cuda/emulator/") == std::string::npos &&
            std::string(line).find("/cuda/TensorCore.h") == std::string::npos)
          lines.push_back(text);
      }
      pclose(pipe);
    }
  }
  if (lines.empty())
    return "?";
  std::string out = lines[0];
  for (size_t i = 1; callers && i < lines.size(); ++i)
    out += " < " + lines[i];
  return out;
}

std::string functionName(uintptr_t address) {
  return image().functionAt(address);
}
const char *symbolName(uintptr_t address) { return image().symbolAt(address); }

Collect::Collect() {
  ++state().collectors;
  clear();
}
Collect::~Collect() {
  clear();
  --state().collectors;
}
const std::vector<Fault> &Collect::faults() const { return state().collected; }
void Collect::clear() {
  state().collected.clear();
  state().seen.clear();
}

void collectNoMore() {
  state().collectors = 0;
  state().collected.clear();
  state().seen.clear();
}

void endIfFaulty() {
  if (!state().faulty)
    return;
  std::fflush(nullptr);
  _exit(kFaultExit);
}
size_t faultCount() { return state().count; }

} // namespace tmc::emulator
