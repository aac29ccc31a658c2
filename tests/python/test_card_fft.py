# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms on a card beside NumPy: passes for small prime factors, Bluestein's method for others."""

import numpy as np
import pytest
from present import present

import weft

GRID = "opencl:0"
present(GRID)

LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    11,
    13,
    15,
    16,
    17,
    34,
    49,
    60,
    97,
    128,
    143,
    289,
    1000,
    1009,
    4096,
]


@pytest.fixture
def rng():
    return np.random.default_rng(20261122)


def close(got, want, tolerance, dtype=None):
    assert got.device.name == GRID and (dtype is None or got.dtype == dtype)
    got = got.to("cpu").numpy()
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= tolerance * max(1.0, np.abs(want).max(initial=0))


@pytest.mark.parametrize("dtype,tolerance", [("complex64", 3e-6), ("complex128", 1e-13)])
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(rng, n, dtype, tolerance):
    x = (rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))).astype(dtype)
    d = weft.asarray(x, device=GRID)
    for norm in ("backward", "ortho", "forward"):
        close(weft.fft.fft(d, norm=norm), np.fft.fft(x, norm=norm), tolerance, dtype)
        close(weft.fft.ifft(d, norm=norm), np.fft.ifft(x, norm=norm), tolerance, dtype)
    real = x.real.copy()
    close(weft.fft.rfft(weft.asarray(real, device=GRID)), np.fft.rfft(real), tolerance, dtype)
    half = x[:, : n // 2 + 1].copy()
    got = weft.fft.irfft(weft.asarray(half, device=GRID), n=n)
    close(got, np.fft.irfft(half, n=n), tolerance, real.dtype.name)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("n", [None, 3, 13])
def test_axes_cut_and_filled_up(rng, axis, n):
    x = (rng.standard_normal((4, 6, 10)) + 1j * rng.standard_normal((4, 6, 10))).astype("complex64")
    d = weft.asarray(x, device=GRID)
    for name in ("fft", "ifft", "irfft", "hfft"):
        got, want = getattr(weft.fft, name), getattr(np.fft, name)
        close(got(d, axis=axis, n=n), want(x, axis=axis, n=n), 1e-5)
    for name in ("rfft", "ihfft"):
        got, want = getattr(weft.fft, name), getattr(np.fft, name)
        close(got(weft.real(d), axis=axis, n=n), want(x.real, axis=axis, n=n), 1e-5)


def test_several_axes_and_views(rng):
    x = (rng.standard_normal((4, 6, 10)) + 1j * rng.standard_normal((4, 6, 10))).astype("complex64")
    d = weft.asarray(x, device=GRID)
    close(weft.fft.fftn(d), np.fft.fftn(x), 1e-5)
    close(weft.fft.ifftn(d, axes=(0, 2)), np.fft.ifftn(x, axes=(0, 2)), 1e-5)
    close(weft.fft.rfftn(weft.real(d)), np.fft.rfftn(x.real), 1e-5)
    close(weft.fft.irfftn(d), np.fft.irfftn(x), 1e-5)
    close(weft.fft.fft(d[1:, ::2, 1::3]), np.fft.fft(x[1:, ::2, 1::3]), 1e-5)
    turned = weft.permute_dims(weft.flip(d), (2, 0, 1))
    close(
        weft.fft.fft(turned, axis=1),
        np.fft.fft(x[::-1, ::-1, ::-1].transpose(2, 0, 1), axis=1),
        1e-5,
    )
    close(weft.fft.fftshift(d), np.fft.fftshift(x), 0)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16", "float32", "float64"])
def test_types_are_the_hosts(dtype):
    x = weft.asarray([1.0, 2.0, 3.0, 5.0, 7.0]).astype(dtype)
    if dtype != "int32":
        got, want = weft.fft.rfft(x.to(GRID)), weft.fft.rfft(x)
        close(got, want.numpy(), 1e-6, want.dtype)
    got, want = weft.fft.fft(x.to(GRID)), weft.fft.fft(x)
    close(got, want.numpy(), 1e-6, want.dtype)


def test_no_rows_and_no_points():
    assert weft.fft.fft(weft.zeros((0, 5), dtype="complex64", device=GRID)).shape == (0, 5)
    with pytest.raises(weft.ArgumentError) as caught:
        weft.fft.fft(weft.zeros((3, 0), dtype="complex64", device=GRID))
    assert caught.value.code == "array.fft.length" and "of 0 points along axis 1" in str(
        caught.value
    )
    assert caught.value.notes == []


@pytest.mark.parametrize("points", [2, 3, 5, 8])
def test_the_length_of_a_real_result_follows_from_the_spectrum(rng, points):
    x = (rng.standard_normal((3, points)) + 1j * rng.standard_normal((3, points))).astype(
        "complex64"
    )
    x[:, 0], x[:, -1] = x[:, 0].real, x[:, -1].real
    got = weft.fft.irfft(weft.asarray(x, device=GRID))
    assert got.shape == (3, 2 * points - 2)
    close(got, np.fft.irfft(x), 1e-5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_machines_without_a_grid_refuse(name):
    x = weft.ones((8,), device="vta")
    with pytest.raises(weft.DeviceError) as caught:
        getattr(weft.fft, name)(x)
    assert caught.value.code == f"array.{name}.kernel" and "cpu" in str(caught.value)
    with weft.use("cpu", fallback="cpu"):
        got = getattr(weft.fft, name)(x)
    assert got.device.name == "vta" or got.dtype.name.startswith("complex")


@pytest.mark.parametrize(
    "shape,axes",
    [
        ((4, 6, 10), None),
        ((3, 4, 5, 8), (-2, -1)),
        ((6, 9), (1, 0)),
        ((2, 3, 4, 5), (2, 1)),
        ((2, 3, 4, 5), (3, 1, 2)),
    ],
)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_neighbouring_axes_together(rng, shape, axes, norm):
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype("complex128")
    d = weft.asarray(x, device=GRID)
    for name in ("fftn", "ifftn", "irfftn"):
        want = getattr(np.fft, name)(x, axes=axes, norm=norm)
        close(getattr(weft.fft, name)(d, axes=axes, norm=norm), want, 1e-12)
    want = np.fft.rfftn(x.real, axes=axes, norm=norm)
    close(weft.fft.rfftn(weft.real(d), axes=axes, norm=norm), want, 1e-12)
