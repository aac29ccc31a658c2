// SPDX-License-Identifier: Apache-2.0
// Schedule: steps by name with dynamic arguments. The Python methods are made from the table of
// primitives in python/weft/schedule.py.

#include "program.h"
#include "shown.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"
#include "weft/target/rules.h"

namespace weft::py {

using namespace schedule;

namespace {

struct PyInt {
  IntRef value;
};  // the result of a sampling step

constexpr int kMostLists = 8;  // in one another; steps take lists of lists

Value value_from_python(nb::handle o, int depth = 0) {
  PyObject* p = o.ptr();
  if (o.is_none()) return nullptr;
  if (PyBool_Check(p)) return Value(p == Py_True);
  if (PyLong_Check(p)) return Value(nb::cast<std::int64_t>(o));
  if (PyFloat_Check(p)) return Value(nb::cast<double>(o));
  if (PyUnicode_Check(p)) return Value(nb::cast<std::string>(o));
  BlockRef* block = nullptr;
  if (nb::try_cast<BlockRef*>(o, block) && block) return Value(*block);
  LoopRef* loop = nullptr;
  if (nb::try_cast<LoopRef*>(o, loop) && loop) return Value(*loop);
  PyInt* integer = nullptr;
  if (nb::try_cast<PyInt*>(o, integer) && integer) return Value(integer->value);
  if (PyList_Check(p) || PyTuple_Check(p)) {
    if (depth == kMostLists)
      throw Error(ErrorKind::value, "schedule.argument.depth",
                  cat("no schedule step takes lists nested deeper than ", kMostLists, " levels"))
          .note("a list that contains itself has no end");
    Value::List list;
    for (nb::handle item : o) list.push_back(value_from_python(item, depth + 1));
    return Value(std::move(list));
  }
  if (PyDict_Check(p)) return Value(json_from_python(o));
  if (PyObject_HasAttrString(p, "__code__")) {  // lambda i, j: (i // 16, j, i % 16)
    IndexMap map;
    nb::object code = o.attr("__code__");
    int count = nb::cast<int>(code.attr("co_argcount"));
    nb::object names = code.attr("co_varnames");
    nb::list arguments;
    for (int i = 0; i < count; ++i) {
      map.inputs.push_back(ir::make_var(nb::cast<std::string>(names[static_cast<std::size_t>(i)])));
      arguments.append(PyExpr{map.inputs.back()});
    }
    nb::object result = nb::borrow<nb::object>(o)(*nb::tuple(arguments));
    if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
      for (nb::handle item : result) map.outputs.push_back(expr_from_python(item));
    } else {
      map.outputs.push_back(expr_from_python(result));
    }
    return Value(std::move(map));
  }
  throw Error(ErrorKind::value, "schedule.argument.type", cat("no schedule step takes ", shown(o)))
      .help(
          "blocks and loops of a schedule come from it: sch.get_block(\"C\"), "
          "sch.get_loops(block)");
}

nb::object value_to_python(const Value& v) {
  if (const auto* x = v.get<bool>()) return nb::bool_(*x);
  if (const auto* x = v.get<std::int64_t>()) return nb::int_(*x);
  if (const auto* x = v.get<double>()) return nb::float_(*x);
  if (const auto* x = v.get<std::string>()) return nb::str(x->c_str());
  if (const auto* x = v.get<BlockRef>()) return nb::cast(*x);
  if (const auto* x = v.get<LoopRef>()) return nb::cast(*x);
  if (const auto* x = v.get<IntRef>()) return nb::cast(PyInt{*x});
  if (const auto* x = v.get<Json>()) return json_to_python(*x);
  if (const auto* x = v.get<Value::List>()) {
    nb::list out;
    for (const Value& item : *x) out.append(value_to_python(item));
    return out;
  }
  return nb::none();
}

}  // namespace

