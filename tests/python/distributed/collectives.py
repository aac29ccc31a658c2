# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: every collective × type × odd size × layout beside NumPy. Arguments: device [debug]."""

import sys

import numpy as np

import weft
from weft import distributed as dist

dist.init(debug="debug" in sys.argv)
r, n = dist.rank(), dist.size()
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
if device == "cuda":
    device = dist.device().name
GLOO = dist.size() > 1 and dist.group.job().world.transport(device) is None or device == "cpu"
GLOO = GLOO and dist.size() > 1 and dist.group.job().world.host.name == "gloo"
TYPES = (
    "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128 bool"
).split()


def drawn(rank, shape, dtype):
    rng = np.random.default_rng(100 * rank + len(shape))
    a = rng.integers(0, 5, shape)
    if dtype == "bool":
        return a > 2
    if "complex" in dtype:
        return (a + 1j * rng.integers(0, 5, shape)).astype(dtype)
    return a.astype("float32" if dtype == "bfloat16" else dtype)


def host(x):
    return (x.astype(weft.float32) if x.dtype in (weft.bfloat16, weft.float16) else x).numpy()


def combinations(dtype):
    if "complex" in dtype:
        return ["sum", "mean"]
    if dtype == "bool":
        return ["max", "min"]
    if dtype == "uint64" and GLOO:
        return ["sum", "prod"]
    return ["sum", "max", "min", "prod", *(["mean"] if "float" in dtype else [])]


def check(dtype, shape, turned):
    every = [drawn(i, shape, dtype) for i in range(n)]
    x = weft.asarray(every[r])
    x = (x.astype(weft.bfloat16) if dtype == "bfloat16" else x).to(device)
    if turned:
        try:
            x = x.T.copy().T
        except (
            weft.DeviceError
        ) as problem:  # a device without this type's kernels: compact arrays only
            assert problem.code == "array.copy.kernel" and "complex" in dtype, problem
    part = shape[0] // n
    like = host(x)
    for op in combinations(dtype):
        combine = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "mean": np.mean}
        wide = np.float64 if "float" in dtype else every[0].dtype  # rounded once, at the end
        want = (
            combine[op](np.stack(every), axis=0, dtype=wide)
            if op not in ("max", "min")
            else combine[op](np.stack(every), axis=0)
        )
        want = want.astype(every[0].dtype)
        near = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-6) if op in ("mean", "prod") else 0
        got = host(dist.all_reduce(x, op)).astype(want.dtype)
        np.testing.assert_allclose(got, want, rtol=near)
        got = host(dist.reduce_scatter(x, op)).astype(want.dtype)
        np.testing.assert_allclose(got, want[r * part : (r + 1) * part], rtol=near)
    every = [a.astype(like.dtype) for a in every]
    np.testing.assert_array_equal(host(dist.all_gather(x)), np.concatenate(every))
    np.testing.assert_array_equal(host(dist.broadcast(x, n - 1)), every[n - 1])
    got = host(dist.all_to_all(x))
    np.testing.assert_array_equal(
        got, np.concatenate([a[r * part : (r + 1) * part] for a in every])
    )
    np.testing.assert_array_equal(host(x), every[r])
    if n > 1:
        work = dist.send(x, (r + 1) % n, async_op=True)
        got = dist.recv(x, (r - 1) % n)
        work.wait()
        np.testing.assert_array_equal(host(got), every[(r - 1) % n])
        works = (
            [dist.all_reduce(x, "max", async_op=True) for _ in range(3)]
            if not ("complex" in dtype or dtype == "uint64" and GLOO)
            else []
        )
        for work in works[::-1]:
            np.testing.assert_array_equal(host(work.wait()), np.stack(every).max(axis=0))


for dtype in TYPES:
    for shape in ((6 * n,), (n, 3, 5), (2 * n, 7), (n * 1023,), (0,)):
        check(dtype, shape, turned=len(shape) == 2)
dist.barrier()

for op, scale in (("sum", 1.0), ("mean", 1.0 / n)):
    x = weft.Tensor(weft.asarray(np.arange(4 * n, dtype="float32") * (r + 1)).to(device))
    (dist.all_reduce(x, op) ** 2).sum().backward()
    total = sum(i + 1 for i in range(n))
    np.testing.assert_allclose(
        x.grad.numpy(), 2 * np.arange(4 * n) * total * n * scale**2, rtol=1e-5
    )
weight = np.arange(1, n * n * 2 + 1, dtype="float32").reshape(n * n, 2)
x = weft.Tensor(weft.asarray(weight[r * n : (r + 1) * n]).to(device))
(
    dist.all_gather(x) * weft.Tensor(weft.asarray(weight).to(device), requires_grad=False)
).sum().backward()
np.testing.assert_allclose(x.grad.numpy(), n * weight[r * n : (r + 1) * n])
for op, scale in (("sum", 1.0), ("mean", 1.0 / n)):
    x = weft.Tensor(weft.asarray(weight).to(device))
    (dist.reduce_scatter(x, op) * float(r + 1)).sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(),
        scale * np.repeat(np.arange(1, n + 1), n)[:, None] * np.ones((1, 2)),
        rtol=1e-6,
    )
x = weft.Tensor(weft.asarray(weight).to(device))
(dist.all_to_all(x) * float(r + 1)).sum().backward()
np.testing.assert_allclose(
    x.grad.numpy(), np.repeat(np.arange(1, n + 1), n)[:, None] * np.ones((1, 2))
)
x = weft.Tensor(weft.asarray(weight).to(device))
(dist.broadcast(x, 0) * float(r + 1)).sum().backward()
np.testing.assert_allclose(x.grad.numpy(), np.full_like(weight, n * (n + 1) / 2 if r == 0 else 0))
dist.barrier()
print(f"collectives rank {r} of {n}: ok", flush=True)
