// SPDX-License-Identifier: Apache-2.0
// weft._core.ChunkedCalls: calls of a composed function whose types and numbers were seen before
// run its chunked map, or its kernel on a device with a grid, from here; every other call enters
// Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "array_type.h"
#include "direct.h"
#include "weft/autograd/tensor.h"
#include "weft/fusion/chunked.h"
#include "weft/fusion/fused_function.h"

namespace weft::py {

namespace {

/// What a program was traced for: the type of an array, or a number, bit for bit.
struct Traced {
  /// `elsewhere`: an array that is not on the host; `linked`: one of a tensor with a gradient.
  enum class Kind : std::uint8_t {
    array,
    elsewhere,
    linked,
    whole,
    real,
    none,
    other
  } kind = Kind::other;
  Elem elem{};
  std::int64_t number = 0;
  bool operator==(const Traced&) const = default;
};

/// An argument, and its array: of a tensor, too; on the host of one without a gradient.
struct Given {
  Traced traced;
  const NDArray* array = nullptr;
  const Tensor* tensor = nullptr;

  static Given of(PyObject* o) {
    using Kind = Traced::Kind;
    if (!o || o == Py_None) return {{Kind::none, Elem{}, 0}};
    if (Py_TYPE(o) == ndarray_type()) return of(unwrap(o), nullptr);
    if (PyFloat_CheckExact(o))
      return {{Kind::real, Elem{}, std::bit_cast<std::int64_t>(PyFloat_AS_DOUBLE(o))}};
    if (PyLong_CheckExact(o)) {
      int beyond = 0;
      const long long value = PyLong_AsLongLongAndOverflow(o, &beyond);
      return {{beyond ? Kind::other : Kind::whole, Elem{}, value}};
    }
    Tensor* t = nullptr;
    if (!nb::try_cast<Tensor*>(nb::handle(o), t) || !t || t->released()) return {};
    return of(t->data(), t);
  }
  static Given of(const NDArray& a, const Tensor* tensor) {
    using Kind = Traced::Kind;
    const bool gradient = tensor && tensor->requires_grad();
    if (a.on_host() && gradient) return {};
    const Kind kind = a.on_host()                  ? Kind::array
                      : gradient && grad_enabled() ? Kind::linked
                                                   : Kind::elsewhere;
    return {{kind, a.elem(), 0}, &a, tensor};
  }
};

class ChunkedCalls {
 public:
  /// `names` of the function's parameters, which calls may use.
  explicit ChunkedCalls(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      names_.push_back(nb::steal(PyUnicode_InternFromString(name.c_str())));
  }

  /// `program`: a chunked map or a fused function.
  void remember(const nb::list& args, nb::object program) {
    Entry e{{}, nullptr, nullptr, program};
    if (!nb::try_cast<const ChunkedMap*>(program, e.map))
      e.function = nb::cast<const FusedFunction*>(program);
    if (args.size() > kMost) return;
    e.args.resize(kMost, Given::of(nullptr).traced);
    for (std::size_t i = 0; i < args.size(); ++i) {
      e.args[i] = Given::of(nb::handle(args[i]).ptr()).traced;
      if (e.args[i].kind == Traced::Kind::other) return;
    }
    for (Entry& known : entries_) {
      if (known.args == e.args) return void(known = std::move(e));
    }
    if (entries_.size() >= kPrograms) entries_.clear();
    entries_.push_back(std::move(e));
  }
  void clear() { entries_.clear(); }

  PyObject* call(PyObject* const* args, Py_ssize_t count, PyObject* names) const {
    if (entries_.empty() || count > kMost) return not_plain();
    PyObject* all[kMost] = {};
    std::copy_n(args, count, all);
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);  // interned, as the call's text has it
      Py_ssize_t k = 0;
      while (k < static_cast<Py_ssize_t>(names_.size()) && names_[k].ptr() != name) ++k;
      if (k >= std::min<Py_ssize_t>(kMost, static_cast<Py_ssize_t>(names_.size())) || all[k])
        return not_plain();
      all[k] = args[count + i];
    }
    Given given[kMost];
    for (Py_ssize_t i = 0; i < kMost; ++i) {
      given[i] = Given::of(all[i]);
      if (given[i].traced.kind == Traced::Kind::other) return not_plain();
    }
    const auto same = [](const Traced& t, const Given& g) { return t == g.traced; };
    for (const Entry& e : entries_) {
      if (std::equal(e.args.begin(), e.args.end(), given, same))
        return e.map ? run(e, given) : run_elsewhere(e, given);
    }
    return not_plain();
  }

