// SPDX-License-Identifier: Apache-2.0
// Python objects to arrays: numbers, nested sequences, buffers, DLPack, __array__.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>
#include <set>

#include "array_type.h"
#include "shown.h"
#include "weft/array/on_device.h"

namespace weft::py {

bool is_number(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o);  // bool is a long
}

Scalar scalar_of(PyObject* o) {
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyLong_Check(o)) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return Scalar(static_cast<std::int64_t>(value));
    if (overflow > 0) {
      unsigned long long big = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) {
        Scalar s(static_cast<std::int64_t>(big));
        s.large = true;
        s.z = static_cast<double>(big);
        return s;
      }
      PyErr_Clear();
    }
    Scalar s(static_cast<std::int64_t>(0));
    s.beyond = true;
    s.z = PyLong_AsDouble(o);
    if (PyErr_Occurred()) {  // beyond float64 as well
      PyErr_Clear();
      s.z = overflow < 0 ? -HUGE_VAL : HUGE_VAL;
    }
    return s;
  }
  if (PyComplex_Check(o))
    return Scalar(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  throw Error(ErrorKind::dtype, "array.scalar.type", cat("not a number: ", shown(o)));
}

namespace {
constexpr int kMostNumbers = 1 << 16;  // in place of a shape or of axes
Error no_dims(nb::handle o, const char* what) {
  return Error(ErrorKind::dtype, "array.dims.type",
               cat(what, " must be an integer or a tuple of them, got ", shown(o)));
}
}  // namespace

std::int64_t extent_of(nb::handle item, nb::handle asked, const char* what) {
  if (!PyIndex_Check(item.ptr())) throw no_dims(asked, what);
  nb::object index = nb::steal(PyNumber_Index(item.ptr()));
  if (!index.is_valid()) {
    // An array of several elements has an index only by its type; what else is raised is the
    // caller's.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    throw no_dims(asked, what);
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow) {
    throw Error(
        ErrorKind::value, "array.size.overflow",
        cat(what, " has the extent ", nb::cast<std::string>(nb::str(index)), ", beyond 64 bits"));
  }
  return value;
}

Dims dims_of(nb::handle o, const char* what) {
  bool one = PyLong_Check(o.ptr()) || !PySequence_Check(o.ptr()) || PyUnicode_Check(o.ptr());
  if (!one && PyIndex_Check(o.ptr()) && PySequence_Size(o.ptr()) < 0) {  // an array of one number
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    one = true;
  }
  if (one) return Dims{extent_of(o, o, what)};
  Dims out;
  for (nb::handle item : o) {
    if (out.size() == kMostNumbers) throw no_dims(o, what);  // range(10 ** 12) has no end in sight
    out.push_back(extent_of(item, o, what));
  }
  return out;
}

Dims axis_numbers(nb::handle o, const char* what) {
  Dims out = dims_of(o, what);
  for (std::int64_t axis : out) {
    if (axis >= -kMaxDims && axis < kMaxDims) continue;
    throw Error(ErrorKind::index, "array.axis.range",
                cat(what, " ", axis, " is outside every array: there are at most ", kMaxDims,
                    " dimensions"));
  }
  return out;
}

Axes axes_of(nb::handle o) {
  Axes axes;
  if (!o.is_none()) {
    axes.all = false;
    axes.axes = axis_numbers(o, "axis");
  }
  return axes;
}

