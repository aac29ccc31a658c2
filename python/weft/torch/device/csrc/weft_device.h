// SPDX-License-Identifier: Apache-2.0
// What the parts of the torch device share: the Python functions that own weft's memory, and the
// current device and stream.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/Allocator.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/version.h>

#include <cstdint>

// torch.accelerator's statistics of memory.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
#define WEFT_DEVICE_ALLOCATOR 1
#include <c10/core/CachingDeviceAllocator.h>
#else
#define WEFT_DEVICE_ALLOCATOR 0
#endif

namespace weft_torch {

// Python functions, set once when the module is loaded. They are never destroyed: tensors may
// outlive the interpreter.
struct Callbacks {
  py::object allocate;     // (device index, bytes) -> storage handle of weft
  py::object copy_bytes;   // (destination handle, source handle, bytes)
  py::object count;        // () -> number of devices
  py::object synchronize;  // (device index)
};
Callbacks& callbacks();

// Memory of weft as torch's: the context is a reference to the handle, the address is unique and
// never dereferenced.
c10::DataPtr data_of(py::object handle, std::size_t bytes, c10::DeviceIndex index);
c10::Allocator* allocator();
/// The handle that a storage's memory holds, None of memory without elements.
py::object handle_in(const c10::DataPtr& data);
/// Other memory for a storage, of at least its size; whatever has its address sees it.
void replace_handle(const c10::DataPtr& data, py::object handle);
c10::Device device_of(const void* address);
/// Memory of the host for copies to devices.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);
void resize_bytes(c10::StorageImpl* storage, std::size_t bytes);

c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device() noexcept;
c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept;
void synchronize(c10::DeviceIndex index);

void register_hooks();

}  // namespace weft_torch
