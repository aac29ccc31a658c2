// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

#include <string>

namespace weft::py {

/// An object as an error quotes it: repr() cut short, which also ends for lists in lists in lists.
std::string shown(nanobind::handle o);

}  // namespace weft::py
