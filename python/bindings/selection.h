// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selection, counts and short convolutions of arrays on the host (selection.cpp).

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_selection(nanobind::module_& m);

}  // namespace weft::py
