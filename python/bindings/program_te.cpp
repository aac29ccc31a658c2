// SPDX-License-Identifier: Apache-2.0
// Tensor expressions. python/weft/te.py gives them their public spelling.

#include <nanobind/stl/vector.h>

#include "program.h"
#include "shown.h"
#include "weft/ir/te.h"

namespace weft::py {

namespace {

struct PyTensor {
  te::Tensor tensor;
};
struct PyAxis {
  ir::IterVar axis;
};

ir::Expr index_from_python(nb::handle o) {
  PyAxis* axis = nullptr;
  if (nb::try_cast<PyAxis*>(o, axis) && axis) return axis->axis.var;
  return expr_from_python(o);
}

ir::Exprs exprs_from(nb::handle o) {
  ir::Exprs out;
  if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
    for (nb::handle item : o) out.push_back(index_from_python(item));
  } else {
    out.push_back(index_from_python(o));
  }
  return out;
}

std::vector<ir::IterVar> axes_from(nb::handle o) {
  std::vector<ir::IterVar> out;
  PyAxis* axis = nullptr;
  if (nb::try_cast<PyAxis*>(o, axis) && axis) return {axis->axis};
  for (nb::handle item : o) out.push_back(nb::cast<PyAxis&>(item).axis);
  return out;
}

template <typename F>
void bind_reducer(nb::module_& m, const char* name, F f) {
  m.def(
      name,
      [f](nb::handle source, nb::handle axes, nb::object where) {
        return grown(f(expr_from_python(source), axes_from(axes),
                       where.is_none() ? ir::Expr() : expr_from_python(where)),
                     {source, where});
      },
      nb::arg("source"), nb::arg("axis"), nb::arg("where") = nb::none());
}

nb::list variables(const std::vector<ir::Var>& vars) {
  nb::list out;
  for (const ir::Var& v : vars) out.append(PyExpr{v});
  return out;
}

}  // namespace

