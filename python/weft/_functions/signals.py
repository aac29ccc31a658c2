# SPDX-License-Identifier: Apache-2.0
"""Vectors as samples: convolution, interpolation, differences, integrals, windows, polynomials."""

from __future__ import annotations

import math

import weft

from .._core import shown
from .. import _core
from .._boundary import direct
from .._core import NDArray
from .._pointwise import composed, widened
from .common import along, axis_of, beside, plain, real, refused, value

__all__ = [
    "bartlett",
    "blackman",
    "convolve",
    "correlate",
    "cumulative_trapezoid",
    "ediff1d",
    "geomspace",
    "gradient",
    "hamming",
    "hanning",
    "interp",
    "kaiser",
    "logspace",
    "poly",
    "polyfit",
    "polyval",
    "roots",
    "trapezoid",
    "trapz",
    "unwrap",
]


def _vector(x, name):
    x = value(x)
    if x.ndim != 1 or not x.size:
        raise refused(
            f"array.{name}.shape",
            f"{name} of shape {tuple(x.shape)}",
            "vectors with one element at least",
        )
    return x


@direct(_core._direct_convolve)
def convolve(a, v, mode="full"):
    """The sums of a[k] v[n - k]: "full", "same" (as long as the longer) or "valid" (where they overlap wholly)."""
    return _sliding(a, v, mode, "convolve")


def correlate(a, v, mode="valid"):
    """The sums of a[n + k] conj(v[k]): "full", "same" or "valid"."""
    v = _vector(v, "correlate")
    turned = weft.flip(weft.conj(v) if v.dtype.kind == "c" else v, axis=0)
    return _sliding(a, turned, mode, "correlate")


_SHORT = 64  # terms up to which sums of shifted multiples take less time than windows by a vector


def _sliding(a, v, mode, name):
    a = _vector(a, name)
    v = _vector(beside(v, a), name)
    if mode not in ("full", "same", "valid"):
        raise refused(f"array.{name}.mode", f"mode {shown(mode)}", "full, same or valid")
    dtype = weft.result_type(a.dtype, v.dtype)
    a, v = a.astype(dtype), v.astype(dtype)
    n, m = a.shape[0], v.shape[0]
    short, long = (v, a) if m <= n else (a, v)
    count, size = long.shape[0], short.shape[0]
    floats = dtype.kind == "f" and dtype.itemsize >= 4 and size > 1
    on_host = (
        isinstance(long, weft.NDArray)
        and isinstance(short, weft.NDArray)
        and a.device.host_accessible
    )
    if on_host and size <= _SHORT and (dtype.itemsize >= 4 or dtype.kind in "iu"):
        out = _core._convolve(long, short)
    elif floats and on_host:
        # Windows that overlap in memory, times a vector.
        ends = weft.zeros((size - 1,), dtype=dtype, device=a.device)
        padded = weft.concat([ends, long, ends], axis=0)
        out = weft.sliding_window_view(padded, size) @ weft.flip(short, axis=0).contiguous()
    elif floats and count > 64:
        x = long.reshape(1, 1, -1)
        out = weft.nn.functional.conv1d(
            x, weft.flip(short, axis=0).reshape(1, 1, -1), None, 1, size - 1
        ).reshape(-1)
    else:
        padded = weft.concat(
            [
                weft.zeros((size - 1,), dtype=dtype, device=a.device),
                long,
                weft.zeros((size - 1,), dtype=dtype, device=a.device),
            ],
            axis=0,
        )
        total = count + size - 1
        out = 0
        for k in range(size):
            out = out + padded[size - 1 - k : size - 1 - k + total] * short[k]
    if mode == "full":
        return out
    if mode == "same":
        first = (size - 1) // 2 if m <= n or name == "convolve" else size // 2
        return out[first : first + count]
    return out[size - 1 : count]


