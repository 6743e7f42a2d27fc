#include "driver/pipeline/OutOfMemory.h"

#include "compiler/support/Failure.h"
#include "driver/pipeline/Interrupt.h"
#include "driver/pipeline/Messages.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

/// Only the stack is available for the message.
static void endWithoutMemory(void *, const char *, bool) {
  tmc::removeStaged();
  char text[160];
  constexpr double kGiB = 1 << 30;
  struct rlimit limit = {};
  bool isLimited =
      getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  const bool isJson = tmc::messageFormat() == tmc::MessageFormat::Json;
  int length =
      isJson
          ? std::snprintf(text, sizeof text,
                          "{\"code\":%d,\"kind\":\"error\",\"message\":\"out "
                          "of memory\",\"nodes\":[],\"notes\":[],"
                          "\"numbers\":{}}\n",
                          int(tmc::FailureKind::World))
      : isLimited
          ? std::snprintf(text, sizeof text,
                          "tmc: error: out of memory\n"
                          "tmc: note: this process may have %.2f GiB "
                          "(ulimit -v)\n",
                          double(limit.rlim_cur) / kGiB)
          : std::snprintf(text, sizeof text, "tmc: error: out of memory\n");
  ssize_t written = write(2, text, size_t(std::max(length, 0)));
  (void)written;
  _exit(int(tmc::FailureKind::World));
}

void tmc::installOutOfMemoryHandler() {
  llvm::install_bad_alloc_error_handler(endWithoutMemory);
}
