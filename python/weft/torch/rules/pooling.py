# SPDX-License-Identifier: Apache-2.0
"""Pooling of rows, images and volumes, with or without a batch, and its gradients."""

from __future__ import annotations

import itertools
import math

import weft

from ... import _core
from ...nn import pooling
from .common import HALVES, Unsupported, add, array, as_type, gradient, number, row, spread, where


def _each(values, axes, default=None):
    values = list(values) if values is not None and len(values) else list(default)
    return values * axes if len(values) == 1 else values


def _checked(x, shape, axes):
    """Refuses what has no form here; the number of axes before the pooled ones."""
    if not x.size or not math.prod(shape):
        raise Unsupported("pooling without elements")
    if "float" not in str(x.dtype):
        raise Unsupported("pooling of integers")
    return x.ndim - axes


def _windows(x, kernel, stride, padding, dilation, out, fill):
    """A view (..., windows of each axis, taps of each axis) of the last axes with their border."""
    axes = len(kernel)
    lead = x.ndim - axes
    need = [
        max((o - 1) * s + d * (k - 1) + 1 - n - p, 0)
        for o, s, d, k, n, p in zip(out, stride, dilation, kernel, x.shape[lead:], padding)
    ]
    if any(padding) or any(need):
        x = weft.pad(x, [(0, 0)] * lead + list(zip(padding, need)), value=fill)
    before, inner = x.strides[:lead], x.strides[lead:]
    steps = [n * s for n, s in zip(inner, stride)] + [n * d for n, d in zip(inner, dilation)]
    return x.as_strided((*x.shape[:lead], *out, *kernel), (*before, *steps))


def _flat_places(best, extents, taps):
    """Positions among all elements of the pooled axes. taps[a]: (windows, taps) table of positions along axis a."""
    axes, at = len(extents), 0
    for a, table in enumerate(taps):
        count = math.prod(t.shape[1] for t in taps[a + 1 :])
        tap = best // count % table.shape[1]
        window = weft.arange(table.shape[0], device=best.device)
        window = window.reshape((-1, *(1,) * (axes - 1 - a)))
        at = at * extents[a] + _core._gather(table, [window.broadcast_to(tap.shape), tap])
    return as_type(at, "int64")


def _better(best, found, tap, code):
    """The larger of the best element so far and another, and its number: NaN before all, of equals the first."""
    better = row("logical_or", row("greater", tap, best), row("isnan", tap))
    return where(better, tap, best), where(better, number(code, found), found)


class _Largest:
    """The largest of each window and a number that says which element it is: the views of the taps are compared one by one,
    as many in one kernel as it reads arrays, or as the machine has room for."""

    _MOST = 8  # views; beside them a kernel reads the best so far, its number and `base`

    def __init__(self, x, shape, numbers, start, base=None):
        """numbers: of the taps; start: those of windows in which nothing is larger than minus infinity; base: added at the end."""
        self.start, self.base, self.numbers = start, base, numbers
        self.shape, self.most = shape, self._MOST
        self._make(x)

    def _make(self, x):
        self.plans = []
        view, code = (str(x.dtype), self.shape), ("int64", self.shape)
        start, base, most = self.start, self.base, self.most
        for first in range(0, len(self.numbers), most):
            chunk = self.numbers[first : first + most]
            last = first + most >= len(self.numbers) and base is not None
            before = [view, code] if first else [("int64", tuple(start.shape))]
            after = [("int64", tuple(base.shape))] if last else []
            kinds = [view] * len(chunk) + before + after
            every = [_core._lazy_input(i, *kind) for i, kind in enumerate(kinds)]
            found = every[len(chunk) + len(before) - 1]
            best = every[len(chunk)] if first else number(-math.inf, every[0])
            for tap, n in zip(every, chunk):
                best, found = _better(best, found, tap, n)
            found = spread(add(found, every[-1]) if last else found, self.shape)
            self.plans.append(_core.FusedPlan([best, found], False, x))

    def __call__(self, views):
        while True:
            try:
                return self._run(views)
            except _core.Error:
                if self.most == 1:
                    raise
                self.most //= 2
                self._make(views[0])

    def _run(self, views):
        found, most = [self.start], self.most
        for i, plan in enumerate(self.plans):
            last = [self.base] if plan is self.plans[-1] and self.base is not None else []
            found = plan.run([*views[i * most : (i + 1) * most], *found, *last])
        return found


