# SPDX-License-Identifier: Apache-2.0
"""Integers of 64 bits on machines that compute with 32: what NumPy computes, or a refusal that names the values."""

import numpy as np
import pytest

import weft
from weft import te

DEVICES = ["qpu", "wse:2x2"]
LEAST, MOST = -(2**31), 2**31 - 1

EXACT = {
    "add": lambda f, x, y: x + y,
    "subtract": lambda f, x, y: x - y,
    "multiply": lambda f, x, y: x * y,
    "floor_divide": lambda f, x, y: x // (y * y + 1),
    "remainder": lambda f, x, y: x % (y * y + 1),
    "negative": lambda f, x, y: -x,
    "abs": lambda f, x, y: abs(x),
    "a number": lambda f, x, y: 3 - x * 2,
    "comparison": lambda f, x, y: x < y,
    "equal to a number": lambda f, x, y: x == 3,
    "where": lambda f, x, y: f.where(x > y, x, y),
    "sum": lambda f, x, y: f.sum(x),
    "sum of rows": lambda f, x, y: f.sum(x, axis=1),
    "sum of truth values": lambda f, x, y: f.sum(x > 0, axis=0),
    "prod": lambda f, x, y: f.prod(x[:1, :3]),
    "max": lambda f, x, y: f.max(x, axis=0),
    "min": lambda f, x, y: f.min(x),
    "to float32": lambda f, x, y: x.astype("float32"),
    "to bool": lambda f, x, y: x.astype("bool"),
    "transposed": lambda f, x, y: x.T + y.T,
    "reversed": lambda f, x, y: x[::-1, ::2] * 2,
    "broadcast": lambda f, x, y: x[:1] + y[:, :1],
    "one element": lambda f, x, y: x[-1, 1] + y[0, 0],
    "no element": lambda f, x, y: x[:0] + y[:0],
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", EXACT)
def test_values_of_32_bits_are_exact(device, case):
    rng = np.random.default_rng(3)
    for shape in ((3, 5), (1, 17), (4, 4)):
        x, y = (rng.integers(-9, 9, shape) for _ in range(2))
        got = EXACT[case](weft, *(weft.asarray(v, device=device) for v in (x, y)))
        want = EXACT[case](np, x, y)
        assert str(got.dtype) == str(np.asarray(want).dtype)
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("device", DEVICES)
def test_edges_of_32_bits(device):
    x = np.array([MOST, LEAST, 0, -1])
    a = weft.asarray(x, device=device)
    np.testing.assert_array_equal((a + 0).numpy(), x)
    np.testing.assert_array_equal((a * 1).numpy(), x)
    np.testing.assert_array_equal((a % 7).numpy(), x % 7)
    np.testing.assert_array_equal(weft.max(a).numpy(), MOST)
    np.testing.assert_array_equal((a[::-1] == a).numpy(), x[::-1] == x)
    large = weft.asarray(np.array([2**40, 0, 2**32, 1]), device=device)
    np.testing.assert_array_equal(large.astype("bool").numpy(), [True, False, True, True])
    low = weft.asarray(np.array([5, 2**31, 7], "uint64"), device=device)
    np.testing.assert_array_equal((low[::2] + low[::2]).numpy(), [10, 14])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "compute, says",
    [
        (lambda a, b, u: a + 1, "results may lie between -2147483647 and 2147483648"),
        (lambda a, b, u: -a, "negative of 64-bit integers"),
        (lambda a, b, u: a * a, "multiply of 64-bit integers"),
        (lambda a, b, u: weft.sum(a), "sum of 64-bit integers"),
        (lambda a, b, u: weft.prod(a), "prod of 64-bit integers"),
        (lambda a, b, u: b + 0, "a value of int64[2] does not fit 32 bits"),
        (lambda a, b, u: a + 2**31, "the number 2147483648 does not fit 32 bits"),
        (lambda a, b, u: b < a, "less of 64-bit integers"),
        (lambda a, b, u: weft.max(b), "max of 64-bit integers"),
        (lambda a, b, u: b.astype("float32"), "astype of 64-bit integers"),
        (lambda a, b, u: weft.where(a > 0, a, b), "where of 64-bit integers"),
        (lambda a, b, u: u + 0, "a value of uint64[2] does not fit 32 bits"),
        (lambda a, b, u: (u[:1] * 0) - 1, "results may lie between -1 and -1"),
    ],
)
def test_more_than_32_bits_are_refused(device, compute, says):
    a = weft.asarray(np.array([MOST, LEAST]), device=device)
    b = weft.asarray(np.array([1, 2**31]), device=device)
    u = weft.asarray(np.array([1, 2**64 - 1], "uint64"), device=device)
    with pytest.raises(weft.Error) as refused:
        compute(a, b, u)
    assert refused.value.code == "array.int64.range", refused.value
    assert says in str(refused.value) and "legal are operands and results" in str(refused.value)
    np.testing.assert_array_equal(a.numpy(), [MOST, LEAST])


