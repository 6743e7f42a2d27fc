//===- Frame.cpp - messages of the control connection ---------------------===//

#include "runtime/network/Frame.h"

#include <algorithm>
#include <utility>

namespace tmc {

namespace {

void append(std::string &bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i)
    bytes += char(value >> (8 * i) & 0xff);
}

uint64_t numberAt(std::string_view bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

} // namespace

std::string greeting() {
  std::string bytes(kGreeting);
  append(bytes, kControlVersion, 4);
  return bytes;
}

FrameWriter::FrameWriter(FrameKind kind) {
  append(bytes_, 0, 4); // the length, by finish()
  append(bytes_, uint8_t(kind), 1);
}

FrameWriter &FrameWriter::number32(uint32_t value) {
  append(bytes_, value, 4);
  return *this;
}

FrameWriter &FrameWriter::number64(uint64_t value) {
  append(bytes_, value, 8);
  return *this;
}

FrameWriter &FrameWriter::text(std::string_view value) {
  append(bytes_, value.size(), 4);
  bytes_ += value;
  return *this;
}

std::string FrameWriter::finish() {
  std::string length;
  append(length, bytes_.size() - kFrameHeaderBytes, 4);
  std::copy(length.begin(), length.end(), bytes_.begin());
  return std::move(bytes_);
}

uint64_t FrameReader::number(size_t bytes) {
  if (!isSound_ || rest_.size() < bytes) {
    isSound_ = false;
    return 0;
  }
  const uint64_t value = numberAt(rest_, bytes);
  rest_.remove_prefix(bytes);
  return value;
}

std::string FrameReader::text() {
  const uint32_t bytes = number32();
  if (!isSound_ || rest_.size() < bytes) {
    isSound_ = false;
    return "";
  }
  std::string value(rest_.substr(0, bytes));
  rest_.remove_prefix(bytes);
  return value;
}

bool FrameBuffer::fail(std::string why) {
  fault_ = std::move(why);
  return false;
}

bool FrameBuffer::next(Frame &frame) {
  if (!fault_.empty())
    return false;
  if (!isGreeted_) {
    const size_t known = std::min(bytes_.size(), kGreeting.size());
    if (bytes_.compare(0, known, kGreeting, 0, known) != 0)
      return fail("doesn't speak tmc's protocol");
    if (bytes_.size() < kGreetingBytes)
      return false;
    const uint64_t version =
        numberAt(std::string_view(bytes_).substr(kGreeting.size()), 4);
    if (version != kControlVersion)
      return fail("speaks version " + std::to_string(version) +
                  " of tmc's protocol, and this is version " +
                  std::to_string(kControlVersion));
    bytes_.erase(0, kGreetingBytes);
    isGreeted_ = true;
  }
  if (bytes_.size() < kFrameHeaderBytes)
    return false;
  const uint64_t length = numberAt(bytes_, 4);
  const uint8_t kind = static_cast<unsigned char>(bytes_[4]);
  if (length > mostBytes_)
    return fail("sends a message of " + std::to_string(length) +
                " bytes, at most " + std::to_string(mostBytes_));
  if (kind == 0 || kind > kLastFrameKind)
    return fail("sends a message of the unknown kind " + std::to_string(kind));
  if (bytes_.size() < kFrameHeaderBytes + length)
    return false;
  frame.kind = FrameKind(kind);
  frame.body = bytes_.substr(kFrameHeaderBytes, length);
  bytes_.erase(0, kFrameHeaderBytes + length);
  return true;
}

} // namespace tmc
