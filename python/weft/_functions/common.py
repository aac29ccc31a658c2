# SPDX-License-Identifier: Apache-2.0
"""What functions that are composed of others share."""

from __future__ import annotations

import weft

from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import Recorder
from .._errors import error as _error
from .._pointwise import held


def value(x):
    """An array, a tensor or a value of a transform as it is; anything else as an array."""
    return x if isinstance(x, (NDArray, Tensor, Recorder)) else weft.asarray(x)


def beside(x, like):
    """Numbers and lists as an array where `like` is; arrays and tensors as they are."""
    given = isinstance(x, (NDArray, Tensor, Recorder))
    return x if given else weft.asarray(x, device=like.device)


def plain(x):
    """The array of a value, without the graph: gradients of a trace do not pass."""
    x = value(x)
    if isinstance(x, NDArray):
        return x
    if isinstance(x, Tensor):
        return x.data
    return held(x)


def real(x):
    """A value of floats: whole numbers and truth values become the default float."""
    x = value(x)
    return x if x.dtype.kind in "fc" else x.astype(weft.asarray(0.0).dtype)


def axis_of(x, axis):
    """The axis counted from the front. Raises IndexError beyond the value's dimensions."""
    if not -x.ndim <= axis < x.ndim:
        raise _error(
            _core.IndexError,
            "array.axis.range",
            f"axis {axis} of an array with {x.ndim} dimensions",
            [f"legal: {-x.ndim} to {x.ndim - 1}"],
        )
    return axis % x.ndim


def along(x, axis, index):
    """x[..., index, ...] with the index at an axis."""
    return x[(slice(None),) * axis + (index,)]


def refused(slug, text, rule):
    """The error of a value that a function cannot take."""
    return _error(_core.ArgumentError, slug, text, [f"rule: {rule}"])
