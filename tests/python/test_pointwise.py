# SPDX-License-Identifier: Apache-2.0
"""Compositions that run a chunk at a time (_pointwise.py, chunked.cpp), beside float64 formulas of NumPy."""

import math

import numpy as np
import pytest
from present import present

import weft

F = weft.nn.functional


def _sigmoid(v):
    return 1 / (1 + np.exp(-v))


def _log1pexp(v):
    return np.log1p(np.exp(-np.abs(v))) + np.maximum(v, 0)


FORMULAS = {
    "silu": lambda v: v * _sigmoid(v),
    "elu": lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0))),
    "leaky_relu": lambda v: np.where(v > 0, v, 0.01 * v),
    "hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6,
    "hardsigmoid": lambda v: np.clip(v + 3, 0, 6) / 6,
    "softplus": _log1pexp,
    "logsigmoid": lambda v: -_log1pexp(-v),
    "mish": lambda v: v * np.tanh(_log1pexp(v)),
    "celu": lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0))),
    "softsign": lambda v: v / (1 + np.abs(v)),
    "tanhshrink": lambda v: v - np.tanh(v),
    "gelu": lambda v: v * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(v / math.sqrt(2))),
}
TOLERANCE = {"float32": 2e-6, "float64": 1e-12, "bfloat16": 8e-3, "float16": 2e-3}
SHAPES = [(), (0,), (1,), (7,), (1023,), (1025,), (3, 5, 7), (40, 1000)]


def _close(got, want, dtype, scale=1.0):
    assert got.dtype == dtype and got.shape == want.shape
    np.testing.assert_allclose(
        got.astype("float64").numpy(), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", FORMULAS)
def test_functions(name, dtype):
    rng = np.random.default_rng(11)
    for shape in SHAPES:
        x = weft.asarray(rng.standard_normal(shape) * 3).astype(dtype)
        want = np.asarray(FORMULAS[name](x.astype("float64").numpy()))
        _close(getattr(F, name)(x), want, dtype, 4)
        out = getattr(F, name)(weft.Tensor(x, requires_grad=False))
        assert isinstance(out, weft.Tensor) and not out.requires_grad
        _close(out.data, want, dtype, 4)


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients(name):
    v = np.random.default_rng(5).standard_normal((37, 53)) * 2
    x = weft.Tensor(v, dtype="float64", requires_grad=True)
    getattr(F, name)(x).sum().backward()
    step = 1e-6
    want = (FORMULAS[name](v + step) - FORMULAS[name](v - step)) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), want, atol=1e-6)


