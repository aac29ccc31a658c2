// SPDX-License-Identifier: Apache-2.0
// Expressions, functions and modules; the parser with names captured from Python.

#include "program.h"
#include "shown.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"
#include "weft/schedule/schedule.h"

namespace weft::py {

using namespace ir;

namespace {

/// A bool, int or float; null for anything else.
Expr expr_from_number(nb::handle o, DType like) {
  if (PyBool_Check(o.ptr())) return make_bool(o.ptr() == Py_True);
  if (PyLong_Check(o.ptr())) {
    auto value = nb::cast<std::int64_t>(o);
    return like.is_float()
               ? make_float(static_cast<double>(value), like)
               : make_int(value, like.is_handle() || like.is_bool() ? dtypes::int64 : like);
  }
  if (PyFloat_Check(o.ptr()))
    return make_float(nb::cast<double>(o), like.is_float() ? like : dtypes::float32);
  return {};
}

}  // namespace

Expr expr_from_python(nb::handle o, DType like) {
  PyExpr* e = nullptr;
  if (nb::try_cast<PyExpr*>(o, e) && e) return e->expr;
  if (Expr number = expr_from_number(o, like)) return number;
  const nb::object home = o.type().attr("__module__");
  if (nb::isinstance<nb::str>(home) && nb::cast<std::string>(home) == "numpy" &&
      nb::hasattr(o, "item") && nb::cast<int>(o.attr("ndim")) == 0) {  // NumPy's numbers
    if (Expr number = expr_from_number(o.attr("item")(), like)) return number;
  }
  if (PyObject_HasAttrString(o.ptr(), "asobject")) {
    const nb::object meant = o.attr("asobject")();
    if (nb::try_cast<PyExpr*>(meant, e) && e) return e->expr;
  }
  throw Error(ErrorKind::dtype, "python.expression", cat("not an expression: ", shown(o)))
      .help("expressions, tensor elements, ints, floats and bools can be used");
}

namespace {

constexpr int kMostJsonLevels = 100;  // what reads it back takes no more (base/json.h)

Json json_from(nb::handle o, int depth) {
  PyObject* p = o.ptr();
  if (depth > kMostJsonLevels)
    throw Error(ErrorKind::value, "python.value.depth",
                cat("a value of a program is nested deeper than ", kMostJsonLevels, " levels"))
        .note("a list or dictionary that contains itself has no end");
  if (o.is_none()) return {};
  if (PyBool_Check(p)) return Json(p == Py_True);
  if (PyLong_Check(p)) return Json(nb::cast<std::int64_t>(o));
  if (PyFloat_Check(p)) return Json(nb::cast<double>(o));
  if (PyUnicode_Check(p)) return Json(nb::cast<std::string>(o));
  if (PyList_Check(p) || PyTuple_Check(p)) {
    Json out = Json::array();
    for (nb::handle item : o) out.push_back(json_from(item, depth + 1));
    return out;
  }
  if (PyDict_Check(p)) {
    Json out = Json::object();
    for (auto [key, value] : nb::cast<nb::dict>(o))
      out[nb::cast<std::string>(key)] = json_from(value, depth + 1);
    return out;
  }
  throw Error(ErrorKind::value, "python.value", cat("cannot be stored in a program: ", shown(o)));
}

}  // namespace

Json json_from_python(nb::handle o) { return json_from(o, 0); }

nb::object json_to_python(const Json& json) {
  if (json.is_null()) return nb::none();
  if (json.is_bool()) return nb::bool_(json.as_bool());
  if (json.is_int()) return nb::int_(json.as_int());
  if (json.is_number()) return nb::float_(json.as_double());
  if (json.is_string()) return nb::str(json.as_string().c_str());
  if (json.is_array()) {
    nb::list out;
    for (const Json& item : json.as_array()) out.append(json_to_python(item));
    return out;
  }
  nb::dict out;
  for (const auto& [key, value] : json.as_object())
    out[nb::str(key.c_str())] = json_to_python(value);
  return out;
}

namespace {

IRModule module_from(nb::handle o, int depth) {
  PyModule* m = nullptr;
  if (nb::try_cast<PyModule*>(o, m) && m) return m->mod;
  PyFunc* f = nullptr;
  if (nb::try_cast<PyFunc*>(o, f) && f) return make_module({{f->func->name, f->func}});
  schedule::Schedule* s = nullptr;
  if (nb::try_cast<schedule::Schedule*>(o, s) && s) return s->mod();
  if (depth == 0 && PyObject_HasAttrString(o.ptr(), "_core"))
    return module_from(o.attr("_core"), 1);
  throw Error(ErrorKind::value, "python.program", cat("not a program: ", shown(o)))
      .help(
          "pass a PrimFunc, an IRModule or a Schedule; te.create_prim_func([A, B, C]) makes one of "
          "tensors");
}

}  // namespace

IRModule module_from_python(nb::handle o) { return module_from(o, 0); }

namespace {

Capture capture_from(nb::object lookup) {
  if (lookup.is_none()) return {};
  return [lookup](std::string_view name) -> std::optional<Captured> {
    nb::object found = lookup(nb::str(name.data(), name.size()));
    PyObject* p = found.ptr();
    if (found.is_none()) return std::nullopt;
    if (PyBool_Check(p)) return Captured(p == Py_True);
    if (PyLong_Check(p)) return Captured(nb::cast<std::int64_t>(found));
    if (PyFloat_Check(p)) return Captured(nb::cast<double>(found));
    if (PyUnicode_Check(p)) return Captured(nb::cast<std::string>(found));
    PyExpr* e = nullptr;
    if (nb::try_cast<PyExpr*>(found, e) && e) return Captured(e->expr);
    PyFunc* f = nullptr;
    if (nb::try_cast<PyFunc*>(found, f) && f) return Captured(f->func);
    return std::nullopt;
  };
}

constexpr int kMostLevels = 2000;

/// The levels of an expression, each shared part once.
class Levels final : public ir::Visitor {
 public:
  int of(const Expr& e) {
    auto known = levels_.find(e.get());
    if (known != levels_.end()) return known->second;
    const int outside = std::exchange(below_, 0);
    Visitor::visit(e);
    const int out = below_ + 1;
    below_ = outside;
    return levels_[e.get()] = out;
  }
  using Visitor::visit;
  void visit(const Expr& e) override {
    if (e) below_ = std::max(below_, of(e));
  }

