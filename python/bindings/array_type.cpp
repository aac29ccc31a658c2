// SPDX-License-Identifier: Apache-2.0
#include "array_type.h"

#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstring>

#include <structmember.h>

#include "scalars.h"

namespace weft::py {

namespace {

PyTypeObject* g_type = nullptr;

PyObject* type_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) new (&reinterpret_cast<PyNDArray*>(self)->array) NDArray();
  return self;
}

void type_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (reinterpret_cast<PyNDArray*>(self)->weak) PyObject_ClearWeakRefs(self);
  if (keep_scalar(self)) return Py_DECREF(type);
  reinterpret_cast<PyNDArray*>(self)->array.~NDArray();
  type->tp_free(self);
  Py_DECREF(type);
}

int type_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data", "device", "dtype", nullptr};
  PyObject *data = nullptr, *device = Py_None, *dtype = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO", const_cast<char**>(names), &data, &device,
                                   &dtype)) {
    nb::python_error reason;
    return guarded(-1, [&]() -> int {
      throw Error(ErrorKind::dtype, "python.arguments",
                  cat("NDArray() does not take these arguments: ", nb::str(reason.value()).c_str()))
          .help("accepted: NDArray(data, device=None, dtype=None)");
    });
  }
  return guarded(-1, [&] {
    Ref<Device> d = device == Py_None ? Ref<Device>() : device_from_python(device);
    unwrap(self) = to_array(data, optional_elem(dtype), d, Copy::always);
    return 0;
  });
}

// ---- operators

template <Op kOp>
PyObject* binary(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (PyObject* const number = scalar_binary(kOp, a, b)) return number;
    bool left = is_ndarray(a), right = is_ndarray(b);
    if (left && right) return wrap(apply(kOp, unwrap(a), unwrap(b)));
    NDArray holder;
    Arg other{Scalar(0)};
    const NDArray& array = unwrap(left ? a : b);
    if (!to_operand(left ? b : a, &array, holder, other)) Py_RETURN_NOTIMPLEMENTED;
    return wrap(left ? apply(kOp, array, other) : apply(kOp, other, array));
  });
}

template <Op kOp>
PyObject* inplace(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    NDArray holder;
    Arg other{Scalar(0)};
    if (scalar_into(kOp, a, b)) return Py_INCREF(a), a;
    if (!to_operand(b, &unwrap(a), holder, other)) Py_RETURN_NOTIMPLEMENTED;
    apply_into(kOp, unwrap(a), unwrap(a), other);
    Py_INCREF(a);
    return a;
  });
}

template <Op kOp>
PyObject* unary(PyObject* a) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    PyObject* const number = scalar_unary(kOp, a);
    return number ? number : wrap(apply(kOp, unwrap(a)));
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) noexcept { return binary<Op::pow>(a, b); }
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) noexcept {
  return inplace<Op::pow>(a, b);
}

// Bitwise operators are logical on bool through the same kernels.
PyObject* matrix_multiply(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    NDArray held[2];
    PyObject* objects[2] = {a, b};
    for (int k = 0; k < 2; ++k) {
      if (is_ndarray(objects[k])) {
        held[k] = unwrap(objects[k]);
      } else {
        Arg arg{Scalar(0)};
        const NDArray* other = is_ndarray(objects[1 - k]) ? &unwrap(objects[1 - k]) : nullptr;
        if (is_number(objects[k]) || !to_operand(objects[k], other, held[k], arg))
          Py_RETURN_NOTIMPLEMENTED;
      }
    }
    NDArray out;
    {
      nb::gil_scoped_release nogil;
      out = matmul(held[0], held[1]);
    }
    return wrap(std::move(out));
  });
}

PyObject* inplace_matrix_multiply(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    nb::object product = nb::steal(matrix_multiply(a, b));
    if (!product.is_valid()) return nullptr;
    if (product.ptr() == Py_NotImplemented) return product.release().ptr();
    assign(unwrap(a), unwrap(product.ptr()));
    Py_INCREF(a);
    return a;
  });
}

PyObject* compare(PyObject* a, PyObject* b, int how) noexcept {
  switch (how) {
    case Py_EQ: return binary<Op::equal>(a, b);
    case Py_NE: return binary<Op::not_equal>(a, b);
    case Py_LT: return binary<Op::less>(a, b);
    case Py_LE: return binary<Op::less_equal>(a, b);
    case Py_GT: return binary<Op::greater>(a, b);
    default: return binary<Op::greater_equal>(a, b);
  }
}

