# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums, differences."""

from __future__ import annotations

import math as _math

from .. import _core
from .._boundary import direct as _direct, publish as _publish
from .._errors import error as _error
from .._joined import joined as _joined
from .._torch_names import Dim as _Dim
from .common import (
    _INTEGERS,
    _array,
    _axis,
    _bool,
    _float32,
    _int64,
    _is_tensor,
    _name,
    _NARROW,
    _row,
)
from .creation import asarray, full
from .elementwise import where as _where
from .manipulation import broadcast_to, concat, reshape, squeeze


def _marked(x, where, neutral, name=""):
    """x, and `neutral` where NumPy's where= marks no element: what a combination is not changed by."""
    if where is True:
        return x
    if neutral is None:
        raise _error(
            _core.ArgumentError,
            "array.reduce.initial",
            f"{name} of marked elements (where=) without a value for none of them",
            help=f"name it: weft.{name}(x, where=mask, initial=0)",
        )
    return _where(where if hasattr(where, "dtype") else asarray(where), x, neutral)


def _is_whole(x):
    """A tensor of integers or truth values: it has no gradient, and its array's types and sums are the right ones."""
    return isinstance(x, _core.Tensor) and x.dtype.kind in "iub"


def _is_constant(x):
    """A tensor whose gradient nobody asks for, which is computed as its array is."""
    return isinstance(x, _core.Tensor) and not (x.requires_grad and _core.grad_enabled())


def _extreme(name, x, axis, keepdims):
    if axis is not None and isinstance(axis, (_core.NDArray, _core.Tensor)):  # torch.max(x, y)
        return _row(f"{name}imum")(x, axis)
    if isinstance(axis, _Dim):
        return getattr(x, name)(dim=int(axis), keepdim=keepdims)
    return _reduction(name, x, axis, keepdims)


def _reduction(name, x, axis, keepdims, dtype=None):
    if _is_whole(x):
        out = _core._reduce(name, x.data, axis, keepdims, dtype)
        return out if name in ("all", "any") else _core.Tensor(out, requires_grad=False)
    if _is_tensor(x):
        x = x if dtype is None else x.astype(dtype)
        if hasattr(x, "__weft_operation__"):  # a traced value writes every reduction down
            return getattr(x, name)(axis=axis, keepdims=keepdims)
        if name in ("all", "any"):  # truth values have no gradient
            x = x.data
        elif name == "prod":
            if _is_constant(x):
                out = _core._reduce(name, x.data, axis, keepdims, None)
                return _core.Tensor(out, requires_grad=False)
            return _tensor_prod(x, axis, keepdims)
        else:
            return getattr(x, name)(axis=axis, keepdims=keepdims)
    return _core._reduce(name, _array(x), axis, keepdims, dtype)


