// SPDX-License-Identifier: Apache-2.0
// weft._core: one function for each component.

#include <optional>

#include "array_type.h"
#include "direct_calls.h"
#include "errors.h"
#include "program.h"
#include "public_function.h"
#include "random.h"
#include "recording_bridge.h"
#include "rpc_bridge.h"
#include "selection.h"
#include "weft/base/interrupt.h"
#include "weft/runtime/at_end.h"

namespace {

/// What loops of this thread ask now and then: Ctrl-C, or what else a handler of Python's raises.
void watch_signals() {
  thread_local std::optional<weft::InterruptScope> scope;
  scope.emplace([] {
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  });
}

}  // namespace

NB_MODULE(_core, m) {
  // Types and element types live as long as the process on purpose.
  nanobind::set_leak_warnings(false);
  watch_signals();
  weft::set_patience(&weft::py::wait_without_interpreter);
  m.def("_watch_signals", &watch_signals,
        "Lets Ctrl-C end long work of this thread; the thread that imports the module has it.");
  // Before libraries go: Python's end comes first.
  m.def("_wait_for_all", &weft::runtime::wait_for_all,
        nanobind::call_guard<nanobind::gil_scoped_release>());
  nanobind::module_::import_("atexit").attr("register")(m.attr("_wait_for_all"));
  weft::py::bind_errors(m);
  weft::py::bind_device(m);
  weft::py::bind_array_type(m);
  weft::py::bind_array_ops(m);
  weft::py::bind_random(m);
  weft::py::bind_selection(m);
  weft::py::bind_direct_calls(m);
  weft::py::bind_dlpack(m);
  weft::py::bind_operations(m);
  weft::py::bind_public_function(m);
  weft::py::bind_program(m);
  weft::py::bind_schedule(m);
  weft::py::bind_te(m);
  weft::py::bind_build(m);
  weft::py::bind_bridge(m);
  weft::py::bind_tensor(m);
  weft::py::bind_attention(m);
  weft::py::bind_contraction(m);
  weft::py::bind_lazy(m);
  weft::py::bind_compiled_call(m);
  weft::py::bind_chunked_calls(m);
  weft::py::bind_recording(m);
  weft::py::bind_held_arrays(m);
  weft::py::bind_tuned(m);
  weft::py::translate_argument_errors(m);
}
