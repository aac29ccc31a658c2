// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/driver/board.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

namespace weft::qpu::hw {

namespace {
/// A file descriptor that is closed.
class File {
 public:
  File(const char* path, int flags) : fd_(::open(path, flags | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

class LinuxBoard final : public Board {
 public:
  std::optional<std::string> read_file(const std::string& path) override {
    std::ifstream in(path, std::ios::binary);
    if (!in) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  int probe(const std::string& path) override {
    File file(path.c_str(), O_RDWR);
    return file.fd() < 0 ? errno : 0;
  }

  int property(std::uint32_t* words) override {
    File file("/dev/vcio", O_RDWR);
    if (file.fd() < 0) return errno;
    // The driver reads and writes the buffer at the pointer; its size field is the pointer's.
    return ::ioctl(file.fd(), _IOWR(100, 0, char*), words) < 0 ? errno : 0;
  }

  volatile void* map(std::uint64_t physical, std::size_t bytes, int* error) override {
    File file("/dev/mem", O_RDWR | O_SYNC);
    if (file.fd() < 0) {
      *error = errno;
      return nullptr;
    }
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(),
                     static_cast<off_t>(physical));
    if (p == MAP_FAILED) {
      *error = errno;
      return nullptr;
    }
    return p;
  }

  void unmap(volatile void* address, std::size_t bytes) override {
    ::munmap(const_cast<void*>(address), bytes);
  }

  std::uint32_t load(volatile void* block, std::size_t offset) override {
    return static_cast<volatile std::uint32_t*>(block)[offset / 4];
  }
  void store(volatile void* block, std::size_t offset, std::uint32_t value) override {
    static_cast<volatile std::uint32_t*>(block)[offset / 4] = value;
  }

  double now() override {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void rest() override { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
};
}  // namespace

std::shared_ptr<Board> this_board() { return std::make_shared<LinuxBoard>(); }

}  // namespace weft::qpu::hw
