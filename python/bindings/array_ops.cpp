// SPDX-License-Identifier: Apache-2.0
// Methods of NDArray and the array functions of the core under their plain names; python/weft gives
// them the signatures of the array API standard.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "direct.h"
#include "weft/array/combined_rows.h"
#include "weft/array/count.h"
#include "weft/array/extreme_of_numbers.h"
#include "weft/array/interpolate.h"
#include "weft/array/isin.h"
#include "weft/array/pad.h"
#include "weft/array/repeat.h"
#include "weft/array/slices.h"
#include "weft/devices/dispatch.h"
#include "weft/devices/grid.h"
#include "weft/devices/operators.h"
#include "weft/devices/reduce_program.h"
#include "weft/devices/scaled_matmul.h"
#include "weft/devices/warp_specialized.h"
#include "weft/elements/with_type.h"
#include "weft/fusion/chunked.h"
#include "weft/linalg/fft.h"
#include "weft/linalg/least_squares.h"
#include "weft/linalg/linalg.h"
#include "weft/runtime/backlog.h"
#include "weft/runtime/pool.h"

namespace weft::py {

namespace {

/// The bytes of an object that has some, such as a part of a file, without a copy.
struct BytesOf {
  Py_buffer view;
  std::string_view text;
  explicit BytesOf(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    text = {static_cast<const char*>(view.buf), static_cast<std::size_t>(view.len)};
  }
  BytesOf(const BytesOf&) = delete;
  ~BytesOf() { PyBuffer_Release(&view); }
};

/// Nested lists of the numbers; `rest`: their bytes, which are consumed.
template <typename T, typename Make>
nb::object nested(const Dims& shape, int axis, const T*& rest, const Make& make) {
  const std::int64_t n = shape[axis];
  nb::object list = nb::steal(PyList_New(n));
  for (std::int64_t i = 0; i < n; ++i) {
    PyObject* item = axis + 1 == shape.size() ? make(*rest++)
                                              : nested(shape, axis + 1, rest, make).release().ptr();
    if (!item) throw nb::python_error();
    PyList_SET_ITEM(list.ptr(), i, item);
  }
  return list;
}

nb::object numbers_of(const NDArray& a) {
  const auto as = [&]<typename T>(Elem e, T, const auto& make) {
    const NDArray same = a.elem() == e ? a : a.astype(e);
    std::vector<T> held(static_cast<std::size_t>(same.size()));
    same.read(held.data());
    const T* rest = held.data();
    return nested(a.shape(), 0, rest, make);
  };
  if (a.elem() == Elem::boolean)
    return as(Elem::uint8, std::uint8_t{}, [](std::uint8_t v) { return PyBool_FromLong(v); });
  if (is_complex(a.elem()))
    return as(Elem::complex128, std::complex<double>{},
              [](std::complex<double> v) { return PyComplex_FromDoubles(v.real(), v.imag()); });
  if (is_unsigned_int(a.elem()))
    return as(Elem::uint64, std::uint64_t{},
              [](std::uint64_t v) { return PyLong_FromUnsignedLongLong(v); });
  if (is_signed_int(a.elem()))
    return as(Elem::int64, std::int64_t{}, [](std::int64_t v) { return PyLong_FromLongLong(v); });
  return as(Elem::float64, double{}, [](double v) { return PyFloat_FromDouble(v); });
}

std::vector<int> ints(nb::handle o) {
  Dims dims = axis_numbers(o, "axes");
  return {dims.begin(), dims.end()};
}
ReduceOp reduce_op(const std::string& name) {
  for (int i = 0; i < reduce_op_count(); ++i) {
    if (info(static_cast<ReduceOp>(i)).name == name) return static_cast<ReduceOp>(i);
  }
  throw Error(ErrorKind::value, "array.reduce.unknown", cat("no reduction \"", name, "\""));
}
Arg argument(nb::handle o, NDArray& holder) {
  Arg arg{Scalar(0)};
  if (to_operand(o.ptr(), nullptr, holder, arg)) return arg;
  holder = to_array(o.ptr(), std::nullopt, Ref<Device>(), Copy::when_needed);
  return Arg(holder);
}

/// arange of plain integers or numbers without a type; none where the Python code has to see to it.
std::optional<NDArray> arange_plain(nb::handle start, nb::handle stop, nb::handle step,
                                    nb::handle device) {
  const nb::handle given[] = {start, stop, step};
  constexpr double kExact = 0x1p52;
  double values[3] = {};
  bool whole = true;
  for (int i = 0; i < 3; ++i) {
    if (i == 1 && stop.is_none()) continue;
    const bool real = PyFloat_CheckExact(given[i].ptr());
    if (!real && !PyLong_CheckExact(given[i].ptr())) return std::nullopt;
    whole = whole && !real;
    values[i] = PyFloat_AsDouble(given[i].ptr());
    if (PyErr_Occurred()) PyErr_Clear(), values[i] = kExact;
    if (!(std::abs(values[i]) < kExact)) return std::nullopt;
  }
  if (stop.is_none()) values[1] = values[0], values[0] = 0;
  if (values[2] == 0) return std::nullopt;
  double count = std::ceil((values[1] - values[0]) / values[2]);
  if (whole) {  // a rounded quotient may lie on the other side of a whole number
    const auto from = static_cast<std::int64_t>(values[0]),
               to = static_cast<std::int64_t>(values[1]), by = static_cast<std::int64_t>(values[2]),
               span = to - from;
    count = static_cast<double>(span / by + (span % by != 0 && (span < 0) == (by < 0) ? 1 : 0));
  }
  if (!(count < kExact)) return std::nullopt;
  return arange(device_from_python(device), whole ? Elem::int64 : kDefaultReal, values[0],
                values[2], count > 0 ? static_cast<std::int64_t>(count) : 0);
}
template <typename F>
auto unlocked(F&& f) {
  nb::gil_scoped_release nogil;
  return f();
}

PyObject* direct_arange(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<4> given(args, count, names, {"start", "stop", "step", "device"});
    static PyObject* const one = PyLong_FromLong(1);
    if (!given.plain || !given.at[0].ptr()) return not_plain();
    return wrap_plain(
        arange_plain(given.at[0], given(1, Py_None), given(2, one), given(3, Py_None)));
  });
}

