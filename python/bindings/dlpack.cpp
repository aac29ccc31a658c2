// SPDX-License-Identifier: Apache-2.0
// DLPack in both directions, legacy and versioned (1.x), __array__ and __cuda_array_interface__.
// The structures are those of the public specification; they are declared here because no header of
// it is needed for anything else.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <map>

#include "array_type.h"
#include "weft/devices/pending_checks.h"
#include "weft/runtime/backlog.h"

namespace weft::py {

namespace {

struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    std::uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
constexpr std::uint64_t kReadOnly = 1, kCopied = 2;
// DLPack's device types
enum : int { kHost = 1, kCuda = 2, kCudaHost = 3, kOpenCl = 4, kCudaManaged = 13 };

/// What an exported tensor needs to live: the array itself, its shape and strides.
template <typename Managed>
struct Export {
  Managed managed;
  NDArray array;
  Dims shape, strides;
};

template <typename Managed>
Managed* export_array(NDArray array, std::uint64_t flags) {
  runtime::share_memory(*array.device());
  auto* box = new Export<Managed>{};
  box->array = std::move(array);
  box->shape = box->array.shape();
  box->strides = box->array.strides();
  const auto& info = box->array.device()->info();
  DType type = box->array.dtype();
  DLTensor& t = box->managed.tensor;
  t.data = nullptr;
  t.byte_offset = 0;
  if (box->array.size() > 0) {
    const auto offset =
        static_cast<std::uint64_t>(box->array.offset() * elem_bytes(box->array.elem()));
    // What stands for memory of OpenCL is a cl_mem, beside which the offset has its own field.
    const bool object = info.dl_type == kOpenCl;
    t.data = reinterpret_cast<void*>(box->array.handle()->address() + (object ? 0 : offset));
    if (object) t.byte_offset = offset;
  }
  t.device = {info.dl_type, info.dl_id};
  t.ndim = box->array.ndim();
  t.dtype = {static_cast<std::uint8_t>(type.code), type.bits, 1};
  t.shape = box->shape.data();
  t.strides = box->strides.data();
  box->managed.context = box;
  box->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->context); };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    box->managed.version = {1, 0};
    box->managed.flags = flags;
  }
  return &box->managed;
}

template <typename Managed>
constexpr const char* kName =
    std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
template <typename Managed>
constexpr const char* kUsed =
    std::is_same_v<Managed, DLManagedTensor> ? "used_dltensor" : "used_dltensor_versioned";

template <typename Managed>
nb::object capsule_of(NDArray array, std::uint64_t flags) {
  Managed* managed = export_array<Managed>(std::move(array), flags);
  PyObject* capsule = PyCapsule_New(managed, kName<Managed>, [](PyObject* self) {
    if (!PyCapsule_IsValid(self, kName<Managed>)) return;  // consumed: the consumer deletes
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(self, kName<Managed>));
    if (m->deleter) m->deleter(m);
  });
  return nb::steal(capsule);
}

[[noreturn]] void buffer_error(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw nb::python_error();
}

