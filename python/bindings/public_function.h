// SPDX-License-Identifier: Apache-2.0
#pragma once
// Public functions written in Python, as callers see them.

#include <nanobind/nanobind.h>

namespace weft::py {

void bind_public_function(nanobind::module_& m);

/// The positional arguments of a vectorcall as a tuple, its named ones as a dict.
nanobind::object positional_arguments(PyObject* const* args, Py_ssize_t count);
nanobind::dict named_arguments(PyObject* const* args, Py_ssize_t count, PyObject* names);

}  // namespace weft::py