@pytest.mark.parametrize("where", ["cpu", "opencl"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mish_far_from_zero(dtype, where):
    """Every digit of small results, no overflow of large ones, and slopes that have both signs."""
    if where == "opencl":
        where = present("opencl")
    v = np.concatenate([np.linspace(-80, 80, 1601), [0.0, -0.0, 1e4, -1e4, 1e-30, -1e-30]])
    x = weft.Tensor(weft.asarray(v.astype(dtype), device=where), requires_grad=True)
    v = v.astype(dtype).astype("longdouble")
    inverse = 1 / (1 + np.exp(-np.abs(v)))  # of exp(-|x|) alone
    e = np.exp(-np.abs(v))
    tanh = np.where(v < 0, e * (e + 2) / (e * (e + 2) + 2), (1 + 2 * e) / (1 + 2 * e + 2 * e * e))
    slope = tanh + v * (1 - tanh * tanh) * np.where(v < 0, e, 1) * inverse
    y = F.mish(x)
    bound = 3e-6 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(y.numpy(), (v * tanh).astype(dtype), rtol=bound, atol=0)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slope.astype(dtype), rtol=bound, atol=bound)


def test_layouts():
    a = np.random.default_rng(7).standard_normal((60, 71)).astype("float32")
    w = weft.asarray(a)
    for x, v in (
        (w.T, a.T),
        (w[::2, 1::3], a[::2, 1::3]),
        (w[:1].broadcast_to((60, 71)), np.broadcast_to(a[:1], (60, 71))),
        (w[:, :1].broadcast_to((60, 71)), np.broadcast_to(a[:, :1], (60, 71))),
        (w[::-1, ::-1], a[::-1, ::-1]),
    ):
        _close(F.silu(x), FORMULAS["silu"](v.astype("float64")), "float32", 4)


def test_threads_change_no_bit():
    x = weft.asarray(np.random.default_rng(2).standard_normal(200_001).astype("float32"))
    t = weft.Tensor(x, requires_grad=False)
    before, found = weft.get_threads(), []
    try:
        for threads in (1, 2, 8):
            weft.set_threads(threads)
            found.append((F.gelu(x).numpy().tobytes(), float(F.mse_loss(t, t * 0.5))))
    finally:
        weft.set_threads(before)
    assert found[0] == found[1] == found[2]


def test_numbers_that_are_no_keys_twice():
    x = weft.asarray([-1.0, 2.0])
    for slope in (0.5, float("nan"), float("nan"), 0.25):
        want = np.array([-slope, 2.0], "float32")
        np.testing.assert_allclose(F.leaky_relu(x, slope).numpy(), want)
    for k in range(300):  # more numbers than programs are kept for
        assert F.leaky_relu(x, k / 7).tolist()[1] == 2.0


def test_integers_and_not_a_number():
    assert F.leaky_relu(weft.asarray([3, -4]), 2).tolist() == [3, -8]
    x = weft.asarray([float("nan"), float("inf"), -float("inf"), -0.0])
    got = F.elu(x).tolist()
    assert math.isnan(got[0]) and got[1:3] == [math.inf, -1.0]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_losses(reduction, dtype):
    rng = np.random.default_rng(8)
    for shape in ((1,), (33, 1025)):
        x, y = (weft.asarray(rng.random(shape) + 0.1).astype(dtype) for _ in range(2))
        a, b = (v.astype("float64").numpy() for v in (x, y))
        d = np.abs(a - b)
        cases = {
            "mse_loss": d * d,
            "l1_loss": d,
            "smooth_l1_loss": np.where(d < 1, d * d / 2, d - 0.5),
            "binary_cross_entropy_with_logits": np.maximum(a, 0) - a * b + np.log1p(np.exp(-a)),
            "kl_div": b * (np.log(b) - a),
        }
        for name, want in cases.items():
            want = want if reduction == "none" else getattr(want, reduction)()
            t = weft.Tensor(x, requires_grad=False)
            got = getattr(F, name)(t, weft.Tensor(y, requires_grad=False), reduction=reduction)
            _close(got.data, np.asarray(want), dtype, 2)


def test_gradients_of_broadcast_operands():
    rng = np.random.default_rng(4)
    v, w, b = rng.standard_normal((4, 6, 5, 5)), rng.standard_normal(6), rng.standard_normal(6)
    mean, var = rng.standard_normal(6), rng.random(6) + 0.5
    x, scale, shift = (weft.Tensor(a, dtype="float64", requires_grad=True) for a in (v, w, b))
    out = F.batch_norm(
        x, weft.asarray(mean), weft.asarray(var), scale, shift
    )  # one product and one sum
    seed = rng.standard_normal(v.shape)
    (out * weft.Tensor(seed, dtype="float64", requires_grad=False)).sum().backward()
    along = (None, slice(None), None, None)
    normal = (v - mean[along]) / np.sqrt(var + 1e-5)[along]
    np.testing.assert_allclose(out.data.numpy(), normal * w[along] + b[along], atol=1e-12)
    np.testing.assert_allclose(scale.grad.numpy(), (seed * normal).sum((0, 2, 3)), rtol=1e-9)
    np.testing.assert_allclose(shift.grad.numpy(), seed.sum((0, 2, 3)), rtol=1e-9)
    np.testing.assert_allclose(x.grad.numpy(), seed * (w / np.sqrt(var + 1e-5))[along], atol=1e-12)


def test_gelu_keeps_its_digits_below_zero():
    """Of float32; beside the complementary error function of float64. 1 + erf has no digits left at -5."""
    x = np.concatenate([np.linspace(-8, 8, 40001), [-np.inf, np.inf, np.nan, 0.0, -0.0]]).astype(
        "float32"
    )
    want = np.array(
        [v * math.erfc(-v / math.sqrt(2)) / 2 if abs(v) < 9 else v for v in x.astype("float64")]
    )
    want[x == -np.inf] = np.nan  # as PyTorch has it
    got = weft.gelu(weft.asarray(x)).numpy()
    assert np.array_equal(np.isnan(got), np.isnan(want)) and got[x == np.inf] == np.inf
    some = np.isfinite(x)
    error = np.abs(np.where(some, got, 0).astype("float64") - np.where(some, want, 0))
    assert error[some].max() < 4e-7
    near = (x > -5) & (x < 0)
    assert (error[near] / np.abs(want[near])).max() < 2e-5
    assert np.array_equal(np.signbit(got[x == 0]), np.signbit(x[x == 0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_elu_of_positive_numbers_is_a_copy(dtype):
    """Chunks of positive numbers are copied, others are computed; both give the same numbers."""
    rng = np.random.default_rng(8)
    x = rng.random(5000).astype(dtype) + np.asarray(0.1, dtype)
    for at, value in (
        (None, 0.0),
        (1500, -0.5),
        (4999, -2.0),
        (63, 0.0),
        (64, -0.0),
        (2048, np.nan),
        (3, np.inf),
    ):
        y = x.copy()
        if at is not None:
            y[at] = value
        want = np.where(y > 0, y, np.expm1(np.minimum(y, 0)) * np.asarray(0.7, dtype))
        got = F.elu(weft.asarray(y), 0.7).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert np.array_equal(got[y > 0], y[y > 0])


def test_third_derivative():
    v = np.array([-2.0, -1.5, -0.3, 0.4, 1.0, 2.5])
    x = weft.Tensor(v, dtype="float64", requires_grad=True)
    g = F.softplus(x)
    for _ in range(3):
        (g,) = weft._core.gradients([g.sum()], [x], True)
    s = _sigmoid(v)
    np.testing.assert_allclose(g.data.numpy(), s * (1 - s) * (1 - 2 * s), atol=1e-12)


def test_parameters_of_layers_learn():
    rng = np.random.default_rng(6)
    layer = weft.nn.GroupNorm(2, 4, dtype="float64")
    x = weft.Tensor(rng.standard_normal((3, 4, 5)), dtype="float64", requires_grad=False)
    layer(x).sum().backward()
    rows = x.data.numpy().reshape(3, 2, -1)
    normal = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    want = normal.reshape(3, 4, 5).sum((0, 2))
    np.testing.assert_allclose(layer.weight.grad.numpy(), want, atol=1e-10)
    assert layer.bias.grad.tolist() == [15.0] * 4


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "shape, axis", [((37, 400), 1), ((6, 9, 130), 2), ((6, 130, 9), 1), ((4, 66), 1)]
)
def test_parts_of_longer_rows_are_read_where_they_lie(shape, axis, dtype):
    rng = np.random.default_rng(31)
    x = weft.asarray(rng.standard_normal(shape)).astype(dtype)
    F = weft.nn.functional
    wide = x.astype("float64").numpy()
    first, gate = np.split(wide, 2, axis)
    tolerance = {"float32": 1e-6, "float64": 1e-12, "bfloat16": 1e-2, "float16": 2e-3}[dtype]
    t = weft.Tensor(x, requires_grad=True)
    out = F.glu(t, axis)
    sigmoid = 1 / (1 + np.exp(-gate))
    assert out.shape == first.shape and out.dtype == x.dtype
    np.testing.assert_allclose(
        out.data.astype("float64").numpy(), first * sigmoid, rtol=tolerance, atol=tolerance
    )
    out.sum().backward()
    want = np.concatenate([sigmoid, first * sigmoid * (1 - sigmoid)], axis)
    np.testing.assert_allclose(
        t.grad.data.astype("float64").numpy(), want, rtol=2 * tolerance, atol=tolerance
    )
    # The same bits as of copies, beside one number for all and one for each row.
    a, b = (weft.Tensor(p) for p in x.split(shape[axis] // 2, axis))
    one = weft.Tensor(weft.asarray(0.5).astype(dtype).broadcast_to(a.shape))
    each = weft.Tensor(a.data[..., :1].broadcast_to(a.shape))
    for other in (b, one, each):
        got = F.smooth_l1_loss(a, other, reduction="none").data
        same = F.smooth_l1_loss(
            weft.Tensor(a.data.copy()), weft.Tensor(other.data.copy()), reduction="none"
        ).data
        np.testing.assert_array_equal(got.astype("float64").numpy(), same.astype("float64").numpy())
