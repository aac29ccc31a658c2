// SPDX-License-Identifier: Apache-2.0
// x[key] and x[key] = value: integers, slices, None, ..., integer and boolean arrays, as NumPy has
// them.

#include <algorithm>
#include <cstring>

#include "array_type.h"
#include "shown.h"
#include "weft/array/into.h"
#include "weft/devices/operators.h"

namespace weft::py {

namespace {

[[noreturn]] void out_of_range(std::int64_t i, int axis, const NDArray& a) {
  throw Error(ErrorKind::index, "array.index.range",
              cat("index ", i, " is outside axis ", axis, " of ", describe(a)))
      .note(cat("legal: ", -a.shape()[axis], " to ", a.shape()[axis] - 1));
}

bool is_index_array(PyObject* o) {
  return is_ndarray(o) || PyList_Check(o) || PyObject_HasAttrString(o, "__weft_array__") ||
         (PyObject_CheckBuffer(o) && !PyLong_Check(o) && !PyBytes_Check(o));
}

NDArray slice_axis(const NDArray& a, int axis, PyObject* o) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(o, &start, &stop, &step) < 0) {
    const bool type = PyErr_ExceptionMatches(PyExc_TypeError);
    if (!type && !PyErr_ExceptionMatches(PyExc_ValueError)) throw nb::python_error();
    PyErr_Clear();
    const std::string got = shown(o);
    if (type)
      throw Error(ErrorKind::dtype, "array.index.slice", cat("an index has the ends ", got))
          .note("legal: integers or None");
    throw Error(ErrorKind::value, "array.index.step", cat("an index has the step 0: ", got));
  }
  Py_ssize_t count =
      PySlice_AdjustIndices(static_cast<Py_ssize_t>(a.shape()[axis]), &start, &stop, step);
  return a.slice(axis, start, count, step);
}

/// The position that an integer of a key names along one axis of the array as the user has it.
std::int64_t to_position(PyObject* o, const NDArray& a, int axis) {
  Py_ssize_t i = PyNumber_AsSsize_t(o, nullptr);  // beyond 64 bits: the nearest, which no array has
  if (i == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    throw Error(ErrorKind::index, "array.index.type",
                cat("an index cannot be ", shown(o), ", which gives no integer"))
        .note("legal: integers, slices, None, ..., arrays of integers or bool");
  }
  std::int64_t n = a.shape()[axis];
  if (i < -n || i >= n) out_of_range(i, axis, a);
  return i < 0 ? i + n : i;
}

/// One number that names a position: Python's, NumPy's, or an array of the host without dimensions.
bool is_position(PyObject* o) {
  if (PyLong_CheckExact(o)) return true;
  if (is_ndarray(o))
    return unwrap(o).ndim() == 0 && unwrap(o).on_host() && is_integer(unwrap(o).elem());
  const char* const name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.int", 9) == 0 || std::strncmp(name, "numpy.uint", 10) == 0;
}

struct Parsed {
  NDArray view;                 // after the basic parts; indexed axes stand at `position`...
  std::vector<NDArray> arrays;  // one for each indexed axis, which were moved to the front of view
  int position = 0;             // where the broadcast index axes go in the result
  bool mask_only = false;
};

