// SPDX-License-Identifier: Apache-2.0
#pragma once
// The chip as a runtime::Device: "qpu:hw", "qpu:hw,launch=registers,timeout=2000,qpus=8". Storage
// addresses are bus addresses; host() gives the processor's view of one.

#include <map>
#include <mutex>

#include "weft/runtime/device.h"
#include "weft/targets/qpu/driver/chip.h"

namespace weft::qpu::hw {

struct HwOptions {
  int qpus = 12;
  LaunchBy launch = LaunchBy::mailbox;
  std::uint32_t timeout_ms = 10000;
};
/// Throws Error(value, "qpu.device.option").
HwOptions parse_hw_options(std::string_view name);
/// Whether a device name asks for the chip.
bool names_chip(std::string_view name);

class HwDevice final : public runtime::Device {
 public:
  HwDevice(std::string name, HwOptions options, std::shared_ptr<Board> board);
  ~HwDevice() override;
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<runtime::Storage> allocate(runtime::Bytes bytes, runtime::Bytes align,
                                 std::string_view space) override;
  void upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
              runtime::Bytes bytes) override;
  void download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                runtime::Bytes bytes) override;
  Ref<runtime::Executable> load(runtime::Binary binary) override;
  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override;
  /// The processor's view of a storage.
  void* host(const runtime::Storage& storage);

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes bytes, std::string_view space) override;

 private:
  GpuMemory& block(std::uint64_t address);

  HwOptions options_;
  Chip chip_;
  runtime::DeviceInfo info_;
  std::mutex chip_mutex_;                                       // one launch at a time
  std::mutex memory_mutex_;                                     // of blocks_
  std::map<std::uint64_t, std::unique_ptr<GpuMemory>> blocks_;  // by bus address
};

}  // namespace weft::qpu::hw
