// SPDX-License-Identifier: Apache-2.0
// weft.Tensor.

#include "weft/autograd/tensor.h"
#include "weft/autograd/gpu/row_gradients.h"
#include "weft/devices/machine.h"

#include <set>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "weft/array/on_device.h"
#include "weft/autograd/convolution.h"
#include "weft/autograd/gpu/pool.h"
#include "weft/autograd/gpu/resample.h"
#include "weft/autograd/mean_pool.h"
#include "weft/autograd/nn.h"
#include "weft/autograd/plain_operator.h"
#include "weft/autograd/structured.h"
#include "weft/devices/operators.h"

namespace weft::py {

namespace {

Tensor* tensor_of(PyObject* o) {
  Tensor* t = nullptr;
  return nb::try_cast<Tensor*>(nb::handle(o), t) ? t : nullptr;
}

/// A Tensor, number or anything that becomes an array, as an operand beside `like`.
Tensor operand(nb::handle o, const Tensor& like) {
  if (Tensor* t = tensor_of(o.ptr())) return *t;
  if (is_number(o.ptr())) {
    Scalar s = scalar_of(o.ptr());
    return Tensor(full(like.device(), promote_weak(like.elem(), s.kind), Dims{}, s));
  }
  if (is_list_of_numbers(o.ptr())) return Tensor(list_beside(o.ptr(), like.data()), false);
  return Tensor(to_array(o.ptr(), std::nullopt, Ref<Device>(), Copy::when_needed));
}

/// A Python object that a graph holds; it may be released without the interpreter's lock.
std::shared_ptr<nb::object> kept_object(const nb::object& o) {
  return {new nb::object(o), [](nb::object* held) {
            nb::gil_scoped_acquire gil;
            delete held;
          }};
}

/// Names of operations live as long as the process.
const char* kept_name(const std::string& name) {
  static auto& names = *new std::set<std::string>;
  return names.insert(name).first->c_str();
}

/// The rule of a compiled gradient, which has none.
GradientFn no_second(const char* name) {
  return [name](const GradientCall&) -> std::vector<Tensor> {
    throw Error(ErrorKind::value, "compile.gradient.second",
                cat("the gradient of \"", name, "\" is compiled and has none itself"))
        .help("differentiate the function that is not compiled");
  };
}

/// max(dim) and min(dim) of PyTorch: values and positions, or the larger of two tensors.
nb::object extreme_along(bool largest, const Tensor& t, nb::handle dim, bool keepdim) {
  if (tensor_of(dim.ptr()) || is_ndarray(dim.ptr()))
    return nb::cast(apply(largest ? Op::maximum : Op::minimum, t, operand(dim, t)));
  const Axes axes = axes_of(dim);
  Tensor values = largest ? max(t, axes, keepdim) : min(t, axes, keepdim);
  if (axes.axes.size() != 1) return nb::cast(std::move(values));
  NDArray at = arg_reduce(largest, t.data(), static_cast<int>(axes.axes[0]), keepdim);
  // Kept for the process: looking a module up takes longer than a small reduction.
  static const auto& pair = *new nb::object(
      nb::module_::import_("weft._methods.statistics").attr("values_and_positions"));
  return pair(values, Tensor(std::move(at), false));
}

/// The same for an axis by position: inside weft.grad and its kin, where arrays are tensors for a
/// while, the values alone, as of arrays.
nb::object extreme_at(bool largest, const Tensor& t, nb::handle dim, bool keepdim) {
  const bool number = PyLong_Check(dim.ptr());
  static const auto& differentiating =
      *new nb::object(nb::module_::import_("weft._differentiating").attr("differentiating"));
  if (number && nb::cast<int>(differentiating()) > 0)
    return nb::cast(largest ? max(t, axes_of(dim), keepdim) : min(t, axes_of(dim), keepdim));
  return extreme_along(largest, t, dim, keepdim);
}

template <bool kLargest, typename Class>
void bind_extreme(Class& cls, const char* name) {
  const auto values = [](const Tensor& t, nb::handle axis, bool keepdims) {
    return kLargest ? max(t, axes_of(axis), keepdims) : min(t, axes_of(axis), keepdims);
  };
  cls.def(
         name,
         [values](const Tensor& t, nb::handle axis, bool keepdims, nb::handle) {
           return values(t, axis, keepdims);
         },
         nb::kw_only(), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
         nb::arg("out") = nb::none())
      .def(
          name,
          [](const Tensor& t, nb::handle dim, bool keepdim) {
            return extreme_along(kLargest, t, dim, keepdim);
          },
          nb::kw_only(), nb::arg("dim").none(), nb::arg("keepdim") = false)
      .def(name, values, nb::arg("axis").none(), nb::kw_only(), nb::arg("keepdims"))
      .def(
          name,
          [](const Tensor& t, nb::handle dim, bool keepdim) {
            return extreme_at(kLargest, t, dim, keepdim);
          },
          nb::arg("dim").none(), nb::arg("keepdim") = false);
}

std::vector<int> ints(nb::args args) {
  const bool one = args.size() == 1 && !PyLong_Check(args[0].ptr());
  const Dims dims = axis_numbers(one ? nb::handle(args[0]) : nb::handle(args), "axes");
  return {dims.begin(), dims.end()};
}

Dims shape_args(nb::args args) {
  if (args.size() == 1 && !PyLong_Check(args[0].ptr())) return dims_of(args[0], "shape");
  return dims_of(args, "shape");
}

/// One number for both axes of an image, or two.
Pair pair_of(nb::handle o, const char* what) {
  Dims dims;
  if (PyLong_Check(o.ptr())) {
    dims.push_back(py::extent_of(o, o, what));
    dims.push_back(dims[0]);
  } else {
    dims = dims_of(o, what);
  }
  if (dims.size() != 2) {
    throw Error(ErrorKind::value, "array.conv2d.pair",
                cat(what, " has ", dims.size(), " numbers; one or two are legal"));
  }
  return {dims[0], dims[1]};
}

nb::object binary(Op op, nb::handle a, nb::handle b) {
  Tensor *x = tensor_of(a.ptr()), *y = tensor_of(b.ptr());
  if (x && y) return nb::cast(apply(op, *x, *y));
  nb::handle other = x ? b : a;
  if (is_number(other.ptr())) {
    Scalar s = scalar_of(other.ptr());
    const NDArray& array = (x ? *x : *y).data();
    const std::optional<bool> known = s.kind != Kind::integer
                                          ? std::nullopt
                                          : (x ? constant_comparison_result(op, array, s)
                                               : constant_comparison_result(op, s, array));
    if (known)
      return nb::cast(Tensor(full(array.device(), Elem::boolean, array.shape(), *known), false));
    return nb::cast(x ? apply(op, *x, s) : apply(op, s, *y));
  }
  if (!is_ndarray(other.ptr()) && !PyObject_CheckBuffer(other.ptr()) &&
      !is_list_of_numbers(other.ptr()))
    return nb::borrow(Py_NotImplemented);
  Tensor t = operand(other, x ? *x : *y);
  return nb::cast(x ? apply(op, *x, t) : apply(op, t, *y));
}

/// Element by element; NotImplemented for what is no array, so that == is False and < a TypeError.
nb::object compared(Op op, const Tensor& t, nb::handle o) {
  if (!tensor_of(o.ptr()) && !is_number(o.ptr()) && !is_ndarray(o.ptr()) &&
      !PyObject_CheckBuffer(o.ptr()) && !is_list_of_numbers(o.ptr()))
    return nb::borrow(Py_NotImplemented);
  return binary(op, nb::cast(t), o);
}

/// As the array: one element is its truth, more have none.
bool truth(const Tensor& t) {
  int yes = PyObject_IsTrue(nb::steal(wrap(t.data())).ptr());
  if (yes < 0) throw nb::python_error();
  return yes != 0;
}

/// What a graph was made from is not written over.
void set(const Tensor& t, nb::handle key, nb::handle value) {
  const bool leaf = t.node()->inputs.empty();
  if (!leaf || (t.requires_grad() && grad_enabled())) {
    throw Error(ErrorKind::value, "array.tensor.assign",
                cat("assignment to elements of ",
                    leaf ? cat("a tensor that requires gradients, shape ", to_string(t.shape()))
                         : cat("the result of ", t.op(), ", shape ", to_string(t.shape())),
                    ": its graph would not know of it"))
        .help(leaf ? "assign inside `with weft.no_grad():`, or make a new tensor with weft.where"
                   : "make a new tensor with weft.where, or assign to x.detach()");
  }
  auto plain = [](nb::handle o) {
    Tensor* given = tensor_of(o.ptr());
    return given ? nb::steal(wrap(given->data())) : nb::borrow(o);
  };
  set_item(t.data(), plain(key).ptr(), plain(value).ptr());
}

template <Op kOp>
PyObject* binary_slot(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return binary(kOp, a, b).release().ptr(); });
}
template <Op kOp>
PyObject* unary_slot(PyObject* a) noexcept {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return nb::cast(apply(kOp, *tensor_of(a))).release().ptr(); });
}
PyObject* power_slot(PyObject* a, PyObject* b, PyObject*) noexcept {
  return binary_slot<Op::pow>(a, b);
}
PyObject* matmul_slot(PyObject* a, PyObject* b) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Tensor *x = tensor_of(a), *y = tensor_of(b);
    // A recorder of operations takes the product itself.
    if (!(x && y) && nb::hasattr(x ? b : a, "__weft_operation__") && !is_ndarray(x ? b : a))
      Py_RETURN_NOTIMPLEMENTED;
    Tensor left = x ? *x : operand(a, *y), right = y ? *y : operand(b, *x);
    Tensor out;
    {
      nb::gil_scoped_release nogil;
      out = matmul(left, right);
    }
    return nb::cast(out).release().ptr();
  });
}

