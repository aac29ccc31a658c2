// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a program runs: hardware, simulators, remote devices, the interpreter and the null device
// are all Devices. A Device owns storage, loads binaries and launches kernels; it knows no IR.

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/ref.h"
#include "weft/runtime/binary.h"
#include "weft/runtime/stats.h"

namespace weft::runtime {

using Bytes = std::uint64_t;
class Device;
class TraceSink;

enum class DeviceKind : std::uint8_t { hardware, simulator, interpreter };
std::string_view to_string(DeviceKind kind);

struct DeviceInfo {
  std::string name;  // "cpu", "cuda:0", "qpu:qpus=12"
  DeviceKind kind = DeviceKind::hardware;
  std::string description;  // "NVIDIA H200", "12 emulated VideoCore IV QPUs"
  double clock_hz = 0;      // of the simulated machine; 0 when time is the host's
  int dl_type = 1;          // DLPack device type and id
  int dl_id = 0;
  bool host_accessible = false;                // storage addresses are host pointers
  Bytes memory_bytes = 0;                      // 0: unknown
  std::map<std::string, std::int64_t> limits;  // "threads_per_block", "shared_bytes", "qpus" ...
};

/// Memory on a device. `address` is a host pointer when info().host_accessible, otherwise the
/// device's own.
class Storage : public RefCounted {
 public:
  Storage(Ref<Device> device, std::uint64_t address, Bytes bytes, std::string_view space);
  /// Memory that belongs to someone else (an imported tensor): `release` runs instead of the
  /// device's free.
  Storage(Ref<Device> device, std::uint64_t address, Bytes bytes, std::string_view space,
          std::function<void()> release);
  ~Storage() override;
  const Ref<Device>& device() const { return device_; }
  std::uint64_t address() const { return address_; }
  void* host() const { return reinterpret_cast<void*>(address_); }
  Bytes bytes() const { return bytes_; }
  const std::string& space() const { return space_; }

 private:
  Ref<Device> device_;
  std::uint64_t address_;
  Bytes bytes_;
  std::string space_;
  std::function<void()> release_;
};

/// Time taken by work on a device. On hardware seconds == wall; on simulators seconds = cycles /
/// clock.
struct Span {
  double seconds = 0;
  double wall = 0;
  std::int64_t cycles = 0;  // 0 on hardware
};

/// Completion of a launch or copy. A default event is complete.
class Event {
 public:
  Event() = default;
  explicit Event(std::function<void()> wait) : wait_(std::move(wait)) {}
  /// Blocks; throws the work's Error (a Fault, a lost device).
  void wait() {
    if (auto f = std::exchange(wait_, nullptr)) f();
  }
  bool complete() const { return !wait_; }

 private:
  std::function<void()> wait_;
};

/// A binary made ready on a device.
class Executable : public RefCounted {
 public:
  Executable(Ref<Device> device, Binary binary)
      : device_(std::move(device)), binary_(std::move(binary)) {}
  const Ref<Device>& device() const { return device_; }
  const Binary& binary() const { return binary_; }

 private:
  Ref<Device> device_;
  Binary binary_;
};

/// One actual argument, in the order of KernelSignature::params.
struct KernelArg {
  Storage* storage = nullptr;  // pointers: base and byte offset; null for scalars
  Bytes offset = 0;
  std::int64_t scalar = 0;  // scalars: the value, floats as the bits of a double

  static KernelArg pointer(Storage* storage, Bytes offset = 0) { return {storage, offset, 0}; }
  static KernelArg integer(std::int64_t value) { return {nullptr, 0, value}; }
  static KernelArg real(double value);
};

class Device : public RefCounted {
 public:
  virtual const DeviceInfo& info() const = 0;

  /// Throws Error(memory, "device.memory.exhausted") with the figures. bytes == 0 is allowed.
  virtual Ref<Storage> allocate(Bytes bytes, Bytes align = 64,
                                std::string_view space = "global") = 0;
  virtual void upload(Storage& dst, Bytes offset, const void* src, Bytes bytes) = 0;
  virtual void download(void* dst, const Storage& src, Bytes offset, Bytes bytes) = 0;
  /// Within this device. The default goes through the host.
  virtual void copy(Storage& dst, Bytes dst_offset, const Storage& src, Bytes src_offset,
                    Bytes bytes);

  /// Throws Error(emit, "device.binary.format") when the format is not this device's.
  virtual Ref<Executable> load(Binary binary) = 0;
  /// Extents follow KernelSignature::axes. Launches are in order. Limits are checked before launch.
  virtual Event launch(Executable& executable, std::size_t kernel, std::span<const KernelArg> args,
                       std::span<const std::int64_t> extents) = 0;
  virtual void synchronize() {}
  /// Runs `work` and says how long the device took for it.
  virtual Span measure(const std::function<void()>& work);

  virtual StatReport stats() const { return {}; }
  virtual void clear_stats() {}
  /// Sends spans of units and kernels there until called with null.
  virtual void trace_to(TraceSink*) {}

 protected:
  friend class Storage;
  virtual void free_storage(std::uint64_t address, Bytes bytes, std::string_view space) = 0;
};

/// Whether a device computes in the host's own memory, so that any array there serves it.
inline bool shares_host_memory(const Device& device) {
  return device.info().host_accessible && device.info().kind != DeviceKind::simulator;
}

/// Refuses ("device.access") when [offset, offset + bytes) leaves the storage.
void check_range(const Storage& storage, Bytes offset, Bytes bytes);

}  // namespace weft::runtime
