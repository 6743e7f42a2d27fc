//===- PipeSignal.h - writing to a peer that may be gone --------*- C++ -*-===//
//
// A write to a connection whose peer is gone raises SIGPIPE, which ends the
// process without a word. Libraries write without asking for no signal, and a
// library doesn't change the signals of the program that opened it: so a
// thread holds the signal back while it is in a library's call.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_PIPESIGNAL_H
#define TMC_RUNTIME_NETWORK_PIPESIGNAL_H

#include <csignal>
#include <ctime>

namespace tmc {

/// While it lives, this thread and those that it starts get no SIGPIPE.
class WithoutPipeSignal {
public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    wasPending_ = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    // One that came meanwhile would be delivered when it is unblocked.
    const timespec now = {};
    if (!wasPending_)
      while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal &) = delete;
  WithoutPipeSignal &operator=(const WithoutPipeSignal &) = delete;

private:
  sigset_t pipe_, before_;
  bool wasPending_ = false;
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_PIPESIGNAL_H