PyObject* item(const NDArray& a, std::int64_t linear) {
  alignas(16) char raw[16];
  if (a.on_host() && a.ndim() == 0) {
    std::memcpy(raw, a.host(), static_cast<std::size_t>(elem_bytes(a.elem())));
  } else {
    a.read_element(linear, raw);
  }
  auto get = [&]<typename T>(T value) {
    std::memcpy(&value, raw, sizeof(T));
    return value;
  };
  switch (a.elem()) {
    case Elem::boolean: return PyBool_FromLong(raw[0] != 0);
    case Elem::int8: return PyLong_FromLong(get(std::int8_t{}));
    case Elem::int16: return PyLong_FromLong(get(std::int16_t{}));
    case Elem::int32: return PyLong_FromLong(get(std::int32_t{}));
    case Elem::int64: return PyLong_FromLongLong(get(std::int64_t{}));
    case Elem::uint8: return PyLong_FromUnsignedLong(get(std::uint8_t{}));
    case Elem::uint16: return PyLong_FromUnsignedLong(get(std::uint16_t{}));
    case Elem::uint32: return PyLong_FromUnsignedLong(get(std::uint32_t{}));
    case Elem::uint64: return PyLong_FromUnsignedLongLong(get(std::uint64_t{}));
    case Elem::float8_e4m3fn:
    case Elem::float8_e5m2:
      return PyFloat_FromDouble(
          static_cast<double>(float8_to_float(dtype_of(a.elem()), get(std::uint8_t{}))));
    case Elem::float16: return PyFloat_FromDouble(half_to_float(get(std::uint16_t{})));
    case Elem::bfloat16: return PyFloat_FromDouble(bfloat_to_float(get(std::uint16_t{})));
    case Elem::float32: return PyFloat_FromDouble(static_cast<double>(get(float{})));
    case Elem::float64: return PyFloat_FromDouble(get(double{}));
    case Elem::complex64: {
      auto z = get(std::complex<float>{});
      return PyComplex_FromDoubles(static_cast<double>(z.real()), static_cast<double>(z.imag()));
    }
    case Elem::complex128: {
      auto z = get(std::complex<double>{});
      return PyComplex_FromDoubles(z.real(), z.imag());
    }
  }
  return nullptr;
}

nb::object single(PyObject* self, const char* what) {
  const NDArray& a = unwrap(self);
  if (a.size() != 1) {
    throw Error(ErrorKind::dtype, "array.item.size",
                cat(what, " needs an array of one element, ", describe(a), " has ", a.size()))
        .help(a.size() > 1 && std::string_view(what) == "a truth value"
                  ? "use weft.any(x) or weft.all(x)"
                  : "");
  }
  return nb::steal(item(a, 0));
}

int truth(PyObject* self) noexcept {
  return guarded(-1, [&] { return PyObject_IsTrue(single(self, "a truth value").ptr()); });
}
PyObject* to_int(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return PyNumber_Long(single(self, "int()").ptr()); });
}
PyObject* to_float(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return PyNumber_Float(single(self, "float()").ptr()); });
}
PyObject* to_index(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const NDArray& a = unwrap(self);
    const bool truth = a.elem() == Elem::boolean;  // as Python's own and torch's; torch.tensor asks
    if (!(is_integer(a.elem()) || truth) || a.ndim() != 0) {
      throw Error(ErrorKind::dtype, "array.index.scalar",
                  cat("an array of ", describe(a), " is no integer"))
          .note("legal: arrays of integers or bool without dimensions");
    }
    return PyNumber_Long(nb::steal(item(a, 0)).ptr());
  });
}
PyObject* to_complex(PyObject* self, PyObject*) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    nb::object value = single(self, "complex()");
    if (PyComplex_Check(value.ptr())) return value.release().ptr();
    return PyComplex_FromDoubles(PyFloat_AsDouble(value.ptr()), 0);
  });
}

// ---- containers

