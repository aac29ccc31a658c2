// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated rectangle of the wafer as a device. Its storage is the memory beside the wafer; a
// launch distributes boxes of the buffers over the PEs, runs each stage there and collects the
// results.

#include <memory>
#include <mutex>

#include "weft/runtime/device.h"
#include "weft/targets/wse/program.h"

namespace weft::wse {

class WseDevice final : public runtime::Device {
 public:
  WseDevice(std::string name, std::int32_t width, std::int32_t height, Arch arch, int threads);
  ~WseDevice() override;
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
  runtime::Span measure(const std::function<void()>& work) override;
  runtime::StatReport stats() const override;
  void clear_stats() override;
  void trace_to(runtime::TraceSink* sink) override;

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes bytes, std::string_view space) override;

 private:
  runtime::DeviceInfo info_;
  struct Resident;
  int threads_;
  mutable std::mutex mutex_;  // of what follows; launches of several threads run at once
  /// The wafer of each thread that launches, with what it holds from launch to launch: clocks
  /// depend on the launches of the thread itself only. A thread's goes with the thread.
  std::map<std::weak_ptr<void>, std::unique_ptr<Resident>, std::owner_less<>> resident_;
  runtime::StatReport stats_;  // of the last launch; empty before one
  runtime::TraceSink* trace_ = nullptr;
};

}  // namespace weft::wse
