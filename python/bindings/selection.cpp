// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "direct.h"
#include "errors.h"
#include "weft/array/bits.h"
#include "weft/array/convolve.h"
#include "weft/array/count.h"
#include "weft/array/cross.h"
#include "weft/array/divisors.h"
#include "weft/array/running.h"
#include "weft/array/select.h"
#include "weft/devices/operators.h"

namespace weft::py {

namespace {

/// What a few elements take costs less than releasing the interpreter.
constexpr std::int64_t kFew = 4096;
template <typename F>
auto at_once_or_unlocked(const NDArray& x, const F& f) {
  if (x.size() <= kFew) return f();
  nb::gil_scoped_release released;
  return f();
}

std::optional<std::pair<NDArray, NDArray>> extremes_along(const NDArray& x, int axis,
                                                          bool largest) {
  if (has_grid(x)) return grid_running_extremes(x, axis, largest);
  return x.on_host() ? running_extremes(x, axis, largest) : std::nullopt;
}

/// cummax, cummin: (values, positions) along an axis of an array.
template <bool largest>
PyObject* direct_running(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static constexpr const char* const parameters[] = {"x", "dim"};
    const PlainArguments<2> given(args, count, names, parameters);
    if (!given.plain || !given.at[0].ptr() || !is_ndarray(given.at[0].ptr())) return not_plain();
    const NDArray& x = unwrap(given.at[0].ptr());
    long axis = -1;
    if (PyObject* const dim = given.at[1].ptr()) {
      if (!PyLong_CheckExact(dim)) return not_plain();
      axis = PyLong_AsLong(dim);
    }
    if (PyErr_Occurred() || axis < -x.ndim() || axis >= x.ndim() || !(x.on_host() || has_grid(x)) ||
        is_complex(x.elem())) {
      PyErr_Clear();
      return not_plain();
    }
    if (axis < 0) axis += x.ndim();
    auto found =
        at_once_or_unlocked(x, [&] { return extremes_along(x, static_cast<int>(axis), largest); });
    if (!found) return not_plain();
    static PyObject* const both =
        nb::object(nb::module_::import_("weft._functions.running").attr("Extremes"))
            .release()
            .ptr();
    // As the class's own __new__, which is Python code, does.
    const nb::object parts = nb::make_tuple(nb::steal(wrap(std::move(found->first))),
                                            nb::steal(wrap(std::move(found->second))));
    const nb::tuple given_parts = nb::make_tuple(parts);
    return PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(both), given_parts.ptr(), nullptr);
  });
}

NDArray divisors(const NDArray& a, const NDArray& b, bool multiple) {
  if (has_grid(a)) return grid_divisors(a, b, multiple);
  return multiple ? least_multiples(a, b) : greatest_divisors(a, b);
}

template <bool multiple>
PyObject* direct_divisors(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (names || count != 2 || !is_ndarray(args[0]) || !is_ndarray(args[1])) return not_plain();
    const NDArray &a = unwrap(args[0]), &b = unwrap(args[1]);
    if (a.elem() != b.elem() || !(a.shape() == b.shape()) || !is_integer(a.elem()) ||
        a.device() != b.device() || !(a.on_host() || has_grid(a)))
      return not_plain();
    return wrap(at_once_or_unlocked(a, [&] { return divisors(a, b, multiple); }));
  });
}

/// bincount of one axis, without weights or with floats.
PyObject* direct_bincount(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static constexpr const char* const parameters[] = {"x", "weights", "minlength"};
    const PlainArguments<3> given(args, count, names, parameters);
    const nb::handle by = given(1, nb::none());
    if (!given.plain || !given.at[0].ptr() || !is_ndarray(given.at[0].ptr()) ||
        !(by.is_none() || is_ndarray(by.ptr())))
      return not_plain();
    const NDArray& x = unwrap(given.at[0].ptr());
    const NDArray* const weights = by.is_none() ? nullptr : &unwrap(by.ptr());
    if (weights &&
        (!weights->on_host() || !(weights->shape() == x.shape()) || !is_integer(x.elem()) ||
         !(weights->elem() == Elem::float32 || weights->elem() == Elem::float64)))
      return not_plain();
    std::int64_t least = 0;
    if (PyObject* const asked = given.at[2].ptr()) {
      if (!PyLong_CheckExact(asked)) return not_plain();
      least = PyLong_AsLongLong(asked);
    }
    constexpr std::int64_t kMost = 1 << 20;
    if (PyErr_Occurred() || least < 0 || least > kMost || !x.on_host() || x.ndim() != 1) {
      PyErr_Clear();
      return not_plain();
    }
    return wrap_plain(at_once_or_unlocked(x, [&] {
      return weights ? sums_from_zero(x, *weights, least) : counts_from_zero(x, least);
    }));
  });
}