nb::object dlpack(const NDArray& self, nb::handle stream, nb::handle max_version,
                  nb::handle dl_device, nb::handle copy) {
  NDArray array = self;
  std::uint64_t flags = 0;
  bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
  bool may_copy = copy.is_none() || must_copy;
  const auto& info = array.device()->info();
  int type = info.dl_type, id = info.dl_id;
  if (!dl_device.is_none()) {
    auto wanted = nb::cast<nb::tuple>(dl_device);
    type = nb::cast<int>(nb::object(wanted[0]));
    id = nb::cast<int>(nb::object(wanted[1]));
  }
  if (!stream.is_none()) {
    if (type != kCuda)
      buffer_error(cat("an export to DLPack device type ", type, " takes no stream"));
    if (nb::cast<std::int64_t>(stream) == 0) {
      throw Error(ErrorKind::value, "array.dlpack.stream",
                  cat("stream 0 of ", describe(self), " is ambiguous"))
          .note("legal: 1 (legacy default), 2 (per thread), a handle, -1 (no synchronisation)");
    }
  }
  if (type != info.dl_type || (type == kCuda && id != info.dl_id)) {
    if (type != kHost) buffer_error("weft exports to the array's own device and to the host only");
    if (!may_copy) buffer_error("copy=False, but another device was asked for");
    array = array.to(device_from_python(nb::str("cpu")));
    flags = kCopied;
  } else if (type != kHost && type != kCuda && type != kOpenCl) {
    // A simulator's address is nothing that a consumer could use.
    buffer_error(cat("arrays on ", info.name,
                     " are exported by a copy to the host only: pass "
                     "dl_device=(1, 0)"));
  } else if (type == kOpenCl) {
    array.device()->synchronize();
  } else if (type == kCuda && (stream.is_none() || nb::cast<std::int64_t>(stream) != -1)) {
    array.device()->synchronize();
    settle_pending(array.device());
  }
  bool negative = false;
  for (int i = 0; i < array.ndim(); ++i) negative |= array.strides()[i] < 0 && array.shape()[i] > 1;
  if ((must_copy || negative) && !(flags & kCopied)) {
    if (!may_copy) buffer_error("copy=False, but negative strides cannot be exported");
    array = array.copy();
    flags = kCopied;
  }
  if (!max_version.is_none()) {
    auto version = nb::cast<nb::tuple>(max_version);
    if (nb::cast<int>(nb::object(version[0])) >= 1)
      return capsule_of<DLManagedTensorVersioned>(std::move(array), flags);
  }
  return capsule_of<DLManagedTensor>(std::move(array), flags);
}

/// A card by its number. Cards stay open as long as the process; looking one up by name would take
/// longer than the rest of an import. The interpreter's lock guards the table.
Ref<Device> card(std::int32_t id) {
  static auto& known = *new std::map<std::int32_t, Ref<Device>>;
  if (auto it = known.find(id); it != known.end()) return it->second;
  Ref<Device> device = device_from_python(nb::str(cat("cuda:", id).c_str()));
  return known[id] = device;
}

template <typename Managed>
NDArray import_capsule(PyObject* capsule, Copy copy) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName<Managed>));
  if (!managed) throw nb::python_error();
  bool read_only = false;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->version.major != 1)
      buffer_error(cat("DLPack version ", managed->version.major, " is not known"));
    read_only = managed->flags & kReadOnly;
  }
  const DLTensor& t = managed->tensor;
  const bool on_card = t.device.type == kCuda || t.device.type == kCudaManaged;
  if (t.device.type != kHost && t.device.type != kCudaHost && !on_card) {
    buffer_error(cat("DLPack device type ", t.device.type, " cannot be adopted here"));
  }
  if (t.dtype.lanes != 1) buffer_error("vector element types cannot be adopted");
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) buffer_error(cat("extent ", t.shape[i], " of axis ", i, " is negative"));
  }
  if (read_only && copy == Copy::never) buffer_error("copy=False, but the memory is read-only");
  Ref<Device> device = on_card ? card(t.device.id) : device_from_python(nb::str("cpu"));
  Elem e = elem_of(DType{static_cast<TypeCode>(t.dtype.code), t.dtype.bits, 1});
  Dims shape(t.shape, t.ndim);
  Dims strides = t.strides ? Dims(t.strides, t.ndim) : NDArray::compact_strides(shape);
  PyCapsule_SetName(capsule, kUsed<Managed>);
  std::int64_t span = 1;
  for (int i = 0; i < t.ndim; ++i) span += shape[i] > 0 ? std::abs(strides[i]) * (shape[i] - 1) : 0;
  auto release = [managed] {
    if (!managed->deleter || !Py_IsInitialized()) return;
    nb::gil_scoped_acquire gil;
    managed->deleter(managed);
  };
  NDArray array = from_external(device, static_cast<char*>(t.data) + t.byte_offset,
                                span * elem_bytes(e), e, shape, strides, release);
  return copy == Copy::always || read_only ? array.copy() : array;
}

