# SPDX-License-Identifier: Apache-2.0
"""Operators that make or take complex numbers: parts, conjugates, Fourier transforms; and which other rules hold for them."""

from __future__ import annotations

import math
import operator

import torch

import weft

from ... import _core
from . import views as _views  # noqa: F401  (its table is read below)
from .common import (
    COMPLEX,
    VIEWS,
    Unsupported,
    array,
    as_type,
    axes_of,
    complex_too,
    of_complex,
    view,
)

complex_too(
    *"view.default _unsafe_view.default reshape.default permute.default transpose.int t.default expand.default".split(),
    *"unsqueeze.default squeeze.dim squeeze.dims squeeze.default select.int slice.Tensor split.Tensor".split(),
    *"split_with_sizes.default unbind.int detach.default alias.default diagonal.default unfold.default as_strided.default".split(),
    *"mm.default bmm.default mv.default dot.default matmul.default addmm.default baddbmm.default".split(),
    *"cat.default stack.default constant_pad_nd.default slice_backward.default select_backward.default".split(),
    *"select_scatter.default slice_scatter.default gather.default index_select.default index.Tensor".split(),
    *"cumsum.default cumprod.default addmv.default addbmm.default vdot.default".split(),
    *"diagonal_scatter.default as_strided_scatter.default".split(),
    *"_unsafe_index_put.default put.default narrow_copy.default masked_scatter.default index_put.default scatter_add.default flip.default repeat.default tril.default triu.default".split(),
    *"view_as_real.default view_as_complex.default _fft_r2c.default _fft_c2c.default _fft_c2r.default".split(),
)  # fmt: skip

for _name, _weft in dict(
    neg="negative", reciprocal="reciprocal", square="square", exp="exp", log="log", sqrt="sqrt", sin="sin", cos="cos",
    sinh="sinh", cosh="cosh", tanh="tanh", abs="abs", real="real", imag="imag", sgn="sgn", _conj="conj", _conj_physical="conj",
    acos="acos", acosh="acosh", asin="asin", asinh="asinh", atan="atan", atanh="atanh", tan="tan", expm1="expm1",
    log10="log10", log1p="log1p", log2="log2",
).items():  # fmt: skip
    of_complex(f"{_name}.default")(lambda c, x, f=getattr(weft, _weft): as_type(f(x), c.dtype))


def _number_or_array(v, dtype):
    return as_type(v, dtype) if hasattr(v, "dtype") else v


def _arithmetic(operation):
    def rule(c, x, y, alpha=1):
        x, y = (_number_or_array(v, c.dtype) for v in (x, y))
        return as_type(operation(x, y if alpha == 1 else y * alpha), c.dtype)

    return rule


for _name, _operation in dict(
    add=operator.add, sub=operator.sub, mul=operator.mul, div=operator.truediv
).items():
    of_complex(f"{_name}.Tensor", f"{_name}.Scalar")(_arithmetic(_operation))
for _name, _operation in dict(addcmul=operator.mul, addcdiv=operator.truediv).items():
    of_complex(f"{_name}.default")(
        lambda c, x, a, b, value=1, f=_operation: as_type(x + f(a, b) * value, c.dtype)
    )
of_complex("rsub.Tensor", "rsub.Scalar")(_arithmetic(lambda x, y: y - x))
of_complex("eq.Tensor", "eq.Scalar")(lambda c, x, y: x == y)
of_complex("ne.Tensor", "ne.Scalar")(lambda c, x, y: x != y)


@of_complex("where.self")
def _where(c, condition, a, b):
    return weft.where(as_type(condition, "bool"), as_type(a, c.dtype), as_type(b, c.dtype)).broadcast_to(c.shape)  # fmt: skip


@of_complex("clone.default", "copy.default", "lift_fresh_copy.default", "_to_copy.default")
def _copy(c, x, source=None, **options):
    x = x if source is None or not hasattr(source, "dtype") else source
    if str(x.dtype).startswith("complex") and c.dtype != "bool" and "complex" not in c.dtype:
        x = weft.real(x)  # torch warns and drops the other part
    return x.astype(c.dtype).broadcast_to(c.shape).copy()


def _of_parts(real, imaginary):
    """Complex numbers of two arrays: their pairs, read with other elements."""
    pairs = torch.from_dlpack(weft.stack([real, imaginary], axis=-1))
    return _core._from_dlpack(torch._C._to_dlpack(torch.view_as_complex(pairs)), None, None)


@of_complex("complex.default")
def _complex(c, real, imaginary):
    if not math.prod(c.shape) or not real.device.host_accessible:
        raise Unsupported("complex numbers without elements, or made on a device")
    return _of_parts(*(x.broadcast_to(c.shape) for x in (real, imaginary)))


@of_complex("polar.default")
def _polar(c, length, angle):
    if not math.prod(c.shape) or not length.device.host_accessible:
        raise Unsupported("complex numbers without elements, or made on a device")
    length, angle = (x.broadcast_to(c.shape) for x in (length, angle))
    return _of_parts(length * weft.cos(angle), length * weft.sin(angle))


