// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host's own memory and threads as a Device: pooled blocks with statistics and a limit, kernels
// of the C ABI (runtime/abi.h), parallel loops on the shared pool. A back end derives from it and
// says how a binary becomes function pointers.

#include <array>
#include <vector>

#include "weft/base/fork_safe_mutex.h"
#include "weft/runtime/abi.h"
#include "weft/runtime/device.h"

namespace weft::runtime {

/// The context table that every host kernel gets.
const weft_context& host_context();

class HostDevice : public Device {
 public:
  HostDevice(std::string name, std::string description, std::string binary_format);
  ~HostDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Ref<Storage> allocate(Bytes bytes, Bytes align, std::string_view space) override;
  void upload(Storage& dst, Bytes offset, const void* src, Bytes bytes) override;
  void download(void* dst, const Storage& src, Bytes offset, Bytes bytes) override;
  void copy(Storage& dst, Bytes dst_offset, const Storage& src, Bytes src_offset,
            Bytes bytes) override;
  Ref<Executable> load(Binary binary) override;
  Event launch(Executable& executable, std::size_t kernel, std::span<const KernelArg> args,
               std::span<const std::int64_t> extents) override;
  /// bytes.live, bytes.peak, bytes.cached, allocations.
  StatReport stats() const override;
  void clear_stats() override;
  /// Bytes that may be live at once; 0: no limit.
  void limit_memory(Bytes bytes) { limit_ = bytes; }
  /// Gives cached blocks back to the system.
  void trim();

 protected:
  struct Ready {
    std::vector<weft_kernel> kernels;  // in the order of Binary::kernels
    Ref<RefCounted> keep;              // owns the code
  };
  /// Default: refuses every binary.
  virtual Ready make_ready(const Binary& binary);
  void free_storage(std::uint64_t address, Bytes bytes, std::string_view space) override;

 private:
  // Four size classes to each doubling above 64 bytes: at most a fifth of a block is unused.
  static constexpr std::size_t kClasses = 100;
  static constexpr Bytes kKeep = Bytes{256} << 20;  // cached at most
  static std::size_t size_class(Bytes bytes);
  static Bytes class_bytes(std::size_t c);

  DeviceInfo info_;
  std::string format_;
  mutable ForkSafeMutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  Bytes cached_ = 0, live_ = 0, peak_ = 0, limit_ = 0;
  std::int64_t allocations_ = 0;
};

}  // namespace weft::runtime
