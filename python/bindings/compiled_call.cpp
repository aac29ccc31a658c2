// SPDX-License-Identifier: Apache-2.0
// weft._core.CompiledCall: what weft.compile's objects do at a call whose types and shapes were
// seen before. In Python the look-up alone costs more than an operation on a few elements.

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "array_type.h"
#include "public_function.h"
#include "weft/autograd/tensor.h"
#include "weft/fusion/fuse.h"

namespace weft::py {

namespace {

/// What weft.autocast says on this thread, as a number; 0: nothing. Each has traces of its own.
thread_local std::uint32_t g_casting = 0;

/// The array of an argument, `tensor` set where it is a tensor's; null for other arguments.
const NDArray* array_of(PyObject* arg, Tensor*& tensor) {
  tensor = nullptr;
  if (is_ndarray(arg)) return &unwrap(arg);
  return nb::try_cast<Tensor*>(nb::handle(arg), tensor) && tensor ? &tensor->data() : nullptr;
}

/// Types, shapes and devices of arguments that are all arrays or tensors; empty for others.
void signature_of(PyObject* const* args, Py_ssize_t count, std::string& text) {
  if (g_casting) text.append(reinterpret_cast<const char*>(&g_casting), sizeof g_casting) += '|';
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* arg = args[i];
    Tensor* tensor = nullptr;
    const NDArray* array = array_of(arg, tensor);
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
  /// Calls like this one from now on: `trace` is the last one's, `function` takes the arguments;
  /// or `plan` gives the one result, of arrays alone.
  void remember(const nb::tuple& args, nb::object trace, nb::object function, nb::object plan) {
    std::string text;
    signature_of(PySequence_Fast_ITEMS(args.ptr()), PyTuple_GET_SIZE(args.ptr()), text);
    if (text.empty()) return;
    Entry& e = entries_[std::move(text)];
    e.plan = plan.is_none() ? nullptr : nb::cast<FusedPlan*>(plan);
    e.alone = e.plan && e.plan->alone();
    e.brief = e.plan && (e.alone || e.plan->brief());
    e.lone = {};
    e.trace = std::move(trace), e.function = std::move(function), e.held = std::move(plan);
    e.casting = g_casting;
    e.operands.clear();
    bool small = true;
    for (nb::handle arg : args) {
      Tensor* tensor = nullptr;
      const NDArray& a = *array_of(arg.ptr(), tensor);
      e.operands.push_back({tensor != nullptr, a.elem(), a.shape(), a.device()});
      constexpr std::int64_t kFew = 1 << 15;  // elements that one thread computes
      small &= a.on_host() && a.size() <= kFew;
    }
    if (e.alone && small) e.lone = e.plan->lone_row();
    recent_ = &e;
  }

  /// `self`: this object, whose method _called takes the calls that are not remembered.
  PyObject* call(nb::handle self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    if (!(names && PyTuple_GET_SIZE(names) > 0) && recent_) {
      if (recent_->takes(args, count)) return serve(*recent_, args, count);
      std::string text;
      signature_of(args, count, text);
      if (auto found = entries_.find(text); found != entries_.end()) {
        recent_ = &found->second;
        return serve(*recent_, args, count);
      }
    }
    return self
        .attr("_called")(positional_arguments(args, count), named_arguments(args, count, names))
        .release()
        .ptr();
  }

  int visit(visitproc visit, void* arg) const {
    Py_VISIT(last.ptr());
    for (const auto& [text, e] : entries_) {
      Py_VISIT(e.trace.ptr());
      Py_VISIT(e.function.ptr());
      Py_VISIT(e.held.ptr());
    }
    return 0;
  }
  void clear() { recent_ = nullptr, last.reset(), entries_.clear(); }

  nb::object last = nb::none();
  vectorcallfunc vectorcall = nullptr;

 private:
  struct Operand {
    bool tensor;
    Elem elem;
    Dims shape;
    Ref<runtime::Device> device;
  };
  struct Entry {
    nb::object trace, function, held;
    FusedPlan* plan = nullptr;
    bool alone = false, brief = false;  // the plan is one operation; nothing in it is compiled
    LoneRow lone;
    std::uint32_t casting = 0;
    std::vector<Operand> operands;

    bool takes(PyObject* const* args, Py_ssize_t count) const {
      if (casting != g_casting) return false;
      if (count != static_cast<Py_ssize_t>(operands.size())) return false;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const Operand& o = operands[i];
        Tensor* tensor = nullptr;
        const NDArray* a = array_of(args[i], tensor);
        if (!a || (tensor != nullptr) != o.tensor || a->elem() != o.elem ||
            a->device() != o.device || !(a->shape() == o.shape))
          return false;
      }
      return true;
    }
  };

