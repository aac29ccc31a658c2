// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators on arrays without dimensions, as loops over elements make them: the kernel of the table
// for one element, and objects that are used again with their memory.

#include "array_type.h"

namespace weft::py {

/// What the operator gives for a number of the host and another one, or Python's own; null where
/// these are anything else and the general way has to see to them.
PyObject* scalar_binary(Op op, PyObject* a, PyObject* b);
PyObject* scalar_unary(Op op, PyObject* a);
/// The same in place of `a`; false likewise.
bool scalar_into(Op op, PyObject* a, PyObject* b);

/// Keeps an object that nobody refers to any longer for the next number. False: it is to be freed.
bool keep_scalar(PyObject* self) noexcept;

}  // namespace weft::py