/// What `make` gives, made once and kept as long as the process lives. A `static` would deadlock:
/// whoever makes it runs Python and lets other threads in, which wait for it with the interpreter's
/// lock held. Here the lock is what guards, and of two that are made at once one is dropped.
template <typename T, typename F>
const T& made_once(T*& kept, F&& make) {
  if (!kept) {
    T* made = make();
    if (!kept) kept = made;
    else delete made;
  }
  return *kept;
}

/// A compact copy in memory of NumPy's, which is told type and shape instead of a buffer to look
/// at.
nb::object numpy_copy(const NDArray& array, nb::handle empty) {
  struct Types {
    nb::object of[kElems];
  };
  static constinit Types* kept = nullptr;
  const Types& types = made_once(kept, [] {
    static constexpr const char* names[] = {"?",     "i1", "i2", "i4",    "i8",    "u1",
                                            "u2",    "u4", "u8", nullptr, nullptr, "f2",
                                            nullptr, "f4", "f8", "c8",    "c16"};
    static_assert(std::size(names) == kElems);
    auto out = std::make_unique<Types>();
    const nb::object make = nb::module_::import_("numpy").attr("dtype");
    for (int e = 0; e < kElems; ++e)
      if (names[e]) out->of[e] = make(names[e]);
    return out.release();
  });
  nb::object shape = nb::steal(PyTuple_New(array.ndim()));
  for (int i = 0; i < array.ndim(); ++i)
    PyTuple_SET_ITEM(shape.ptr(), i, PyLong_FromLongLong(array.shape()[i]));
  PyObject* args[2] = {shape.ptr(), types.of[static_cast<int>(array.elem())].ptr()};
  nb::object out = nb::steal(PyObject_Vectorcall(empty.ptr(), args, 2, nullptr));
  Py_buffer view;
  if (!out.is_valid() || PyObject_GetBuffer(out.ptr(), &view, PyBUF_WRITABLE) != 0)
    throw nb::python_error();
  const auto bytes = static_cast<std::size_t>(array.nbytes());
  if (bytes < (std::size_t{1} << 20)) {
    std::memcpy(view.buf, array.host(), bytes);
  } else {
    nb::gil_scoped_release nogil;
    std::memcpy(view.buf, array.host(), bytes);
  }
  PyBuffer_Release(&view);
  return out;
}

nb::object numpy(const NDArray& self, nb::handle dtype, nb::handle copy) {
  NDArray array = self;
  bool never = !copy.is_none() && !nb::cast<bool>(copy);
  if (!array.on_host()) {
    if (never)
      throw Error(ErrorKind::value, "array.numpy.copy",
                  cat("copy=False, but ", describe(self), " is on ", self.device()->info().name));
    array = array.to(device_from_python(nb::str("cpu")));
  }
  if (array.elem() == Elem::bfloat16 || is_float8(array.elem()))
    array = array.astype(Elem::float32);  // NumPy has no such types
  struct Functions {
    nb::object copied, view, empty;
  };
  static constinit Functions* kept = nullptr;
  const Functions& numpy = made_once(kept, [] {
    nb::module_ np = nb::module_::import_("numpy");
    return new Functions{np.attr("array"), np.attr("asarray"), np.attr("empty")};
  });
  const bool copied = dtype.is_none() && !copy.is_none() && nb::cast<bool>(copy);
  if (copied && array.is_contiguous() && array.size() > 0) return numpy_copy(array, numpy.empty);
  nb::object buffer = nb::steal(PyMemoryView_FromObject(nb::steal(wrap(array)).ptr()));
  if (!buffer.is_valid()) throw nb::python_error();
  if (copied) return numpy.copied(buffer, nb::arg("order") = "C");
  nb::object view = numpy.view(buffer);
  if (!dtype.is_none()) return view.attr("astype")(dtype, nb::arg("copy") = !never);
  return view;
}

}  // namespace