namespace {

/// Decisions that a Python function takes.
class AskingPython final : public rules::Choices {
 public:
  explicit AskingPython(nb::callable f) : f_(std::move(f)) {}
  std::int64_t number(const std::string& name, const std::vector<std::int64_t>& options) override {
    return nb::cast<std::int64_t>(f_(name, options));
  }
  std::string word(const std::string& name, const std::vector<std::string>& options) override {
    return nb::cast<std::string>(f_(name, options));
  }
  void expected(double microseconds) override {
    if (nb::hasattr(f_, "expected"))
      f_.attr("expected") = nb::cast<double>(f_.attr("expected")) + microseconds * 1e-6;
  }

 private:
  nb::callable f_;
};

}  // namespace

void bind_schedule(nb::module_& m) {
  nb::class_<BlockRef>(m, "BlockRef",
                       "A block of a scheduled program; stays valid while the block exists.")
      .def("__eq__",
           [](const BlockRef& a, nb::handle b) {
             BlockRef* o = nullptr;
             return nb::try_cast<BlockRef*>(b, o) && o && *o == a;
           })
      .def("__hash__", [](const BlockRef& a) { return static_cast<std::size_t>(a.id); })
      .def("__repr__", [](const BlockRef& a) { return cat("weft.BlockRef(#", a.id, ")"); });
  nb::class_<LoopRef>(m, "LoopRef",
                      "A loop of a scheduled program; stays valid while the loop exists.")
      .def_prop_ro("name", [](const LoopRef& l) { return l.var->name; })
      .def("__eq__",
           [](const LoopRef& a, nb::handle b) {
             LoopRef* o = nullptr;
             return nb::try_cast<LoopRef*>(b, o) && o && *o == a;
           })
      .def("__hash__", [](const LoopRef& a) { return reinterpret_cast<std::size_t>(a.var.get()); })
      .def("__repr__", [](const LoopRef& a) { return cat("weft.LoopRef(", a.var->name, ")"); });
  nb::class_<PyInt>(m, "SampledInt", "The integer that a sampling step chose.")
      .def("__int__", [](const PyInt& v) { return v.value.value; })
      .def("__index__", [](const PyInt& v) { return v.value.value; })
      .def("__repr__", [](const PyInt& v) { return std::to_string(v.value.value); });
  nb::class_<Trace>(m, "Trace", "The steps of a schedule, in order.")
      .def("as_python", &Trace::as_python,
           "One Python statement a step, on a schedule called `sch`.")
      .def("as_json", &Trace::json)
      .def("__len__", [](const Trace& t) { return t.entries().size(); })
      .def("__repr__", &Trace::as_python);
  nb::class_<Schedule>(m, "Schedule")
      .def(
          "__init__",
          [](Schedule* self, nb::handle program, std::int64_t seed) {
            new (self) Schedule(module_from_python(program), all_target_info(), seed);
          },
          nb::arg("program"), nb::arg("seed") = 0)
      .def("call",
           [](Schedule& s, const std::string& name, nb::args args, nb::kwargs kwargs) {
             Value::List positional;
             for (nb::handle a : args) positional.push_back(value_from_python(a));
             std::vector<std::pair<std::string, Value>> keywords;
             for (auto [key, value] : kwargs)
               keywords.emplace_back(nb::cast<std::string>(key), value_from_python(value));
             return value_to_python(s.call(name, positional, keywords));
           })
      .def_prop_ro("mod", [](const Schedule& s) { return PyModule{s.mod()}; })
      .def_prop_ro("func", [](const Schedule& s) { return PyFunc{s.func()}; })
      .def_prop_ro("start", [](const Schedule& s) { return PyModule{s.start()}; })
      .def_prop_ro("trace", [](const Schedule& s) { return s.trace(); })
      .def("script", &Schedule::show)
      .def("check_by_running", &Schedule::check_by_running, nb::arg("seed") = 0,
           nb::arg("step_limit") = 20'000'000)
      .def_prop_ro("checked",
                   [](const Schedule& s) {
                     return s.run_check() ? nb::object(nb::make_tuple(s.run_check()->compared(),
                                                                      s.run_check()->rebased()))
                                          : nb::none();
                   })
      .def("copy", [](const Schedule& s) { return Schedule(s); })
      .def("get", &schedule_view, nb::arg("ref"))
      .def("set_detail", &Schedule::set_detail, nb::arg("on"))
      .def("work_on", &Schedule::work_on, nb::arg("func_name"))
      .def_static(
          "replay",
          [](nb::handle program, nb::handle trace) {
            Json json = PyUnicode_Check(trace.ptr())
                            ? Json::parse(nb::cast<std::string>(trace), "<trace>")
                            : json_from_python(trace);
            return Schedule::replay(module_from_python(program), json, all_target_info());
          },
          nb::arg("program"), nb::arg("trace"));
  m.def(
      "default_schedule",
      [](nb::handle program, const std::string& target, nb::handle options) {
        ir::IRModule mod = module_from_python(program);
        if (mod->functions.size() != 1)
          throw Error(ErrorKind::value, "python.program",
                      cat("a default schedule is made for one function, the module has ",
                          mod->functions.size()));
        return Schedule(
            *default_steps(mod->functions[0].second, target, json_from_python(options)));
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"),
      "The default schedule of a function as steps, by targets that make such.");
  nb::class_<OpenSchedule>(m, "OpenSchedule",
                           "The default schedule of a function with its decisions open: called "
                           "with choose(name, options), of which the first is the rules' own, it "
                           "gives a schedule; None where the target has no rules. To an attribute "
                           "choose.expected the seconds are added that models of rules expect.")
      .def(
          "__init__",
          [](OpenSchedule* self, nb::handle program, const std::string& target) {
            new (self) OpenSchedule(module_from_python(program)->functions.at(0).second, target);
          },
          nb::arg("program"), nb::arg("target"))
      .def(
          "begins", [](const OpenSchedule& o, const Schedule& s) { return o.func() == s.func(); },
          nb::arg("schedule"), "Whether the schedule is of this function, without a step so far.")
      .def(
          "__call__",
          [](const OpenSchedule& o, nb::callable choose) -> nb::object {
            AskingPython asking(std::move(choose));
            const auto made = o.made(asking);
            return made ? nb::cast(Schedule(*made)) : nb::none();
          },
          nb::arg("choose"));
  m.def(
      "open_schedule",
      [](nb::handle program, const std::string& target, nb::callable choose) -> nb::object {
        AskingPython asking(std::move(choose));
        const auto made =
            OpenSchedule(module_from_python(program)->functions.at(0).second, target).made(asking);
        return made ? nb::cast(Schedule(*made)) : nb::none();
      },
      nb::arg("program"), nb::arg("target"), nb::arg("choose"),
      "One schedule of OpenSchedule(program, target).");
  m.def(
      "target_has_rules", [](const std::string& target) { return has_rules(target); },
      nb::arg("target"),
      "Whether a target is a machine with groups of threads, whose schedules come from rules.");
  m.def(
      "opens_schedules", [](const std::string& target) { return opens_schedules(target); },
      nb::arg("target"), "Whether the decisions of a target's default schedule can be open.");
  m.def(
      "expected_seconds",
      [](const Schedule& s, const std::string& target,
         const std::map<std::string, std::int64_t>& measured) {
        return expected_seconds(s.func(), target, measured);
      },
      nb::arg("schedule"), nb::arg("target"), nb::arg("measured"),
      "The time that a model of the target expects of a scheduled function; measured: limits of "
      "the device.");
  m.def(
      "schedule_primitives",
      [] {
        nb::list out;
        for (const PrimitiveInfo& p : primitives()) {
          nb::list fields;
          for (const FieldInfo& f : *p.fields) {
            fields.append(nb::make_tuple(std::string(f.name), std::string(f.type),
                                         std::string(f.doc), static_cast<int>(f.mode),
                                         value_to_python(f.otherwise)));
          }
          out.append(nb::make_tuple(std::string(p.name), std::string(p.doc), std::string(p.result),
                                    fields));
        }
        return out;
      },
      "(name, doc, result, [(field, type, doc, mode, default)]) of every step.");
}

}  // namespace weft::py