  PyObject* serve(const Entry& e, PyObject* const* args, Py_ssize_t count) {
    if (last.ptr() != e.trace.ptr()) last = e.trace;
    if (e.plan) return run_plan(e, args, count);
    const nb::object function = e.function;
    return PyObject_Vectorcall(function.ptr(), args, static_cast<std::size_t>(count), nullptr);
  }

  static PyObject* run_plan(const Entry& e, PyObject* const* args, Py_ssize_t count) {
    if (e.lone.function) {
      const NDArray& a = unwrap(args[e.lone.slots[0]]);
      const NDArray& b = unwrap(args[e.lone.slots[e.lone.count - 1]]);
      if (a.is_contiguous() && b.is_contiguous()) {
        NDArray out = NDArray::empty(a.device(), e.lone.result, a.shape());
        const void* in[2] = {a.host(), b.host()};
        if (out.size() > 0) e.lone.function(out.size(), in, out.host());
        return wrap(std::move(out));
      }
    }
    const nb::object held = e.held;  // other threads may forget the entry
    FusedPlan& plan = *e.plan;
    // Elements for which other threads need not run: those of one operation as without compiling.
    const std::int64_t few = std::int64_t{1} << (e.alone ? 20 : 15);
    constexpr Py_ssize_t kFew = 4;
    auto array = [&](Py_ssize_t i) -> const NDArray& { return unwrap(args[i]); };
    bool brief = e.brief && count <= kFew;
    for (Py_ssize_t i = 0; brief && i < count; ++i)
      brief = array(i).on_host() && array(i).size() <= few;
    if (brief) {
      const NDArray* in[kFew];
      for (Py_ssize_t i = 0; i < count; ++i) in[i] = &array(i);
      const std::span<const NDArray* const> all(in, static_cast<std::size_t>(count));
      return wrap(e.alone ? plan.run_alone(all) : std::move(plan.run(all)[0]));
    }
    std::vector<NDArray> kept;  // other threads may change what the objects hold
    std::vector<const NDArray*> in;
    for (Py_ssize_t i = 0; i < count; ++i) kept.push_back(array(i));
    for (const NDArray& a : kept) in.push_back(&a);
    std::vector<NDArray> out;
    {
      const nb::gil_scoped_release nogil;
      out = plan.run(in);
    }
    return wrap(std::move(out[0]));
  }

  std::unordered_map<std::string, Entry> entries_;
  Entry* recent_ = nullptr;  // of entries_
};

PyObject* call_seen(PyObject* self, PyObject* const* args, std::size_t flags,
                    PyObject* names) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    return nb::inst_ptr<CompiledCall>(self)->call(self, args, PyVectorcall_NARGS(flags), names);
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
PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_traverse, reinterpret_cast<void*>(visit)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {0, nullptr}};

/// Objects of the type are called with their arguments as they lie, without a tuple around them.
/// nanobind has no word for it; where an object holds the function is found from one.
void call_by_vector(nb::handle type, nb::handle object) {
  auto* t = reinterpret_cast<PyTypeObject*>(type.ptr());
  auto* const held = nb::inst_ptr<CompiledCall>(object);
  t->tp_vectorcall_offset =
      reinterpret_cast<char*>(&held->vectorcall) - reinterpret_cast<char*>(object.ptr());
  t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  PyType_Modified(t);
}

}  // namespace

void bind_compiled_call(nb::module_& m) {
  auto type = nb::class_<CompiledCall>(m, "CompiledCall", nb::type_slots(slots),
                                       "Calls of a compiled function by types and shapes.");
  type.def("__init__",
           [](CompiledCall* self) { (new (self) CompiledCall())->vectorcall = &call_seen; })
      .def("_remember", &CompiledCall::remember, nb::arg("args"), nb::arg("trace"),
           nb::arg("function"), nb::arg("plan").none(),
           "The function, or the plan, that serves calls with such arguments from now on.")
      .def_prop_rw(
          "_last", [](const CompiledCall& c) { return c.last; },
          [](CompiledCall& c, nb::object trace) { c.last = std::move(trace); },
          nb::for_setter(nb::arg("trace").none()), "The trace of the last call.");
  m.def("_casting", [](std::uint32_t state) { g_casting = state; });
  call_by_vector(type, type());
  // Python before 3.12 leaves the flag out of classes that are derived in Python.
  m.def("_called_by_vector", [](nb::type_object_t<CompiledCall> derived) {
    reinterpret_cast<PyTypeObject*>(derived.ptr())->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  });
}

}  // namespace weft::py
