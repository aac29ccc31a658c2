# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms on the host beside NumPy's: lengths with and without passes, axes, layouts, types, threads."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(21)
FORWARD, REAL, BACK = ("fft", "ifft"), "rfft", "irfft"


def numbers(shape, dtype):
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def near(got, want, single):
    got = got.numpy()
    assert got.shape == want.shape
    assert got.dtype == (
        {"c": "complex64", "f": "float32"} if single else {"c": "complex128", "f": "float64"}
    )[want.dtype.kind]
    scale = np.sqrt(np.mean(np.abs(want) ** 2)) if want.size else 1
    np.testing.assert_allclose(got, want, rtol=0, atol=scale * (4e-6 if single else 2e-14))


# One and few points, all radices, primes beyond them, lengths of one line and of many side by side.
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 30, 37, 63, 64, 77, 91, 96, 100, 128, 143, 169, 243, 256, 257, 343, 500, 1001, 1024, 2048, 2187, 2310, 3000, 4096]  # fmt: skip


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("lines", [1, 3, 19, 40])
def test_lengths(n, lines):
    for dtype in ("complex64", "complex128"):
        x = numbers((lines, n), dtype)
        for name in FORWARD:
            want = getattr(np.fft, name)(x.astype("complex128"))
            near(getattr(weft.fft, name)(weft.asarray(x)), want, dtype == "complex64")
    for dtype in ("float32", "float64"):
        x = numbers((lines, n), dtype)
        spectrum = np.fft.rfft(x.astype("float64"))
        near(weft.fft.rfft(weft.asarray(x)), spectrum, dtype == "float32")
        # What a real line's spectrum cannot have is left out.
        spectrum[:, 0] += 3j
        spectrum = spectrum.astype("complex64" if dtype == "float32" else "complex128")
        want = np.fft.irfft(spectrum.astype("complex128"), n=n)
        near(weft.fft.irfft(weft.asarray(spectrum), n=n), want, dtype == "float32")


@pytest.mark.parametrize("n", [65536 * 2, 10**5, 3**11, 70000])
@pytest.mark.parametrize("threads", [1, 2])
def test_long_lines(n, threads):
    before = weft.get_threads()
    weft.set_threads(threads)
    try:
        x, y = numbers((2, n), "complex64"), numbers(n, "float64")
        near(weft.fft.fft(weft.asarray(x)), np.fft.fft(x.astype("complex128")), True)
        near(weft.fft.ifft(weft.asarray(x)), np.fft.ifft(x.astype("complex128")), True)
        spectrum = np.fft.rfft(y)
        near(weft.fft.rfft(weft.asarray(y)), spectrum, False)
        near(weft.fft.irfft(weft.asarray(spectrum), n=n), np.fft.irfft(spectrum, n=n), False)
    finally:
        weft.set_threads(before)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("n", [None, 1, 6, 20, 29])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_axes_and_layouts(axis, n, norm):
    base = numbers((9, 24, 14), "complex128")
    for x in (base[:, ::2], base[::-1, ::-2, 1:13], base.transpose(2, 0, 1)[:12]):
        a = weft.asarray(base)
        view = (
            a[:, ::2]
            if x.shape == base[:, ::2].shape
            else a[::-1, ::-2, 1:13]
            if x.shape == (9, 12, 12)
            else a.permute((2, 0, 1))[:12]
        )
        options = dict(n=n, axis=axis, norm=norm)
        for name in FORWARD:
            near(getattr(weft.fft, name)(view, **options), getattr(np.fft, name)(x, **options), False)
        near(weft.fft.irfft(view, **options), np.fft.irfft(x, **options), False)
        near(weft.fft.rfft(weft.real(view), **options), np.fft.rfft(x.real, **options), False)


def test_several_axes_and_types():
    x = numbers((6, 10, 15), "float32")
    a = weft.asarray(x)
    for name in ("fft2", "ifft2", "rfft2", "fftn", "rfftn"):
        near(getattr(weft.fft, name)(a), getattr(np.fft, name)(x.astype("float64")), True)
    z = np.fft.rfft2(x).astype("complex128")
    near(weft.fft.irfft2(weft.asarray(z), s=(10, 15)), np.fft.irfft2(z, s=(10, 15)), False)
    for dtype in ("int32", "bool", "uint8"):
        whole = (x * 3).astype(dtype)
        near(weft.fft.fft(weft.asarray(whole)), np.fft.fft(whole), False)
    half = weft.asarray(x).astype(weft.float16)
    near(weft.fft.fft(half), np.fft.fft(half.numpy().astype("float64")), True)
    assert weft.fft.fft(weft.zeros((0, 8))).shape == (0, 8)
    assert weft.fft.rfft(weft.zeros((3, 0, 8)), axis=2).shape == (3, 0, 5)


def test_what_is_no_number_stays_in_its_line():
    x = numbers((20, 32), "float64")
    x[3, 5], x[11, 0] = np.nan, np.inf
    got = weft.fft.fft(weft.asarray(x)).numpy()
    assert np.isnan(got[3]).all() and not np.isfinite(got[11]).any()
    others = [i for i in range(20) if i not in (3, 11)]
    np.testing.assert_allclose(got[others], np.fft.fft(x[others]), rtol=0, atol=1e-12)


def test_another_library():
    x = weft.asarray(numbers((3, 12), "complex64"))
    own = weft.fft.fft(x)
    assert weft.fft.use("numpy.fft") is None
    try:
        near(weft.fft.fft(x), own.numpy(), True)
    finally:
        assert weft.fft.use(None) is np.fft
