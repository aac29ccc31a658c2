# SPDX-License-Identifier: Apache-2.0
"""Views: reshapes, permutations, slices. Over arrays, and over Lazy values inside a fused group."""

from __future__ import annotations

import math

from ... import _core
from .common import VIEWS, Unsupported, array, cast, fused, reshape, spread, view

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


@view("unfold.default")
def _unfold(c, x, dim, size, step):
    if not x.ndim or not math.prod(c.shape):
        raise Unsupported("windows without axes or elements")
    dim %= x.ndim
    steps = [*x.strides, x.strides[dim]]
    steps[dim] *= step
    return x.as_strided(c.shape, steps)


@view("diagonal.default")
def _diagonal(c, x, offset=0, dim1=0, dim2=1):
    if not math.prod(c.shape):
        raise Unsupported("a diagonal without elements")
    return _core._diagonal(x, dim1 % x.ndim, dim2 % x.ndim, offset)


@array("narrow_copy.default")
def _narrow_copy(c, x, dim, start, length):
    start %= x.shape[dim] or 1
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, start + length),)].copy()


@array("diagonal_scatter.default")
def _diagonal_scatter(c, x, source, offset=0, dim1=0, dim2=1):
    out = x.copy()
    if source.size:
        _core._assign(_core._diagonal(out, dim1 % x.ndim, dim2 % x.ndim, offset), source)
    return out


def _memory_order(fake):
    """The axes of a tensor without gaps, as they lie in memory."""
    order = sorted(range(fake.dim()), key=lambda a: (-fake.stride(a), -fake.shape[a]))
    expected = 1
    for a in reversed(order):
        if fake.shape[a] != 1 and fake.stride(a) != expected:
            raise Unsupported("strides into a tensor with gaps")
        expected *= fake.shape[a]
    return order


def _placed(c, shape, strides, offset):
    """What as_strided reads of a tensor whose elements lie in the row that torch has: (its axes in memory, offset)."""
    fake = c.inputs[0]
    first = (fake.storage_offset() if offset is None else offset) - fake.storage_offset()
    reach = sum((n - 1) * s for n, s in zip(shape, strides))
    if first < 0 or not math.prod(shape) or first + reach >= fake.numel():
        raise Unsupported("strides beyond the tensor")
    return _memory_order(fake), first


@view("as_strided.default")
def _as_strided(c, x, shape, strides, offset=None):
    order, first = _placed(c, shape, strides, offset)
    row = (x.permute(order) if x.ndim else x).reshape((-1,))
    return row[first:].as_strided(c.shape, tuple(strides))


@array("as_strided_scatter.default")
def _as_strided_scatter(c, x, source, shape, strides, offset=None):
    order, first = _placed(c, shape, strides, offset)
    out = (x.permute(order) if x.ndim else x).copy()
    _core._assign(out.reshape((-1,))[first:].as_strided(tuple(shape), tuple(strides)), source)
    return out.permute([order.index(a) for a in range(x.ndim)]) if x.ndim else out


def _copied(rule):
    """A view's function whose results have memory of their own."""

    def copy(c, *args, **kwargs):
        found = rule(c, *args, **kwargs)
        return [x.copy() for x in found] if isinstance(found, list) else found.copy()

    return copy


for _name, _rule in list(VIEWS.items()):
    _packet, _, _overload = _name.removeprefix("aten.").partition(".")
    if not _packet.startswith("_"):
        array(f"{_packet}_copy.{_overload}")(_copied(_rule))
