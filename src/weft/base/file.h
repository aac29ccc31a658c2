// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whole files in and out. Writing is atomic: a reader sees the old file or the whole new one.

#include <chrono>
#include <string>
#include <string_view>

namespace weft {

/// Throws Error(io, "file.read") naming the path and the system's reason.
std::string read_file(const std::string& path);
/// Writes beside `path`, under a name that cannot be guessed and follows no link, and renames. What
/// is no file (a device, a pipe) is written into.
/// Throws Error(io, "file.write"); leaves no partial file, killed or not, where the system has
/// files without names.
void write_file_atomic(const std::string& path, std::string_view content);
/// Removes what processes of this user that were killed left in `directory`: files of
/// write_file_atomic of more than an hour ago, or whatever has `mark` in its name and is older than
/// `age`. Never throws.
void remove_leftovers(const std::string& directory);
void remove_leftovers(const std::string& directory, std::string_view mark,
                      std::chrono::seconds age);

}  // namespace weft