NDArray from_dlpack(PyObject* o, const Ref<Device>& device, Copy copy) {
  if (PyCapsule_CheckExact(o)) {
    return PyCapsule_IsValid(o, kName<DLManagedTensorVersioned>)
               ? import_capsule<DLManagedTensorVersioned>(o, copy)
               : import_capsule<DLManagedTensor>(o, copy);
  }
  if (is_ndarray(o)) {  // no detour: of a device that exports nothing, too
    const NDArray& array = unwrap(o);
    const bool moves = device && device.get() != array.device().get();
    if (moves && copy == Copy::never) buffer_error("copy=False, but another device was asked for");
    return copy == Copy::always && !moves ? array.copy() : array;
  }
  nb::object exporter = nb::handle(o).attr("__dlpack__");
  int type = kHost;
  if (PyObject_HasAttrString(o, "__dlpack_device__")) {
    auto where = nb::cast<nb::tuple>(nb::handle(o).attr("__dlpack_device__")());
    type = nb::cast<int>(nb::int_(nb::object(where[0])));
  }
  nb::dict old;  // what exporters before DLPack 1.0 take
  const bool to_host = device && device->info().dl_type == kHost;
  if (type == kCuda && !to_host) old["stream"] = 1;
  nb::object capsule;
  try {
    nb::dict kwargs;
    kwargs.update(old);
    kwargs["max_version"] = nb::make_tuple(1, 1);
    if (copy != Copy::when_needed) kwargs["copy"] = nb::bool_(copy == Copy::always);
    if (to_host && type != kHost) kwargs["dl_device"] = nb::make_tuple(1, 0);
    capsule = exporter(**kwargs);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    if (type == kCuda) old["stream"] = 1;
    capsule = exporter(**old);
  }
  if (!PyCapsule_CheckExact(capsule.ptr()))
    buffer_error(cat("__dlpack__ gave a ", nb::cast<std::string>(capsule.type().attr("__name__")),
                     ", not a capsule"));
  return from_dlpack(capsule.ptr(), Ref<Device>(), copy);
}

NDArray from_cuda_interface(PyObject* o) {
  auto held = nb::cast<nb::dict>(nb::handle(o).attr("__cuda_array_interface__"));
  auto refuse = [](const std::string& text) {
    throw Error(ErrorKind::value, "array.cuda_interface.value", text)
        .note("version 3: shape, typestr, data=(pointer, read-only), strides in bytes or None");
  };
  for (const char* key : {"shape", "typestr", "data"}) {
    if (!held.contains(key)) refuse(cat("__cuda_array_interface__ without \"", key, "\""));
  }
  Dims shape = dims_of(held["shape"], "shape");
  std::string typestr = nb::cast<std::string>(held["typestr"]);
  nb::object numpy_type = nb::module_::import_("numpy").attr("dtype")(typestr.c_str());
  Elem e = elem_from_python(numpy_type.ptr());
  if (typestr[0] == '>')
    refuse(cat("elements of __cuda_array_interface__ are big-endian: ", typestr));
  auto data = nb::cast<nb::tuple>(held["data"]);
  auto address = nb::cast<std::uint64_t>(nb::object(data[0]));
  bool read_only = nb::cast<bool>(nb::object(data[1]));
  Dims strides = NDArray::compact_strides(shape);
  if (held.contains("strides") && !held["strides"].is_none()) {
    strides = dims_of(held["strides"], "strides");
    for (int i = 0; i < strides.size(); ++i) {
      if (strides[i] % elem_bytes(e))
        refuse(cat("stride ", strides[i], " of axis ", i, " is no multiple of ", elem_bytes(e)));
      strides[i] /= elem_bytes(e);
    }
  }
  if (strides.size() != shape.size())
    refuse(cat(shape.size(), " extents, ", strides.size(), " strides"));
  const Ref<Device>& current = default_device();
  Ref<Device> device =
      current->info().dl_type == kCuda ? current : device_from_python(nb::str("cuda:0"));
  std::int64_t reach = 1;
  for (int i = 0; i < shape.size(); ++i)
    reach += shape[i] > 0 ? std::abs(strides[i]) * (shape[i] - 1) : 0;
  PyObject* owner = nb::borrow(o).release().ptr();
  NDArray array = from_external(device, reinterpret_cast<void*>(address), reach * elem_bytes(e), e,
                                shape, strides, [owner] {
                                  if (!Py_IsInitialized()) return;
                                  nb::gil_scoped_acquire gil;
                                  Py_DECREF(owner);
                                });
  device->synchronize();  // whatever stream the owner works on
  return read_only ? array.copy() : array;
}

