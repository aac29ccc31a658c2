# SPDX-License-Identifier: Apache-2.0
"""Tensor programs of te at sizes that divide nothing, on wafers of several shapes, beside NumPy."""

import importlib.util
import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
weft = pytest.importorskip("weft")
from present import wafer  # noqa: E402

wafer()
from weft import te  # noqa: E402

TARGETS = ["wse:4x4", "wse:8x8,arch=wse3", "wse:4x4,arch=wse3", "wse:8x8", "wse:3x5,arch=wse3"]


def run(tensors, target, arrays, shape):
    module = weft.build(te.create_prim_func(tensors), target=target)
    device = weft.device(target)
    out = weft.zeros(shape, device=device)
    module["main"](*[weft.asarray(a, device=device) for a in arrays], out)
    return out.numpy()


def gemm(target, rng):
    m, n, k = (int(v) for v in rng.integers(1, 42, 3))
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    x = te.reduce_axis(k, name="x")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, x] * B[x, j], axis=x), name="C")
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    return run([A, B, C], target, [a, b], (m, n)), a.astype("f8") @ b


def gemv(target, rng):
    m, k = (int(v) for v in rng.integers(1, 90, 2))
    A, x = te.placeholder((m, k), name="A"), te.placeholder((k,), name="x")
    r = te.reduce_axis(k, name="r")
    y = te.compute((m,), lambda i: te.sum(A[i, r] * x[r], axis=r), name="y")
    a, v = rng.standard_normal((m, k), np.float32), rng.standard_normal(k, np.float32)
    return run([A, x, y], target, [a, v], (m,)), a.astype("f8") @ v


def stencil(target, rng):
    h, w, d = (int(v) for v in rng.integers(3, 23, 3))
    X = te.placeholder((h, w, d), name="X")
    inner = te.compute((h, w, d), lambda i, j, k: X[i, j, k] * te.const(0.5, "float32"), name="S")

    def at(i, j, k, di, dj):
        return te.if_then_else(
            te.all(i + di >= 0, i + di < h, j + dj >= 0, j + dj < w),
            inner[i + di, j + dj, k],
            te.const(0, "float32"),
        )

    Y = te.compute(
        (h, w, d),
        lambda i, j, k: at(i, j, k, -1, 0) + at(i, j, k, 1, 0) + at(i, j, k, 0, -1)
        + at(i, j, k, 0, 1) - inner[i, j, k] * te.const(4, "float32"),
        name="Y",
    )  # fmt: skip
    x = rng.standard_normal((h, w, d), np.float32)
    p = np.pad(x * 0.5, ((1, 1), (1, 1), (0, 0)))
    want = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * p[1:-1, 1:-1]
    return run([X, Y], target, [x], (h, w, d)), want


def fourier(target, rng):
    """A transform of any length as products with the matrix of its roots, real and imaginary parts apart."""
    rows, n = int(rng.integers(1, 9)), int(rng.integers(2, 30))
    X = te.placeholder((rows, n), name="X")
    W = te.placeholder((2, n, n), name="W")
    k = te.reduce_axis(n, name="k")
    F = te.compute((2, rows, n), lambda p, r, f: te.sum(X[r, k] * W[p, k, f], axis=k), name="F")
    x = rng.standard_normal((rows, n), np.float32)
    roots = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    w = np.stack([roots.real, roots.imag]).astype("f4")
    z = np.fft.fft(x, axis=1)
    return run([X, W, F], target, [x, w], (2, rows, n)), np.stack([z.real, z.imag])


def reduction(target, rng):
    m, n = (int(v) for v in rng.integers(1, 120, 2))
    A = te.placeholder((m, n), name="A")
    k, q = te.reduce_axis(n, name="k"), te.reduce_axis(m, name="q")
    S = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="S")
    T = te.compute((1,), lambda o: te.sum(S[q], axis=q), name="T")
    a = rng.standard_normal((m, n), np.float32)
    return run([A, T], target, [a], (1,)), a.max(1).sum(dtype="f8")[None]


def attention(target, rng):
    length, width = (int(v) for v in rng.integers(2, 70, 2))
    q = te.placeholder((width,), name="q")
    K, V = te.placeholder((length, width), name="K"), te.placeholder((length, width), name="V")
    d, t, u, m = (
        te.reduce_axis(e, name=n)
        for n, e in (("d", width), ("t", length), ("u", length), ("m", length))
    )
    S = te.compute((length,), lambda i: te.sum(K[i, d] * q[d], axis=d), name="S")
    M = te.compute((1,), lambda o: te.max(S[m], axis=m), name="M")
    E = te.compute((length,), lambda i: te.exp(S[i] - M[0]), name="E")
    Z = te.compute((1,), lambda o: te.sum(E[u], axis=u), name="Z")
    R = te.compute((width,), lambda j: te.sum(E[t] * V[t, j], axis=t), name="R")
    Y = te.compute((width,), lambda j: R[j] / Z[0], name="Y")
    shapes = ((width,), (length, width), (length, width))
    a = [rng.standard_normal(s).astype("f4") * 0.3 for s in shapes]
    s = a[1].astype("f8") @ a[0]
    e = np.exp(s - s.max())
    return run([q, K, V, Y], target, a, (width,)), (e @ a[2]) / e.sum()


@pytest.mark.parametrize("program", [gemm, gemv, stencil, fourier, reduction, attention])
@pytest.mark.parametrize("target", TARGETS)
def test_odd_sizes(program, target):
    rng = np.random.default_rng([len(target), TARGETS.index(target)])
    for _ in range(2):
        got, want = program(target, rng)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("target", ["wse:4x4", "wse:8x8,arch=wse3"])
def test_a_decode_step_of_an_odd_model(target):
    """A Llama block whose width, heads and hidden size divide by nothing that the wafer has."""
    path = ROOT / "examples/wse/llama_decode.py"
    spec = importlib.util.spec_from_file_location("llama_decode", path)
    llama = importlib.util.module_from_spec(spec)
    sys.modules["llama_decode"] = llama
    spec.loader.exec_module(llama)
    shape = llama.Shape(width=30, heads=5, key_heads=1, head=6, hidden=47, context=13)
    error, _, source = llama.run_block(shape, target)
    assert error < 5e-3 and source.count("fn stage") > 20
