# SPDX-License-Identifier: Apache-2.0
"""Fused kernels of the host whose operands repeat along the last axis, at extents around those of a vector."""

import math

import numpy as np
import pytest

import weft

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 17, 20, 23, 28, 31, 33, 36, 47, 49, 64, 67]


def drawn(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def normalised(x, mean, variance, gain, bias):
    return (x - mean) * (1.0 / weft.sqrt(variance + 0.25) * gain) + bias


@pytest.mark.parametrize("extent", EXTENTS)
def test_numbers_of_a_row(extent):
    """A number of each row, of each column, of all elements, and what is computed of them alone."""
    x = drawn(0, 3, 5, extent)
    rows, columns, one = drawn(1, 1, 5, 1), drawn(2, 1, 1, extent), drawn(3, 1, 1, 1)

    def f(x, rows, columns, one):
        return weft.exp(rows) * x + columns * weft.tanh(one) - weft.maximum(x, rows)

    got = weft.compile(f)(*map(weft.asarray, (x, rows, columns, one)))
    wide = [a.astype("float64") for a in (x, rows, columns, one)]
    want = np.exp(wide[1]) * wide[0] + wide[2] * np.tanh(wide[3]) - np.maximum(wide[0], wide[1])
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("extent", EXTENTS)
def test_channels(extent):
    x = drawn(4, 2, 7, extent)
    mean, variance, gain, bias = (drawn(5 + i, 1, 7, 1) ** (2 if i == 1 else 1) for i in range(4))
    given = [weft.asarray(a) for a in (x, mean, variance, gain, bias)]
    got = weft.compile(normalised)(*given)
    wide = [a.astype("float64") for a in (x, mean, variance, gain, bias)]
    want = (wide[0] - wide[1]) / np.sqrt(wide[2] + 0.25) * wide[3] + wide[4]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=2e-6)
    total = weft.compile(lambda *a: weft.sum(normalised(*a) ** 2, axis=(0, 2)))(*given)
    np.testing.assert_allclose(np.asarray(total), (want**2).sum((0, 2)), rtol=2e-5)


def test_not_a_number_in_an_operand_of_a_row():
    x = drawn(9, 256, 9)
    rows = np.array([[math.nan], [math.inf], [-math.inf], [0.0]] * 64, "float32")
    got = weft.compile(lambda x, r: weft.minimum(x * 2.0, r) + 1.0)(weft.asarray(x), weft.asarray(rows))  # fmt: skip
    np.testing.assert_array_equal(np.asarray(got), np.minimum(x * np.float32(2), rows) + np.float32(1))  # fmt: skip


def test_short_rows_are_computed_in_vectors():
    """Nine elements are a vector of eight and one more; the row's own number is loaded once, before them."""
    f = weft.compile(lambda x, r: (x + r) * r - 1.0)
    f(weft.asarray(drawn(10, 256, 9)), weft.asarray(drawn(11, 256, 1)))
    text = f.source()
    body = text[text.index("@main_kernel0.body") :].split("\n}")[0]
    assert body.count("load <8 x float>") == 1 and "load <16 x float>" not in body
    assert body.count("load float,") == 2  # the row's number and the ninth element


@pytest.mark.parametrize("device", ["cpu", "ref", "opencl", "qpu"])
@pytest.mark.parametrize("axes", [[1], [0, 2], None])
def test_reductions_of_a_number_everywhere(device, axes):
    """A kernel that reads no array: the number may be spread out or computed of others."""
    from weft import _core

    like = weft.asarray(drawn(12, 2, 7, 3), device=device)
    x = _core._lazy_input(0, "float32", (2, 7, 3))
    three = _core._lazy_constant(3, x)
    over = None if axes is None else tuple(axes)
    for number, value in ((three, 3.0), (_core._lazy_row("exp", [three]), math.exp(3.0))):
        spread, want = _core._lazy_spread(number, (2, 7, 3)), np.full((2, 7, 3), value)
        for name, reduced in (("sum", want.sum), ("max", want.max)):
            plan = _core.FusedPlan([_core._lazy_reduce(name, spread, axes, False, None)], False, like)  # fmt: skip
            np.testing.assert_allclose(plan.run([like])[0].numpy(), reduced(axis=over), rtol=1e-5)
