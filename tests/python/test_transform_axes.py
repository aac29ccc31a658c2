# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms over any axes, sizes and types beside NumPy, by each library that the host may take them from."""

import importlib.util

import numpy as np
import pytest
import weft

SCIPY = importlib.util.find_spec("scipy") is not None
LIBRARIES = ["scipy.fft", "scipy.fft, public functions", "numpy.fft"] if SCIPY else ["numpy.fft"]

SHAPES = [(5,), (1,), (16, 3), (3, 7, 4), (2, 1, 9), (0, 4), (4, 0, 3)]
NORMS = ["backward", "ortho", "forward"]
RESULT = {
    "float32": "complex64",
    "float64": "complex128",
    "float16": "complex64",
    "bfloat16": "complex64",
}


@pytest.fixture(params=LIBRARIES)
def library(request, monkeypatch):
    before = weft.fft.use(request.param.split(",")[0])
    if "public" in request.param:
        monkeypatch.setattr(weft.fft._Library, "direct", None)
    yield request.param
    weft.fft.use(before)


def drawn(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    if dtype[0] == "c":
        x = x + 1j * rng.standard_normal(shape)
    return weft.asarray(x.astype("float32" if dtype == "bfloat16" else dtype)).astype(dtype)


def close(got, want, dtype):
    wide = dtype in ("float64", "complex128")
    assert got.shape == want.shape
    assert got.dtype.name in (("complex128", "float64") if wide else ("complex64", "float32"))
    scale = np.abs(want).max(initial=1e-30)
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=scale * (1e-13 if wide else 1e-5))


def exact(x):
    return x.astype("complex128" if x.dtype.kind == "c" else "float64").numpy()


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
)
@pytest.mark.parametrize("norm", NORMS)
def test_one_axis(library, dtype, norm):
    for shape in SHAPES:
        x = drawn(shape, dtype)
        for axis in range(-1, len(shape)):
            if shape[axis] == 0:
                continue
            for n in (None, shape[axis], shape[axis] + 2, max(1, shape[axis] - 1)):
                names = ["fft", "ifft"] + (["rfft"] if dtype[0] != "c" else [])
                if n is not None and 0 not in shape:
                    names.append("irfft")
                for name in names:
                    got = getattr(weft.fft, name)(x, n=n, axis=axis, norm=norm)
                    close(got, getattr(np.fft, name)(exact(x), n=n, axis=axis, norm=norm), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (-1, 0), (0, 2), (2, 1, 0), (1,), None])
def test_several_axes(library, dtype, norm, axes):
    x = drawn((4, 3, 6), dtype)
    last = 2 if axes is None else axes[-1]
    for name in ["fftn", "ifftn", "irfftn"] + (["rfftn"] if dtype[0] != "c" else []):
        got = getattr(weft.fft, name)(x, axes=axes, norm=norm)
        close(got, getattr(np.fft, name)(exact(x), axes=axes, norm=norm), dtype)
        if axes is None:
            continue
        s = [x.shape[a] for a in axes]
        for more in (-1, 1):
            s[-1] = x.shape[last] + more
            got = getattr(weft.fft, name)(x, s=s, axes=axes, norm=norm)
            close(got, getattr(np.fft, name)(exact(x), s=s, axes=axes, norm=norm), dtype)


def test_views_and_operands_stay(library):
    x = drawn((9, 10), "complex64")
    before = x.numpy().copy()
    for view in (x.T, x[::2, ::-1], x[1:, 3:8]):
        for axis in (0, 1):
            close(weft.fft.fft(view, axis=axis), np.fft.fft(exact(view), axis=axis), "complex64")
            close(
                weft.fft.irfft(view, n=7, axis=axis),
                np.fft.irfft(exact(view), n=7, axis=axis),
                "complex64",
            )
            n = 2 * (view.shape[axis] - 1)
            close(
                weft.fft.irfft(view, axis=axis),
                np.fft.irfft(exact(view), n=n, axis=axis),
                "complex64",
            )
        close(weft.fft.fft2(view), np.fft.fft2(exact(view)), "complex64")
    np.testing.assert_array_equal(x.numpy(), before)


def test_another_layout_of_scipy_is_not_called_directly(monkeypatch):
    """Functions that do not give what the trial expects are left alone."""
    assert weft.fft._direct(np.fft) is None
    if not SCIPY:
        return
    from scipy import fft
    from scipy.fft._pocketfft import pypocketfft as module

    assert weft.fft._direct(fft) is module
    monkeypatch.setattr(module, "c2r", lambda *a: 0 * module.r2c(*a[:2]).real)
    assert weft.fft._direct(fft) is None
    monkeypatch.delattr(module, "c2r")
    assert weft.fft._direct(fft) is None