def interp(x, xp, fp, left=None, right=None, period=None):
    """Values at x of the lines through the points (xp, fp), xp ascending; fp's ends, or left and right, beyond them.

    period: positions are taken modulo it, and xp in any order.
    """
    xp = real(xp)
    x, fp = real(beside(x, xp)), real(beside(fp, xp))
    if period is not None:
        if not period:
            raise refused("array.interp.period", "interp with period 0", "a period is not 0")
        period, left, right = abs(period), None, None
        x, xp = weft.remainder(x, period), weft.remainder(xp, period)
        order = weft.argsort(plain(xp))
        xp, fp = weft.take(xp, order, axis=0), weft.take(fp, order, axis=0)
        xp = weft.concat([xp[-1:] - period, xp, xp[:1] + period], axis=0)
        fp = weft.concat([fp[-1:], fp, fp[:1]], axis=0)
    xp = xp.astype(x.dtype) if xp.dtype != x.dtype else xp
    n, p, ends = xp.shape[0], plain(x), plain(xp)
    if n and _follows(x, xp, fp):
        ends = [
            end if given is None else given for end, given in ((fp[0], left), (fp[n - 1], right))
        ]
        return _core._interpolate(x, xp, fp, *map(float, ends))
    # How many points are not right of x is the number of its line: 0 and n are those beyond the ends. Of points that meet the last counts.
    at = weft.searchsorted(ends, p.reshape(-1), side="right").astype("int64", copy=False)
    wide = xp[1:] - xp[:-1]
    slope = (fp[1:] - fp[:-1]) / weft.where(plain(wide) == 0, 1.0, wide)
    flat = weft.zeros((1,), dtype=slope.dtype, device=slope.device)
    slope = weft.concat([flat, slope, flat], axis=0)
    first = fp[:1] if left is None else weft.full((1,), left, dtype=fp.dtype, device=fp.device)
    pick = lambda v: weft.take(v, at, axis=0).reshape(tuple(p.shape))  # noqa: E731
    start, value_there = weft.concat([xp[:1], xp], axis=0), weft.concat([first, fp], axis=0)
    right = fp[n - 1] if right is None else right
    return _on_line(x, pick(start), pick(value_there), pick(slope), ends[0], ends[n - 1], right)


def _follows(*arrays):
    """Are they arrays of the host of one type that the core interpolates in?"""
    dtype = arrays[0].dtype
    return dtype.name in ("float32", "float64") and all(
        type(a) is NDArray and a.dtype == dtype and a.device.host_accessible for a in arrays
    )


@composed
def _on_line(x, start, first, slope, low, high, beyond):
    """first + slope (x - start) of x from `low` on, `beyond` behind `high`, NaN of NaN."""
    p = plain(x)
    out = first + slope * (weft.where(p <= low, low, x) - start)
    return weft.where(weft.isnan(p), math.nan, weft.where(p > high, beyond, out))


