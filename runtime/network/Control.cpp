//===- Control.cpp - one world, and its end -------------------------------===//

#include "runtime/network/Control.h"

#include "runtime/kernels/Names.h"

#include <algorithm>
#include <chrono>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tmc {

namespace {

constexpr double kBeatSeconds = 1;
/// A new step is said after this time, so that the sentence about a rank that
/// is gone names its step.
constexpr double kStepBeatSeconds = 0.05;
/// A limit on silence is at least as many beats.
constexpr double kBeatsPerLimit = 4;
constexpr double kLingerSeconds = 0.5;
/// Names of entries are cut there: a beat is short.
constexpr size_t kMostNameBytes = 200;
/// A sentence of another rank.
constexpr size_t kMostSentenceBytes = 4096;

std::string beatFrame(const Progress &progress) {
  return FrameWriter(FrameKind::Beat)
      .number64(uint64_t(progress.step))
      .number64(uint64_t(progress.changes))
      .number32(progress.isInStep)
      .number32(progress.isInCall)
      .text(progress.place)
      .finish();
}

bool readBeat(const std::string &body, Progress &progress) {
  FrameReader reader(body);
  progress.step = int64_t(reader.number64());
  progress.changes = int64_t(reader.number64());
  progress.isInStep = reader.number32() != 0;
  progress.isInCall = reader.number32() != 0;
  progress.place = reader.text();
  return reader.isDone() && progress.place.size() <= kMostNameBytes;
}

/// Ends the wait of the control thread.
void wake(int event) {
  const uint64_t one = 1;
  (void)!write(event, &one, sizeof one);
}

} // namespace

void endProcess(const Status &status) {
  // Another thread may hold the lock of a stream.
  const std::string text = "error: " + visible(status.message()) + "\n";
  (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(static_cast<int>(status.code()));
}

Control::Control(const ControlSettings &settings)
    : settings_(settings), rank_(settings.assembly.place.rank),
      isHost_(rank_ == 0) {}

Status Control::start(const ControlSettings &settings,
                      std::unique_ptr<Control> &control) {
  std::unique_ptr<Control> made(new Control(settings));
  if (Status s = assemble(settings.assembly, made->assembly_); !s)
    return s;
  made->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made->wake_ < 0)
    return {Code::World, "the system has no more descriptors"};
  made->watch_.emplace(made->assembly_.peers, settings.mostSeconds,
                       monotonicSeconds());
  if (!made->isHost_) // It hears from rank 0 alone.
    for (int rank = 1; rank < settings.assembly.place.ranks; ++rank)
      made->watch_->leave(rank);
  if (made->isHost_)
    made->hub_.emplace(
        settings.assembly.place.ranks,
        [control = made.get()](int rank, const std::string &bytes) {
          control->send(rank, bytes);
        });
  made->thread_ = std::thread([control = made.get()] { control->serve(); });
  control = std::move(made);
  return Status::ok();
}

Control::~Control() {
  stop();
  if (wake_ >= 0)
    (void)close(wake_);
}

void Control::stop() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake(wake_);
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id())
    thread_.join();
}