PyObject* subscript(PyObject* self, PyObject* key) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&] { return get_item(unwrap(self), key); });
}
int assign_subscript(PyObject* self, PyObject* key, PyObject* value) noexcept {
  return guarded(-1, [&] {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
      return -1;
    }
    set_item(unwrap(self), key, value);
    return 0;
  });
}
Py_ssize_t length(PyObject* self) noexcept {
  const NDArray& a = unwrap(self);
  if (a.ndim() == 0) {
    PyErr_SetString(PyExc_TypeError,
                    "a 0-d array has no length: x.item() is its value, torch.from_dlpack(x) makes "
                    "it a tensor of torch");
    return -1;
  }
  return static_cast<Py_ssize_t>(a.shape()[0]);
}
/// What C code finds that takes the array for a sequence (torch.tensor does): numbers at the end.
/// Subscripts and iteration give arrays.
PyObject* sequence_item(PyObject* self, Py_ssize_t i) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const NDArray& a = unwrap(self);
    if (a.ndim() == 0 || i < 0 || i >= a.shape()[0]) {
      PyErr_SetString(PyExc_IndexError, "end of array");
      return nullptr;
    }
    NDArray part = a.select(0, i);
    return part.ndim() == 0 ? item(part, 0) : wrap(std::move(part));
  });
}

struct PyIterator {
  PyObject_HEAD PyObject* array;
  std::int64_t at, step;
};
PyTypeObject* g_iterator = nullptr;

PyObject* iterator(PyObject* self, bool back) {
  const NDArray& a = unwrap(self);
  if (a.ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "a 0-d array cannot be iterated");
    return nullptr;
  }
  PyObject* out = g_iterator->tp_alloc(g_iterator, 0);
  if (!out) return nullptr;
  auto* it = reinterpret_cast<PyIterator*>(out);
  Py_INCREF(self);
  it->array = self;
  it->at = back ? a.shape()[0] - 1 : 0;
  it->step = back ? -1 : 1;
  return out;
}
PyObject* iterate(PyObject* self) noexcept { return iterator(self, false); }
PyObject* reversed(PyObject* self, PyObject*) noexcept { return iterator(self, true); }
PyObject* iterator_next(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    auto* it = reinterpret_cast<PyIterator*>(self);
    const NDArray& a = unwrap(it->array);
    if (it->at < 0 || it->at >= a.shape()[0]) return nullptr;
    const std::int64_t at = it->at;
    it->at += it->step;
    return wrap(a.select(0, at));
  });
}
void iterator_dealloc(PyObject* self) noexcept {
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(reinterpret_cast<PyIterator*>(self)->array);
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- buffer protocol

const char* format_of(Elem e) {
  static const char* formats[] = {"?",     "b",     "h", "i",     "q", "B", "H",  "I", "Q",
                                  nullptr, nullptr, "e", nullptr, "f", "d", "Zf", "Zd"};
  static_assert(std::size(formats) == kElems);
  return formats[static_cast<int>(e)];
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const NDArray& a = unwrap(self);
  view->obj = nullptr;
  const char* format = format_of(a.elem());
  if (!a.on_host() || !format) {
    PyErr_Format(PyExc_BufferError, "%s on %s has no buffer", describe(a).c_str(),
                 a.device()->info().name.c_str());
    return -1;
  }
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !a.is_contiguous()) {
    PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
    return -1;
  }
  auto* sizes = new Py_ssize_t[static_cast<std::size_t>(2 * a.ndim() + 1)];
  for (int i = 0; i < a.ndim(); ++i) {
    sizes[i] = static_cast<Py_ssize_t>(a.shape()[i]);
    sizes[a.ndim() + i] = static_cast<Py_ssize_t>(a.strides()[i] * elem_bytes(a.elem()));
  }
  view->buf = a.host();
  view->obj = self;
  Py_INCREF(self);
  view->len = static_cast<Py_ssize_t>(a.nbytes());
  view->readonly = 0;
  view->itemsize = elem_bytes(a.elem());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->ndim = a.ndim();
  view->shape = flags & PyBUF_ND ? sizes : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? sizes + a.ndim() : nullptr;
  view->suboffsets = nullptr;
  view->internal = sizes;
  return 0;
}
void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete[] static_cast<Py_ssize_t*>(view->internal);
}

// ---- attributes and the hottest methods