@pytest.mark.parametrize("device", DEVICES)
def test_positions_of_models(device):
    """What an embedding, its gradient and a mask of tokens ask for."""
    rng = np.random.default_rng(1)
    table, ids = rng.standard_normal((10, 8)).astype("f4"), rng.integers(0, 10, (2, 5))
    e, i = weft.asarray(table, device=device), weft.asarray(ids, device=device)
    np.testing.assert_array_equal(e[i].numpy(), table[ids])
    places = weft.arange(5, device=device)
    np.testing.assert_array_equal((places[None] <= places[:, None]).numpy(), np.tri(5) > 0)
    np.testing.assert_array_equal((i != 3).numpy(), ids != 3)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@pytest.mark.parametrize("device", ["qpu", "wse:2x2"])
def test_gathers_and_scatters_move_all_64_bits(device, kind):
    """What is only moved need not fit 32 bits."""
    numbers = np.array([[2**40, -3, 5], [-(2**50), 7, 2**33 + 1]], "int64").astype(kind)
    x = weft.asarray(numbers, device=device)

    def at(*values):
        return weft.asarray(np.array(values), device=device)

    np.testing.assert_array_equal(x[at(1, 0, -1)].numpy(), numbers[[1, 0, -1]])
    np.testing.assert_array_equal(x.mT[at(2, 0)].numpy(), numbers.T[[2, 0]])
    np.testing.assert_array_equal(x[at(0, 1), at(2, 0)].numpy(), numbers[[0, 1], [2, 0]])
    taken = weft.take(x, at(2, 2, 0, 1), axis=1)
    np.testing.assert_array_equal(taken.numpy(), numbers[:, [2, 2, 0, 1]])
    along = np.array([[0, 2], [1, 1]])
    got = weft.take_along_axis(x, weft.asarray(along, device=device), axis=1)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(numbers, along, 1))
    x[at(1, 1)] = weft.asarray(numbers[[0, 0]] * 2, device=device)
    numbers[1] = numbers[0] * 2
    np.testing.assert_array_equal(x.numpy(), numbers)
    values, inverse = weft.unique_inverse(weft.asarray(np.array([3, 1, 3, 2], "float32"), device=device))  # fmt: skip
    np.testing.assert_array_equal(values.numpy()[inverse.numpy()], [3, 1, 3, 2])


@pytest.mark.targets("qpu")
@pytest.mark.parametrize("divisor", [3, 7, 11, 127, 1000, 4095, 65537, 1048575, 2097151])
def test_quotients_of_positions_are_exact(divisor):
    """The QPU divides positions below 2^21 as floats, larger ones as integers."""
    n = 1024
    for most in (2**21 - 1, 2**21, 2**23):
        for step in (1, most // (n - 1), max(1, divisor // 5)):
            first = max(most - (n - 1) * step, 0)
            at = np.arange(n) * step + first
            q = te.compute(
                (n,), lambda i: ((i * step + first) // divisor).astype("int32"), name="q"
            )
            r = te.compute((n,), lambda i: ((i * step + first) % divisor).astype("int32"), name="r")
            module = weft.build(te.create_prim_func([q, r]), target="qpu")
            out = [weft.zeros((n,), dtype="int32", device="qpu") for _ in range(2)]
            module["main"](*out)
            np.testing.assert_array_equal(out[0].numpy(), at // divisor)
            np.testing.assert_array_equal(out[1].numpy(), at % divisor)
