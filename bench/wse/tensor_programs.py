# SPDX-License-Identifier: Apache-2.0
"""Cycles of tensor programs on the wafer beside the hand-written CSL programs of this repository.

    .venv/bin/python bench/wse/tensor_programs.py [CLASS...]

Each row runs both on the simulator and checks both results. Cycles are those of the launches, the copies between
host and PEs apart. Ratio: hand-written cycles / ours, above 1 where the lowered program is faster."""

import pathlib
import sys
import tempfile

import numpy as np

import weft
from weft import te, wse

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/targets/wse/programs"
rng = np.random.default_rng(0)


def lowered(tensors, target, arrays, want, near=1e-3, last=False):
    """Cycles of the launches (`last`: of the last stage's), and with the copies of a first call."""
    module = weft.build(te.create_prim_func(tensors), target=target)
    device = weft.device(target)
    held = [weft.asarray(a, device=device) for a in arrays]
    out = weft.zeros(want.shape, dtype=str(want.dtype), device=device)
    module["main"](*held, out)
    np.testing.assert_allclose(out.numpy().astype("f8"), want, rtol=near, atol=near)
    stats = device.stats()
    stages = [v for k, v in stats.items() if k.startswith("cycles.stage") and k != "cycles.stages"]
    return stages[-1] if last else sum(stages), stats["fabric.cycles"]


class Hand:
    """A compiled CSL program on a runtime."""

    def __init__(self, layout, pes, rows_of_pes, arch, **params):
        self.folder = tempfile.TemporaryDirectory()
        self.width, self.height = width, height = pes, rows_of_pes
        wse.compile_csl(
            str(layout),
            self.folder.name + "/out",
            arch=arch,
            fabric_dims=(width + 7, height + 2),
            fabric_offsets=(4, 1),
            params=params,
            memcpy=True,
        )
        self.runner = wse.SdkRuntime(self.folder.name + "/out")
        self.runner.load()
        self.runner.run()

    def put(self, name, values, n):
        r = self.runner
        values = np.ascontiguousarray(values, np.float32).ravel()
        r.memcpy_h2d(r.get_id(name), values, 0, 0, self.width, self.height, n)

    def get(self, name, n, width=None):
        r = self.runner
        out = np.zeros((width or self.width) * self.height * n, np.float32)
        r.memcpy_d2h(out, r.get_id(name), 0, 0, width or self.width, self.height, n)
        return out

    def launch(self, *what):
        before = self.runner.cycles()
        self.runner.launch(*what)
        return self.runner.cycles() - before


