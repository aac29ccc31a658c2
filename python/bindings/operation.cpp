// SPDX-License-Identifier: Apache-2.0
// weft.Operation: the callable of one table row. One C type instead of a Python function for each
// row, so that a call costs the same as an operator; __signature__ and __doc__ come from the row.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <structmember.h>

#include "array_type.h"
#include "public_function.h"
#include "weft/array/into.h"

namespace weft::py {

// Defined in tensor.cpp: false when no argument is a Tensor.
bool tensor_operation(Op op, PyObject* const* args, PyObject** out);

namespace {

struct PyOperation {
  PyObject_HEAD vectorcallfunc vectorcall;
  Op op;
  PyObject* instead;  ///< takes the calls while weft.autocast is at work; null at other times
};
PyTypeObject* g_type = nullptr;

NDArray operand_array(PyObject* o, Op op) {
  NDArray holder;
  Arg arg{Scalar(0)};
  if (to_operand(o, nullptr, holder, arg))
    return arg.array ? *arg.array : full(default_device(), elem_of(arg.scalar), Dims{}, arg.scalar);
  throw Error(ErrorKind::dtype, cat("array.", info(op).name, ".array"),
              cat(info(op).name, " needs arrays, got ",
                  nb::cast<std::string>(nb::handle(o).type().attr("__name__"))));
}

/// A recorder of operations (a traced value) takes the call itself; null when no argument is one.
PyObject* recorded(Op op, PyObject* const* args, int count) {
  for (int k = 0; k < count; ++k) {
    if (is_ndarray(args[k]) || is_number(args[k])) continue;
    nb::handle o(args[k]);
    if (!nb::hasattr(o, "__weft_operation__")) continue;
    nb::list all;
    for (int i = 0; i < count; ++i) all.append(nb::handle(args[i]));
    return o.attr("__weft_operation__")(std::string(info(op).name), all).release().ptr();
  }
  return nullptr;
}

/// What NumPy's manner of calling means (lists, out=, where=); null where it means nothing here.
PyObject* by_manners(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  nb::object found = nb::module_::import_("weft._manners")
                         .attr("operation")(nb::handle(self), positional_arguments(args, count),
                                            named_arguments(args, count, names));
  return found.is_none() ? nullptr : nb::handle(PyTuple_GET_ITEM(found.ptr(), 0)).inc_ref().ptr();
}

/// The result in the array that `out=` names, only where the mask `where=` is true; null for calls
/// that are not that plain: other names, other types and shapes than the result's.
PyObject* into(Op op, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject *place = nullptr, *mask = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "out") == 0) place = args[count + i];
    else if (PyUnicode_CompareWithASCIIString(name, "where") == 0) mask = args[count + i];
    else return nullptr;
  }
  if (!place || !is_ndarray(place) || (mask && !is_ndarray(mask))) return nullptr;
  std::optional<Arg> operands[2];
  Scalar numbers[2] = {Scalar(0), Scalar(0)};
  for (Py_ssize_t k = 0; k < count; ++k) {
    if (is_ndarray(args[k])) operands[k].emplace(unwrap(args[k]));
    else if (PyFloat_CheckExact(args[k]))
      operands[k].emplace(numbers[k] = Scalar(PyFloat_AS_DOUBLE(args[k])));
    else if (int large = 0; PyLong_CheckExact(args[k])) {
      const long long value = PyLong_AsLongLongAndOverflow(args[k], &large);
      if (large) return nullptr;
      operands[k].emplace(numbers[k] = Scalar(static_cast<std::int64_t>(value)));
    } else return nullptr;
  }
  const NDArray out = unwrap(place);
  const NDArray* const where_true = mask ? &unwrap(mask) : nullptr;
  const bool two = count == 2;
  if (!(two ? compute_into(op, out, where_true, *operands[0], *operands[1])
            : compute_into(op, out, where_true, *operands[0])))
    return nullptr;
  return nb::handle(place).inc_ref().ptr();
}

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* names) noexcept {
  return guarded(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Op op = reinterpret_cast<PyOperation*>(self)->op;
    const OpInfo& row = info(op);
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (count != row.arity || (names && PyTuple_GET_SIZE(names) > 0)) {
      if (PyObject* out = count == row.arity ? into(op, args, count, names) : nullptr) return out;
      if (PyObject* out = by_manners(self, args, flags, names)) return out;
      throw Error(
          ErrorKind::dtype, "python.arguments",
          cat(row.name, "() takes ", row.arity, " positional argument", row.arity == 1 ? "" : "s",
              ", not ", count, names && PyTuple_GET_SIZE(names) > 0 ? " and named ones" : ""))
          .help(row.arity == 1 ? cat("weft.", row.name, "(x)") : cat("weft.", row.name, "(x, y)"));
    }
    if (row.arity == 1) {
      if (is_ndarray(args[0])) return wrap(apply(op, unwrap(args[0])));
      PyObject* out = nullptr;
      if (tensor_operation(op, args, &out)) return out;
      if (PyObject* traced = recorded(op, args, 1)) return traced;
      if (is_sequence(args[0]))
        if (PyObject* meant = by_manners(self, args, flags, names)) return meant;
      return wrap(apply(op, operand_array(args[0], op)));
    }
    if (is_ndarray(args[0]) && is_ndarray(args[1]))
      return wrap(apply(op, unwrap(args[0]), unwrap(args[1])));
    if (PyObject* traced = recorded(op, args, 2)) return traced;
    PyObject* out = nullptr;
    // A list of numbers beside an array is what it is beside an operator.
    const auto beside = [&](int k) {
      return is_ndarray(args[1 - k]) ? &unwrap(args[1 - k]) : nullptr;
    };
    const bool lists = (is_sequence(args[0]) && !(beside(0) && is_list_of_numbers(args[0]))) ||
                       (is_sequence(args[1]) && !(beside(1) && is_list_of_numbers(args[1])));
    if (lists)
      if (PyObject* meant = by_manners(self, args, flags, names)) return meant;
    if (tensor_operation(op, args, &out)) return out;
    NDArray held[2];
    Arg operands[2] = {Scalar(0), Scalar(0)};
    for (int k = 0; k < 2; ++k) {
      if (!to_operand(args[k], beside(k), held[k], operands[k]))
        held[k] = operand_array(args[k], op), operands[k] = Arg(held[k]);
    }
    if (!operands[0].array && !operands[1].array)
      held[0] = operand_array(args[0], op), operands[0] = Arg(held[0]);
    return wrap(apply(op, operands[0], operands[1]));
  });
}

