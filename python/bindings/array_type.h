// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python type of arrays: a plain CPython type around weft::NDArray, because operators, indexing
// and reshape must cost no more than a few dozen nanoseconds. Other bindings take and return
// NDArray by value through the type caster below.

#include <nanobind/nanobind.h>

#include "errors.h"
#include "weft/array/ops.h"

namespace weft::py {

struct PyNDArray {
  PyObject_HEAD NDArray array;
  PyObject* weak;               ///< weak references
  const runtime::Storage* own;  ///< of a number that scalars.cpp made: its memory then
};

/// weft.NDArray; set by bind_array_type.
PyTypeObject* ndarray_type();
inline bool is_ndarray(PyObject* o) {
  return Py_TYPE(o) == ndarray_type() || PyType_IsSubtype(Py_TYPE(o), ndarray_type());
}
inline NDArray& unwrap(PyObject* o) { return reinterpret_cast<PyNDArray*>(o)->array; }
/// A new reference.
PyObject* wrap(NDArray array);

// ---- element types
PyObject* dtype_object(Elem e);  // borrowed
/// Our dtype, a name, a NumPy dtype or scalar type, Python's bool, int, float, complex.
Elem elem_from_python(PyObject* o);
/// None gives `otherwise`.
std::optional<Elem> optional_elem(nb::handle o);

// ---- devices
nb::object device_object(const Ref<Device>& device);
/// None gives the default device.
Ref<Device> device_from_python(nb::handle o);
const Ref<Device>& default_device();

// ---- arguments (convert.cpp)
enum class Copy : std::uint8_t { never, when_needed, always };
/// An array of anything that is one, or nested sequences of numbers.
NDArray to_array(PyObject* o, std::optional<Elem> dtype, Ref<Device> device, Copy copy);
bool is_number(PyObject* o);
Scalar scalar_of(PyObject* o);
/// Array or number as an operand; `holder` keeps what is converted. false: not an operand.
bool to_operand(PyObject* o, const NDArray* other, NDArray& holder, Arg& out);
/// A list or tuple of numbers and arrays, nested or not, as an operand beside an array: numbers
/// take on the array's type where it is of floats or complex numbers, else they are as asarray
/// makes them.
bool is_list_of_numbers(PyObject* o);
NDArray list_beside(PyObject* o, const NDArray& other);
Dims dims_of(nb::handle o, const char* what);
/// One of them; `asked` is what the refusal shows.
std::int64_t extent_of(nb::handle item, nb::handle asked, const char* what);
/// The same for axes, which are small numbers. Throws Error(index, "array.axis.range").
Dims axis_numbers(nb::handle o, const char* what);
/// All axes for None.
Axes axes_of(nb::handle o);
NDArray array_from_buffer(PyObject* o, Copy copy, bool& ok);
/// device: where the result shall be; null leaves it where it is.
NDArray from_dlpack(PyObject* o, const Ref<Device>& device, Copy copy);
NDArray from_cuda_interface(PyObject* o);

// ---- indexing (index.cpp)
PyObject* get_item(const NDArray& array, PyObject* key);
void set_item(const NDArray& array, PyObject* key, PyObject* value);
/// Index arrays and the view that they apply to, for gradients.
std::vector<NDArray> index_arrays(const NDArray& array, PyObject* key, NDArray& view,
                                  int& position);

void bind_device(nb::module_& m);
void bind_array_type(nb::module_& m);
void bind_array_ops(nb::module_& m);
void bind_operations(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_attention(nb::module_& m);
void bind_contraction(nb::module_& m);
void bind_lazy(nb::module_& m);
void bind_compiled_call(nb::module_& m);
void bind_chunked_calls(nb::module_& m);

}  // namespace weft::py

namespace nanobind::detail {
template <>
struct type_caster<weft::NDArray> {
  NB_TYPE_CASTER(weft::NDArray, const_name("weft.NDArray"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    if (!weft::py::is_ndarray(src.ptr())) return false;
    value = weft::py::unwrap(src.ptr());
    return true;
  }
  static handle from_cpp(const weft::NDArray& array, rv_policy, cleanup_list*) noexcept {
    return weft::py::wrap(array);
  }
};
template <>
struct type_caster<weft::Elem> {
  NB_TYPE_CASTER(weft::Elem, const_name("weft.dtype"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
      value = weft::py::elem_from_python(src.ptr());
      return true;
    } catch (...) {
      return false;
    }
  }
  static handle from_cpp(weft::Elem e, rv_policy, cleanup_list*) noexcept {
    return handle(weft::py::dtype_object(e)).inc_ref();
  }
};
template <>
struct type_caster<weft::Dims> {
  NB_TYPE_CASTER(weft::Dims, const_name("tuple[int, ...]"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    try {
      value = weft::py::dims_of(src, "shape");
      return true;
    } catch (...) {
      PyErr_Clear();
      return false;
    }
  }
  static handle from_cpp(const weft::Dims& dims, rv_policy, cleanup_list*) noexcept {
    PyObject* out = PyTuple_New(dims.size());
    for (int i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(dims[i]));
    return out;
  }
};
}  // namespace nanobind::detail
