# SPDX-License-Identifier: Apache-2.0
"""Several reductions, maps and results of one shape as one kernel of the host: beside the same composition in NumPy's float64."""

import numpy as np
import pytest

import weft
from weft import _core

RNG = np.random.default_rng(30112026)
TOLERANCE = {"float64": 1e-11, "float32": 3e-5, "bfloat16": 4e-2, "float16": 6e-3}


class Numpy:
    """The functions below over NumPy's arrays, whose results are in one type."""

    exp, log, sqrt, tanh, abs, where = np.exp, np.log, np.sqrt, np.tanh, np.abs, np.where
    sum = staticmethod(lambda x, axis, keepdims=False: np.sum(x, axis=axis, keepdims=keepdims))
    max = staticmethod(lambda x, axis, keepdims=False: np.max(x, axis=axis, keepdims=keepdims))
    min = staticmethod(lambda x, axis, keepdims=False: np.min(x, axis=axis, keepdims=keepdims))
    prod = staticmethod(lambda x, axis, keepdims=False: np.prod(x, axis=axis, keepdims=keepdims))


def _count(x, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    return float(np.prod([x.shape[a] for a in axes]))


def _softmax(m, x, mask, axis):
    x = x * 0.5 + mask
    e = m.exp(x - m.max(x, axis=axis, keepdims=True))
    return (e / m.sum(e, axis=axis, keepdims=True),)


def _norm(m, x, r, axis):
    """With a residual: the sum, the normalised values, mean and deviation."""
    a = x + r
    n = _count(x, axis)
    mean = m.sum(a, axis=axis, keepdims=True) * (1 / n)
    centred = a - mean
    deviation = 1.0 / m.sqrt(m.sum(centred * centred, axis=axis, keepdims=True) * (1 / n) + 0.25)
    return a, centred * deviation * 1.25 + 0.5, mean, deviation


def _norm_backward(m, x, g, axis):
    g = g + x * 0.25
    n = _count(x, axis)
    mean = m.sum(x, axis=axis, keepdims=True) * (1 / n)
    centred = x - mean
    deviation = 1.0 / m.sqrt(m.sum(centred * centred, axis=axis, keepdims=True) * (1 / n) + 0.25)
    normal = centred * deviation
    along = m.sum(g * normal, axis=axis, keepdims=True) * (1 / n)
    dx = deviation * (g - m.sum(g, axis=axis, keepdims=True) * (1 / n) - normal * along)
    return dx, m.sum(g * normal, axis=axis), m.sum(g, axis=axis)


def _extremes(m, x, y, axis):
    """Reductions of many kinds that share what they read; results without the axes."""
    y = y - x * 0.5
    low, high = m.min(x, axis=axis, keepdims=True), m.max(x + y, axis=axis, keepdims=True)
    return (x - low) / (high - low + 3.0), m.max(m.abs(y), axis=axis), m.prod(m.tanh(x) + 1.0, axis=axis)  # fmt: skip


def _maps(m, x, y, axis):
    """Two results of one pass; the second needs the first."""
    z = m.tanh(x * y + 1.0)
    return z * 0.5, m.exp(z * 0.25) - y, m.where(z > 0.0, x, y)


CASES = {"softmax": _softmax, "norm": _norm, "norm's gradient": _norm_backward, "extremes": _extremes, "maps": _maps}  # fmt: skip
#: shape, shape of the second operand, reduced axes
SPACES = [
    ((7, 5), (7, 5), -1),
    ((3, 4, 33), (33,), -1),
    ((2, 3, 17, 129), (2, 1, 17, 129), -1),
    ((2, 3, 19, 64), (1, 1, 19, 1), 3),
    ((2, 5, 3, 41), (2, 5, 1, 41), (2, 3)),
    ((3, 21, 6, 7), (1, 21, 1, 1), (0, 2, 3)),
    ((3, 5, 200), (3, 5, 200), (0, 1)),
    ((67, 131), (67, 1), 0),
    ((4, 300), (4, 300), 1),
    ((9, 2, 18), (9, 1, 18), 1),
    ((1, 1100), (1100,), 1),
    ((5, 1, 40), (5, 1, 40), 1),
]


def _close(got, want, dtype):
    bound = TOLERANCE[dtype] * max(1.0, np.abs(want).max())
    np.testing.assert_allclose(got.astype("float64").numpy(), want, rtol=TOLERANCE[dtype], atol=bound)  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name, space, dtype):
    shape, other, axis = space
    axis = tuple(a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,)))
    x, y = (weft.asarray(RNG.uniform(-1, 1, s)).astype(dtype) for s in (shape, other))
    function = CASES[name]
    compiled = weft.compile(lambda x, y: function(weft, x, y, axis))
    wide = [a.astype("float64").numpy() for a in (x, y)]
    want = function(Numpy, *wide, axis)
    for got, expected in zip(compiled(x, y), want):
        assert got.dtype == dtype and got.shape == expected.shape
        _close(got, expected, dtype)
    # The same of views whose elements lie in another order.
    turned = weft.permute_dims(weft.asarray(np.transpose(wide[0])).astype(dtype), tuple(range(len(shape)))[::-1])  # fmt: skip
    for got, expected in zip(compiled(turned, y), want):
        _close(got, expected, dtype)


