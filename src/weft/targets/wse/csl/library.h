// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library modules, embedded at build time from lib/*.csl.

#include <string>
#include <string_view>
#include <vector>

namespace weft::wse::csl {

/// Text of `<name>`, or null.
const std::string_view* library_text(std::string_view name);
std::vector<std::string> library_names();

}  // namespace weft::wse::csl
