// SPDX-License-Identifier: Apache-2.0
// Host memory as a Device: blocks of power-of-two size classes are kept for reuse, up to a bound.

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "weft/array/ndarray.h"

namespace weft {

namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(std::string name) {
    info_.name = std::move(name);
    info_.description = "host memory";
    info_.host_accessible = true;
  }
  ~HostDevice() override { trim(); }

  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<Storage> allocate(runtime::Bytes bytes, runtime::Bytes align, std::string_view space) override {
    std::size_t c = size_class(bytes);
    void* block = nullptr;
    if (align <= 64 && c < kClasses) {
      std::lock_guard lock(mutex_);
      if (!free_[c].empty()) {
        block = free_[c].back();
        free_[c].pop_back();
        kept_ -= class_bytes(c);
      }
    }
    if (!block) {
      std::size_t size = c < kClasses ? class_bytes(c) : (bytes + 63) / 64 * 64;
      block = take(size, align);
      if (!block) {
        trim();
        block = take(size, align);
      }
      if (!block) {
        throw Error(ErrorKind::memory, "device.memory.exhausted",
                    cat(info_.name, " cannot give ", human_bytes(bytes), " (", bytes, " bytes)"))
            .note("cached blocks were given back first");
      }
    }
    return make_ref<Storage>(Ref<Device>(this), reinterpret_cast<std::uint64_t>(block), bytes, space);
  }

  void upload(Storage& dst, runtime::Bytes offset, const void* src, runtime::Bytes bytes) override {
    runtime::check_range(dst, offset, bytes);
    if (bytes) std::memcpy(static_cast<char*>(dst.host()) + offset, src, bytes);
  }
  void download(void* dst, const Storage& src, runtime::Bytes offset, runtime::Bytes bytes) override {
    runtime::check_range(src, offset, bytes);
    if (bytes) std::memcpy(dst, static_cast<const char*>(src.host()) + offset, bytes);
  }
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat(info_.name, " as plain host memory runs no binary of format \"", binary.format, "\""));
  }
  runtime::Event launch(runtime::Executable&, std::size_t, std::span<const runtime::KernelArg>,
                        std::span<const std::int64_t>) override {
    throw Error(ErrorKind::emit, "device.launch.none", cat(info_.name, " as plain host memory launches nothing"));
  }

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes bytes, std::string_view) override {
    std::size_t c = size_class(bytes);
    void* block = reinterpret_cast<void*>(address);
    if (c < kClasses) {
      std::lock_guard lock(mutex_);
      if (kept_ + class_bytes(c) <= kKeep) {
        free_[c].push_back(block);
        kept_ += class_bytes(c);
        return;
      }
    }
    std::free(block);
  }

 private:
  // Four classes to each doubling above 64 bytes: at most a fifth of a block is unused.
  static constexpr std::size_t kClasses = 100;
  static constexpr std::size_t kKeep = std::size_t{256} << 20;   // bytes kept for reuse
  static std::size_t size_class(runtime::Bytes bytes) {
    if (bytes <= 64) return 0;
    auto log = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;   // 2^log < bytes <= 2^(log+1), log >= 6
    std::size_t quarter = ((bytes - 1) >> (log - 2)) & 3;
    return (log - 6) * 4 + quarter + 1;
  }
  static std::size_t class_bytes(std::size_t c) {
    if (c == 0) return 64;
    std::size_t log = (c - 1) / 4 + 6, quarter = (c - 1) % 4;
    return (std::size_t{1} << log) + ((quarter + 1) << (log - 2));
  }
  static void* take(std::size_t size, runtime::Bytes align) {
    void* block = nullptr;
    std::size_t a = std::max<std::size_t>(align, 64);
    return posix_memalign(&block, a, size) == 0 ? block : nullptr;
  }
  void trim() {
    std::lock_guard lock(mutex_);
    for (auto& list : free_) {
      for (void* block : list) std::free(block);
      list.clear();
    }
    kept_ = 0;
  }

  runtime::DeviceInfo info_;
  std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  std::size_t kept_ = 0;
};

}  // namespace

Ref<Device> make_host_device(std::string name) { return make_ref<HostDevice>(std::move(name)); }

}  // namespace weft
