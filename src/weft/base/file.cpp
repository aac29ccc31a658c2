// SPDX-License-Identifier: Apache-2.0
#include "weft/base/file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "weft/base/error.h"

namespace weft {

namespace {
struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;
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
  static std::atomic<unsigned> counter{0};
  std::string beside = cat(path, ".tmp", static_cast<long long>(::getpid()), "-", counter++);
  bool good = false;
  {
    File file(std::fopen(beside.c_str(), "wb"));
    good = file && std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
           std::fflush(file.get()) == 0;
  }
  int reason = errno;
  if (good && std::rename(beside.c_str(), path.c_str()) == 0) return;
  if (good) reason = errno;
  std::remove(beside.c_str());
  throw Error(ErrorKind::io, "file.write",
              cat("cannot write \"", path, "\": ", std::strerror(reason)));
}

}  // namespace weft
