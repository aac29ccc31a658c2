// SPDX-License-Identifier: Apache-2.0
#pragma once
// weft::Error as Python exceptions, for nanobind functions and for raw CPython slots.

#include <nanobind/nanobind.h>

#include "weft/base/error.h"

namespace weft::py {

namespace nb = nanobind;

void bind_errors(nb::module_& m);
/// Last in a module: calls that fit no signature raise weft.DTypeError (python.arguments).
void translate_argument_errors(nb::module_& m);
/// Inside a catch block: sets the Python exception for the C++ one in flight.
void set_python_error() noexcept;

/// Runs f; on a C++ exception sets the Python error and returns `otherwise`.
template <typename R, typename F>
R guarded(R otherwise, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return otherwise;
  }
}

}  // namespace weft::py