namespace {

nb::object cuda_interface(const NDArray& self) {
  const auto& info = self.device()->info();
  static constexpr const char* kinds = "biufc";
  if (info.dl_type != kCuda || self.elem() == Elem::bfloat16 || is_float8(self.elem())) {
    std::string text = cat("no __cuda_array_interface__: ", describe(self), " on ", info.name);
    PyErr_SetString(PyExc_AttributeError, text.c_str());
    throw nb::python_error();
  }
  Elem e = self.elem();
  char kind = kinds[e == Elem::boolean   ? 0
                    : is_signed_int(e)   ? 1
                    : is_unsigned_int(e) ? 2
                    : is_complex(e)      ? 4
                                         : 3];
  runtime::share_memory(*self.device());
  self.device()->synchronize();
  settle_pending(self.device());
  nb::dict out;
  out["shape"] = nb::cast(self.shape());
  out["typestr"] = cat(elem_bytes(e) == 1 ? "|" : "<", std::string(1, kind), elem_bytes(e));
  std::uint64_t address =
      self.size() == 0
          ? 0
          : self.handle()->address() + static_cast<std::uint64_t>(self.offset() * elem_bytes(e));
  out["data"] = nb::make_tuple(address, false);
  out["strides"] = nb::none();
  if (!self.is_contiguous()) {
    Dims bytes = self.strides();
    for (std::int64_t& s : bytes) s *= elem_bytes(e);
    out["strides"] = nb::cast(bytes);
  }
  out["version"] = 3;
  out["stream"] = nb::none();  // everything is done
  return out;
}

}  // namespace

void bind_dlpack(nb::module_& m) {
  nb::handle type(reinterpret_cast<PyObject*>(ndarray_type()));
  auto method = [&](const char* name, auto f, auto... extra) {
    type.attr(name) =
        nb::cpp_function(f, nb::scope(type), nb::name(name), nb::is_method(), extra...);
  };
  method(
      "__dlpack__",
      [](const NDArray& self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
         nb::handle copy) { return dlpack(self, stream, max_version, dl_device, copy); },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none());
  method("__dlpack_device__", [](const NDArray& self) {
    return nb::make_tuple(self.device()->info().dl_type, self.device()->info().dl_id);
  });
  m.def("_cuda_interface", [](const NDArray& self) { return cuda_interface(self); });
  method("_buffer", [](nb::handle self) { return nb::steal(PyMemoryView_FromObject(self.ptr())); });
  method(
      "__array__",
      [](const NDArray& self, nb::handle dtype, nb::handle copy) {
        return numpy(self, dtype, copy);
      },
      nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
  method(
      "numpy", [](const NDArray& self) { return numpy(self, nb::none(), nb::bool_(true)); },
      "A NumPy array with a copy of the elements.");
  m.def(
      "_from_dlpack",
      [](nb::handle o, nb::handle device, std::optional<bool> copy) {
        Ref<Device> target = device.is_none() ? Ref<Device>() : device_from_python(device);
        NDArray array = from_dlpack(
            o.ptr(), target, copy ? (*copy ? Copy::always : Copy::never) : Copy::when_needed);
        return target ? array.to(target) : array;
      },
      nb::arg("x"), nb::arg("device").none(), nb::arg("copy").none());
}

}  // namespace weft::py
