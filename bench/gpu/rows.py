# SPDX-License-Identifier: Apache-2.0
"""Activations, row kernels, reductions, maps and gathers of arrays on a CUDA card beside PyTorch in the same run:
bench/gpu/rows.py [TEXT ...] runs the rows whose names contain one of the texts.

Results are compared before they are timed; figures are the better of two medians of five samples of calls with one
synchronisation at the end. "first" is the first call, building its kernels included.
"""

import math
import statistics
import sys
import time

import numpy as np
import torch
import weft

DEVICE = weft.device("cuda:0")
F, TF = weft.nn.functional, torch.nn.functional
ONLY = sys.argv[1:]
RATIOS = []


def draw(*shape, dtype="float32"):
    kind = getattr(torch, dtype)
    if dtype.startswith("int"):
        return torch.randint(-100, 100, shape, device="cuda", dtype=kind)
    if dtype == "bool":
        return torch.rand(shape, device="cuda") > 0.5
    return (torch.randn(shape, device="cuda", dtype=torch.float64) * 1.5).to(kind)


def seconds(f, sync, number):
    samples = []
    for _ in range(5):
        sync()
        start = time.perf_counter()
        for _ in range(number):
            f()
        sync()
        samples.append((time.perf_counter() - start) / number)
    return statistics.median(samples)


def on_host(x):
    if isinstance(x, torch.Tensor):
        return (x.float() if x.dtype == torch.bfloat16 else x).detach().cpu().numpy()
    x = x.data if isinstance(x, weft.Tensor) else x
    return (x.astype("float32") if x.dtype == "bfloat16" else x).numpy()


def difference(got, want, bound):
    got, want = on_host(got), on_host(want)
    if got.shape != want.shape:
        return f" SHAPE {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        return "" if np.array_equal(got, want) else f" WRONG {(got != want).sum()}"
    wide = "complex128" if want.dtype.kind == "c" else "float64"
    got, want = got.astype(wide), want.astype(wide)
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return " NaN at other places"
    size = np.sqrt(np.nanmean(np.abs(want) ** 2)) + 1e-30
    error = float(np.nanmax(np.abs(got - want) / (np.abs(want) + size)))
    return "" if error <= bound else f" WRONG {error:.1e}"


def row(name, ours, theirs, bound=1e-5, check=True):
    if ONLY and not any(text in name for text in ONLY):
        return
    start = time.perf_counter()
    got = ours()
    DEVICE.synchronize()
    first = time.perf_counter() - start
    wrong = difference(got, theirs(), bound) if check else ""
    quick = seconds(theirs, torch.cuda.synchronize, 3)
    number = max(5, min(300, int(2e-2 / max(5e-6, quick))))
    a = min(seconds(ours, DEVICE.synchronize, number) for _ in range(2))
    b = min(seconds(theirs, torch.cuda.synchronize, number) for _ in range(2))
    RATIOS.append(b / a)
    print(
        f"{name:44s} weft {a * 1e6:9.1f} torch {b * 1e6:9.1f} us ratio {b / a:6.2f} first {first * 1e3:5.0f} ms{wrong}",
        flush=True,
    )


ACTIVATIONS = "gelu silu elu leaky_relu softplus hardswish mish sigmoid tanh logsigmoid relu selu hardsigmoid softsign celu"


def activations(dtype, bound):
    x = draw(4096, 1024, dtype=dtype)
    a = weft.Tensor(weft.from_dlpack(x))
    for name in ACTIVATIONS.split():
        row(f"{name} {dtype}", lambda: getattr(F, name)(a), lambda: getattr(TF, name)(x), bound)
    large = draw(10**7, dtype=dtype)
    b = weft.Tensor(weft.from_dlpack(large))
    row(f"gelu 1e7 {dtype}", lambda: F.gelu(b), lambda: TF.gelu(large), bound)
    image = draw(32, 32, 56, 56, dtype=dtype)
    c = weft.Tensor(weft.from_dlpack(image))
    for mode in ("nearest", "bilinear"):
        row(
            f"interpolate {mode} {dtype}",
            lambda: F.interpolate(c, scale_factor=2, mode=mode),
            lambda: TF.interpolate(image, scale_factor=2, mode=mode),
            5e-2 if dtype == "bfloat16" else 1e-5,
        )


def row_kernels(dtype, bound):
    for shape in ((4096, 1024), (4096, 10000), (2000, 16384), (128, 10**6), (100_000, 64)):
        y, s, t = (
            draw(*shape, dtype=dtype),
            draw(shape[1], dtype=dtype),
            draw(shape[1], dtype=dtype),
        )
        b, p, q = (weft.Tensor(weft.from_dlpack(v)) for v in (y, s, t))
        n, name = (shape[1],), f"{shape} {dtype}"
        row(f"softmax {name}", lambda: F.softmax(b), lambda: TF.softmax(y, -1), bound)
        row(f"log_softmax {name}", lambda: F.log_softmax(b), lambda: TF.log_softmax(y, -1), bound)
        row(
            f"layer_norm {name}",
            lambda: F.layer_norm(b, n, p, q),
            lambda: TF.layer_norm(y, n, s, t),
            bound,
        )
        row(
            f"logsumexp {name}",
            lambda: weft.logsumexp(b.data, axis=1),
            lambda: torch.logsumexp(y, 1),
            bound,
        )
    f = weft.compile(lambda v: v.log_softmax(-1))
    y = draw(4096, 10000, dtype=dtype)
    b = weft.Tensor(weft.from_dlpack(y))
    row(f"compiled log_softmax {dtype}", lambda: f(b), lambda: TF.log_softmax(y, -1), bound)


