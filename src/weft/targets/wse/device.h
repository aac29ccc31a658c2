// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated rectangle of the wafer as a device. Its storage is the memory beside the wafer; a
// launch distributes boxes of the buffers over the PEs and runs each stage there. Results stay on
// the PEs until they are asked for.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/json.h"
#include "weft/runtime/device.h"
#include "weft/targets/wse/program.h"
#include "weft/targets/wse/resident.h"

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
  class Launch;
  using Which = std::function<bool(const Left&)>;
  /// The wafer of this thread with this program, loaded if another one is there: what `work` can
  /// use of the other's results stays on the PEs.
  std::shared_ptr<Resident> resident(std::uint64_t executable, std::size_t kernel,
                                     const Layout& layout, const Launch& work);
  /// Results in `range` will not be asked for. The caller holds `mutex_`.
  void forget(const Range& range);
  /// Brings results in `range` back from all wafers but one, whose `busy` the caller may hold.
  void bring_back(const Range& range, const Resident* except = nullptr);
  /// Brings those results back from one wafer, whose `busy` the caller holds.
  void settle(Resident& held, const Which& which, bool peek = false);
  /// Brings everything back and forgets the wafer. `peek`: in no time.
  void retire(const std::shared_ptr<Resident>& held, bool peek);

  runtime::DeviceInfo info_;
  int threads_;
  mutable std::mutex mutex_;  // of what follows; launches of several threads run at once
  /// The wafer of each thread that launches, with what it holds from launch to launch: clocks
  /// depend on the launches of the thread itself only. A thread's goes with the thread.
  std::map<std::weak_ptr<void>, std::shared_ptr<Resident>, std::owner_less<>> resident_;
  runtime::StatReport stats_;           // of the last launch; empty before one
  const Resident* reported_ = nullptr;  // whose launch that was
  std::uint64_t lefts_ = 0;             // results that have stayed on a wafer so far
  runtime::TraceSink* trace_ = nullptr;
};

struct WseKernel {
  Layout layout;
  Json plan;
};

class WseExecutable final : public runtime::Executable {
 public:
  WseExecutable(Ref<runtime::Device> device, runtime::Binary binary, std::vector<WseKernel> kernels)
      : Executable(std::move(device), std::move(binary)), kernels(std::move(kernels)) {}
  std::vector<WseKernel> kernels;
  const std::uint64_t id = next_id();

 private:
  static std::uint64_t next_id();
};

}  // namespace weft::wse
