# SPDX-License-Identifier: Apache-2.0
"""What NumPy gives at the edges: infinities beside zeros, masks that are added, vectors of two numbers, stacks in dot."""

import warnings

import numpy as np
import pytest

import weft

NAN, INF = np.nan, np.inf
F32 = np.array([1, -5, INF, NAN, 0, 5, -5, 3, 0, 1e10], "f")
BY = np.array([0, 0, 2, 1, 0, INF, INF, -2, 1, 3.1], "f")
STACK = np.arange(24.0)
MASK, OTHER = np.array([True, False, True]), np.array([True, True, False])
CASES = {
    "zeros beside what is no number": ("diag", np.array([NAN, 1, INF], "f")),
    "a diagonal of infinities": ("diagflat", np.array([[INF], [1]], "f")),
    "a diagonal of integers": ("diagflat", np.array([3, 4])),
    "conjugates": ("vdot", np.array([1 + 2j, 3]), np.array([2 - 1j, 1j])),
    "all elements in a row": ("vdot", np.array([[1 + 2j, 3]]), np.array([[2 - 1j], [1j]])),
    "a median of infinities": ("median", np.array([INF, INF, 1, INF])),
    "a median of nothing": ("median", np.zeros((2, 0))),
    "medians of no rows": ("median", np.zeros((0, 3)), 0),
    "a median with NaN": ("nanmedian", np.array([NAN, INF, INF])),
    "rests": ("fmod", F32, BY),
    "rests of integers": ("fmod", np.array([7, -8, -128, 5], "i1"), np.array([3, 3, 7, -3], "i1")),
    "rests of mixed integers": ("fmod", np.array([7, 200], "u1"), np.array([-3, 7], "i4")),
    "far from infinity": ("isclose", np.array([1, INF, 1e38]), np.array([INF, INF, 1])),
    "a gap in a slope": ("gradient", np.array([1.0, INF, 2, 3])),
    "zeros in front": ("polymul", np.array([0, 1, 2]), np.array([0, 0, 3, 1])),
    "only zeros": ("polymul", np.array([0, 0]), np.array([3, 1])),
    "masks added": ("add", MASK, OTHER),
    "masks multiplied": ("multiply", MASK, OTHER),
    "masks are finite": ("isfinite", MASK),
    "masks are numbers": ("isnan", MASK),
    "two numbers": ("cross", np.array([1, 2]), np.array([3.0, 4])),
    "two numbers and three": ("cross", np.array([[1.0, 2]]), np.array([3.0, 4, 5])),
    "stacks in all pairs": ("dot", STACK.reshape(2, 3, 4), STACK.reshape(2, 4, 3)),
    "one number": ("inner", np.array(2.0), STACK),
    "a spread of complex numbers": ("var", np.array([1 + 2j, 3, 4 - 1j])),
    "a deviation of complex numbers": ("std", np.array([[1 + 2j, 3], [0, 1j]], "F"), 0),
    "from all in a row": ("take", STACK.reshape(4, 6), np.array([[0, 23], [7, 3]])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_edges(name):
    function, *arguments = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(getattr(np, function)(*arguments))
    got = getattr(weft, function)(
        *(weft.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments)
    )
    assert (tuple(got.shape), str(got.dtype)) == (want.shape, str(want.dtype))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    if want.dtype.kind == "f":
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got.numpy())[zero], np.signbit(want)[zero])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "uint8"])
def test_rests_are_exact(dtype, rng):
    if dtype.startswith("float"):
        a, b = (rng.normal(size=999) * 10.0 ** rng.uniform(-3, top, 999) for top in (9, 3))
    else:
        low = 0 if dtype == "uint8" else -128
        a, b = (rng.integers(low, 127, 999) for _ in range(2))
        b[b == 0] = 1
    a, b = a.astype(dtype), b.astype(dtype)
    got = weft.fmod(weft.asarray(a), weft.asarray(b))
    np.testing.assert_array_equal(got.numpy(), np.fmod(a, b), strict=True)


def test_gradients_of_rests():
    x, y = (
        weft.Tensor(weft.asarray(v, dtype="float64")) for v in ([5.3, -7.2, 4.0], [2.0, 3, -1.5])
    )
    weft.fmod(x, y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 1, 1])
    np.testing.assert_array_equal(y.grad.numpy(), [-2, 2, 2])  # -trunc(x / y)


@pytest.mark.parametrize("p", [2, 1, 0, 3, INF, -INF, "fro"])
@pytest.mark.parametrize("values", [[3.0, -4.0, 0.0, 1.0], [3 + 4j, 0, 1j]])
def test_norms_of_vectors(p, values):
    want = np.linalg.norm(np.array(values), None if p == "fro" else p)
    for x in (weft.asarray(values), weft.Tensor(weft.asarray(values), requires_grad=False)):
        got = x.norm(p)
        assert got.dtype.kind == "f" and abs(got.item() - want) < 1e-6
    assert abs(weft.dist(weft.asarray([3 + 4j, 1]), weft.asarray([0j, 1])).item() - 5) < 1e-6


def test_gather_takes_indices_that_are_shorter():
    x = weft.Tensor(weft.asarray(np.arange(12.0).reshape(3, 4)))
    got = weft.gather(x, 1, weft.asarray([[2, 1, 0, 0, 3]]))
    np.testing.assert_array_equal(got.numpy(), [[2, 1, 0, 0, 3]])
    np.testing.assert_array_equal(weft.gather(x, 0, weft.asarray([[2, 1]])).numpy(), [[8, 5]])
    got.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 1, 1, 1], [0] * 4, [0] * 4])


def test_medians_of_tensors_without_nan():
    x = weft.Tensor(weft.asarray([[3.0, -4, 0], [1, NAN, 2]]), requires_grad=False)
    values, places = weft.nanmedian(x, 1)
    np.testing.assert_array_equal(values.numpy(), [0, 1])  # the lower of two, as in PyTorch
    np.testing.assert_array_equal(places.numpy(), [2, 0])
    assert weft.nanmedian(weft.Tensor(weft.asarray([4, 2, 1, 3]), requires_grad=False)).item() == 2
    assert np.isnan(
        weft.nanmedian(weft.Tensor(weft.asarray([NAN, NAN]), requires_grad=False)).item()
    )
