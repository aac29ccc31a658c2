// SPDX-License-Identifier: Apache-2.0
// Recorded work, memory pools and streams of devices, as weft.compile and weft.torch use them;
// kernels that modules and optimizers use on cards.

#include "weft/runtime/recording.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "array_type.h"
#include "recording_bridge.h"
#include "weft/autograd/plane_norm.h"
#include "weft/runtime/backlog.h"

namespace weft::py {

namespace {

struct PoolHandle {
  Ref<runtime::MemoryPool> pool;
};
struct RecordingHandle {
  Ref<runtime::Recording> recording;
};

/// Where this thread's allocations and launches on a device go while Python's block runs.
class Lane {
 public:
  Lane(const PoolHandle& pool, std::uint64_t stream, bool captured)
      : pool_(pool.pool), stream_(stream) {
    if (captured) recording_ = make_ref<runtime::ForeignRecording>(pool_);
  }
  void enter() {
    if (runtime::RecordsWork* device = recorder())
      before_ = device->swap_course({stream_, recording_.get()});
    scope_.emplace(pool_);
  }
  void leave() {
    scope_.reset();
    if (runtime::RecordsWork* device = recorder()) device->swap_course(before_);
  }
  RecordingHandle recording() const { return {recording_}; }

 private:
  runtime::RecordsWork* recorder() const { return runtime::recorder_of(pool_->device()); }

  Ref<runtime::MemoryPool> pool_;
  std::uint64_t stream_;
  runtime::Course before_;
  Ref<runtime::Recording> recording_;
  std::optional<runtime::MemoryPool::Scope> scope_;
};

}  // namespace

void bind_recording(nb::module_& m) {
  nb::class_<PoolHandle>(m, "MemoryPool", "Memory of a device set apart for recorded work.")
      .def("__init__",
           [](PoolHandle* self, nb::handle device) {
             new (self) PoolHandle{make_ref<runtime::MemoryPool>(device_from_python(device))};
           })
      .def_prop_ro("bytes", [](const PoolHandle& p) { return p.pool->bytes(); });
  nb::class_<RecordingHandle>(m, "Recording", "Recorded work of a device.")
      .def("replay",
           [](const RecordingHandle& r) {
             nb::gil_scoped_release nogil;
             r.recording->replay();
           })
      .def("faulty",
           [](const RecordingHandle& r) {
             nb::gil_scoped_release nogil;
             return r.recording->faulty();
           })
      .def_prop_ro("launches", [](const RecordingHandle& r) { return r.recording->launches(); });
  nb::class_<Lane>(m, "Lane", "This thread's memory pool and stream while a block runs.")
      .def(nb::init<const PoolHandle&, std::uint64_t, bool>(), nb::arg("pool"),
           nb::arg("stream") = 0, nb::arg("captured") = false)
      .def_prop_ro("recording", &Lane::recording, "What a stream that somebody captures uses.")
      .def("__enter__", [](Lane& lane) { lane.enter(); })
      .def("__exit__", [](Lane& lane, nb::args) { lane.leave(); });
  m.def(
      "_record",
      [](const PoolHandle& pool, nb::callable work) {
        nb::object result;
        Ref<runtime::Recording> recording = runtime::record([&] { result = work(); }, pool.pool);
        return nb::make_tuple(RecordingHandle{recording}, result);
      },
      nb::arg("pool"), nb::arg("work"),
      "(Recording, the function's result); the function runs once and starts nothing.");
  m.def(
      "_build_together",
      [](const NDArray& like, nb::callable work) {
        runtime::OwnBacklog own(like.device().get());
        std::exception_ptr refusal;
        try {
          work();
        } catch (...) {
          refusal = std::current_exception();
        }
        {
          nb::gil_scoped_release nogil;
          own.settle();
        }
        if (refusal) std::rethrow_exception(refusal);
      },
      nb::arg("like"), nb::arg("work"),
      "Runs the function; its kernels for the array's device are compiled beside each other and "
      "start when all of them are ready. For results that nobody reads.");
  m.def(
      "_plane_norm",
      [](const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
         double eps, std::int64_t groups) -> nb::object {
        const PlaneNorm norm{groups, eps};
        if (!has_plane_norm(x.data(), norm)) return nb::none();
        NDArray mean, variance;
        Tensor y = plane_norm(x, weight.value_or(Tensor()), bias.value_or(Tensor()), norm, &mean,
                              &variance);
        return nb::make_tuple(y, mean, variance);
      },
      nb::arg("x"), nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("eps"),
      nb::arg("groups") = 0,
      "(normalised x, mean, variance) of each channel over the batch, or of so many groups of "
      "channels of each image; None where the device has no kernels for it.");
  m.def(
      "_place",
      [](const NDArray& a) {
        return nb::make_tuple(a.handle() ? a.handle()->address() : 0,
                              a.offset() * elem_bytes(a.elem()), nb::cast(a.strides()));
      },
      nb::arg("array"), "(Address of the storage, byte offset in it, strides).");
  m.def(
      "_recording",
      [](nb::handle device) {
        return runtime::recording_on(device_from_python(device)) != nullptr;
      },
      nb::arg("device").none());
}

}  // namespace weft::py
