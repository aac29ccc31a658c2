# SPDX-License-Identifier: Apache-2.0
"""Ties, NaN, signed zeros, infinities and denormals through binary operations, reductions and their gradients: values against
NumPy, and the other device against cpu."""

import itertools

import numpy as np
import pytest
import weft

DEVICES = [d for d in ("cpu", "opencl:0") if weft.device(d).available]
NUMBERS = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, 3.4e38, -3.4e38, 2.5],
    "float32",
)
FINITE = NUMBERS[[0, 1, 2, 3, 9, 12]]
PAIRS = [np.array(x, "float32") for x in zip(*itertools.product(NUMBERS, NUMBERS), strict=True)]
EXACT = ["add", "subtract", "multiply", "divide", "copysign", "nextafter"]
UNSIGNED_ZERO = ["maximum", "minimum", "less", "less_equal", "equal", "not_equal", "greater"]
UNARY = (
    "abs acos asin atan cos cosh erf exp expm1 log log1p log2 reciprocal relu rsqrt sigmoid sin sinh sqrt square tan tanh negative"
).split()
BINARY = "add subtract multiply divide maximum minimum pow hypot atan2 logaddexp".split()
REDUCTIONS = "max min sum prod mean logsumexp softmax log_softmax cumulative_sum sort".split()


def same(found, wanted, signs):
    found, wanted = np.asarray(found), np.asarray(wanted)
    equal = (np.isnan(found) & np.isnan(wanted)) | (found == wanted)
    return equal & ((wanted != 0) | (np.signbit(found) == np.signbit(wanted))) if signs else equal


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXACT + UNSIGNED_ZERO)
def test_binary_operations(device, name):
    a, b = PAIRS
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(a, b)
    found = getattr(weft, name)(
        weft.asarray(a, device=device), weft.asarray(b, device=device)
    ).numpy()
    wrong = np.flatnonzero(~same(found, wanted, name in EXACT))
    assert not wrong.size, [(a[i], b[i], found[i], wanted[i]) for i in wrong[:5]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "any", "all"])
@pytest.mark.parametrize("length", [1, 2, 3, 13, 40])
def test_reductions(device, name, length):
    for seed in range(6):
        values = np.random.default_rng(seed).choice(NUMBERS if seed % 2 else FINITE, (length, 5))
        for axis in (0, 1, None):
            found = getattr(weft, name)(weft.asarray(values, device=device), axis=axis).numpy()
            wanted = getattr(np, name)(values, axis=axis)
            assert same(found, wanted, False).all(), (seed, axis, found, wanted)


def derived(device, function, *arrays):
    """The value and the gradients of its sum."""
    given = [weft.Tensor(weft.asarray(a, device=device), requires_grad=True) for a in arrays]
    out = function(*given)
    out.backward(weft.ones(out.shape, device=device))
    return [out.numpy(), *(t.grad.numpy() for t in given)]


def agree(function, *arrays):
    first, *others = (derived(d, function, *arrays) for d in DEVICES)
    for other in others:
        for x, y in zip(first, other, strict=True):
            equal = same(x, y, False) | np.isclose(x, y, rtol=2e-4, atol=1e-6)
            assert equal.all(), (arrays, x, y)


@pytest.mark.skipif(len(DEVICES) < 2, reason="no OpenCL device to compare with")
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_gradients_of_element_wise_operations_agree(name):
    agree(getattr(weft, name), *(PAIRS if name in BINARY else [NUMBERS]))


@pytest.mark.skipif(len(DEVICES) < 2, reason="no OpenCL device to compare with")
@pytest.mark.parametrize("name", REDUCTIONS)
def test_gradients_of_reductions_agree(name):
    # Sums of numbers near the end of the type overflow in one order of addition and not in another.
    several = NUMBERS[np.abs(NUMBERS) != np.float32(3.4e38)]
    for seed in range(6):
        values = np.random.default_rng(seed).choice(several if seed % 2 else FINITE, (7, 6))
        for axis in (0, 1):
            agree(lambda x, axis=axis: getattr(weft, name)(x, axis=axis), values)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_ties(device):
    one = np.array([1.0, 2.0, 2.0, -0.0, 0.0], "float32")
    other = np.array([1.0, 1.0, 3.0, 0.0, 0.0], "float32")
    _, a, b = derived(device, weft.maximum, one, other)
    np.testing.assert_array_equal(
        a + b, np.ones(5, "float32")
    )  # nothing is lost, nothing counted twice
    np.testing.assert_array_equal(a[[1, 2]], [1, 0])
    np.testing.assert_array_equal(a[[0, 3, 4]], [1, 1, 1])  # of equal operands the first gets it
    for name in ("max", "min"):
        _, g = derived(
            device, lambda x, name=name: getattr(weft, name)(x), np.full(4, 3.0, "float32")
        )
        assert abs(g.sum() - 1) < 1e-6, name
