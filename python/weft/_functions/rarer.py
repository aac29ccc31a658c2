# SPDX-License-Identifier: Apache-2.0
"""PyTorch's and NumPy's names in the main namespace of functions that stand elsewhere here."""

from __future__ import annotations

import weft

from .common import plain, real, refused, value


def i0(x):
    """The modified Bessel function of order 0: weft.special.i0."""
    return weft.special.i0(real(x))


def polygamma(n, x):
    """The n-th derivative of digamma: weft.special.polygamma."""
    return weft.special.polygamma(n, real(x))


def igamma(x, other):
    """The regularised lower incomplete gamma function: weft.special.gammainc."""
    return weft.special.gammainc(real(x), real(other))


def igammac(x, other):
    """The regularised upper incomplete gamma function: weft.special.gammaincc."""
    return weft.special.gammaincc(real(x), real(other))


def rms_norm(x, normalized_shape, weight=None, eps=None):
    """weft.nn.functional.rms_norm."""
    return weft.nn.functional.rms_norm(value(x), normalized_shape, weight, eps)


def binomial(count, prob, generator=None):
    """How many of `count` tries succeed with probability `prob`, element by element, in the counts' type."""
    count, prob = plain(real(count)), plain(real(prob))
    shape = weft.broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    if count.size and bool(weft.any((count < 0) | (count != weft.floor(count)))):
        raise refused("random.binomial.range", "binomial of counts that are negative or no whole numbers", "whole numbers from 0 on")  # fmt: skip
    count, prob = weft.broadcast_to(count, shape), weft.broadcast_to(prob, shape)
    most = int(weft.max(count)) if count.size else 0
    found = weft.zeros(shape, dtype=count.dtype, device=count.device)
    # One draw for each number of tries that occurs.
    for n in sorted({int(c) for c in count.reshape(-1).tolist()}) if most else ():
        drawn = weft.random.binomial(n, prob, shape, device=count.device).astype(count.dtype)
        found = weft.where(count == n, drawn, found)
    return found


def get_default_device():
    """The device of arrays that are made without naming one."""
    return weft.zeros(()).device


def set_default_device(device):
    """Arrays that are made without naming a device are made on this one from now on, in the whole process; None: on the host."""
    from .. import _core

    name = getattr(device, "name", device)
    _core.set_default_device("cpu" if name is None else name)