@pytest.mark.parametrize("name, kernels", [("softmax", 1), ("norm", 1), ("norm's gradient", 1), ("extremes", 1), ("maps", 1)])  # fmt: skip
def test_one_kernel_for_all_steps(name, kernels):
    x, y = (weft.asarray(RNG.uniform(-1, 1, (6, 4, 257)).astype("float32")) for _ in range(2))
    compiled = weft.compile(lambda x, y: CASES[name](weft, x, y, (2,)))
    compiled(x, y)
    assert compiled.kernels == kernels, compiled.describe()


def test_a_dear_value_is_computed_once_for_several_passes():
    x = weft.asarray(RNG.uniform(-1, 1, (4, 96)).astype("float32"))
    compiled = weft.compile(lambda x: _softmax(weft, x, 0.0, 1)[0])
    compiled(x)
    assert compiled.kernels == 1
    # The sum's pass computes two vectors of exp side by side and keeps them for the quotients, whose pass computes none.
    assert compiled.source().count("call <16 x float> @weft.exp.16.") == 2


def test_rows_of_unequal_layouts_and_square_matrices():
    """Numbers of a row without the reduced axis are read along the other one: they stay apart."""
    x = RNG.uniform(-1, 1, (33, 33)).astype("float32")
    compiled = weft.compile(lambda x: x * 2.0 - weft.sum(x * x, axis=1))
    np.testing.assert_allclose(compiled(weft.asarray(x)).numpy(), x * 2 - (x * x).sum(1), rtol=1e-5, atol=1e-5)  # fmt: skip
    kept = weft.compile(lambda x: x * 2.0 - weft.sum(x * x, axis=0))
    np.testing.assert_allclose(kept(weft.asarray(x)).numpy(), x * 2 - (x * x).sum(0), rtol=1e-5, atol=1e-5)  # fmt: skip
    assert kept.kernels == 1  # along the axis that is left they are the row's own


def test_booleans_and_integers():
    x = RNG.integers(-9, 10, (12, 70)).astype("int32")

    def function(m, x):
        high = m.max(x * 2, axis=1, keepdims=True)
        return (x * 2 == high), m.sum(x * x, axis=1), x * 3 - high

    compiled = weft.compile(lambda x: function(weft, x))
    for got, want in zip(compiled(weft.asarray(x)), function(np, x)):
        np.testing.assert_array_equal(got.numpy(), want)
    anything = weft.compile(lambda x: (weft.any(x > 7, axis=1, keepdims=True) & (x > 0), weft.all(x > -9, axis=1)))  # fmt: skip
    got = anything(weft.asarray(x))
    np.testing.assert_array_equal(got[0].numpy(), (x > 7).any(1, keepdims=True) & (x > 0))
    np.testing.assert_array_equal(got[1].numpy(), (x > -9).all(1))


