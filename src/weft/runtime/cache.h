// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiled code on disk, shared by processes: content-addressed entries with a checksum, written
// whole by rename. The directory belongs to the user alone (mode 0700, owner checked); anything
// else is refused.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace weft::runtime {

/// 128 bits of content address.
struct CacheKey {
  std::uint64_t high = 0, low = 0;
  static CacheKey of(std::string_view content);
  std::string text() const;  // 32 hexadecimal digits
};

class FileCache {
 public:
  /// Creates the directory. Throws Error(io, "cache.directory") when it is not the user's alone.
  explicit FileCache(std::string directory);
  /// The process's cache: ~/.cache/weft of the user who owns the process, unless set otherwise.
  static FileCache& shared();
  /// Only before the first use of shared().
  static void set_shared_directory(std::string directory);

  const std::string& directory() const { return directory_; }
  std::string path(const CacheKey& key) const;
  /// Absent: nothing stored. Throws Error(io, "cache.file.truncated" | ".version" | ".checksum" |
  /// ".foreign").
  std::optional<std::string> load(const CacheKey& key) const;
  void store(const CacheKey& key, std::string_view content) const;
  void discard(const CacheKey& key) const;
  /// The entry of `key`; when there is none, or a damaged one, what `make` gives, stored.
  std::string get(const CacheKey& key, const std::function<std::string()>& make) const;

 private:
  std::string directory_;
};

}  // namespace weft::runtime
