// SPDX-License-Identifier: Apache-2.0
// Lazy graphs and their kernels, as weft.compile uses them.

#include "weft/fusion/lazy.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "array_type.h"
#include "weft/fusion/chunked.h"
#include "weft/fusion/fuse.h"
#include "weft/fusion/fused_function.h"
#include "weft/fusion/lazy_tensors.h"
#include "weft/fusion/recurrence.h"

namespace weft::py {

namespace {

Op operation(const std::string& name) {
  for (int i = 0; i < op_count(); ++i) {
    if (info(static_cast<Op>(i)).name == name) return static_cast<Op>(i);
  }
  throw Error(ErrorKind::value, "compile.row.unknown", cat("no operation \"", name, "\""));
}
ReduceOp reduction(const std::string& name) {
  for (int i = 0; i < reduce_op_count(); ++i) {
    if (info(static_cast<ReduceOp>(i)).name == name) return static_cast<ReduceOp>(i);
  }
  throw Error(ErrorKind::value, "array.reduce.unknown", cat("no reduction \"", name, "\""));
}

/// Arrays, or the data of tensors; false where an argument is neither.
bool arrays_of(const nb::args& args, std::vector<const NDArray*>& out) {
  for (nb::handle a : args) {
    Tensor* t = nullptr;
    if (is_ndarray(a.ptr())) out.push_back(&unwrap(a.ptr()));
    else if (nb::try_cast<Tensor*>(a, t) && t && t->defined()) out.push_back(&t->data());
    else return false;
  }
  return !out.empty();
}

nb::object call_fused(const FusedFunction& f, const nb::args& args) {
  std::vector<const NDArray*> arrays;
  if (!arrays_of(args, arrays))
    throw Error(ErrorKind::dtype, "python.arguments", "a fused function takes arrays or tensors");
  const bool plain =
      std::all_of(args.begin(), args.end(), [](nb::handle a) { return is_ndarray(a.ptr()); });
  nb::list found;
  if (plain) {
    std::vector<NDArray> out;
    {
      nb::gil_scoped_release nogil;
      out = f(arrays);
    }
    for (NDArray& x : out) found.append(nb::cast(std::move(x)));
  } else {
    std::vector<Tensor> in, out;
    for (nb::handle a : args)
      in.push_back(is_ndarray(a.ptr()) ? Tensor(unwrap(a.ptr())) : nb::cast<Tensor>(a));
    {
      nb::gil_scoped_release nogil;
      out = f(in);
    }
    for (Tensor& x : out) found.append(nb::cast(std::move(x)));
  }
  return found.size() == 1 ? nb::object(found[0]) : nb::object(nb::tuple(found));
}

}  // namespace

void bind_lazy(nb::module_& m) {
  nb::class_<Lazy>(m, "Lazy", "A value that a compiled function will compute.")
      .def_prop_ro("shape", [](const Lazy& x) { return x.shape(); })
      .def_prop_ro("dtype", [](const Lazy& x) { return x.elem(); });
  m.def("_lazy_input", [](int index, Elem elem, nb::handle shape) {
    return Lazy::input(index, elem, dims_of(shape, "shape"));
  });
  m.def("_lazy_constant",
        [](nb::handle value, const Lazy& like) { return constant(scalar_of(value.ptr()), like); });
  m.def("_lazy_row", [](const std::string& name, nb::list args) {
    Op op = operation(name);
    if (static_cast<int>(args.size()) != info(op).arity) {
      throw Error(ErrorKind::value, "compile.row.arity",
                  cat(name, " takes ", info(op).arity, " arguments and got ", args.size()));
    }
    Lazy *x = nullptr, *y = nullptr;
    bool lazy_x = nb::try_cast<Lazy*>(args[0], x) && x;
    if (args.size() == 1) return apply(op, *x);
    bool lazy_y = nb::try_cast<Lazy*>(args[1], y) && y;
    if (lazy_x && lazy_y) return apply(op, *x, *y);
    return lazy_x ? apply(op, *x, scalar_of(args[1].ptr()))
                  : apply(op, scalar_of(args[0].ptr()), *y);
  });
  m.def("_lazy_cast", [](const Lazy& x, Elem e) { return astype(x, e); });
  m.def("_lazy_where", [](const Lazy& c, const Lazy& a, const Lazy& b) { return where(c, a, b); });
  m.def("_lazy_spread",
        [](const Lazy& x, nb::handle shape) { return broadcast_to(x, dims_of(shape, "shape")); });
  m.def(
      "_lazy_reduce",
      [](const std::string& name, const Lazy& x, nb::handle axis, bool keepdims, nb::handle dtype) {
        return reduce(reduction(name), x, axes_of(axis), keepdims, optional_elem(dtype));
      },
      nb::arg("name"), nb::arg("x"), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false,
      nb::arg("dtype") = nb::none());
  m.def(
      "_lazy_rows",
      [](const std::string& name, std::vector<Lazy> in, double eps) {
        for (RowKernel k : {RowKernel::softmax, RowKernel::log_softmax, RowKernel::layer_norm,
                            RowKernel::logsumexp}) {
          if (name_of(k) == name) return rows(k, std::move(in), eps);
        }
        throw Error(ErrorKind::value, "compile.rows.unknown", cat("no row kernel \"", name, "\""))
            .note("legal: softmax, log_softmax, layer_norm, logsumexp");
      },
      nb::arg("name"), nb::arg("operands"), nb::arg("eps") = 0.0);
  m.def(
      "_lazy_variance",
      [](const Lazy& x, nb::handle axis, bool keepdims, double correction, bool root) {
        return variance(x, axes_of(axis), keepdims, correction, root);
      },
      nb::arg("x"), nb::arg("axis").none(), nb::arg("keepdims"), nb::arg("correction"),
      nb::arg("root"));
  m.def("_lazy_reshape",
        [](const Lazy& x, nb::handle shape) { return reshape(x, dims_of(shape, "shape")); });
  m.def("_lazy_permute", [](const Lazy& x, std::vector<int> axes) { return permute(x, axes); });
  m.def("_lazy_matmul", [](const Lazy& a, const Lazy& b) { return matmul(a, b); });
  m.def("_lazy_gradients", [](const std::vector<Lazy>& outputs, const std::vector<Lazy>& seeds,
                              const std::vector<Lazy>& wanted) {
    nb::list out;
    for (const Lazy& g : gradients(outputs, seeds, wanted))
      out.append(g.defined() ? nb::cast(g) : nb::none());
    return out;
  });
  m.def("_lazy_detach", [](const Lazy& x) { return detach(x); });
  nb::class_<FusedFunction>(m, "FusedFunction", "An element-wise function as one kernel.")
      .def_static(
          "make",
          [](const std::string& name, std::vector<Lazy> values, int inputs,
             const std::string& reduction) {
            using Total = FusedFunction::Total;
            const Total total = reduction == "sum"    ? Total::sum
                                : reduction == "mean" ? Total::mean
                                                      : Total::none;
            return FusedFunction::make(name, std::move(values), inputs, total);
          },
          nb::arg("name"), nb::arg("values"), nb::arg("inputs"), nb::arg("reduction"))
      .def_static("suits",
                  [](const nb::args& args) {
                    std::vector<const NDArray*> arrays;
                    return arrays_of(args, arrays) && FusedFunction::suits(arrays);
                  })
      .def("__call__", &call_fused);
  nb::class_<FusedMap>(m, "FusedMap", "Several element-wise results in one pass.")
      .def(nb::init<std::vector<Lazy>, int, int>(), nb::arg("outputs"), nb::arg("inputs"),
           nb::arg("numbers"))
      .def_static("has_step",
                  [](nb::handle x) {
                    if (!is_ndarray(x.ptr())) return false;
                    const NDArray& array = unwrap(x.ptr());
                    return !array.on_host() && FusedMap::suits(array);
                  })
      .def_static("step_type",
                  [](const std::vector<NDArray>& arrays) {
                    std::vector<const NDArray*> in;
                    for (const NDArray& x : arrays) in.push_back(&x);
                    return FusedMap::step_elem(in);
                  })
      .def(
          "step",
          [](const FusedMap& map, const std::vector<NDArray>& arrays,
             const std::vector<double>& numbers, bool in_place) {
            const nb::gil_scoped_release nogil;
            return map.step(arrays, std::vector<Scalar>(numbers.begin(), numbers.end()), in_place);
          },
          nb::arg("arrays"), nb::arg("numbers"), nb::arg("in_place"))
      .def(
          "steps",
          [](const FusedMap& map, const std::vector<std::vector<NDArray>>& lists,
             const std::vector<double>& numbers, bool in_place) {
            const nb::gil_scoped_release nogil;
            return map.steps(lists, std::vector<Scalar>(numbers.begin(), numbers.end()), in_place);
          },
          nb::arg("lists"), nb::arg("numbers"), nb::arg("in_place"));
  nb::class_<ChunkedMap>(m, "ChunkedMap", "Elementwise operations on the host, a chunk at a time.")
      .def("run", [](const ChunkedMap& map, const std::vector<NDArray>& inputs) {
        std::vector<NDArray> out;
        {
          nb::gil_scoped_release nogil;
          out = map.run(inputs);
        }
        return out;
      });
  nb::class_<Recurrence>(m, "RecurrentSteps", "The steps of one direction of a recurrent layer.")
      .def(nb::init<std::vector<Lazy>, int, bool>())
      .def_static("suits", [](const NDArray& x) { return FusedMap::suits(x); })
      .def(
          "forward",
          [](const Recurrence& self, bool reverse, bool keep, const NDArray& p,
             const NDArray& weight, const std::optional<NDArray>& bias,
             const std::vector<NDArray>& states) {
            const nb::gil_scoped_release nogil;
            return self.forward(reverse, keep, p, weight, bias.value_or(NDArray()), states);
          },
          nb::arg("reverse"), nb::arg("keep"), nb::arg("p"), nb::arg("weight"),
          nb::arg("bias").none(), nb::arg("states"))
      .def(
          "backward",
          [](const Recurrence& self, bool reverse, const NDArray& g, const NDArray& p,
             const NDArray& weight, const std::optional<NDArray>& bias,
             const Recurrence::Run& run) {
            Recurrence::Gradients found;
            {
              const nb::gil_scoped_release nogil;
              found = self.backward(reverse, g, p, weight, bias.value_or(NDArray()), run);
            }
            return nb::make_tuple(found.p, found.q, found.states);
          },
          nb::arg("reverse"), nb::arg("g"), nb::arg("p"), nb::arg("weight"), nb::arg("bias").none(),
          nb::arg("run"));
  nb::class_<Recurrence::Run>(m, "RecurrentRun", "What a run of recurrent steps leaves.")
      .def_prop_ro("result", [](const Recurrence::Run& run) { return run.result; })
      .def_prop_ro("before", [](const Recurrence::Run& run) { return run.before; });
  m.def("_lazy_on_tensors", &evaluate);
  m.def("_chunked_map",
        [](const std::vector<Lazy>& outputs, int inputs, bool total) -> std::optional<ChunkedMap> {
          return ChunkedMap::make(outputs, inputs, total);
        });
  nb::class_<FusedPlan>(m, "FusedPlan", "Kernels of a lazy graph.")
      .def(
          "__init__",
          [](FusedPlan* self, std::vector<Lazy> outputs, bool contract,
             const std::optional<NDArray>& like) {
            new (self) FusedPlan(std::move(outputs), contract,
                                 like ? like->device() : Ref<runtime::Device>());
          },
          nb::arg("outputs"), nb::arg("contract") = false, nb::arg("like") = nb::none())
      .def("run",
           [](FusedPlan& p, const std::vector<NDArray>& inputs) {
             std::vector<const NDArray*> in;
             for (const NDArray& a : inputs) in.push_back(&a);
             std::vector<NDArray> out;
             {
               nb::gil_scoped_release nogil;
               out = p.run(in);
             }
             return out;
           })
      .def_prop_ro("alone", &FusedPlan::alone)
      .def_prop_ro("eager", &FusedPlan::eager)
      .def_prop_ro("joins", &FusedPlan::joins)
      .def_prop_ro("kernels", &FusedPlan::kernels)
      .def_prop_ro("steps", &FusedPlan::steps)
      .def("describe", &FusedPlan::describe)
      .def("source", &FusedPlan::source);
}

}  // namespace weft::py