@of_complex("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(c, x, mask, value):
    value = weft.full((), value, dtype=c.dtype, device=x.device) if not hasattr(value, "dtype") else as_type(value, c.dtype)  # fmt: skip
    return weft.where(mask, value, x).broadcast_to(c.shape)


def _filled(value):
    def rule(c, x, given=0, *rest, **options):
        number = given if value is None else value
        return weft.full(c.shape, number, dtype=c.dtype, device=x.device)

    return rule


of_complex("zeros_like.default", "empty_like.default", "new_empty_strided.default")(_filled(0))
of_complex("ones_like.default")(_filled(1))
of_complex("full_like.default", "fill.Scalar")(_filled(None))


@of_complex("sum.dim_IntList", "sum.default")
def _sum(c, x, dim=None, keepdim=False, dtype=None):
    axes = tuple(axes_of(dim, x.ndim))
    x = as_type(x, c.dtype)
    return weft.sum(x, axis=axes, keepdims=keepdim) if x.ndim else x.copy()


@of_complex("prod.dim_int", "prod.default")
def _prod(c, x, dim=None, keepdim=False, dtype=None):
    axes = tuple(axes_of(dim, x.ndim))
    x = as_type(x, c.dtype)
    return weft.prod(x, axis=axes, keepdims=keepdim) if x.ndim else x.copy()


@of_complex("mean.dim", "mean.default")
def _mean(c, x, dim=None, keepdim=False, dtype=None):
    axes = tuple(axes_of(dim, x.ndim))
    if not x.size:
        raise Unsupported("the mean of nothing")
    x = as_type(x, c.dtype)
    return weft.mean(x, axis=axes, keepdims=keepdim) if x.ndim else x.copy()


for _name in ("and", "or", "xor"):
    of_complex(f"logical_{_name}.default")(
        lambda c, x, y, f=getattr(weft, f"logical_{_name}"): f(x != 0, y != 0).broadcast_to(c.shape)
    )
of_complex("logical_not.default")(lambda c, x: x == 0)
for _name in ("isnan", "isinf"):
    of_complex(f"{_name}.default")(
        lambda c, x, f=getattr(weft, _name): weft.logical_or(f(weft.real(x)), f(weft.imag(x)))
    )


@of_complex("lerp.Scalar", "lerp.Tensor")
def _between(c, x, end, weight):
    """As torch's kernel: from the nearer end."""
    x, end, weight = (_number_or_array(v, c.dtype) for v in (x, end, weight))
    if hasattr(weight, "dtype"):
        near = weft.abs(weight) < 0.5
        found = weft.where(near, x + weight * (end - x), end - (end - x) * (1 - weight))
    else:
        found = x + weight * (end - x) if abs(weight) < 0.5 else end - (end - x) * (1 - weight)
    return as_type(found, c.dtype).broadcast_to(c.shape)


def _variance(c, x, dim=None, correction=None, keepdim=False):
    """The variances of both parts together."""
    axes = tuple(axes_of(dim, x.ndim))
    count = math.prod(x.shape[a] for a in axes)
    away = weft.abs(x - weft.mean(x, axis=axes, keepdims=True))
    degrees = count - (1 if correction is None else correction)
    if degrees <= 0:
        raise Unsupported("the spread of too few numbers")
    total = weft.sum(away * away, axis=axes, keepdims=keepdim)
    variance = total / degrees
    return as_type(variance, c.dtype)


of_complex("var.correction")(_variance)
of_complex("std.correction")(lambda *args, **how: weft.sqrt(_variance(*args, **how)))


def _truth(function):
    def rule(c, x, dim=None, keepdim=False):
        axes = tuple(axes_of(dim, x.ndim))
        found = function(x != 0, axis=axes, keepdims=keepdim) if x.ndim else x != 0
        return as_type(found, c.dtype)

    return rule


of_complex("any.default", "any.dim", "any.dims")(_truth(weft.any))
of_complex("all.default", "all.dim", "all.dims")(_truth(weft.all))


@of_complex("angle.default")
def _angle(c, x):
    return weft.atan2(weft.imag(x), weft.real(x))


@view("view_as_real.default", "view_as_complex.default")
def _other_elements(c, x):
    raise Unsupported("a view with other elements, which torch makes without work")


def _scaled(y, normalization, points):
    """torch's three ways to scale: not at all, by the root of the number of points, by that number."""
    return y if normalization == 0 else y * (1.0 / (math.sqrt(points) if normalization == 1 else points))  # fmt: skip


def _checked(c, x, dims):
    if not dims or not x.size or not math.prod(c.shape):
        raise Unsupported("a transform without axes or elements")
    return tuple(d % x.ndim for d in dims)


@array("_fft_r2c.default")
def _real_to_complex(c, x, dims, normalization, onesided):
    dims = _checked(c, x, dims)
    points = math.prod(x.shape[d] for d in dims)
    y = weft.fft.rfftn(x, axes=dims) if onesided else weft.fft.fftn(x.astype(c.dtype), axes=dims)
    return _scaled(y, normalization, points)


@array("_fft_c2c.default")
def _complex_to_complex(c, x, dims, normalization, forward):
    dims = _checked(c, x, dims)
    points = math.prod(x.shape[d] for d in dims)
    if forward:
        return _scaled(weft.fft.fftn(x, axes=dims), normalization, points)
    return _scaled(weft.fft.ifftn(x, axes=dims, norm="forward"), normalization, points)


@array("_fft_c2r.default")
def _complex_to_real(c, x, dims, normalization, last):
    dims = _checked(c, x, dims)
    sizes = [x.shape[d] for d in dims[:-1]] + [last]
    y = weft.fft.irfftn(x, s=sizes, axes=dims, norm="forward")
    return _scaled(y, normalization, math.prod(sizes))


complex_too(
    *(n.removeprefix("aten.").replace(".", "_copy.", 1) for n in COMPLEX if n in VIEWS)
)  # views whose results have memory of their own
