# SPDX-License-Identifier: Apache-2.0
"""Views: reshapes, permutations, slices. Over arrays, and over Lazy values inside a fused group."""

from __future__ import annotations

from ... import _core
from .common import Unsupported, cast, fused, reshape, spread, view

#: torch.Tensor methods that do the same to a tensor of any strides.
TENSOR_METHODS = {
    "aten.view.default": "reshape",
    "aten._unsafe_view.default": "reshape",
    "aten.reshape.default": "reshape",
    "aten.permute.default": "permute",
    "aten.transpose.int": "transpose",
    "aten.t.default": "t",
    "aten.expand.default": "expand",
    "aten.unsqueeze.default": "unsqueeze",
    "aten.squeeze.dim": "squeeze",
    "aten.squeeze.dims": "squeeze",
    "aten.select.int": "select",
    "aten.detach.default": "detach",
}

_RESHAPES = "view _unsafe_view reshape"
for _name in _RESHAPES.split():
    view(f"{_name}.default")(lambda c, x, shape: x.reshape(c.shape))
    fused(f"{_name}.default")(lambda c, x, shape: reshape(x, c.shape))
for _name in ("unsqueeze.default", "squeeze.dim", "squeeze.dims", "squeeze.default"):
    view(_name)(lambda c, x, dim=None: x.reshape(c.shape))
    fused(_name)(lambda c, x, dim=None: reshape(x, c.shape))
for _name in ("detach.default", "alias.default"):
    view(_name)(lambda c, x: x)
    fused(_name)(lambda c, x: x)


def _order(x, first, second):
    axes = list(range(len(x.shape)))
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return axes


def _permuted(x, axes):
    axes = [a % len(axes) for a in axes]
    return x if axes == list(range(len(axes))) else _core._lazy_permute(x, axes)


view("permute.default")(lambda c, x, axes: x.permute([a % x.ndim for a in axes]) if axes else x)
fused("permute.default")(lambda c, x, axes: _permuted(x, axes) if axes else x)
view("transpose.int")(lambda c, x, a, b: x.permute(_order(x, a, b)) if x.ndim else x)
fused("transpose.int")(lambda c, x, a, b: _permuted(x, _order(x, a, b)))
view("t.default")(lambda c, x: x.permute([1, 0]) if x.ndim == 2 else x)
fused("t.default")(lambda c, x: _permuted(x, [1, 0]) if len(x.shape) == 2 else x)
view("expand.default")(lambda c, x, shape, implicit=False: x.broadcast_to(c.shape))
fused("expand.default")(lambda c, x, shape, implicit=False: spread(cast(x, c.dtype), c.shape))


@view("select.int")
def _select(c, x, dim, index):
    return x[(slice(None),) * (dim % x.ndim) + (index,)]


def _range(x, dim, start, end, step):
    n = x.shape[dim]
    start, stop, step = slice(start, end, step).indices(n)
    return start, max(stop, start), step


@view("slice.Tensor")
def _slice(c, x, dim=0, start=None, end=None, step=1):
    dim %= x.ndim
    start, stop, step = _range(x, dim, start, end, step)
    if stop == start:
        raise Unsupported("a slice without elements")
    return x[(slice(None),) * dim + (slice(start, stop, step),)]


@view("split.Tensor", "split_with_sizes.default")
def _split(c, x, sizes, dim=0):
    dim %= x.ndim
    parts, at = [], 0
    for shape in c.shapes:
        parts.append(x[(slice(None),) * dim + (slice(at, at + shape[dim]),)])
        at += shape[dim]
    return parts


@view("unbind.int")
def _unbind(c, x, dim=0):
    dim %= x.ndim
    return [x[(slice(None),) * dim + (i,)] for i in range(x.shape[dim])]
