# SPDX-License-Identifier: Apache-2.0
"""Changes in place inside compiled and mapped functions: what eager arrays and tensors do, or a refusal; and further operations
that a random campaign found compiled otherwise than eager."""

import math

import numpy as np
import pytest
import weft


def second_name(x):
    y = x * 2.0
    z = y
    z += 1.0
    return y


def temporary_view(x):
    y = weft.squeeze((x * 2.0).reshape((3, 1)))
    y *= 3.0
    return y


def elements(x):
    y = x * 2.0
    y[0] = 7.0
    y[1:] = x[1:] * 9.0
    return y


def methods(x):
    y = x * 2.0
    y.add_(1.0)
    y.clamp_(0.0, 4.5)
    return y


def narrow(x):
    y = x.astype(weft.bfloat16)
    y += x
    return y


def matrices(x):
    y = x * 1.0
    y @= weft.ones((3, 3))
    return y


def shifts(x):
    y = x.astype(weft.int32) << 2
    y >>= 1
    return y, 1 << y, *divmod(y, 3)


def lengths(x):
    total = x[0]
    for k in range(1, len(x)):
        total = total * 2.0 + x[k]
    return total


@pytest.mark.parametrize(
    "function",
    [second_name, temporary_view, elements, methods, narrow, matrices, shifts, lengths],
)
def test_changes_are_those_of_arrays(function):
    x = weft.asarray([1.0, 2.0, 3.0], dtype=weft.float32)
    compiled = weft.compile(function)
    for _ in range(2):
        got, want = compiled(x), function(x)
        for g, w in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want))):
            assert g.dtype == w.dtype and g.tolist() == w.tolist()
    assert x.tolist() == [1.0, 2.0, 3.0]


def argument(x):
    x += 1.0
    return x


def view_of_the_argument(x):
    y = weft.flip(x)
    y -= 1.0
    return y


def view(x):
    y = x * 2.0
    z = y[1:]
    z += 1.0
    return y


def element_of_the_argument(x):
    x[0] = 1.0
    return x


def method_of_a_view(x):
    y = x * 2.0
    z = y.reshape((3, 1))
    z.zero_()
    return y


def other_shape(x):
    y = x[0] * 2.0
    y += x
    return y


@pytest.mark.parametrize(
    "function",
    [argument, view_of_the_argument, view, element_of_the_argument, method_of_a_view, other_shape],
)
def test_changes_that_others_would_see_are_refused(function):
    with pytest.raises(weft.ArgumentError, match=r"shape \(") as refused:
        weft.compile(function)(weft.ones((3,)))
    assert refused.value.code == "compile.trace.unsupported"


def test_tensors_are_not_changed_by_operators():
    t = weft.Tensor(weft.asarray([1.0, 2.0]), requires_grad=True)
    compiled = weft.compile(second_name)
    assert second_name(t).tolist() == compiled(t).tolist() == [2.0, 4.0]
    assert compiled(t.data).tolist() == second_name(t.data).tolist() == [3.0, 5.0]
    with pytest.raises(weft.ArgumentError, match="elements of a tensor"):
        weft.compile(elements)(weft.Tensor(weft.ones((3,))))
    with pytest.raises(weft.ArgumentError, match=r"add_.*|x = x\.add"):
        weft.compile(methods)(weft.Tensor(weft.ones((3,))))


def test_a_type_that_cannot_hold_the_result_is_refused_as_arrays_do():
    def function(x):
        y = x.astype(weft.int32)
        y += 0.5
        return y

    for f in (function, weft.compile(function)):
        with pytest.raises(weft.DTypeError) as refused:
            f(weft.ones((3,)))
        assert refused.value.code == "array.add.inplace"


def test_arrays_outside_are_not_written_with_traced_values():
    outside = weft.ones((3,))

    def method(x):
        outside.add_(x)
        return x * outside

    def filled(x):
        outside.copy_(x * 2.0)
        return x * outside

    def elements(x):
        outside[...] = x * 2.0
        return x * outside

    for function, code in {
        method: "tensor.inplace.recorded",
        filled: "tensor.inplace.recorded",
        elements: "compile.trace.unsupported",
    }.items():
        with pytest.raises(weft.ArgumentError) as refused:
            weft.compile(function)(weft.ones((3,)))
        assert refused.value.code == code
    with pytest.raises(weft.ArgumentError) as refused:
        weft.vmap(method)(weft.ones((2, 3)))
    assert refused.value.code == "tensor.inplace.recorded"
    assert outside.tolist() == [1.0, 1.0, 1.0]


def test_methods_change_no_batched_value():
    with pytest.raises(weft.ArgumentError, match=r"add_ .*in place") as refused:
        weft.vmap(lambda x: (x.add_(1.0), x)[1])(weft.ones((2, 3)))
    assert refused.value.code == "vmap.assign"


def test_numbers_of_traced_values_are_not_at_hand():
    for function in (np.asarray, complex, len):
        with pytest.raises(weft.ArgumentError) as refused:
            weft.compile(lambda x, f=function: x + f(x.sum()))(weft.ones((3,)))
        assert refused.value.code == "compile.trace.unsupported"


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_logarithms_of_sums_of_infinities(axis, dtype):
    inf = math.inf
    x = weft.asarray([[1.0, inf, -inf, math.nan], [2.0, 3.0, -inf, 1.0], [-inf] * 4]).astype(dtype)
    f = lambda x: weft.logsumexp(x * 1.0, axis=axis)  # noqa: E731
    got, want = (r.astype(weft.float64).numpy() for r in (weft.compile(f)(x), f(x)))
    np.testing.assert_allclose(got, want, rtol=1e-2 if dtype == "bfloat16" else 1e-6)


def test_constants_beside_complex_numbers():
    z = weft.asarray(np.array([1 + 2j, 0, 3], "complex64"))
    f = lambda z: weft.where(weft.real(z) > 0.5, z, 0) * weft.where(z == z, 2.0 + 1j, z)  # noqa: E731
    np.testing.assert_allclose(weft.compile(f)(z).numpy(), f(z).numpy(), rtol=1e-6)


@pytest.mark.parametrize("limits", [(0, 2), (None, 1), (0.5, None), (None, None)])
def test_limited_truth_values_stay_truth_values(limits):
    x = weft.asarray([True, False])
    f = lambda x: weft.clip(x, *limits)  # noqa: E731
    assert weft.compile(f)(x).dtype == f(x).dtype == f(weft.Tensor(x)).dtype == weft.bool


def test_without_limits_there_is_a_new_array():
    def function(x):
        y = weft.clip(x)
        y += 1.0
        return x, y

    x = weft.zeros((3,))
    for f in (function, weft.compile(function)):
        assert [a.tolist() for a in f(x)] == [[0.0] * 3, [1.0] * 3]