/// sort and argsort of arrays along a numbered axis.
template <NDArray (*f)(const NDArray&, int, bool)>
PyObject* direct_order(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<2> given(args, count, names, {"x", "axis"});
    const bool plain = given.plain && count == 1 && Py_TYPE(args[0]) == ndarray_type() &&
                       (!given.at[1].ptr() || PyLong_CheckExact(given.at[1].ptr()));
    if (!plain) return not_plain();
    const long axis = given.at[1].ptr() ? PyLong_AsLong(given.at[1].ptr()) : -1;
    constexpr long kMost = 64;  // what lies beyond is refused in the Python function's words
    if (axis == -1 && PyErr_Occurred()) return PyErr_Clear(), not_plain();
    if (axis < -kMost || axis > kMost) return not_plain();
    const NDArray& x = unwrap(args[0]);
    constexpr std::int64_t kSmall = 4096;
    if (x.size() <= kSmall) return wrap(f(x, static_cast<int>(axis), false));
    return wrap(unlocked([&] { return f(x, static_cast<int>(axis), false); }));
  });
}

/// A limit of integers, brought into the type: one outside of it does not bind. None where the
/// Python code has to see to it.
std::optional<Scalar> whole_limit(nb::handle limit, Elem e) {
  if (!PyLong_CheckExact(limit.ptr())) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(limit.ptr(), &overflow);
  if (overflow != 0) return std::nullopt;
  std::int64_t found = value;
  with_type(e, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const auto most = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      found =
          std::max<std::int64_t>(found, static_cast<std::int64_t>(std::numeric_limits<T>::min()));
      if (found > 0 && static_cast<std::uint64_t>(found) > most)
        found = static_cast<std::int64_t>(most);
    }
  });
  return Scalar(found);
}

PyObject* direct_clip(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<3> given(args, count, names, {"x", "min", "max"});
    if (!given.plain || count < 1 || Py_TYPE(args[0]) != ndarray_type()) return not_plain();
    const NDArray& x = unwrap(args[0]);
    const bool whole = is_integer(x.elem());
    if (!(whole || is_real_float(x.elem())) || is_float8(x.elem())) return not_plain();
    if (!x.on_host() && !has_grid(x)) return not_plain();
    std::optional<Scalar> limits[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const nb::handle limit = given(k + 1, Py_None);
      if (limit.is_none()) continue;
      if (whole) {
        limits[k] = whole_limit(limit, x.elem());
        if (!limits[k]) return not_plain();
        continue;
      }
      if (!PyFloat_CheckExact(limit.ptr()) && !PyLong_CheckExact(limit.ptr())) return not_plain();
      const double value = PyFloat_AsDouble(limit.ptr());
      if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), not_plain();
      limits[k] = Scalar(value);
    }
    if (!limits[0] && !limits[1]) return not_plain();
    return wrap(unlocked([&] { return clipped(x, limits[0], limits[1]); }));
  });
}