 private:
  std::unordered_map<const ir::ExprNode*, int> levels_;
  int below_ = 0;
};

int levels_of(nb::handle o) {
  PyExpr* e = nullptr;
  if (nb::try_cast<PyExpr*>(o, e, false) && e) return e->levels;
  int out = 0;
  if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
    for (nb::handle item : o) out = std::max(out, levels_of(item));
  }
  return out;
}

PyExpr deeper(Expr e, int below) {
  PyExpr out{std::move(e), below + 1};
  if (out.levels <= kMostLevels) return out;
  out.levels = Levels().of(out.expr);  // builders fold: there may be fewer
  if (out.levels <= kMostLevels) return out;
  throw Error(ErrorKind::value, "python.expression.depth",
              cat("an expression of type ", to_string(out.expr->dtype), " is nested deeper than ",
                  kMostLevels, " levels"))
      .help("compute an inner part as a tensor of its own, or loop with te.reduce_axis");
}

}  // namespace

PyExpr grown(Expr e, std::initializer_list<nb::handle> from) {
  int below = 0;
  for (nb::handle o : from) below = std::max(below, levels_of(o));
  return deeper(std::move(e), below);
}

PyExpr grown(Expr e, const PyExpr& a, nb::handle b) {
  return deeper(std::move(e), std::max(a.levels, levels_of(b)));
}