PyObject* tuple_of(const Dims& dims) {
  PyObject* out = PyTuple_New(dims.size());
  for (int i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(dims[i]));
  return out;
}
PyObject* get_shape(PyObject* self, void*) { return tuple_of(unwrap(self).shape()); }
PyObject* get_strides(PyObject* self, void*) { return tuple_of(unwrap(self).strides()); }
PyObject* get_offset(PyObject* self, void*) { return PyLong_FromLongLong(unwrap(self).offset()); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(unwrap(self).size()); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(unwrap(self).ndim()); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromLongLong(unwrap(self).nbytes()); }
PyObject* get_dtype(PyObject* self, void*) {
  PyObject* o = dtype_object(unwrap(self).elem());
  Py_INCREF(o);
  return o;
}
PyObject* get_device(PyObject* self, void*) {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return device_object(unwrap(self).device()).release().ptr(); });
}
PyObject* get_t(PyObject* self, void*) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const NDArray& a = unwrap(self);
    if (a.ndim() != 2) {
      throw Error(ErrorKind::shape, "array.T.rank",
                  cat(".T needs two dimensions, ", describe(a), " has ", a.ndim()))
          .help("use .mT for stacks of matrices, or permute_dims");
    }
    return wrap(a.transpose(0, 1));
  });
}
PyObject* get_mt(PyObject* self, void*) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const NDArray& a = unwrap(self);
    if (a.ndim() < 2) {
      throw Error(ErrorKind::shape, "array.mT.rank",
                  cat(".mT needs at least two dimensions, ", describe(a), " has ", a.ndim()));
    }
    return wrap(a.transpose(-2, -1));
  });
}

PyGetSetDef g_getset[] = {
    {"shape", get_shape, nullptr, "Extents.", nullptr},
    {"strides", get_strides, nullptr, "Steps in elements.", nullptr},
    {"offset", get_offset, nullptr, "Position of the first element in the handle, in elements.",
     nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of the elements.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type.", nullptr},
    {"device", get_device, nullptr, "Where the elements live.", nullptr},
    {"T", get_t, nullptr, "Transposed view of a matrix.", nullptr},
    {"mT", get_mt, nullptr, "View with the last two axes exchanged.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* reshape(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (count == 1 && !PyLong_CheckExact(args[0]))
      return wrap(unwrap(self).reshape(dims_of(args[0], "shape")));
    Dims shape(static_cast<int>(count));
    for (Py_ssize_t i = 0; i < count; ++i)
      shape[static_cast<int>(i)] = extent_of(args[i], args[i], "shape");
    return wrap(unwrap(self).reshape(std::move(shape)));
  });
}

PyObject* item_method(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (count == 0) return single(self, "item()").release().ptr();
    if (count == 1 && PyTuple_Check(args[0]))
      return single(nb::steal(get_item(unwrap(self), args[0])).ptr(), "item()").release().ptr();
    if (count == 1 && unwrap(self).ndim() > 1 && PyLong_Check(args[0])) {  // a position in the row
      const NDArray row = unwrap(self).reshape(Dims{unwrap(self).size()});
      nb::object element = nb::steal(get_item(row, args[0]));
      return single(element.ptr(), "item()").release().ptr();
    }
    nb::object key = nb::steal(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      Py_INCREF(args[i]);
      PyTuple_SET_ITEM(key.ptr(), i, args[i]);
    }
    nb::object element = nb::steal(get_item(unwrap(self), key.ptr()));
    return single(element.ptr(), "item()").release().ptr();
  });
}

bool is_true(PyObject* o) {
  const int yes = PyObject_IsTrue(o);
  if (yes < 0) throw nb::python_error();
  return yes == 1;
}

template <ReduceOp kOp>
PyObject* reduce_method(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* names) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Axes axes;
    bool keepdims = false;
    std::optional<Elem> dtype;
    auto set_axis = [&](PyObject* o) {
      if (o == Py_None) return;
      axes.all = false;
      axes.axes = axis_numbers(o, "axis");
    };
    if (count > 0) set_axis(args[0]);
    if (count > 1) keepdims = is_true(args[1]);
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) {
      PyObject* name = PyTuple_GET_ITEM(names, i);
      PyObject* value = args[count + i];
      auto is = [&](const char* known) {
        return PyUnicode_CompareWithASCIIString(name, known) == 0;
      };
      if (is("axis") || is("axes") || is("dim")) {  // dim and keepdim are PyTorch's names
        set_axis(value);
      } else if (is("keepdims") || is("keepdim")) {
        keepdims = is_true(value);
      } else if (is("dtype")) {
        dtype = optional_elem(value);
      } else if (is("out") && value == Py_None) {
        // what numpy.sum(array) passes on
      } else if (is("where") || is("initial") || is("out")) {  // NumPy's: the function knows them
        std::vector<PyObject*> all = {self};
        all.insert(all.end(), args, args + count + named);
        const nb::object f = nb::module_::import_("weft").attr(std::string(info(kOp).name).c_str());
        return PyObject_Vectorcall(f.ptr(), all.data(), static_cast<std::size_t>(count) + 1, names);
      } else {
        throw Error(ErrorKind::dtype, "python.arguments",
                    cat("a reduction takes no argument ", nb::repr(name).c_str()))
            .note("accepted: axis, keepdims, dtype");
      }
    }
    return wrap(reduce(kOp, unwrap(self), axes, keepdims, dtype));
  });
}

