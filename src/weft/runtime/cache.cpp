// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/cache.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"

namespace weft::runtime {

namespace {

constexpr std::string_view kMagic = "weft-kernel-1\n";   // the version of this file's layout

std::string number(std::uint64_t v) { return std::string(reinterpret_cast<const char*>(&v), 8); }

/// Makes the directory (parents too) or checks that it is the user's alone.
void secure(const std::string& directory) {
  for (std::size_t at = 1; at <= directory.size(); ++at) {
    if (at == directory.size() || directory[at] == '/') ::mkdir(directory.substr(0, at).c_str(), 0700);
  }
  struct stat info {};
  if (::lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    throw Error(ErrorKind::io, "cache.directory", cat("the kernel cache \"", directory, "\" is no directory: ", std::strerror(errno)))
        .help("set WEFT_CACHE_DIR to a directory of your own, or to nothing to turn the cache off");
  }
  if (info.st_uid != ::getuid() || (info.st_mode & 077) != 0) {
    throw Error(ErrorKind::io, "cache.directory", cat("the kernel cache \"", directory, "\" is not private to this user"))
        .note(cat("owner ", info.st_uid, ", mode ", (info.st_mode >> 6) & 7, (info.st_mode >> 3) & 7, info.st_mode & 7, "; wanted: owner ", ::getuid(), ", mode 700"))
        .help(cat("chmod 700 ", directory));
  }
}

bool is_private(const std::string& directory) {
  struct stat info {};
  return ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::getuid() && (info.st_mode & 077) == 0;
}

struct Process {
  std::mutex mutex;
  std::unique_ptr<KernelCache> cache;
};

Process& process() {
  static Process& p = *new Process;
  return p;
}

}  // namespace

std::string KernelCache::path(std::string_view kind, std::string_view key) const {
  return cat(directory_, "/", hex(hash_text(key, 1), 16).substr(2), hex(hash_text(key, 2), 16).substr(2), ".", kind);
}

std::optional<std::string> KernelCache::get(std::string_view kind, std::string_view key) const {
  if (directory_.empty() || !is_private(directory_)) return std::nullopt;
  std::string file = path(kind, key), content;
  if (::access(file.c_str(), R_OK) != 0) return std::nullopt;
  try {
    content = read_file(file);
  } catch (const Error&) {
    return std::nullopt;      // removed meanwhile
  }
  // magic, key length, key, value length, value, checksum
  std::string_view rest = content;
  auto take = [&](std::size_t n) {
    std::string_view out = rest.substr(0, n);
    rest.remove_prefix(std::min(n, rest.size()));
    return out;
  };
  auto length = [&]() -> std::size_t {
    std::string_view bytes = take(8);
    std::uint64_t v = ~0ull;
    if (bytes.size() == 8) std::memcpy(&v, bytes.data(), 8);
    return v;
  };
  if (take(kMagic.size()) != kMagic) return std::nullopt;
  std::size_t key_size = length();
  if (key_size != key.size() || take(key_size) != key) return std::nullopt;
  std::size_t value_size = length();
  if (value_size > rest.size()) return std::nullopt;
  std::string_view value = take(value_size);
  if (rest != number(hash_text(value, 3))) return std::nullopt;
  return std::string(value);
}

void KernelCache::put(std::string_view kind, std::string_view key, std::string_view value) const {
  if (directory_.empty()) return;
  secure(directory_);
  std::string content = cat(kMagic, number(key.size()), key, number(value.size()), value, number(hash_text(value, 3)));
  try {
    write_file_atomic(path(kind, key), content);
  } catch (const Error&) {
    // Full or read-only: the value is simply not kept.
  }
}

const KernelCache& kernel_cache() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  if (!p.cache) {
    const passwd* user = ::getpwuid(::getuid());
    p.cache = std::make_unique<KernelCache>(user && user->pw_dir ? cat(user->pw_dir, "/.cache/weft") : std::string());
  }
  return *p.cache;
}

void set_kernel_cache_directory(std::string directory) {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  p.cache = std::make_unique<KernelCache>(std::move(directory));
}

}  // namespace weft::runtime
