# SPDX-License-Identifier: Apache-2.0
"""Borders around arrays, by all modes of NumPy's pad."""

from __future__ import annotations

import builtins as _py

from .._core import shown as _shown
from .. import _core
from .._boundary import publish as _publish
from .._errors import error as _error
from .common import _is_tensor
from .creation import full, ones
from .elementwise import where
from .manipulation import concat
from .statistics import max as _max
from .statistics import mean
from .statistics import min as _min

# What stands behind the mode in a call, by mode.
_OPTIONS = {
    "constant": {"value", "constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}


def pad(
    x,
    widths,
    /,
    mode="constant",
    *,
    value=0,
    constant_values=0,
    end_values=0,
    stat_length=None,
    reflect_type="even",
):
    """A border ((before, after), ...) for every axis; one pair, or one number, is the same for all.

    mode, as in NumPy: "constant" (of `value`), "edge", "reflect" (without repeating the edge), "symmetric" (repeating it),
    "wrap", "linear_ramp" (from the edge to end_values), "maximum", "minimum", "mean" or "median" (of the stat_length entries next to the border, all
    without one), "empty" (zeros here). reflect_type: "odd" turns reflected entries about the edge's.
    constant_values, end_values, stat_length: one number, (before, after), or such a pair for each axis.
    Raises ArgumentError (array.pad.mode, array.pad.width, array.pad.option), ShapeError (array.pad.rank, array.pad.empty).
    """
    widths = _widths(x, widths)
    _check_mode(mode, end_values, stat_length, reflect_type)
    if mode in ("constant", "empty"):
        return _constant(x, widths, value or constant_values)
    ends, lengths = _pairs(end_values, x.ndim), _pairs(stat_length, x.ndim)
    for axis, (before, after) in enumerate(widths):
        if not (before or after):
            continue
        n = x.shape[axis]
        if n == 0:
            raise _error(
                _core.ShapeError,
                "array.pad.empty",
                f"pad of shape {x.shape} with mode {_shown(mode)}: axis {axis} has nothing to repeat",
                help="pad with mode='constant'",
            )
        if mode == "linear_ramp":
            x = _ramps(x, axis, before, after, ends[axis])
        elif mode in _STATISTICS:
            x = _statistics(x, axis, before, after, mode, lengths[axis])
        elif reflect_type == "odd" and n > 1:
            x = _odd(x, _places(mode, n, before, after), mode, axis)
        else:
            x = _pick(x, [i for i, _ in _places(mode, n, before, after)], axis)
    return x


def _flat(widths):
    """Is it a flat sequence of numbers?"""
    return not hasattr(widths, "__iter__") or _py.all(isinstance(w, (int, float)) for w in widths)


def _widths(x, widths):
    """A pair for each axis."""
    wrong = lambda got: _error(  # noqa: E731
        _core.ArgumentError,
        "array.pad.width",
        f"pad of shape {x.shape} got widths {got}",
        help="write [(before, after), ...], one pair for each axis, numbers from 0 on",
    )
    if isinstance(widths, int):
        widths = (widths, widths)
    flat = _flat(widths)
    if flat and hasattr(widths, "__len__") and len(widths) == 1:
        widths = (widths[0], widths[0])
    if flat and hasattr(widths, "__len__") and len(widths) == 2:
        widths, flat = [tuple(widths)] * x.ndim, False
    if flat:
        raise wrong(f"{_shown(widths)}; each axis has a pair (before, after)")
    widths = [tuple(w) for w in widths]
    if len(widths) != x.ndim:
        raise _error(
            _core.ShapeError,
            "array.pad.rank",
            f"pad of shape {x.shape} got {len(widths)} pairs of widths",
            help="give one pair (before, after) for each axis",
        )
    if _py.any(len(w) != 2 or _py.min(w) < 0 for w in widths):
        raise wrong(f"{widths}; each is a pair of numbers from 0 on")
    return widths


def _check_mode(mode, end_values, stat_length, reflect_type):
    if mode not in _OPTIONS:
        raise _error(
            _core.ArgumentError,
            "array.pad.mode",
            f"mode is {_shown(mode)}, legal: {', '.join(map(repr, _OPTIONS))}",
            help="leave mode out, which is 'constant'",
        )
    idle = {
        "end_values": type(end_values) is int and end_values == 0,
        "stat_length": stat_length is None,
        "reflect_type": reflect_type == "even",
    }
    surplus = [k for k, unset in idle.items() if not unset and k not in _OPTIONS[mode]]
    if surplus:
        raise _error(
            _core.ArgumentError,
            "array.pad.option",
            f"pad with mode {_shown(mode)} got {surplus[0]}",
            help=f"{surplus[0]} goes with {', '.join(m for m, of in _OPTIONS.items() if surplus[0] in of)}",
        )
    if reflect_type not in ("even", "odd"):
        raise _error(
            _core.ArgumentError,
            "array.pad.option",
            f"reflect_type is {_shown(reflect_type)}, legal: 'even', 'odd'",
            help="leave reflect_type out, which is 'even'",
        )


def _pairs(given, ndim):
    """(before, after) for each axis of one number, a pair, or such pairs."""
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * ndim
    pairs = [tuple(v) if isinstance(v, (tuple, list)) else v for v in given]
    if len(pairs) == 1:
        pairs = pairs * 2 if _flat(pairs) else pairs * ndim
    return [tuple(pairs)] * ndim if _flat(pairs) else pairs


def _constant(x, widths, value):
    if isinstance(value, (tuple, list)):
        none = [(0, 0)] * x.ndim
        for axis, ((before, after), ends) in enumerate(zip(widths, _pairs(value, x.ndim))):
            for size, number in zip(((before, 0), (0, after)), ends):
                if _py.any(size):
                    x = _constant(x, [*none[:axis], size, *none[axis + 1 :]], number)
        return x
    if _is_tensor(x):
        if value == 0:
            return x.pad(widths)
        inside = _constant(ones(x.shape, dtype="bool", device=x.device), widths, 0)
        return where(inside, x.pad(widths), value)
    if isinstance(x, _core.NDArray):
        value = value.item() if isinstance(value, _core.NDArray) else value
        return _core._pad(x, widths, value)
    shape = tuple(n + a + b for n, (a, b) in zip(x.shape, widths))
    out = full(shape, value, dtype=x.dtype, device=x.device)
    out[tuple(slice(a, a + n) for n, (a, b) in zip(x.shape, widths))] = x
    return out


def _places(mode, n, before, after):
    """Of each entry of the padded axis the position that it repeats, and how often the axis was turned on the way there."""
    places = range(-before, n + after)
    if mode == "edge" or n == 1:
        return [(_py.min(_py.max(i, 0), n - 1), 0) for i in places]
    if mode == "wrap":
        return [(i % n, 0) for i in places]
    step = n if mode == "symmetric" else _py.max(n - 1, 1)
    last = 2 * step - 1 if mode == "symmetric" else 2 * step
    of = lambda i: i if i < n else last - i  # noqa: E731
    return [(of(i % (2 * step)), i // (2 * step) * 2 + (i % (2 * step) >= n)) for i in places]


def _odd(x, places, mode, axis):
    """Reflected about the edges: each turn adds twice an edge and changes the sign."""
    first, last = _span(x, axis, 0, 1), _span(x, axis, x.shape[axis] - 1, 1)
    turns = [k for _, k in places]
    sign = _column(x, axis, [-1 if k % 2 else 1 for k in turns], x.dtype)
    rise = _column(x, axis, [k + k % 2 for k in turns], x.dtype)
    fall = _column(x, axis, [k - k % 2 for k in turns], x.dtype)
    return _pick(x, [i for i, _ in places], axis) * sign + last * rise - first * fall


def _span(x, axis, start, count):
    return x[(slice(None),) * axis + (slice(start, start + count),)]


def _column(x, axis, numbers, dtype):
    """Numbers along one axis."""
    line = [1] * x.ndim
    line[axis] = -1
    return _core._asarray(numbers, dtype, x.device, None).reshape(tuple(line))


def _ramps(x, axis, before, after, ends):
    """From the end's number at the outside evenly to the edge; of integers rounded down, as in NumPy."""
    whole = x.dtype.kind in "iu"
    kind = "float64" if whole else x.dtype

    def ramp(place, end, shares):
        edge = _span(x, axis, place, 1)
        share = _column(x, axis, shares, kind)
        out = ((edge.astype(kind) if whole else edge) - end) * share + end
        return _core.operations["floor"](out).astype(x.dtype) if whole else out

    parts = [x]
    if before:
        parts.insert(0, ramp(0, ends[0], [k / before for k in range(before)]))
    if after:
        shares = [k / after for k in reversed(range(after))]
        parts.append(ramp(x.shape[axis] - 1, ends[1], shares))
    return concat(parts, axis=axis)


def _median(x, axis, keepdims):
    from .. import percentile

    return percentile(x, 50, axis=axis, keepdims=keepdims)


_STATISTICS = {"maximum": _max, "minimum": _min, "mean": mean, "median": _median}


def _statistics(x, axis, before, after, mode, lengths):
    """One number of the entries next to each border; of integers rounded to the nearest, halves to even."""
    n, parts = x.shape[axis], [x]
    for count, length, front in ((before, lengths[0], True), (after, lengths[1], False)):
        if not count:
            continue
        length = n if length is None else _py.min(length, n)
        if length < 1:
            raise _error(
                _core.ArgumentError,
                "array.pad.option",
                f"stat_length is {length}",
                help="give a number from 1 on, or leave it out for the whole axis",
            )
        near = _span(x, axis, 0 if front else n - length, length)
        out = _STATISTICS[mode](near, axis=axis, keepdims=True)
        if out.dtype != x.dtype:
            out = _core.operations["round"](out).astype(x.dtype)
        shape = tuple(count if i == axis else m for i, m in enumerate(x.shape))
        parts.insert(0 if front else len(parts), out.broadcast_to(shape))
    return concat(parts, axis=axis)


def _pick(x, places, axis):
    """Entries at a list of positions of one axis, of an array or Tensor."""
    index = _core._asarray(places, "int64", x.device, None)
    if not _is_tensor(x):
        return _core._take(x, index, axis)
    order = [axis, *(i for i in range(x.ndim) if i != axis)]
    back = [order.index(i) for i in range(x.ndim)]
    return _core._gather_tensor(x.permute(*order), index).permute(*back)


__all__ = ["pad"]

_publish(__name__)
