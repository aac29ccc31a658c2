# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: what to compute, point by point, without loops.

>>> A = te.placeholder((1024,), "float32", name="A")
>>> C = te.compute((1024,), lambda i: A[i] + 1.0, name="C")
>>> f = te.create_prim_func([A, C])
"""

import inspect as _inspect

from . import _core
from .ir import PrimFunc

Tensor = _core.TeTensor


def var(name="n", dtype="int64"):
    """An extent known only at run time."""
    return _core.te_var(name, dtype)


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input of a shape (ints or variables) and element type."""
    return _core.te_placeholder(shape, str(dtype), name)


def compute(shape, fcompute, name="compute", attrs=None):
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...); a tuple of results gives a tuple of tensors.

    Raises weft.Error for a reduction inside a larger expression, or a body that is no expression.
    """
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    axes = []
    for parameter in _inspect.signature(fcompute).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            axes = []
            break
        axes.append(parameter.name)
    return _core.te_compute(shape, fcompute, name, axes, attrs or {})


def reduce_axis(dom, name="k"):
    """An axis to reduce over: an extent, or (low, high)."""
    if isinstance(dom, (tuple, list)):
        low, high = dom
        return _core.te_reduce_axis(low, high - low, name)
    return _core.te_reduce_axis(0, dom, name)


def sum(expr, axis, where=None):
    """Sum over reduction axes; only as the whole body of a compute."""
    return _core.te_sum(expr, axis, where)


def prod(expr, axis, where=None):
    return _core.te_prod(expr, axis, where)


def min(expr, axis=None, where=None):
    return _core.te_min(expr, axis, where)


def max(expr, axis=None, where=None):
    return _core.te_max(expr, axis, where)


def argmax(index, value, axis):
    """(index, value) of the largest; the smaller index wins ties."""
    return _core.te_arg(True, index, value, axis)


def argmin(index, value, axis):
    return _core.te_arg(False, index, value, axis)


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer of one's own: combine(x, y) over scalars or tuples, and identity(*dtypes)."""
    return lambda expr, axis: _core.te_comm_reduce(fcombine, fidentity, name, expr, axis)


def create_prim_func(args, name="main"):
    """The function that computes the results among `args` from the placeholders among them."""
    return PrimFunc(_core.te_create_prim_func(list(args), name))


def if_then_else(condition, a, b):
    """Only the chosen side is evaluated."""
    return _core.expr_if_then_else(condition, a, b)


def const(value, dtype="float32"):
    return _core.expr_const(value, dtype)


def _intrinsic(op):
    def call(*args):
        return _core.expr_call(op, *args)

    call.__name__ = op
    return call


for _op in (
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "erf",
    "floor",
    "ceil",
    "trunc",
    "round",
    "abs",
    "pow",
    "fmod",
    "atan2",
    "fma",
    "popcount",
    "isnan",
    "isinf",
):
    globals()[_op] = _intrinsic(_op)
