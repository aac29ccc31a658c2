# SPDX-License-Identifier: Apache-2.0
"""Operators on arrays without dimensions (bindings/scalars.cpp) beside the same on arrays of one element, and their objects, which are used again."""

import operator
import weakref

import numpy as np
import pytest
import weft

TYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # fmt: skip
OPERATORS = [
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le eq ne gt ge".split()
]
OTHERS = (2, -3, 0, 2.5, float("nan"), float("inf"), 1e300, 2**24 + 1, 2**40, 2**70, True, 1 + 2j)


def outcome(call):
    """(type, value) or the kind of the refusal."""
    try:
        out = call()
    except weft.Error as problem:
        return type(problem).__name__
    return out.dtype, np.asarray(out.astype("complex128").reshape(-1))


def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return a[0] == b[0] and np.array_equal(a[1], b[1], equal_nan=True)


@pytest.mark.parametrize("dtype", TYPES)
def test_beside_arrays_of_one_element(dtype):
    row = weft.asarray([3, 7, 1]).astype(dtype)
    wrong = []
    for f in OPERATORS:
        for other in OTHERS:
            for ours, long in ((f, f), (lambda x, y: f(y, x), lambda x, y: f(y, x))):  # noqa: B023
                if not same(
                    outcome(lambda: ours(row[1], other)), outcome(lambda: long(row[1:2], other))
                ):  # noqa: B023
                    wrong.append((f.__name__, other))
        for name in TYPES:
            other = weft.asarray([2]).astype(name)
            if not same(outcome(lambda: f(row[1], other[0])), outcome(lambda: f(row[1:2], other))):  # noqa: B023
                wrong.append((f.__name__, name))
    for name in "iadd isub imul itruediv ifloordiv imod iand ior ixor ilshift irshift".split():
        f = getattr(operator, name)
        for other in (*OTHERS, *(weft.asarray([2]).astype(t)[0] for t in TYPES)):
            number, long = row[1].copy(), row[1:2].copy()
            if not same(outcome(lambda: f(number, other)), outcome(lambda: f(long, other))) or not same(outcome(lambda: number), outcome(lambda: long)):  # noqa: B023  # fmt: skip
                wrong.append(name)
    for f in (operator.neg, operator.pos, abs, operator.invert):
        if not same(outcome(lambda: f(row[1])), outcome(lambda: f(row[1:2]))):  # noqa: B023
            wrong.append(f.__name__)
    assert not wrong


def test_values_last_as_long_as_someone_holds_them():
    x = weft.asarray(np.random.default_rng(3).standard_normal(50))
    kept, views, memory = [], [], []
    for k in range(50):
        number = x[k] * 2.0
        kept.append(number + 1.0)
        views.append((x[k] - 1.0).reshape((1,)))
        memory.append(np.asarray(x[k] / 4.0))
        memory[-1] = np.from_dlpack(x[k] / 4.0) if k % 2 else memory[-1]
    want = np.asarray(x)
    np.testing.assert_array_equal([float(v) for v in kept], want * 2 + 1)
    np.testing.assert_array_equal(np.asarray(weft.concat(views)), want - 1)
    np.testing.assert_array_equal(np.stack(memory), want / 4)


def test_weak_references_end_with_the_object():
    x = weft.asarray([1.0, 2.0])
    number = x[0] + x[1]
    seen = weakref.ref(number)
    assert seen() is number
    del number
    assert seen() is None
    other = x[0] - x[1]
    assert seen() is None and float(other) == -1.0


def test_subclasses_and_changed_objects():
    class Own(weft.NDArray):
        pass

    own = Own(2.0)
    assert float(own + 1.0) == 3.0 and float(1.0 - own) == -1.0
    number = weft.asarray([1.0])[0] + 1.0
    number += 1.0
    assert float(number) == 3.0
    number.__init__([4.0, 5.0])
    del number
    assert float(weft.asarray([1.0])[0] + 1.5) == 2.5


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, lambda i: weft.asarray([i])[0]], ids=["int", "int64", "uint8", "weft"])  # fmt: skip
def test_numbers_as_positions(kind):
    x = np.arange(24.0).reshape(4, 6)
    w = weft.asarray(x.copy())
    np.testing.assert_array_equal(np.asarray(w[kind(2)]), x[2])
    np.testing.assert_array_equal(np.asarray(w[kind(1), kind(3)]), x[1, 3])
    np.testing.assert_array_equal(np.asarray(w[1:, kind(3)]), x[1:, 3])
    np.testing.assert_array_equal(np.asarray(w[kind(1), weft.asarray([0, 2])]), x[1, [0, 2]])
    w[kind(3), kind(5)] = -1.0
    w[kind(0)] = 7.0
    assert float(w[3, 5]) == -1.0 and float(w[0, 0]) == 7.0
    w[kind(2)] += 1.0
    np.testing.assert_array_equal(np.asarray(w[2]), x[2] + 1)
    with pytest.raises(IndexError):
        w[kind(4)]
    with pytest.raises(IndexError):
        w[0, kind(6)]
