# SPDX-License-Identifier: Apache-2.0
"""Reductions, moments, rows and transposed copies of arrays on a device with a grid, beside NumPy in float64."""

import numpy as np
import pytest
from cover import cover
from present import present
import weft
import weft.nn.functional as F

SEED = 20261122
FLOATS = ["float32", "float64", "float16", "bfloat16"]


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


def _pair(device, shape, dtype, order=None, scale=3.0):
    """An array on the device and its values in float64; `order` permutes the axes of both."""
    rng = np.random.default_rng(SEED)
    value = rng.standard_normal(shape) * scale + 1
    value = np.abs(value) if dtype[0] == "u" else value
    stored = (
        value > 1 if dtype == "bool" else value.astype("float32" if dtype == "bfloat16" else dtype)
    )
    array = weft.asarray(stored, device=device)
    if dtype == "bfloat16":
        array = array.astype(dtype)
        stored = array.astype("float32").numpy()
    if order:
        array, stored = weft.permute_dims(array, order), stored.transpose(order)
    return array, stored.astype("float64")


def _close(got, want, dtype):
    tolerance = {"float16": 2e-2, "bfloat16": 3e-2, "float64": 1e-10}.get(dtype, 3e-4)
    np.testing.assert_allclose(
        got.astype("float64").numpy(), want, rtol=tolerance, atol=tolerance, err_msg=dtype
    )


SHAPES = [
    ((7,), None, None),
    ((1, 1), 0, None),
    ((3, 7, 1003), 1, None),
    ((64, 48), 0, None),
    ((512, 520), 1, None),
    ((512, 520), 0, (1, 0)),
    ((33, 77), None, (1, 0)),
    ((4, 5, 6, 7), (1, 3), (3, 1, 0, 2)),
    ((4, 40000), 1, None),
]


@cover("shape, axis, order", SHAPES, "dtype", FLOATS + ["int32", "bool"])
def test_moments_in_one_pass(device, dtype, shape, axis, order):
    x, value = _pair(device, shape, dtype, order)
    for name, correction in (("mean", None), ("var", 0.0), ("std", 0.0)):
        more = {} if correction is None else {"correction": correction}
        got = getattr(weft, name)(x, axis=axis, keepdims=True, **more)
        want = getattr(value, name)(axis=axis, keepdims=True)
        assert got.shape == want.shape
        _close(got, want, dtype)


@cover("shape, axis, order", SHAPES, "dtype", ["float32", "float64", "bfloat16"])
def test_logsumexp_in_one_pass(device, dtype, shape, axis, order):
    x, value = _pair(device, shape, dtype, order)
    top = value.max()
    _close(weft.logsumexp(x, axis=axis), np.log(np.exp(value - top).sum(axis)) + top, dtype)


def test_moments_of_special_values(device):
    rows = np.array(
        [
            [1, 2, 3, 4],
            [1, np.nan, 3, 4],
            [np.inf, 1, 2, 3],
            [5, 5, 5, 5],
            [1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3],
        ]
    )
    for dtype in ("float32", "float64"):
        x = weft.asarray(rows.astype(dtype), device=device)
        want = rows.var(axis=1)
        want[2] = np.nan  # infinity less itself
        np.testing.assert_allclose(weft.var(x, axis=1).numpy(), want, rtol=1e-5)
        one = weft.asarray(np.array([[3.0]], dtype), device=device)
        assert np.isnan(weft.var(one, correction=1.0).numpy())
        assert weft.var(one).numpy() == 0
    with pytest.raises(weft.Error):
        weft.mean(x, axis=(0, 0))
    with pytest.raises(weft.Error):
        weft.std(x, axis=2)
    empty = weft.zeros((0, 3), dtype="float32", device=device)
    assert np.isnan(weft.mean(empty, axis=0).numpy()).all()


def test_logsumexp_of_infinities(device):
    rows = np.array([[-np.inf] * 8, [-np.inf] * 7 + [1], [np.inf] + [0] * 7, [np.nan] + [0] * 7])
    got = weft.logsumexp(weft.asarray(rows.astype("float32"), device=device), axis=1).numpy()
    np.testing.assert_array_equal(got, np.float32([-np.inf, 1, np.inf, np.nan]))


@cover("shape, axis, order", SHAPES, "dtype", ["float32", "float64", "int8", "bool", "bfloat16"])
def test_reductions_of_any_layout(device, dtype, shape, axis, order):
    x, value = _pair(device, shape, dtype, order)
    _close(weft.max(x, axis=axis), value.max(axis), dtype)
    if dtype != "bfloat16":
        np.testing.assert_allclose(
            weft.sum(x, axis=axis).numpy().astype("float64"), value.sum(axis), rtol=1e-4, atol=1e-3
        )
    np.testing.assert_array_equal(weft.any(x, axis=axis).numpy(), (value != 0).any(axis))


