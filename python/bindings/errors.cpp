// SPDX-License-Identifier: Apache-2.0
#include "errors.h"
#include "shown.h"

#include <nanobind/stl/string.h>

#include <array>
#include <new>
#include <typeinfo>

#include "weft/base/bounded.h"

namespace weft::py {

namespace {

constexpr int kKinds = static_cast<int>(ErrorKind::internal) + 1;
std::array<PyObject*, kKinds>
    g_classes{};  // borrowed from the module, which lives as long as the interpreter

PyObject* class_of(ErrorKind kind) { return g_classes[static_cast<std::size_t>(kind)]; }

/// Text that may quote a user's bytes: what is not UTF-8 is replaced, so that the error arrives.
nb::object text(std::string_view s) {
  return nb::steal(
      PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "backslashreplace"));
}

void raise(const Error& error) {
  nb::object type = nb::borrow(class_of(error.kind()));
  nb::object instance = type(text(error.what()));
  instance.attr("code") = text(error.code());
  instance.attr("message") = text(bounded(error.message()));
  std::string_view kind = to_string(error.kind());
  instance.attr("kind") = nb::str(kind.data(), kind.size());
  instance.attr("help") = text(bounded(error.refusal().help));
  nb::list places, notes;
  for (const Place& place : error.refusal().places) {
    places.append(nb::make_tuple(text(bounded(place.label)),
                                 text(bounded(place.text, 4 * kLongestPart)), place.line,
                                 place.column));
  }
  for (const std::string& note : error.refusal().notes) notes.append(text(bounded(note)));
  instance.attr("places") = places;
  instance.attr("notes") = notes;
  PyErr_SetObject(type.ptr(), instance.ptr());
}

Error no_memory() {
  return Error(ErrorKind::memory, "host.memory", "the host has no memory for this call")
      .help("free arrays, or raise the limit of memory of this process (ulimit -v)");
}

/// What a failed conversion of an argument means.
Error wrong_type() {
  return {ErrorKind::dtype, "python.arguments", "an argument has another type than the call takes"};
}

/// Where there is not even memory for the error, Python's own MemoryError, which is made in
/// advance.
template <typename F>
void raise_or_give_up(F&& raise) noexcept {
  try {
    raise();
  } catch (nb::python_error& inner) {
    inner.restore();
  } catch (...) {
    PyErr_NoMemory();
  }
}

}  // namespace

std::string shown(nb::handle o) {
  static PyObject* kept =
      nullptr;  // guarded by the interpreter's lock; of two made at once one is lost
  if (!kept) {
    nb::object cut = nb::module_::import_("reprlib").attr("Repr")();
    for (const char* of : {"maxstring", "maxlong", "maxother"}) cut.attr(of) = 200;
    for (const char* of : {"maxlist", "maxtuple", "maxdict", "maxset", "maxfrozenset", "maxdeque"})
      cut.attr(of) = 16;
    cut.attr("maxlevel") = 4;
    // What reprlib leaves to repr(), which writes all that it holds: slices, classes of lists.
    const nb::object others = cut.attr("repr_instance");
    const nb::handle self = cut;  // lives as long as the interpreter
    cut.attr("repr_slice") = nb::cpp_function([self](nb::handle x, nb::handle level) {
      const nb::object three = nb::make_tuple(x.attr("start"), x.attr("stop"), x.attr("step"));
      return nb::str("slice{}").attr("format")(self.attr("repr_tuple")(three, level));
    });
    cut.attr("repr_instance") = nb::cpp_function(
        [self, others](nb::handle x, nb::handle level) {
          const std::pair<PyTypeObject*, const char*> bases[] = {
              {&PyList_Type, "repr_list"},   {&PyTuple_Type, "repr_tuple"},
              {&PyDict_Type, "repr_dict"},   {&PySet_Type, "repr_set"},
              {&PyUnicode_Type, "repr_str"}, {&PyLong_Type, "repr_int"}};
          for (const auto& [type, method] : bases)
            if (PyObject_TypeCheck(x.ptr(), type) && !PyBool_Check(x.ptr()))
              return nb::object(self.attr(method)(x, level));
          return nb::object(others(x, level));
        },
        nb::arg("x").none(), nb::arg("level"));
    kept = cut.release().ptr();
  }
  nb::object text;
  try {
    text = nb::handle(kept).attr("repr")(o);
  } catch (nb::python_error& error) {  // Python writes no integer of more than 4300 digits
    if (!error.matches(PyExc_ValueError)) throw;
    text = nb::object(o.type().attr("__name__"));
  }
  return nb::cast<std::string>(
             nb::object(text.attr("encode")("utf-8", "backslashreplace").attr("decode")("utf-8")))
      .substr(0, 200);
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    raise_or_give_up([&] { raise(error); });
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    raise_or_give_up([] { raise(no_memory()); });
  } catch (const std::bad_cast&) {
    raise_or_give_up([] { raise(wrong_type()); });
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

void bind_errors(nb::module_& m) {
  auto add = [&](const char* name, const char* doc, PyObject* base, PyObject* second) {
    std::string full = std::string("weft.") + name;
    nb::object bases = second ? nb::object(nb::make_tuple(nb::borrow(base), nb::borrow(second)))
                              : nb::borrow(base);
    PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
    if (!type) throw nb::python_error();
    m.attr(name) = nb::borrow(type);
    return type;
  };
  PyObject* error = add("Error", "What weft refuses: .code .message .kind .places .notes .help",
                        PyExc_Exception, nullptr);
  nb::handle(error).attr("code") = "";
  nb::handle(error).attr("help") = "";
  nb::handle(error).attr("message") = "";
  g_classes.fill(error);
  auto set = [](ErrorKind kind, PyObject* type) {
    g_classes[static_cast<std::size_t>(kind)] = type;
  };
  set(ErrorKind::value,
      add("ArgumentError", "An argument outside its domain.", error, PyExc_ValueError));
  set(ErrorKind::shape, add("ShapeError", "Extents do not fit.", error, PyExc_ValueError));
  set(ErrorKind::dtype, add("DTypeError", "An element type does not fit.", error, PyExc_TypeError));
  set(ErrorKind::index, add("IndexError", "An index outside its extent.", error, PyExc_IndexError));
  set(ErrorKind::memory,
      add("OutOfMemoryError", "A device has no room.", error, PyExc_MemoryError));
  set(ErrorKind::schedule,
      add("ScheduleError", "A schedule step is illegal.", error, PyExc_ValueError));
  PyObject* device = add("DeviceError", "A device is absent, lost or of the wrong kind.", error,
                         PyExc_RuntimeError);
  set(ErrorKind::device, device);
  set(ErrorKind::fault,
      add("Fault", "A simulated machine's own error.", error, PyExc_RuntimeError));
  set(ErrorKind::parse,
      add("ParseError", "Text that is not of the language.", error, PyExc_ValueError));
  set(ErrorKind::io, add("IOError", "File or network.", error, PyExc_OSError));
  m.def(
      "shown", [](nb::handle o) { return text(shown(o)); }, nb::arg("value").none());
  // Surrogates of a caller's text are quoted as the errors of the core quote them.
  m.def("bounded", [](const nb::str& s) {
    const nb::object bytes =
        nb::steal(PyUnicode_AsEncodedString(s.ptr(), "utf-8", "backslashreplace"));
    if (!bytes.is_valid()) throw nb::python_error();
    return text(bounded(
        {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))}));
  });
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& e) {
      raise(e);
    } catch (const std::bad_alloc&) {
      raise(no_memory());
    } catch (const std::bad_cast&) {
      raise(wrong_type());
    }
  });
}

}  // namespace weft::py