namespace {

template <ExprKind kind>
PyExpr arithmetic(const PyExpr& a, nb::handle b) {
  return grown(make_binary(kind, a.expr, expr_from_python(b, a.expr->dtype)), a, b);
}
template <ExprKind kind>
PyExpr reflected(const PyExpr& a, nb::handle b) {
  return grown(make_binary(kind, expr_from_python(b, a.expr->dtype), a.expr), a, b);
}

/// An operator that is a function of the intrinsics table, and its mirror image.
template <typename Class>
void bind_operator(Class& c, const char* name, const char* mirrored, const char* function) {
  c.def(name, [function](const PyExpr& a, nb::handle b) {
    return grown(call(function, {a.expr, expr_from_python(b, a.expr->dtype)}), a, b);
  });
  c.def(mirrored, [function](const PyExpr& a, nb::handle b) {
    return grown(call(function, {expr_from_python(b, a.expr->dtype), a.expr}), a, b);
  });
}

Expr divide(const Expr& a, const Expr& b) {
  if (a->dtype.is_float() || b->dtype.is_float()) return div(a, b);
  throw Error(ErrorKind::dtype, "python.division",
              cat("\"/\" of ", to_string(a->dtype), " is ambiguous"))
      .help("use // for whole numbers, or cast to a float");
}

void bind_expr(nb::module_& m) {
  nb::class_<PyExpr> expr(m, "Expr", "An expression of the IR. Operators build new ones.");
  bind_operator(expr, "__lshift__", "__rlshift__", "shift_left");
  bind_operator(expr, "__rshift__", "__rrshift__", "shift_right");
  bind_operator(expr, "__and__", "__rand__", "bitwise_and");
  bind_operator(expr, "__or__", "__ror__", "bitwise_or");
  bind_operator(expr, "__xor__", "__rxor__", "bitwise_xor");
  bind_operator(expr, "__pow__", "__rpow__", "pow");
  expr.def("__add__", &arithmetic<ExprKind::add>)
      .def("__radd__", &reflected<ExprKind::add>)
      .def("__sub__", &arithmetic<ExprKind::sub>)
      .def("__rsub__", &reflected<ExprKind::sub>)
      .def("__mul__", &arithmetic<ExprKind::mul>)
      .def("__rmul__", &reflected<ExprKind::mul>)
      .def("__floordiv__", &arithmetic<ExprKind::floordiv>)
      .def("__rfloordiv__", &reflected<ExprKind::floordiv>)
      .def("__mod__", &arithmetic<ExprKind::floormod>)
      .def("__rmod__", &reflected<ExprKind::floormod>)
      .def("__lt__", &arithmetic<ExprKind::lt>)
      .def("__le__", &arithmetic<ExprKind::le>)
      .def("__gt__", &arithmetic<ExprKind::gt>)
      .def("__ge__", &arithmetic<ExprKind::ge>)
      .def("__eq__", &arithmetic<ExprKind::eq>)
      .def("__ne__", &arithmetic<ExprKind::ne>)
      .def("__truediv__",
           [](const PyExpr& a, nb::handle b) {
             return grown(divide(a.expr, expr_from_python(b, a.expr->dtype)), a, b);
           })
      .def("__rtruediv__",
           [](const PyExpr& a, nb::handle b) {
             return grown(divide(expr_from_python(b, a.expr->dtype), a.expr), a, b);
           })
      .def("__neg__",
           [](const PyExpr& a) { return grown(make_zero(a.expr->dtype) - a.expr, a, nb::none()); })
      .def("__abs__", [](const PyExpr& a) { return grown(call("abs", {a.expr}), a, nb::none()); })
      .def("__pos__", [](const PyExpr& a) { return a; })
      .def("__invert__",
           [](const PyExpr& a) {
             return grown(
                 a.expr->dtype.is_bool() ? logical_not(a.expr) : call("bitwise_not", {a.expr}), a,
                 nb::none());
           })
      .def("__hash__",
           [](const PyExpr& a) { return reinterpret_cast<std::uintptr_t>(a.expr.get()); })
      .def("__bool__",
           [](const PyExpr& a) -> bool {
             std::int64_t v;
             if (is_const_int(a.expr, &v)) return v != 0;
             throw Error(ErrorKind::value, "python.truth",
                         cat("the truth of \"", print(a.expr),
                             "\" is not known when the program is written"))
                 .help("use T.Select, T.if_then_else, T.And or T.Or");
           })
      .def(
          "__float__",
          [](const PyExpr& a) -> double {
            throw Error(ErrorKind::value, "python.truth",
                        cat("the number in \"", print(a.expr),
                            "\" is not known when the program is written"))
                .help(
                    "functions of it stand in te and T, te.exp(x); x.astype(\"float32\") converts");
          })
      .def(
          "astype",
          [](const PyExpr& a, const std::string& dtype) {
            return grown(cast(parse_dtype(dtype), a.expr), a, nb::none());
          },
          nb::arg("dtype"))
      .def_prop_ro("dtype", [](const PyExpr& a) { return to_string(a.expr->dtype); })
      .def("__repr__", [](const PyExpr& a) { return print(a.expr); });
  {
    nb::list rows;
    for (const ir::Intrinsic& row : ir::intrinsics()) {
      if (row.effect != ir::IntrinsicEffect::pure || row.type == ir::IntrinsicType::special ||
          row.name == "nontemporal")  // a mark that schedules put, no function of numbers
        continue;
      nb::dict entry;
      entry["name"] = std::string(row.name);
      entry["arity"] = row.arity;
      entry["meaning"] = std::string(row.meaning);
      rows.append(entry);
    }
    m.attr("intrinsic_rows") = rows;
  }
  m.def("expr_call", [](const std::string& op, nb::args args) {
    Exprs list;
    DType like = dtypes::float32;
    for (nb::handle a : args) {
      PyExpr* e = nullptr;
      if (nb::try_cast<PyExpr*>(a, e) && e) {
        like = e->expr->dtype;
        break;
      }
    }
    for (nb::handle a : args) list.push_back(expr_from_python(a, like));
    return grown(call(op, std::move(list)), {args});
  });
  m.def("expr_reinterpret", [](const std::string& dtype, nb::handle a) {
    const DType to = parse_dtype(dtype);
    const Expr x = expr_from_python(a, dtypes::float32);
    if (to.total_bytes() != x->dtype.total_bytes())
      throw Error(ErrorKind::dtype, "te.reinterpret",
                  cat("reinterpret of ", to_string(x->dtype), " as ", to_string(to)))
          .note("rule: types of as many bytes");
    return grown(ir::call_typed(to, "reinterpret", {x}), {a});
  });
  m.def("expr_select", [](nb::handle c, nb::handle a, nb::handle b) {
    Expr x = expr_from_python(a, dtypes::float32), y = expr_from_python(b, x->dtype);
    return grown(select(expr_from_python(c), x, y), {c, a, b});
  });
  m.def("expr_if_then_else", [](nb::handle c, nb::handle a, nb::handle b) {
    Expr x = expr_from_python(a, dtypes::float32);
    PyExpr* typed = nullptr;
    if (nb::try_cast<PyExpr*>(b, typed) && typed) x = expr_from_python(a, typed->expr->dtype);
    return grown(if_then_else(expr_from_python(c), x, expr_from_python(b, x->dtype)), {c, a, b});
  });
  m.def("expr_minmax", [](bool is_max, nb::handle a, nb::handle b) {
    PyExpr* typed = nullptr;
    DType like = nb::try_cast<PyExpr*>(b, typed) && typed ? typed->expr->dtype : dtypes::int64;
    Expr x = expr_from_python(a, like);
    return grown(
        make_binary(is_max ? ExprKind::max : ExprKind::min, x, expr_from_python(b, x->dtype)),
        {a, b});
  });
  m.def("expr_binary", [](const std::string& op, nb::handle a, nb::handle b) {
    ExprKind kind = op == "floordiv"   ? ExprKind::floordiv
                    : op == "floormod" ? ExprKind::floormod
                    : op == "truncdiv" ? ExprKind::div
                                       : ExprKind::mod;
    PyExpr* typed = nullptr;
    DType like = nb::try_cast<PyExpr*>(b, typed) && typed ? typed->expr->dtype : dtypes::int64;
    Expr x = expr_from_python(a, like);
    return grown(make_binary(kind, x, expr_from_python(b, x->dtype)), {a, b});
  });
  m.def("expr_logical", [](bool is_and, nb::handle a, nb::handle b) {
    return grown(make_binary(is_and ? ExprKind::and_ : ExprKind::or_, expr_from_python(a),
                             expr_from_python(b)),
                 {a, b});
  });
  m.def(
      "expr_const",
      [](nb::handle value, const std::string& dtype) {
        DType t = parse_dtype(dtype);
        return grown(cast(t, expr_from_python(value, t)), {value});
      },
      nb::arg("value"), nb::arg("dtype") = "float32");
}

}  // namespace

