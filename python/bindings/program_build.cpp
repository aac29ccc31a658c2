// SPDX-License-Identifier: Apache-2.0
// build, compiled modules and their functions; devices by name.

#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "array_type.h"
#include "program.h"
#include "shown.h"
#include "weft/ir/text.h"
#include "weft/pass/validate.h"
#include "weft/runtime/cache.h"
#include "weft/runtime/module.h"
#include "weft/target/accepts.h"
#include "weft/target/backend.h"

namespace weft::py {

namespace {

struct PyCompiled {
  Ref<runtime::Module> module;
};
struct PyFunction {
  Ref<runtime::Function> function;
};

/// "numpy.ndarray", "list", "NoneType".
std::string type_of(nb::handle o) {
  nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o.ptr())));
  std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : cat(module, ".", name);
}

/// " (its repr)" when that is short, else nothing.
std::string short_text(nb::handle o) {
  std::string text = shown(o);
  return text.size() > 40 || text.find('\n') != std::string::npos ? "" : cat(" (", text, ")");
}

/// Where a call runs: the device of its first array; without arrays, and for those in host memory,
/// the target's own. Host memory serves every target that computes there ("cpu", "c", "ref").
Ref<Device> device_of(const nb::args& args, const std::string& target) {
  Ref<Device> found;
  for (nb::handle a : args) {
    if (!is_ndarray(a.ptr())) continue;
    found = unwrap(a.ptr()).device();
    break;
  }
  return !found || runtime::shares_host_memory(*found) ? open_device(target) : found;
}

nb::dict time_dict(const runtime::TimeResult& r) {
  nb::dict out;
  out["mean"] = r.mean, out["median"] = r.median, out["min"] = r.min, out["max"] = r.max,
  out["stddev"] = r.stddev;
  out["cycles"] = r.cycles, out["wall"] = r.wall, out["results"] = r.results;
  return out;
}

/// The back end, or a refusal that lists those with an assembler.
Backend& assembler(const Target& target) {
  Backend& backend = find_backend(target.name);
  if (backend.has_assembler()) return backend;
  std::vector<std::string> known;
  for (Backend* b : backends()) {
    if (b->has_assembler()) known.emplace_back(b->name());
  }
  throw Error(ErrorKind::value, "target.assembler.none",
              cat("target \"", target.text(), "\" has no assembler"))
      .note(cat("targets with one: ", join(known)));
}

/// A target's table, for the pages that are generated from it: a list of rows, by column, for each
/// kind.
nb::dict target_table(const std::string& text) {
  constexpr std::array<const char*, 4> kKinds = {"parallel", "lockstep", "spatial", "virtual"};
  const Target target = Target::parse(text);
  const TargetInfo info = find_backend(target.name).info(target);
  nb::list axes, memories, queues, instructions, dtypes;
  for (const AxisInfo& a : info.axes) {
    nb::dict row;
    row["axis"] = a.name, row["points"] = kKinds[static_cast<std::size_t>(a.kind)];
    row["limit"] = a.limit, row["group"] = a.group, row["limit of the group"] = a.group_limit;
    row["barrier"] = a.barrier, row["reduces"] = a.reduces;
    row["collectives"] = join(a.collectives);
    axes.append(row);
  }
  for (const MemoryInfo& m : info.memories) {
    nb::dict row;
    row["scope"] = m.scope, row["bytes"] = m.bytes;
    row["smallest transfer"] = m.min_transfer_bytes, row["each point of"] = join(m.private_to);
    row["access"] = m.access;
    memories.append(row);
  }
  for (const QueueInfo& q : info.queues) {
    nb::dict row;
    row["queue"] = q.name, row["in order"] = q.in_order, row["waits by"] = q.sync;
    row["outstanding"] = q.outstanding;
    queues.append(row);
  }
  for (const InstructionInfo& i : info.instructions) instructions.append(i.name);
  for (DType t : info.dtypes) dtypes.append(to_string(t));
  nb::dict out;
  out["axes"] = axes, out["memories"] = memories, out["queues"] = queues;
  out["instructions"] = instructions, out["dtypes"] = dtypes;
  out["symbolic_shapes"] = info.symbolic_shapes;
  return out;
}

}  // namespace

