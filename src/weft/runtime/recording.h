// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work of a device that is recorded once and replayed by one call: the driver's graphs where there
// are any, a list of launches elsewhere. A recording holds addresses, so what it computes in comes
// from a MemoryPool, whose blocks are never given to anybody else while the recording exists.

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "weft/runtime/device.h"

namespace weft::runtime {

/// Memory of a device set apart for recordings. Freed storages go back to the pool; the device gets
/// the blocks when the pool and all of its storages are gone.
class MemoryPool : public RefCounted {
 public:
  explicit MemoryPool(Ref<Device> device) : device_(std::move(device)) {}
  const Ref<Device>& device() const { return device_; }
  Ref<Storage> allocate(Bytes bytes, std::string_view space);
  bool owns(const Storage& storage) const;
  /// Of all blocks, in use or not.
  Bytes bytes() const;

  /// The pool that this thread's allocations on `device` come from, or null.
  static MemoryPool* current(const Device* device);
  /// While it lives, this thread's allocations on the pool's device come from the pool (null: from
  /// the device).
  class Scope {
   public:
    explicit Scope(Ref<MemoryPool> pool);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Ref<MemoryPool> before_;
  };

 private:
  void give_back(std::uint64_t address, Bytes size);

  Ref<Device> device_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Ref<Storage>> blocks_;  // by address
  std::map<Bytes, std::vector<std::uint64_t>> free_;
  Bytes bytes_ = 0;
};

/// What Device::record gives.
class Recording : public RefCounted {
 public:
  explicit Recording(Ref<MemoryPool> pool) : pool_(std::move(pool)) {}
  /// Starts the work; on hardware it is not waited for.
  virtual void replay() = 0;
  /// Kernels and copies of one replay.
  virtual std::size_t launches() const = 0;
  const Ref<MemoryPool>& pool() const { return pool_; }
  /// Keeps memory outside the pool that the work reads or writes.
  void hold(Storage* storage) {
    if (storage && !pool_->owns(*storage) && held_.insert(storage).second)
      storages_.emplace_back(storage);
  }
  /// Storage whose first word of 32 bits the work sets where it met a fault that the host would
  /// report.
  void watch(Storage* word) { watched_.emplace_back(word); }
  /// Whether a replay met such a fault since the last call; waits for the device. To be called once
  /// before the first replay.
  bool faulty();
  void hold(Executable& executable) {
    if (used_.insert(&executable).second) executables_.emplace_back(&executable);
  }

 private:
  Ref<MemoryPool> pool_;
  std::set<const Storage*> held_;
  std::vector<Ref<Storage>> storages_;
  std::vector<Ref<Storage>> watched_;
  std::set<const Executable*> used_;
  std::vector<Ref<Executable>> executables_;
};

/// A recording that somebody else replays: it keeps what the work uses.
class ForeignRecording final : public Recording {
 public:
  using Recording::Recording;
  void replay() override;
  std::size_t launches() const override { return 0; }
};

/// Where a thread's work on a device goes: a stream of the driver's (0: the device's own), and the
/// recording that it becomes part of (null: it runs).
struct Course {
  std::uint64_t stream = 0;
  Recording* recording = nullptr;
};

/// What devices are that can record, beside Device.
class RecordsWork {
 public:
  virtual ~RecordsWork() = default;
  /// Runs `work` without starting what this thread launches on the device meanwhile: that is
  /// recorded, with the memory that it allocates from `pool`. Throws
  /// Error(device, "device.record.host") for waits and transfers.
  virtual Ref<Recording> record(const std::function<void()>& work, const Ref<MemoryPool>& pool) = 0;
  /// What this thread records, inside record(); else null.
  virtual Recording* recording() const = 0;
  /// Sends this thread's later work elsewhere and gives where it went before. Memory that work on
  /// two streams uses is the caller's to order.
  virtual Course swap_course(const Course& course) = 0;
};
/// The device as one that records, or null.
RecordsWork* recorder_of(const Ref<Device>& device);
/// What this thread records on the device, or null.
Recording* recording_on(const Ref<Device>& device);
/// As Device::record would be; throws Error(device, "device.record.unsupported") elsewhere.
Ref<Recording> record(const std::function<void()>& work, const Ref<MemoryPool>& pool);

/// A recording for devices whose driver has none: the launches themselves.
class LaunchList final : public Recording {
 public:
  using Recording::Recording;
  void add_launch(Executable& executable, std::size_t kernel, std::span<const KernelArg> args,
                  std::span<const std::int64_t> extents);
  void add_copy(Storage& dst, Bytes to, Storage& src, Bytes from, Bytes bytes);
  void replay() override;
  std::size_t launches() const override { return steps_.size(); }

 private:
  struct Launch {
    Ref<Executable> executable;
    std::size_t kernel;
    std::vector<KernelArg> args;
    std::vector<std::int64_t> extents;
  };
  struct Copy {
    Storage *dst, *src;
    Bytes to, from, bytes;
  };
  /// The storage itself where it is held; memory of the pool under a name of the recording's own.
  Storage* lasting(Storage* storage);

  std::vector<std::variant<Launch, Copy>> steps_;
  std::map<std::pair<std::uint64_t, Bytes>, Ref<Storage>> names_;
};

/// Refuses ("device.record.host") what a recording cannot hold: a wait, or elements that pass
/// between host and device.
[[noreturn]] void refuse_while_recording(const Device& device, std::string_view what);

}  // namespace weft::runtime
