// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/cache.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"

namespace weft::runtime {

namespace {

// Entry: magic, version u32, length u64, content, checksum u64 of everything before.
constexpr char kMagic[8] = {'W', 'E', 'F', 'T', 'C', 'O', 'D', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHead = 8 + 4 + 8;

template <typename T>
T read(std::string_view in, std::size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof(T));
  return value;
}

}  // namespace

CacheKey CacheKey::of(std::string_view content) {
  return {hash_text(content, 1), hash_text(content, 2)};
}

std::string CacheKey::text() const {
  std::string a = hex(high, 16), b = hex(low, 16);
  return a.substr(2) + b.substr(2);
}

FileCache::FileCache(std::string directory) : directory_(std::move(directory)) {
  auto refuse = [&](std::string why) {
    return Error(ErrorKind::io, "cache.directory",
                 cat("the cache directory \"", directory_, "\" ", why))
        .help("remove it, or make it yours alone: chmod 700");
  };
  std::error_code error;
  std::filesystem::path parent = std::filesystem::path(directory_).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
    throw refuse(cat("cannot be made: ", std::strerror(errno)));
  struct stat info {};
  if (lstat(directory_.c_str(), &info) != 0)
    throw refuse(cat("cannot be inspected: ", std::strerror(errno)));
  if (!S_ISDIR(info.st_mode)) throw refuse("is not a directory");
  if (info.st_uid != geteuid())
    throw refuse(cat("belongs to user ", info.st_uid, ", not to ", geteuid()));
  if ((info.st_mode & 077) != 0)
    throw refuse(cat("is open to others: mode ", (info.st_mode & 0777) / 64,
                     (info.st_mode & 077) / 8, info.st_mode & 07));
}

namespace {
std::string& shared_directory() {
  static std::string& directory = *new std::string;
  return directory;
}
}  // namespace

void FileCache::set_shared_directory(std::string directory) {
  shared_directory() = std::move(directory);
}

FileCache& FileCache::shared() {
  static FileCache cache([] {
    if (!shared_directory().empty()) return shared_directory();
    const passwd* user = getpwuid(geteuid());
    return cat(user && user->pw_dir && *user->pw_dir ? user->pw_dir : "/tmp", "/.cache/weft");
  }());
  return cache;
}

std::string FileCache::get(const CacheKey& key, const std::function<std::string()>& make) const {
  try {
    if (auto held = load(key)) return std::move(*held);
  } catch (const Error&) {
    discard(key);  // damaged or of another version: made again
  }
  std::string made = make();
  try {
    store(key, made);
  } catch (const Error& error) {
    // A full disk costs the next build its time, not this one its result.
    if (error.kind() != ErrorKind::io) throw;
  }
  return made;
}

std::string FileCache::path(const CacheKey& key) const { return cat(directory_, "/", key.text()); }

std::optional<std::string> FileCache::load(const CacheKey& key) const {
  std::string file = path(key);
  if (access(file.c_str(), F_OK) != 0) return std::nullopt;
  std::string all = read_file(file);
  auto refuse = [&](std::string_view reason, std::string why) {
    return Error(ErrorKind::io, cat("cache.file.", reason),
                 cat("the cached code \"", file, "\" ", why))
        .help("it is made again when removed");
  };
  if (all.size() < 8 || std::memcmp(all.data(), kMagic, 8) != 0)
    throw refuse("foreign", cat("is none of weft's (", all.size(), " bytes)"));
  if (all.size() < kHead + 8) throw refuse("truncated", cat("ends after ", all.size(), " bytes"));
  auto version = read<std::uint32_t>(all, 8);
  if (version != kVersion)
    throw refuse("version", cat("is of version ", version, "; this build reads ", kVersion));
  auto length = read<std::uint64_t>(all, 12);
  if (length != all.size() - kHead - 8)
    throw refuse("truncated", cat("announces ", length, " bytes and has ", all.size() - kHead - 8));
  if (hash_bytes(all.data(), all.size() - 8) != read<std::uint64_t>(all, all.size() - 8))
    throw refuse("checksum", cat("is damaged (", length, " bytes)"));
  return all.substr(kHead, length);
}

void FileCache::store(const CacheKey& key, std::string_view content) const {
  std::string all(kMagic, 8);
  std::uint64_t length = content.size();
  all.append(reinterpret_cast<const char*>(&kVersion), 4);
  all.append(reinterpret_cast<const char*>(&length), 8);
  all += content;
  std::uint64_t sum = hash_bytes(all.data(), all.size());
  all.append(reinterpret_cast<const char*>(&sum), 8);
  write_file_atomic(path(key), all);
}

void FileCache::discard(const CacheKey& key) const { unlink(path(key).c_str()); }

}  // namespace weft::runtime
