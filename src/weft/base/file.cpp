// SPDX-License-Identifier: Apache-2.0
#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "weft/base/error.h"

namespace weft {

namespace {
struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;

constexpr std::string_view kLeftover = ".weft-tmp-";

std::string random_name(const std::string& path) {
  std::uint64_t random[2] = {};
  if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    throw Error(ErrorKind::io, "file.write",
                cat("cannot write \"", path, "\": ", std::strerror(errno)));
  }
  return cat(path, kLeftover, hex(random[0], 16).substr(2), hex(random[1], 16).substr(2));
}

/// A file in the folder of `path` that has no name yet: a process that is killed leaves nothing.
/// -1 where the system has no such files; then a named one is written to.
int open_nameless(const std::string& path) {
#ifdef O_TMPFILE
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
#else
  (void)path;
  return -1;
#endif
}

/// A device, a pipe or a socket: it is written into. A file in its place would end it for
/// everybody.
bool is_stream(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

bool give_name(int handle, const std::string& name) {
  return ::linkat(AT_FDCWD, cat("/proc/self/fd/", handle).c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
}
}  // namespace

std::string read_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    throw Error(ErrorKind::io, "file.read",
                cat("cannot read \"", path, "\": ", std::strerror(errno)));
  }
  std::string out;
  char buffer[65536];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) out.append(buffer, n);
  if (std::ferror(file.get())) {
    throw Error(ErrorKind::io, "file.read",
                cat("cannot read \"", path, "\": ", std::strerror(errno)));
  }
  return out;
}

void write_file_atomic(const std::string& path, std::string_view content) {
  // A name that nobody can guess, and a file that was not there: links planted beside `path` are
  // not followed.
  std::string beside;
  const bool stream = is_stream(path);
  int handle = stream ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : open_nameless(path);
  const bool nameless = handle >= 0 && !stream;
  while (!nameless && !stream) {
    beside = random_name(path);
    handle = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (handle >= 0 || errno != EEXIST) break;
  }
  bool good = false;
  if (handle < 0) {
    const int reason = errno;
    throw Error(ErrorKind::io, "file.write",
                cat("cannot write \"", path, "\": ", std::strerror(reason)));
  }
  {
    File file(::fdopen(handle, "wb"));
    if (!file) ::close(handle);
    good = file && std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
           std::fflush(file.get()) == 0;
    if (good && nameless) {
      beside = random_name(path);
      good = give_name(handle, beside);
    }
  }
  int reason = errno;
  if (good && stream) return;
  if (good && std::rename(beside.c_str(), path.c_str()) == 0) return;
  if (good) reason = errno;
  if (!beside.empty()) std::remove(beside.c_str());
  throw Error(ErrorKind::io, "file.write",
              cat("cannot write \"", path, "\": ", std::strerror(reason)));
}

void remove_leftovers(const std::string& directory, std::string_view mark,
                      std::chrono::seconds age) {
  std::error_code ignored;
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::directory_iterator at(directory, ignored);
  for (; at != std::filesystem::directory_iterator(); at.increment(ignored)) {
    const auto& entry = *at;
    if (entry.path().filename().string().find(mark) == std::string::npos) continue;
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    const auto written = std::filesystem::last_write_time(entry.path(), ignored);
    if (!ignored && now - written > age) std::filesystem::remove_all(entry.path(), ignored);
  }
}

void remove_leftovers(const std::string& directory) {
  remove_leftovers(directory, kLeftover, std::chrono::hours(1));
}

}  // namespace weft
