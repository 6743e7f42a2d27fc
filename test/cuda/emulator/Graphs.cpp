//===- Graphs.cpp - work that is recorded and queued as a whole -----------===//

#include "test/cuda/emulator/Graphs.h"

#include "test/cuda/emulator/Counts.h"
#include "test/cuda/emulator/Report.h"
#include "test/cuda/emulator/Runtime.h"

#include <memory>
#include <optional>

using namespace tmc::emulator;

namespace {

/// One call of a stream that was captured.
struct Piece {
  enum Kind { Run, Record, Wait } kind;
  size_t branch;
  size_t stream; // its index; for comparison
  size_t place;  // of an event
  Work work;
};
struct Pieces {
  std::vector<Piece> all;
  size_t branches = 1, places = 0;
  Counts counts; // of one launch
  std::function<void()> again;
};

} // namespace

struct CUgraph_st {
  std::shared_ptr<Pieces> pieces;
};
struct CUgraphExec_st {
  std::shared_ptr<Pieces> pieces;
  std::vector<cudaStream_t> streams; // of the branches after the first
  std::vector<cudaEvent_t> events;
};

namespace tmc::emulator {

namespace {

struct Capture {
  uint64_t number;
  bool isGood = true;
  Pieces pieces;
  Counts before;
  std::vector<CUstream_st *> streams; // by branch
  std::vector<WorkClock> clocks;      // of the branches, and at their events
  std::vector<WorkClock> placeClocks;
};
std::optional<Capture> capture;
uint64_t captures = 0;

/// Work that is queued again, by its stream.
struct Seen {
  size_t stream;
  WorkKey key;
};
std::vector<Seen> *seen = nullptr;

void beginBranch(CUstream_st *stream) {
  stream->isCaptured = true;
  stream->branch = capture->streams.size();
  capture->streams.push_back(stream);
  capture->clocks.emplace_back(stream->branch + 1);
}

void add(Piece::Kind kind, CUstream_st *stream, size_t place, Work work = {}) {
  capture->pieces.all.push_back(
      {kind, stream->branch, stream->index, place, std::move(work)});
}

/// Compares the graph with what would be queued now.
void compare(const Pieces &pieces) {
  if (!pieces.again)
    return;
  std::vector<Seen> now;
  const Counts before = counts();
  seen = &now;
  pieces.again();
  seen = nullptr;
  counts() = before;
  size_t i = 0;
  for (const Piece &piece : pieces.all) {
    if (piece.work.key.bytes.empty())
      continue; // of the emulator itself
    if (i == now.size() || now[i].stream != piece.stream ||
        !(now[i].key == piece.work.key))
      return report(FaultKind::Stale, 0,
                    "work " + std::to_string(i) + " of a graph, " +
                        (piece.work.key.kernel
                             ? functionName(reinterpret_cast<uintptr_t>(
                                   piece.work.key.kernel))
                             : piece.work.what) +
                        ", isn't what would be queued now");
    ++i;
  }
  if (i < now.size())
    report(FaultKind::Stale, 0,
           "a graph of " + std::to_string(i) + " pieces of work, where " +
               std::to_string(now.size()) + " would be queued now");
}

} // namespace

bool isCapturing(cudaStream_t stream) {
  return isStream(stream) && streamOf(stream)->isCaptured;
}

void setAgain(std::function<void()> again, std::function<void()> start) {
  Pieces &pieces = capture->pieces;
  pieces.again = std::move(again);
  // Behind it, and not behind the first work, other streams begin.
  pieces.all.insert(pieces.all.begin(),
                    {Piece::Run, 0, 0, 0, {"the start", std::move(start)}});
}

bool takesWork(CUstream_st *stream, Work &work) {
  if (seen) {
    if (!work.key.bytes.empty())
      seen->push_back({stream->index, std::move(work.key)});
    return true;
  }
  if (!stream->isCaptured)
    return false;
  ++capture->clocks[stream->branch][stream->branch];
  add(Piece::Run, stream, 0, std::move(work));
  return true;
}

bool takesRecord(CUevent_st *event, CUstream_st *stream) {
  if (seen)
    return true;
  event->capture = stream->isCaptured ? capture->number : 0;
  if (!stream->isCaptured)
    return false;
  event->place = capture->pieces.places++;
  capture->placeClocks.push_back(capture->clocks[stream->branch]);
  add(Piece::Record, stream, event->place);
  return true;
}

bool takesWait(CUstream_st *stream, CUevent_st *event, cudaError_t &error) {
  error = cudaSuccess;
  if (seen)
    return true;
  if (!capture || event->capture != capture->number) {
    if (event->capture) {
      error = cudaErrorCapturedEvent;
      return true;
    }
    if (stream->isCaptured && event->recorded > 0) {
      breaksCapture();
      error = cudaErrorStreamCaptureIsolation;
    }
    return stream->isCaptured;
  }
  if (!stream->isCaptured)
    beginBranch(stream);
  join(capture->clocks[stream->branch], capture->placeClocks[event->place]);
  add(Piece::Wait, stream, event->place);
  return true;
}

bool breaksCapture() {
  if (capture)
    capture->isGood = false;
  return capture.has_value();
}

bool isRefused(cudaStream_t stream) {
  return isCapturing(stream) && breaksCapture();
}

} // namespace tmc::emulator

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!isStream(stream) || capture || shouldFail("cudaStreamBeginCapture"))
    return cudaErrorInvalidValue;
  capture.emplace();
  capture->number = ++captures;
  capture->before = counts();
  beginBranch(streamOf(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  *graph = nullptr;
  if (!capture || streamOf(stream) != capture->streams[0])
    return cudaErrorInvalidValue;
  Capture done = std::move(*capture);
  capture.reset();
  done.pieces.branches = done.streams.size();
  done.pieces.counts = counts() - done.before;
  counts() = done.before;
  bool isJoined = true;
  for (size_t i = 0; i < done.streams.size(); ++i) {
    done.streams[i]->isCaptured = false;
    isJoined = isJoined && isWithin(done.clocks[i], done.clocks[0]);
  }
  if (!done.isGood || shouldFail("cudaStreamEndCapture"))
    return cudaErrorStreamCaptureInvalidated;
  if (!isJoined)
    return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{std::make_shared<Pieces>(std::move(done.pieces))};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph,
                                 unsigned long long) {
  if (!graph || shouldFail("cudaGraphInstantiate"))
    return cudaErrorMemoryAllocation;
  *made = new CUgraphExec_st{graph->pieces, {}, {}};
  (*made)->streams.resize(graph->pieces->branches - 1);
  for (cudaStream_t &stream : (*made)->streams)
    stream = newStream();
  (*made)->events.resize(graph->pieces->places);
  for (cudaEvent_t &event : (*made)->events)
    event = newEvent(false);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) {
  return graph && isStream(stream) && !shouldFail("cudaGraphUpload")
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (!graph || !isStream(stream) || streamOf(stream)->isCaptured ||
      shouldFail("cudaGraphLaunch"))
    return cudaErrorInvalidValue;
  const Pieces &pieces = *graph->pieces;
  compare(pieces);
  counts() = counts() + pieces.counts;
  ++counts().graphs;
  for (const Piece &piece : pieces.all) {
    CUstream_st *on =
        piece.branch ? graph->streams[piece.branch - 1] : streamOf(stream);
    switch (piece.kind) {
    case Piece::Run:
      push(on, piece.work);
      break;
    case Piece::Record:
      record(graph->events[piece.place], on);
      break;
    case Piece::Wait:
      wait(on, graph->events[piece.place]);
      break;
    }
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  for (cudaEvent_t event : graph->events)
    cudaEventDestroy(event);
  for (cudaStream_t stream : graph->streams)
    cudaStreamDestroy(stream);
  delete graph;
  return cudaSuccess;
}
}

int64_t tmc_emulator_graphs() { return counts().graphs; }