/// partition of real numbers at one place along an axis.
PyObject* direct_partition(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static constexpr const char* const parameters[] = {"x", "kth", "axis"};
    const PlainArguments<3> given(args, count, names, parameters);
    PyObject *const place = given.at[1].ptr(), *const along = given.at[2].ptr();
    if (!given.plain || !given.at[0].ptr() || !is_ndarray(given.at[0].ptr()) || !place ||
        !PyLong_CheckExact(place) || (along && !PyLong_CheckExact(along)))
      return not_plain();
    const NDArray& x = unwrap(given.at[0].ptr());
    std::int64_t k = PyLong_AsLongLong(place), axis = along ? PyLong_AsLongLong(along) : -1;
    if (PyErr_Occurred() || axis < -x.ndim() || axis >= x.ndim() || !x.on_host() || x.size() == 0 ||
        is_complex(x.elem())) {
      PyErr_Clear();
      return not_plain();
    }
    if (axis < 0) axis += x.ndim();
    const std::int64_t n = x.shape()[static_cast<std::size_t>(axis)];
    if (k < -n || k >= n) return not_plain();
    const std::int64_t places[] = {k < 0 ? k + n : k};
    return wrap(
        at_once_or_unlocked(x, [&] { return partition(x, places, static_cast<int>(axis)); }));
  });
}

/// An array on the host and the axis that is given for it, as second argument, `axis` or `dim`.
struct AlongAxis {
  const NDArray* x = nullptr;
  std::optional<int> axis;
};

/// Nothing where the arguments are others, or illegal.
std::optional<AlongAxis> along_axis(PyObject* const* args, Py_ssize_t count, PyObject* names,
                                    const char* const (&parameters)[3]) {
  const PlainArguments<3> given(args, count, names, parameters);
  PyObject* const along = given(1, given.at[2]).ptr();
  if (!given.plain || count < 1 || count > 2 || !is_ndarray(args[0]) ||
      (given.at[1].ptr() && given.at[2].ptr()) || (along && !PyLong_CheckExact(along)))
    return std::nullopt;
  AlongAxis out{&unwrap(args[0]), std::nullopt};
  if (!out.x->on_host()) return std::nullopt;
  if (!along) return out;
  const long axis = PyLong_AsLong(along);
  if (PyErr_Occurred() || axis < -out.x->ndim() || axis >= out.x->ndim())
    return PyErr_Clear(), std::nullopt;
  out.axis = static_cast<int>(axis);
  return out;
}

/// cumsum, cumprod of an array along an axis.
template <ReduceOp op>
PyObject* direct_scan(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const auto given = along_axis(args, count, names, {"input", "axis", "dim"});
    // Without an axis all elements are in a row.
    if (!given || given->x->ndim() == 0 || (!given->axis && given->x->ndim() != 1))
      return not_plain();
    const NDArray& x = *given->x;
    return wrap(at_once_or_unlocked(x, [&] { return scan(op, x, given->axis.value_or(0)); }));
  });
}

template <typename T>
bool any_nan(const NDArray& x) {
  const T* const at = reinterpret_cast<const T*>(x.host());
  bool found = false;
  for (std::int64_t i = 0; i < x.size(); ++i) found |= at[i] != at[i];
  return found;
}