void Control::computes(int64_t step, int64_t entry) {
  const int64_t before = step_.exchange(step, std::memory_order_relaxed);
  entry_.store(entry, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (before != step)
    wake(wake_);
}

void Control::calls(int64_t entry) {
  call_.store(entry, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_relaxed);
}

void Control::rests() {
  entry_.store(-1, std::memory_order_relaxed);
  call_.store(-1, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_relaxed);
}

Progress Control::progress() const {
  Progress progress;
  progress.step = step_.load(std::memory_order_relaxed);
  progress.changes = changes_.load(std::memory_order_relaxed);
  const int64_t call = call_.load(std::memory_order_relaxed);
  const int64_t entry =
      call >= 0 ? call : entry_.load(std::memory_order_relaxed);
  progress.isInCall = call >= 0;
  progress.isInStep = entry >= 0;
  if (entry >= 0 && settings_.entryName)
    progress.place = settings_.entryName(entry).substr(0, kMostNameBytes);
  return progress;
}

/// Needs the lock. A connection that is lost is found by receive().
void Control::send(int rank, const std::string &bytes) {
  if (rank == rank_)
    return handleOwn({FrameKind(bytes[4]), bytes.substr(kFrameHeaderBytes)});
  const Socket &socket =
      assembly_.connections[isHost_ ? size_t(rank) : 0].socket;
  if (socket.isOpen())
    (void)sendAll(socket, bytes, kSendSeconds);
}

/// Needs the lock.
void Control::handleOwn(const Frame &frame) {
  FrameReader reader(frame.body);
  if (frame.kind == FrameKind::Value) {
    const std::string name = reader.text();
    values_[name] = reader.text();
  } else if (frame.kind == FrameKind::Met) {
    met_ = int64_t(reader.number64());
  } else if (frame.kind == FrameKind::Bye) {
    isOver_ = true;
  } else if (frame.kind == FrameKind::Saved) {
    saved_ = reader.text();
  } else if (frame.kind == FrameKind::Verdict && fault_.isOk()) {
    fault_ = readVerdict(frame.body);
  }
  changed_.notify_all();
}

/// Needs the lock. Returns "", or the fault of the sender.
std::string Control::handle(int rank, const Frame &frame) {
  if (frame.kind == FrameKind::Beat) {
    Progress progress;
    if (!readBeat(frame.body, progress))
      return "sends a malformed message";
    watch_->hear(rank, progress, monotonicSeconds());
    return "";
  }
  if (!isHost_) {
    handleOwn(frame);
    return "";
  }
  if (frame.kind == FrameKind::Failed) {
    const std::string why =
        FrameReader(frame.body).text().substr(0, kMostSentenceBytes);
    judge({Code::World, nameOf(rank, watch_->peer(rank)) + " ended: " + why},
          rank);
    return "";
  }
  const std::string fault = hub_->handle(rank, frame);
  if (frame.kind == FrameKind::Bye)
    watch_->leave(rank);
  return fault;
}

/// Needs the lock. Ends the run, and tells it to all but `author`, who knows.
void Control::judge(const Status &status, int author) {
  if (!fault_.isOk())
    return;
  fault_ = {status.code(),
            status.message() + (saved_.empty() ? "" : "; " + saved_)};
  if (isHost_)
    for (size_t rank = 1; rank < assembly_.connections.size(); ++rank)
      if (int(rank) != author)
        send(int(rank), verdictFrame(fault_));
  changed_.notify_all();
  wake(wake_);
}

/// Needs the lock. Reads what a connection has.
void Control::receive(int rank, Connection &connection) {
  std::string bytes;
  const Received received = receiveSome(connection.socket, bytes);
  connection.buffer.append(bytes.data(), bytes.size());
  Frame frame;
  while (fault_.isOk() && connection.buffer.next(frame))
    if (const std::string why = handle(rank, frame); !why.empty())
      judge({Code::World, nameOf(rank, watch_->peer(rank)) + " " + why}, -1);
  if (!connection.buffer.fault().empty())
    judge({Code::World,
           nameOf(rank, watch_->peer(rank)) + " " + connection.buffer.fault()},
          -1);
  if (received != Received::Closed)
    return;
  connection.socket.close();
  if (!isOver_ && !watch_->hasLeft(rank))
    judge({Code::World, watch_->gone(rank)}, rank);
}

/// Needs the lock. Returns the step that it says.
int64_t Control::beat(double now) {
  const Progress own = progress();
  const std::string bytes = beatFrame(own);
  watch_->hear(rank_, own, now);
  if (!isHost_)
    send(0, bytes);
  else
    for (int rank = 1; rank < int(assembly_.connections.size()); ++rank)
      send(rank, bytes);
  return own.step;
}

/// Waits for bytes until the time `until`, and handles them.
void Control::turn(double until) {
  std::vector<pollfd> entries = {{wake_, POLLIN, 0}};
  for (const Connection &each : assembly_.connections)
    if (each.socket.isOpen())
      entries.push_back({each.socket.get(), POLLIN, 0});
  const double left = until - monotonicSeconds();
  (void)poll(entries.data(), nfds_t(entries.size()),
             int(std::max(1.0, left * 1e3)));
  uint64_t wakes = 0;
  (void)!read(wake_, &wakes, sizeof wakes);
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < assembly_.connections.size(); ++i)
    if (assembly_.connections[i].socket.isOpen())
      receive(int(i), assembly_.connections[i]);
}