Parsed parse(const NDArray& array, PyObject* key) {
  std::vector<PyObject*> items;
  if (PyTuple_Check(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      items.push_back(PyTuple_GET_ITEM(key, i));
  } else {
    items.push_back(key);
  }
  // Convert index arrays first: how many axes does each use?
  std::vector<NDArray> converted(items.size());
  bool any_array = false;
  int used = 0, ellipses = 0;
  for (std::size_t k = 0; k < items.size(); ++k) {
    PyObject* o = items[k];
    if (o == Py_Ellipsis) {
      ++ellipses;
    } else if (o == Py_None) {
    } else if (PyBool_Check(o) || is_index_array(o)) {
      converted[k] = to_array(o, std::nullopt, array.device(), Copy::when_needed);
      NDArray& index = converted[k];
      if (PyList_Check(o) && index.size() == 0) index = index.astype(Elem::int64);
      if (index.elem() == Elem::boolean) {
        used += index.ndim();
        any_array = true;
      } else if (is_integer(index.elem())) {
        ++used;
        any_array |= index.ndim() > 0;
      } else {
        throw Error(ErrorKind::index, "array.index.dtype",
                    cat("an array index must be of integers or bool, not ", name_of(index.elem())));
      }
    } else if (PySlice_Check(o) || PyIndex_Check(o)) {
      ++used;
    } else {
      throw Error(
          ErrorKind::index, "array.index.type",
          cat("an index cannot be ", nb::cast<const char*>(nb::handle(o).type().attr("__name__"))))
          .note("legal: integers, slices, None, ..., arrays of integers or bool");
    }
  }
  if (ellipses > 1)
    throw Error(ErrorKind::index, "array.index.ellipsis",
                cat("an index has ", ellipses, " ellipses, at most one is legal"));
  if (used > array.ndim()) {
    throw Error(ErrorKind::index, "array.index.count",
                cat(used, " indices for ", array.ndim(), " dimensions of ", describe(array)));
  }
  Parsed out;
  out.view = array;
  int axis = 0;            // in view
  int from = 0;            // in array
  std::vector<int> axes;   // of view, that arrays index
  bool separated = false;  // something stands between two index arrays
  bool open = false, closed = false;
  auto between = [&] {
    if (open) closed = true;
  };
  auto add = [&](NDArray index, int at) {
    if (closed) separated = true;
    open = true;
    axes.push_back(at);
    out.arrays.push_back(std::move(index));
  };
  for (std::size_t k = 0; k < items.size(); ++k) {
    PyObject* o = items[k];
    if (o == Py_Ellipsis) {
      axis += array.ndim() - used;
      from += array.ndim() - used;
      between();
    } else if (o == Py_None) {
      out.view = out.view.expand_dims(axis++);
      between();
    } else if (PySlice_Check(o)) {
      out.view = slice_axis(out.view, axis++, o);
      ++from;
      between();
    } else if (converted[k].defined() && converted[k].elem() == Elem::boolean) {
      const NDArray& mask = converted[k];
      need_mask(out.view, mask, axis);
      if (mask.ndim() == 0) {  // adds an axis of length 0 or 1
        std::uint8_t on = 0;
        mask.read_element(0, &on);
        out.view = out.view.expand_dims(axis).slice(axis, 0, on ? 1 : 0, 1);
        ++axis;
        between();
        continue;
      }
      for (NDArray& index : nonzero(mask)) add(std::move(index), axis++);
      from += mask.ndim();
    } else if (converted[k].defined() && (any_array || converted[k].ndim() > 0)) {
      add(converted[k], axis++);
      ++from;
    } else {
      std::int64_t i = to_position(o, array, from++);
      if (any_array) {
        add(full(array.device(), Elem::int64, Dims{}, Scalar(i)), axis++);
      } else {
        out.view = out.view.select(axis, i);
      }
    }
  }
  if (!out.arrays.empty()) {
    std::vector<int> order = axes;
    for (int i = 0; i < out.view.ndim(); ++i) {
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
    }
    out.position = separated ? 0 : axes[0];
    out.view = out.view.permute(order);
  }
  return out;
}

/// The axes [0, n) moved to `position`.
/// The order of axes in which the first n stand at `position`.
std::vector<int> axis_order(int ndim, int n, int position) {
  std::vector<int> order;
  for (int i = 0; i < position; ++i) order.push_back(n + i);
  for (int i = 0; i < n; ++i) order.push_back(i);
  for (int i = n + position; i < ndim; ++i) order.push_back(i);
  return order;
}
NDArray move_front(const NDArray& a, int n, int position) {
  return position == 0 ? a : a.permute(axis_order(a.ndim(), n, position));
}
int index_ndim(const std::vector<NDArray>& arrays) {
  int n = 0;
  for (const NDArray& a : arrays) n = std::max(n, a.ndim());
  return n;
}

/// The view of a key of integers and slices alone; false where it is something else.
bool plain_view(const NDArray& array, PyObject* key, NDArray& view) {
  auto part = [&](PyObject* o, int& axis, int from) {
    if (is_position(o)) {
      view = view.select(axis, to_position(o, array, from));
    } else {
      view = slice_axis(view, axis, o);
      ++axis;
    }
  };
  auto plain = [](PyObject* o) { return PySlice_Check(o) || is_position(o); };
  int axis = 0;
  if (!PyTuple_CheckExact(key)) {
    if (array.ndim() == 0 || !plain(key)) return false;
    view = array;
    part(key, axis, 0);
    return true;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  if (n > array.ndim()) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!plain(PyTuple_GET_ITEM(key, i))) return false;
  view = array;
  for (Py_ssize_t i = 0; i < n; ++i) part(PyTuple_GET_ITEM(key, i), axis, static_cast<int>(i));
  return true;
}

/// The key as a mask over the leading axes of an array on the same device; null when it is not one.
const NDArray* mask_of(PyObject* key, const NDArray& array) {
  if (!is_ndarray(key)) return nullptr;
  const NDArray& mask = unwrap(key);
  const bool fits = mask.elem() == Elem::boolean && mask.ndim() > 0 &&
                    mask.ndim() <= array.ndim() && mask.device() == array.device();
  return fits ? &mask : nullptr;
}

}  // namespace

std::vector<NDArray> index_arrays(const NDArray& array, PyObject* key, NDArray& view,
                                  int& position) {
  Parsed p = parse(array, key);
  view = p.view;
  position = p.position;
  return p.arrays;
}