/// Of two arrays of one shape.
PyObject* direct_copyto(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    if (names || count != 2 || Py_TYPE(args[0]) != ndarray_type() ||
        Py_TYPE(args[1]) != ndarray_type() || unwrap(args[0]).shape() != unwrap(args[1]).shape() ||
        unwrap(args[0]).elem() != unwrap(args[1]).elem() || !unwrap(args[0]).on_host())
      return not_plain();
    assign(unwrap(args[0]), unwrap(args[1]));
    return nb::none().release().ptr();
  });
}

/// dot of vectors and matrices on the host.
PyObject* direct_dot(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    if (names || count != 2) return not_plain();
    for (Py_ssize_t i = 0; i < 2; ++i) {
      if (Py_TYPE(args[i]) != ndarray_type()) return not_plain();
      const NDArray& x = unwrap(args[i]);
      if (!x.on_host() || x.ndim() < 1 || x.ndim() > 2) return not_plain();
    }
    const NDArray &a = unwrap(args[0]), &b = unwrap(args[1]);
    constexpr std::int64_t kSmall = 4096;
    if (a.size() <= kSmall && b.size() <= kSmall && a.ndim() == 1 && b.ndim() == 1)
      return wrap(matmul(a, b));
    return wrap(unlocked([&] { return matmul(a, b); }));
  });
}

PyObject* direct_count_nonzero(PyObject*, PyObject* const* args, Py_ssize_t count,
                               PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    if (names || count != 1 || Py_TYPE(args[0]) != ndarray_type()) return not_plain();
    const NDArray& x = unwrap(args[0]);
    if (!x.on_host()) return not_plain();
    constexpr std::int64_t kSmall = 4096;
    const std::int64_t found =
        x.size() <= kSmall ? count_marked(x) : unlocked([&] { return count_marked(x); });
    return wrap(full(x.device(), Elem::int64, Dims{}, Scalar(found)));
  });
}

}  // namespace

