# SPDX-License-Identifier: Apache-2.0
"""Functions that layers are made of."""

from __future__ import annotations

import math

import weft

from .. import _core
from .._boundary import is_function as _is_function
from .._boundary import direct as _direct, publish as _publish
from .._core import NDArray, Tensor
from .._errors import error as _error
from .._methods.of_arrays import taking_arrays as _taking_arrays
from . import activations as _activations
from . import convolve as _convolve
from . import distances as _distances
from . import dropouts as _dropouts
from . import embeddings as _embeddings
from . import folding as _folding
from . import losses as _losses
from . import margins as _margins
from . import pooling as _pooling
from . import sampling as _sampling
from . import unpooling as _unpooling
from . import variants as _variants
from .._fused_step import FusedStep as _FusedStep
from .._joined import joined as _joined
from .._pointwise import pointwise as _pointwise
from .._wide import of_type as _of_type, wide as _wide
from .activations import *  # noqa: F401,F403
from .convolve import *  # noqa: F401,F403
from .distances import *  # noqa: F401,F403
from .dropouts import *  # noqa: F401,F403
from .dropouts import dropout
from .embeddings import *  # noqa: F401,F403
from .folding import *  # noqa: F401,F403
from .groups import (
    as_one_node,
    by_statistics,
    group_norm,
    instance_norm,
    local_response_norm,
    moved_statistics,
)
from .losses import *  # noqa: F401,F403
from .margins import *  # noqa: F401,F403
from .pooling import *  # noqa: F401,F403
from .sampling import *  # noqa: F401,F403
from .unpooling import *  # noqa: F401,F403
from .variants import *  # noqa: F401,F403
from .quantized import (
    dequantize_weight,
    grouped_linear,
    quantize_weight,
    quantized_linear,
    scaled_mm,
)
from .resampling import interpolate, pad
from .scaled_attention import attention, scaled_dot_product_attention

__all__ = [
    *_losses.__all__,
    *_margins.__all__,
    *_activations.__all__,
    *_convolve.__all__,
    *_distances.__all__,
    *_dropouts.__all__,
    *_embeddings.__all__,
    *_folding.__all__,
    *_pooling.__all__,
    *_sampling.__all__,
    *_unpooling.__all__,
    *_variants.__all__,
    "instance_norm",
    "local_response_norm",
    "batch_norm",
    "group_norm",
    "interpolate",
    "layer_norm",
    "rms_norm",
    "pad",
    "relu",
    "gelu",
    "silu",
    "leaky_relu",
    "elu",
    "softplus",
    "sigmoid",
    "tanh",
    "softmax",
    "log_softmax",
    "linear",
    "one_hot",
    "normalize",
    "attention",
    "scaled_dot_product_attention",
    "dequantize_weight",
    "grouped_linear",
    "quantize_weight",
    "quantized_linear",
    "scaled_mm",
]

relu = _core.operations["relu"]


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Mean 0 and variance 1 over the last axes, whose extents are normalized_shape, then times weight plus bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if x.shape[x.ndim - len(shape) :] != shape:
        raise _error(
            weft.ShapeError,
            "nn.layer_norm.shape",
            f"layer_norm over {shape} got shape {x.shape}",
            note="rule: the last axes have these extents",
        )
    size = math.prod(shape)
    scale, shift = (w if w is None else w.reshape(-1) for w in (weight, bias))
    scale, shift = (
        Tensor(w, requires_grad=False) if isinstance(w, NDArray) else w for w in (scale, shift)
    )
    if len(shape) == 1:
        return x.layer_norm(scale, shift, eps)
    rows = x.reshape(*x.shape[: x.ndim - len(shape)], size)
    return rows.layer_norm(scale, shift, eps).reshape(*x.shape)


