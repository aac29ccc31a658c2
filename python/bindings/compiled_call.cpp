// SPDX-License-Identifier: Apache-2.0
// weft._core.CompiledCall: what weft.compile's objects do at a call whose types and shapes were
// seen before. In Python the look-up alone costs more than an operation on a few elements.

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
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

void append_raw(std::string& text, const void* data, std::size_t bytes) {
  text.append(static_cast<const char*>(data), bytes);
}

/// The text by which a call is known again: types, shapes and devices of its arrays and tensors,
/// nested in lists, tuples and dicts as they may be, and the numbers and strings beside them.
/// `leaves`: the arrays and tensors in the order of the text. False where something else is there.
class Signature {
 public:
  std::string text;
  std::vector<PyObject*> leaves;

  bool read(PyObject* const* args, Py_ssize_t count) {
    if (g_casting) append_raw(text, &g_casting, sizeof g_casting), text += '|';
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!read_one(args[i], 0)) return false;
    return !leaves.empty() || count == 0;  // numbers alone have no end
  }

 private:
  static constexpr int kDeepest = 16;

  bool read_one(PyObject* arg, int depth) {
    Tensor* tensor = nullptr;
    if (const NDArray* array = array_of(arg, tensor)) {
      if (tensor) text += '\'';
      text += static_cast<char>('A' + static_cast<int>(array->elem()));
      text += static_cast<char>('0' + array->ndim());
      for (const std::int64_t extent : array->shape()) append_raw(text, &extent, sizeof extent);
      text += array->device()->info().name;
      text += ';';
      leaves.push_back(arg);
      return true;
    }
    if (depth == kDeepest) return false;
    if (PyTuple_CheckExact(arg) || PyList_CheckExact(arg)) {
      text += PyTuple_CheckExact(arg) ? '(' : '[';
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(arg);
      append_raw(text, &count, sizeof count);
      for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(arg); ++i)
        if (!read_one(PySequence_Fast_GET_ITEM(arg, i), depth + 1)) return false;
      return true;
    }
    if (PyDict_CheckExact(arg)) {
      text += '{';
      const Py_ssize_t count = PyDict_GET_SIZE(arg);
      append_raw(text, &count, sizeof count);
      PyObject *key, *value;
      for (Py_ssize_t at = 0; PyDict_Next(arg, &at, &key, &value);)
        if (!PyUnicode_CheckExact(key) || !read_text(key) || !read_one(value, depth + 1))
          return false;
      return true;
    }
    return read_constant(arg);
  }

  /// Numbers by their bits, so that each is the constant of a trace of its own.
  bool read_constant(PyObject* arg) {
    if (arg == Py_None || PyBool_Check(arg)) {
      text += arg == Py_None ? 'N' : arg == Py_True ? 'T' : 'F';
      return true;
    }
    if (PyFloat_CheckExact(arg)) {
      const double value = PyFloat_AS_DOUBLE(arg);
      text += 'f', append_raw(text, &value, sizeof value);
      return true;
    }
    if (PyLong_CheckExact(arg)) {
      int beyond = 0;
      const long long value = PyLong_AsLongLongAndOverflow(arg, &beyond);
      if (beyond) return false;
      text += 'i', append_raw(text, &value, sizeof value);
      return true;
    }
    return PyUnicode_CheckExact(arg) && read_text(arg);
  }

  bool read_text(PyObject* word) {
    Py_ssize_t length = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(word, &length);
    if (!bytes) {
      PyErr_Clear();  // half of a pair of surrogates
      return false;
    }
    text += 's', append_raw(text, &length, sizeof length), text.append(bytes, length);
    return true;
  }
};

/// Numbers of the leaves of a signature (`next`: the first of them here), dicts in the order of
/// their keys.
void order_leaves(PyObject* arg, std::uint32_t& next, std::vector<std::uint32_t>& order) {
  Tensor* tensor = nullptr;
  if (array_of(arg, tensor)) return order.push_back(next++);
  if (PyTuple_CheckExact(arg) || PyList_CheckExact(arg)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(arg); ++i)
      order_leaves(PySequence_Fast_GET_ITEM(arg, i), next, order);
  } else if (PyDict_CheckExact(arg)) {
    std::map<std::string, std::vector<std::uint32_t>> found;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(arg, &at, &key, &value);)
      order_leaves(value, next, found[nb::cast<std::string>(nb::handle(key))]);
    for (const auto& [name, numbers] : found)
      order.insert(order.end(), numbers.begin(), numbers.end());
  }
}

class CompiledCall {
 public:
  /// Calls like this one from now on: `trace` is the last one's, `function` takes the arguments,
  /// or, `of_leaves`, the arrays and tensors among them; or `plan` gives the one result, of arrays
  /// alone.
  void remember(const nb::tuple& args, nb::object trace, nb::object function, nb::object plan,
                bool of_leaves) {
    Signature read;
    const Py_ssize_t count = PyTuple_GET_SIZE(args.ptr());
    if (!read.read(PySequence_Fast_ITEMS(args.ptr()), count)) return;
    Entry& e = entries_[std::move(read.text)];
    e.direct = static_cast<Py_ssize_t>(read.leaves.size()) == count;
    for (nb::handle arg : args) e.direct &= is_leaf(arg.ptr());
    e.of_leaves = of_leaves || !plan.is_none();
    e.order.clear();
    std::uint32_t next = 0;
    for (nb::handle arg : args) order_leaves(arg.ptr(), next, e.order);
    e.plan = plan.is_none() ? nullptr : nb::cast<FusedPlan*>(plan);
    e.alone = e.plan && e.plan->alone();
    e.brief = e.plan && (e.alone || e.plan->brief());
    e.lone = {};
    e.trace = std::move(trace), e.function = std::move(function), e.held = std::move(plan);
    e.casting = g_casting;
    e.operands.clear();
    bool small = true;
    for (PyObject* leaf : read.leaves) {
      Tensor* tensor = nullptr;
      const NDArray& a = *array_of(leaf, tensor);
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
      Signature read;
      if (read.read(args, count))
        if (auto found = entries_.find(read.text); found != entries_.end()) {
          recent_ = &found->second;
          return serve_found(*recent_, args, count, read.leaves);
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
    bool direct = true;                 // the arguments are the leaves
    bool of_leaves = false;             // the function takes the leaves
    std::vector<std::uint32_t> order;   // of the leaves: numbers of those in the signature
    LoneRow lone;
    std::uint32_t casting = 0;
    std::vector<Operand> operands;

    bool takes(PyObject* const* args, Py_ssize_t count) const {
      if (casting != g_casting || !direct) return false;
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

  static bool is_leaf(PyObject* arg) {
    Tensor* tensor = nullptr;
    return array_of(arg, tensor) != nullptr;
  }

  PyObject* serve_found(const Entry& e, PyObject* const* args, Py_ssize_t count,
                        const std::vector<PyObject*>& leaves) {
    if (e.direct || !e.of_leaves) return serve(e, args, count);
    std::vector<nb::object> kept;  // a function may change the lists that hold them
    std::vector<PyObject*> ordered;
    for (const std::uint32_t number : e.order) {
      kept.push_back(nb::borrow(leaves[number]));
      ordered.push_back(leaves[number]);
    }
    return serve(e, ordered.data(), static_cast<Py_ssize_t>(ordered.size()));
  }

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
      .def("_remember", &CompiledCall::remember, nb::arg("args"), nb::arg("trace").none(),
           nb::arg("function"), nb::arg("plan").none(), nb::arg("of_leaves") = false,
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
