// SPDX-License-Identifier: Apache-2.0
#include "direct_calls.h"

#include <algorithm>
#include <utility>

#include "array_type.h"
#include "direct.h"
#include "errors.h"
#include "weft/array/convolve.h"

namespace weft::py {

namespace {

/// The arrays of a call without names, or null where there are others.
const NDArray* only_array(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return !names && count == 1 && is_ndarray(args[0]) ? &unwrap(args[0]) : nullptr;
}
std::pair<const NDArray*, const NDArray*> two_arrays(PyObject* const* args, Py_ssize_t count,
                                                     PyObject* names) {
  if (names || count != 2 || !is_ndarray(args[0]) || !is_ndarray(args[1])) return {};
  const NDArray &a = unwrap(args[0]), &b = unwrap(args[1]);
  if (a.elem() != b.elem() || a.device() != b.device() || !a.on_host()) return {};
  return {&a, &b};
}

PyObject* direct_ravel(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const NDArray* const x = only_array(args, count, names);
    if (!x || !x->is_contiguous()) return not_plain();
    return wrap(x->reshape(Dims{x->size()}));
  });
}

PyObject* direct_squeeze(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const NDArray* const x = only_array(args, count, names);
    if (!x) return not_plain();
    Dims shape, strides;
    for (int i = 0; i < x->ndim(); ++i) {
      if (x->shape()[i] == 1) continue;
      shape.push_back(x->shape()[i]);
      strides.push_back(x->strides()[i]);
    }
    return wrap(x->as_strided(shape, strides, x->offset()));
  });
}

PyObject* direct_swapaxes(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (names || count != 3 || !is_ndarray(args[0]) || !PyLong_CheckExact(args[1]) ||
        !PyLong_CheckExact(args[2]))
      return not_plain();
    const NDArray& x = unwrap(args[0]);
    const long a = PyLong_AsLong(args[1]), b = PyLong_AsLong(args[2]);
    if (PyErr_Occurred() || std::min(a, b) < -x.ndim() || std::max(a, b) >= x.ndim())
      return PyErr_Clear(), not_plain();
    return wrap(x.transpose(static_cast<int>(a), static_cast<int>(b)));
  });
}

/// Vectors with a vector, rows with rows.
PyObject* direct_inner(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const auto [a, b] = two_arrays(args, count, names);
    constexpr std::int64_t kFew = 4096;
    if (!a || a->ndim() != b->ndim() || a->ndim() < 1 || a->ndim() > 2 ||
        a->elem() == Elem::boolean || a->size() > kFew || b->size() > kFew)
      return not_plain();
    return wrap(matmul(*a, a->ndim() == 1 ? *b : b->transpose(0, 1)));
  });
}

PyObject* direct_outer(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const auto [a, b] = two_arrays(args, count, names);
    constexpr std::int64_t kFew = 256;
    if (!a || a->ndim() != 1 || b->ndim() != 1 || a->size() > kFew || b->size() > kFew)
      return not_plain();
    return wrap(apply(Op::multiply, Arg(a->reshape(Dims{a->size(), 1})),
                      Arg(b->reshape(Dims{1, b->size()}))));
  });
}

/// All sums of a long vector's products with a short one.
PyObject* direct_convolve(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const auto [a, b] = two_arrays(args, count, names);
    constexpr std::int64_t kFew = 4096, kShort = 64;
    if (!a || a->ndim() != 1 || b->ndim() != 1 || std::min(a->size(), b->size()) < 1 ||
        std::min(a->size(), b->size()) > kShort || std::max(a->size(), b->size()) > kFew ||
        !(a->elem() == Elem::float32 || a->elem() == Elem::float64))
      return not_plain();
    return wrap(a->size() < b->size() ? convolve(*b, *a) : convolve(*a, *b));
  });
}

}  // namespace

void bind_direct_calls(nb::module_& m) {
  static PyMethodDef direct[] = {direct_definition("ravel", direct_ravel),
                                 direct_definition("squeeze", direct_squeeze),
                                 direct_definition("swapaxes", direct_swapaxes),
                                 direct_definition("inner", direct_inner),
                                 direct_definition("outer", direct_outer),
                                 direct_definition("convolve", direct_convolve)};
  for (PyMethodDef& d : direct)
    m.attr((std::string("_direct_") + d.ml_name).c_str()) = direct_function(d);
}

}  // namespace weft::py
