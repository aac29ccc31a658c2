# SPDX-License-Identifier: Apache-2.0
"""Random numbers of hosts: drawn from torch's generator, in its order and with its bits.

torch draws them one by one; weft computes a vector of them at a time and leaves the generator in the state in which torch
would have left it. Whether this torch draws as weft does is asked once, by comparison; if not, torch draws.
"""

from __future__ import annotations

import functools

import torch

from ... import _core
from .common import HALVES, Unsupported, array, as_type

_REASON = "random numbers are torch's"


def _drawn(generator, draw, *args):
    """draw(state, *args), and the generator goes on behind the numbers."""
    state = generator.get_state()
    found = draw(_core._from_dlpack(torch._C._to_dlpack(state), None, None), *args)
    generator.set_state(state)
    return found


def _bernoulli_of(generator, shape, p):
    return _drawn(generator, _core._torch_bernoulli, shape, p)


def _uniform_of(generator, shape, dtype):
    return _drawn(generator, _core._torch_uniform, shape, dtype == "float64")


@functools.cache
def _as_torch():
    """Whether numbers, and the state behind them, are those of the torch that is installed."""
    n = (1301,)  # more than the generator holds at once
    kinds = [
        (lambda g: _bernoulli_of(g, n, 0.3), lambda g: torch.empty(n, dtype=torch.bool).bernoulli_(0.3, generator=g)),
        (lambda g: _uniform_of(g, n, "float32"), lambda g: torch.rand(n, generator=g)),
        (lambda g: _uniform_of(g, n, "float64"), lambda g: torch.rand(n, generator=g, dtype=torch.float64)),
    ]  # fmt: skip
    ours, theirs = (torch.Generator().manual_seed(11) for _ in range(2))
    try:
        for mine, their in kinds * 2:
            got, want = torch.from_dlpack(mine(ours)), their(theirs)
            if not torch.equal(got, want) or not torch.equal(ours.get_state(), theirs.get_state()):
                return False
    except (_core.Error, RuntimeError):  # a state of another form
        return False
    return True


def _check(c, generator):
    (made,) = c.values
    if made.device.type != "cpu" or generator is not None or not _as_torch():
        raise Unsupported(_REASON)
    if not made.is_contiguous():
        raise Unsupported("random numbers are drawn in another order than that of the axes")


def _where(found, like):
    """The numbers on the device of the array that they are to be like."""
    return found if like.device.host_accessible else found.to(like.device)


@array("bernoulli.p")
def _bernoulli(c, x, p=0.5, *, generator=None):
    _check(c, generator)
    found = _bernoulli_of(torch.default_generator, c.shape, p)
    return as_type(_where(found, x), c.dtype)


def _uniform(c, x, high, generator):
    _check(c, generator)
    if c.dtype in HALVES:
        raise Unsupported("uniform 16-bit floats")
    found = _where(_uniform_of(torch.default_generator, c.shape, c.dtype), x)
    return found if high == 1 else found * high


@array("rand_like.default")
def _rand_like(c, x, **options):
    return _uniform(c, x, 1, options.get("generator"))


@array("uniform.default")
def _uniform_between(c, x, low=0.0, high=1.0, *, generator=None):
    if low != 0:
        raise Unsupported("uniform numbers from another number than 0 on")
    return _uniform(c, x, high, generator)
