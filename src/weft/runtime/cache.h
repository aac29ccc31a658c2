// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiled code on disk, shared by processes: content-addressed entries with a checksum, written
// whole by rename. The directory belongs to the user alone (mode 0700, owner checked), and so does
// every folder above it, or to root; anything else is refused. It holds a bounded number of bytes:
// the longest unused entries go first.

#include <atomic>
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

/// What tells this build of the library from every other: the linker's identity of the file that
/// holds this code, or else its path, size and time.
const std::string& code_identity();

class FileCache {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{2} << 30;
  /// Creates the directory. Throws Error(io, "cache.directory") when it is not the user's alone. An
  /// empty name is a cache that keeps nothing.
  explicit FileCache(std::string directory, std::uint64_t most = kMostBytes);
  /// The process's cache: ~/.cache/weft of the user who owns the process, unless set otherwise.
  /// Keeps nothing for a user without a home that is his own.
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

  /// Removes leftovers of killed processes, and entries until the bound is kept.
  void trim() const;

 private:
  std::string directory_;
  std::uint64_t most_;
  mutable std::atomic<std::uint64_t> since_{0};  // bytes stored since the last trim
};

}  // namespace weft::runtime
