// SPDX-License-Identifier: Apache-2.0
#pragma once
// The input that a fuzzer tries, in a file that outlives the process however it ends. The file is a
// shared mapping, so that keeping an input costs a copy and no system call.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace weft::testing {

class LastInput {
 public:
  /// What an earlier process tried last.
  static std::string read(const char* path) {
    std::string whole(kRoom, '\0');
    std::FILE* f = std::fopen(path, "rb");
    if (!f) return {};
    whole.resize(std::fread(whole.data(), 1, kRoom, f));
    std::fclose(f);
    const std::size_t n = std::strtoull(whole.c_str(), nullptr, 10);
    return whole.size() < kHead ? std::string() : whole.substr(kHead, n);
  }

  explicit LastInput(const char* path) {
    const int f = ::open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (f < 0) return;
    if (::ftruncate(f, kRoom) == 0) {
      void* p = ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
      if (p != MAP_FAILED) at_ = static_cast<char*>(p);
    }
    ::close(f);
  }
  LastInput(const LastInput&) = delete;
  LastInput& operator=(const LastInput&) = delete;
  ~LastInput() {
    if (at_) ::munmap(at_, kRoom);
  }

  void keep(std::string_view text) {
    if (!at_) return;
    const std::size_t n = std::min(text.size(), kRoom - kHead);
    char head[kHead + 1];
    std::snprintf(head, sizeof head, "%15zu\n", n);
    std::memcpy(at_, head, kHead);
    std::memcpy(at_ + kHead, text.data(), n);
  }

 private:
  static constexpr std::size_t kHead = 16, kRoom = std::size_t{1} << 16;
  char* at_ = nullptr;
};

}  // namespace weft::testing
