// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a public function tries before its Python code: plain calls go straight to the core. A
// direct function gives NotImplemented for every other call, and the Python function sees to it.

#include <iterator>

#include "array_type.h"

namespace weft::py {

/// A call's arguments by place in a list of parameters; null: not given.
template <std::size_t N>
struct PlainArguments {
  nb::handle at[N];
  bool plain = true;

  PlainArguments(PyObject* const* args, Py_ssize_t count, PyObject* names,
                 const char* const (&parameters)[N]) {
    plain = count <= static_cast<Py_ssize_t>(N);
    for (Py_ssize_t i = 0; plain && i < count; ++i) at[i] = args[i];
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; plain && i < named; ++i) {
      std::size_t k = 0;
      while (k < N &&
             PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), parameters[k]) != 0)
        ++k;
      plain = k < N && !at[k].ptr();
      if (plain) at[k] = args[count + i];
    }
  }
  nb::handle operator()(std::size_t k, nb::handle otherwise) const {
    return at[k].ptr() ? at[k] : otherwise;
  }
};

inline PyObject* not_plain() { return nb::handle(Py_NotImplemented).inc_ref().ptr(); }
inline PyObject* wrap_plain(std::optional<NDArray> out) {
  return out ? wrap(std::move(*out)) : not_plain();
}

using DirectFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count,
                                     PyObject* names);
/// The method's definition has to live as long as the function.
inline PyMethodDef direct_definition(const char* name, DirectFunction f) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)),
          METH_FASTCALL | METH_KEYWORDS, nullptr};
}
inline nb::object direct_function(PyMethodDef& definition, nb::handle self = {}) {
  return nb::steal(PyCFunction_NewEx(&definition, self.ptr(), nullptr));
}

}  // namespace weft::py
