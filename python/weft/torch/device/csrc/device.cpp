// SPDX-License-Identifier: Apache-2.0
// Guard, streams, events, generators and hooks. A weft device runs what it is given in order, so
// every stream of a device is an order on its one queue, and an event is a moment of the host after
// that queue is empty.
#include "weft_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

namespace weft_torch {

namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
thread_local c10::DeviceIndex t_device = 0;
thread_local std::map<c10::DeviceIndex, c10::StreamId> t_streams;

struct Event {
  std::chrono::steady_clock::time_point at;
};

c10::Stream stream(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, index), id);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device d) const override {
    return {kType, exchange_device(d.index())};
  }
  c10::Device getDevice() const override { return {kType, t_device}; }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.index() >= 0 && d.index() < device_count(), "weft device index ", int(d.index()),
                ": there are ", int(device_count()));
    exchange_device(d.index());
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override { exchange_device(d.index()); }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }

  c10::Stream getStream(c10::Device d) const override {
    const auto index = d.index() < 0 ? t_device : d.index();
    return stream(index, t_streams[index]);
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return stream(d.index() < 0 ? t_device : d.index(), 0);
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    static std::atomic<c10::StreamId> next{1};
    return stream(d.index() < 0 ? t_device : d.index(), next++);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override {
    return getNewStream(d, 0);
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    auto& id = t_streams[s.device_index()];
    const c10::Stream before(c10::Stream::UNSAFE, s.device(), id);
    id = s.id();
    return before;
  }
  bool queryStream(const c10::Stream& s) const override {
    synchronizeStream(s);
    return true;
  }
  void synchronizeStream(const c10::Stream& s) const override { synchronize(s.device_index()); }
  void synchronizeDevice(const c10::DeviceIndex index) const override { synchronize(index); }

  void record(void** event, const c10::Stream& s, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    synchronize(s.device_index());
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->at = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}  // what was recorded is done
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first != nullptr && second != nullptr,
                "elapsed_time of events that were not recorded");
    return std::chrono::duration<double, std::milli>(static_cast<Event*>(second)->at -
                                                     static_cast<Event*>(first)->at)
        .count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// torch's own sequence of numbers for the host, kept for each device.
struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(c10::DeviceIndex index) {
    device_ = {kType, index};
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }
};

const at::Generator& default_generator(c10::DeviceIndex index) {
  static std::mutex lock;
  static auto* made = new std::map<c10::DeviceIndex, at::Generator>;
  std::lock_guard guarded(lock);
  if (index < 0) index = t_device;
  auto found = made->find(index);
  if (found == made->end())
    found = made->emplace(index, at::make_generator<Generator>(index)).first;
  return found->second;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    c10::impl::VirtualGuardImpl(kType).setDevice({kType, index});
  }
  c10::DeviceIndex getCurrentDevice() const override { return t_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? t_device : index);
  }
  at::Device getDeviceFromPtr(void* data) const override { return device_of(data); }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
    resize_bytes(storage.unsafeGetStorageImpl(), bytes);
  }
};

}  // namespace

c10::DeviceIndex device_count() noexcept {
  try {
    py::gil_scoped_acquire locked;
    return callbacks().count ? py::cast<c10::DeviceIndex>(callbacks().count())
                             : c10::DeviceIndex(0);
  } catch (...) {  // torch asks for no exception here
    return 0;
  }
}

c10::DeviceIndex current_device() noexcept { return t_device; }

c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept {
  const auto before = t_device;
  if (index >= 0) t_device = index;
  return before;
}

void synchronize(c10::DeviceIndex index) {
  py::gil_scoped_acquire locked;
  callbacks().synchronize(int(index < 0 ? t_device : index));
}

void register_hooks() {
  static auto* hooks = new Hooks;
  at::RegisterPrivateUse1HooksInterface(hooks);
  c10::SetAllocator(kType, allocator());
}

}  // namespace weft_torch
