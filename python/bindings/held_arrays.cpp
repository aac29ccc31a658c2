// SPDX-License-Identifier: Apache-2.0
// What a captured function's state looked like, and whether it still looks so: asked in every
// replay, where walking through modules and optimizers in Python would take longer than the step.

#include <nanobind/nanobind.h>

#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "array_type.h"
#include "recording_bridge.h"
#include "weft/autograd/tensor.h"

namespace weft::py {

namespace {

/// Where an array's elements lie.
struct Place {
  Ref<Storage> storage;  // held, so that its address is no other's later
  std::int64_t offset = 0;
  Dims shape, strides;

  explicit Place(const NDArray& a)
      : storage(a.handle()), offset(a.offset()), shape(a.shape()), strides(a.strides()) {}
  bool holds(const NDArray& a) const {
    return a.handle().get() == storage.get() && a.offset() == offset && a.shape() == shape &&
           a.strides() == strides;
  }
};

struct HeldTensor {
  Tensor tensor;
  Place data;
  std::optional<Place> grad;

  explicit HeldTensor(Tensor t) : tensor(std::move(t)), data(tensor.data()) {
    if (const Tensor g = tensor.grad(); g.defined()) grad.emplace(g.data());
  }
  bool same() const {
    if (tensor.released() || !data.holds(tensor.data())) return false;
    const Tensor g = tensor.grad();
    return g.defined() == grad.has_value() && (!grad || (!g.released() && grad->holds(g.data())));
  }
};

/// A dict or list and what it held. Values of `free` keys are not looked at.
struct HeldContainer {
  nb::object container, before;
  nb::set free;
  std::vector<std::pair<nb::object, Place>> arrays;

  HeldContainer(nb::object held, nb::set free_keys)
      : container(std::move(held)), free(std::move(free_keys)) {
    before = container.attr("copy")();
    for_each(before, [&](nb::handle, nb::handle value) {
      if (is_ndarray(value.ptr()))
        arrays.emplace_back(nb::borrow(value), Place(unwrap(value.ptr())));
    });
  }

  template <typename F>
  static void for_each(nb::handle of, F f) {
    if (PyDict_Check(of.ptr())) {
      Py_ssize_t at = 0;
      PyObject *key = nullptr, *value = nullptr;
      while (PyDict_Next(of.ptr(), &at, &key, &value)) f(key, value);
    } else {
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(of.ptr()); ++i)
        f(nullptr, PyList_GET_ITEM(of.ptr(), i));
    }
  }

  static bool equal(PyObject* a, PyObject* b) {
    if (a == b) return true;
    const bool numbers = (PyFloat_CheckExact(a) && PyFloat_CheckExact(b)) ||
                         (PyLong_CheckExact(a) && PyLong_CheckExact(b));
    return numbers && PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  }

  bool same() const {
    for (const auto& [object, place] : arrays)
      if (!place.holds(unwrap(object.ptr()))) return false;
    if (PyList_Check(container.ptr())) {
      const Py_ssize_t count = PyList_GET_SIZE(container.ptr());
      if (count != PyList_GET_SIZE(before.ptr())) return false;
      for (Py_ssize_t i = 0; i < count; ++i)
        if (!equal(PyList_GET_ITEM(container.ptr(), i), PyList_GET_ITEM(before.ptr(), i)))
          return false;
      return true;
    }
    if (PyDict_Size(container.ptr()) != PyDict_Size(before.ptr())) return false;
    Py_ssize_t at = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(before.ptr(), &at, &key, &value)) {
      PyObject* now = PyDict_GetItemWithError(container.ptr(), key);
      if (!now) return PyErr_Clear(), false;
      if (!equal(now, value) && PySet_Contains(free.ptr(), key) != 1) return false;
    }
    return true;
  }
};

class HeldArrays {
 public:
  HeldArrays(nb::list containers, const std::vector<Tensor>& tensors) {
    for (nb::handle each : containers) {
      auto pair = nb::cast<nb::tuple>(each);
      containers_.emplace_back(nb::borrow(pair[0]), nb::cast<nb::set>(pair[1]));
    }
    for (const Tensor& t : tensors) tensors_.emplace_back(t);
  }
  bool same() const {
    for (const HeldTensor& t : tensors_)
      if (!t.same()) return false;
    for (const HeldContainer& c : containers_)
      if (!c.same()) return false;
    return true;
  }
  /// For Python's collector: modules may hold the function that holds them.
  int visit(visitproc visit, void* arg) const {
    for (const HeldContainer& c : containers_) {
      Py_VISIT(c.container.ptr());
      Py_VISIT(c.before.ptr());
      Py_VISIT(c.free.ptr());
      for (const auto& [object, place] : c.arrays) Py_VISIT(object.ptr());
    }
    return 0;
  }
  void clear() { containers_.clear(), tensors_.clear(); }

 private:
  std::vector<HeldContainer> containers_;
  std::vector<HeldTensor> tensors_;
};

int visit_held(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<HeldArrays>(self)->visit(visit, arg);
}
int clear_held(PyObject* self) {
  nb::inst_ptr<HeldArrays>(self)->clear();
  return 0;
}
PyType_Slot held_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_held)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_held)},
                            {0, nullptr}};

}  // namespace

void bind_held_arrays(nb::module_& m) {
  nb::class_<HeldArrays>(m, "_HeldArrays", nb::type_slots(held_slots),
                         "What containers and tensors hold, to be compared with later.")
      .def(nb::init<nb::list, const std::vector<Tensor>&>(), nb::arg("containers"),
           nb::arg("tensors"))
      .def("same", &HeldArrays::same,
           "Whether every container holds the same objects and equal numbers, and every array lies "
           "where it lay.");
}

}  // namespace weft::py
