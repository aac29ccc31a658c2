# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: every collective on views (turned round, stepped, repeated, permuted, cut out of the middle), numbers, arrays without elements, truth values
and floats of 8 bits beside NumPy; handles that nobody waits for, or waits for twice. Arguments: device ["sizes": one type of each kind and size]."""

import gc
import sys

import numpy as np

import weft
from weft import distributed as dist

dist.init()
r, n = dist.rank(), dist.size()
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
if device == "cuda":
    device = dist.device().name
WORLD = dist.group.job().world
GLOO = n > 1 and (WORLD.transport(device) or WORLD.host).name == "gloo"
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
TYPES = ("bool", "int8", "uint16", "int32", "uint64", *NARROW, "float32", "float64", "complex64")
if "sizes" in sys.argv:
    TYPES = ("bool", "bfloat16", "float8_e5m2", "int32", "uint64", "complex64")
compared = 0


def drawn(rank, shape, dtype):
    """Numbers that every type holds exactly, as do their sums over a few ranks."""
    draw = np.random.default_rng([rank, len(shape), *shape])
    a = draw.integers(0, 2, shape)
    if dtype == "complex64":
        return (a - 1j * draw.integers(0, 3, shape)).astype(dtype)
    return a.astype("float32" if dtype in NARROW else dtype)


def placed(a, dtype):
    x = weft.asarray(a)
    return (x.astype(getattr(weft, dtype)) if dtype in NARROW else x).to(device)


def host(x):
    x = x.to("cpu")
    return (x.astype(weft.float32) if str(x.dtype) in NARROW else x).numpy()


VIEWS = (
    ("turned round", lambda x: x[::-1]),
    ("stepped", lambda x: x[:, 1::2]),
    ("permuted", lambda x: x.permute((2, 0, 1)) if x.ndim == 3 else x.T),
    ("cut out", lambda x: x[n:, 1:3]),
    ("repeated", lambda x: x[:1].broadcast_to((2 * n, *x.shape[1:]))),
    ("without elements", lambda x: x[:0]),
    ("whole", lambda x: x),
)


def same(got, want, kind, what, near=0.0):
    global compared
    compared += 1
    assert str(got.dtype) == kind, (got.dtype, kind, what)
    assert tuple(got.shape) == want.shape, (got.shape, want.shape, what)
    np.testing.assert_allclose(host(got).astype(want.dtype), want, rtol=near, err_msg=str(what))


def combined(every, op, dtype):
    stack = np.stack(every)
    if op == "mean":
        total = stack.sum(axis=0) / n
        return host(placed(total.astype("float32"), dtype)) if dtype in NARROW else total.astype(stack.dtype)  # fmt: skip
    return {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[op](stack, axis=0).astype(stack.dtype)  # fmt: skip


def operations(dtype):
    if dtype == "complex64":
        return ("sum", "mean")
    if dtype == "uint64" and GLOO:
        return ("sum", "prod")
    return ("sum", "prod", "max", "min", *(("mean",) if "float" in dtype else ()))


def check(dtype, shape):
    every = [drawn(i, shape, dtype) for i in range(n)]
    x = placed(every[r], dtype)
    for name, view in VIEWS:
        numbers = [host(view(placed(a, dtype))) for a in every]
        own = view(x)
        what = dtype, shape, name
        for op in operations(dtype):
            want, near = combined(numbers, op, dtype), 1e-6 if op == "mean" else 0.0
            same(dist.all_reduce(own, op), want, dtype, (*what, op), near)
            if want.shape[0] % n == 0:
                part = want.shape[0] // n
                same(dist.reduce_scatter(own, op), want[r * part : (r + 1) * part], dtype, (*what, op), near)  # fmt: skip
        same(dist.all_gather(own), np.concatenate(numbers), dtype, what)
        same(dist.broadcast(own, n // 2), numbers[n // 2], dtype, what)
        if numbers[0].shape[0] % n == 0:
            part = numbers[0].shape[0] // n
            want = np.concatenate([a[r * part : (r + 1) * part] for a in numbers])
            same(dist.all_to_all(own), want, dtype, what)
        if n > 1:
            work = dist.send(own, (r + 1) % n, async_op=True)
            same(dist.recv(own, (r - 1) % n), numbers[(r - 1) % n], dtype, what)
            assert work.wait() is None and work.wait() is None
        np.testing.assert_array_equal(host(own), numbers[r])  # left alone
    number = placed(np.asarray(every[r].reshape(-1)[0]), dtype)
    firsts = [np.asarray(a.reshape(-1)[0]) for a in every]
    for op in operations(dtype):
        same(
            dist.all_reduce(number, op),
            combined(firsts, op, dtype),
            dtype,
            (dtype, "number", op),
            1e-6,
        )
    same(dist.all_gather(number), np.stack(firsts), dtype, (dtype, "number"))
    same(dist.broadcast(number, n - 1), firsts[n - 1], dtype, (dtype, "number"))


def handles():
    """What nobody waits for is still sent from its own memory, and does not keep the rank from going on or from ending."""
    for size in (3, 5_000, 400_003):
        wanted = []
        for i in range(8):
            x = weft.full((size,), float(r + i)).to(device)
            calls = (dist.all_reduce, dist.all_gather, dist.broadcast)
            wanted.append(calls[i % 3](x, async_op=True))
            calls[(i + 1) % 3](x, async_op=True)  # dropped
        for i in range(8 if n > 1 else 0):  # dropped
            dist.send(weft.full((size,), float(10 * r + i)).to(device), (r + 1) % n, async_op=True)
        gc.collect()
        over = [weft.full((size,), -1.0).to(device) for _ in range(64)]  # over what was freed
        arriving = [dist.recv(over[0], (r - 1) % n, async_op=True) for _ in range(8 if n > 1 else 0)]  # fmt: skip
        for i, work in reversed(list(enumerate(arriving))):
            got = host(work.wait())
            assert (got == 10 * ((r - 1) % n) + i).all(), (size, i, got)
        for i in reversed(range(8)):
            first, second = host(wanted[i].wait()), host(wanted[i].wait())
            want = (
                np.full(size, sum(k + i for k in range(n))),
                np.repeat(np.arange(n) + i, size),
                np.full(size, i),
            )[i % 3]
            assert (first == want).all() and (second == want).all(), (size, i, first, want)
    dist.all_reduce(weft.ones((400_003,)).to(device), async_op=True)  # the last one, too


for dtype in TYPES:
    for shape in ((2 * n, 5), (2 * n, 4, 3)):
        check(dtype, shape)
handles()
print(f"layouts rank {r} of {n}: ok, {compared} comparisons", flush=True)
