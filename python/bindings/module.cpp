// SPDX-License-Identifier: Apache-2.0
// weft._core: one function for each component.

#include "array_type.h"
#include "program.h"

NB_MODULE(_core, m) {
  // Types and element types live as long as the process on purpose.
  nanobind::set_leak_warnings(false);
  weft::py::bind_errors(m);
  weft::py::bind_device(m);
  weft::py::bind_array_type(m);
  weft::py::bind_array_ops(m);
  weft::py::bind_dlpack(m);
  weft::py::bind_operations(m);
  weft::py::bind_program(m);
  weft::py::bind_schedule(m);
  weft::py::bind_te(m);
  weft::py::bind_build(m);
  weft::py::bind_bridge(m);
  weft::py::bind_tensor(m);
  weft::py::bind_lazy(m);
}
