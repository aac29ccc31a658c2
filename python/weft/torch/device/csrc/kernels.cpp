// SPDX-License-Identifier: Apache-2.0
// The operators that make and reshape tensors without looking at elements. All others are Python's
// (weft.torch.device).
#include "weft_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace weft_torch {

namespace {

using at::Tensor;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::DeviceIndex index_of(std::optional<c10::Device> device) {
  return device && device->has_index() ? device->index() : current_device();
}

void check(std::optional<c10::Layout> layout, std::optional<c10::Device> device) {
  TORCH_CHECK(!layout || *layout == c10::kStrided,
              "a weft device has dense tensors only, asked: ", *layout,
              "; x.cpu() has the other layouts, and x.to_dense() can be moved");
  const int index = index_of(device);
  TORCH_CHECK(index < device_count(), "no device weft:", index, "; there are ",
              int(device_count()));
}

Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
             std::optional<c10::Layout> layout, std::optional<c10::Device> device,
             std::optional<bool>, std::optional<c10::MemoryFormat> format) {
  check(layout, device);
  c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, index_of(device)));
  return at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                     std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                     std::optional<c10::Device> device, std::optional<bool>) {
  check(layout, device);
  c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, index_of(device)));
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

void ensure_bytes(const Tensor& self) {
  auto* storage = self.storage().unsafeGetStorageImpl();
  const std::size_t needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.itemsize(), self.storage_offset());
  if (storage->nbytes() < needed) resize_bytes(storage, needed);
}

const Tensor& resize(const Tensor& self, c10::IntArrayRef size,
                     std::optional<c10::MemoryFormat> format) {
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  if (format && *format != c10::MemoryFormat::Preserve)
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  ensure_bytes(self);
  return self;
}

Tensor& set_storage(Tensor& self, c10::Storage source, std::int64_t offset, c10::IntArrayRef size,
                    c10::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  auto* impl = self.unsafeGetTensorImpl();
  if (stride.data() == nullptr) {
    impl->set_storage_offset(offset);
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  ensure_bytes(self);
  return self;
}

Tensor& set_source(Tensor& self, c10::Storage source) {
  const auto count = static_cast<std::int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

Tensor as_strided(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                  std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", at::native::view);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Storage", set_source);
  m.impl("set_.source_Tensor", set_tensor);
}

py::object handle_of(const Tensor& t) {
  TORCH_CHECK(t.device().type() == c10::DeviceType::PrivateUse1, "a tensor on ", t.device(),
              " has no memory of weft");
  return handle_in(t.storage().data_ptr());
}

Tensor tensor_of(py::object handle, std::int64_t bytes, const std::vector<std::int64_t>& size,
                 const std::vector<std::int64_t>& stride, std::int64_t offset, const Tensor& like,
                 int index) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      data_of(std::move(handle), bytes, c10::DeviceIndex(index)), allocator(), true);
  Tensor out = at::detail::make_tensor<at::TensorImpl>(std::move(storage), kKeys, like.dtype());
  out.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return out;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("register_device",
        [](py::object allocate, py::object copy_bytes, py::object count, py::object synchronize) {
          callbacks() = {std::move(allocate), std::move(copy_bytes), std::move(count),
                         std::move(synchronize)};
          register_hooks();
        });
  m.def("handle_of", handle_of);
  m.def("tensor_of", tensor_of);
  m.def("replace_handle", [](const Tensor& t, py::object handle) {
    replace_handle(t.storage().data_ptr(), std::move(handle));
  });
  m.def("current_device", [] { return int(current_device()); });
  m.def("exchange_device", [](int index) { return int(exchange_device(c10::DeviceIndex(index))); });
}

}  // namespace weft_torch
