// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random numbers (random.cpp).

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_random(nanobind::module_& m);

}  // namespace weft::py