void bind_array_ops(nb::module_& m) {
  nb::handle type(reinterpret_cast<PyObject*>(ndarray_type()));
  auto method = [&](const char* name, auto f, auto... extra) {
    type.attr(name) =
        nb::cpp_function(f, nb::scope(type), nb::name(name), nb::is_method(), extra...);
  };
  // Handles are shared by count: Python holds one through a capsule-like owner.
  struct HandleOwner {
    Ref<Storage> storage;
  };
  nb::class_<HandleOwner>(m, "StorageHandle", "Memory on a device, shared by the views over it.")
      .def_prop_ro("nbytes", [](const HandleOwner& h) { return h.storage->bytes(); })
      .def_prop_ro("device",
                   [](const HandleOwner& h) { return device_object(h.storage->device()); })
      .def(
          "ptr",
          [](const HandleOwner& h) {
            runtime::share_memory(*h.storage->device());
            return h.storage->address();
          },
          "The address, as the device means it.")
      .def("__eq__",
           [](const HandleOwner& a, const HandleOwner& b) { return a.storage == b.storage; })
      .def("__hash__", [](const HandleOwner& a) { return std::hash<void*>()(a.storage.get()); });
  m.def("_triangle", [](const NDArray& x, std::int64_t k, bool lower) -> std::optional<NDArray> {
    NDArray out = unlocked(
        [&] { return x.on_host() ? triangle(x, k, lower) : device_triangle(x, k, lower); });
    return out.defined() ? std::optional<NDArray>(out) : std::nullopt;
  });
  m.def(
      "_softmax",
      [](const NDArray& x, int axis) { return unlocked([&] { return softmax(x, axis); }); },
      nb::arg("x"), nb::arg("axis") = -1);
  m.def(
      "_log_softmax",
      [](const NDArray& x, int axis) { return unlocked([&] { return log_softmax(x, axis); }); },
      nb::arg("x"), nb::arg("axis") = -1);
  m.def(
      "_logsumexp",
      [](const NDArray& x, nb::handle axis, bool keepdims) {
        Axes axes = axes_of(axis);
        return unlocked([&] { return logsumexp(x, axes, keepdims); });
      },
      nb::arg("x"), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false);
  m.def(
      "_layer_norm",
      [](const NDArray& x, const NDArray& scale, const NDArray& shift, double eps) {
        return unlocked([&] { return layer_norm(x, scale, shift, eps); });
      },
      nb::arg("x"), nb::arg("scale"), nb::arg("shift"), nb::arg("eps") = 1e-5);
  // Bytes as int32: of a copy where rows are not compact or do not begin at multiples of 16 bytes.
  m.def("_as_words", [](const NDArray& a) {
    const NDArray x = a.is_contiguous() && a.offset() % 16 == 0 ? a : a.copy();
    Dims shape = x.shape();
    WEFT_CHECK(elem_bytes(x.elem()) == 1 && shape.size() > 0 && shape[shape.size() - 1] % 4 == 0,
               "words of ", x.size(), " elements");
    shape[shape.size() - 1] /= 4;
    return NDArray::make(x.handle(), Elem::int32, shape, nullptr, x.offset() / 4);
  });
  m.def("_handle", [](const NDArray& a) { return HandleOwner{a.handle()}; });
  m.def(
      "_make",
      [](nb::handle shape, nb::handle strides, nb::handle device, nb::handle handle,
         std::int64_t offset, nb::handle dtype) {
        Elem e = optional_elem(dtype).value_or(kDefaultReal);
        Dims extents = dims_of(shape, "shape");
        Ref<Storage> storage;
        if (!handle.is_none()) {
          if (is_ndarray(handle.ptr())) storage = unwrap(handle.ptr()).handle();
          else storage = nb::cast<HandleOwner&>(handle).storage;
        } else {
          storage = NDArray::empty(device_from_python(device), e, extents).handle();
        }
        if (strides.is_none()) return NDArray::make(storage, e, extents, nullptr, offset);
        Dims steps = dims_of(strides, "strides");
        return NDArray::make(storage, e, extents, &steps, offset);
      },
      nb::arg("shape"), nb::arg("strides").none(), nb::arg("device").none(),
      nb::arg("handle").none(), nb::arg("offset"), nb::arg("dtype").none());

  method(
      "is_compact", [](const NDArray& a) { return a.is_compact(); },
      "Row-major without gaps, over the whole handle?");
  method(
      "is_contiguous", [](const NDArray& a) { return a.is_contiguous(); },
      "Row-major without gaps?");
  method(
      "compact", [](const NDArray& a) { return a.is_compact() ? a : a.copy(); },
      "Itself when compact, else a compact copy.");
  method("copy", [](const NDArray& a) { return a.copy(); });
  method(
      "astype",
      [](const NDArray& a, nb::handle dtype, bool copy) {
        Elem e = elem_from_python(dtype.ptr());
        return !copy && e == a.elem() ? a : convert(a, e);
      },
      nb::arg("dtype"), nb::arg("copy") = true);
  method("to",
         [](const NDArray& a, nb::handle device) { return a.to(device_from_python(device)); });
  method("fill", [](const NDArray& a, nb::handle value) {
    assign(a, full(a.device(), a.elem(), Dims{}, scalar_of(value.ptr())));
  });
  method("permute", [](const NDArray& a, nb::args axes) {
    return a.permute(ints(axes.size() == 1 ? axes[0].ptr() : axes.ptr()));
  });
  method("as_strided", [](const NDArray& a, nb::handle shape, nb::handle strides) {
    return a.as_strided(dims_of(shape, "shape"), dims_of(strides, "strides"), a.offset());
  });
  method("broadcast_to", [](const NDArray& a, nb::handle shape) {
    return a.broadcast_to(dims_of(shape, "shape"));
  });
  method("flip", [](const NDArray& a, nb::handle axes) { return a.flip(ints(axes)); });
  method("tolist", [](nb::handle self) -> nb::object {
    const NDArray& a = unwrap(self.ptr());
    if (a.ndim() == 0) return self.attr("item")();
    return numbers_of(a);
  });

  m.def(
      "_asarray",
      [](nb::handle o, nb::handle dtype, nb::handle device, nb::handle copy) {
        Copy how = copy.is_none()         ? Copy::when_needed
                   : nb::cast<bool>(copy) ? Copy::always
                                          : Copy::never;
        Ref<Device> d = device.is_none() ? Ref<Device>() : device_from_python(device);
        return to_array(o.ptr(), optional_elem(dtype), d, how);
      },
      nb::arg("obj").none(), nb::arg("dtype").none(), nb::arg("device").none(),
      nb::arg("copy").none());
  m.def(
      "_empty",
      [](nb::handle shape, nb::handle dtype, nb::handle device) {
        return NDArray::empty(device_from_python(device),
                              optional_elem(dtype).value_or(kDefaultReal), dims_of(shape, "shape"));
      },
      nb::arg("shape"), nb::arg("dtype").none(), nb::arg("device").none());
  m.def(
      "_full",
      [](nb::handle shape, nb::handle value, nb::handle dtype, nb::handle device) {
        Scalar s = scalar_of(value.ptr());
        std::optional<Elem> e = optional_elem(dtype);
        return full(device_from_python(device),
                    e         ? *e
                    : s.large ? Elem::uint64
                              : elem_of(s),
                    dims_of(shape, "shape"), s);
      },
      nb::arg("shape"), nb::arg("value"), nb::arg("dtype").none(), nb::arg("device").none());
  m.def(
      "_eye",
      [](std::int64_t rows, std::int64_t columns, std::int64_t k, nb::handle dtype,
         nb::handle device) {
        const Elem e = optional_elem(dtype).value_or(kDefaultReal);
        const NDArray out =
            full(device_from_python(device), e, Dims{rows, columns}, Scalar(std::int64_t{0}));
        if (k <= -rows || k >= columns) return out;
        const std::int64_t row = k < 0 ? -k : 0, column = k < 0 ? 0 : k;
        const std::int64_t count = std::min(rows - row, columns - column);
        const Dims step{columns + 1};
        const NDArray ones = full(out.device(), e, Dims{1}, Scalar(std::int64_t{1}));
        assign(NDArray::make(out.handle(), e, Dims{count}, &step, row * columns + column),
               ones.broadcast_to(Dims{count}));
        return out;
      },
      nb::arg("rows"), nb::arg("columns"), nb::arg("k"), nb::arg("dtype").none(),
      nb::arg("device").none());
  m.def(
      "_arange",
      [](double start, double step, std::int64_t count, Elem e, nb::handle device) {
        return arange(device_from_python(device), e, start, step, count);
      },
      nb::arg("start"), nb::arg("step"), nb::arg("count"), nb::arg("dtype"),
      nb::arg("device").none());
  m.def(
      "_reduce",
      [](const std::string& name, const NDArray& x, nb::handle axis, bool keepdims,
         nb::handle dtype) {
        ReduceOp op = reduce_op(name);
        Axes axes = axes_of(axis);
        std::optional<Elem> e = optional_elem(dtype);
        return unlocked([&] { return reduce(op, x, axes, keepdims, e); });
      },
      nb::arg("name"), nb::arg("x"), nb::arg("axis").none(), nb::arg("keepdims"),
      nb::arg("dtype").none());
  m.def(
      "_extreme_of_numbers",
      [](bool largest, const NDArray& x, nb::handle axis, bool keepdims) {
        const Axes axes = axes_of(axis);
        return unlocked([&] { return extreme_of_numbers(largest, x, axes, keepdims); });
      },
      nb::arg("largest"), nb::arg("x"), nb::arg("axis").none(), nb::arg("keepdims"));
  m.def(
      "_reduce_slices",
      [](const std::string& name, const NDArray& x, const NDArray& places) {
        return unlocked([&, op = reduce_op(name)] { return reduce_slices(op, x, places); });
      },
      nb::arg("name"), nb::arg("x"), nb::arg("places"));
  m.def(
      "_moments",  // None where the composed form has to do
      [](int moment, const NDArray& x, nb::handle axis, bool keepdims,
         double correction) -> std::optional<NDArray> {
        const Axes axes = axes_of(axis);
        NDArray out = unlocked(
            [&] { return moments(static_cast<Moment>(moment), x, axes, keepdims, correction); });
        return out.defined() ? std::optional<NDArray>(out) : std::nullopt;
      },
      nb::arg("moment"), nb::arg("x"), nb::arg("axis").none(), nb::arg("keepdims"),
      nb::arg("correction"));
  m.def(
      "_clipped",
      [](const NDArray& x, nb::handle low, nb::handle high) -> std::optional<NDArray> {
        std::optional<Scalar> limits[2];
        if (!low.is_none()) limits[0] = scalar_of(low.ptr());
        if (!high.is_none()) limits[1] = scalar_of(high.ptr());
        NDArray out = unlocked([&] { return clipped(x, limits[0], limits[1]); });
        return out.defined() ? std::optional<NDArray>(out) : std::nullopt;
      },
      nb::arg("x"), nb::arg("low").none(), nb::arg("high").none());
  m.def(
      "_scan",
      [](const std::string& name, const NDArray& x, int axis, nb::handle dtype) {
        return scan(reduce_op(name), x, axis, optional_elem(dtype));
      },
      nb::arg("name"), nb::arg("x"), nb::arg("axis"), nb::arg("dtype").none());
  m.def(
      "_arg_reduce",
      [](bool largest, const NDArray& x, std::optional<int> axis, bool keepdims) {
        return arg_reduce(largest, x, axis, keepdims);
      },
      nb::arg("largest"), nb::arg("x"), nb::arg("axis").none(), nb::arg("keepdims"));
  m.def("_where", [](const NDArray& condition, nb::handle a, nb::handle b) {
    NDArray held[2];
    Arg x = argument(a, held[0]), y = argument(b, held[1]);
    return where(condition, x, y);
  });
  m.def("_concat",
        [](const std::vector<NDArray>& arrays, int axis) { return concat(arrays, axis); });
  m.def("_stack", [](const std::vector<NDArray>& arrays, int axis) { return stack(arrays, axis); });
  m.def(
      "_repeat",
      [](const NDArray& x, std::int64_t times, std::optional<int> axis) {
        return unlocked([&] {
          return axis ? repeat(x, times, *axis) : repeat(x.reshape(Dims{x.size()}), times, 0);
        });
      },
      nb::arg("x"), nb::arg("times"), nb::arg("axis").none());
  m.def("_roll", [](const NDArray& x, std::int64_t shift, int axis) {
    return unlocked([&] { return roll(x, shift, axis); });
  });
  m.def("_pad",
        [](const NDArray& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
           nb::handle value) {
          const Scalar number = scalar_of(value.ptr());
          return unlocked([&] { return pad(x, widths, number); });
        });
  m.def(
      "_scaled_matmul",
      [](const NDArray& a, const NDArray& b, const std::optional<NDArray>& scale_a,
         const std::optional<NDArray>& scale_b, const std::optional<NDArray>& bias,
         const std::string& dtype) {
        const ProductScales scales{scale_a.value_or(NDArray()), scale_b.value_or(NDArray()),
                                   bias.value_or(NDArray())};
        const Elem elem = elem_of(parse_dtype(dtype));
        return unlocked([&] { return scaled_matmul(a, b, scales, elem); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("scale_a").none(), nb::arg("scale_b").none(),
      nb::arg("bias").none(), nb::arg("dtype"));
  m.def(
      "_gemm_of_tiles",
      [](const NDArray& out, const NDArray& a, const NDArray& b, std::int64_t rows,
         std::int64_t columns, std::int64_t parts, std::int64_t cluster,
         std::int64_t cluster_columns, bool turned) {
        const device::Grid& grid = device::grid_of(out.device());
        const rules::GemmMachine machine = rules::gemm_machine(grid);
        const rules::GemmDecisions tile{rows,
                                        columns,
                                        rules::gemm_slots(machine, rows, columns),
                                        parts,
                                        rules::gemm_blocks(machine, cluster * cluster_columns),
                                        cluster,
                                        cluster_columns,
                                        turned};
        return device::warp_specialized_product(out, a, b, &tile);
      },
      nb::call_guard<nb::gil_scoped_release>(),
      "out = a @ b of 16-bit arrays on tensor cores by a stated tile, for benches.");
  static PyMethodDef direct[] = {direct_definition("arange", direct_arange),
                                 direct_definition("sort", direct_order<sort>),
                                 direct_definition("argsort", direct_order<argsort>),
                                 direct_definition("clip", direct_clip),
                                 direct_definition("copyto", direct_copyto),
                                 direct_definition("count_nonzero", direct_count_nonzero),
                                 direct_definition("dot", direct_dot)};
  for (PyMethodDef& d : direct)
    m.attr((std::string("_direct_") + d.ml_name).c_str()) = direct_function(d);
  m.def("_matmul",
        [](const NDArray& a, const NDArray& b) { return unlocked([&] { return matmul(a, b); }); });
  m.def("_length", [](const NDArray& x) -> std::optional<NDArray> {
    const bool plain = x.on_host() && x.is_contiguous();
    if (!plain || (x.elem() != Elem::float32 && x.elem() != Elem::float64)) return std::nullopt;
    return unlocked([&] {
      const NDArray line = x.reshape(Dims{x.size()});
      return apply(Op::sqrt, Arg(matmul(line, line)));
    });
  });
  m.def("_sort", [](const NDArray& x, int axis, bool descending) {
    return unlocked([&] { return sort(x, axis, descending); });
  });
  m.def("_argsort", [](const NDArray& x, int axis, bool descending) {
    return unlocked([&] { return argsort(x, axis, descending); });
  });
  m.def("_run_values", [](const NDArray& x) {
    return unlocked([&] {
      if (!x.on_host()) return grid_run_values(x);
      return select_marked(x, run_starts(x).slice(0, 0, x.size(), 1));
    });
  });
  m.def("_run_bounds",
        [](const NDArray& x) { return unlocked([&] { return grid_run_bounds(x); }); });
  m.def("_run_starts", [](const NDArray& x) {
    return unlocked([&] { return x.on_host() ? run_starts(x) : grid_run_starts(x); });
  });
  m.def("_topk", [](const NDArray& x, std::int64_t k, int axis, bool largest) {
    return unlocked([&] { return topk_places(x, k, axis, largest); });
  });
  m.def("_unstack", [](const NDArray& x, int axis) {
    nb::list out;
    for (std::int64_t i = 0; i < x.shape()[axis]; ++i)
      out.append(nb::steal(wrap(x.select(axis, i))));
    return out;
  });
  m.def("_repeat_places", [](const NDArray& counts) { return repeat_places(counts); });
  m.def("_searchsorted",
        [](const NDArray& x, const NDArray& v, bool right) { return searchsorted(x, v, right); });
  m.def(
      "_diagonal",
      [](const NDArray& x, int first, int second, std::int64_t offset) {
        return diagonal(x, first, second, offset);
      },
      nb::arg("x"), nb::arg("first"), nb::arg("second"), nb::arg("offset") = 0);
  m.def("_take", [](const NDArray& x, const NDArray& i, int axis) { return take(x, i, axis); });
  m.def("_take_along_axis",
        [](const NDArray& x, const NDArray& i, int axis) { return take_along_axis(x, i, axis); });
  m.def("_gather", [](const NDArray& x, const std::vector<NDArray>& i) { return gather(x, i); });
  m.def("_scatter", [](const NDArray& x, const std::vector<NDArray>& i, const NDArray& v,
                       bool accumulate) { scatter(x, i, v, accumulate); });
  m.def("_scatter_extreme", [](const NDArray& x, const std::vector<NDArray>& i, const NDArray& v,
                               bool largest) { scatter_extreme(x, i, v, largest); });
  m.def("_scatter_product", [](const NDArray& x, const std::vector<NDArray>& i, const NDArray& v) {
    scatter_product(x, i, v);
  });
  m.def("_add_rows", [](const NDArray& x, const NDArray& to, const NDArray& table,
                        const NDArray& from) { add_rows(x, to, table, from); });
  m.def("_set_deterministic", &set_deterministic);
  m.def("_is_deterministic", &is_deterministic);
  m.def("_nonzero", [](const NDArray& x) { return nonzero(x); });
  m.def(
      "_reshape",
      [](const NDArray& x, nb::handle shape, std::optional<bool> copy) {
        Dims extents = dims_of(shape, "shape");
        if (copy && *copy) return x.copy().reshape(extents);
        NDArray out = x.reshape(extents);
        if (copy && out.handle() != x.handle()) {
          throw Error(ErrorKind::value, "array.reshape.copy",
                      cat("copy=False, but reshape of ", describe(x), " to ", to_string(extents),
                          " must copy"));
        }
        return out;
      },
      nb::arg("x"), nb::arg("shape"), nb::arg("copy").none());
  m.def("_expand_dims", [](const NDArray& x, int axis) { return x.expand_dims(axis); });
  m.def("_squeeze", [](const NDArray& x, nb::handle axis) { return x.squeeze(ints(axis)); });
  m.def("_assign", [](const NDArray& dst, const NDArray& src) { assign(dst, src); });
  m.def("_broadcast_shapes", [](const std::vector<Dims>& shapes) {
    std::vector<const Dims*> pointers;
    for (const Dims& d : shapes) pointers.push_back(&d);
    return broadcast_shapes(pointers, "broadcast_shapes");
  });
  m.def("_is_in", [](const NDArray& x, const NDArray& values) {
    return unlocked([&] { return is_in(x, values); });
  });
  m.def("_interpolate",
        [](const NDArray& x, const NDArray& xp, const NDArray& fp, double left, double right) {
          return unlocked([&] { return interpolate(x, xp, fp, left, right); });
        });
  m.def("_histogram", [](const NDArray& x, std::int64_t bins) -> std::optional<NDArray> {
    if (x.on_host()) return unlocked([&] { return counts_of(x, bins); });
    if (!has_grid(x)) return std::nullopt;
    return unlocked([&] { return grid_histogram(x.contiguous(), bins); });
  });
  m.def("_fft", [](const NDArray& x, std::int64_t n, int axis, bool inverse, double scale) {
    return unlocked([&] { return fft(x, n, axis, inverse, scale); });
  });
  m.def("_rfft", [](const NDArray& x, std::int64_t n, int axis, double scale) {
    return unlocked([&] { return rfft(x, n, axis, scale); });
  });
  m.def("_irfft", [](const NDArray& x, std::int64_t n, int axis, double scale) {
    return unlocked([&] { return irfft(x, n, axis, scale); });
  });
  m.def("_fft_last_axes",
        [](const NDArray& x, int count, bool inverse, bool real, std::int64_t n,
           double scale) -> std::optional<NDArray> {
          if (!has_grid(x)) return std::nullopt;
          const FftKind kind = real      ? inverse ? FftKind::real_inverse : FftKind::real_forward
                               : inverse ? FftKind::inverse
                                         : FftKind::forward;
          return unlocked([&] { return fft_last_axes(x, count, kind, n, scale); });
        });
  m.def(
      "_solve",
      [](const NDArray& a, const NDArray& b, const std::string& name) {
        return unlocked([&] { return linalg::solve(a, b, name); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("name") = "solve");
  m.def("_inverse", [](const NDArray& a) { return unlocked([&] { return linalg::inverse(a); }); });
  m.def("_slogdet", [](const NDArray& a) {
    linalg::SignedLog r = linalg::slogdet(a);
    return nb::make_tuple(r.sign, r.log, r.determinant);
  });
  m.def("_cholesky", [](const NDArray& a, bool upper) { return linalg::cholesky(a, upper); });
  m.def("_try_cholesky", [](const NDArray& a, bool upper) {
    linalg::TriangularFactor r = linalg::try_cholesky(a, upper);
    return nb::make_tuple(r.factor, r.info);
  });
  m.def("_lu", [](const NDArray& a) {
    linalg::Elimination r = linalg::lu(a);
    return nb::make_tuple(r.lu, r.pivots, r.info);
  });
  m.def("_lu_solve", &linalg::lu_solve);
  m.def("_solve_triangular", &linalg::solve_triangular);
  m.def("_eigh", [](const NDArray& a) {
    linalg::Eigen r = linalg::eigh(a);
    return nb::make_tuple(r.values, r.vectors);
  });
  m.def("_eigvalsh", [](const NDArray& a) { return linalg::eigh(a, false).values; });
  m.def("_eig", [](const NDArray& a) {
    linalg::Eigen r = linalg::eig(a);
    return nb::make_tuple(r.values, r.vectors);
  });
  m.def("_svdvals", [](const NDArray& a) { return linalg::svd(a, linalg::SvdPart::values).s; });
  m.def("_svd", [](const NDArray& a, bool full) {
    linalg::Svd r = linalg::svd(a, full ? linalg::SvdPart::full : linalg::SvdPart::thin);
    return nb::make_tuple(r.u, r.s, r.vh);
  });
  m.def("_least_squares", [](const NDArray& a, const NDArray& b, double rcond) {
    const linalg::LeastSquares r = linalg::least_squares(a, b, rcond);
    return nb::make_tuple(r.solution, r.sums, r.rank, r.singular_values);
  });
  m.def("_qr", [](const NDArray& a, bool complete) {
    linalg::Qr r = linalg::qr(a, complete);
    return nb::make_tuple(r.q, r.r);
  });
  m.def("_to_bytes", [](const NDArray& x) {
    std::string bytes(static_cast<std::size_t>(x.nbytes()), '\0');
    x.read(bytes.data());
    return nb::bytes(bytes.data(), bytes.size());
  });
  m.def("_from_bytes", [](nb::handle bytes, nb::handle shape, Elem e) {
    const BytesOf given(bytes);
    NDArray out = NDArray::empty(default_device(), e, dims_of(shape, "shape"));
    if (static_cast<std::size_t>(out.nbytes()) != given.text.size()) {
      throw Error(ErrorKind::io, "array.bytes.size",
                  cat(describe(out), " needs ", out.nbytes(), " bytes, got ", given.text.size()));
    }
    if (given.text.empty()) return out;
    if (e != Elem::boolean) {
      out.device()->upload(*out.handle(), 0, given.text.data(), given.text.size());
      return out;
    }
    std::string truths(given.text);  // kernels read 0 and 1, files hold anything
    for (char& c : truths) c = c ? 1 : 0;
    out.device()->upload(*out.handle(), 0, truths.data(), truths.size());
    return out;
  });
  m.def(
      "set_threads", [](int n) { runtime::Pool::shared().limit(n); },
      "At most n host threads compute.");
  m.def("get_threads", [] { return runtime::Pool::shared().threads(); });
}

}  // namespace weft::py