def gemm(arch, p, m, dtype="float32"):
    n = p * m
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis(n, name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    a, b = (rng.standard_normal((n, n)).astype(dtype) for _ in range(2))
    ours = lowered([A, B, C], f"wse:{p}x{p},arch={arch}", [a, b], (a.astype("f8") @ b).astype(dtype),
                   1e-3 if dtype == "float32" else 0.5)  # fmt: skip
    if dtype != "float32":
        return ours, None
    hand = Hand(PROGRAMS / "summa/src/layout.csl", p, p, arch, P=p, Mt=m, Kt=m, Nt=m)
    tiles = lambda v: v.reshape(p, m, p, m).transpose(0, 2, 3, 1)  # noqa: E731
    hand.put("A", tiles(a), m * m)
    hand.put("B", tiles(b), m * m)
    cycles = hand.launch("main")
    got = hand.get("C", m * m).reshape(p, p, m, m).transpose(0, 3, 1, 2).reshape(n, n)
    np.testing.assert_allclose(got, a @ b, rtol=1e-3, atol=1e-3)
    return ours, cycles


def gemv(arch, width, rows, cols):
    n = width * cols
    A, x = te.placeholder((rows, n), name="A"), te.placeholder((n,), name="x")
    k = te.reduce_axis(n, name="k")
    y = te.compute((rows,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
    a, v = rng.standard_normal((rows, n), np.float32), rng.standard_normal(n, np.float32)
    ours = lowered([A, x, y], f"wse:{width}x1,arch={arch}", [a, v], a @ v)
    hand = Hand(ROOT / "examples/wse/gemv/layout.csl", width, 1, arch, width=width, rows=rows, cols=cols)  # fmt: skip
    hand.put("A", a.T, rows * cols)
    hand.put("x", v, cols)
    hand.put("y", np.zeros((width, rows)), rows)
    cycles = hand.launch("multiply")
    np.testing.assert_allclose(hand.get("y", rows, 1), a @ v, rtol=1e-3, atol=1e-3)
    return ours, cycles


def allreduce(arch, width, n):
    A = te.placeholder((n, width), name="A")
    k = te.reduce_axis(width, name="k")
    S = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="S")
    T = te.compute((n, width), lambda i, w: S[i] + te.const(0, "float32"), name="T")
    a = rng.standard_normal((n, width), np.float32)
    want = np.repeat(a.sum(1)[:, None], width, 1)
    ours = lowered([A, T], f"wse:{width}x1,arch={arch}", [a], want)
    hand = Hand(PROGRAMS / "allreduce/layout.csl", width, 1, arch, W=width, N=n)
    hand.put("v", a.T, n)
    cycles = hand.launch("go", np.uint16(1))
    np.testing.assert_allclose(hand.get("total", n).reshape(width, n), want.T, rtol=1e-3, atol=1e-3)
    return ours, cycles


def stencil(arch, p, z, on_wafer=False):
    """Seven points of a p x p x z grid, a column of z on each PE; `on_wafer`: the grid is a first stage's result, so that
    the borders come from the neighbours as in the hand-written program, and only the second stage counts."""
    X = te.placeholder((p + 2, p + 2, z + 2), name="X")
    c = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    near = [(0, 0, 1, 0), (0, 0, -1, 0), (0, -1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1), (0, 0, 0, -1)]

    def point(i, j, k):
        e = X[i + 1, j + 1, k + 1] * te.const(c[6], "float32")
        for w, (_, di, dj, dk) in zip(c, near):
            e = e + X[i + 1 + di, j + 1 + dj, k + 1 + dk] * te.const(w, "float32")
        return e

    Y = te.compute((p, p, z), point, name="Y")
    if on_wafer:
        X = te.placeholder((p, p, z), name="X")
        S = te.compute((p, p, z), lambda i, j, k: X[i, j, k] + te.const(0, "float32"), name="S")

        def inside(i, j, k):
            e = S[i, j, k] * te.const(c[6], "float32")
            for w, (_, di, dj, dk) in zip(c, near):
                here = [
                    x + d >= 0 if d < 0 else x + d < n
                    for x, d, n in zip((i, j, k), (di, dj, dk), (p, p, z))
                    if d
                ]
                e = e + te.if_then_else(
                    here[0], S[i + di, j + dj, k + dk], te.const(0, "float32")
                ) * te.const(w, "float32")
            return e

        Y = te.compute((p, p, z), inside, name="Y")
    x = np.zeros((p + 2, p + 2, z + 2), np.float32)
    x[1:-1, 1:-1, 1:-1] = rng.standard_normal((p, p, z), np.float32)
    want = x[1:-1, 1:-1, 1:-1] * c[6]
    for w, (_, di, dj, dk) in zip(c, near):
        want = want + x[1 + di : 1 + di + p, 1 + dj : 1 + dj + p, 1 + dk : 1 + dk + z] * w
    given = x[1:-1, 1:-1, 1:-1].copy() if on_wafer else x
    ours = lowered([X, Y], f"wse:{p}x{p},arch={arch}", [given], want.astype("f4"), last=on_wafer)
    hand = Hand(PROGRAMS / "stencil/src/layout.csl", p, p, arch, width=p, height=p, MAX_ZDIM=z + 1, BLOCK_SIZE=z)  # fmt: skip
    hand.put("coeff", np.tile(np.float32(c), (p, p, 1)), 7)
    hand.put("x", x[1:-1, 1:-1, 1:], z + 1)
    hand.launch("f_enable_timer")
    cycles = hand.launch("f_spmv", np.int16(z))
    got = hand.get("y", z + 1).reshape(p, p, z + 1)[..., :z]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    return ours, cycles


def fft(arch, rows, n):
    """Decimation in frequency by the self-sorting steps, real and imaginary parts as the last dimension."""
    import math

    X = te.placeholder((rows, n, 2), name="X")
    steps = int(math.log2(n))
    W = te.placeholder((n // 2, 2), name="W")  # e^(-2 pi i k / n)
    at = X
    for s in range(steps):  # [row, j, digits..., part]: digits of what is done, j of what is left
        half = n >> (s + 1)
        digits = s
        shape = (rows, half) + (2,) * (digits + 1) + (2,)

        def step(*i, at=at, half=half, s=s):
            r, j, bit, part = i[0], i[1], i[2], i[-1]
            rest = i[3:-1]
            a = lambda p: at[(r, j) + tuple(rest) + (p,)]  # noqa: E731
            b = lambda p: at[(r, j + half) + tuple(rest) + (p,)]  # noqa: E731
            w = lambda p: W[j << s, p]  # noqa: E731
            dr, di = a(0) - b(0), a(1) - b(1)
            plus = a(part) + b(part)
            turned = te.if_then_else(
                part < 1, dr * W[j * (1 << s), 0] - di * W[j * (1 << s), 1],
                dr * W[j * (1 << s), 1] + di * W[j * (1 << s), 0])  # fmt: skip
            return te.if_then_else(bit < 1, plus, turned)

        at = te.compute(shape, step, name=f"F{s}")
    x = rng.standard_normal((rows, n, 2)).astype("f4")
    z = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=1)
    want = np.stack([z.real, z.imag], -1).astype("f4")
    # Frequency f = sum of bits: the first step decides the lowest.
    want = want.reshape((rows, 1) + (2,) * steps + (2,))
    k = np.arange(n // 2)
    w = np.stack([np.cos(2 * np.pi * k / n), -np.sin(2 * np.pi * k / n)], -1).astype("f4")
    ours = lowered([X, W, at], f"wse:1x{rows},arch={arch}", [x, w], want)
    hand = Hand(PROGRAMS / "fft/layout.csl", rows, 1, arch, N=n, DIM=rows)
    hand.put("X", x, 2 * n)
    cycles = hand.launch("f_fft", np.bool_(False))
    np.testing.assert_allclose(hand.get("X", 2 * n).reshape(want.shape[0], n, 2), np.stack([z.real, z.imag], -1), rtol=1e-3, atol=1e-3)  # fmt: skip
    return ours, cycles


def attention(arch, p, length, width):
    """One token's head: scores of `length` keys, softmax, the weighted sum of values."""
    q, K, V = te.placeholder((width,), name="q"), te.placeholder((length, width), name="K"), te.placeholder((length, width), name="V")  # fmt: skip
    d, t, u, m = (te.reduce_axis(e, name=n) for n, e in (("d", width), ("t", length), ("u", length), ("m", length)))  # fmt: skip
    S = te.compute((length,), lambda i: te.sum(K[i, d] * q[d], axis=d), name="S")
    M = te.compute((1,), lambda o: te.max(S[m], axis=m), name="M")
    E = te.compute((length,), lambda i: te.exp(S[i] - M[0]), name="E")
    Z = te.compute((1,), lambda o: te.sum(E[u], axis=u), name="Z")
    O = te.compute((width,), lambda j: te.sum(E[t] * V[t, j], axis=t), name="O")
    Y = te.compute((width,), lambda j: O[j] / Z[0], name="Y")
    a = [
        rng.standard_normal(s).astype("f4") * 0.3
        for s in ((width,), (length, width), (length, width))
    ]
    s = a[1] @ a[0]
    e = np.exp(s - s.max())
    return lowered([q, K, V, Y], f"wse:{p}x{p},arch={arch}", a, (e @ a[2]) / e.sum()), None


ROWS = {
    "gemm": [(gemm, 4, 8), (gemm, 8, 14), (gemm, 8, 14, "float16"), (gemm, 16, 8)],
    "gemv": [(gemv, 8, 32, 16), (gemv, 8, 64, 64)],
    "reduction": [(allreduce, 8, 64), (allreduce, 32, 256)],
    "stencil": [
        (stencil, 4, 32),
        (stencil, 8, 128),
        (stencil, 4, 32, True),
        (stencil, 8, 128, True),
    ],
    "fft": [(fft, 4, 16), (fft, 8, 64)],
    "attention": [(attention, 4, 64, 32)],
}


def main():
    wanted = sys.argv[1:] or list(ROWS)
    print("| program | machine | cycles of the stages | hand-written | ratio | with copies |")
    print("|---|---|---|---|---|---|")
    for name in wanted:
        for fn, *sizes in ROWS[name]:
            for arch in ("wse2", "wse3"):
                (stages, total), hand = fn(arch, *sizes)
                ratio = f"{hand / stages:.2f}" if hand else ""
                what = f"{fn.__name__} {' '.join(map(str, sizes))}"
                print(
                    f"| {what} | {arch} | {stages:,} | {hand or 0:,} | {ratio} | {total:,} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
