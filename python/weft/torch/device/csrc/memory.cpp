// SPDX-License-Identifier: Apache-2.0
#include "weft_device.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace weft_torch {

Callbacks& callbacks() {
  static auto* held = new Callbacks;
  return *held;
}

namespace {

/// What a storage keeps: the handle, and what statistics count.
struct Held {
  PyObject* handle;
  std::size_t bytes;
  c10::DeviceIndex index;
  const void* address;
};

std::mutex g_lock;
/// Memory by address: torch makes storages of a bare address, too (from_blob).
std::map<const void*, Held*>& live() {
  static auto* held = new std::map<const void*, Held*>;
  return *held;
}

#if WEFT_DEVICE_ALLOCATOR
using Stats = c10::CachingDeviceAllocator::DeviceStats;
std::map<c10::DeviceIndex, Stats>& all_stats() {
  static auto* held = new std::map<c10::DeviceIndex, Stats>;
  return *held;
}
/// All memory that storages hold; weft keeps none back, so reserved is allocated.
template <typename F>
void each_stat(Stats& s, std::size_t bytes, F f) {
  for (auto* counts : {&s.allocation, &s.segment, &s.active}) f((*counts)[0], 1);
  for (auto* sizes : {&s.allocated_bytes, &s.reserved_bytes, &s.active_bytes, &s.requested_bytes})
    f((*sizes)[0], bytes);
}
void count(c10::DeviceIndex index, std::size_t bytes, bool taken) {
  std::lock_guard guarded(g_lock);
  each_stat(all_stats()[index], bytes, [&](c10::CachingAllocator::Stat& stat, std::size_t amount) {
    taken ? stat.increase(amount) : stat.decrease(amount);
  });
}
using Base = c10::DeviceAllocator;
#else
void count(c10::DeviceIndex, std::size_t, bool) {}
using Base = c10::Allocator;
#endif

void release(void* context) {
  auto* held = static_cast<Held*>(context);
  count(held->index, held->bytes, false);
  {
    std::lock_guard guarded(g_lock);
    live().erase(held->address);
  }
  if (Py_IsInitialized()) {
    py::gil_scoped_acquire locked;
    Py_DECREF(held->handle);
  }
  delete held;
}

class Allocator final : public Base {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    if (bytes == 0) return {nullptr, c10::Device(c10::DeviceType::PrivateUse1, index)};
    py::gil_scoped_acquire locked;
    return data_of(callbacks().allocate(int(index), bytes), bytes, index);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "memory of a weft device has no address on the host");
  }
#if WEFT_DEVICE_ALLOCATOR
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // one queue, in order
  Stats getDeviceStats(c10::DeviceIndex device) override {
    std::lock_guard guarded(g_lock);
    return all_stats()[device];
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    std::lock_guard guarded(g_lock);
    each_stat(all_stats()[device], 0,
              [](c10::CachingAllocator::Stat& stat, std::size_t) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    std::lock_guard guarded(g_lock);
    each_stat(all_stats()[device], 0,
              [](c10::CachingAllocator::Stat& stat, std::size_t) { stat.reset_peak(); });
  }
#endif
};

/// The host's memory, known as pinned: copies from it need nothing else.
class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr owned = c10::GetCPUAllocator()->allocate(bytes);
    void* const data = owned.get();
    if (data == nullptr) return owned;
    std::lock_guard guarded(lock_);
    ends_[data] = {static_cast<char*>(data) + bytes, std::move(owned)};
    return {data, data, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool holds(const void* data) {
    std::lock_guard guarded(lock_);
    auto after = ends_.upper_bound(const_cast<void*>(data));
    return after != ends_.begin() && data < std::prev(after)->second.end;
  }

 private:
  struct Block {
    void* end;
    c10::DataPtr owned;
  };
  static void give_back(void* data);
  std::mutex lock_;
  std::map<void*, Block> ends_;
};

Pinned& pinned() {
  static auto* one = new Pinned;
  return *one;
}

void Pinned::give_back(void* data) {
  Block gone;
  std::lock_guard guarded(pinned().lock_);
  auto found = pinned().ends_.find(data);
  if (found == pinned().ends_.end()) return;
  gone = std::move(found->second);
  pinned().ends_.erase(found);
}

}  // namespace

c10::DataPtr data_of(py::object handle, std::size_t bytes, c10::DeviceIndex index) {
  // Far from every address of the process, with gaps, so that comparisons of ranges tell storages
  // apart.
  static std::atomic<std::uintptr_t> next{std::uintptr_t{1} << 60};
  auto* address = reinterpret_cast<void*>(next.fetch_add((bytes + 1023) & ~std::uintptr_t{511}));
  count(index, bytes, true);
  auto* held = new Held{handle.release().ptr(), bytes, index, address};
  {
    std::lock_guard guarded(g_lock);
    live()[address] = held;
  }
  return {address, held, &release, c10::Device(c10::DeviceType::PrivateUse1, index)};
}

namespace {
Held* held_in(const c10::DataPtr& data) {
  if (data.get() == nullptr) return nullptr;
  if (data.get_deleter() == &release) return static_cast<Held*>(data.get_context());
  std::lock_guard guarded(g_lock);
  auto found = live().find(data.get());
  TORCH_CHECK(found != live().end(), "no memory of weft begins at the address of this storage");
  return found->second;
}
}  // namespace

py::object handle_in(const c10::DataPtr& data) {
  const Held* held = held_in(data);
  return held == nullptr ? py::none() : py::reinterpret_borrow<py::object>(held->handle);
}

void replace_handle(const c10::DataPtr& data, py::object handle) {
  Held* held = held_in(data);
  TORCH_CHECK(held != nullptr, "a storage without memory gets elements");
  Py_DECREF(std::exchange(held->handle, handle.release().ptr()));
}

c10::Device device_of(const void* address) {
  std::lock_guard guarded(g_lock);
  auto after = live().upper_bound(address);
  TORCH_CHECK(after != live().begin(), "no memory of weft is at this address");
  return {c10::DeviceType::PrivateUse1, std::prev(after)->second->index};
}

c10::Allocator* allocator() {
  static auto* one = new Allocator;
  return one;
}

c10::Allocator* pinned_allocator() { return &pinned(); }
bool is_pinned(const void* data) { return pinned().holds(data); }

void resize_bytes(c10::StorageImpl* storage, std::size_t bytes) {
  const c10::DeviceIndex before = exchange_device(storage->device().index());
  c10::DataPtr grown;
  try {
    grown = allocator()->allocate(bytes);
  } catch (...) {
    exchange_device(before);
    throw;
  }
  exchange_device(before);
  const std::size_t kept = std::min(bytes, storage->nbytes());
  if (kept != 0) {
    py::gil_scoped_acquire locked;
    callbacks().copy_bytes(handle_in(grown), handle_in(storage->data_ptr()), kept);
  }
  storage->set_data_ptr_noswap(std::move(grown));
  storage->set_nbytes(bytes);
}

}  // namespace weft_torch
