# SPDX-License-Identifier: Apache-2.0
"""Element-wise maps on a device with a grid: layouts, activations as one kernel, triangles and resampling, beside NumPy and the host."""

import numpy as np
import pytest
from present import present
import weft
from weft import _core

GRID = "opencl:0"
present(GRID)
F = weft.nn.functional
SEED = 20261123


def device(x):
    return weft.asarray(x, device=GRID)


def _values(shape, dtype):
    x = np.random.default_rng(SEED).standard_normal(shape) * 20
    return x > 0 if dtype == "bool" else x.astype(dtype)


VIEWS = {
    "whole": lambda a: a,
    "reversed": lambda a: a[::-1],
    "every other": lambda a: a[..., ::2],
    "from the second on": lambda a: a[..., 1:],
    "rows apart": lambda a: a[::3],
    "one column": lambda a: a[:, :1],
    "one row": lambda a: a[:1],
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("shape", [(33, 64), (70, 129)])
def test_layouts(dtype, shape):
    x = _values(shape, dtype)
    a = device(x)
    with np.errstate(over="ignore"):
        for name, view in VIEWS.items():
            np.testing.assert_array_equal((view(a) + view(a)).numpy(), view(x) + view(x), name)
        np.testing.assert_array_equal((a + a[:1]).numpy(), x + x[:1])
        np.testing.assert_array_equal((a[:, :1] + a[0]).numpy(), x[:, :1] + x[0])
        np.testing.assert_array_equal((a.T + a.T).numpy(), x.T + x.T)
        square = a[:33, :33]
        np.testing.assert_array_equal((square + square.T).numpy(), x[:33, :33] + x[:33, :33].T)
    wide = weft.zeros((shape[1], shape[0] * 2), dtype="float32", device=GRID)
    wide[:, ::2] = a.T
    want = np.zeros(wide.shape, "float32")
    want[:, ::2] = x.T
    np.testing.assert_array_equal(wide.numpy(), want)


@pytest.mark.parametrize("n", [0, 1, 7, 1023, 70001, (1 << 17) + 8])
def test_sizes_and_unaligned_starts(n):
    x = _values((n + 1,), "float32")
    a = device(x)
    np.testing.assert_array_equal((a[1:] * a[:-1]).numpy(), x[1:] * x[:-1])
    np.testing.assert_array_equal((a[:n] > 0).numpy(), x[:n] > 0)


def test_many_axes_and_many_arrays():
    x = _values((3, 4, 5, 6, 7), "float32")
    a = device(x)
    np.testing.assert_array_equal(
        (a[::2, :, ::-1, 1::2, ::3] * 2).numpy(), x[::2, :, ::-1, 1::2, ::3] * np.float32(2)
    )
    np.testing.assert_array_equal(
        (a[:, :1] + a[:, :, :1, :, :1]).numpy(), x[:, :1] + x[:, :, :1, :, :1]
    )
    parts = [a[:, :, :, i % 6] for i in range(11)]
    f = weft.compile(lambda *p: sum(p[1:], p[0]))
    want = sum(x[:, :, :, i % 6] for i in range(11))
    np.testing.assert_allclose(f(*parts).numpy(), want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("extent", [1, 2, 3, 5, 7, 64, 1000, 46341, 2**20 + 1])
def test_positions_are_divided_exactly(extent):
    """Quotients of positions are products with a reciprocal: rows of any length begin where they should."""
    rows = max(2, min(5, 2**21 // extent))
    x = np.arange(rows * extent, dtype="float32").reshape(rows, extent)
    a = device(x)
    start = device(np.arange(rows, dtype="float32"))[:, None]
    np.testing.assert_array_equal(
        (a + start).numpy(), x + np.arange(rows, dtype="float32")[:, None]
    )


def test_masked_assignment_reads_what_it_writes():
    x = _values((50, 70), "float32")
    mask = x > 3
    for turned in (False, True):
        a, m = device(x), device(mask)
        (a.T if turned else a)[m.T if turned else m] = 7
        want = x.copy()
        want[mask] = 7
        np.testing.assert_array_equal(a.numpy(), want)
    own = device(mask)
    own[own] = False
    assert not own.numpy().any()
    square = device(mask[:, :50])
    square[square.T] = True
    want = mask[:, :50].copy()
    want[mask[:, :50].T] = True
    np.testing.assert_array_equal(square.numpy(), want)


ACTIVATIONS = {
    "gelu": {}, "gelu tanh": {"approximate": "tanh"}, "silu": {}, "leaky_relu": {"slope": 0.2}, "elu": {"alpha": 0.7},
    "softplus": {"beta": 2.0}, "hardtanh": {}, "relu6": {}, "hardsigmoid": {}, "hardswish": {}, "logsigmoid": {}, "mish": {},
    "celu": {"alpha": 1.5}, "selu": {}, "softsign": {}, "softshrink": {}, "tanhshrink": {},
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype, bound", [("float32", 4e-6), ("float16", 2e-3)])
def test_activations_are_one_kernel_and_right(name, dtype, bound):
    f, options = getattr(F, name.split()[0]), ACTIVATIONS[name]
    x = np.random.default_rng(SEED).standard_normal(3001) * 3
    x = np.concatenate([x, [0.0, 1e-4, 30, -30]]).astype(dtype)
    ours = weft.Tensor(device(x), requires_grad=True)
    host = weft.Tensor(weft.asarray(x.astype("float64")), requires_grad=True)
    got, want = f(ours, **options), f(host, **options)
    assert got.dtype == dtype and got.op == name.replace(" ", "_")
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=bound, atol=bound)
    (got * 2.0).sum().backward()
    (want * 2.0).sum().backward()
    small = np.abs(x) < 9  # beyond, 1 - tanh^2 cancels
    np.testing.assert_allclose(
        ours.grad.numpy()[small], host.grad.numpy()[small], rtol=4 * bound, atol=4 * bound
    )


def test_activations_have_gradients_of_gradients():
    x = np.random.default_rng(SEED).standard_normal(40).astype("float32")
    found = []
    for where in (GRID, "cpu"):
        t = weft.Tensor(weft.asarray(x, device=where), requires_grad=True)
        (first,) = (weft.grad(lambda u: F.silu(u).sum())(t),)
        second = weft.grad(lambda u: (weft.grad(lambda v: F.silu(v).sum())(u)).sum())(t)
        found.append((first.numpy(), second.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("where", [GRID, "cpu"])
def test_slopes_at_zero(where):
    for f, slope in ((F.softplus, 0.5), (F.logsigmoid, 0.5), (F.mish, np.tanh(np.log(2)))):
        t = weft.Tensor(weft.zeros((2,), device=where), requires_grad=True)
        f(t).sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), slope, rtol=1e-5)


def test_two_operands_and_what_stays_composed():
    x = np.random.default_rng(SEED).standard_normal((5, 8)).astype("float32")
    host = F.glu(weft.Tensor(weft.asarray(x)))
    np.testing.assert_allclose(F.glu(weft.Tensor(device(x))).numpy(), host.numpy(), rtol=1e-6)
    whole = device(np.arange(-3, 4))
    np.testing.assert_array_equal(F.relu6(whole).numpy(), [0, 0, 0, 0, 1, 2, 3])
    suits = _core.FusedFunction.suits
    assert suits(whole) and not suits(weft.zeros(3)) and not suits(device(x), weft.asarray(x))
    assert suits(device(x), device(x.astype("float16"))) and not suits(device(x[:0]))
    compiled = weft.compile(lambda a: F.gelu(a) * 2.0)
    np.testing.assert_allclose(
        compiled(device(x)).numpy(), (F.gelu(device(x)) * 2.0).numpy(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_triangles(dtype):
    x = _values((3, 9, 6), dtype)
    for k in (-20, -2, 0, 3, 100):
        np.testing.assert_array_equal(weft.tril(device(x), k=k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(weft.triu(device(x), k=k).numpy(), np.triu(x, k))
    assert weft.tril(device(np.zeros((0, 4)))).shape == (0, 4)


@pytest.mark.parametrize("where", [GRID, "cpu"])
def test_enlarging(where):
    x = np.random.default_rng(SEED).standard_normal((2, 3, 5, 7)).astype("float32")
    t = weft.Tensor(weft.asarray(x, device=where), requires_grad=True)
    y = F.interpolate(t, scale_factor=2)
    np.testing.assert_array_equal(y.numpy(), x.repeat(2, 2).repeat(2, 3))
    (y * y).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), 8 * x, rtol=1e-5)
    rows, columns = [i * 5 // 9 for i in range(9)], [i * 7 // 10 for i in range(10)]
    np.testing.assert_array_equal(
        F.interpolate(t, size=(9, 10)).numpy(), x[:, :, rows][:, :, :, columns]
    )
    np.testing.assert_array_equal(F.interpolate(t, scale_factor=(3, 1)).numpy(), x.repeat(3, 2))
    host = weft.Tensor(weft.asarray(x))
    np.testing.assert_allclose(
        F.interpolate(t, size=(3, 4), mode="bilinear").numpy(),
        F.interpolate(host, size=(3, 4), mode="bilinear").numpy(),
        rtol=1e-5, atol=1e-6,
    )  # fmt: skip
