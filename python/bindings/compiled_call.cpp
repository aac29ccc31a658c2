// SPDX-License-Identifier: Apache-2.0
// weft._core.CompiledCall: what weft.compile's objects do at a call whose types and shapes were
// seen before. In Python the look-up alone costs more than an operation on a few elements.

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "array_type.h"
#include "weft/autograd/tensor.h"
#include "weft/fusion/fuse.h"

namespace weft::py {

namespace {

/// Types, shapes and devices of arguments that are all arrays or tensors; empty for others.
void signature_of(PyObject* args, std::string& text) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* arg = PyTuple_GET_ITEM(args, i);
    Tensor* tensor = nullptr;
    const NDArray* array = nullptr;
    if (is_ndarray(arg)) array = &unwrap(arg);
    else if (nb::try_cast<Tensor*>(nb::handle(arg), tensor) && tensor) array = &tensor->data();
    if (!array) return text.clear();
    if (tensor) text += '\'';
    text += static_cast<char>('A' + static_cast<int>(array->elem()));
    text += static_cast<char>('0' + array->ndim());
    for (const std::int64_t extent : array->shape())
      text.append(reinterpret_cast<const char*>(&extent), sizeof(extent));
    text += array->device()->info().name;
    text += ';';
  }
}

class CompiledCall {
 public:
  /// `inside`: how many derivatives the thread is inside of.
  explicit CompiledCall(nb::object inside) : inside_(std::move(inside)) {}

  /// Calls like this one from now on: `trace` is the last one's, `function` takes the arguments;
  /// or, outside of second derivatives, `plan` gives the one result.
  void remember(const nb::tuple& args, nb::object trace, nb::object function, nb::object plan) {
    std::string text;
    signature_of(args.ptr(), text);
    if (text.empty()) return;
    Entry& e = entries_[std::move(text)];
    e.plan = plan.is_none() ? nullptr : nb::cast<FusedPlan*>(plan);
    e.trace = std::move(trace), e.function = std::move(function), e.held = std::move(plan);
  }

  /// `self`: this object, whose method _called takes the calls that are not remembered.
  PyObject* call(nb::handle self, PyObject* args, PyObject* named) {
    if (!named && !entries_.empty()) {
      std::string text;
      signature_of(args, text);
      if (auto found = entries_.find(text); found != entries_.end()) {
        const Entry& e = found->second;
        last = e.trace;
        if (!e.plan || nb::cast<int>(inside_()) > 1)
          return PyObject_Call(nb::object(e.function).ptr(), args, nullptr);
        return run_plan(e, args);
      }
    }
    nb::object names = named ? nb::borrow(named) : nb::object(nb::dict());
    return self.attr("_called")(nb::handle(args), names).release().ptr();
  }

  int visit(visitproc visit, void* arg) const {
    Py_VISIT(inside_.ptr());
    Py_VISIT(last.ptr());
    for (const auto& [text, e] : entries_) {
      Py_VISIT(e.trace.ptr());
      Py_VISIT(e.function.ptr());
      Py_VISIT(e.held.ptr());
    }
    return 0;
  }
  void clear() { inside_.reset(), last.reset(), entries_.clear(); }

  nb::object last = nb::none();

 private:
  struct Entry {
    nb::object trace, function, held;
    FusedPlan* plan = nullptr;
  };

  static PyObject* run_plan(const Entry& e, PyObject* args) {
    const nb::object held = e.held;  // other threads may forget the entry
    FusedPlan& plan = *e.plan;
    std::vector<NDArray> in, out;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      in.push_back(unwrap(PyTuple_GET_ITEM(args, i)));
    {
      const nb::gil_scoped_release nogil;
      out = plan.run(in);
    }
    return wrap(std::move(out[0]));
  }

  nb::object inside_;
  std::unordered_map<std::string, Entry> entries_;
};

PyObject* call_seen(PyObject* self, PyObject* args, PyObject* named) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    return nb::inst_ptr<CompiledCall>(self)->call(self, args, named);
  });
}
int visit(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<CompiledCall>(self)->visit(visit, arg);
}
int clear(PyObject* self) {
  nb::inst_ptr<CompiledCall>(self)->clear();
  return 0;
}
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(call_seen)},
                       {Py_tp_traverse, reinterpret_cast<void*>(visit)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

}  // namespace

void bind_compiled_call(nb::module_& m) {
  nb::class_<CompiledCall>(m, "CompiledCall", nb::type_slots(slots),
                           "Calls of a compiled function by types and shapes.")
      .def(nb::init<nb::object>(), nb::arg("inside"))
      .def("_remember", &CompiledCall::remember, nb::arg("args"), nb::arg("trace"),
           nb::arg("function"), nb::arg("plan").none(),
           "The function, or the plan, that serves calls with such arguments from now on.")
      .def_prop_rw(
          "_last", [](const CompiledCall& c) { return c.last; },
          [](CompiledCall& c, nb::object trace) { c.last = std::move(trace); },
          nb::for_setter(nb::arg("trace").none()), "The trace of the last call.");
}

}  // namespace weft::py