std::vector<runtime::CallArg> call_args(const nb::args& args) {
  std::vector<runtime::CallArg> out;
  for (nb::handle a : args) {
    runtime::CallArg arg;
    if (is_ndarray(a.ptr())) {
      const NDArray& array = unwrap(a.ptr());
      arg.storage = array.handle().get();
      arg.dtype = array.dtype();
      arg.byte_offset = static_cast<runtime::Bytes>(array.offset() * elem_bytes(array.elem()));
      for (int i = 0; i < array.ndim(); ++i) {
        arg.shape.push_back(array.shape()[i]);
        arg.strides.push_back(array.strides()[i]);
      }
    } else if (PyBool_Check(a.ptr()) || PyLong_Check(a.ptr())) {
      arg.dtype = dtypes::int64;
      arg.int_value = nb::cast<std::int64_t>(a);
    } else if (PyFloat_Check(a.ptr())) {
      arg.dtype = dtypes::float64;
      arg.float_value = nb::cast<double>(a);
    } else if (PyObject_HasAttrString(a.ptr(), "_array") &&
               is_ndarray(nb::object(a.attr("_array")).ptr())) {
      throw Error(ErrorKind::value, "call.kind",
                  cat("pass the tensor's array: ", shown(a).substr(0, 80)));
    } else {
      throw Error(ErrorKind::value, "call.kind",
                  cat("argument ", out.size() + 1, " is a ", type_of(a), short_text(a),
                      ", which no kernel takes"))
          .help("pass weft.NDArray, int or float; weft.asarray(x) converts");
    }
    out.push_back(std::move(arg));
  }
  return out;
}