/// A method without named arguments.
template <PyObject* (*Method)(PyObject*, PyObject* const*, Py_ssize_t) noexcept>
PyObject* positional(PyObject* self, PyObject* const* args, Py_ssize_t count,
                     PyObject* names) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    if (Method == reshape && names && PyTuple_GET_SIZE(names) == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "order") == 0) {  // NumPy's
      nb::object shape = nb::steal(PyTuple_New(count));
      for (Py_ssize_t i = 0; i < count; ++i) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(shape.ptr(), i, args[i]);
      }
      if (count == 1) shape = nb::borrow(args[0]);
      return nb::module_::import_("weft")
          .attr("reshape")(nb::handle(self), shape, nb::arg("order") = nb::handle(args[count]))
          .release()
          .ptr();
    }
    if (names && PyTuple_GET_SIZE(names) > 0)
      throw Error(ErrorKind::dtype, "python.arguments",
                  cat("NDArray.", Method == reshape ? "reshape" : "item", "() has no argument \"",
                      PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, 0)), "\""))
          .help(Method == reshape ? "accepted: x.reshape(*shape)" : "accepted: x.item(*index)");
    return Method(self, args, count);
  });
}

#define WEFT_REDUCE_METHOD(name, text)                                       \
  {                                                                          \
#name,                                                                   \
        reinterpret_cast < PyCFunction>                                      \
            (reinterpret_cast <void (*)()>(reduce_method <ReduceOp::name>)), \
        METH_FASTCALL | METH_KEYWORDS, text                                  \
  }

PyMethodDef g_methods[] = {
    {"reshape", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(positional<reshape>)),
     METH_FASTCALL | METH_KEYWORDS,
     "reshape(*shape): the elements in another shape; one extent may be -1. A view where the "
     "layout allows it."},
    {"item", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(positional<item_method>)),
     METH_FASTCALL | METH_KEYWORDS, "item(*index): one element as a Python number."},
    {"__complex__", to_complex, METH_NOARGS, nullptr},
    {"__reversed__", reversed, METH_NOARGS, nullptr},
    WEFT_REDUCE_METHOD(sum, "sum(axis=None, keepdims=False, *, dtype=None)"),
    WEFT_REDUCE_METHOD(prod, "prod(axis=None, keepdims=False, *, dtype=None)"),
    WEFT_REDUCE_METHOD(max, "max(axis=None, keepdims=False)"),
    WEFT_REDUCE_METHOD(min, "min(axis=None, keepdims=False)"),
    WEFT_REDUCE_METHOD(all, "all(axis=None, keepdims=False)"),
    WEFT_REDUCE_METHOD(any, "any(axis=None, keepdims=False)"),
    {nullptr, nullptr, 0, nullptr},
};

PyObject* representation(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const NDArray& a = unwrap(self);
    std::string text = cat("weft.NDArray(", format(a), ", dtype=", name_of(a.elem()),
                           ", device=", a.device()->info().name);
    if (a.size() == 0 && a.ndim() != 1) text += cat(", shape=", to_string(a.shape()));
    text += ")";
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
PyObject* text(PyObject* self) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    std::string out = format(unwrap(self));
    return PyUnicode_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size()));
  });
}

template <typename F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyMemberDef g_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNDArray, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyTypeObject* ndarray_type() { return g_type; }

PyObject* wrap(NDArray array) {
  PyObject* self = g_type->tp_alloc(g_type, 0);
  if (!self) return nullptr;
  new (&reinterpret_cast<PyNDArray*>(self)->array) NDArray(std::move(array));
  return self;
}

