// Wire.h - a first pass over an ONNX file, before protobuf parses it.
//
// protobuf parses any input: a file of a hundred megabytes of empty tensors
// makes it allocate twelve gigabytes, it refuses a file over two gigabytes, and
// it copies a tensor's bytes. So this pass walks the file once at the level of
// the wire format:
//
//   model ─ graph ─ node ─ attribute ─ tensor ─ raw_data  <- 1 KiB or more
//           │       └ bounded in number and depth            becomes
//           └ initializer ─ raw_data                         (offset, length)
//
// and writes it again without the tensors' bytes, which stay in the mapped
// file. The part that protobuf parses afterwards is small, and its cost is
// bounded; every name in it is UTF-8 without control characters.

#ifndef TMC_FRONTENDS_ONNX_WIRE_H
#define TMC_FRONTENDS_ONNX_WIRE_H

#include "compiler/support/Failure.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tmc::onnx_import {

struct WireLimits {
  int64_t maxMessages = 2 << 20;    ///< Messages of any kind, nested ones too.
  int64_t maxFields = 8 << 20;      ///< Fields within them.
  int64_t maxDepth = 90;            ///< protobuf itself stops at 100.
  int64_t maxKeptBytes = 256 << 20; ///< The part left for protobuf.
  int64_t minBlobBytes = 1 << 10;   ///< Data this large stay in the file.
};

/// Fields in a TensorProto that replace its data: the data's offset and length
/// in the file, in bytes. No ONNX version uses these numbers; fields of a file
/// with them are dropped.
constexpr int kBlobOffsetField = 20001;
constexpr int kBlobLengthField = 20002;

/// The model in `file` without the data of its larger tensors (raw_data, and
/// the packed float_data and double_data, which have the same bytes). Fails
/// with `Input` if the file isn't well formed, exceeds `limits`, or has an
/// invalid name; the message gives the name's place and byte.
Expected<std::string> stripTensorData(std::string_view file,
                                      const WireLimits &limits = {});

} // namespace tmc::onnx_import

#endif // TMC_FRONTENDS_ONNX_WIRE_H
