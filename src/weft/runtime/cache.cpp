// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/cache.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
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

namespace {

/// Of the loaded file that holds the address `of`; the linker writes the note where it is asked to.
struct BuildNote {
  std::uintptr_t of;
  std::string id;
};

int find_build_note(dl_phdr_info* file, std::size_t, void* out) {
  auto& note = *static_cast<BuildNote*>(out);
  const auto parts = std::span(file->dlpi_phdr, file->dlpi_phnum);
  const bool ours = std::any_of(parts.begin(), parts.end(), [&](const ElfW(Phdr) & p) {
    return p.p_type == PT_LOAD && note.of - (file->dlpi_addr + p.p_vaddr) < p.p_memsz;
  });
  if (!ours) return 0;
  constexpr std::size_t kHeader = sizeof(ElfW(Nhdr));
  auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  for (const ElfW(Phdr) & p : parts) {
    if (p.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(file->dlpi_addr + p.p_vaddr);
    for (const char* end = at + p.p_memsz; at + kHeader <= end;) {
      ElfW(Nhdr) head;
      std::memcpy(&head, at, kHeader);
      const char *name = at + kHeader, *content = name + padded(head.n_namesz);
      if (head.n_type == NT_GNU_BUILD_ID &&
          std::string_view(name, head.n_namesz) == std::string_view("GNU", 4)) {
        note.id = std::string(content, head.n_descsz);
        return 1;
      }
      at = content + padded(head.n_descsz);
    }
  }
  return 1;
}

std::string find_identity() {
  BuildNote note{reinterpret_cast<std::uintptr_t>(&find_identity), {}};
  dl_iterate_phdr(find_build_note, &note);
  if (!note.id.empty()) return note.id;
  Dl_info file{};
  struct stat info {};
  if (!dladdr(reinterpret_cast<void*>(&find_identity), &file) || stat(file.dli_fname, &info) != 0)
    return "";
  return cat(file.dli_fname, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
             info.st_mtim.tv_nsec);
}

}  // namespace

const std::string& code_identity() {
  static const std::string identity = find_identity();
  return identity;
}

namespace {

/// The nearest part of the path that another user could exchange, or "": a folder that belongs to
/// neither this user nor root, or that all may write to and where they may rename what is not
/// theirs.
std::string open_to_others(const std::filesystem::path& directory) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(directory, error);
  if (error) return directory.string();
  for (auto part = whole.parent_path();; part = part.parent_path()) {
    struct stat info {};
    if (lstat(part.c_str(), &info) != 0) return part.string();
    const bool trusted = info.st_uid == 0 || info.st_uid == geteuid();
    const bool shared = (info.st_mode & S_IWOTH) && !(info.st_mode & S_ISVTX);
    if (!trusted || shared) return part.string();
    if (part == part.parent_path()) return "";
  }
}

}  // namespace

FileCache::FileCache(std::string directory, std::uint64_t most)
    : directory_(std::move(directory)), most_(most) {
  if (directory_.empty()) return;
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
  if (const std::string part = open_to_others(directory_); !part.empty())
    throw refuse(cat("lies in \"", part, "\", which others can change"));
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
    // Without a home of one's own there is no cache: what lies in a folder of everybody's might be
    // anybody's code.
    const passwd* user = getpwuid(geteuid());
    const char* home = user && user->pw_dir ? user->pw_dir : "";
    struct stat info {};
    const bool own = *home == '/' && stat(home, &info) == 0 && info.st_uid == geteuid();
    return own ? cat(home, "/.cache/weft") : std::string();
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
  if (directory_.empty()) return std::nullopt;
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
  utimensat(AT_FDCWD, file.c_str(), nullptr, 0);  // used now; refusal does no harm
  return all.substr(kHead, length);
}

void FileCache::store(const CacheKey& key, std::string_view content) const {
  if (directory_.empty()) return;
  std::string all(kMagic, 8);
  std::uint64_t length = content.size();
  all.append(reinterpret_cast<const char*>(&kVersion), 4);
  all.append(reinterpret_cast<const char*>(&length), 8);
  all += content;
  std::uint64_t sum = hash_bytes(all.data(), all.size());
  all.append(reinterpret_cast<const char*>(&sum), 8);
  write_file_atomic(path(key), all);
  // The first time, and whenever enough has come since.
  const std::uint64_t before = since_.fetch_add(all.size());
  if (before != 0 && before + all.size() < most_ / 16) return;
  since_ = 1;
  trim();
}

void FileCache::trim() const {
  remove_leftovers(directory_);
  struct Entry {
    std::filesystem::file_time_type used;
    std::uint64_t bytes;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code gone;
  std::filesystem::directory_iterator at(directory_, gone);
  for (; at != std::filesystem::directory_iterator(); at.increment(gone)) {
    const auto& e = *at;
    std::error_code error;
    const bool ours = e.path().filename().string().size() == CacheKey{}.text().size();
    if (!ours || !e.is_regular_file(error)) continue;
    const std::uint64_t bytes = e.file_size(error);
    const auto used = e.last_write_time(error);
    if (error) continue;
    entries.push_back({used, bytes, e.path()});
    total += bytes;
  }
  if (total <= most_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {  // the longest unused go, until a quarter is free
    if (total <= most_ - most_ / 4) break;
    std::error_code error;
    if (std::filesystem::remove(e.path, error)) total -= e.bytes;
  }
}

void FileCache::discard(const CacheKey& key) const {
  if (!directory_.empty()) unlink(path(key).c_str());
}

}  // namespace weft::runtime
