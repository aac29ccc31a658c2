// SPDX-License-Identifier: Apache-2.0
#pragma once
// The on-disk kernel cache: content-addressed files in a directory that belongs to the user alone (mode 0700,
// owner checked; anything else is refused, not used). A file carries its whole key and a checksum, so a
// truncated file, one of another version or a hash collision is a miss, never a wrong kernel. Writing is an
// atomic rename: concurrent processes see nothing or the whole file.

#include <optional>
#include <string>
#include <string_view>

namespace weft::runtime {

class KernelCache {
 public:
  /// The directory is made at the first put. Empty: caching is off.
  explicit KernelCache(std::string directory) : directory_(std::move(directory)) {}
  const std::string& directory() const { return directory_; }
  /// `kind` names the format ("elf", "cubin"); `key` is everything the value depends on.
  std::optional<std::string> get(std::string_view kind, std::string_view key) const;
  /// Throws Error(io, "cache.directory") when the directory is not the user's alone. A full disk is ignored:
  /// a cache that cannot write is a slow cache.
  void put(std::string_view kind, std::string_view key, std::string_view value) const;
  /// The file a key lives in.
  std::string path(std::string_view kind, std::string_view key) const;

 private:
  std::string directory_;
};

/// The process's cache: ".cache/weft" in the user's home as the user database knows it.
const KernelCache& kernel_cache();
/// Before the first use: another directory, or "" for none.
void set_kernel_cache_directory(std::string directory);

}  // namespace weft::runtime
