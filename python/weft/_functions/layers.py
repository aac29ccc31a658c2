# SPDX-License-Identifier: Apache-2.0
"""Functions of layers that PyTorch has in its main namespace, too: those of weft.nn.functional, with PyTorch's order of arguments where it
differs there."""

from __future__ import annotations

import weft

from .._boundary import import_later
from .common import value

_SAME = """
    adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d bilinear celu channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss dropout embedding_bag
    feature_alpha_dropout hardshrink hinge_embedding_loss kl_div margin_ranking_loss max_pool1d
    max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu rrelu selu threshold
    triplet_margin_loss
"""


def _functional():
    return import_later("weft.nn.functional")


def _same(name):
    def call(*args, **kwargs):
        if name.endswith("_loss") or name == "kl_div":  # PyTorch numbers the reductions here
            words = ("none", "mean", "sum")
            args = (*args[:2], *(words[a] if type(a) is int and k == len(args) - 3 and a < 3 else a for k, a in enumerate(args[2:])))  # fmt: skip
            kwargs = {
                k: words[v] if k == "reduction" and type(v) is int else v for k, v in kwargs.items()
            }
        return getattr(_functional(), name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    first = (getattr(_functional(), name).__doc__ or "").split("\n")[0]
    call.__doc__ = f"{first}\n\nAs weft.nn.functional.{name}."
    return call


def __getattr__(name):
    if name in _SAME.split():
        globals()[name] = made = _same(name)
        return made
    raise AttributeError(name)


def batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True
):
    """nn.functional.batch_norm with PyTorch's order: (n, c, ...), statistics (c,); while training those of the batch."""
    F = _functional()
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """nn.functional.group_norm: (n, c, ...), channels in num_groups groups."""
    return _functional().group_norm(input, num_groups, weight, bias, eps)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5, cudnn_enabled=True):  # fmt: skip
    """nn.functional.instance_norm of (n, c, ...) over the statistics of each image and channel."""
    return _functional().instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)  # fmt: skip


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of weight (rows, n) by integers of any shape; negative padding_idx is none."""
    return _functional().embedding(weight, indices, None if padding_idx < 0 else padding_idx)


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """nn.functional.binary_cross_entropy_with_logits; reduction: 0, 1, 2 or none, mean, sum."""
    reduction = ("none", "mean", "sum")[reduction] if isinstance(reduction, int) else reduction
    given = {"weight": weight, "pos_weight": pos_weight}
    given = {k: v for k, v in given.items() if v is not None}
    return _functional().binary_cross_entropy_with_logits(
        input, target, reduction=reduction, **given
    )


def constant_pad_nd(input, pad, value=0):
    """A border of one number: pairs (before, after) from the last axis on."""
    return _functional().pad(input, pad, mode="constant", value=value)


def feature_dropout(input, p=0.5, training=True):
    """Zeroes whole channels of (n, c, ...) with probability p."""
    from ..nn.dropouts import _dropped

    x = value(input)
    return _dropped(x if isinstance(x, weft.Tensor) else weft.Tensor(x, requires_grad=False), p, training, None, True)  # fmt: skip


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    """(largest of each window of (n, c, length), their positions in the row)."""
    F = _functional()
    return F.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The convolution (or its transpose) for as many spatial axes as the input has: conv1d, conv2d or conv3d."""
    F, n = _functional(), value(input).ndim - 2
    if transposed:
        return getattr(F, f"conv_transpose{n}d")(input, weight, bias, stride, padding, output_padding, groups, dilation)  # fmt: skip
    return getattr(F, f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


_MODES = ("bilinear", "nearest", "bicubic")
_BORDERS = ("zeros", "border", "reflection")


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """nn.functional.grid_sample with PyTorch's numbers of modes: 0 bilinear, 1 nearest; 0 zeros, 1 border, 2 reflection."""
    F = _functional()
    return F.grid_sample(input, grid, _MODES[interpolation_mode], _BORDERS[padding_mode], align_corners)  # fmt: skip


def affine_grid_generator(theta, size, align_corners):
    """nn.functional.affine_grid."""
    return _functional().affine_grid(theta, size, align_corners)


def _gates(input, hx, w_ih, w_hh, b_ih, b_hh):
    x, h = value(input) @ w_ih.T, value(hx) @ w_hh.T
    return (x if b_ih is None else x + b_ih), (h if b_hh is None else h + b_hh)


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(x w_ih' + h w_hh' + biases): x (n, i), h (n, k), weights (k, i) and (k, k)."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return weft.tanh(a + b)


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """max(0, x w_ih' + h w_hh' + biases)."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    return weft.relu(a + b)


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """(h, c) of one step: x (n, i), hx = (h, c) of (n, k), weights (4 k, i) and (4 k, k); gates input, forget, cell, output."""
    h, c = hx
    a, b = _gates(input, h, w_ih, w_hh, b_ih, b_hh)
    i, f, g, o = weft.split(a + b, a.shape[-1] // 4, -1)
    c = weft.sigmoid(f) * c + weft.sigmoid(i) * weft.tanh(g)
    return weft.sigmoid(o) * weft.tanh(c), c


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """h of one step: x (n, i), hx (n, k), weights (3 k, i) and (3 k, k); gates reset, update, new."""
    a, b = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    n = a.shape[-1] // 3
    (ar, az, an), (br, bz, bn) = weft.split(a, n, -1), weft.split(b, n, -1)
    update = weft.sigmoid(az + bz)
    new = weft.tanh(an + weft.sigmoid(ar + br) * bn)
    return new + update * (hx - new)
