// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a part of an error's text can be: errors quote names and values of callers.

#include <string>
#include <string_view>

namespace weft {

inline constexpr std::size_t kLongestPart = 4000;  // of an error: a message, a note, a repair

/// The text, or its beginning and its end where it has more than `most` bytes: not cut within a
/// character of UTF-8.
std::string bounded(std::string_view text, std::size_t most = kLongestPart);

}  // namespace weft
