// SPDX-License-Identifier: Apache-2.0
#pragma once
// Public functions written in Python, as callers see them.

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_public_function(nanobind::module_& m);

}  // namespace weft::py
