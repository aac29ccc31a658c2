// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both sides of the wire share: limits, errors as messages, large buffers as chunks.

#include <string>
#include <string_view>

#include <wire.grpc.pb.h>

#include "weft/base/error.h"

namespace weft::rpc {

inline constexpr std::int64_t kVersion = 1;
inline constexpr std::size_t kChunk = 1 << 20;
inline constexpr int kMaxAnswer = 4 << 20;
/// A chunk and what is beside it. A message of empty parts takes sixty times its size when it is
/// read, before anyone has said HELLO.
inline constexpr int kMaxRequest = (1 << 20) + (256 << 10);

Failure to_failure(const Error& error);
/// The error that happened on the other side, with the same kind, code and text.
Error to_error(const Failure& failure);

/// gRPC writes its own complaints to stderr; a library must not. What matters comes back as an
/// Error.
void silence_transport();

/// Why `name` is no plain file name; nothing: it is.
Verdict check_file_name(std::string_view name);

/// `text` as UTF-8 without control characters: every other byte becomes "\\xff". For logs.
std::string printable(std::string_view text);

/// Equal, in a time that does not depend on where they differ.
bool same_key(std::string_view a, std::string_view b);

/// Sends `bytes` as DATA frames through `write(const Frame&) -> bool`.
template <typename Write>
bool send_data(const char* bytes, std::size_t n, Write&& write) {
  Frame frame;
  frame.set_op(DATA);
  for (std::size_t at = 0; at < n; at += kChunk) {
    frame.set_data(bytes + at, std::min(kChunk, n - at));
    if (!write(frame)) return false;
  }
  return true;
}

}  // namespace weft::rpc
