# SPDX-License-Identifier: Apache-2.0
"""Values of images and volumes at any places between their elements."""

from __future__ import annotations

import itertools

import weft

from .._core import shown as _shown
from .._errors import error as _error

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta, size, align_corners=False):
    """Places (n, h, w, 2) for grid_sample from matrices theta (n, 2, 3) and a size (n, c, h, w); (n, 3, 4) and five extents for volumes."""
    rank = len(size) - 2
    if rank not in (2, 3) or tuple(theta.shape) != (size[0], rank, rank + 1):
        raise _error(
            weft.ShapeError,
            "nn.affine_grid.shape",
            f"affine_grid of matrices {tuple(theta.shape)} for the size {tuple(size)}",
            ["rule: (n, 2, 3) for (n, c, h, w), (n, 3, 4) for (n, c, d, h, w)"],
        )
    lines = []
    for m in size[2:]:
        at = weft.arange(m, device=theta.device).astype(theta.dtype)
        if align_corners:
            lines.append(at * (2.0 / max(m - 1, 1)) - 1.0 if m > 1 else at * 0.0)
        else:
            lines.append((at * 2.0 + 1.0) / m - 1.0)
    grids = weft.meshgrid(*lines, indexing="ij")
    base = weft.stack([*reversed(grids), weft.ones_like(grids[0])], axis=-1).reshape((-1, rank + 1))
    out = weft.matmul(weft.expand_dims(base, axis=0), theta.mT)
    return out.reshape((size[0], *size[2:], rank))


def _unnormalized(g, m, align_corners):
    return (g + 1.0) * ((m - 1) / 2) if align_corners else ((g + 1.0) * m - 1.0) / 2


def _reflected(at, m, align_corners):
    low, span = (0.0, float(m - 1)) if align_corners else (-0.5, float(m))
    if span == 0:
        return at * 0.0
    away = weft.abs(at - low)
    times = weft.floor(away.detach() / span)
    rest = away - times * span
    even = (times - 2.0 * weft.floor(times * 0.5)) == 0
    return weft.where(_mask(even), rest + low, span - rest + low)


def _mask(x):
    return x.data if isinstance(x, weft.Tensor) else x


def _read(flat, positions, inside, extents):
    """The elements (n, c, places) at integer positions of each axis, 0 where they lie outside."""
    index = 0
    for at, m in zip(positions, extents):
        index = index * m + weft.clip(at, 0, m - 1)
    n, c = flat.shape[:2]
    index = weft.broadcast_to(weft.expand_dims(index, axis=1), (n, c, index.shape[-1]))
    found = weft.take_along_axis(flat, index, axis=2)
    return weft.where(weft.expand_dims(inside, axis=1), found, 0.0)


def _cubic(t):
    """Weights of the four neighbours at -1, 0, 1, 2 for a part t (Keys, A = -0.75)."""
    a = -0.75
    near = lambda s: ((a + 2) * s - (a + 3)) * s * s + 1  # noqa: E731
    far = lambda s: ((a * s - 5 * a) * s + 8 * a) * s - 4 * a  # noqa: E731
    return far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)


def _bordered(at, m, padding_mode, align_corners):
    if padding_mode == "border":
        return weft.clip(at, 0.0, float(m - 1))
    if padding_mode == "reflection":
        return weft.clip(_reflected(at, m, align_corners), 0.0, float(m - 1))
    return at


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """x (n, c, h, w) at places grid (n, i, j, 2), (column, row) from -1 to 1; volumes (n, c, d, h, w) at (n, i, j, k, 3).

    mode "bilinear", "nearest" or "bicubic" (images); padding_mode "zeros", "border" or "reflection". Gives (n, c, i, j), of any
    float type, with the gradients of x and, but for "nearest", of the places. Raises ShapeError and ArgumentError.
    """
    rank = x.ndim - 2
    modes = ("bilinear", "nearest", "bicubic") if rank == 2 else ("bilinear", "nearest")
    if (
        rank not in (2, 3)
        or grid.ndim != x.ndim
        or grid.shape[-1] != rank
        or grid.shape[0] != x.shape[0]
    ):
        raise _error(
            weft.ShapeError,
            "nn.grid_sample.shape",
            f"grid_sample of shape {tuple(x.shape)} at places {tuple(grid.shape)}",
            ["rule: (n, c, h, w) with (n, i, j, 2), or (n, c, d, h, w) with (n, i, j, k, 3)"],
        )
    if mode not in modes or padding_mode not in ("zeros", "border", "reflection"):
        raise _error(
            weft.ArgumentError,
            "nn.grid_sample.mode",
            f"mode {_shown(mode)} with padding_mode {_shown(padding_mode)}",
            [f"legal: {', '.join(modes)}; zeros, border, reflection"],
        )
    align_corners = bool(align_corners)
    n, c, *extents = x.shape
    places = grid.shape[1:-1]
    flat = x.reshape((n, c, -1))
    points = grid.reshape((n, -1, rank))
    at = [_unnormalized(points[..., rank - 1 - k], m, align_corners) for k, m in enumerate(extents)]
    if mode != "bicubic":
        at = [_bordered(a, m, padding_mode, align_corners) for a, m in zip(at, extents)]
    if mode == "nearest":
        whole = [weft.round(_mask(a)).astype("int64") for a in at]
        out = _read(flat, whole, _within(whole, extents), extents)
        return out.reshape((n, c, *places))
    first = [weft.floor(_mask(a)) for a in at]
    part = [a - f for a, f in zip(at, first)]
    first = [f.astype("int64") for f in first]
    offsets, weights = ((0, 1), [(1.0 - p, p) for p in part]) if mode == "bilinear" else ((-1, 0, 1, 2), [_cubic(p) for p in part])  # fmt: skip
    total = 0.0
    for corner in itertools.product(range(len(offsets)), repeat=rank):
        whole = [f + offsets[k] for f, k in zip(first, corner)]
        if mode == "bicubic" and padding_mode != "zeros":
            whole = [_bordered(w.astype("float32"), m, padding_mode, align_corners).astype("int64") for w, m in zip(whole, extents)]  # fmt: skip
        weight = 1.0
        for w, k in zip(weights, corner):
            weight = w[k] * weight
        total = total + _read(flat, whole, _within(whole, extents), extents) * weft.expand_dims(weight, axis=1)  # fmt: skip
    return total.reshape((n, c, *places))


def _within(whole, extents):
    inside = None
    for at, m in zip(whole, extents):
        fits = (at >= 0) & (at < m)
        inside = fits if inside is None else inside & fits
    return inside