PyObject* get_item(const NDArray& array, PyObject* key) {
  if (array.ndim() > 0) {
    if (is_position(key)) return wrap(array.select(0, to_position(key, array, 0)));
    if (PySlice_Check(key)) return wrap(slice_axis(array, 0, key));
  }
  if (PyTuple_CheckExact(key)) {
    NDArray view;
    if (plain_view(array, key, view)) return wrap(std::move(view));
  }
  if (Py_TYPE(key) == ndarray_type() && array.ndim() > 0 && array.on_host()) {
    const NDArray& index = unwrap(key);
    if (is_integer(index.elem()) && index.ndim() > 0 && index.on_host())
      return wrap(gather(array, {&index, 1}));
  }
  if (const NDArray* mask = mask_of(key, array)) return wrap(select_marked(array, *mask));
  Parsed p = parse(array, key);
  if (p.arrays.empty()) return wrap(std::move(p.view));
  if (p.arrays.size() == 1 && p.position > 0 && p.view.on_host()) {
    const NDArray back = p.view.permute(axis_order(p.view.ndim(), 1, p.position));
    return wrap(take(back, p.arrays[0], p.position));
  }
  if (has_grid(p.view) && !is_complex(p.view.elem()))
    return wrap(grid_gather(p.view, p.arrays, p.position));
  NDArray out = gather(p.view, p.arrays);
  return wrap(move_front(out, index_ndim(p.arrays), p.position).contiguous());
}

namespace {

/// One element of a vector of the host becomes a number of its type, or Python's own. False where
/// it is something else.
bool set_element(const NDArray& array, PyObject* key, PyObject* value) {
  if (array.ndim() != 1 || !array.on_host() || !is_position(key)) return false;
  const bool own = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
  const bool same = !own && Py_TYPE(value) == ndarray_type() && unwrap(value).ndim() == 0 &&
                    unwrap(value).on_host() && unwrap(value).elem() == array.elem();
  if (!own && !same) return false;
  const auto bytes = elem_bytes(array.elem());
  char* const to = array.host() + to_position(key, array, 0) * array.strides()[0] * bytes;
  if (own) write_scalar(scalar_of(value), array.elem(), to);
  else std::memmove(to, unwrap(value).host(), static_cast<std::size_t>(bytes));
  return true;
}

}  // namespace

void set_item(const NDArray& array, PyObject* key, PyObject* value) {
  if (set_element(array, key, value)) return;
  const NDArray* mask = mask_of(key, array);
  NDArray source, view;
  const bool plain = plain_view(array, key, view);
  if (is_number(value)) {
    Scalar s = scalar_of(value);
    if (s.kind == Kind::complex && !is_complex(array.elem())) {
      throw Error(ErrorKind::dtype, "array.assign.dtype",
                  cat("a complex number cannot be stored in ", describe(array)));
    }
    if (plain && view.size() == 1 && view.on_host())
      return write_scalar(s, array.elem(), view.host());
    source = full(array.device(), array.elem(), Dims{}, s);
  } else {
    source = to_array(value, std::nullopt, Ref<Device>(), Copy::when_needed);
    if (is_complex(source.elem()) && !is_complex(array.elem())) {
      throw Error(ErrorKind::dtype, "array.assign.dtype",
                  cat("complex numbers cannot be stored in ", describe(array)));
    }
    if (source.device() != array.device()) source = source.to(array.device());
  }
  if (mask && source.size() == 1) return assign_marked(array, *mask, source);
  if (mask && put_marked(array, *mask, source)) return;
  Parsed p;
  if (plain) p.view = view;
  else p = parse(array, key);
  if (p.arrays.empty()) {
    while (source.ndim() > p.view.ndim() && source.shape()[0] == 1) source = source.select(0, 0);
    assign(p.view, source);
    return;
  }
  int n = index_ndim(p.arrays);
  if (p.position > 0) {
    // The value's axes are in result order; scatter wants the index axes in front.
    std::vector<const Dims*> shapes;
    for (const NDArray& a : p.arrays) shapes.push_back(&a.shape());
    Dims front = broadcast_shapes(shapes, "index");
    Dims full_shape;
    int rest = p.view.ndim() - static_cast<int>(p.arrays.size());
    for (int i = 0; i < p.position; ++i)
      full_shape.push_back(p.view.shape()[static_cast<int>(p.arrays.size()) + i]);
    for (std::int64_t extent : front) full_shape.push_back(extent);
    for (int i = p.position; i < rest; ++i)
      full_shape.push_back(p.view.shape()[static_cast<int>(p.arrays.size()) + i]);
    source = source.broadcast_to(full_shape);
    std::vector<int> order;
    for (int i = 0; i < n; ++i) order.push_back(p.position + i);
    for (int i = 0; i < p.position; ++i) order.push_back(i);
    for (int i = p.position + n; i < source.ndim(); ++i) order.push_back(i);
    source = source.permute(order);
  }
  scatter(p.view, p.arrays, source, false);
}

}  // namespace weft::py
