# SPDX-License-Identifier: Apache-2.0
"""Operators on machines whose programs are made for one shape (wse, vta): weft's functions of arrays, one at a time.

Fused plans have symbolic extents, which those machines do not take. What is not here is decomposed by torch.
"""

from __future__ import annotations

import weft

from ..rules import Unsupported

OPERATORS = {}


def operator(*names):
    def add(function):
        OPERATORS.update((f"aten.{n}", function) for n in names)
        return function

    return add


def _cast(c, x):
    return x if str(x.dtype) == c.dtype else x.astype(c.dtype)


def _of(c, value):
    """An operand in the result's type; numbers stay numbers."""
    return _cast(c, value) if hasattr(value, "astype") else value


for _torch_name, _name in {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "sin": "sin", "cos": "cos", "abs": "abs", "neg": "negative", "sigmoid": "sigmoid",
    "erf": "erf", "square": "square", "floor": "floor", "ceil": "ceil", "expm1": "expm1", "log1p": "log1p", "reciprocal": "reciprocal",
}.items():  # fmt: skip
    if hasattr(weft, _name):
        operator(f"{_torch_name}.default")(lambda c, x, _f=getattr(weft, _name): _f(_of(c, x)))


@operator("add.Tensor", "add.Scalar")
def _add(c, x, y, alpha=1):
    return weft.add(_of(c, x), _of(c, y) if alpha == 1 else _of(c, y) * alpha)


@operator("sub.Tensor", "sub.Scalar")
def _sub(c, x, y, alpha=1):
    return weft.subtract(_of(c, x), _of(c, y) if alpha == 1 else _of(c, y) * alpha)


operator("mul.Tensor", "mul.Scalar")(lambda c, x, y: weft.multiply(_of(c, x), _of(c, y)))
operator("div.Tensor", "div.Scalar")(lambda c, x, y: weft.divide(_of(c, x), _of(c, y)))
operator("pow.Tensor_Scalar")(lambda c, x, y: _of(c, x) ** y)
operator("maximum.default")(lambda c, x, y: weft.maximum(x, y))
operator("minimum.default")(lambda c, x, y: weft.minimum(x, y))
operator("relu.default")(lambda c, x: weft.maximum(x, 0))
operator("rsqrt.default")(lambda c, x: 1.0 / weft.sqrt(x))
operator("tanh_backward.default")(lambda c, g, y: g * (1.0 - y * y))
operator("sigmoid_backward.default")(lambda c, g, y: g * y * (1.0 - y))


def _axes(x, dim):
    if dim is None or dim == []:
        return None
    return tuple(d % max(x.ndim, 1) for d in (dim if isinstance(dim, (list, tuple)) else [dim]))


def _reduced(name):
    def reduce(c, x, dim=None, keepdim=False, dtype=None):
        if not x.ndim or not x.size:
            raise Unsupported(f"{name} of one element or of none on a machine of constant shapes")
        return getattr(weft, name)(_of(c, x), axis=_axes(x, dim), keepdims=keepdim)

    return reduce


operator("sum.default", "sum.dim_IntList")(_reduced("sum"))
operator("mean.default", "mean.dim")(_reduced("mean"))
operator("amax.default")(_reduced("max"))
operator("amin.default")(_reduced("min"))


@operator("addmm.default")
def _addmm(c, bias, a, b, beta=1, alpha=1):
    product = weft.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    return product if beta == 0 else product + (bias if beta == 1 else bias * beta)


def _moments(c, x, dim, correction, keepdim):
    axes = _axes(x, dim) or tuple(range(x.ndim))
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    correction = 1 if correction is None else correction
    if count <= correction:
        raise Unsupported("the variance of too few elements on a machine of constant shapes")
    mean = weft.mean(x, axis=axes, keepdims=True)
    away = x - mean
    var = weft.sum(away * away, axis=axes, keepdims=keepdim) * (1.0 / (count - correction))
    return var, mean if keepdim else mean.reshape(var.shape)


@operator("var.correction")
def _var(c, x, dim=None, correction=None, keepdim=False):
    return _moments(c, x, dim, correction, keepdim)[0]


@operator("var_mean.correction")
def _var_mean(c, x, dim=None, correction=None, keepdim=False):
    return _moments(c, x, dim, correction, keepdim)
