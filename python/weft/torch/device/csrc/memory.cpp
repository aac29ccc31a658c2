// SPDX-License-Identifier: Apache-2.0
#include "weft_device.h"

#include <atomic>

namespace weft_torch {

Callbacks& callbacks() {
  static auto* held = new Callbacks;
  return *held;
}

namespace {

void release(void* handle) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire locked;
  Py_DECREF(static_cast<PyObject*>(handle));
}

class Allocator final : public c10::Allocator {
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
};

}  // namespace

c10::DataPtr data_of(py::object handle, std::size_t bytes, c10::DeviceIndex index) {
  // Far from every address of the process, with gaps, so that comparisons of ranges tell storages
  // apart.
  static std::atomic<std::uintptr_t> next{std::uintptr_t{1} << 60};
  const std::uintptr_t address = next.fetch_add((bytes + 1023) & ~std::uintptr_t{511});
  return {reinterpret_cast<void*>(address), handle.release().ptr(), &release,
          c10::Device(c10::DeviceType::PrivateUse1, index)};
}

c10::Allocator* allocator() {
  static auto* one = new Allocator;
  return one;
}

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
    auto handle = [](const c10::DataPtr& p) {
      return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(p.get_context()));
    };
    callbacks().copy_bytes(handle(grown), handle(storage->data_ptr()), kept);
  }
  storage->set_data_ptr_noswap(std::move(grown));
  storage->set_nbytes(bytes);
}

}  // namespace weft_torch