@pytest.mark.parametrize("shape", [(), (3,), (40, 33)])
def test_reductions_of_no_axes(shape):
    x = RNG.uniform(-1, 1, shape)
    function = lambda m, x: m.sum(m.exp(m.tanh(x) * 0.5) * x + x, axis=())  # noqa: E731
    compiled = weft.compile(lambda x: function(weft, x))
    got = compiled(weft.asarray(x))
    assert got.shape == shape and compiled.source()
    np.testing.assert_allclose(got.numpy(), function(Numpy, x), rtol=1e-12)


def test_infinities_and_nan():
    x = RNG.uniform(-1, 1, (5, 77)).astype("float32")
    x[1, 3], x[2, :], x[3, 70] = np.nan, -np.inf, np.inf
    compiled = weft.compile(lambda x: _softmax(weft, x, 0.0, (1,)))
    with np.errstate(invalid="ignore"):
        want = _softmax(Numpy, x.astype("float64"), 0.0, (1,))[0]
    np.testing.assert_allclose(compiled(weft.asarray(x))[0].numpy(), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", range(40))
def test_random_graphs(case):
    """Graphs of maps and reductions over one space, some results kept, beside float64."""
    rng = np.random.default_rng(7700 + case)
    shape = tuple(int(n) for n in rng.integers(1, 24, rng.integers(1, 4)))
    axes = tuple(a for a in range(len(shape)) if rng.random() < 0.5) or (len(shape) - 1,)
    part = lambda: tuple(1 if rng.random() < 0.3 else n for n in shape)  # noqa: E731
    arrays = [rng.uniform(-1, 1, s) for s in (shape, shape, part(), part())]
    plan = [(int(rng.integers(0, 6)), float(rng.random()), float(rng.random())) for _ in range(int(rng.integers(3, 12)))]  # fmt: skip

    def run(m, *values):
        values = list(values)
        for what, a, b in plan:
            x, y = values[int(a * len(values))], values[int(b * len(values))]
            if what == 0:
                values.append(m.tanh(x + y))
            elif what == 1:
                values.append(x * y - x)
            elif what == 2:
                values.append(m.exp(m.tanh(x)) * 0.5)
            else:
                reduced = (m.sum, m.max, m.min)[what - 3]
                full = x + values[0] * 0.125
                values.append(reduced(full, axis=axes, keepdims=True) * 0.125)
        return tuple(values[4:])

    want = run(Numpy, *arrays)
    got = weft.compile(lambda *v: run(weft, *v))(*map(weft.asarray, arrays))
    for g, w in zip(got, want):
        assert tuple(g.shape) == w.shape
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-10, atol=1e-10)


def test_gradients_of_norms_and_softmax():
    for name in ("softmax", "norm"):
        x, y = (RNG.uniform(-1, 1, s) for s in ((3, 4, 29), (3, 1, 29)))
        function = lambda x, y: CASES[name](weft, x, y, (2,))[-1 if name == "softmax" else 1]  # noqa: B023, E731
        seed = weft.asarray(RNG.uniform(-1, 1, (3, 4, 29)))
        results = []
        for f in (weft.compile(function), function):
            a, b = (weft.Tensor(weft.asarray(v), requires_grad=True) for v in (x, y))
            f(a, b).backward(seed)
            results.append((a.grad.data.numpy(), b.grad.data.numpy()))
        for got, want in zip(*results):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


def test_threads_share_rows():
    x = weft.asarray(RNG.uniform(-1, 1, (513, 300)).astype("float32"))
    compiled = weft.compile(lambda x: _norm(weft, x, 0.25, (1,)))
    before = _core.get_threads()
    try:
        weft.set_threads(1)
        one = [a.numpy() for a in compiled(x)]
        weft.set_threads(3)
        several = [a.numpy() for a in compiled(x)]
    finally:
        weft.set_threads(before)
    for a, b in zip(one, several):
        np.testing.assert_array_equal(a, b)
