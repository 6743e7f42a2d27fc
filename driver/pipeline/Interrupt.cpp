#include "driver/pipeline/Interrupt.h"

#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// The signal handler reads these: plain memory, changed with `armed` off.
struct Staged {
  char path[PATH_MAX], parent[PATH_MAX];
  volatile sig_atomic_t armed;
};
Staged staged[tmc::kMostStaged];
volatile sig_atomic_t runningGroups[tmc::kMostRunningGroups];

struct DirectoryEntry { // linux_dirent64, which no header declares.
  uint64_t inode;
  int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[];
};

void removeFilesIn(const char *path) {
  int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (directory < 0)
    return;
  alignas(DirectoryEntry) char buffer[4096];
  long bytes;
  while ((bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) >
         0)
    for (long at = 0; at < bytes;) {
      auto *entry = reinterpret_cast<DirectoryEntry *>(buffer + at);
      unlinkat(directory, entry->name, 0); // Fails on "." and "..".
      at += entry->length;
    }
  close(directory);
}

void onSignal(int signal) {
  for (int group : runningGroups)
    if (group)
      tmc::killGroup(group);
  tmc::removeStaged();
  _exit(128 + signal);
}

} // namespace

void tmc::installInterruptHandler() {
  // Without SIGXFSZ, a file beyond a size limit is an ordinary error.
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = onSignal;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old;
    // A signal that is ignored (nohup) stays ignored.
    if (sigaction(number, nullptr, &old) == 0 && old.sa_handler != SIG_IGN)
      sigaction(number, &action, nullptr);
  }
}

void tmc::removeWhenStopped(const std::string &staging,
                            const std::string &parent) {
  if (staging.size() >= PATH_MAX || parent.size() >= PATH_MAX)
    return;
  // A later place of the table is of a later directory.
  int place = tmc::kMostStaged;
  while (place > 0 && !staged[place - 1].armed)
    --place;
  if (place == tmc::kMostStaged)
    return;
  Staged &its = staged[place];
  std::strcpy(its.path, staging.c_str());
  std::strcpy(its.parent, parent.c_str());
  its.armed = 1;
}

void tmc::killGroup(int group) {
  if (kill(-group, SIGKILL) != 0)
    kill(group, SIGKILL);
}

void tmc::keepWhenStopped(const std::string &staging) {
  for (Staged &its : staged)
    if (its.armed && staging == its.path)
      its.armed = 0;
}

static void remove(Staged &its) {
  if (!its.armed)
    return;
  its.armed = 0;
  // A compiler that was just ended may still have made a file: try again.
  constexpr int kAttempts = 20;
  for (int i = 0; i < kAttempts; ++i) {
    removeFilesIn(its.path);
    if (rmdir(its.path) == 0)
      break;
    usleep(10'000);
  }
  if (*its.parent)
    rmdir(its.parent);
}

void tmc::removeStaged() {
  for (int place = kMostStaged; place-- > 0;)
    remove(staged[place]);
}

void tmc::setRunningGroup(int slot, int group) { runningGroups[slot] = group; }