void bind_te(nb::module_& m) {
  nb::class_<PyTensor>(m, "TeTensor", "One result of a computation; index it to read a point.")
      .def("__getitem__", [](const PyTensor& t,
                             nb::handle key) { return grown(t.tensor.at(exprs_from(key)), {key}); })
      .def("__call__", [](const PyTensor& t,
                          nb::args key) { return grown(t.tensor.at(exprs_from(key)), {key}); })
      .def_prop_ro("shape",
                   [](const PyTensor& t) {
                     nb::list out;
                     for (const ir::Expr& e : t.tensor.shape()) {
                       std::int64_t n;
                       if (ir::is_const_int(e, &n)) out.append(nb::int_(n));
                       else out.append(PyExpr{e});
                     }
                     return nb::tuple(out);
                   })
      .def_prop_ro("ndim", [](const PyTensor& t) { return t.tensor.ndim(); })
      .def("__iter__",  // without it Python would index 0, 1, 2, ... for ever
           [](const PyTensor& t) -> nb::object {
             throw Error(ErrorKind::dtype, "te.tensor.iterate",
                         cat("a symbolic tensor is not a sequence: \"", t.tensor.name(), "\""))
                 .help("index it inside te.compute: lambda i: A[i]");
           })
      .def_prop_ro("dtype", [](const PyTensor& t) { return to_string(t.tensor.dtype()); })
      .def_prop_ro("name", [](const PyTensor& t) { return t.tensor.name(); })
      .def("__repr__", [](const PyTensor& t) {
        return cat("te.Tensor(", t.tensor.name(), ", ", to_string(t.tensor.dtype()), ", ",
                   t.tensor.ndim(), " dimensions)");
      });
  nb::class_<PyAxis> axis(m, "TeAxis", "An axis to reduce over; usable as an index.");
  axis.def("asobject", [](const PyAxis& a) { return PyExpr{a.axis.var}; });
  // In an expression an axis is its variable. Every operator has to be here: Python answers a
  // missing "==" itself, with False, and a condition on the axis would silently never hold.
  for (const char* name :
       {"__add__",      "__radd__",    "__sub__",    "__rsub__",      "__mul__",     "__rmul__",
        "__floordiv__", "__mod__",     "__rmod__",   "__rfloordiv__", "__truediv__", "__rtruediv__",
        "__lt__",       "__le__",      "__gt__",     "__ge__",        "__eq__",      "__ne__",
        "__and__",      "__rand__",    "__or__",     "__ror__",       "__xor__",     "__rxor__",
        "__lshift__",   "__rlshift__", "__rshift__", "__rrshift__",   "__pow__",     "__rpow__",
        "__neg__",      "__pos__",     "__abs__",    "__invert__",    "__bool__",    "__hash__",
        "__repr__",     "astype"}) {
    axis.def(name, [name](const PyAxis& a, nb::args rest) {
      return nb::cast(PyExpr{a.axis.var}).attr(name)(*rest);
    });
  }
  axis.def_prop_ro("dtype", [](const PyAxis& a) { return to_string(a.axis.var->dtype); });
  m.def("te_var", [](const std::string& name, const std::string& dtype) {
    return PyExpr{te::var(name, parse_dtype(dtype))};
  });
  m.def("te_placeholder", [](nb::handle shape, const std::string& dtype, const std::string& name) {
    return PyTensor{te::placeholder(exprs_from(shape), parse_dtype(dtype), name)};
  });
  m.def("te_compute",
        [](nb::handle shape, nb::callable f, const std::string& name,
           const std::vector<std::string>& axes, nb::dict attrs) -> nb::object {
          // The body decides by its result whether there is one tensor or a tuple of them.
          bool many = false;
          auto body = [&](const std::vector<ir::Var>& vars) {
            nb::object result = f(*nb::tuple(variables(vars)));
            many = PyTuple_Check(result.ptr()) || PyList_Check(result.ptr());
            ir::Exprs out;
            if (!many) return ir::Exprs{expr_from_python(result, dtypes::float32)};
            for (nb::handle item : result) out.push_back(expr_from_python(item, dtypes::float32));
            return out;
          };
          Json notes = json_from_python(attrs);
          std::vector<te::Tensor> made =
              te::compute_many(exprs_from(shape), body, name,
                               notes.is_object() ? notes.as_object() : ir::Annotations{}, axes);
          if (!many) return nb::cast(PyTensor{made.at(0)});
          nb::list out;
          for (te::Tensor& t : made) out.append(PyTensor{t});
          return nb::tuple(out);
        });
  m.def("te_reduce_axis", [](nb::handle low, nb::handle extent, const std::string& name) {
    return PyAxis{te::reduce_axis(expr_from_python(low), expr_from_python(extent), name)};
  });
  using Reduce = ir::Expr (*)(ir::Expr, std::vector<ir::IterVar>, ir::Expr);
  bind_reducer(m, "te_sum", static_cast<Reduce>(&te::sum));
  bind_reducer(m, "te_prod", static_cast<Reduce>(&te::prod));
  bind_reducer(m, "te_min", static_cast<Reduce>(&te::min));
  bind_reducer(m, "te_max", static_cast<Reduce>(&te::max));
  m.def("te_arg", [](bool largest, nb::handle index, nb::handle value, nb::handle axes) {
    ir::Expr i = index_from_python(index), v = expr_from_python(value);
    ir::Exprs made =
        largest ? te::argmax(i, v, axes_from(axes)) : te::argmin(i, v, axes_from(axes));
    return nb::make_tuple(grown(made[0], {index, value}), grown(made[1], {index, value}));
  });
  m.def("te_comm_reduce", [](nb::callable combine, nb::callable identity, const std::string& name,
                             nb::handle source, nb::handle axes) {
    auto listed = [](nb::handle o) {
      ir::Exprs out;
      if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
        for (nb::handle item : o) out.push_back(expr_from_python(item, dtypes::float32));
      } else {
        out.push_back(expr_from_python(o, dtypes::float32));
      }
      return out;
    };
    ir::Exprs sources = listed(source);
    bool one = sources.size() == 1;
    te::CommReducer reducer = te::comm_reducer(
        [&](const std::vector<ir::Var>& x, const std::vector<ir::Var>& y) {
          nb::list a = variables(x), b = variables(y);
          return listed(one ? combine(a[0], b[0]) : combine(a, b));
        },
        [&](const std::vector<DType>& types) {
          nb::list names;
          for (DType t : types) names.append(to_string(t));
          nb::object made = identity(*nb::tuple(names));
          ir::Exprs out = listed(made);
          for (std::size_t k = 0; k < out.size(); ++k) {
            if (out[k]->dtype != types[k])
              out[k] = expr_from_python(one ? nb::handle(made) : nb::handle(nb::object(made[k])),
                                        types[k]);
          }
          return out;
        },
        name);
    ir::Exprs made = reducer(sources, axes_from(axes));
    if (one) return nb::cast(grown(made[0], {source}));
    nb::list out;
    for (const ir::Expr& e : made) out.append(grown(e, {source}));
    return nb::object(nb::tuple(out));
  });
  m.def("te_create_prim_func", [](nb::handle args, const std::string& name) {
    std::vector<te::Arg> list;
    for (nb::handle a : args) {
      PyTensor* t = nullptr;
      if (nb::try_cast<PyTensor*>(a, t) && t) {
        list.emplace_back(t->tensor);
        continue;
      }
      ir::Expr e = expr_from_python(a);
      const auto* v = ir::as<ir::VarNode>(e);
      if (!v)
        throw Error(ErrorKind::value, "te.create_prim_func.argument",
                    cat("a parameter is a tensor or a variable, not ", shown(a)));
      list.emplace_back(ir::Var(v));
    }
    return PyFunc{te::create_prim_func(list, name)};
  });
}

}  // namespace weft::py
