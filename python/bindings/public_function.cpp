// SPDX-License-Identifier: Apache-2.0
// weft._core.PublicFunction: a public function written in Python as callers see it. It takes
// PyTorch's names of arguments and the axis by position, and lets weft._boundary turn what Python
// raises for arguments that do not fit into weft's errors. A C type instead of nested Python
// functions, so that a call costs no tuple and no dictionary of its arguments.

#include <nanobind/nanobind.h>

#include <structmember.h>

#include "array_type.h"
#include "errors.h"
#include "public_function.h"

namespace weft::py {

nb::object positional_arguments(PyObject* const* args, Py_ssize_t count) {
  nb::object out = nb::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(out.ptr(), i, nb::handle(args[i]).inc_ref().ptr());
  return out;
}

nb::dict named_arguments(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  nb::dict out;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    out[nb::handle(PyTuple_GET_ITEM(names, i))] = nb::handle(args[count + i]);
  return out;
}

namespace {

struct PyPublicFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* direct;  ///< takes plain calls, gives NotImplemented for others (direct.h); null: none
  PyObject* refuse;  ///< (exception, args, kwargs) -> another exception, None, or the result in
                     ///< a tuple where the call has a meaning after all; null: none
  PyObject* names;   ///< dict: a foreign name of an argument -> its own; null: none
  PyObject* rename;  ///< (args, kwargs) -> (args, kwargs) where a name is not all that changes
  Py_ssize_t positional;  ///< arguments by position, when one more is the axis; -1: it never is
  PyObject* dict;
  PyObject* weak;
};

PyPublicFunction* of(PyObject* self) { return reinterpret_cast<PyPublicFunction*>(self); }

/// The names of a call as the function knows them; null for a call that `rename` has to see: an
/// argument given twice, a value that changes with the name.
PyObject* own_names(PyPublicFunction* self, PyObject* names, bool axis_first) {
  const Py_ssize_t given = names ? PyTuple_GET_SIZE(names) : 0, more = axis_first ? 1 : 0;
  static PyObject* const axis = PyUnicode_InternFromString("axis");
  nb::object out = nb::steal(PyTuple_New(given + more));
  if (axis_first) PyTuple_SET_ITEM(out.ptr(), 0, nb::handle(axis).inc_ref().ptr());
  for (Py_ssize_t i = 0; i < given; ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject* own = PyDict_GetItemWithError(self->names, name);
    if (own && PyUnicode_CompareWithASCIIString(name, "unbiased") == 0) return nullptr;
    if (!own) own = name;
    for (Py_ssize_t k = 0; k < i + more; ++k) {
      PyObject* before = PyTuple_GET_ITEM(out.ptr(), k);
      if (before == own || PyUnicode_Compare(before, own) == 0) return nullptr;
    }
    PyTuple_SET_ITEM(out.ptr(), i + more, nb::handle(own).inc_ref().ptr());
  }
  return out.release().ptr();
}

bool has_foreign_name(PyPublicFunction* self, PyObject* names) {
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_GetItemWithError(self->names, PyTuple_GET_ITEM(names, i))) return true;
  return false;
}

PyObject* run(PyPublicFunction* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  if (self->direct) {
    const nb::object direct = nb::borrow(self->direct);  // another thread may exchange it
    PyObject* out = PyObject_Vectorcall(direct.ptr(), args, flags, names);
    if (out != Py_NotImplemented) return out;
    Py_DECREF(out);
  }
  const nb::object function = nb::borrow(self->function);
  if (!self->names) return PyObject_Vectorcall(function.ptr(), args, flags, names);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  const bool axis_first = self->positional >= 0 && count == self->positional + 1;
  if (!axis_first && !has_foreign_name(self, names))
    return PyObject_Vectorcall(function.ptr(), args, flags, names);
  // Functions that tell tensors' words from arrays' are marked by an empty name.
  const bool told = count > 0 && !is_ndarray(args[0]) && PyDict_GetItemString(self->names, "");
  if (PyObject* own = told ? nullptr : own_names(self, names, axis_first)) {
    // The axis is the last by position: in memory, named arguments follow it.
    const nb::object held = nb::steal(own);
    return PyObject_Vectorcall(function.ptr(), args, flags - (axis_first ? 1 : 0), own);
  }
  const nb::object both = nb::handle(self->rename)(positional_arguments(args, count),
                                                   named_arguments(args, count, names));
  return PyObject_Call(function.ptr(), nb::object(both[0]).ptr(), nb::object(both[1]).ptr());
}

