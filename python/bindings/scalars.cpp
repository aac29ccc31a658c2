// SPDX-License-Identifier: Apache-2.0
#include "scalars.h"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace weft::py {

namespace {

constexpr int kSpares = 8;  // of a type of elements
struct Spares {
  PyObject* objects[kSpares];
  int count = 0;
};
Spares g_spares[kElems];

bool is_number_of_host(PyObject* o) {
  return Py_TYPE(o) == ndarray_type() && unwrap(o).defined() && unwrap(o).ndim() == 0 &&
         unwrap(o).on_host();
}

PyObject* new_scalar(const Ref<Device>& device, Elem e) {
  Spares& spares = g_spares[static_cast<int>(e)];
  if (spares.count > 0 && unwrap(spares.objects[spares.count - 1]).device() == device)
    return PyObject_Init(spares.objects[--spares.count], ndarray_type());
  PyObject* const out = wrap(NDArray::empty(device, e, Dims{}));
  if (out) reinterpret_cast<PyNDArray*>(out)->own = unwrap(out).handle().get();
  return out;
}

/// Python's number as an element, where that is what promotion makes of it.
bool write_number(PyObject* o, Elem e, void* out) {
  const auto put = [out](auto value) { return std::memcpy(out, &value, sizeof(value)), true; };
  if (PyFloat_CheckExact(o)) {
    const double value = PyFloat_AS_DOUBLE(o);
    if (e == Elem::float64) return put(value);
    return e == Elem::float32 && put(static_cast<float>(value));
  }
  if (!PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return false;
  constexpr long long kExact = 1ll << 24;  // in all of these types
  if (e == Elem::int64) return put(static_cast<std::int64_t>(value));
  if (std::llabs(value) > kExact) return false;
  if (e == Elem::int32) return put(static_cast<std::int32_t>(value));
  if (e == Elem::float64) return put(static_cast<double>(value));
  return e == Elem::float32 && put(static_cast<float>(value));
}

/// The type of what the kernel of this type writes; none where there is no kernel of it.
std::optional<Elem> result_of_kernel(Op op, Elem e) {
  const OpInfo& row = info(op);
  if (op == Op::pow || is_narrow_float(e) ||
      !kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)])
    return std::nullopt;
  if (row.rule == Rule::boolean) return Elem::boolean;
  return row.rule == Rule::same || is_real_float(e) ? std::optional(e) : std::nullopt;
}

PyObject* run(Op op, const NDArray& like, const void* const* in) {
  const Elem e = like.elem();
  const std::optional<Elem> result = result_of_kernel(op, e);
  if (!result) return nullptr;
  PyObject* const out = new_scalar(like.device(), *result);
  if (!out) throw nb::python_error();
  kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)](1, in, unwrap(out).host());
  return out;
}

/// Two numbers of one type, at least one of them an array's.
struct Operands {
  alignas(16) char number[8];
  const void* in[2] = {number, number};
  const NDArray* like = nullptr;

  bool read(PyObject* a, PyObject* b) {
    const bool left = is_number_of_host(a), right = is_number_of_host(b);
    if (!left && !right) return false;
    like = &unwrap(left ? a : b);
    if (left) in[0] = like->host();
    if (right) in[1] = unwrap(b).host();
    if (left && right)
      return unwrap(b).elem() == like->elem() && unwrap(b).device() == like->device();
    return write_number(left ? b : a, like->elem(), number);
  }
};

}  // namespace

PyObject* scalar_binary(Op op, PyObject* a, PyObject* b) {
  Operands of;
  return of.read(a, b) ? run(op, *of.like, of.in) : nullptr;
}

bool scalar_into(Op op, PyObject* a, PyObject* b) {
  Operands of;
  if (!is_number_of_host(a) || !of.read(a, b)) return false;
  const Elem e = unwrap(a).elem();
  if (result_of_kernel(op, e) != e) return false;
  kernels().elementwise[static_cast<int>(op)][static_cast<int>(e)](1, of.in, unwrap(a).host());
  return true;
}

PyObject* scalar_unary(Op op, PyObject* a) {
  if (!is_number_of_host(a)) return nullptr;
  const NDArray& x = unwrap(a);
  if (is_complex(x.elem())) return nullptr;
  const void* in[1] = {x.host()};
  return run(op, x, in);
}

bool keep_scalar(PyObject* self) noexcept {
  auto* const object = reinterpret_cast<PyNDArray*>(self);
  const NDArray& a = object->array;
  // Its memory is still the one that it was made with, and nobody else's.
  if (!object->own || a.handle().get() != object->own || a.handle()->ref_count() != 1 ||
      a.ndim() != 0 || a.offset() != 0 ||
      static_cast<int>(a.handle()->bytes()) != elem_bytes(a.elem()))
    return false;
  Spares& spares = g_spares[static_cast<int>(a.elem())];
  if (spares.count == kSpares || Py_TYPE(self) != ndarray_type()) return false;
  spares.objects[spares.count++] = self;
  return true;
}

}  // namespace weft::py