namespace {

bool elem_of_format(const char* format, std::int64_t itemsize, Elem& out) {
  if (!format) {
    out = Elem::uint8;
    return itemsize == 1;
  }
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  auto sized = [&](bool is_signed) {
    switch (itemsize) {
      case 1: out = is_signed ? Elem::int8 : Elem::uint8; return true;
      case 2: out = is_signed ? Elem::int16 : Elem::uint16; return true;
      case 4: out = is_signed ? Elem::int32 : Elem::uint32; return true;
      case 8: out = is_signed ? Elem::int64 : Elem::uint64; return true;
      default: return false;
    }
  };
  if (format[0] == 'Z') {
    out = format[1] == 'f' ? Elem::complex64 : Elem::complex128;
    return format[1] == 'f' || format[1] == 'd';
  }
  if (format[0] && format[1]) return false;
  switch (*format) {
    case '?': out = Elem::boolean; return true;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return sized(true);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return sized(false);
    case 'e': out = Elem::float16; return true;
    case 'f': out = Elem::float32; return true;
    case 'd': out = Elem::float64; return true;
    default: return false;
  }
}

constexpr std::int64_t kMostEntries = std::int64_t{1} << 40;  // no host has memory for more numbers

Error no_room(std::int64_t n) {
  return Error(ErrorKind::memory, "array.asarray.size",
               cat("a nested sequence of at least ", n, " entries has no room on this host"))
      .note("a list that stands in many places of another counts in each");
}

/// The entries of a sequence of another class, as a tuple: so many as its length says.
nb::object entries_of(PyObject* o) {
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) {  // it has entries by their number, but no length, or one that nothing can have
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_OverflowError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError))
      throw nb::python_error();
    PyErr_Clear();
    throw Error(ErrorKind::dtype, "array.asarray.type", cat("cannot make an array of ", shown(o)));
  }
  if (n > kMostEntries) throw no_room(n);
  const nb::object entries = nb::steal(PyObject_GetIter(o));
  if (!entries.is_valid()) throw nb::python_error();
  std::vector<nb::object> read;
  while (PyObject* entry = PyIter_Next(entries.ptr())) {
    read.push_back(nb::steal(entry));
    if (static_cast<Py_ssize_t>(read.size()) > n) break;
    if (read.size() % 65536 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  if (PyErr_Occurred()) throw nb::python_error();
  const auto found = static_cast<Py_ssize_t>(read.size());
  if (found != n)
    throw Error(ErrorKind::value, "array.asarray.length",
                cat("a ", nb::cast<std::string>(nb::handle(o).type().attr("__name__")),
                    " of length ", n, " has ", found > n ? "more entries" : cat(found, " entries")))
        .help("pass list(...) of what it holds");
  nb::object out = nb::steal(PyTuple_New(n));
  if (!out.is_valid()) throw nb::python_error();
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(out.ptr(), i, read[static_cast<std::size_t>(i)].release().ptr());
  return out;
}

void flatten(PyObject* o, int depth, Dims& shape, std::vector<nb::object>& leaves,
             bool& found_depth) {
  bool sequence = (PyList_Check(o) || PyTuple_Check(o));
  if (!sequence && !is_ndarray(o) && !is_number(o) && PySequence_Check(o) && !PyUnicode_Check(o) &&
      !PyObject_CheckBuffer(o))
    sequence = true;
  if (!sequence) {
    if (!found_depth) {
      found_depth = true;
      std::int64_t all = 1;
      for (std::int64_t extent : shape) {
        all *= extent;
        if (all > kMostEntries) throw no_room(all);
      }
    } else if (depth != shape.size()) {
      throw Error(ErrorKind::shape, "array.asarray.ragged",
                  cat("the nested sequence is ragged: a number at depth ", depth, " where ",
                      shape.size(), " levels were found before"));
    }
    leaves.push_back(nb::borrow(o));
    return;
  }
  // Deeper than any array, or a sequence that contains itself.
  if (depth >= kMaxDims)
    throw Error(ErrorKind::shape, "array.asarray.depth",
                cat("the nested sequence is deeper than ", kMaxDims, " levels"))
        .note("a list that contains itself has no end");
  const bool listed =
      PyList_Check(o) || PyTuple_Check(o);  // whose own entries count, whatever a subclass says
  nb::object held = listed ? nb::borrow(o) : entries_of(o);
  std::int64_t n = PySequence_Fast_GET_SIZE(held.ptr());
  if (depth == shape.size() && !found_depth) {
    shape.push_back(n);
  } else if (depth >= shape.size() || shape[depth] != n) {
    throw Error(ErrorKind::shape, "array.asarray.ragged",
                cat("the nested sequence is ragged: ", n, " entries at depth ", depth, " where ",
                    depth < shape.size() ? shape[depth] : 0, " were found before"));
  }
  if (n == 0) found_depth = true;
  for (std::int64_t i = 0; i < n; ++i) {
    // An entry's own methods run below and may change the list.
    if (i >= PySequence_Fast_GET_SIZE(held.ptr()))
      throw Error(ErrorKind::value, "array.asarray.changed",
                  cat("a list of ", n, " entries has ", PySequence_Fast_GET_SIZE(held.ptr()),
                      " while it is read"))
          .help("pass a copy that nothing else changes");
    const nb::object entry = nb::borrow(PySequence_Fast_GET_ITEM(held.ptr(), i));
    flatten(entry.ptr(), depth + 1, shape, leaves, found_depth);
  }
}

/// `beside`: the type of floats or complex numbers that plain numbers take on, as a number beside
/// an array does.
NDArray from_sequence(PyObject* o, std::optional<Elem> dtype, const Ref<Device>& device,
                      std::optional<Elem> beside = std::nullopt) {
  Dims shape;
  std::vector<nb::object> leaves;
  bool found = false;
  flatten(o, 0, shape, leaves, found);
  bool arrays = false;
  for (nb::object& leaf : leaves) arrays |= !is_number(leaf.ptr());
  if (arrays) {  // arrays inside a sequence are stacked
    std::vector<NDArray> parts;
    for (nb::object& leaf : leaves) {
      NDArray part = to_array(leaf.ptr(), std::nullopt, device, Copy::when_needed);
      if (!parts.empty() && !(part.shape() == parts[0].shape())) {
        throw Error(ErrorKind::shape, "array.asarray.ragged",
                    cat("arrays of shapes ", to_string(parts[0].shape()), " and ",
                        to_string(part.shape()), " in one sequence"));
      }
      parts.push_back(std::move(part));
    }
    Elem e = parts[0].elem();
    for (const NDArray& part : parts) e = promote(e, part.elem());
    if (dtype) e = *dtype;
    Dims full = shape;
    for (std::int64_t extent : parts[0].shape()) full.push_back(extent);
    NDArray out = NDArray::empty(device, e, full);
    Dims flat{static_cast<std::int64_t>(parts.size())};
    for (std::int64_t extent : parts[0].shape()) flat.push_back(extent);
    NDArray rows = out.reshape(flat);
    for (std::size_t i = 0; i < parts.size(); ++i)
      assign(rows.select(0, static_cast<std::int64_t>(i)), parts[i]);
    return out;
  }
  Kind kind = leaves.empty() ? Kind::real : Kind::boolean;
  bool large = false;
  std::vector<Scalar> values;
  values.reserve(leaves.size());
  for (nb::object& leaf : leaves) {
    values.push_back(scalar_of(leaf.ptr()));
    kind = std::max(kind, values.back().kind);
    large |= values.back().large;
  }
  Elem e = dtype                   ? *dtype
           : beside                ? promote_weak(*beside, kind)
           : kind == Kind::boolean ? Elem::boolean
           : kind == Kind::integer ? (large ? Elem::uint64 : kDefaultInt)
           : kind == Kind::real    ? kDefaultReal
                                   : kDefaultComplex;
  NDArray out = NDArray::empty(device, e, shape);
  std::string bytes(static_cast<std::size_t>(out.nbytes()), '\0');
  const auto width = static_cast<std::size_t>(elem_bytes(e));
  for (std::size_t i = 0; i < values.size(); ++i) write_scalar(values[i], e, &bytes[i * width]);
  if (!bytes.empty()) device->upload(*out.handle(), 0, bytes.data(), bytes.size());
  return out;
}

/// Lists and tuples, in one another, of numbers and arrays alone.
bool holds_numbers(PyObject* o, std::set<PyObject*>& lists, int depth = 0) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return is_number(o) || is_ndarray(o);
  if (depth > kMaxDims) return true;                      // from_sequence refuses it
  if (depth > 0 && !lists.insert(o).second) return true;  // looked at where it stood before
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (!holds_numbers(PySequence_Fast_GET_ITEM(o, i), lists, depth + 1)) return false;
  return true;
}

}  // namespace