/// nansum, nanmax, nanmin of arrays of floats without NaN, of all elements or along an axis: the
/// plain reduction, whose result then has no NaN.
template <ReduceOp op>
PyObject* direct_without_nan(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const auto given = along_axis(args, count, names, {"x", "axis", "dim"});
    if (!given) return not_plain();
    const NDArray& x = *given->x;
    const bool wide = x.elem() == Elem::float64;
    if (x.size() == 0 || !(wide || x.elem() == Elem::float32)) return not_plain();
    const Axes axes = given->axis ? Axes{false, Dims{*given->axis}} : Axes{};
    NDArray out = at_once_or_unlocked(x, [&] { return reduce(op, x, axes, false); });
    if (wide ? any_nan<double>(out) : any_nan<float>(out)) return not_plain();
    return wrap(std::move(out));
  });
}

/// linalg.cross of two arrays of one shape and type.
PyObject* direct_cross(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    static constexpr const char* const parameters[] = {"x1", "x2", "axis"};
    const PlainArguments<3> given(args, count, names, parameters);
    PyObject* const along = given.at[2].ptr();
    if (!given.plain || count != 2 || !is_ndarray(args[0]) || !is_ndarray(args[1]) ||
        (along && !PyLong_CheckExact(along)))
      return not_plain();
    const NDArray &a = unwrap(args[0]), &b = unwrap(args[1]);
    const long axis = along ? PyLong_AsLong(along) : -1;
    if (PyErr_Occurred() || axis < -a.ndim() || axis >= a.ndim()) return PyErr_Clear(), not_plain();
    return wrap_plain(at_once_or_unlocked(a, [&] { return cross(a, b, static_cast<int>(axis)); }));
  });
}

}  // namespace

void bind_selection(nb::module_& m) {
  static PyMethodDef direct[] = {direct_definition("cummax", direct_running<true>),
                                 direct_definition("cummin", direct_running<false>),
                                 direct_definition("bincount", direct_bincount),
                                 direct_definition("partition", direct_partition),
                                 direct_definition("cross", direct_cross),
                                 direct_definition("nansum", direct_without_nan<ReduceOp::sum>),
                                 direct_definition("nanmax", direct_without_nan<ReduceOp::max>),
                                 direct_definition("nanmin", direct_without_nan<ReduceOp::min>),
                                 direct_definition("cumsum", direct_scan<ReduceOp::sum>),
                                 direct_definition("cumprod", direct_scan<ReduceOp::prod>),
                                 direct_definition("gcd", direct_divisors<false>),
                                 direct_definition("lcm", direct_divisors<true>)};
  for (PyMethodDef& d : direct)
    m.attr((std::string("_direct_") + d.ml_name).c_str()) = direct_function(d);
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  m.def("_running_extremes", &extremes_along, Unlocked());
  m.def(
      "_divisors",
      [](const NDArray& a, const NDArray& b, bool multiple) -> std::optional<NDArray> {
        if (!a.on_host() && !has_grid(a)) return std::nullopt;
        return divisors(a, b, multiple);
      },
      Unlocked());
  m.def("_counts_from_zero", &counts_from_zero, Unlocked());
  m.def("_sums_from_zero", &sums_from_zero, Unlocked());
  m.def("_counts_in_bins", &counts_in_bins, Unlocked());
  m.def("_packed_bits", &packed_bits, Unlocked());
  m.def("_unpacked_bits", &unpacked_bits, Unlocked());
  m.def("_counted_bits", &counted_bits, Unlocked());
  m.def("_parts_of_floats", &parts_of_floats, Unlocked());
  m.def("_with_elements_of", &with_elements_of);
  m.def("_convolve", &convolve, Unlocked());
  m.def(
      "_quantiles",
      [](const NDArray& x, const std::vector<double>& q, int axis, int between, bool skip_nan) {
        return quantiles(x, q, axis, static_cast<Between>(between), skip_nan);
      },
      Unlocked());
  m.def(
      "_partition",
      [](const NDArray& x, const std::vector<std::int64_t>& places, int axis) {
        return partition(x, places, axis);
      },
      Unlocked());
  m.def(
      "_argpartition",
      [](const NDArray& x, const std::vector<std::int64_t>& places, int axis) {
        return argpartition(x, places, axis);
      },
      Unlocked());
}

}  // namespace weft::py
