// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole files in and out. Writing is atomic: a reader sees the old file or the whole new one.

#include <string>
#include <string_view>

namespace weft {

/// Throws Error(io, "file.read") naming the path and the system's reason.
std::string read_file(const std::string& path);
/// Writes beside `path` and renames. Throws Error(io, "file.write"); leaves no partial file.
void write_file_atomic(const std::string& path, std::string_view content);

}  // namespace weft
