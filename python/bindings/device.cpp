// SPDX-License-Identifier: Apache-2.0
// weft.device, weft.use and the element types as Python objects.

#include <nanobind/nanobind.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "array_type.h"
#include "shown.h"
#include "weft/base/packaged_library.h"
#include "weft/devices/pending_checks.h"
#include "weft/runtime/trace.h"
#include "weft/sim/debug/debugger.h"
#include "weft/target/backend.h"

namespace weft::py {

namespace {

/// A device that is there, or the name of one that is not and why.
struct DeviceHandle {
  Ref<Device> device;
  std::string name, kind, reason;

  explicit DeviceHandle(Ref<Device> d)
      : device(std::move(d)), name(device->info().name), kind(to_string(device->info().kind)) {}
  DeviceHandle(std::string n, std::string why)
      : name(std::move(n)), kind("hardware"), reason(std::move(why)) {}
  /// Throws Error(device, ...) with what was searched when the device is absent.
  const Ref<Device>& get() const {
    if (!device) open_device(name);
    if (!device)
      throw Error(ErrorKind::device, "device.absent",
                  cat("\"", name, "\" was not available when it was asked for"))
          .note(reason);
    return device;
  }
};
struct DTypeHandle {
  Elem elem;
};

/// A device's spans, until stopped.
class DeviceTrace {
 public:
  explicit DeviceTrace(Ref<Device> device) : device_(std::move(device)) {
    nb::gil_scoped_release nogil;  // another thread's launch may have to end first
    device_->trace_to(&sink_);
  }
  ~DeviceTrace() { stop(); }
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;
  void stop() {
    if (device_) {
      nb::gil_scoped_release nogil;
      device_->trace_to(nullptr);
    }
    device_ = nullptr;
  }
  std::string json() {
    stop();
    return sink_.to_json();
  }