def _tensor_prod(x, axis, keepdims):
    """By halves, so that gradients are right at zeros, too."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = sorted({_axis(a, x.ndim, "prod") for a in axes})
    kept = [i for i in range(x.ndim) if i not in axes]
    n = _math.prod(x.shape[i] for i in axes)
    shape = tuple(x.shape[i] for i in kept)
    if n == 0:
        if keepdims:
            shape = tuple(1 if i in axes else m for i, m in enumerate(x.shape))
        return _core.Tensor(full(shape, 1, dtype=x.dtype, device=x.device), requires_grad=False)
    y = x.permute(*kept, *axes).reshape(*shape, n)
    while n > 1:
        half = n // 2
        product = y[..., :half] * y[..., half : 2 * half]
        y = concat([product, y[..., 2 * half :]], axis=-1) if n % 2 else product
        n = half + n % 2
    if keepdims:
        shape = tuple(1 if i in axes else m for i, m in enumerate(x.shape))
    return y.reshape(shape)


def sum(x, /, *, axis=None, dtype=None, keepdims=False, where=None, initial=None):
    """Sum of elements."""
    if where is not None:
        x = _marked(x, where, 0)
    out = _reduction("sum", x, axis, keepdims, dtype)
    return out if initial is None else _row("add")(out, initial)


def prod(x, /, *, axis=None, dtype=None, keepdims=False, where=None, initial=None):
    """Product of elements."""
    if where is not None:
        x = _marked(x, where, 1)
    out = _reduction("prod", x, axis, keepdims, dtype)
    return out if initial is None else _row("multiply")(out, initial)


def max(x, /, *, axis=None, keepdims=False, where=None, initial=None):
    """Largest element; NaN if there is one."""
    if where is not None:
        x = _marked(x, where, initial, "max")
    out = _extreme("max", x, axis, keepdims)
    return out if initial is None else _row("maximum")(out, initial)


def min(x, /, *, axis=None, keepdims=False, where=None, initial=None):
    """Smallest element; NaN if there is one."""
    if where is not None:
        x = _marked(x, where, initial, "min")
    out = _extreme("min", x, axis, keepdims)
    return out if initial is None else _row("minimum")(out, initial)


def all(x, /, *, axis=None, keepdims=False, where=None):
    """Is every element true?"""
    if where is not None:
        x = _marked(x, where, True)
    return _reduction("all", x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False, where=None):
    """Is some element true?"""
    if where is not None:
        x = _marked(x, where, False)
    return _reduction("any", x, axis, keepdims)


def _count(x, axis):
    if axis is None:
        return x.size
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return _math.prod(x.shape[a] for a in axes)


_MEAN, _VARIANCE, _DEVIATION = range(3)


def _one_pass(moment, x, axis, keepdims, correction=0.0):
    """Of arrays of real numbers on the host and on devices with a grid; None for others."""
    if not isinstance(x, _core.NDArray):
        return None
    return _core._moments(moment, x, axis, keepdims, correction)


def _moment_of_marked(name, x, axis, keepdims, where, correction=0.0, about=None):
    """mean, var and std of the elements that NumPy's where= marks; var and std about a given mean, which has the axes that are summed."""
    if _name(x.dtype) in _INTEGERS or _name(x.dtype) == "bool":
        x = x.astype(_float32)
    if _name(x.dtype) in _NARROW:  # a sum may lie beyond the type's range
        about = None if about is None else about.astype(_float32)
        wide = x.astype(_float32)
        return _moment_of_marked(name, wide, axis, keepdims, where, correction, about).astype(
            x.dtype
        )
    where = where if hasattr(where, "dtype") else asarray(where)
    marked = broadcast_to(where.astype(_bool), tuple(x.shape))
    count = count_nonzero(marked, axis=axis, keepdims=True).astype(x.dtype)
    out = sum(x, axis=axis, keepdims=True, where=marked) / count if about is None else about
    if name != "mean":
        rest = _where(marked, x - out, 0.0)
        out = sum(rest * rest, axis=axis, keepdims=True) / (count - correction)
        out = _row("sqrt")(out) if name == "std" else out
    if keepdims:
        return out
    return squeeze(out, axis=tuple(range(x.ndim)) if axis is None else axis)


def mean(x, /, *, axis=None, keepdims=False, where=None, dtype=None):
    """Arithmetic mean, computed in `dtype`."""
    x = x if dtype is None else x.astype(dtype)
    if where is not None and where is not True:
        return _moment_of_marked("mean", x, axis, keepdims, where)
    if _is_whole(x):
        return _core.Tensor(mean(x.data, axis=axis, keepdims=keepdims), requires_grad=False)
    if _is_tensor(x):
        return x.mean(axis, keepdims)
    if _name(x.dtype) == "bool":
        x = x.astype(_float32)
    if (out := _one_pass(_MEAN, x, axis, keepdims)) is not None:
        return out
    if _name(x.dtype) in _INTEGERS:
        x = x.astype(_float32)
    if _name(x.dtype) in _NARROW:
        return (_core._reduce("sum", x, axis, keepdims, _float32) / _count(x, axis)).astype(x.dtype)
    return sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)


def var(x, /, *, axis=None, correction=0.0, keepdims=False, where=None, dtype=None, mean=None):
    """Variance, over n - correction, computed in `dtype`; about `mean`, which has the summed axes with extent 1, where it is given."""
    x = x if dtype is None else x.astype(dtype)
    if mean is not None or where is not None and where is not True:
        where = True if where is None else where
        return _moment_of_marked("var", x, axis, keepdims, where, correction, mean)
    if _is_constant(x):
        out = var(x.data, axis=axis, correction=correction, keepdims=keepdims)
        return _core.Tensor(out, requires_grad=False)
    if (out := _one_pass(_VARIANCE, x, axis, keepdims, correction)) is not None:
        return out
    return _joined_on_grids(_spread, x)(x, axis, correction, keepdims)


def _joined_on_grids(function, x):
    """On hosts the function itself, which is a moment quicker."""
    grid = isinstance(x, _core.Tensor) and _core._has_grid(x.data)
    return function if grid else function.__wrapped__


