// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_recording(nanobind::module_& m);

}  // namespace weft::py