def reductions():
    for shape, axis in (
        ((64, 397, 394), 1), ((16, 20, 31250), 1), ((3163, 3163), 0), ((3163, 3163), None), ((65536, 1024), 1),
        ((65536, 1024), 0), ((10**7,), None), ((156_250, 64), 1), ((10**6, 3), 1), ((10**6, 3), 0), ((1000,), None),
    ):  # fmt: skip
        for dtype in ("float32", "bfloat16", "float64", "int32"):
            x = draw(*shape, dtype=dtype)
            a, along = weft.from_dlpack(x), {} if axis is None else {"dim": axis}
            name, bound = f"{shape} {axis} {dtype}", 2e-2 if dtype == "bfloat16" else 1e-4
            row(f"sum {name}", lambda: weft.sum(a, axis=axis), lambda: x.sum(**along), bound)
            row(f"max {name}", lambda: weft.max(a, axis=axis), lambda: x.amax(**along))
            row(
                f"argmax {name}",
                lambda: weft.argmax(a, axis=axis),
                lambda: x.argmax(**along),
                check=False,
            )
            if dtype == "float32":
                row(
                    f"var {name}",
                    lambda: weft.var(a, axis=axis),
                    lambda: x.var(correction=0, **along),
                    bound,
                )
    for dtype in ("float32", "float64", "int32"):
        x = draw(3163, 3163, dtype=dtype)
        a = weft.from_dlpack(x)
        row(f"sum of x.T {dtype}", lambda: weft.sum(a.T), lambda: x.T.sum(), 1e-3)
        row(f"max of x.T {dtype}", lambda: weft.max(a.T), lambda: x.T.amax())


def maps(dtype, bound):
    n = 10**7
    x, y, mask = draw(n, dtype=dtype), draw(n, dtype=dtype), draw(n, dtype="bool")
    a, b, m = (weft.from_dlpack(v) for v in (x, y, mask))
    row(f"add {dtype}", lambda: a + b, lambda: x + y, bound)
    odd, even = x[: 3161 * 3163].reshape(3161, 3163), x[: 3000 * 3200].reshape(3000, 3200)
    o, e = weft.from_dlpack(odd), weft.from_dlpack(even)
    row(f"add odd row {dtype}", lambda: o + o[0], lambda: odd + odd[0], bound)
    row(f"add row {dtype}", lambda: e + e[0], lambda: even + even[0], bound)
    row(f"add column {dtype}", lambda: e + e[:, :1], lambda: even + even[:, :1], bound)
    row(f"x[1:] + y {dtype}", lambda: a[1:] + b[:-1], lambda: x[1:] + y[:-1], bound)
    row(
        f"x + x.T {dtype}",
        lambda: e[:, :3000] + e[:, :3000].T,
        lambda: even[:, :3000] + even[:, :3000].T,
        bound,
    )
    row(f"maximum {dtype}", lambda: weft.maximum(a, b), lambda: torch.maximum(x, y))
    row(f"x > y {dtype}", lambda: a > b, lambda: x > y)
    row(f"where {dtype}", lambda: weft.where(m, a, b), lambda: torch.where(mask, x, y))
    row(f"x.T copy {dtype}", lambda: e.T.copy(), lambda: even.T.contiguous())
    row(
        f"x.T to float16 {dtype}",
        lambda: e.T.astype("float16"),
        lambda: even.T.half().contiguous(),
        1e-2,
    )
    row(f"tril {dtype}", lambda: weft.tril(o), lambda: torch.tril(odd))
    if dtype == "int32":
        return
    for name in "exp tanh erf log sigmoid".split():
        row(
            f"{name} {dtype}",
            lambda: getattr(weft, name)(a),
            lambda: getattr(torch, name)(x),
            bound,
        )
    for name in ("floor_divide", "remainder"):
        row(
            f"{name} {dtype}",
            lambda: getattr(weft, name)(a, b),
            lambda: getattr(torch, name)(x, y),
            check=False,
        )


def moving():
    table, index = draw(50257, 256), torch.randint(0, 50257, (8, 512), device="cuda")
    t, i = weft.Tensor(weft.from_dlpack(table)), weft.from_dlpack(index)
    row("embedding", lambda: F.embedding(t, i), lambda: TF.embedding(index, table))
    for n in (10**3, 10**7):
        x, at = draw(10**7), torch.randint(0, 10**7, (n,), device="cuda")
        a, j = weft.from_dlpack(x), weft.from_dlpack(at)
        row(f"x[index] {n}", lambda: a[j], lambda: x[at])
    mask, y = draw(3163, 3163, dtype="bool"), draw(3163, 3163)
    m, b = weft.from_dlpack(mask), weft.from_dlpack(y.clone())

    def clear(x, where):
        x[where] = 0
        return x

    row("x[mask] = 0", lambda: clear(b, m), lambda: clear(y, mask))
    row("x.T[mask] = 0", lambda: clear(b.T, m), lambda: clear(y.T, mask))


for kind, limit in (("float32", 1e-4), ("bfloat16", 2e-2)):
    activations(kind, limit)
    row_kernels(kind, limit)
reductions()
for kind in ("float32", "bfloat16", "float64", "int32"):
    maps(kind, 2e-2 if kind == "bfloat16" else 1e-4)
moving()
if RATIOS:
    mean = math.exp(sum(map(math.log, RATIOS)) / len(RATIOS))
    print(f"{len(RATIOS)} rows, geometric mean {mean:.2f}, least {min(RATIOS):.2f}")