 private:
  runtime::TraceSink sink_;
  Ref<Device> device_;
};

std::array<PyObject*, kElems> g_dtypes{};
Ref<Device>& host_device() {
  static Ref<Device> device = open_device("cpu");
  return device;
}
/// The name that WEFT_DEVICE gave: opened when it is needed first, so that importing never fails.
std::string& process_name() {
  static std::string name;
  return name;
}
/// The default of the process, and what `with weft.use(...)` puts before it on one thread.
Ref<Device>& process_device() {
  static Ref<Device> device = host_device();
  if (!process_name().empty()) {
    device = open_device(process_name());
    process_name().clear();
  }
  return device;
}
Ref<Device>& thread_device() {
  thread_local Ref<Device> device;
  return device;
}
const Ref<Device>& current() { return thread_device() ? thread_device() : process_device(); }

/// The name of an element type that NumPy's users write otherwise: "f4", "<i8", "float", "double".
std::string known_name(std::string text) {
  struct Row {
    std::string_view name;
    std::array<std::string_view, 8> spellings;
  };
  static constexpr Row kRows[] = {
      {"bool", {"?", "b1", "bool_"}},
      {"int8", {"b", "i1", "byte"}},
      {"int16", {"h", "i2", "short"}},
      {"int32", {"i", "i4", "intc"}},
      {"int64", {"l", "q", "p", "i8", "int_", "intp", "long", "longlong"}},
      {"uint8", {"B", "u1", "ubyte"}},
      {"uint16", {"H", "u2", "ushort"}},
      {"uint32", {"I", "u4", "uintc"}},
      {"uint64", {"L", "Q", "P", "u8", "uint", "uintp", "ulong", "ulonglong"}},
      {"float16", {"e", "f2", "half"}},
      {"float32", {"f", "f4", "single"}},
      {"float64", {"d", "f8", "double"}},
      {"complex64", {"F", "c8", "csingle"}},
      {"complex128", {"D", "c16", "cdouble"}},
  };
  if (text.empty()) return text;
  if (text == "int") return std::string(name_of(kDefaultInt));
  if (text == "float") return std::string(name_of(kDefaultReal));
  if (text == "complex") return std::string(name_of(kDefaultComplex));
  if (text.size() > 1 && (text[0] == '<' || text[0] == '=' || text[0] == '|')) text.erase(0, 1);
  for (const Row& row : kRows)
    if (std::count(row.spellings.begin(), row.spellings.end(), text)) return std::string(row.name);
  return text;
}

bool try_elem(PyObject* o, Elem& out) {
  DTypeHandle* handle = nullptr;
  if (nb::try_cast<DTypeHandle*>(nb::handle(o), handle) && handle) {
    out = handle->elem;
    return true;
  }
  std::string name;
  if (PyUnicode_Check(o)) {
    name = known_name(nb::cast<std::string>(nb::handle(o)));
  } else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    name = "bool";
  } else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    name = name_of(kDefaultInt);
  } else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    name = name_of(kDefaultReal);
  } else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    name = name_of(kDefaultComplex);
  } else if (PyType_Check(o)) {
    name = known_name(nb::cast<std::string>(nb::handle(o).attr("__name__")));  // numpy.float32
  } else if (PyObject_HasAttrString(o, "name")) {
    nb::object n = nb::handle(o).attr("name");  // numpy.dtype("float32")
    if (PyUnicode_Check(n.ptr())) name = nb::cast<std::string>(n);
  } else if (std::string_view(Py_TYPE(o)->tp_name) == "torch.dtype") {
    const std::string text = nb::cast<std::string>(nb::str(nb::handle(o)));  // torch.float32
    if (text.starts_with("torch.")) name = text.substr(6);
  }
  DType type;
  if (name.empty() || !try_parse_dtype(name, type)) return false;
  try {
    out = elem_of(type);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace

PyObject* dtype_object(Elem e) { return g_dtypes[static_cast<std::size_t>(e)]; }

Elem elem_from_python(PyObject* o) {
  Elem e;
  if (try_elem(o, e)) return e;
  if (PyUnicode_Check(o)) return elem_of(parse_dtype(nb::cast<std::string>(nb::handle(o))));
  throw Error(ErrorKind::dtype, "array.dtype.unknown", cat("not an element type: ", shown(o)));
}

std::optional<Elem> optional_elem(nb::handle o) {
  if (!o.is_valid() || o.is_none()) return std::nullopt;
  return elem_from_python(o.ptr());
}

nb::object device_object(const Ref<Device>& device) { return nb::cast(DeviceHandle(device)); }

const Ref<Device>& default_device() { return current(); }

Ref<Device> device_from_python(nb::handle o) {
  if (!o.is_valid() || o.is_none()) return current();
  // Names first: asking what else an object is takes as long as making an array.
  if (PyUnicode_Check(o.ptr())) {
    // The host's is named in every other call; looking it up takes longer than that.
    if (PyUnicode_CompareWithASCIIString(o.ptr(), host_device()->info().name.c_str()) == 0)
      return host_device();
    return open_device(nb::cast<std::string>(o));
  }
  DeviceHandle* handle = nullptr;
  if (nb::try_cast<DeviceHandle*>(o, handle) && handle) return handle->get();
  throw Error(ErrorKind::dtype, "device.type", cat("not a device: ", shown(o)));
}

void bind_device(nb::module_& m) {
  nb::class_<DeviceHandle>(m, "Device", "Where arrays live and programs run.")
      .def_prop_ro("name", [](const DeviceHandle& d) { return d.name; })
      .def_prop_ro(
          "description",
          [](const DeviceHandle& d) { return d.device ? d.device->info().description : d.reason; })
      .def_prop_ro(
          "kind", [](const DeviceHandle& d) { return d.kind; },
          "\"hardware\", \"simulator\" or \"interpreter\".")
      .def_prop_ro("available", [](const DeviceHandle& d) { return static_cast<bool>(d.device); })
      .def_prop_ro(
          "reason", [](const DeviceHandle& d) { return d.reason; },
          "Why it is not available; what was searched.")
      .def_prop_ro("host_accessible",
                   [](const DeviceHandle& d) { return d.get()->info().host_accessible; })
      .def_prop_ro("clock_hz", [](const DeviceHandle& d) { return d.get()->info().clock_hz; })
      .def_prop_ro("limits",
                   [](const DeviceHandle& d) {
                     nb::dict out;
                     for (const auto& [key, value] : d.get()->info().limits)
                       out[key.c_str()] = value;
                     return out;
                   })
      .def(
          "synchronize",
          [](const DeviceHandle& d) {
            d.get()->synchronize();
            settle_pending(d.get());
          },
          "Waits for all work.")
      .def("clear_stats",
           [](const DeviceHandle& d) {
             const Ref<Device>& device = d.get();
             nb::gil_scoped_release nogil;  // another thread's launch may have to end first
             device->clear_stats();
           })
      .def(
          "stats",
          [](const DeviceHandle& d) {
            nb::dict out;
            const Ref<Device>& device = d.get();
            runtime::StatReport report = [&] {
              nb::gil_scoped_release nogil;
              return device->stats();
            }();
            for (const auto& row : report.rows()) out[row.name.c_str()] = row.value;
            return out;
          },
          "Statistics by name: cycles, instructions, busy.*, stall.*, bytes.* on simulators.")
      .def(
          "__eq__",
          [](const DeviceHandle& d, nb::handle other) {
            DeviceHandle* o = nullptr;
            if (nb::try_cast<DeviceHandle*>(other, o) && o) return o->name == d.name;
            return PyUnicode_Check(other.ptr()) && nb::cast<std::string>(other) == d.name;
          },
          nb::arg().none())
      .def("__hash__", [](const DeviceHandle& d) { return std::hash<std::string>()(d.name); })
      .def("__str__", [](const DeviceHandle& d) { return d.name; })
      .def("__repr__", [](const DeviceHandle& d) {
        return "device(\"" + d.name + (d.device ? "\")" : "\", absent)");
      });
  m.def(
      "open_device",
      [](nb::handle o) {
        if (PyUnicode_Check(o.ptr())) {
          try {
            return DeviceHandle(device_from_python(o));
          } catch (const Error& error) {
            if (error.kind() != ErrorKind::device) throw;
            return DeviceHandle(nb::cast<std::string>(o), error.what());
          }
        }
        DeviceHandle* handle = nullptr;
        if (nb::try_cast<DeviceHandle*>(o, handle) && handle) return *handle;
        return DeviceHandle(device_from_python(o));
      },
      nb::arg("device").none());
  nb::class_<DeviceTrace>(m, "DeviceTrace", "Spans of a device's units while it lives.")
      .def("__init__",
           [](DeviceTrace* self, const DeviceHandle& d) { new (self) DeviceTrace(d.get()); })
      .def("json", &DeviceTrace::json, "Ends the recording; trace-event JSON.");
  m.def("set_package_folders", &set_package_folders, nb::arg("folders"),
        "Folders of Python's packages, in which targets look for libraries that pip installs.");
  m.def(
      "set_default_device", [](const std::string& name) { process_name() = name; }, nb::arg("name"),
      "The default of all threads; opened, or refused, at the first use.");
  m.def(
      "swap_thread_device",
      [](nb::handle o) -> nb::object {
        Ref<Device> before = thread_device();
        thread_device() = o.is_none() ? Ref<Device>() : device_from_python(o);
        return before ? device_object(before) : nb::none();
      },
      nb::arg("device").none(),
      "Sets this thread's default device (None: the process's) and returns the former.");

  m.def(
      "debug_attach",
      [](std::uintptr_t read, std::uintptr_t write) {
        weft_debug_console console{};
        std::memcpy(&console.read, &read, sizeof read);
        std::memcpy(&console.write, &write, sizeof write);
        weft_debug_attach(&console);
      },
      nb::arg("read"), nb::arg("write"),
      "Debugs every later launch on a simulated machine; addresses of the two C functions.");

  nb::class_<DTypeHandle>(m, "dtype", "An element type.")
      .def("__init__", [](DTypeHandle* self,
                          nb::handle o) { new (self) DTypeHandle{elem_from_python(o.ptr())}; })
      .def_prop_ro("name", [](const DTypeHandle& d) { return std::string(name_of(d.elem)); })
      .def_prop_ro("itemsize", [](const DTypeHandle& d) { return elem_bytes(d.elem); })
      // PyTorch's questions.
      .def_prop_ro("is_floating_point",
                   [](const DTypeHandle& d) { return is_inexact(d.elem) && !is_complex(d.elem); })
      .def_prop_ro("is_complex", [](const DTypeHandle& d) { return is_complex(d.elem); })
      .def_prop_ro("is_signed",
                   [](const DTypeHandle& d) { return is_inexact(d.elem) || is_signed_int(d.elem); })
      .def_prop_ro("kind",
                   [](const DTypeHandle& d) {
                     return is_complex(d.elem)      ? "c"
                            : is_inexact(d.elem)    ? "f"
                            : is_signed_int(d.elem) ? "i"
                            : is_integer(d.elem)    ? "u"
                                                    : "b";
                   })
      .def(
          "__eq__",
          [](const DTypeHandle& d, nb::handle other) {
            Elem e;
            bool same = !other.is_none() && try_elem(other.ptr(), e) && e == d.elem;
            PyErr_Clear();
            return same;
          },
          nb::arg().none())
      .def("__hash__",
           [](const DTypeHandle& d) {
             return nb::hash(nb::str(std::string(name_of(d.elem)).c_str()));
           })
      .def("__str__", [](const DTypeHandle& d) { return std::string(name_of(d.elem)); })
      .def("__repr__", [](const DTypeHandle& d) { return "weft." + std::string(name_of(d.elem)); })
      .def("__reduce__", [](const DTypeHandle& d) {
        return nb::make_tuple(nb::type<DTypeHandle>(),
                              nb::make_tuple(std::string(name_of(d.elem))));
      });
  for (int i = 0; i < kElems; ++i) {
    nb::object o = nb::cast(DTypeHandle{static_cast<Elem>(i)});
    m.attr(i == 0 ? "bool" : std::string(name_of(static_cast<Elem>(i))).c_str()) = o;
    g_dtypes[static_cast<std::size_t>(i)] = o.release().ptr();
  }
  m.def("promote_types", [](Elem a, Elem b) { return promote(a, b); });
  m.def("can_cast_types", [](Elem a, Elem b) { return can_cast(a, b); });
}

}  // namespace weft::py