def _whole(numbers, x):
    return weft.asarray(numbers, dtype="int64", device=x.device)


def _outer(columns, axes):
    """The sum of vectors, one for each axis, as an array of these axes."""
    total = 0
    for a, column in enumerate(columns):
        total = total + column.reshape((-1, *(1,) * (axes - 1 - a)))
    return total


def _max_pool(axes):
    def rule(c, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        lead = _checked(x, c.shape, axes)
        kernel = _each(kernel, axes)
        stride = _each(stride, axes, kernel)
        padding, dilation = _each(padding, axes), _each(dilation, axes)
        out, extents = c.shape[lead:], x.shape[lead:]
        values = _windows(x, kernel, stride, padding, dilation, out, -math.inf)
        taps = list(itertools.product(*map(range, kernel)))
        if c.kept is None:
            steps = [math.prod(extents[a + 1 :]) for a in range(axes)]
            code = lambda tap: sum(t * d * n for t, d, n in zip(tap, dilation, steps))  # noqa: E731
            base, start = [], []
            for m, s, p, d, n in zip(out, stride, padding, dilation, steps):
                begins = [i * s - p for i in range(m)]
                base.append(_whole([b * n for b in begins], x))
                # Windows begin in the border: there the first element inside.
                start.append(_whole([max(0, -(b // d)) * d * n for b in begins], x))
            shape = (*x.shape[:lead], *out)
            c.kept = _Largest(
                x, shape, list(map(code, taps)), _outer(start, axes), _outer(base, axes)
            )
        return c.kept([values[(..., *tap)] for tap in taps])

    return rule


def _at_indices(c, g, x, indices, axes):
    """Each window's gradient added where its largest element was."""
    lead = _checked(x, g.shape, axes)
    planes = math.prod(x.shape[:lead])
    out = weft.zeros((planes, math.prod(x.shape[lead:])), dtype=c.dtype, device=x.device)
    plane = weft.arange(planes, device=x.device).reshape((-1, 1))
    _core._scatter(out, [plane, indices.reshape((planes, -1))], g.reshape((planes, -1)), True)
    return out.reshape(c.shape)


def _max_pool_backward(axes):
    return lambda c, g, x, kernel, stride, padding, dilation, ceil_mode, indices: _at_indices(c, g, x, indices, axes)  # noqa: E501 # fmt: skip


def _adaptive_max_backward(axes):
    return lambda c, g, x, indices: _at_indices(c, g, x, indices, axes)


@array("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _adaptive_max(c, x, size):
    axes = len(size)
    lead = _checked(x, c.shape, axes)
    extents, tables, values = x.shape[lead:], [], x
    for a, (n, m) in enumerate(zip(extents, size)):
        first = weft.arange(m, device=x.device) * n // m
        length = -(-(weft.arange(1, m + 1, device=x.device) * n) // m) - first
        tap = weft.arange(int(weft.max(length)), device=x.device)
        # Beyond the end of a short window its first element stands again.
        tap = weft.where(tap < length.reshape((-1, 1)), tap, 0)
        tables.append(first.reshape((-1, 1)) + tap)
        flat = tables[-1].reshape((-1,))
        axis = lead + 2 * a
        values = _core._take(values, flat, axis)
        values = values.reshape((*values.shape[:axis], *tables[-1].shape, *values.shape[axis + 1 :]))  # fmt: skip
    order = [*range(lead), *range(lead, values.ndim, 2), *range(lead + 1, values.ndim, 2)]
    values, out = values.permute(order), c.shape[lead:]
    taps = list(itertools.product(*(range(n) for n in values.shape[lead + axes :])))
    if c.kept is None:
        c.kept = _Largest(x, (*x.shape[:lead], *out), list(range(len(taps))), _whole([0], x))
    found, tap = c.kept([values[(..., *t)] for t in taps])
    return found, _flat_places(tap, extents, tables)


def _average_options(axes, kernel, stride, padding):
    kernel = _each(kernel, axes)
    return tuple(kernel), tuple(_each(stride, axes, kernel)), tuple(_each(padding, axes))


def _average(axes):
    def rule(c, x, kernel, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):  # fmt: skip
        _checked(x, c.shape, axes)
        kernel, stride, padding = _average_options(axes, kernel, stride, padding)
        if not ceil_mode and (count_include_pad or not any(padding)):
            taps = _windows(x, kernel, stride, padding, (1,) * axes, c.shape[x.ndim - axes :], 0)
            total = weft.sum(taps, axis=tuple(range(x.ndim, x.ndim + axes)))
            return total * (1.0 / (divisor or math.prod(kernel)))
        wide = x.astype("float32") if c.dtype in HALVES else x
        rest = ceil_mode, count_include_pad, divisor
        found = pooling._avg_pool(axes, "avg_pool", _constant(wide), kernel, stride, padding, *rest)
        return as_type(found.data, c.dtype)

    return rule


def _constant(x):
    return _core.Tensor(x, requires_grad=False)


def _average_backward(axes):
    def rule(c, g, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
        lead = _checked(x, g.shape, axes)
        kernel, stride, padding = _average_options(axes, kernel, stride, padding)
        if ceil_mode or (any(padding) and not count_include_pad):
            options = kernel, stride, padding, ceil_mode, count_include_pad, divisor
            mean = lambda x: pooling._avg_pool(axes, "avg_pool", x, *options)  # noqa: E731
            return gradient(c, mean, g, x)
        g = g * (1.0 / (divisor or math.prod(kernel)))
        sizes = [n + 2 * p for n, p in zip(x.shape[lead:], padding)]
        out = weft.zeros((*x.shape[:lead], *sizes), dtype=c.dtype, device=x.device)
        before = (slice(None),) * lead
        for tap in range(math.prod(kernel)):
            key = []
            for k, s, m in reversed(list(zip(kernel, stride, g.shape[lead:]))):
                tap, first = divmod(tap, k)
                key.append(slice(first, first + (m - 1) * s + 1, s))
            part = out[before + tuple(reversed(key))]
            _core._assign(part, part + g)
        return out[before + tuple(slice(p, n - p) for n, p in zip(sizes, padding))]

    return rule


def _adaptive_mean(c, x, size):
    axes = len(size)
    _checked(x, c.shape, axes)
    mean = lambda x: pooling._adaptive(axes, "adaptive_avg_pool", x, tuple(size), pooling._adaptive_mean)  # noqa: E731 # fmt: skip
    wide = x.astype("float32") if c.dtype in HALVES else x
    return as_type(mean(_constant(wide)).data, c.dtype)


array("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default")(_adaptive_mean)


def _adaptive_mean_backward(axes):
    def rule(c, g, x):
        lead = _checked(x, g.shape, axes)
        size = g.shape[lead:]
        mean = lambda x: pooling._adaptive(axes, "adaptive_avg_pool", x, size, pooling._adaptive_mean)  # noqa: E731 # fmt: skip
        return gradient(c, mean, g, x)

    return rule


for _axes in (2, 3):
    for _name, _rule in dict(
        max_pool_with_indices=_max_pool,
        max_pool_with_indices_backward=_max_pool_backward,
        adaptive_max_pool_backward=_adaptive_max_backward,
        avg_pool=_average,
        avg_pool_backward=_average_backward,
        _adaptive_avg_pool_backward=_adaptive_mean_backward,
    ).items():
        array(f"{_name.replace('pool', f'pool{_axes}d')}.default")(_rule(_axes))