void bind_program(nb::module_& m) {
  bind_expr(m);
  nb::class_<PyFunc>(m, "PrimFunc", "One tensor function: parameters, body, attributes.")
      .def_prop_ro("name", [](const PyFunc& f) { return f.func->name; })
      .def_prop_ro("params",
                   [](const PyFunc& f) {
                     nb::list out;
                     for (const Param& p : f.func->params)
                       out.append(p.buffer ? p.buffer->name : p.var->name);
                     return out;
                   })
      .def_prop_ro("attrs", [](const PyFunc& f) { return json_to_python(Json(f.func->attrs)); })
      .def(
          "with_attr",
          [](const PyFunc& f, const std::string& key, nb::handle value) {
            auto copy = edit(f.func);
            copy->attrs = with_annotation(copy->attrs, key, json_from_python(value));
            return PyFunc{copy};
          },
          nb::arg("key"), nb::arg("value"), "A copy with one attribute set.")
      .def(
          "script", [](const PyFunc& f) { return print(f.func); }, "The function as T-script text.")
      .def("__repr__", [](const PyFunc& f) { return print(f.func); })
      .def("__hash__",
           [](const PyFunc& f) { return static_cast<std::size_t>(structural_hash(f.func)); })
      .def("__eq__", [](const PyFunc& a, nb::handle b) {
        PyFunc* other = nullptr;
        return nb::try_cast<PyFunc*>(b, other) && other && structural_equal(a.func, other->func);
      });
  nb::class_<PyModule>(m, "IRModule", "Named functions.")
      .def("__init__",
           [](PyModule* self, nb::dict functions) {
             std::vector<std::pair<std::string, PrimFunc>> list;
             for (auto [name, f] : functions)
               list.emplace_back(nb::cast<std::string>(name), nb::cast<PyFunc&>(f).func);
             new (self) PyModule{make_module(std::move(list))};
           })
      .def("__getitem__",
           [](const PyModule& self, const std::string& name) {
             PrimFunc f = self.mod->find(name);
             if (!f) {
               std::vector<std::string> known;
               for (const auto& [key, value] : self.mod->functions) known.push_back(key);
               throw Error(ErrorKind::value, "module.function.unknown",
                           cat("there is no function \"", name, "\""))
                   .note(cat("functions: ", join(known)))
                   .help(did_you_mean(name, known));
             }
             return PyFunc{f};
           })
      .def_prop_ro("functions",
                   [](const PyModule& self) {
                     nb::dict out;
                     for (const auto& [name, f] : self.mod->functions)
                       out[nb::str(name.c_str())] = PyFunc{f};
                     return out;
                   })
      .def(
          "script", [](const PyModule& self) { return print(self.mod); },
          "The module as T-script text.")
      .def("__repr__", [](const PyModule& self) { return print(self.mod); })
      .def("__hash__",
           [](const PyModule& self) { return static_cast<std::size_t>(structural_hash(self.mod)); })
      .def("__eq__", [](const PyModule& a, nb::handle b) {
        PyModule* other = nullptr;
        return nb::try_cast<PyModule*>(b, other) && other && structural_equal(a.mod, other->mod);
      });
  m.def(
      "parse_func",
      [](const std::string& text, const std::string& file, nb::object lookup, int line) {
        return PyFunc{parse_func(text, file, capture_from(lookup), line)};
      },
      nb::arg("text"), nb::arg("file") = "<text>", nb::arg("lookup") = nb::none(),
      nb::arg("first_line") = 1);
  m.def(
      "parse_module",
      [](const std::string& text, const std::string& file, nb::object lookup, int line) {
        return PyModule{parse_module(text, file, capture_from(lookup), line)};
      },
      nb::arg("text"), nb::arg("file") = "<text>", nb::arg("lookup") = nb::none(),
      nb::arg("first_line") = 1);
  m.def(
      "structural_equal",
      [](nb::handle a, nb::handle b) {
        return structural_equal(module_from_python(a), module_from_python(b));
      },
      nb::arg("a"), nb::arg("b"),
      "Whether two programs are equal up to names of variables and buffers.");
  m.def(
      "structural_hash", [](nb::handle a) { return structural_hash(module_from_python(a)); },
      nb::arg("program"));
  m.def(
      "verify",
      [](nb::handle program) {
        if (Verdict bad = verify(module_from_python(program)))
          throw Error(ErrorKind::verify, std::move(*bad));
      },
      nb::arg("program"), "Raises weft.Error when the program is ill-formed.");
}

}  // namespace weft::py
