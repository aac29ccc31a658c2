// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments fit no signature raise a weft error. nanobind raises a plain TypeError
// there and has no hook for it, so every bound function is entered through a wrapper that looks at
// the error of a failed call; a call that succeeds pays one jump.

#include <array>
#include <string>

#include "errors.h"

namespace weft::py {

namespace {

constexpr std::size_t kEntries = 16;  // nanobind has one entry point for each kind of signature
std::array<vectorcallfunc, kEntries> g_entries{};

constexpr std::string_view kNoFit = "(): incompatible function arguments.";

std::string without_module(std::string text) {
  for (std::string_view prefix : {"weft._core.", "weft._rpc."}) {
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
      text.replace(at, prefix.size(), "weft.");
  }
  return text;
}

/// "name(): incompatible ... are supported:\n    1. signature\n ...\nInvoked with types: a, b"
Error refusal_of(const std::string& text) {
  const std::size_t end = text.find(kNoFit), given = text.rfind("\nInvoked with types: ");
  std::string found = given == std::string::npos ? "" : text.substr(given + 21);
  Error error(ErrorKind::dtype, "python.arguments",
              cat(text.substr(0, end), "() does not take ",
                  found.empty() ? "a call without arguments" : cat("these arguments: ", found)));
  for (std::size_t at = text.find('\n'); at != std::string::npos && at < given;) {
    const std::size_t next = text.find('\n', at + 1);
    std::string line = text.substr(at + 1, next - at - 1);
    const std::size_t dot = line.find(". ");
    if (line.starts_with("    ") && dot != std::string::npos) {
      std::string signature = line.substr(dot + 2);
      if (const std::size_t self = signature.find("(self"); self != std::string::npos)
        signature.erase(self + 1, signature.compare(self + 5, 2, ", ") == 0 ? 6 : 4);
      error.note(cat("accepted: ", signature));
    }
    at = next;
  }
  return error;
}

void replace_error() noexcept {
  if (PyErr_Occurred() != PyExc_TypeError) return;  // a class of ours, or the user's
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject* message = value ? PyObject_Str(value) : nullptr;
  const char* text = message ? PyUnicode_AsUTF8(message) : nullptr;
  if (!text || std::string_view(text).find(kNoFit) == std::string_view::npos) {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
  } else {
    guarded(0, [&]() -> int { throw refusal_of(without_module(text)); });
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  }
  Py_XDECREF(message);
}

template <std::size_t Entry>
PyObject* enter(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  PyObject* out = g_entries[Entry](self, args, count, names);
  if (!out) [[unlikely]]
    replace_error();
  return out;
}

template <std::size_t... Entry>
constexpr std::array<vectorcallfunc, kEntries> wrappers(std::index_sequence<Entry...>) {
  return {enter<Entry>...};
}
constexpr auto kWrappers = wrappers(std::make_index_sequence<kEntries>());

void wrap_function(PyObject* function) {
  auto* slot = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) +
                                                 Py_TYPE(function)->tp_vectorcall_offset);
  for (std::size_t i = 0; i < kEntries; ++i) {
    if (*slot == kWrappers[i]) return;
    if (!g_entries[i]) g_entries[i] = *slot;
    if (g_entries[i] == *slot) {
      *slot = kWrappers[i];
      return;
    }
  }
}

bool is_bound_function(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name == "nanobind.nb_func" || name == "nanobind.nb_method";
}

/// A class of this module, whether made by nanobind or by hand (NDArray).
bool is_ours(nb::handle type) {
  return nb::type_check(type) ||
         std::string_view(reinterpret_cast<PyTypeObject*>(type.ptr())->tp_name)
             .starts_with("weft.");
}

void wrap_all(nb::handle dictionary, int depth) {
  for (auto [key, value] : nb::borrow<nb::dict>(dictionary)) {
    PyObject* object = value.ptr();
    if (PyObject_TypeCheck(object, &PyProperty_Type)) {
      for (const char* part : {"fget", "fset"}) {
        nb::object function = value.attr(part);
        if (is_bound_function(function.ptr())) wrap_function(function.ptr());
      }
    } else if (Py_IS_TYPE(object, &PyStaticMethod_Type)) {
      nb::object function = value.attr("__func__");
      if (is_bound_function(function.ptr())) wrap_function(function.ptr());
    } else if (is_bound_function(object)) {
      wrap_function(object);
    } else if (depth < 3 && PyModule_Check(object)) {
      wrap_all(nb::handle(PyModule_GetDict(object)), depth + 1);
    } else if (depth < 3 && PyType_Check(object) && is_ours(value)) {
      nb::dict members;  // of a class one gets a read-only view
      if (PyDict_Update(members.ptr(), nb::object(value.attr("__dict__")).ptr()) != 0)
        throw nb::python_error();
      wrap_all(members, depth + 1);
    }
  }
}

}  // namespace

void translate_argument_errors(nb::module_& m) {
  wrap_all(nb::handle(PyModule_GetDict(m.ptr())), 0);
}

}  // namespace weft::py