bool is_list_of_numbers(PyObject* o) {
  std::set<PyObject*> lists;
  return (PyList_Check(o) || PyTuple_Check(o)) && holds_numbers(o, lists);
}

NDArray list_beside(PyObject* o, const NDArray& other) {
  const Elem e = other.elem();
  const bool floats = is_real_float(e) || is_complex(e);
  return from_sequence(o, std::nullopt, other.device(), floats ? std::optional(e) : std::nullopt);
}

NDArray array_from_buffer(PyObject* o, Copy copy, bool& ok) {
  ok = false;
  if (!PyObject_CheckBuffer(o)) return {};
  auto* view = new Py_buffer;
  bool writable = true;
  if (PyObject_GetBuffer(o, view, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    writable = false;
    if (PyObject_GetBuffer(o, view, PyBUF_RECORDS_RO) != 0) {
      PyErr_Clear();
      delete view;
      return {};
    }
  }
  auto release = [view] {
    if (Py_IsInitialized()) {
      nb::gil_scoped_acquire gil;
      PyBuffer_Release(view);
    }
    delete view;
  };
  Elem e = Elem::uint8;
  bool legal = elem_of_format(view->format, view->itemsize, e);
  Dims shape(view->ndim), strides(view->ndim);
  std::int64_t span = view->itemsize;
  std::int64_t dense = view->itemsize;
  for (int i = view->ndim; legal && i-- > 0;) {
    shape[i] = view->shape[i];
    // Arrays of ctypes leave their strides out.
    const std::int64_t stride = view->strides ? view->strides[i] : dense;
    dense *= view->shape[i];
    legal = stride % view->itemsize == 0;
    strides[i] = stride / view->itemsize;
    if (shape[i] > 0) span += std::abs(stride) * (shape[i] - 1);
  }
  bool aligned =
      reinterpret_cast<std::uintptr_t>(view->buf) % static_cast<std::uintptr_t>(view->itemsize) ==
      0;
  if (!legal || !aligned) {
    release();
    return {};
  }
  ok = true;
  const Ref<Device>& usual = default_device();
  const Ref<Device> host = usual->info().name == "cpu" ? usual : device_from_python(nb::str("cpu"));
  NDArray shared = from_external(host, view->buf, span, e, shape, strides, release);
  if (copy == Copy::always || (!writable && copy != Copy::never)) return shared.copy();
  return shared;
}

namespace {

/// Whether elements of the host are converted before they go to the device: the fewer bytes travel,
/// and a machine without a grid may have the new type alone.
bool converts_first(const NDArray& array, Elem to, const Ref<Device>& device) {
  return array.on_host() && device && device != array.device() &&
         (elem_bytes(to) <= elem_bytes(array.elem()) || !on_device().has_grid(device));
}

}  // namespace

NDArray to_array(PyObject* o, std::optional<Elem> dtype, Ref<Device> device, Copy copy) {
  auto finish = [&](NDArray array, bool fresh) {
    if (copy == Copy::never &&
        ((dtype && *dtype != array.elem()) || (device && device != array.device()))) {
      throw Error(ErrorKind::value, "array.asarray.copy",
                  cat("copy=False, but ", describe(array), " must be copied"));
    }
    if (dtype && *dtype != array.elem() && converts_first(array, *dtype, device))
      array = array.astype(*dtype);
    if (device && device != array.device()) {
      array = array.to(device);
      fresh = true;
    }
    if (dtype && *dtype != array.elem()) return array.astype(*dtype);
    return copy == Copy::always && !fresh ? array.copy() : array;
  };
  if (is_ndarray(o)) return finish(unwrap(o), false);
  const bool placed = static_cast<bool>(device);  // else memory of others stays where it is
  if (!device) device = default_device();
  if (is_number(o) && !PyObject_CheckBuffer(o)) {  // NumPy's scalars keep their own type
    Scalar s = scalar_of(o);
    return full(device, dtype ? *dtype : s.large ? Elem::uint64 : elem_of(s), Dims{}, s);
  }
  if (PyList_Check(o) || PyTuple_Check(o)) return from_sequence(o, dtype, device);
  bool ok = false;
  NDArray array = array_from_buffer(o, copy == Copy::always ? Copy::when_needed : copy, ok);
  if (ok) return finish(std::move(array), false);
  if (PyObject_HasAttrString(o, "__weft_array__")) {
    nb::object a = nb::handle(o).attr("__weft_array__")();
    if (is_ndarray(a.ptr())) return finish(unwrap(a.ptr()), false);
  }
  for (const char* protocol : {"__dlpack__", "__cuda_array_interface__"}) {
    if (!PyObject_HasAttrString(o, protocol)) continue;
    if (!placed) device = Ref<Device>();
    try {
      return finish(protocol[2] == 'd' ? from_dlpack(o, Ref<Device>(), Copy::when_needed)
                                       : from_cuda_interface(o),
                    false);
    } catch (nb::python_error& refused) {  // NumPy's arrays of strings, dates and objects
      if (refused.matches(PyExc_RuntimeError) && !nb::hasattr(refused.value(), "code"))
        throw Error(ErrorKind::dtype, "array.asarray.export",
                    cat("a ", nb::cast<std::string>(nb::handle(o).type().attr("__name__")),
                        " does not give its memory away: ", refused.what()));
      if (!refused.matches(PyExc_BufferError)) throw;
      break;
    }
  }
  const bool interface = PyObject_HasAttrString(o, "__array_interface__");
  if (interface || PyObject_HasAttrString(o, "__array__")) {
    nb::object a = interface ? nb::module_::import_("numpy").attr("asarray")(nb::handle(o))
                             : nb::object(nb::handle(o).attr("__array__")());
    array = array_from_buffer(a.ptr(), Copy::when_needed, ok);
    if (ok) return finish(std::move(array), false);
    if (nb::hasattr(a, "dtype"))
      throw Error(ErrorKind::dtype, "array.asarray.type",
                  cat("cannot make an array of elements of type ",
                      nb::cast<std::string>(nb::str(nb::handle(nb::object(a.attr("dtype")))))))
          .note("legal: bool, integers, floats, complex numbers");
  }
  // A buffer of elements that are no numbers is a leaf of its own sequence: it would never end.
  if (PySequence_Check(o) && !PyUnicode_Check(o) && !PyObject_CheckBuffer(o))
    return from_sequence(o, dtype, device);
  throw Error(
      ErrorKind::dtype, "array.asarray.type",
      cat("cannot make an array of ", nb::cast<std::string>(nb::handle(o).type().attr("__name__")),
          " ", shown(o).substr(0, 60)))
      .note(
          "accepted: numbers, nested sequences, buffers, DLPack tensors, objects with __array__ "
          "or __cuda_array_interface__");
}

bool to_operand(PyObject* o, const NDArray* other, NDArray& holder, Arg& out) {
  if (is_ndarray(o)) {
    out = Arg(unwrap(o));
    return true;
  }
  if (is_number(o)) {
    out = Arg(scalar_of(o));
    return true;
  }
  if (PyObject_CheckBuffer(o) && !PyBytes_Check(o) && !PyByteArray_Check(o)) {
    bool ok = false;
    holder = array_from_buffer(o, Copy::when_needed, ok);
    if (!ok) return false;
    if (other && holder.ndim() == 0) holder = holder.to(other->device());
    out = Arg(holder);
    return true;
  }
  if (other && is_list_of_numbers(o)) {
    holder = list_beside(o, *other);
    out = Arg(holder);
    return true;
  }
  return false;
}

}  // namespace weft::py
