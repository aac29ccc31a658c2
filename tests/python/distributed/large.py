# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: combinations of arrays so large that ranks exchange pieces, beside NumPy: odd sizes, several under way, between messages of the program."""

import numpy as np

import weft
from weft import distributed as dist
from weft.distributed.collectives import reduce_together

dist.init()
r, n = dist.rank(), dist.size()


def drawn(rank, size, dtype, seed=0):
    a = np.random.default_rng([rank, size, seed]).integers(-4, 5, size)
    if "complex" in dtype:
        return (a + 1j * a[::-1]).astype(dtype)
    return a.astype(dtype)


def want(size, dtype, op, seed=0):
    every = np.stack([drawn(i, size, dtype, seed) for i in range(n)])
    if op == "mean":
        return every.mean(0).astype(dtype)
    combine = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}[op]
    return combine(every, axis=0).astype(dtype)


def near(got, expected):
    got = np.asarray(got)
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


for dtype in ("float32", "float64", "int8", "int64", "uint16", "complex64"):
    for size in (n * (64 << 10) + 1, 600_011):
        x = weft.asarray(drawn(r, size, dtype))
        for op in ("sum",) if "complex" in dtype else ("sum", "max", "min", "prod"):
            near(dist.all_reduce(x, op).numpy(), want(size, dtype, op))
        if "float" in dtype or "complex" in dtype:
            near(dist.all_reduce(x, "mean").numpy(), want(size, dtype, "mean"))
        np.testing.assert_array_equal(x.numpy(), drawn(r, size, dtype))  # left alone

share = 100_001
x = weft.asarray(drawn(r, n * share, "float32"))
for op in ("sum", "mean", "max"):
    near(dist.reduce_scatter(x, op).numpy(), want(n * share, "float32", op)[r * share : (r + 1) * share])  # fmt: skip

# Several under way are finished in another order on each rank, and messages of the program pass between them.
sizes = (300_001, 1_000_003, 64, 700_000)
works = [dist.all_reduce(weft.asarray(drawn(r, s, "float32", 1)), async_op=True) for s in sizes]
token = weft.asarray([float(r)])
arriving = dist.recv(token, (r - 1) % n, async_op=True) if n > 1 else None
if n > 1:
    dist.send(token, (r + 1) % n)
    assert float(arriving.wait()[0]) == (r - 1) % n
for i in sorted(range(len(sizes)), key=lambda i: (i + r) % len(sizes)):
    near(works[i].wait().numpy(), want(sizes[i], "float32", "sum", 1))

# Arrays of many shapes where they lie: cut points inside, between and beyond them.
shapes = [(3, 50_001), (1,), (7, 11, 13), (0, 4), (200_000,), (5,)]
given = [weft.asarray(drawn(r, int(np.prod(s)), "float32", i).reshape(s)) for i, s in enumerate(shapes)]  # fmt: skip
for op in ("mean", "sum", "max"):
    found = reduce_together(given, op, dist.group.job().world).wait()
    for i, (f, s) in enumerate(zip(found, shapes)):
        near(f.numpy(), want(int(np.prod(s)), "float32", op, i).reshape(s))

# NaN of any rank reaches all.
x = weft.asarray(np.full(200_000 * n, np.nan if r == n - 1 else 1.0, "float32"))
for op in ("max", "min", "sum", "mean"):
    assert bool(weft.all(weft.isnan(dist.all_reduce(x, op))))
print("ok", r)