 private:
  static constexpr Py_ssize_t kMost = 4;
  static constexpr std::size_t kPrograms = 128;
  struct Entry {
    std::vector<Traced> args;
    const ChunkedMap* map;
    const FusedFunction* function;
    nb::object held;
  };

  static PyObject* run_elsewhere(const Entry& e, const Given* given) {
    std::vector<const NDArray*> arrays;
    std::vector<Tensor> tensors;
    bool any = false;
    for (Py_ssize_t i = 0; i < kMost; ++i) {
      if (!given[i].array) continue;
      arrays.push_back(given[i].array);
      any = any || given[i].tensor;
    }
    if (!FusedFunction::suits(arrays)) return not_plain();
    const nb::object held = e.held;  // other threads may forget the entry
    nb::list found;
    if (any) {
      for (Py_ssize_t i = 0; i < kMost; ++i)
        if (given[i].array)
          tensors.push_back(given[i].tensor ? *given[i].tensor : Tensor(*given[i].array));
      std::vector<Tensor> out;
      {
        const nb::gil_scoped_release nogil;
        out = (*e.function)(tensors);
      }
      if (out.size() == 1) return nb::cast(std::move(out[0])).release().ptr();
      for (Tensor& x : out) found.append(nb::cast(std::move(x)));
    } else {
      const std::vector<NDArray> in = copies(arrays);  // others may change what the caller holds
      std::vector<NDArray> out;
      {
        const nb::gil_scoped_release nogil;
        out = (*e.function)(pointers(in));
      }
      if (out.size() == 1) return wrap(std::move(out[0]));
      for (NDArray& x : out) found.append(nb::steal(wrap(std::move(x))));
    }
    return nb::tuple(found).release().ptr();
  }
  static std::vector<NDArray> copies(const std::vector<const NDArray*>& arrays) {
    std::vector<NDArray> out;
    for (const NDArray* x : arrays) out.push_back(*x);
    return out;
  }
  static std::vector<const NDArray*> pointers(const std::vector<NDArray>& arrays) {
    std::vector<const NDArray*> out;
    for (const NDArray& x : arrays) out.push_back(&x);
    return out;
  }

  static PyObject* run(const Entry& e, const Given* given) {
    constexpr std::int64_t kFew = 1 << 15;  // elements for which other threads need not run
    const NDArray* arrays[kMost];
    std::size_t count = 0;
    bool few = true, tensor = false;
    for (Py_ssize_t i = 0; i < kMost; ++i) {
      if (!given[i].array) continue;
      arrays[count++] = given[i].array;
      few = few && given[i].array->size() <= kFew;
      tensor = tensor || given[i].tensor != nullptr;
    }
    const ChunkedMap& map = *e.map;
    if (few) {
      NDArray out = map.run_few({arrays, count});
      if (out.defined()) return wrapped(std::move(out), tensor);
    }
    const nb::object held = e.held;  // other threads may forget the entry
    std::vector<NDArray> in, out;
    for (std::size_t i = 0; i < count; ++i) in.push_back(*arrays[i]);
    if (few) {
      out = map.run(in);
    } else {
      const nb::gil_scoped_release nogil;
      out = map.run(in);
    }
    if (out.size() == 1) return wrapped(std::move(out[0]), tensor);
    nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(out.size())));
    for (std::size_t k = 0; k < out.size(); ++k)
      PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(k), wrapped(std::move(out[k]), tensor));
    return all.release().ptr();
  }
  static PyObject* wrapped(NDArray out, bool tensor) {
    return tensor ? nb::cast(Tensor(std::move(out))).release().ptr() : wrap(std::move(out));
  }

  std::vector<nb::object> names_;
  std::vector<Entry> entries_;
};

PyObject* call_seen(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr),
                 [&] { return nb::inst_ptr<ChunkedCalls>(self)->call(args, count, names); });
}

}  // namespace

void bind_chunked_calls(nb::module_& m) {
  nb::class_<ChunkedCalls>(m, "ChunkedCalls", "Programs of a composed function by arguments.")
      .def(nb::init<const std::vector<std::string>&>(), nb::arg("names"))
      .def("remember", &ChunkedCalls::remember, nb::arg("args"), nb::arg("program"),
           "Calls with arguments of such types, and these numbers, run the program from now on.")
      .def("clear", &ChunkedCalls::clear, "Forgets all programs.")
      .def_prop_ro("call", [](nb::handle self) {
        static PyMethodDef definition = direct_definition("chunked_call", call_seen);
        return direct_function(definition, self);
      });
}

}  // namespace weft::py
