//===- FrameTest.cpp - messages, sound and malformed ----------------------===//

#include "runtime/network/Frame.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

namespace tmc {
namespace {

std::string message() {
  return FrameWriter(FrameKind::Put).text("name").text("bytes").finish();
}

/// The fault of a connection that gets `bytes`.
std::string faultOf(const std::string &bytes, uint32_t most = 100) {
  FrameBuffer buffer(most);
  buffer.append(bytes.data(), bytes.size());
  Frame frame;
  while (buffer.next(frame)) {
  }
  return buffer.fault();
}

TEST(Frame, ComesWholeByteByByte) {
  const std::string bytes = greeting() + message() + message();
  FrameBuffer buffer(100);
  int frames = 0;
  for (const char byte : bytes) {
    buffer.append(&byte, 1);
    Frame frame;
    while (buffer.next(frame)) {
      ++frames;
      EXPECT_EQ(frame.kind, FrameKind::Put);
      FrameReader reader(frame.body);
      EXPECT_EQ(reader.text(), "name");
      EXPECT_FALSE(reader.isDone());
      EXPECT_EQ(reader.text(), "bytes");
      EXPECT_TRUE(reader.isDone());
    }
  }
  EXPECT_EQ(frames, 2);
  EXPECT_EQ(buffer.fault(), "");
}

TEST(Frame, NumbersKeepTheirValues) {
  Frame frame;
  FrameBuffer buffer(100);
  const std::string bytes = greeting() + FrameWriter(FrameKind::Beat)
                                             .number32(0xfedcba98u)
                                             .number64(uint64_t(-5))
                                             .finish();
  buffer.append(bytes.data(), bytes.size());
  ASSERT_TRUE(buffer.next(frame));
  FrameReader reader(frame.body);
  EXPECT_EQ(reader.number32(), 0xfedcba98u);
  EXPECT_EQ(int64_t(reader.number64()), -5);
  EXPECT_TRUE(reader.isDone());
}

TEST(Frame, AStrangerIsFound) {
  EXPECT_EQ(faultOf("GET / HTTP/1.1\r\n"), "doesn't speak tmc's protocol");
  EXPECT_EQ(faultOf("t"), "");
  EXPECT_EQ(faultOf("tmc-net\r"), "doesn't speak tmc's protocol");
  std::string newer = greeting();
  newer[8] = 9;
  EXPECT_EQ(faultOf(newer), "speaks version 9 of tmc's protocol, and this is "
                            "version 2");
}

TEST(Frame, ALengthIsComparedBeforeBytesAreKept) {
  std::string bytes = greeting() + message();
  bytes[kGreetingBytes + 3] = char(0xff); // 4 GB
  EXPECT_EQ(faultOf(bytes), "sends a message of 4278190097 bytes, at most 100");
  EXPECT_EQ(faultOf(greeting() + message(), 16),
            "sends a message of 17 bytes, at most 16");
  EXPECT_EQ(faultOf(greeting() + message(), 17), "");
}

TEST(Frame, AnUnknownKindIsFound) {
  for (const int kind : {0, kLastFrameKind + 1, 255}) {
    std::string bytes = greeting() + message();
    bytes[kGreetingBytes + 4] = char(kind);
    EXPECT_EQ(faultOf(bytes),
              "sends a message of the unknown kind " + std::to_string(kind));
  }
}

TEST(Frame, AnyBytesGiveFramesWithinTheLimitOrAFault) {
  std::mt19937 random(7);
  const std::string sound =
      greeting() + message() + FrameWriter(FrameKind::Bye).finish() + message();
  int faults = 0, frames = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = sound;
    for (uint32_t change = random() % 3 + 1; change-- > 0;)
      bytes[random() % bytes.size()] = char(random());
    bytes.resize(random() % (bytes.size() + 1));
    FrameBuffer buffer(64);
    Frame frame;
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = std::min(bytes.size() - at, size_t(random() % 40));
      buffer.append(bytes.data() + at, part);
      at += part;
      while (buffer.next(frame)) {
        ++frames;
        ASSERT_LE(frame.body.size(), 64u);
        FrameReader reader(frame.body);
        ASSERT_LE(reader.text().size(), frame.body.size());
        ASSERT_LE(reader.text().size(), frame.body.size());
      }
    }
    faults += !buffer.fault().empty();
  }
  EXPECT_GT(faults, 5000);
  EXPECT_GT(frames, 5000);
}

TEST(Frame, ALengthInsideIsCompared) {
  std::string body = message().substr(kFrameHeaderBytes);
  for (size_t length = 0; length < body.size(); ++length) {
    FrameReader reader(std::string_view(body).substr(0, length));
    (void)reader.text();
    (void)reader.text();
    EXPECT_FALSE(reader.isDone()) << length;
  }
  body[3] = char(0xff);
  FrameReader reader(body);
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.text(), "");
  EXPECT_FALSE(reader.isSound());
}

} // namespace
} // namespace tmc