def rms_norm(x, normalized_shape, weight=None, eps=None):
    """x over the root of its mean square along the last axes, whose extents are normalized_shape, then times weight.

    eps is added to the mean square; None takes the type's (weft.finfo). 16-bit floats are computed in float32 and rounded
    once. Raises ShapeError when the last axes have other extents.
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise _error(
            weft.ShapeError,
            "nn.rms_norm.shape",
            f"rms_norm over {shape} got shape {x.shape}",
            note="rule: the last axes have these extents",
        )
    eps = weft.finfo(x.dtype).eps if eps is None else eps
    return _over_root_mean_square(x, weight, tuple(range(-len(shape), 0)), eps)


@_joined
def _over_root_mean_square(x, weight, axes, eps):
    dtype = x.dtype
    if dtype.itemsize < 4:
        x = x.astype("float32")
        weight = None if weight is None else weight.astype("float32")
    y = x * weft.rsqrt((x * x).mean(axes, True) + eps)
    return (y if weight is None else y * weight).astype(dtype)


def batch_norm(
    x, running_mean, running_var, weight=None, bias=None, training=False, eps=1e-5, momentum=0.1
):
    """(n, c, ...) over the batch when training, which moves the running statistics by `momentum`, else by these."""
    if not training:
        return by_statistics(x, running_mean, running_var, weight, bias, eps)
    found = as_one_node(x, weight, bias, eps)
    if found is None:
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *(1,) * (x.ndim - 2))
        mean = x.mean(axes, True)
        centred = x - mean
        var = (centred * centred).mean(axes, True)
        y = centred * weft.rsqrt(var + eps)
        y = y if weight is None else y * weight.reshape(*shape)
        y = y if bias is None else y + bias.reshape(*shape)
    else:
        y, mean, var = found
    if momentum is not None and running_mean is not None:
        n = x.size / x.shape[1]
        held, moments = (
            [getattr(v, "data", v).reshape(-1) for v in pair]
            for pair in ((running_mean, running_var), (mean, var))
        )
        share = momentum * n / max(n - 1.0, 1.0)
        for old, new in zip(held, _moved(*held, *moments, 1.0 - momentum, momentum, share)):
            if new is not old:
                old[...] = new
    return y


_moved = _FusedStep(moved_statistics, in_place="always")


@_pointwise
def _gelu(x):
    return weft.gelu(x)


@_direct(_gelu.__weft_direct__)
def gelu(x, approximate="none"):
    """x times the normal distribution function of x; approximate="tanh" takes the tanh formula."""
    if approximate == "tanh":
        return _activations.gelu_tanh(x)
    return _gelu(x)


@_pointwise
def silu(x):
    """x sigmoid(x)."""
    return weft.silu(x)


@_pointwise
def leaky_relu(x, slope=0.01, negative_slope=None):
    """x where positive, else slope times x; `negative_slope` is PyTorch's name of it."""
    return weft.leaky_relu(x, slope if negative_slope is None else negative_slope)


@_pointwise
def elu(x, alpha=1.0):
    """x where positive, else alpha (exp(x) - 1)."""
    return weft.elu(x, alpha)


@_pointwise
def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta, without overflow; x itself where beta x is above the threshold."""
    y = weft.logaddexp(x * beta, 0.0) * (1.0 / beta)
    # From 20 on both are the same number but for two billionths.
    return y if threshold >= 20 else weft.where(x * beta > threshold, x, y)


def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return weft.sigmoid(x)


def tanh(x):
    """The hyperbolic tangent."""
    return weft.tanh(x)


def softmax(x, axis=-1, dim=None):
    """exp(x) / sum(exp(x)) along an axis; `dim` is PyTorch's name of it."""
    return x.softmax(axis if dim is None else dim)


def log_softmax(x, axis=-1, dim=None):
    """x - log(sum(exp(x))) along an axis; `dim` is PyTorch's name of it."""
    return x.log_softmax(axis if dim is None else dim)


def linear(x, weight, bias=None):
    """x weight + bias; weight is (in, out), as in weft.nn.Linear."""
    if bias is None:
        return x @ weight
    if all(isinstance(t, Tensor) for t in (x, weight, bias)) and _core._has_grid(x.data):
        return _core._linear(x, weight, bias)
    return x @ weight + bias


def one_hot(index, num_classes=-1):
    """An array of int64 with a new last axis, 1 at each index; -1 classes are the largest index and one more.

    Raises IndexError outside [0, num_classes).
    """
    index = weft.asarray(getattr(index, "data", index))
    if num_classes == -1 and index.size:
        num_classes = int(weft.max(index)) + 1
    if index.size and (int(weft.min(index)) < 0 or int(weft.max(index)) >= num_classes):
        raise _error(
            weft.IndexError,
            "nn.one_hot.index",
            f"an index is outside [0, {num_classes})",
            help="give num_classes above the largest index",
        )
    return (index[..., None] == weft.arange(num_classes, device=index.device)).astype(weft.int64)


def normalize(x, p=2.0, axis=1, eps=1e-12, dim=None):
    """x over its p-norm along an axis, the norm held at eps; `dim` is PyTorch's name of the axis."""
    return _over_norm(x, p, axis if dim is None else dim, eps)


@_joined
def _over_norm(x, p, axis, eps):
    wide = _wide(x)
    norm = (
        weft.sqrt((wide * wide).sum(axis, True))
        if p == 2
        else (weft.abs(wide) ** p).sum(axis, True) ** (1 / p)
    )
    return _of_type(wide / weft.clip(norm, eps, None), x)


for _name in __all__:
    _function = globals()[_name]
    # The weights of the others are arrays always.
    if _is_function(_function) and not _function.__module__.endswith("quantized"):
        globals()[_name] = _taking_arrays(_function)

_publish(__name__, gathered=True)
