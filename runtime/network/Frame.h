//===- Frame.h - messages of the control connection -------------*- C++ -*-===//
//
// A connection carries, in both directions, a greeting and then frames. Numbers
// are little-endian.
//
//     greeting   "tmc-net\n" | version u32
//     frame      bytes u32 | kind u8 | body
//     body       numbers u32, u64, and texts: bytes u32 | bytes
//
// The bytes come from whoever connects. So each length is compared with a limit
// before anything is kept, and a body must be used up exactly.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_FRAME_H
#define TMC_RUNTIME_NETWORK_FRAME_H

#include <cstdint>
#include <string>
#include <string_view>

namespace tmc {

enum class FrameKind : uint8_t {
  Hello = 1, // rank, ranks, process, host, facts          to rank 0
  Refused,   // a sentence                                 from rank 0
  Welcome,   // host and process of each rank              from rank 0
  Beat,      // Progress                                   both
  Put,       // name, bytes                                to rank 0
  Get,       // name                                       to rank 0
  Value,     // name, bytes                                from rank 0
  Meet,      // name, number                               to rank 0
  Met,       // the largest number                         from rank 0
  Failed,    // a sentence                                 to rank 0
  Verdict,   // code, sentence                             from rank 0
  Bye,       // nothing                                    both
  Saved,     // a sentence                                 from rank 0
};
constexpr uint8_t kLastFrameKind = uint8_t(FrameKind::Saved);

constexpr std::string_view kGreeting = "tmc-net\n";
constexpr uint32_t kControlVersion = 2;
constexpr size_t kGreetingBytes = 8 + 4;
constexpr size_t kFrameHeaderBytes = 4 + 1;

/// Limits on a frame's body, before a peer is known and after it.
constexpr uint32_t kMostHelloBytes = 16 << 10;
constexpr uint32_t kMostFrameBytes = 8 << 20;

struct Frame {
  FrameKind kind = FrameKind::Bye;
  std::string body;
};

/// The bytes of a frame. Numbers and texts are appended to the body first.
class FrameWriter {
public:
  explicit FrameWriter(FrameKind kind);
  FrameWriter &number32(uint32_t value);
  FrameWriter &number64(uint64_t value);
  FrameWriter &text(std::string_view value);
  /// Sets the length.
  std::string finish();

private:
  std::string bytes_;
};

std::string greeting();

/// Takes a body apart. After a fault all results are empty.
class FrameReader {
public:
  explicit FrameReader(std::string_view body) : rest_(body) {}
  uint32_t number32() { return uint32_t(number(4)); }
  uint64_t number64() { return number(8); }
  std::string text();
  /// True if everything was there and nothing is left.
  bool isDone() const { return isSound_ && rest_.empty(); }
  bool isSound() const { return isSound_; }

private:
  uint64_t number(size_t bytes);
  std::string_view rest_;
  bool isSound_ = true;
};

/// Collects the bytes of a connection and cuts them into frames.
class FrameBuffer {
public:
  explicit FrameBuffer(uint32_t mostBytes) : mostBytes_(mostBytes) {}
  void append(const char *bytes, size_t count) { bytes_.append(bytes, count); }
  void allow(uint32_t mostBytes) { mostBytes_ = mostBytes; }
  /// Takes the next whole frame. False: there is none yet, or fault() says that
  /// there will be none.
  bool next(Frame &frame);
  /// "" while the bytes are sound.
  const std::string &fault() const { return fault_; }

private:
  bool fail(std::string why);
  std::string bytes_, fault_;
  uint32_t mostBytes_;
  bool isGreeted_ = false;
};

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_FRAME_H
