# SPDX-License-Identifier: Apache-2.0
"""What functions say of a tensor they say of its array: every function of one or two operands, every type, values at the ends of the
types, ties, NaN, infinities, signed zeros, denormals."""

import numpy as np
import pytest
import weft

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]  # fmt: skip
REDUCTIONS = "sum prod mean max min argmax argmin all any var std cumulative_sum cumulative_prod sort argsort logsumexp softmax log_softmax".split()  # fmt: skip
# Functions of one and of two arrays, by the table of the core.
UNARY = [r["name"] for r in weft._core.elementwise_rows if r["arity"] == 1]
BINARY = [r["name"] for r in weft._core.elementwise_rows if r["arity"] == 2]


def values(dtype):
    if dtype == "bool":
        return np.array([[True, False, True], [False, False, True]])
    if dtype[0] in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.array([[low, 5, high], [0, low, 1]], dtype)
    f = np.finfo(dtype)
    return np.array([[f.max, -0.0, f.smallest_subnormal], [np.inf, 0.0, -1.5], [np.nan, 2.0, 2.0], [-np.inf, f.min / 4, 1.0]], dtype)  # fmt: skip


def outcome(f, *args, **options):
    """The result as an array, or the code of the refusal."""
    with np.errstate(all="ignore"):
        try:
            out = f(*args, **options)
        except weft.Error as error:
            return error.code
    return out.numpy() if hasattr(out, "numpy") else np.asarray(out)


def compare(name, dtype, arrays, **options):
    """None, or what differs between tensors and arrays."""
    f = getattr(weft, name)
    want = outcome(f, *(weft.asarray(a) for a in arrays), **options)
    got = outcome(
        f, *(weft.Tensor(weft.asarray(a), requires_grad=False) for a in arrays), **options
    )
    if isinstance(want, str) or isinstance(got, str):
        # A refusal by either must be one of both; words may name the method instead of the function.
        return None if isinstance(want, str) == isinstance(got, str) else f"{name} of {dtype} {options}: {got!r}, of arrays {want!r}"  # fmt: skip
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{name} of {dtype} {options}: {got.dtype} {got.shape}, of arrays {want.dtype} {want.shape}"
    same = (
        np.array_equal(got, want, equal_nan=True)
        if want.dtype.kind in "fc"
        else np.array_equal(got, want)
    )
    if not same and want.dtype.kind in "fc":  # compositions round at other places
        with np.errstate(all="ignore"):
            digits = {"float16": 2e-3, "float32": 1e-5}.get(want.dtype.name, 1e-12)
            same = np.allclose(
                got.astype(np.float64), want.astype(np.float64), digits, digits, equal_nan=True
            )
    return (
        None if same else f"{name} of {dtype} {options}: {got.tolist()}, of arrays {want.tolist()}"
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_functions(dtype):
    x = values(dtype)
    wrong = [compare(name, dtype, [x]) for name in UNARY]
    wrong += [compare(name, dtype, [x, x[::-1]]) for name in BINARY]
    wrong = [w for w in wrong if w]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_scans(dtype):
    x = values(dtype)
    wrong = []
    for name in REDUCTIONS:
        for axis in (None, 0, 1):
            wrong.append(compare(name, dtype, [x], axis=axis))
            wrong.append(compare(name, dtype, [x], axis=axis, keepdims=True))
    wrong = [w for w in wrong if w]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_methods_of_tensors(name, dtype):
    x = values(dtype)
    for axis in (None, 0, 1):
        want = outcome(getattr(weft, name), weft.asarray(x), axis=axis)
        got = outcome(getattr(weft.Tensor(weft.asarray(x), requires_grad=False), name), axis=axis)
        least = 4 * float(np.finfo(dtype).smallest_subnormal) if dtype[0] == "f" else 0
        np.testing.assert_allclose(got, want, 2e-3 if dtype == "float16" else 1e-6, least)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_gradients_of_extremes_share_ties(name, dtype):
    x = np.array([[1, 3, 3], [2, 2, 2], [-1, -5, -5]], dtype)
    t = weft.Tensor(weft.asarray(x), requires_grad=True)
    getattr(weft, name)(t, axis=1).sum().backward()
    hit = x == getattr(np, name)(x, axis=1, keepdims=True)
    np.testing.assert_allclose(t.grad.numpy(), hit / hit.sum(1, keepdims=True), 1e-6)
    t = weft.Tensor(weft.asarray(x), requires_grad=True)
    getattr(weft, name)(t).backward()
    hit = x == getattr(np, name)(x)
    np.testing.assert_allclose(t.grad.numpy(), hit / hit.sum(), 1e-6)


def test_a_tensor_of_one_integer_is_an_index():
    rows = weft.Tensor(np.arange(12.0).reshape(4, 3))
    at = weft.tensor(np.array([2, 0, 3]))
    assert [10, 20, 30][at[1]] == 10
    np.testing.assert_array_equal(rows[at[0]].numpy(), [6, 7, 8])
    np.testing.assert_array_equal(rows[at[1] : at[0]].numpy(), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(weft.asarray([5, 6, 7, 8])[at[2]].numpy(), 8)
    rows[at[0]].sum().backward()
    np.testing.assert_array_equal(rows.grad.numpy(), [[0] * 3, [0] * 3, [1] * 3, [0] * 3])
    for wrong in (at, weft.tensor(1.0)):
        with pytest.raises(weft.Error) as info:
            range(wrong)
        assert "array.index.scalar" in str(info.value)
