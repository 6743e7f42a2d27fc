#include "driver/pipeline/SystemMemory.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"

#include <utility>

using namespace llvm;
using namespace tmc;

SystemMemory tmc::systemMemory() {
  SystemMemory memory;
  auto file = MemoryBuffer::getFileAsStream("/proc/meminfo");
  if (!file)
    return memory;
  SmallVector<StringRef> lines;
  (*file)->getBuffer().split(lines, '\n');
  for (StringRef line : lines)
    for (auto [key, value] :
         {std::pair<const char *, int64_t *>{"MemTotal:", &memory.totalBytes},
          {"MemAvailable:", &memory.availableBytes}})
      if (line.consume_front(key) && !line.trim(" kB").getAsInteger(10, *value))
        *value *= 1024;
  return memory;
}