PyType_Slot g_slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(binary_slot<Op::add>)},
    {Py_nb_subtract, reinterpret_cast<void*>(binary_slot<Op::subtract>)},
    {Py_nb_multiply, reinterpret_cast<void*>(binary_slot<Op::multiply>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(binary_slot<Op::divide>)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(binary_slot<Op::floor_divide>)},
    {Py_nb_remainder, reinterpret_cast<void*>(binary_slot<Op::remainder>)},
    {Py_nb_power, reinterpret_cast<void*>(power_slot)},
    {Py_nb_positive, reinterpret_cast<void*>(unary_slot<Op::positive>)},
    {Py_nb_negative, reinterpret_cast<void*>(unary_slot<Op::negative>)},
    {Py_nb_absolute, reinterpret_cast<void*>(unary_slot<Op::abs>)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(matmul_slot)},
    {0, nullptr},
};

Tensor get(const Tensor& self, nb::object key) {
  NDArray view;
  int position = 0;
  std::vector<NDArray> arrays = index_arrays(self.data(), key.ptr(), view, position);
  if (arrays.empty() && !(self.requires_grad() && grad_enabled()))
    return Tensor(std::move(view), false);
  // The same key applies to the gradient; it is kept as Python sees it.
  std::shared_ptr<nb::object> shared = kept_object(key);
  Tensor part = slice_view(self, std::move(view), [shared](const NDArray& whole) {
    nb::gil_scoped_acquire gil;
    NDArray out;
    int unused = 0;
    index_arrays(whole, shared->ptr(), out, unused);
    return out;
  });
  if (arrays.empty()) return part;
  // The indexed axes are in front of the view; the result wants them at `position`.
  int n = 0;
  for (const NDArray& a : arrays) n = std::max(n, a.ndim());
  Tensor out = gather(part, std::move(arrays));
  if (position == 0) return out;
  std::vector<int> order;
  for (int i = 0; i < position; ++i) order.push_back(n + i);
  for (int i = 0; i < n; ++i) order.push_back(i);
  for (int i = n + position; i < out.ndim(); ++i) order.push_back(i);
  return permute(out, order);
}

}  // namespace

