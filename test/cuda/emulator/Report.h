//===- Report.h - what the emulator found, and where ------------*- C++ -*-===//
//
// A fault is a finding about one thread of one kernel, or about one call of the
// host. It is named as a developer needs it:
//
//     emulator: race in tmc::cuda::racy(float*), block (0,0,0), thread
//     (4,0,0), at CudaDeviceTest.cpp:27: reads 4 bytes at offset 20 of
//     dynamic shared memory, which thread (5,0,0) writes at
//     CudaDeviceTest.cpp:26
//
// The source line comes from the return address of the instrumented access, by
// addr2line, and only when there is something to report. One line of source is
// reported once for each kernel and kind.
//
// What happens then: by default the report goes to stderr and the process ends
// with kFaultExit when the launch is over, so that a run under any program
// fails. A test takes the faults over by Collect, which holds them instead.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_TEST_CUDA_EMULATOR_REPORT_H
#define TMC_TEST_CUDA_EMULATOR_REPORT_H

#include <cstdint>
#include <string>
#include <vector>

namespace tmc::emulator {

/// Exit code of a process in which a fault was found.
constexpr int kFaultExit = 86;

enum class FaultKind {
  Race,          // two threads, one of them writing, with nothing between
  OutOfBounds,   // memory that isn't the kernel's
  Uninitialised, // a read of what nobody wrote
  Misaligned,    // a vector access that isn't aligned to its size
  Barrier,       // __syncthreads that not every thread of a block reaches
  Warp,          // a shuffle, vote or __syncwarp whose mask doesn't hold
  Deadlock,      // threads, or streams, that wait for each other
  SharedLimit,   // more shared memory than a block may have
  Atomic,        // an atomic operation: results would depend on the order
  Library,       // a call that a library of NVIDIA's would refuse or spoil
  Transfer,      // host memory used while a queued copy still needs it
  Resource,      // a handle or a piece of memory freed while in use
  Stale,         // a graph of other work than what would be queued now
};
const char *nameOf(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string kernel;        // "" on the host
  std::string block, thread; // "(x,y,z)"
  std::string where;         // "File.cu:12", the innermost line
  std::string text;
  /// All of it, as printed.
  std::string message() const;
};

/// Reports a fault of the thread that runs, or of the host where none does.
/// `pc` is the address behind the access or call.
void report(FaultKind kind, uintptr_t pc, const std::string &text);
/// The same where the line is known.
void reportAt(FaultKind kind, const std::string &where,
              const std::string &text);

/// "File.cu:12" of a return address, with the inlined callers' lines behind it
/// where `callers`; "?" where nothing is known.
std::string sourceLine(uintptr_t pc, bool callers = false);
/// The demangled name of the function at an address.
std::string functionName(uintptr_t address);
/// Its mangled name; null where no function is known.
const char *symbolName(uintptr_t address);

/// Faults since this was made, held for a test in place of ending the process.
class Collect {
public:
  Collect();
  ~Collect();
  const std::vector<Fault> &faults() const;
  void clear();
};

/// From now on nobody collects faults: for a process that a test has forked.
void collectNoMore();
/// Ends the process if faults were found and nobody collects them.
void endIfFaulty();
/// How many faults the process has seen in all.
size_t faultCount();

} // namespace tmc::emulator

#endif // TMC_TEST_CUDA_EMULATOR_REPORT_H
