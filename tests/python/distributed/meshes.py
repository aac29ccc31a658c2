# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: operations on sharded arrays beside NumPy, for all combinations of placements. Arguments: device."""

import itertools
import sys

import numpy as np

import weft
from weft import distributed as dist
from weft import te

dist.init()
r, n = dist.rank(), dist.size()
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
if device == "cuda":
    device = dist.device().name
target = device.split(":")[0]
S, R, P = dist.Shard, dist.Replicate(), dist.Partial()
RNG = np.random.default_rng(2)
count = 0


def placed(a, mesh, places):
    """The array with these placements; Partial sums are random numbers that add up to it."""
    whole = weft.asarray(a.astype("float32")).to(device)
    firm = [p if isinstance(p, S) else R for p in places]
    out = dist.shard(whole, mesh, firm)
    for i, p in enumerate(places):
        if p != P:
            continue
        # Equal on ranks that hold the same part so far.
        at = [c if j == i or out.placements[j] != R else -1 for j, c in enumerate(mesh.coordinates)]
        seed = np.random.default_rng([c + 1 for c in at])
        noise = seed.standard_normal(out.local.shape).astype("float32")
        noise = weft.asarray(noise).to(device)
        extra = noise - dist.all_reduce(noise, "mean", mesh.group(i))
        out = dist.ShardedArray(
            out.local / mesh.shape[i] + extra, mesh, [P if j <= i and places[j] == P else q for j, q in enumerate(firm)], a.shape
        )  # fmt: skip
    return out


def same(got, want):
    global count
    count += 1
    assert tuple(got.shape) == want.shape, (got, want.shape)
    np.testing.assert_allclose(got.full().numpy(), want, rtol=2e-4, atol=2e-4, err_msg=repr(got))


def places_of(mesh, ndim):
    one = [*(S(i) for i in range(ndim)), R, P]
    return list(itertools.product(one, repeat=len(mesh.shape)))


def gemm(a, b):
    (m, k), (_, j) = a, b
    x, y = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, j), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    z = te.compute((m, j), lambda p, q: te.sum(x[p, axis] * y[axis, q], axis=axis), name="C")
    return te.create_prim_func([x, y, z])


def softplus(a):
    x = te.placeholder(a, "float32", name="A")
    y = te.compute(a, lambda p, q: te.log(te.exp(x[p, q]) + 1.0), name="B")
    return te.create_prim_func([x, y])


def check(mesh, unit):
    a, b = RNG.standard_normal((4 * unit, 2 * unit)), RNG.standard_normal((2 * unit, 3 * unit))
    c, row = RNG.standard_normal((4 * unit, 2 * unit)), RNG.standard_normal((1, 2 * unit))
    program = dist.MeshProgram(gemm, "ik,kj->ij", target=target)
    pointwise = dist.MeshProgram(softplus, "ij->ij", target=target, linear=False)
    every = places_of(mesh, 2)
    for p in every:
        x = placed(a, mesh, p)
        for q in every:
            y = placed(b, mesh, q)
            product = x @ y
            same(product, a @ b)
            same(dist.einsum("ik,kj->ji", x, y), (a @ b).T)
            if len(mesh.shape) == 1 or (every.index(p) + every.index(q)) % 3 == 0:
                same(program(x, y), a @ b)
            z = placed(c, mesh, q)
            same(x + z, a + c)
            same(x - z, a - c)
            same(x * z, a * c)
            same(z.redistribute(p), c)
        for q in places_of(mesh, 2) if len(mesh.shape) == 1 else [(R, P), (S(1), R), (P, S(1))]:
            if S(0) not in q:
                same(x + placed(row, mesh, q), a + row)
                same(x * placed(row, mesh, q), a * row)
        same(dist.elementwise(weft.exp, x), np.exp(a))
        same(pointwise(x), np.log1p(np.exp(a)))
        same(2.0 - x / 3.0, 2 - a / 3)
        for name in ("sum", "mean", "max", "min", "prod"):
            for axis in (None, 0, 1, (0, 1), -1):
                for keep in (False, True):
                    want = getattr(np, name)(a, axis=axis, keepdims=keep)
                    same(getattr(x, name)(axis, keep), np.asarray(want))


check(dist.Mesh((n,), ("model",)), n)
if n % 2 == 0:
    check(dist.Mesh((2, n // 2), ("data", "model")), n)
mesh = dist.Mesh((n,))
batch = RNG.standard_normal((n, 3, 2 * n))
for p in places_of(mesh, 3):
    for q in places_of(mesh, 3):
        got = dist.einsum("bik,bjk->bij", placed(batch, mesh, p), placed(batch, mesh, q)) if S(1) not in (*p, *q) else None  # fmt: skip
        if got is not None:
            same(got, np.einsum("bik,bjk->bij", batch, batch))
odd = weft.asarray(np.ones((3 * n, 3 * n + 1), "float32")).to(device)
x = dist.shard(odd, mesh, [S(0)])  # the other axis cannot be shared evenly
same(x @ dist.shard(odd[: 3 * n + 1].T, mesh, [R]), (odd @ odd.T).numpy())
dist.barrier()
print(f"meshes rank {r} of {n}: ok, {count} comparisons", flush=True)
