// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace weft::py {

/// `_direct_NAME` of functions whose Python code takes longer than a few elements: views, products
/// of vectors, short convolutions.
void bind_direct_calls(nanobind::module_& m);

}  // namespace weft::py