void bind_build(nb::module_& m) {
  nb::class_<PyFunction>(m, "Function", "A compiled function on one device. Outputs are arguments.")
      .def("__call__",
           [](PyFunction& f, nb::args args) {
             std::vector<runtime::CallArg> list = call_args(args);
             nb::gil_scoped_release release;
             runtime::Event done = f.function->call(list);
             // A card's work is ordered, and whoever reads a result waits for it.
             if (f.function->device()->info().kind != runtime::DeviceKind::hardware) done.wait();
           })
      .def(
          "time",
          [](PyFunction& f, nb::args args, int number, int repeat, double min_seconds) {
            std::vector<runtime::CallArg> list = call_args(args);
            runtime::TimeResult result;
            {
              nb::gil_scoped_release release;
              result = f.function->time(list, number, repeat, min_seconds);
            }
            return time_dict(result);
          },
          nb::arg("args"), nb::kw_only(), nb::arg("number") = 10, nb::arg("repeat") = 3,
          nb::arg("min_seconds") = 0.0)
      .def_prop_ro("device", [](PyFunction& f) { return device_object(f.function->device()); });
  nb::class_<PyCompiled>(m, "CompiledModule",
                         "Kernels for one target and the host plans of their functions.")
      .def_prop_ro("target", [](const PyCompiled& c) { return c.module->binary().target; })
      .def_prop_ro("format", [](const PyCompiled& c) { return c.module->binary().format; })
      .def_prop_ro("notes",
                   [](const PyCompiled& c) {
                     nb::list out;
                     for (const std::string& note : c.module->notes()) out.append(note);
                     return out;
                   })
      .def_prop_ro("functions",
                   [](const PyCompiled& c) {
                     nb::list out;
                     for (const runtime::HostPlan& p : c.module->plans()) out.append(p.name);
                     return out;
                   })
      .def(
          "source", [](const PyCompiled& c) { return c.module->source(); },
          "The text that was compiled.")
      .def("bytes",
           [](const PyCompiled& c) {
             return nb::bytes(c.module->binary().bytes.data(), c.module->binary().bytes.size());
           })
      .def(
          "plan",
          [](const PyCompiled& c, const std::string& name) {
            return json_to_python(runtime::to_json(c.module->plan(name)));
          },
          nb::arg("name") = "main")
      .def(
          "save", [](const PyCompiled& c, const std::string& path) { c.module->save(path); },
          nb::arg("path"))
      .def("serialize",
           [](const PyCompiled& c) {
             std::string b = c.module->serialize();
             return nb::bytes(b.data(), b.size());
           })
      .def("function",
           [](const PyCompiled& c, const std::string& name, nb::args args) {
             return PyFunction{make_ref<runtime::Function>(
                 c.module, name, device_of(args, c.module->binary().target))};
           })
      .def("function_on", [](const PyCompiled& c, const std::string& name, nb::handle device) {
        return PyFunction{make_ref<runtime::Function>(c.module, name, device_from_python(device))};
      });
  m.def(
      "build",
      [](nb::handle program, const std::string& target, nb::object after, nb::object validate) {
        BuildOptions options;
        std::optional<pass::ValidationScope> scope;
        if (!validate.is_none()) scope.emplace(nb::cast<std::int64_t>(validate));
        if (!after.is_none()) {
          options.observer.after = [after](const pass::Pass& pass, const ir::PrimFunc& f,
                                           double seconds) {
            const nb::gil_scoped_acquire gil;
            after(pass.name, PyFunc{f}, seconds);
          };
        }
        const ir::IRModule module = module_from_python(program);
        const nb::gil_scoped_release nogil;  // long: other threads go on
        return PyCompiled{build(module, target, options)};
      },
      nb::arg("program").none(), nb::arg("target"), nb::arg("after") = nb::none(),
      nb::arg("validate") = nb::none());
  m.def(
      "check_accepts",
      [](nb::handle program, const std::string& target) {
        const ir::IRModule module = module_from_python(program);
        const nb::gil_scoped_release nogil;
        if (Verdict no = accepts(module, target)) throw Error(ErrorKind::lower, std::move(*no));
      },
      nb::arg("program").none(), nb::arg("target"));
  m.def(
      "load_module",
      [](const std::string& path) { return PyCompiled{runtime::Module::load(path)}; },
      nb::arg("path"));
  m.def(
      "read_module",
      [](nb::bytes data) {
        return PyCompiled{runtime::Module::deserialize({data.c_str(), data.size()}, "<bytes>")};
      },
      nb::arg("data"));
  m.def("device_statuses", [] {
    nb::list out;
    for (const DeviceStatus& s : all_devices()) {
      out.append(nb::make_tuple(s.name, std::string(runtime::to_string(s.kind)), s.available,
                                s.reason, s.description));
    }
    return out;
  });
  m.def(
      "target_limits",
      [](const std::string& text) {
        const Target target = Target::parse(text);
        const TargetInfo info = find_backend(target.name).info(target);
        std::map<std::string, std::int64_t> out(info.limits.begin(), info.limits.end());
        if (info.group_threads() > 0) out["max_threads_per_block"] = info.group_threads();
        if (info.group_bytes() > 0) out["max_shared_memory_per_block"] = info.group_bytes();
        return out;
      },
      nb::arg("target"), "Limits of a target by name: vector_bytes, registers, max_threads ...");
  m.def("target_table", &target_table, nb::arg("target"),
        "The rows of a target's table: axes, memories, queues, instructions, element types.");
  m.def("assemble",
        [](const std::string& target_text, const std::string& text, const std::string& file) {
          Target target = Target::parse(target_text);
          std::string words = assembler(target).assemble(text, file, target);
          return nb::bytes(words.data(), words.size());
        });
  m.def("disassemble", [](const std::string& target_text, nb::bytes words) {
    Target target = Target::parse(target_text);
    return assembler(target).disassemble({words.c_str(), words.size()}, target);
  });
  m.def(
      "set_cache_directory",
      [](const std::string& directory) { runtime::FileCache::set_shared_directory(directory); },
      nb::arg("directory"), "Where compiled code is kept; only before the first build.");
  m.def(
      "_load_cached",
      [](const std::string& key) -> nb::object {
        const auto& cache = runtime::FileCache::shared();
        const auto at = runtime::CacheKey::of(key);
        try {
          if (auto found = cache.load(at)) return nb::bytes(found->data(), found->size());
        } catch (const Error&) {
          cache.discard(at);  // damaged: as if it were absent
        }
        return nb::none();
      },
      nb::arg("key"),
      "What _store_cached kept on disk under the key; None where there is nothing.");
  m.def(
      "_store_cached",
      [](const std::string& key, nb::bytes content) {
        runtime::FileCache::shared().store(runtime::CacheKey::of(key),
                                           {content.c_str(), content.size()});
      },
      nb::arg("key"), nb::arg("content"), "Keeps bytes beside compiled code.");
  m.def("assembler_targets", [] {
    nb::list out;
    for (Backend* b : backends()) {
      if (b->has_assembler()) out.append(std::string(b->name()));
    }
    return out;
  });
  m.def("targets", [] {
    nb::list out;
    for (Backend* b : backends()) out.append(std::string(b->name()));
    return out;
  });
}

}  // namespace weft::py