def gradient(f, *varargs, axis=None, edge_order=1):
    """Differences of neighbours over their distance: central inside, one-sided of first or second order at both ends.

    varargs: one distance for all axes, or for each axis a distance or the coordinates. A list of several axes' results, one alone for one axis.
    """
    f = value(f) if getattr(getattr(f, "dtype", None), "kind", "") == "c" else real(f)
    axes = (
        tuple(range(f.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    )
    axes = [axis_of(f, a) for a in axes]
    steps = list(varargs) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 and plain(steps[0]).ndim == 0 else steps
    if len(steps) != len(axes) or edge_order not in (1, 2):
        raise refused(
            "array.gradient.steps",
            f"{len(steps)} distances for {len(axes)} axes",
            "one, or one for each axis; edge_order 1 or 2",
        )
    out = [_slope(f, a, h, edge_order) for a, h in zip(axes, steps)]
    return out[0] if len(out) == 1 else out


def _slope(f, axis, h, edge_order):
    n = f.shape[axis]
    if n < edge_order + 1:
        raise refused(
            "array.gradient.shape", f"{n} entries along axis {axis}", f"{edge_order + 1} at least"
        )
    cut = lambda a, b: along(f, axis, slice(a, b))  # noqa: E731
    h = plain(beside(h, f))
    if h.ndim == 0:
        d = weft.ones((n - 1,), dtype=plain(f).real.dtype, device=f.device) * float(h)
    else:
        d = (h[1:] - h[:-1]).astype(plain(f).real.dtype)
    shape = tuple(-1 if i == axis else 1 for i in range(f.ndim))
    a, b = d[:-1].reshape(shape), d[1:].reshape(shape)
    inner = (
        (cut(2, n) - cut(0, n - 2)) / (2.0 * float(h))
        if h.ndim == 0
        else (
            -b / (a * (a + b)) * cut(0, n - 2)
            + (b - a) / (a * b) * cut(1, n - 1)
            + a / (b * (a + b)) * cut(2, n)
        )
    )
    p, q = float(d[0]), float(d[-1])
    if edge_order == 1:
        first, last = (cut(1, 2) - cut(0, 1)) / p, (cut(n - 1, n) - cut(n - 2, n - 1)) / q
    else:
        r, s = float(d[1]), float(d[-2])
        first = (
            -(2 * p + r) / (p * (p + r)) * cut(0, 1)
            + (p + r) / (p * r) * cut(1, 2)
            - p / (r * (p + r)) * cut(2, 3)
        )
        last = (
            q / (s * (s + q)) * cut(n - 3, n - 2)
            - (q + s) / (s * q) * cut(n - 2, n - 1)
            + (2 * q + s) / (q * (s + q)) * cut(n - 1, n)
        )
    return (
        weft.concat([first, inner, last], axis=axis)
        if n > 2
        else weft.concat([first, last], axis=axis)
    )


def ediff1d(x, to_end=None, to_begin=None):
    """The differences of neighbours in the row of all elements, with values before and behind them."""
    x = value(x).reshape(-1)
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, beside(to_begin, x).astype(x.dtype).reshape(-1))
    if to_end is not None:
        parts.append(beside(to_end, x).astype(x.dtype).reshape(-1))
    return weft.concat(parts, axis=0) if len(parts) > 1 else parts[0]


def _areas(y, x, dx, axis):
    y = real(y)
    axis = axis_of(y, axis)
    n = y.shape[axis]
    d = dx
    if x is not None:
        x = real(beside(x, y))
        shape = tuple(-1 if i == axis else 1 for i in range(y.ndim))
        x = x.reshape(shape) if x.ndim == 1 else x
        d = along(x, axis, slice(1, None)) - along(x, axis, slice(0, x.shape[axis] - 1))
    return d * (along(y, axis, slice(1, n)) + along(y, axis, slice(0, max(n - 1, 0)))) * 0.5, axis


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along an axis by trapezoids; samples at x, or dx apart."""
    y = value(y)
    if (
        wide := widened(y)
    ).dtype != y.dtype:  # sums of 16 bits overflow where the integral does not
        own = y.dtype if x is None else weft.result_type(y.dtype, real(beside(x, y)).dtype)
        return trapezoid(wide, x, dx, axis).astype(own)
    if x is None and isinstance(dx, (int, float)) and y.ndim and y.dtype.kind in "fc":
        axis = axis_of(y, axis)
        if (n := y.shape[axis]) > 1:
            ends = (along(y, axis, 0) + along(y, axis, n - 1)) * 0.5
            return (weft.sum(along(y, axis, slice(1, n - 1)), axis=axis) + ends) * dx
    areas, axis = _areas(y, x, dx, axis)
    return weft.sum(areas, axis=axis)


trapz = trapezoid


def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1):
    """Running integrals along an axis by trapezoids, one entry less."""
    areas, axis = _areas(y, x, dx, axis)
    return weft.cumulative_sum(areas, axis=axis)


def unwrap(x, discont=None, axis=-1, *, period=2 * math.pi):
    """Angles whose neighbours differ by more than half a period (or discont) brought nearer by whole periods."""
    x = real(x)
    axis = axis_of(x, axis)
    discont = period / 2 if discont is None else discont
    p = plain(x)
    d = along(p, axis, slice(1, None)) - along(p, axis, slice(0, p.shape[axis] - 1))
    near = weft.remainder(d + period / 2, period) - period / 2
    near = weft.where((near == -period / 2) & (d > 0), period / 2, near)
    step = weft.where(weft.abs(d) < discont, 0.0, near - d)
    shift = weft.cumulative_sum(step, axis=axis)
    return weft.concat(
        [along(x, axis, slice(0, 1)), along(x, axis, slice(1, None)) + shift], axis=axis
    )


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, device=None, *, axis=0):
    """base to the powers of evenly spaced numbers, which may be complex; of arrays between their elements, along a new axis."""
    if _complex_ends(start, stop):
        ends = (_complex(v, device) for v in (start, stop))
        exponents = weft.linspace(*ends, num, endpoint=endpoint, dtype="complex128", axis=axis)
        return weft.exp(exponents * math.log(base)).astype(
            weft.asarray(1j).dtype if dtype is None else dtype
        )
    out = base ** weft.linspace(
        start,
        stop,
        num,
        endpoint=endpoint,
        dtype="float64" if dtype is None else None,
        device=device,
        axis=axis,
    )
    return out.astype(weft.asarray(0.0).dtype if dtype is None else dtype)


def _complex_ends(*ends):
    return any(isinstance(v, complex) or getattr(getattr(v, "dtype", None), "kind", "") == "c" for v in ends)  # fmt: skip


def _complex(v, device):
    return weft.asarray(v, dtype="complex128", device=device)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, device=None, *, axis=0):
    """Numbers whose neighbours have one ratio, from start to stop; both have one sign, or they are complex: then a spiral. Of arrays
    between their elements, along a new axis."""
    if _complex_ends(start, stop):
        first, last = (_complex(v, device) for v in (start, stop))
        if bool(weft.any((first == 0) | (last == 0))):
            raise refused("array.geomspace.ends", f"from {start} to {stop}", "no 0 at either end")
        turn = weft.linspace(0.0 * first, weft.log(last / first), num, endpoint=endpoint, dtype="complex128", axis=axis)  # fmt: skip
        first = weft.expand_dims(first, axis=axis) if first.ndim else first
        return (first * weft.exp(turn)).astype(weft.asarray(1j).dtype if dtype is None else dtype)
    how = {"endpoint": endpoint, "dtype": "float64", "device": device, "axis": axis}
    several = any(getattr(v, "ndim", 0) or isinstance(v, (list, tuple)) for v in (start, stop))
    if several:
        start, stop = (weft.asarray(v, dtype="float64", device=device) for v in (start, stop))
    if bool(weft.any(start * stop <= 0)) if several else start * stop <= 0:
        raise refused(
            "array.geomspace.ends", f"from {start} to {stop}", "both positive or both negative"
        )
    if several:
        out = weft.exp(weft.linspace(weft.log(abs(start)), weft.log(abs(stop)), num, **how))
        sign = weft.linspace(weft.sign(start), weft.sign(start), num, **how)
    else:
        out = weft.exp(weft.linspace(math.log(abs(start)), math.log(abs(stop)), num, **how))
        sign = 1.0 if start > 0 else -1.0
    out = sign * out
    return out.astype(weft.asarray(0.0).dtype if dtype is None else dtype)


def _window(name):
    def window(m, *shape, dtype=None, device=None):
        import numpy as np  # takes longer than all of weft

        return weft.asarray(
            getattr(np, name)(m, *shape), dtype=dtype or weft.asarray(0.0).dtype, device=device
        )

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"NumPy's {name} window of m points, computed in float64."
    return window


bartlett, blackman, hamming, hanning, kaiser = map(
    _window, ("bartlett", "blackman", "hamming", "hanning", "kaiser")
)


def polyval(p, x):
    """The polynomial with these coefficients, the highest power's first, at x."""
    p = value(p)
    x = beside(x, p)
    out = weft.zeros_like(plain(x)) if p.shape[0] == 0 else p[0] + x * 0
    for k in range(1, p.shape[0]):
        out = out * x + p[k]
    return out


def poly(zeros):
    """The coefficients, the highest power's first, of the polynomial with these zeros; of a square matrix its characteristic one."""
    zeros = real(zeros)
    zeros = weft.linalg.eigvals(zeros) if zeros.ndim == 2 else zeros
    out = weft.ones((1,), dtype=zeros.dtype, device=zeros.device)
    for k in range(zeros.shape[0]):
        end = weft.zeros((1,), dtype=zeros.dtype, device=zeros.device)
        out = weft.concat([out, end], axis=0) - weft.concat([end, out * zeros[k]], axis=0)
    return out


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The coefficients, the highest power's first, of the polynomial of a degree with the least sum of squares through the points.

    w: weights of the differences. cov=True: with their covariance, scaled by the sum of squares (cov="unscaled": not).
    """
    if full or rcond is not None:
        raise refused("array.polyfit.argument", "polyfit with full or rcond", "leave them out; weft.linalg.lstsq(matrix, y, rcond) gives residuals and rank")  # fmt: skip
    x = real(x)
    y = real(beside(y, x))
    matrix = weft.vander(x, deg + 1)
    if w is not None:
        w = real(beside(w, x))
        matrix, y = matrix * w.reshape(-1, 1), y * (w if y.ndim == 1 else w.reshape(-1, 1))
    scale = weft.sqrt(weft.sum(matrix * matrix, axis=0))
    found = weft.linalg.lstsq(matrix / scale, y)[0]
    found = found / (scale if y.ndim == 1 else scale.reshape(-1, 1))
    if not cov:
        return found
    spread = weft.linalg.inv((matrix / scale).T @ (matrix / scale)) / weft.outer(scale, scale)
    if cov != "unscaled":
        rest = weft.sum((y - matrix @ found) ** 2, axis=0) / (x.shape[0] - deg - 1)
        spread = spread * rest if y.ndim == 1 else spread.reshape(*spread.shape, 1) * rest
    return found, spread


def roots(p):
    """The zeros of the polynomial with these coefficients, the highest power's first; complex numbers."""
    p = real(p).reshape(-1)
    at = weft.nonzero(plain(p))[0]
    wide = "complex128" if p.dtype.itemsize >= 8 else "complex64"
    if not at.size:
        return weft.zeros((0,), dtype=wide, device=p.device)
    first, last = int(at[0]), int(at[-1])
    none = p.shape[0] - 1 - last
    p = p[first : last + 1]
    n = p.shape[0] - 1
    if n == 0:
        return weft.zeros((none,), dtype=wide, device=p.device)
    top = (-p[1:] / p[0]).reshape(1, -1)
    below = weft.eye(n, dtype=p.dtype, device=p.device)[: n - 1]
    found = weft.linalg.eigvals(weft.concat([top, below], axis=0)).astype(wide)
    return (
        weft.concat([found, weft.zeros((none,), dtype=wide, device=p.device)], axis=0)
        if none
        else found
    )