@_joined
def _spread(x, axis, correction, keepdims):
    narrow = _name(x.dtype) in _NARROW
    wide = x.astype(_float32) if narrow or _name(x.dtype) in _INTEGERS else x
    if hasattr(wide, "_variance"):  # of a compiled function
        if (out := wide._variance(axis, keepdims, correction)) is not None:
            return out.astype(x.dtype) if narrow else out
    centred = wide - mean(wide, axis=axis, keepdims=True)
    if x.dtype.kind == "c":
        real, imag = _row("real")(centred), _row("imag")(centred)
        squares = real * real + imag * imag
    else:
        squares = centred * centred
    total = sum(squares, axis=axis, keepdims=keepdims)
    n = _count(x, axis) - correction
    out = total / n if n > 0 else total * _math.nan
    return out.astype(x.dtype) if narrow else out


def std(x, /, *, axis=None, correction=0.0, keepdims=False, where=None, dtype=None, mean=None):
    """Standard deviation; dtype and mean as in var."""
    x = x if dtype is None else x.astype(dtype)
    if mean is not None or where is not None and where is not True:
        where = True if where is None else where
        return _moment_of_marked("std", x, axis, keepdims, where, correction, mean)
    if _is_constant(x):
        out = std(x.data, axis=axis, correction=correction, keepdims=keepdims)
        return _core.Tensor(out, requires_grad=False)
    if (out := _one_pass(_DEVIATION, x, axis, keepdims, correction)) is not None:
        return out
    return _joined_on_grids(_deviation, x)(x, axis, correction, keepdims)


@_joined
def _deviation(x, axis, correction, keepdims):
    if _name(x.dtype) in _NARROW:  # the type may hold the root of a variance that it cannot
        wide = std(x.astype(_float32), axis=axis, correction=correction, keepdims=keepdims)
        return wide.astype(x.dtype)
    if hasattr(x, "_variance"):  # of a compiled function
        if (out := x._variance(axis, keepdims, correction, True)) is not None:
            return out
    return _row("sqrt")(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _tensor_scan(x, axis):
    """Running products by doubling, so that gradients are right at zeros, too."""
    front, n, step = (slice(None),) * axis, x.shape[axis], 1
    while step < n:
        late = x[(*front, slice(step, None))] * x[(*front, slice(None, n - step))]
        x = concat([x[(*front, slice(None, step))], late], axis=axis)
        step *= 2
    return x


def _cumulative(name, x, axis, dtype, include_initial):
    if _is_constant(x):
        out = _cumulative(name, x.data, axis, dtype, include_initial)
        return _core.Tensor(out, requires_grad=False)
    if axis is None:
        if x.ndim > 1:
            raise _error(
                _core.ArgumentError,
                f"array.cumulative_{name}.axis",
                f"{x.ndim} dimensions need an axis",
                help="name it, axis=0, or flatten first: x.reshape(-1)",
            )
        axis = 0
    if x.ndim == 0:
        x = reshape(x, (1,))
    axis = _axis(axis, x.ndim, f"cumulative_{name}")
    if _is_tensor(x):
        x = x if dtype is None else x.astype(dtype)
        out = _core._cumulative_sum_tensor(x, axis) if name == "sum" else _tensor_scan(x, axis)
    else:
        out = _core._scan(name, _array(x), axis, dtype)
    if include_initial:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        out = concat(
            [full(shape, 0 if name == "sum" else 1, dtype=out.dtype, device=x.device), out],
            axis=axis,
        )
    return out


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running sum."""
    return _cumulative("sum", x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """Running product."""
    return _cumulative("prod", x, axis, dtype, include_initial)


def diff(x, /, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours, n times."""
    axis = _axis(axis, x.ndim, "diff")
    edge = lambda p: p if getattr(p, "ndim", 0) else full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), p, dtype=x.dtype, device=x.device)  # noqa: E731  # fmt: skip
    parts = [p if p is x else edge(p) for p in (prepend, x, append) if p is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    front = (slice(None),) * axis
    for _ in range(n if n < x.shape[axis] else x.shape[axis]):  # then nothing is left
        a, b = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = (a != b) if _name(x.dtype) == "bool" else a - b
    return x


@_direct(_core._direct_count_nonzero)
def count_nonzero(x, /, *, axis=None, keepdims=False):
    """How many elements are not zero."""
    x = _array(x)
    return _core._reduce("sum", x.astype(_bool), axis, keepdims, _int64)


__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

_publish(__name__)