PyObject* call_instead(PyObject* self, PyObject* const* args, std::size_t flags,
                       PyObject* names) noexcept {
  // It may be taken away during the call.
  const nb::object held = nb::borrow(reinterpret_cast<PyOperation*>(self)->instead);
  return PyObject_Vectorcall(held.ptr(), args, flags & ~PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

PyObject* make_operation(Op op) {
  PyObject* self = g_type->tp_alloc(g_type, 0);
  reinterpret_cast<PyOperation*>(self)->vectorcall = call;
  reinterpret_cast<PyOperation*>(self)->op = op;
  return self;
}

/// Calls of an operation go to `instead`; None gives them back. The result computes in any case.
nb::object replace_operation(nb::handle operation, nb::handle instead) {
  if (Py_TYPE(operation.ptr()) != g_type) throw nb::type_error("an operation is needed");
  auto* self = reinterpret_cast<PyOperation*>(operation.ptr());
  PyObject* before = self->instead;
  self->instead = instead.is_none() ? nullptr : instead.inc_ref().ptr();
  self->vectorcall = self->instead ? call_instead : call;
  Py_XDECREF(before);
  return nb::steal(make_operation(self->op));
}

PyObject* get_name(PyObject* self, void*) {
  std::string_view name = info(reinterpret_cast<PyOperation*>(self)->op).name;
  return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}
PyObject* get_doc(PyObject* self, void*) {
  const OpInfo& row = info(reinterpret_cast<PyOperation*>(self)->op);
  std::string text = cat(row.name, row.arity == 1 ? "(x, /)\n\n" : "(x1, x2, /)\n\n", row.sentence);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    nb::module_ inspect = nb::module_::import_("inspect");
    nb::object parameter = inspect.attr("Parameter");
    nb::object kind = parameter.attr("POSITIONAL_ONLY");
    nb::list list;
    if (info(reinterpret_cast<PyOperation*>(self)->op).arity == 1) {
      list.append(parameter("x", kind));
    } else {
      list.append(parameter("x1", kind));
      list.append(parameter("x2", kind));
    }
    return inspect.attr("Signature")(list).release().ptr();
  });
}
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("weft"); }
PyObject* representation(PyObject* self) {
  return PyUnicode_FromFormat(
      "<weft operation %s>",
      std::string(info(reinterpret_cast<PyOperation*>(self)->op).name).c_str());
}

PyGetSetDef g_getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOperation, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
void type_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<PyOperation*>(self)->instead);
  type->tp_free(self);
  Py_DECREF(type);
}

std::string_view rule_name(Rule rule) {
  static constexpr std::string_view names[] = {"same", "boolean", "real", "widen"};
  return names[static_cast<int>(rule)];
}

}  // namespace

void bind_operations(nb::module_& m) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_getset, g_getset},
      {Py_tp_members, g_members},
      {Py_tp_repr, reinterpret_cast<void*>(representation)},
      {Py_tp_dealloc, reinterpret_cast<void*>(type_dealloc)},
      {0, nullptr},
  };
  PyType_Spec spec = {"weft.Operation", sizeof(PyOperation), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  g_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!g_type) throw nb::python_error();
  nb::dict operations;
  nb::list rows;
  for (int i = 0; i < op_count(); ++i) {
    Op op = static_cast<Op>(i);
    const OpInfo& row = info(op);
    operations[std::string(row.name).c_str()] = nb::steal(make_operation(op));
    nb::dict d;
    d["name"] = std::string(row.name);
    d["arity"] = row.arity;
    d["rule"] = std::string(rule_name(row.rule));
    d["types"] = static_cast<int>(row.types);
    d["differentiable"] = row.differentiable;
    d["domain"] = std::string(row.domain);
    d["value"] = std::string(row.value);
    d["gradient"] = std::string(row.gradient);
    d["sentence"] = std::string(row.sentence);
    rows.append(d);
  }
  m.attr("operations") = operations;
  m.def("_replace_operation", &replace_operation, nb::arg("operation"), nb::arg("instead").none());
  m.attr("elementwise_rows") = rows;
  nb::list reductions;
  for (int i = 0; i < reduce_op_count(); ++i) {
    const ReduceInfo& row = info(static_cast<ReduceOp>(i));
    nb::dict d;
    d["name"] = std::string(row.name);
    d["rule"] = std::string(rule_name(row.rule));
    d["types"] = static_cast<int>(row.types);
    d["has_identity"] = row.has_identity;
    d["sentence"] = std::string(row.sentence);
    reductions.append(d);
  }
  m.attr("reduce_rows") = reductions;
}

}  // namespace weft::py
