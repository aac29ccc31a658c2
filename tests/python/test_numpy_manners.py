# SPDX-License-Identifier: Apache-2.0
"""Arrays and NumPy: its functions, its methods, its strange types."""

import numpy as np
import pytest
from refusal import refused

import weft


def test_numpy_functions_take_arrays():
    x = np.arange(6.0).reshape(2, 3) + 1
    a = weft.asarray(x)
    for f in (
        np.sum,
        np.prod,
        np.max,
        np.min,
        np.mean,
        np.std,
        np.var,
        np.argmax,
        np.cumsum,
        np.ravel,
        np.squeeze,
    ):
        np.testing.assert_allclose(np.asarray(f(a)), f(x))
    assert np.all(a) and np.any(a)
    np.testing.assert_allclose(np.mean(a, axis=1), x.mean(1))
    np.testing.assert_allclose(np.std(a, axis=0, ddof=1), x.std(0, ddof=1))


def test_arrays_have_the_methods_of_numpy():
    x = np.random.RandomState(3).rand(3, 4, 2)
    a = weft.asarray(x)
    i = np.array([2, 0])
    for name, args in {
        "std": (1,),
        "var": (),
        "cumsum": (),
        "cumprod": (1,),
        "ravel": (),
        "flatten": (),
        "clip": (0.2, 0.7),
        "round": (1,),
        "transpose": (2, 0, 1),
        "swapaxes": (0, 2),
        "argsort": (1,),
        "take": (i, 1),
        "repeat": (2, 1),
        "conj": (),
    }.items():
        extra = {"axis": args[0]} if name == "argsort" else {"axis": 1} if name == "repeat" else {}
        given = () if name == "argsort" else args[:1] if name == "repeat" else args
        np.testing.assert_allclose(
            np.asarray(getattr(a, name)(*given, **extra)), getattr(x, name)(*args), err_msg=name
        )
    np.testing.assert_allclose(a[0].dot(a[1].T).numpy(), x[0] @ x[1].T)
    np.testing.assert_allclose(a.permute(2, 0, 1).numpy(), a.permute((2, 0, 1)).numpy())
    z = weft.asarray(x + 1j * x[::-1])
    np.testing.assert_array_equal(z.real.numpy(), x)
    np.testing.assert_array_equal(z.imag.numpy(), x[::-1])
    np.testing.assert_array_equal(a.imag.numpy(), 0 * x)
    assert [list(p) for p in weft.asarray([0, 3, 0, 1]).nonzero()] == [[1, 3]]
    assert f"{weft.asarray(2.5):.3f} {weft.asarray(7):03d}" == "2.500 007"
    assert round(weft.asarray(2.6)) == 3 and divmod(weft.asarray(7), 2)[0].item() == 3
    refused(weft.ArgumentError, "array.method.out", a.mean, out=a)
    with pytest.raises(ValueError):
        f"{a:.3f}"


def test_arrays_of_strings_and_dates_are_refused():
    for x in (np.array(["a"]), np.array(["2020-01-01"], dtype="datetime64[D]")):
        error = refused(weft.DTypeError, "array.asarray.type", weft.asarray, x)
        assert str(x.dtype) in error.message
