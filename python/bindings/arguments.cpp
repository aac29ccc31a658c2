// SPDX-License-Identifier: Apache-2.0
// Calls whose arguments fit no signature raise a weft error. nanobind raises a plain TypeError
// there and has no hook for it, so every bound function is entered through a wrapper that looks at
// the error of a failed call; a call that succeeds pays one jump.

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "shown.h"

namespace weft::py {

namespace {

constexpr std::size_t kEntries = 16;  // nanobind has one entry point for each kind of signature
std::array<vectorcallfunc, kEntries> g_entries{};
// The two highest bits of a call's count are Python's flag and nanobind's own for constructors.
constexpr std::size_t kCountBits = ~std::size_t{0} >> 2;

constexpr std::string_view kNoFit = "(): incompatible function arguments.";

std::string without_module(std::string text) {
  for (std::string_view prefix : {"weft._core.", "weft._rpc."}) {
    for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;)
      text.replace(at, prefix.size(), "weft.");
  }
  return text;
}

/// The arguments of a call as a bound function gets them.
struct Call {
  PyObject* const* args;
  Py_ssize_t count;  // by position
  PyObject* names;   // of those that follow
};

struct Parameter {
  std::string_view name, type;
};

/// "name(a: type, b: dict[a, b] = 3, *, c: type) -> type"
std::vector<Parameter> parameters_of(std::string_view signature) {
  std::vector<Parameter> out;
  std::size_t begin = signature.find('(') + 1;
  int depth = 0;
  for (std::size_t at = begin; at < signature.size() && begin; ++at) {
    const char c = signature[at];
    if (c == '[' || c == '(') ++depth;
    const bool last = c == ')' && depth == 0;
    if ((c == ']' || c == ')') && !last) --depth;
    if (!last && (c != ',' || depth != 0)) continue;
    std::string_view one = signature.substr(begin, at - begin);
    begin = at + 2;
    if (one != "/" && one != "*" && !one.empty()) {
      const std::size_t colon = one.find(": ");
      std::string_view type = colon == std::string_view::npos ? "object" : one.substr(colon + 2);
      out.push_back({one.substr(0, std::min(colon, one.size())), type.substr(0, type.find(" = "))});
    }
    if (last) break;
  }
  return out;
}

/// Whether a type, or a union of types, names this one.
bool names_type(std::string_view type, std::string_view name) {
  for (std::size_t at = 0; (at = type.find(name, at)) != std::string_view::npos; at += name.size())
    if ((at == 0 || type[at - 1] == ' ' || type[at - 1] == '.') &&
        (at + name.size() == type.size() || type[at + name.size()] == ' '))
      return true;
  return false;
}

bool is_whole(PyObject* o) { return PyLong_Check(o) && !PyBool_Check(o); }

/// Whether an argument is of the type that a signature names, as far as its class tells.
bool fits(PyObject* o, std::string_view type) {
  if (names_type(type, "object")) return true;
  if (o == Py_None) return names_type(type, "None");
  if (PyBool_Check(o)) return names_type(type, "bool");
  if (PyLong_Check(o)) return names_type(type, "int") || names_type(type, "float");
  if (PyUnicode_Check(o)) return names_type(type, "str");
  const std::string_view full = Py_TYPE(o)->tp_name;
  return names_type(type, full.substr(full.rfind('.') + 1));
}

/// The bits that an integer has no room in, where its size is why the call does not fit; null else.
const char* beyond(PyObject* o) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return "64 bits";
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max())
    return "32 bits";
  return value < 0 ? "the numbers from 0 on" : nullptr;
}

/// A signature as callers read it, without the object itself.
struct Accepted {
  std::string signature;
  bool method;
};

const Parameter* parameter_of(const std::vector<Parameter>& parameters, const Call& call,
                              Py_ssize_t at, Py_ssize_t self) {
  if (at < call.count) {
    const auto place = static_cast<std::size_t>(at - self);
    return place < parameters.size() ? &parameters[place] : nullptr;
  }
  const char* word = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.names, at - call.count));
  if (!word) PyErr_Clear();
  for (const Parameter& p : parameters)
    if (word && p.name == word) return &p;
  return nullptr;
}

/// Refuses an integer that fits its parameter in all but its size.
std::optional<Error> too_large_for_parameter(std::string_view name,
                                             const std::vector<Accepted>& accepted,
                                             const Call& call) {
  const Py_ssize_t named = call.names ? PyTuple_GET_SIZE(call.names) : 0;
  for (const auto& [signature, method] : accepted) {
    const std::vector<Parameter> parameters = parameters_of(signature);
    const Py_ssize_t self = method ? 1 : 0;
    PyObject* found = nullptr;
    std::string where;
    bool all = true;
    for (Py_ssize_t i = self; all && i < call.count + named; ++i) {
      const Parameter* parameter = parameter_of(parameters, call, i, self);
      PyObject* const given = call.args[i];
      all = parameter && fits(given, parameter->type);
      if (!all || found || !is_whole(given) || !names_type(parameter->type, "int") ||
          !beyond(given))
        continue;
      found = given;
      where = parameter->name.starts_with("arg") ? cat("argument ", i - self + 1)
                                                 : std::string(parameter->name);
    }
    if (all && found)
      return Error(ErrorKind::value, "python.arguments.range",
                   cat(name, "() takes no ", where, " of ", shown(found), ": it is not within ",
                       beyond(found)))
          .help("give a number that the shapes and counts of this call can have");
  }
  return {};
}

/// "name(): incompatible ... are supported:\n    1. signature\n ...\nInvoked with types: a, b"
Error refusal_of(const std::string& text, const Call& call) {
  const std::size_t end = text.find(kNoFit), given = text.rfind("\nInvoked with types: ");
  std::string found = given == std::string::npos ? "" : text.substr(given + 21);
  std::vector<Accepted> accepted;
  for (std::size_t at = text.find('\n'); at != std::string::npos && at < given;) {
    const std::size_t next = text.find('\n', at + 1);
    std::string line = text.substr(at + 1, next - at - 1);
    const std::size_t dot = line.find(". ");
    if (line.starts_with("    ") && dot != std::string::npos) {
      std::string signature = line.substr(dot + 2);
      const std::size_t self = signature.find("(self");
      if (self != std::string::npos)
        signature.erase(self + 1, signature.compare(self + 5, 2, ", ") == 0 ? 6 : 4);
      accepted.push_back({std::move(signature), self != std::string::npos});
    }
    at = next;
  }
  if (auto range = too_large_for_parameter(text.substr(0, end), accepted, call)) {
    for (const Accepted& one : accepted) range->note(cat("accepted: ", one.signature));
    return *range;
  }
  Error error(ErrorKind::dtype, "python.arguments",
              cat(text.substr(0, end), "() does not take ",
                  found.empty() ? "a call without arguments" : cat("these arguments: ", found)));
  for (const Accepted& one : accepted) error.note(cat("accepted: ", one.signature));
  return error;
}

void replace_error(const Call& call) noexcept {
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
    guarded(0, [&]() -> int { throw refusal_of(without_module(text), call); });
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
  }
  Py_XDECREF(message);
}

template <std::size_t Entry>
PyObject* enter(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  PyObject* out = g_entries[Entry](self, args, count, names);
  if (!out) [[unlikely]]
    replace_error({args, static_cast<Py_ssize_t>(count & kCountBits), names});
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