/// The Python error in flight becomes the one that `refuse` makes of it; or its result.
PyObject* refuse(PyPublicFunction* self, PyObject* const* args, std::size_t flags,
                 PyObject* names) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  const nb::object held[] = {nb::steal(type), nb::steal(value), nb::steal(trace)};
  nb::object instead = nb::handle(self->refuse)(held[1], positional_arguments(args, count),
                                                named_arguments(args, count, names));
  if (PyTuple_CheckExact(instead.ptr()))
    return nb::handle(PyTuple_GET_ITEM(instead.ptr(), 0)).inc_ref().ptr();
  if (instead.is_none()) {
    PyErr_Restore(nb::handle(type).inc_ref().ptr(), nb::handle(value).inc_ref().ptr(),
                  nb::handle(trace).inc_ref().ptr());
  } else {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(instead.ptr())), instead.ptr());
  }
  return nullptr;
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t flags,
               PyObject* names) noexcept {
  PyPublicFunction* self = of(object);
  PyObject* out =
      guarded(static_cast<PyObject*>(nullptr), [&] { return run(self, args, flags, names); });
  // KeyboardInterrupt and what else is no Exception passes.
  if (out || !self->refuse || !PyErr_ExceptionMatches(PyExc_Exception)) return out;
  return guarded(out, [&] { return refuse(self, args, flags, names); });
}

PyObject* or_null(PyObject* o) { return o == Py_None ? nullptr : nb::handle(o).inc_ref().ptr(); }

/// (function, direct): takes the places of both, gives those before.
PyObject* exchange(PyObject* object, PyObject* args) {
  PyObject *function, *direct;
  if (!PyArg_ParseTuple(args, "OO", &function, &direct)) return nullptr;
  PyPublicFunction* self = of(object);
  PyObject* before = Py_BuildValue("(OO)", self->function, self->direct ? self->direct : Py_None);
  if (!before) return nullptr;
  // The tuple holds the old ones until nothing here points to them.
  Py_DECREF(self->function);
  Py_XDECREF(self->direct);
  self->function = nb::handle(function).inc_ref().ptr();
  self->direct = or_null(direct);
  return before;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function, *direct, *refuse, *names, *rename;
  Py_ssize_t positional;
  if (!PyArg_ParseTuple(args, "OOOOOn", &function, &direct, &refuse, &names, &rename, &positional))
    return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  of(self)->vectorcall = call;
  of(self)->function = nb::handle(function).inc_ref().ptr();
  of(self)->direct = or_null(direct);
  of(self)->refuse = or_null(refuse);
  of(self)->names = or_null(names);
  of(self)->rename = or_null(rename);
  of(self)->positional = positional;
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(of(self)->function);
  Py_VISIT(of(self)->direct);
  Py_VISIT(of(self)->refuse);
  Py_VISIT(of(self)->names);
  Py_VISIT(of(self)->rename);
  Py_VISIT(of(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(of(self)->direct);
  Py_CLEAR(of(self)->refuse);
  Py_CLEAR(of(self)->names);
  Py_CLEAR(of(self)->rename);
  Py_CLEAR(of(self)->dict);
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (of(self)->weak) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_CLEAR(of(self)->function);
  type->tp_free(self);
  Py_DECREF(type);
}

/// As a function's: a method of the object that it is looked up in.
PyObject* bound(PyObject* self, PyObject* object, PyObject*) {
  return object ? PyMethod_New(self, object) : nb::handle(self).inc_ref().ptr();
}

PyObject* name_of(PyObject* self, PyObject*) {  // also its pickle, as a function's
  return PyObject_GetAttrString(self, "__qualname__");
}
PyObject* representation(PyObject* self) {
  PyObject* name = name_of(self, nullptr);
  if (!name) return nullptr;
  PyObject* out = PyUnicode_FromFormat("<function %S>", name);
  Py_DECREF(name);
  return out;
}

PyGetSetDef g_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef g_methods[] = {
    {"__reduce__", name_of, METH_NOARGS, nullptr},
    {"__weft_exchange__", exchange, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyPublicFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyPublicFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyPublicFunction, weak), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

void bind_public_function(nb::module_& m) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(make)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(bound)},
      {Py_tp_getset, g_getset},
      {Py_tp_methods, g_methods},
      {Py_tp_members, g_members},
      {Py_tp_repr, reinterpret_cast<void*>(representation)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {0, nullptr},
  };
  PyType_Spec spec = {"weft._core.PublicFunction", sizeof(PyPublicFunction), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_METHOD_DESCRIPTOR,
                      slots};
  const nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("PublicFunction") = type;
}

}  // namespace weft::py