void bind_array_type(nb::module_& m) {
  PyType_Slot iterator_slots[] = {{Py_tp_iter, slot(PyObject_SelfIter)},
                                  {Py_tp_iternext, slot(iterator_next)},
                                  {Py_tp_dealloc, slot(iterator_dealloc)},
                                  {0, nullptr}};
  PyType_Spec iterator_spec = {"weft._ArrayIterator", sizeof(PyIterator), 0, Py_TPFLAGS_DEFAULT,
                               iterator_slots};
  g_iterator = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&iterator_spec));
  if (!g_iterator) throw nb::python_error();
  PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>("A strided array on a device: NDArray(data, device=None, dtype=None).")},
      {Py_tp_new, slot(type_new)},
      {Py_tp_init, slot(type_init)},
      {Py_tp_dealloc, slot(type_dealloc)},
      {Py_tp_repr, slot(representation)},
      {Py_tp_str, slot(text)},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_iter, slot(iterate)},
      {Py_tp_hash, slot(PyObject_HashNotImplemented)},
      {Py_tp_getset, g_getset},
      {Py_tp_members, g_members},
      {Py_tp_methods, g_methods},
      {Py_nb_add, slot(binary<Op::add>)},
      {Py_nb_subtract, slot(binary<Op::subtract>)},
      {Py_nb_multiply, slot(binary<Op::multiply>)},
      {Py_nb_true_divide, slot(binary<Op::divide>)},
      {Py_nb_floor_divide, slot(binary<Op::floor_divide>)},
      {Py_nb_remainder, slot(binary<Op::remainder>)},
      {Py_nb_power, slot(power)},
      {Py_nb_negative, slot(unary<Op::negative>)},
      {Py_nb_positive, slot(unary<Op::positive>)},
      {Py_nb_absolute, slot(unary<Op::abs>)},
      {Py_nb_invert, slot(unary<Op::bitwise_invert>)},
      {Py_nb_and, slot(binary<Op::bitwise_and>)},
      {Py_nb_or, slot(binary<Op::bitwise_or>)},
      {Py_nb_xor, slot(binary<Op::bitwise_xor>)},
      {Py_nb_lshift, slot(binary<Op::bitwise_left_shift>)},
      {Py_nb_rshift, slot(binary<Op::bitwise_right_shift>)},
      {Py_nb_matrix_multiply, slot(matrix_multiply)},
      {Py_nb_inplace_add, slot(inplace<Op::add>)},
      {Py_nb_inplace_subtract, slot(inplace<Op::subtract>)},
      {Py_nb_inplace_multiply, slot(inplace<Op::multiply>)},
      {Py_nb_inplace_true_divide, slot(inplace<Op::divide>)},
      {Py_nb_inplace_floor_divide, slot(inplace<Op::floor_divide>)},
      {Py_nb_inplace_remainder, slot(inplace<Op::remainder>)},
      {Py_nb_inplace_power, slot(inplace_power)},
      {Py_nb_inplace_and, slot(inplace<Op::bitwise_and>)},
      {Py_nb_inplace_or, slot(inplace<Op::bitwise_or>)},
      {Py_nb_inplace_xor, slot(inplace<Op::bitwise_xor>)},
      {Py_nb_inplace_lshift, slot(inplace<Op::bitwise_left_shift>)},
      {Py_nb_inplace_rshift, slot(inplace<Op::bitwise_right_shift>)},
      {Py_nb_inplace_matrix_multiply, slot(inplace_matrix_multiply)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(to_int)},
      {Py_nb_float, slot(to_float)},
      {Py_nb_index, slot(to_index)},
      {Py_mp_subscript, slot(subscript)},
      {Py_mp_ass_subscript, slot(assign_subscript)},
      {Py_mp_length, slot(length)},
      {Py_sq_item, slot(sequence_item)},
      {Py_sq_length, slot(length)},
      {Py_bf_getbuffer, slot(get_buffer)},
      {Py_bf_releasebuffer, slot(release_buffer)},
      {0, nullptr},
  };
  PyType_Spec spec = {"weft.NDArray", sizeof(PyNDArray), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw nb::python_error();
  g_type = reinterpret_cast<PyTypeObject*>(type);
  m.attr("NDArray") = nb::borrow(type);
  m.def(
      "_own_sequence_items",
      [](nb::handle subtype) {
        reinterpret_cast<PyTypeObject*>(subtype.ptr())->tp_as_sequence->sq_item = sequence_item;
      },
      "Undoes for a type of arrays what assigning its __getitem__ does to items of sequences.");
}

}  // namespace weft::py