def test_reductions_of_views(device):
    value = np.random.default_rng(SEED).standard_normal((40, 1200)).astype("float32")
    x = weft.asarray(value, device=device)
    for got, want in [
        (x[:, 1:], value[:, 1:]),  # no address of a vector
        (x[:, ::-1], value[:, ::-1]),
        (x[::3, ::5], value[::3, ::5]),
        (weft.broadcast_to(x[:1], (50, 1200)), np.broadcast_to(value[:1], (50, 1200))),
        (weft.broadcast_to(x[:, :1], (40, 300)), np.broadcast_to(value[:, :1], (40, 300))),
    ]:
        for axis in (0, 1, None):
            np.testing.assert_allclose(
                weft.sum(got, axis=axis).numpy(), want.sum(axis), rtol=1e-4, atol=2e-3
            )
            np.testing.assert_allclose(
                weft.var(got, axis=axis).numpy(),
                want.astype("float64").var(axis),
                rtol=1e-4,
                atol=1e-6,
            )


def test_fused_reductions_with_a_broadcast_operand(device):
    value = np.random.default_rng(SEED).standard_normal((96, 256)).astype("float32")
    x = weft.asarray(value, device=device)
    shift = weft.asarray(value[:, :1].copy(), device=device)
    squares = weft.compile(lambda a, b: ((a - b) * (a - b)).sum(1))
    want = ((value - value[:, :1]).astype("float64") ** 2).sum(1)
    np.testing.assert_allclose(squares(x, shift).numpy(), want, rtol=1e-4)


PERMUTED = [
    ((300, 407), (1, 0)),
    ((5, 130, 200), (0, 2, 1)),
    ((130, 6, 200), (1, 2, 0)),
    ((130, 5, 200), (2, 1, 0)),
    ((70000, 3), (1, 0)),
]


@cover("shape, order", PERMUTED, "dtype", ["float32", "float64", "float16", "uint8", "bool"])
def test_transposed_operands(device, dtype, shape, order):
    rng = np.random.default_rng(SEED)
    base = (rng.random(shape) * 9).astype(dtype)
    turned, value = (
        weft.permute_dims(weft.asarray(base, device=device), order),
        base.transpose(order),
    )
    other = (rng.random(value.shape) * 9).astype(dtype)
    straight = weft.asarray(other, device=device)
    mask = rng.random(value.shape) > 0.5
    np.testing.assert_array_equal(weft.asarray(turned, copy=True).numpy(), value)
    np.testing.assert_array_equal(turned.astype("float32").numpy(), value.astype("float32"))
    np.testing.assert_array_equal(weft.maximum(turned, straight).numpy(), np.maximum(value, other))
    chosen = weft.where(weft.asarray(mask, device=device), turned, straight)
    np.testing.assert_array_equal(chosen.numpy(), np.where(mask, value, other))
    same = weft.where(turned != 0, turned, turned)  # all operands in one layout
    np.testing.assert_array_equal(same.numpy(), value)


ROWS = [(1, 1), (5, 3), (300, 64), (33, 77), (4, 5, 1000), (3, 8192), (2, 20000)]


@cover("shape", ROWS, "dtype", FLOATS)
def test_rows(device, dtype, shape):
    x, value = _pair(device, shape, dtype)
    top = np.exp(value - value.max(-1, keepdims=True))
    want = top / top.sum(-1, keepdims=True)
    _close(weft.softmax(x, axis=-1), want, dtype)
    _close(weft.log_softmax(x, axis=-1), np.log(want), dtype)
    centred = value - value.mean(-1, keepdims=True)
    norm = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    _close(F.layer_norm(weft.Tensor(x), shape[-1:]).data, norm, dtype)


@pytest.mark.parametrize("dtype, bound", [("float32", 2e-5), ("float64", 1e-10)])
def test_rows_that_are_no_multiples_of_a_vector(device, dtype, bound):
    rng = np.random.default_rng(7)
    for shape, axis, cut in (((5, 97, 94), 1, 2), ((300, 94), 1, 0), ((420, 330), None, 2)):
        x = rng.standard_normal(shape).astype(dtype)[..., cut:]
        w = weft.asarray(rng.standard_normal(shape).astype(dtype), device=device)
        w[..., cut:] = weft.asarray(x, device=device)
        w = w[..., cut:]
        np.testing.assert_allclose(
            weft.var(w, axis=axis).numpy(), x.astype("float64").var(axis), rtol=bound
        )
        np.testing.assert_array_equal(weft.argmax(w, axis=axis).numpy(), x.argmax(axis))


def test_the_variance_of_much_float64_takes_two_passes(device):
    x = np.random.default_rng(8).standard_normal((700, 401)) * 1e-3 + 1e6
    w = weft.asarray(x, device=device)
    for axis in (0, 1, None):
        np.testing.assert_allclose(weft.var(w, axis=axis).numpy(), x.var(axis), rtol=1e-6)
        got = weft.std(w, axis=axis, correction=1, keepdims=True).numpy()
        np.testing.assert_allclose(got, x.std(axis, ddof=1, keepdims=True), rtol=1e-6)
    x[3, 5] = np.nan
    got = weft.var(weft.asarray(x, device=device), axis=1).numpy()
    assert np.isnan(got[3]) and np.isfinite(np.delete(got, 3)).all()