bool tensor_operation(Op op, PyObject* const* args, PyObject** out) {
  int arity = info(op).arity;
  Tensor* first = tensor_of(args[0]);
  if (arity == 1) {
    if (!first) return false;
    *out = nb::cast(apply(op, *first)).release().ptr();
    return true;
  }
  if (!first && !tensor_of(args[1])) return false;
  *out = binary(op, args[0], args[1]).release().ptr();
  return true;
}

namespace {
/// Of each of the last axes: extent, windows, kernel, stride, padding, dilation. `shape` becomes
/// the result's.
PoolWindows pool_windows(const std::vector<std::array<std::int64_t, 6>>& axes, Dims& shape) {
  PoolWindows w;
  const std::size_t n = axes.size(), skip = 3 - n;
  for (int i = 0; i + static_cast<int>(n) < shape.size(); ++i) w.planes *= shape[i];
  for (std::size_t i = 0; i < n; ++i) {
    const auto& a = axes[i];
    w.extents[skip + i] = a[0], w.windows[skip + i] = a[1], w.kernel[skip + i] = a[2];
    w.stride[skip + i] = a[3], w.padding[skip + i] = a[4], w.dilation[skip + i] = a[5];
    shape[shape.size() - static_cast<int>(n - i)] = a[1];
  }
  return w;
}
Tensor of_type(const Tensor& t, nb::handle dtype) {
  const auto elem = optional_elem(dtype);
  return elem && *elem != t.elem() ? astype(t, *elem) : t;
}
}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> cls(m, "Tensor", nb::type_slots(g_slots),
                         "An array that records how it was made, for gradients.");
  cls.def(
         "__init__",
         [](Tensor* self, nb::handle data, nb::handle device, nb::handle dtype,
            bool requires_grad) {
           Ref<Device> d = device.is_none() ? Ref<Device>() : device_from_python(device);
           if (Tensor* other = tensor_of(data.ptr())) {
             NDArray array = other->data();
             if (d) array = array.to(d);
             if (std::optional<Elem> e = optional_elem(dtype); e && *e != array.elem())
               array = array.astype(*e);
             new (self) Tensor(array, requires_grad);
             return;
           }
           NDArray array = to_array(data.ptr(), optional_elem(dtype), d, Copy::when_needed);
           if (dtype.is_none() && !is_inexact(array.elem()) &&
               (PyList_Check(data.ptr()) || is_number(data.ptr())))
             array = array.astype(kDefaultReal);
           new (self) Tensor(array, requires_grad && is_inexact(array.elem()));
         },
         nb::arg("data"), nb::arg("device") = nb::none(), nb::arg("dtype") = nb::none(),
         nb::arg("requires_grad") = true)
      .def_prop_rw(
          "data", [](const Tensor& t) { return t.data(); },
          [](Tensor& t, nb::handle value) {
            NDArray next = tensor_of(value.ptr()) ? tensor_of(value.ptr())->data()
                                                  : to_array(value.ptr(), std::nullopt,
                                                             Ref<Device>(), Copy::when_needed);
            bool other_float = is_inexact(next.elem()) && is_inexact(t.elem()) &&
                               is_complex(next.elem()) == is_complex(t.elem());
            if (!(next.shape() == t.shape()) || (next.elem() != t.elem() && !other_float)) {
              throw Error(ErrorKind::shape, "array.tensor.data",
                          cat("data of ", name_of(t.elem()), to_string(t.shape()),
                              " cannot become ", describe(next)));
            }
            t.set_data(std::move(next));
          })
      .def_prop_rw(
          "grad",
          [](const Tensor& t) -> nb::object {
            return t.grad().defined() ? nb::cast(t.grad()) : nb::none();
          },
          [](Tensor& t, nb::handle g) { t.set_grad(g.is_none() ? Tensor() : operand(g, t)); },
          nb::for_setter(nb::arg("grad").none()))
      .def_prop_rw("requires_grad", &Tensor::requires_grad, &Tensor::set_requires_grad)
      .def_prop_ro(
          "op", [](const Tensor& t) { return std::string(t.op()); },
          "The operation that made it; \"\" for leaves.")
      .def_prop_ro("inputs", [](const Tensor& t) { return t.inputs(); })
      .def_prop_ro("is_leaf", [](const Tensor& t) { return t.node()->inputs.empty(); })
      .def_prop_ro("shape", [](const Tensor& t) { return t.shape(); })
      .def_prop_ro("ndim", &Tensor::ndim)
      .def_prop_ro("size", &Tensor::size)
      .def_prop_ro("dtype", [](const Tensor& t) { return t.elem(); })
      .def_prop_ro("device", [](const Tensor& t) { return device_object(t.device()); })
      .def_prop_ro("T", [](const Tensor& t) { return transpose(t, -2, -1); })
      .def_prop_ro("mT", [](const Tensor& t) { return transpose(t, -2, -1); })
      .def("detach", &Tensor::detach, "The same data without history.")
      .def("numpy", [](const Tensor& t) { return nb::steal(wrap(t.data())).attr("numpy")(); })
      .def("__weft_array__", [](const Tensor& t) { return t.data(); })
      .def(
          "__array__",
          [](const Tensor& t, nb::handle dtype, nb::handle copy) {
            return nb::steal(wrap(t.data())).attr("__array__")(dtype, copy);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("item", [](const Tensor& t) { return nb::steal(wrap(t.data())).attr("item")(); })
      .def("tolist", [](const Tensor& t) { return nb::steal(wrap(t.data())).attr("tolist")(); })
      .def(
          "backward",
          [](const Tensor& t, nb::handle grad, bool create_graph, bool retain_graph) {
            backward(t, grad.is_none() ? Tensor() : operand(grad, t),
                     create_graph   ? Graph::create
                     : retain_graph ? Graph::discard
                                    : Graph::release);
          },
          nb::arg("grad") = nb::none(), nb::arg("create_graph") = false,
          nb::arg("retain_graph") = false,
          "Adds gradients to .grad of all leaves. Unless retain_graph (or create_graph) says that "
          "the graph will be passed again, the values that it keeps are given back on the way.")
      .def(
          "_add_hook",
          [](const Tensor& t, const nb::object& f) {
            return t.add_hook([held = kept_object(f)](const Tensor& g) {
              nb::gil_scoped_acquire gil;
              const nb::object found = (*held)(g);
              return found.is_none() ? Tensor() : operand(found, g);
            });
          },
          nb::arg("f"), "Calls f(gradient) in each backward pass; gives the number of the hook.")
      .def("_remove_hook", &Tensor::remove_hook, nb::arg("number"))
      .def("_retain", [](const Tensor& t) { t.node()->retains = true; })
      .def(
          "_on_accumulated",
          [](Tensor& t, const nb::object& f) {
            if (f.is_none()) {
              t.node()->accumulated = nullptr;
              return;
            }
            t.node()->accumulated = [held = kept_object(f)](const Tensor& leaf) {
              nb::gil_scoped_acquire gil;
              (*held)(leaf);
            };
          },
          nb::arg("f").none(),
          "Calls f(self) each time a backward pass has added to .grad; None takes it away.")
      .def(
          "sum",
          [](const Tensor& t, nb::handle axis, bool keepdims, nb::handle dtype, nb::handle) {
            return sum(of_type(t, dtype), axes_of(axis), keepdims);
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, nb::arg("dtype") = nb::none(),
          nb::arg("out") = nb::none())
      .def(
          "mean",
          [](const Tensor& t, nb::handle axis, bool keepdims, nb::handle dtype, nb::handle) {
            return mean(of_type(t, dtype), axes_of(axis), keepdims);
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, nb::arg("dtype") = nb::none(),
          nb::arg("out") = nb::none())
      // PyTorch's names of the arguments.
      .def(
          "sum",
          [](const Tensor& t, nb::handle dim, bool keepdim, nb::handle dtype) {
            return sum(of_type(t, dtype), axes_of(dim), keepdim);
          },
          nb::arg("dim"), nb::arg("keepdim") = false, nb::arg("dtype") = nb::none())
      .def(
          "mean",
          [](const Tensor& t, nb::handle dim, bool keepdim, nb::handle dtype) {
            return mean(of_type(t, dtype), axes_of(dim), keepdim);
          },
          nb::arg("dim"), nb::arg("keepdim") = false, nb::arg("dtype") = nb::none())
      .def("reshape", [](const Tensor& t, nb::args shape) { return reshape(t, shape_args(shape)); })
      .def("permute", [](const Tensor& t, nb::args axes) { return permute(t, ints(axes)); })
      .def(
          "transpose", [](const Tensor& t, int a, int b) { return transpose(t, a, b); },
          nb::arg("a") = -2, nb::arg("b") = -1)
      .def("broadcast_to",
           [](const Tensor& t, nb::handle shape) {
             return broadcast_to(t, dims_of(shape, "shape"));
           })
      .def("flip", [](const Tensor& t, nb::args axes) { return flip(t, ints(axes)); })
      .def("astype", [](const Tensor& t, Elem e) { return astype(t, e); })
      .def("pad",
           [](const Tensor& t, const std::vector<std::pair<std::int64_t, std::int64_t>>& w) {
             return pad(t, w);
           })
      .def(
          "softmax", [](const Tensor& t, int axis) { return softmax(t, axis); },
          nb::arg("axis") = -1)
      .def(
          "softmax", [](const Tensor& t, int dim) { return softmax(t, dim); }, nb::arg("dim"))
      .def(
          "log_softmax", [](const Tensor& t, int axis) { return log_softmax(t, axis); },
          nb::arg("axis") = -1)
      .def(
          "log_softmax", [](const Tensor& t, int dim) { return log_softmax(t, dim); },
          nb::arg("dim"))
      .def(
          "logsumexp",
          [](const Tensor& t, nb::handle axis, bool keepdims) {
            return logsumexp(t, axes_of(axis), keepdims);
          },
          nb::arg("axis") = nb::none(), nb::arg("keepdims") = false)
      .def(
          "logsumexp",
          [](const Tensor& t, nb::handle dim, bool keepdim) {
            return logsumexp(t, axes_of(dim), keepdim);
          },
          nb::arg("dim"), nb::arg("keepdim") = false)
      .def(
          "layer_norm",
          [](const Tensor& t, const std::optional<Tensor>& scale,
             const std::optional<Tensor>& shift, double eps) {
            if (scale.has_value() == shift.has_value())
              return layer_norm(t, scale.value_or(Tensor()), shift.value_or(Tensor()), eps);
            const Dims row = scale ? scale->shape() : shift->shape();
            const auto missing = [&](double v) {
              return Tensor(full(t.device(), t.elem(), row, Scalar(v)));
            };
            return layer_norm(t, scale ? *scale : missing(1), shift ? *shift : missing(0), eps);
          },
          nb::arg("scale").none(), nb::arg("shift").none(), nb::arg("eps") = 1e-5,
          "(x - mean) / sqrt(variance + eps) * scale + shift over the last axis; None: 1, 0.")
      .def("concat",
           [](const Tensor& self, nb::list xs, int axis) {
             std::vector<Tensor> all;
             for (nb::handle x : xs) all.push_back(operand(x, self));
             return concat(all, axis);
           })
      .def("_where",
           [](const Tensor& self, nb::handle condition, nb::handle a, nb::handle b) {
             const Tensor test = operand(condition, self);
             Tensor *first = tensor_of(a.ptr()), *second = tensor_of(b.ptr());
             if (first && is_number(b.ptr())) return where(test, *first, scalar_of(b.ptr()), true);
             if (second && is_number(a.ptr()))
               return where(test, *second, scalar_of(a.ptr()), false);
             return where(test, operand(a, self), operand(b, self));
           })
      .def("windows", [](const Tensor& t, std::int64_t kh, std::int64_t kw,
                         std::int64_t stride) { return windows(t, kh, kw, stride); })
      .def("__getitem__", get, nb::arg().none())
      .def("__setitem__", set, nb::arg().none(), nb::arg().none())
      .def("__len__", [](const Tensor& t) { return nb::len(nb::steal(wrap(t.data()))); })
      .def("__bool__", [](const Tensor& t) { return truth(t); })
      .def(
          "__int__",
          [](const Tensor& t) { return nb::steal(PyNumber_Long(nb::steal(wrap(t.data())).ptr())); })
      .def("__index__",
           [](const Tensor& t) {
             PyObject* const index = PyNumber_Index(nb::steal(wrap(t.data())).ptr());
             if (!index) throw nb::python_error();
             return nb::steal(index);
           })
      .def("__hash__", [](const Tensor& t) { return std::hash<const void*>()(t.node().get()); })
      .def(
          "__eq__", [](const Tensor& t, nb::handle o) { return compared(Op::equal, t, o); },
          nb::arg().none())
      .def(
          "__ne__", [](const Tensor& t, nb::handle o) { return compared(Op::not_equal, t, o); },
          nb::arg().none())
      .def("__gt__", [](const Tensor& t, nb::handle o) { return compared(Op::greater, t, o); })
      .def("__ge__",
           [](const Tensor& t, nb::handle o) { return compared(Op::greater_equal, t, o); })
      .def("__lt__", [](const Tensor& t, nb::handle o) { return compared(Op::less, t, o); })
      .def("__le__", [](const Tensor& t, nb::handle o) { return compared(Op::less_equal, t, o); })
      .def("__float__", [](const Tensor& t) { return nb::float_(nb::steal(wrap(t.data()))); })
      .def("__repr__", [](const Tensor& t) {
        return cat("weft.Tensor(",
                   t.released() ? cat("released, shape=", to_string(t.shape())) : format(t.data()),
                   ", dtype=", name_of(t.elem()), ", device=", t.device()->info().name,
                   t.requires_grad()
                       ? cat(", requires_grad=True", *t.op() ? cat(", op=", t.op()) : std::string())
                       : std::string(),
                   ")");
      });
  // PyTorch's names of the arguments give pairs, as there; the array API's give values.
  bind_extreme<true>(cls, "max");
  bind_extreme<false>(cls, "min");
  cls.attr("__weft_tensor__") = true;
  m.def(
      "gradients",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& wanted, bool create_graph,
         const std::vector<Tensor>& seeds, bool none_unused) {
        std::vector<Tensor> gs =
            gradients(outputs, seeds, wanted, create_graph ? Graph::create : Graph::discard);
        nb::list out;
        for (std::size_t i = 0; i < gs.size(); ++i) {
          if (gs[i].defined()) out.append(gs[i]);
          else if (none_unused) out.append(nb::none());
          else
            out.append(
                Tensor(full(wanted[i].device(), wanted[i].elem(), wanted[i].shape(), Scalar(0))));
        }
        return out;
      },
      nb::arg("outputs"), nb::arg("wanted"), nb::arg("create_graph") = false,
      nb::arg("seeds") = std::vector<Tensor>(), nb::arg("none_unused") = false);
  m.def(
      "_after_backward",
      [](const nb::object& f) {
        after_backward([held = kept_object(f)] {
          nb::gil_scoped_acquire gil;
          (*held)();
        });
      },
      nb::arg("f"),
      "Calls f() once, when the backward pass under way on this thread ends; at once without one.");
  m.def("topological", [](const Tensor& t) {
    const Tensor one[1] = {t};
    return topological(one);
  });
  m.def(
      "conv2d",
      [](const Tensor& x, const Tensor& w, nb::handle stride, nb::handle padding,
         nb::handle dilation, std::int64_t groups) {
        const Conv conv{pair_of(stride, "stride"),
                        pair_of(padding, "padding"),
                        pair_of(dilation, "dilation"),
                        {0, 0},
                        groups};
        nb::gil_scoped_release nogil;  // threads build kernels at once
        return conv2d(x, w, conv);
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("stride") = 1, nb::arg("padding") = 0,
      nb::arg("dilation") = 1, nb::arg("groups") = 1,
      "x (n, c, h, w) with weight (o, c / groups, kh, kw).");
  m.def(
      "conv_transpose2d",
      [](const Tensor& x, const Tensor& w, nb::handle stride, nb::handle padding,
         nb::handle output_padding, std::int64_t groups, nb::handle dilation) {
        const Conv conv{pair_of(stride, "stride"), pair_of(padding, "padding"),
                        pair_of(dilation, "dilation"), pair_of(output_padding, "output_padding"),
                        groups};
        nb::gil_scoped_release nogil;
        return conv_transpose2d(x, w, conv);
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("stride") = 1, nb::arg("padding") = 0,
      nb::arg("output_padding") = 0, nb::arg("groups") = 1, nb::arg("dilation") = 1,
      "The transpose of conv2d: x (n, c, h, w) with weight (c, o / groups, kh, kw).");
  m.def(
      "_convolution",
      [](const NDArray& x, const NDArray& w, const Pair& stride, const Pair& padding,
         const Pair& dilation, std::int64_t groups) {
        const nb::gil_scoped_release nogil;
        return conv2d(Tensor(x), Tensor(w), Conv{stride, padding, dilation, {0, 0}, groups}).data();
      },
      "conv2d of arrays.");
  m.def(
      "_convolution_gradients",
      [](const NDArray& g, const NDArray& x, const NDArray& w, bool want_x, bool want_w,
         const Pair& stride, const Pair& padding, const Pair& dilation, bool transposed,
         const Pair& output_padding, std::int64_t groups) {
        const Conv conv{stride, padding, dilation, output_padding, groups};
        std::vector<Tensor> found;
        {
          nb::gil_scoped_release nogil;
          found = convolution_gradients(Tensor(g), Tensor(x, want_x), Tensor(w, want_w), conv,
                                        transposed);
        }
        nb::list out;
        for (const Tensor& t : found)
          if (t.defined()) out.append(t.data());
          else out.append(nb::none());
        return out;
      },
      "Gradients for (x, weight) of conv2d or its transpose, None for one that is not asked.");
  m.def("_take_along_axis_tensor", [](const Tensor& x, const NDArray& index, int axis) {
    return take_along_axis(x, index, axis);
  });
  m.def("_has_grid", [](const NDArray& x) { return !x.on_host() && has_grid(x); });
  m.def("_has_pooling",
        [](const NDArray& x) { return !is_complex(x.elem()) && (x.on_host() || has_grid(x)); });
  m.def("_max_pool", [](const Tensor& x, const std::vector<std::array<std::int64_t, 6>>& axes) {
    Dims shape = x.shape();
    const PoolWindows w = pool_windows(axes, shape);
    return max_pool(x, w, shape);
  });
  m.def("_mean_pool", [](const Tensor& x, const std::vector<std::array<std::int64_t, 6>>& axes,
                         bool adaptive, bool with_border, std::int64_t divisor) {
    using operators::MeanOf;
    Dims shape = x.shape();
    MeanWindows w{pool_windows(axes, shape), adaptive};
    w.of = divisor ? MeanOf::number : with_border ? MeanOf::with_border : MeanOf::inside;
    w.divisor = divisor ? divisor : 1;
    return mean_pool(x, w, shape);
  });
  m.def("_resample",
        [](const Tensor& x,
           const std::vector<std::tuple<std::int64_t, std::int64_t, double, double>>& axes) {
          // Of each axis: extent, size, step, bias.
          std::vector<ResampleAxis> all;
          for (const auto& [extent, size, step, bias] : axes)
            all.push_back({extent, size, step, bias});
          return grid_resample(x, all);
        });
  m.def("_plain_operator", [](const std::string& name, const std::vector<Tensor>& operands) {
    return plain_operator(name, operands);
  });
  m.def("_sort_tensor",
        [](const Tensor& x, int axis, bool descending) { return sort(x, axis, descending); });
  m.def("_cumulative_sum_tensor",
        [](const Tensor& x, int axis) { return cumulative_sum(x, axis); });
  m.def("_scatter_add_tensor", [](const Tensor& x, const std::vector<NDArray>& index,
                                  const Tensor& values) { return scatter_add(x, index, values); });
  m.def(
      "_custom_tensor",
      [](const std::string& name, const NDArray& data, const std::vector<Tensor>& inputs,
         nb::object rule) {
        const char* kept = kept_name(name);
        std::shared_ptr<nb::object> shared = kept_object(rule);
        return make_tensor(kept, data, inputs, [shared, kept](const GradientCall& c) {
          nb::gil_scoped_acquire gil;
          nb::list found = nb::cast<nb::list>((*shared)(c.g.data()));
          std::vector<Tensor> out(c.x.size()), sources = c.x;
          sources.push_back(c.g);
          for (std::size_t i = 0; i < out.size() && i < found.size(); ++i) {
            // Linked, so that a gradient of the gradient is refused rather than missing.
            if (!found[i].is_none())
              out[i] = make_tensor(kept, nb::cast<NDArray>(found[i]), sources, no_second(kept));
          }
          return out;
        });
      },
      "A tensor whose gradient is the given function of the incoming one: one array or None for "
      "each input.");
  m.def("grad_enabled", &grad_enabled, "Whether operations of this thread link a graph.");
  m.def(
      "set_grad_enabled",
      [](bool on) {
        bool before = grad_enabled();
        set_grad_enabled(on);
        return before;
      },
      nb::arg("on"), "Returns what it was.");
  m.def(
      "_function_tensor",
      [](const std::string& name, const NDArray& data, const std::vector<Tensor>& inputs,
         nb::object rule, const std::vector<int>& read, bool reads_result) {
        std::shared_ptr<nb::object> shared = kept_object(rule);
        Reads reads = reads_result ? kResult : kReadsNothing;
        for (int i : read) reads |= i < 31 ? 1u << i : kReadsAll;
        auto gradient = [shared](const GradientCall& c) {
          bool linked = c.g.requires_grad();
          for (const Tensor& x : c.x) linked |= x.requires_grad();
          std::optional<NoGrad> unlinked;
          if (!linked) unlinked.emplace();
          nb::gil_scoped_acquire gil;
          nb::list found = nb::cast<nb::list>((*shared)(c.x, c.out, c.g));
          std::vector<Tensor> out(c.x.size());
          for (std::size_t i = 0; i < out.size() && i < found.size(); ++i) {
            if (!found[i].is_none()) out[i] = nb::cast<Tensor>(found[i]);
          }
          return out;
        };
        return make_tensor(kept_name(name), data, inputs, gradient, reads);
      },
      "A tensor whose gradients are rule(inputs, output, incoming): one tensor or None for each "
      "input. Of the inputs it reads the values of those numbered in `read`.");
  m.def("_as_positions", [](const NDArray& x) { return as_positions(x); });
  m.def("_label_positions", [](const NDArray& labels, std::int64_t classes, const std::string& code,
                               const std::string& message, const std::string& help) {
    Error error(ErrorKind::index, code, message);
    return grid_label_positions(labels, classes, error.help(help));
  });
  m.def("_gather_tensor", [](const Tensor& x, const NDArray& index) { return gather(x, {index}); });
  m.def("_label_losses", [](const Tensor& logits, const NDArray& labels, const std::string& code,
                            const std::string& message, const std::string& help) {
    Error error(ErrorKind::index, code, message);
    return nn::label_losses(logits, labels, error.help(help));
  });
  m.def("_linear", [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    const nb::gil_scoped_release nogil;
    return linear(x, weight, bias);
  });
}

}  // namespace weft::py