void Control::serve() {
  const double limit = settings_.mostSeconds;
  const double period =
      limit > 0 ? std::min(kBeatSeconds, limit / kBeatsPerLimit) : kBeatSeconds;
  double last = monotonicSeconds(), next = last;
  int64_t said = 0;
  for (bool goesOn = true; goesOn;) {
    turn(next);
    std::lock_guard lock(mutex_);
    const double now = monotonicSeconds();
    if (step_.load(std::memory_order_relaxed) != said)
      next = std::min(next, last + kStepBeatSeconds);
    if (now >= next && fault_.isOk()) {
      said = beat(now);
      last = now;
      next = now + period;
      // All that has come was read before: a process that was stopped itself
      // doesn't take its peers for silent.
      if (const std::string why = watch_->look(now, isHost_);
          !why.empty() && !isOver_)
        judge({Code::World, why}, -1);
    }
    goesOn = fault_.isOk() && !stops_;
  }
  linger(assembly_.connections, kLingerSeconds);
  std::unique_lock lock(mutex_);
  if (fault_.isOk() || isOwnFault_ || stops_)
    return;
  const Status fault = fault_;
  lock.unlock();
  settings_.onFault ? settings_.onFault(fault) : endProcess(fault);
}

/// Needs the lock. Gives a frame to rank 0, which may be this one.
Status Control::ask(const std::string &bytes) {
  if (!fault_.isOk())
    return fault_;
  if (!isHost_) {
    send(0, bytes);
    return Status::ok();
  }
  const std::string why =
      hub_->handle(0, {FrameKind(bytes[4]), bytes.substr(kFrameHeaderBytes)});
  if (!why.empty())
    judge({Code::World, nameOf(0, watch_->peer(0)) + " " + why}, -1);
  return fault_;
}

Status Control::put(const std::string &name, const std::string &bytes) {
  if (name.size() + bytes.size() + 2 * sizeof(uint32_t) > kMostFrameBytes)
    return {Code::World, "'" + name + "' has " + std::to_string(bytes.size()) +
                             " bytes, too many for the control connection"};
  std::lock_guard lock(mutex_);
  return ask(FrameWriter(FrameKind::Put).text(name).text(bytes).finish());
}

Status Control::get(const std::string &name, std::string &bytes) {
  std::unique_lock lock(mutex_);
  if (Status s = ask(FrameWriter(FrameKind::Get).text(name).finish()); !s)
    return s;
  changed_.wait(lock,
                [&] { return !fault_.isOk() || values_.count(name) > 0; });
  if (!fault_.isOk())
    return fault_;
  bytes = std::move(values_[name]);
  values_.erase(name);
  return Status::ok();
}

Status Control::meet(const std::string &name, int64_t number,
                     int64_t &largest) {
  rests();
  std::unique_lock lock(mutex_);
  met_.reset();
  if (Status s = ask(FrameWriter(FrameKind::Meet)
                         .text(name)
                         .number64(uint64_t(number))
                         .finish());
      !s)
    return s;
  changed_.wait(lock, [&] { return !fault_.isOk() || met_; });
  if (!met_)
    return fault_;
  largest = *met_;
  return Status::ok();
}

void Control::saved(const std::string &sentence) {
  std::lock_guard lock(mutex_);
  saved_ = sentence;
  for (int rank = 1; rank < int(assembly_.connections.size()); ++rank)
    send(rank, FrameWriter(FrameKind::Saved).text(sentence).finish());
}

Status Control::explain(const Status &status) {
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(
            lock, std::chrono::duration<double>(settings_.explainSeconds),
            [&] { return !fault_.isOk(); }))
      return fault_;
  }
  fail(status);
  return status;
}

void Control::fail(const Status &status) {
  {
    std::lock_guard lock(mutex_);
    if (!fault_.isOk() || isOver_)
      return;
    isOwnFault_ = true;
    const std::string sentence =
        nameOf(rank_, watch_->peer(rank_)) + " ended: " + status.message();
    if (!isHost_)
      send(0, FrameWriter(FrameKind::Failed).text(status.message()).finish());
    judge({Code::World, sentence}, -1);
  }
  stop();
}

Status Control::finish() {
  rests();
  {
    std::unique_lock lock(mutex_);
    if (Status s = ask(FrameWriter(FrameKind::Bye).finish()); !s)
      return s;
    changed_.wait(lock, [&] { return !fault_.isOk() || isOver_; });
    if (!isOver_)
      return fault_;
  }
  stop();
  return Status::ok();
}

} // namespace tmc
