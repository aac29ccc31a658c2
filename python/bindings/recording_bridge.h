// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_recording(nanobind::module_& m);
void bind_held_arrays(nanobind::module_& m);

}  // namespace weft::py
