// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/recording.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"

namespace weft::runtime {

namespace {

Ref<MemoryPool>& thread_pool() {
  thread_local Ref<MemoryPool> pool;
  return pool;
}

/// Four classes to each doubling.
Bytes rounded(Bytes bytes) {
  const Bytes least = std::max<Bytes>(bytes, 1);
  const Bytes step = std::max<Bytes>(512, std::bit_floor(least) / 4);
  return (least + step - 1) / step * step;
}

}  // namespace

MemoryPool* MemoryPool::current(const Device* device) {
  MemoryPool* pool = thread_pool().get();
  return pool && pool->device().get() == device ? pool : nullptr;
}

MemoryPool::Scope::Scope(Ref<MemoryPool> pool) : before_(std::move(thread_pool())) {
  thread_pool() = std::move(pool);
}
MemoryPool::Scope::~Scope() { thread_pool() = std::move(before_); }

Ref<Storage> MemoryPool::allocate(Bytes bytes, std::string_view space) {
  const Bytes size = rounded(bytes);
  std::uint64_t address = 0;
  {
    std::lock_guard lock(mutex_);
    std::vector<std::uint64_t>& list = free_[size];
    if (!list.empty()) {
      address = list.back();
      list.pop_back();
    }
  }
  if (!address) {
    Scope from_device(nullptr);
    Ref<Storage> block = device_->allocate(size, 64, space);
    address = block->address();
    std::lock_guard lock(mutex_);
    blocks_[address] = std::move(block);
    bytes_ += size;
  }
  return make_ref<Storage>(
      device_, address, bytes, space,
      [pool = Ref<MemoryPool>(this), address, size] { pool->give_back(address, size); });
}

void MemoryPool::give_back(std::uint64_t address, Bytes size) {
  std::lock_guard lock(mutex_);
  free_[size].push_back(address);
}

bool MemoryPool::owns(const Storage& storage) const {
  std::lock_guard lock(mutex_);
  return blocks_.count(storage.address()) > 0;
}

Bytes MemoryPool::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

Storage* LaunchList::lasting(Storage* storage) {
  if (!storage) return nullptr;
  hold(storage);
  if (!pool()->owns(*storage)) return storage;
  Ref<Storage>& name = names_[{storage->address(), storage->bytes()}];
  if (!name)
    name = make_ref<Storage>(storage->device(), storage->address(), storage->bytes(),
                             storage->space(), [] {});
  return name.get();
}

void LaunchList::add_launch(Executable& executable, std::size_t kernel,
                            std::span<const KernelArg> args,
                            std::span<const std::int64_t> extents) {
  Launch step{Ref<Executable>(&executable),
              kernel,
              {args.begin(), args.end()},
              {extents.begin(), extents.end()}};
  for (KernelArg& a : step.args) a.storage = lasting(a.storage);
  steps_.push_back(std::move(step));
}

void LaunchList::add_copy(Storage& dst, Bytes to, Storage& src, Bytes from, Bytes bytes) {
  steps_.push_back(Copy{lasting(&dst), lasting(&src), to, from, bytes});
}

void LaunchList::replay() {
  Device& device = *pool()->device();
  Event last;
  for (const auto& step : steps_) {
    if (const auto* launch = std::get_if<Launch>(&step))
      last = device.launch(*launch->executable, launch->kernel, launch->args, launch->extents);
    else if (const auto* copy = std::get_if<Copy>(&step))
      device.copy(*copy->dst, copy->to, *copy->src, copy->from, copy->bytes);
  }
  if (device.info().kind != DeviceKind::hardware) last.wait();
}

RecordsWork* recorder_of(const Ref<Device>& device) {
  return dynamic_cast<RecordsWork*>(device.get());
}

Recording* recording_on(const Ref<Device>& device) {
  RecordsWork* recorder = recorder_of(device);
  return recorder ? recorder->recording() : nullptr;
}

bool Recording::faulty() {
  bool found = false;
  for (const Ref<Storage>& word : watched_) {
    std::uint32_t value = 0;
    constexpr std::uint32_t zero = 0;
    pool_->device()->download(&value, *word, 0, sizeof(value));
    if (value == 0) continue;
    found = true;
    pool_->device()->upload(*word, 0, &zero, sizeof(zero));
  }
  return found;
}

void ForeignRecording::replay() {
  internal_error(__FILE__, __LINE__, "a captured stream is replayed by its owner", "");
}

Ref<Recording> record(const std::function<void()>& work, const Ref<MemoryPool>& pool) {
  const Ref<Device>& device = pool->device();
  if (RecordsWork* recorder = recorder_of(device)) return recorder->record(work, pool);
  throw Error(ErrorKind::device, "device.record.unsupported",
              cat(device->info().name, " was asked to record work and cannot"))
      .note("legal: cuda and opencl devices")
      .help("call the function without capture");
}

void refuse_while_recording(const Device& device, std::string_view what) {
  throw Error(ErrorKind::device, "device.record.host",
              cat(what, " while work of ", device.info().name, " is being recorded"))
      .note("a recording holds launches and copies on the device; the host has no part in it")
      .help("pass what comes from the host as arguments, and read results after the call");
}

}  // namespace weft::runtime
