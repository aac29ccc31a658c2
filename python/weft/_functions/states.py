# SPDX-License-Identifier: Apache-2.0
"""PyTorch's switches and questions about a process: gradients, threads, the default generator; and small functions of tensors."""

from __future__ import annotations

import contextlib

import weft

from .._core import shown
from .. import _core
from .._core import Tensor
from .common import plain, refused, value
from .draws import default_generator, fork_rng, get_rng_state, initial_seed, set_rng_state  # noqa: F401


class set_grad_enabled(contextlib.ContextDecorator):
    """Turns the recording of gradients of this thread on or off at once; with `with` only inside."""

    def __init__(self, mode):
        self._before = _core.set_grad_enabled(bool(mode))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _core.set_grad_enabled(self._before)


def inference_mode(mode=True):
    """As no_grad: with weft.inference_mode(): ..., or a decorator. With mode=False nothing changes."""
    if callable(mode):
        return weft.no_grad()(mode)
    return weft.no_grad() if mode else contextlib.nullcontext()


def is_grad_enabled():
    """Do operations of this thread make a graph?"""
    return bool(_core.grad_enabled())


def is_inference_mode_enabled():
    """Do operations of this thread make no graph?"""
    return not _core.grad_enabled()


def is_inference(x):
    """Was it made without a graph?"""
    return not getattr(value(x), "requires_grad", False)


def is_anomaly_enabled():
    """False: there is no such mode; weft.isnan(x).any() finds NaN."""
    return False


def is_distributed(x):
    """Is it spread over devices? Arrays and tensors of one device are not."""
    return False


def is_storage(x):
    """Is it the memory under arrays?"""
    return type(x).__name__ == "StorageHandle"


def is_same_size(a, b):
    """Have both the same shape?"""
    return tuple(value(a).shape) == tuple(value(b).shape)


def is_nonzero(x):
    """Is the only element not zero? Raises ArgumentError for more than one."""
    x = plain(x)
    if x.size != 1:
        raise refused("array.is_nonzero.size", f"is_nonzero of {x.size} elements", "one element")
    return bool(x.reshape(()) != 0)


def detach(x):
    """The values without the graph."""
    return value(x).detach()


def get_device(x):
    """The number of the card that it lies on, -1 on the host."""
    name = value(x).device.name
    return int(name.partition(":")[2] or 0) if name.partition(":")[0] in ("cuda", "opencl", "metal") else -1  # fmt: skip


def seed():
    """Restarts the default generator from chance; gives the seed."""
    return default_generator.seed()


def get_num_threads():
    """How many threads the host computes with."""
    return weft.get_threads()


def set_num_threads(n):
    """How many threads the host computes with, from 1 on."""
    weft.set_threads(n)


get_num_interop_threads = get_num_threads


def set_num_interop_threads(n):
    """Nothing to set: operations of one thread run one after another."""
    if int(n) < 1:
        raise refused("array.threads", f"{n} threads", "numbers from 1 on")


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Sums in one order on every device, also where a faster way has none: weft.use_deterministic for the rest of the process."""
    _core._set_deterministic(bool(mode))


def are_deterministic_algorithms_enabled():
    """Is the order of all sums fixed?"""
    return weft.is_deterministic()


def get_float32_matmul_precision():
    """ "highest": products of float32 are computed in float32."""
    return "highest"


def set_float32_matmul_precision(precision):
    """Products of float32 are computed in float32, whichever of "highest", "high" and "medium" is allowed."""
    if precision not in ("highest", "high", "medium"):
        raise refused("array.precision", f"precision {shown(precision)}", "highest, high or medium")


def empty_strided(size, stride, *, dtype=None, device=None, requires_grad=False):
    """A tensor of unset elements with these steps between its elements."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise refused(
            "array.empty_strided", f"size {size} with steps {stride}", "a step for each extent"
        )
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    flat = weft.empty((count,), dtype=dtype, device=device)
    return Tensor(weft.as_strided(flat, size, stride) if count else weft.empty(size, dtype=dtype, device=device), requires_grad=requires_grad)  # fmt: skip


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False):
    """A tensor of one number without axes."""
    data = weft.asarray(s, dtype=dtype or weft.asarray(0.0).dtype, device=device)
    return Tensor(data, requires_grad=requires_grad)


def randint_like(x, low, high=None, *, dtype=None, device=None):
    """Integers in [low, high), or [0, low), with the shape, type and device of x."""
    x = plain(x)
    low, high = (0, low) if high is None else (low, high)
    out = weft.random.integers(low, high, tuple(x.shape), device=device or x.device)
    return out.astype(dtype or x.dtype)


def range(start, end=None, step=1, *, dtype=None, device=None):
    """Numbers from start to end, both included; floats. arange leaves the end out."""
    start, end = (0, start) if end is None else (start, end)
    count = int((end - start) / step + 1e-9) + 1
    if count < 1:
        raise refused("array.range.step", f"a range from {start} to {end} by {step}", "a step towards the end")  # fmt: skip
    kind = dtype or weft.asarray(0.0).dtype
    return (weft.arange(count, device=device).astype("float64") * step + start).astype(kind)


def rsub(x, other, *, alpha=1):
    """other - alpha * x."""
    return other - value(x) * alpha


def unsafe_chunk(x, chunks, dim=0):
    """As chunk."""
    return weft.chunk(x, chunks, dim)


def unsafe_split(x, split_size, dim=0):
    """As split."""
    return weft.split(x, split_size, dim)


def unsafe_split_with_sizes(x, split_sizes, dim=0):
    """As split_with_sizes."""
    return weft.split_with_sizes(x, split_sizes, dim)
