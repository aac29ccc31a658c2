# SPDX-License-Identifier: Apache-2.0
"""Gradients through complex numbers, Fourier transforms and determinants, beside central differences in float64."""

import numpy as np
import pytest
import weft


def differences(f, x, step=1e-6):
    """The gradient of f, a function of an array of real numbers with one real result."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (f(up) - f(down)) / (2 * step)
    return out


def number(f, x):
    return float(f(weft.asarray(x)).item())


def check(f, x, tolerance=1e-7, second=True):
    """weft.grad of a real function of a real array, of first and of second order."""
    got = weft.grad(f)(weft.asarray(x)).numpy()
    np.testing.assert_allclose(
        got, differences(lambda v: number(f, v), x), rtol=1e-6, atol=tolerance
    )

    if not second:
        return

    def slope(v):
        return (weft.grad(f)(v) * weights).sum()

    weights = weft.asarray(np.random.default_rng(3).standard_normal(x.shape))
    got = weft.grad(slope)(weft.asarray(x)).numpy()
    want = differences(lambda v: number(slope, v), x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=100 * tolerance)


def weighted(z, seed=5):
    """A real number that depends on both parts of all complex ones."""
    rng = np.random.default_rng(seed)
    a, b = (weft.asarray(rng.standard_normal(z.shape)) for _ in range(2))
    if z.dtype.kind != "c":
        return (z * z * a).sum()
    return (weft.real(z) * a + weft.imag(z) * b + weft.real(z * weft.conj(z)) * b).sum()


def draw(*shape, seed=1):
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape)


C = 0.7 - 1.3j
COMPLEX = {
    "scaled": lambda x: x * C,
    "scaled from the left": lambda x: C * x,
    "quotient": lambda x: x / C,
    "quotient of a number": lambda x: C / (x + 1j),
    "product": lambda x: (x * C) * (x + 2j),
    "quotient of tensors": lambda x: (x + C) / (x * x + 3j),
    "real operand": lambda x: x * (x * x + 1j),
    "square": lambda x: weft.square(x + C),
    "power": lambda x: (x + C) ** 3,
    "power of tensors": lambda x: (x + C) ** (x * 0.5),
    "exp": lambda x: weft.exp(x * C),
    "log": lambda x: weft.log(x + C),
    "sqrt": lambda x: weft.sqrt(x + C),
    "sin": lambda x: weft.sin(x * C),
    "tanh": lambda x: weft.tanh(x * (0.3 + 0.2j)),
    "reciprocal": lambda x: weft.reciprocal(x + C),
    "conj": lambda x: weft.conj(x * C) * x,
    "abs": lambda x: weft.abs(x * C + 1j * x * x) * C,
    "sign": lambda x: weft.sign(x * C + 1j * x * x),
    "real": lambda x: weft.real((x * C) ** 2) * x,
    "real of real": lambda x: weft.real(x) * x,
    "imag": lambda x: weft.imag((x * C) ** 2) * x,
    "cast": lambda x: (x * C).astype("complex128") * x.astype("complex128"),
    "sum": lambda x: (x * C).sum(axis=0) ** 2,
    "mean": lambda x: (x * C).mean(axis=-1) ** 2,
    "product of matrices": lambda x: (x * C) @ (x + 1j).mT,
    "a real matrix": lambda x: x @ (x + 1j).mT,
    "einsum": lambda x: weft.einsum("ij,kj->ik", x * C, x + 2j),
    "vecdot": lambda x: weft.vecdot(x * C, x + 2j),
    "where": lambda x: weft.where(x.detach() > 1, x * C, x * x * 1j),
    "pad and slice": lambda x: weft.pad(x * C, ((1, 0), (0, 2)))[:, 1:4] ** 2,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_through_complex_numbers(name):
    f = COMPLEX[name]
    check(lambda x: weighted(f(x)), draw(3, 4))


def test_the_sign_of_zero_has_no_slope():
    z = weft.Tensor(weft.asarray(np.array([0j, 3 + 4j])), requires_grad=True)
    weft.real(weft.sign(z) * C).sum().backward()
    s = 0.6 + 0.8j
    along = (np.conj(s) * np.conj(C)).real
    np.testing.assert_allclose(z.grad.numpy(), [0, (np.conj(C) - s * along) / 5])


def test_gradient_of_a_complex_leaf_is_the_steepest_direction():
    z = weft.Tensor(weft.asarray(np.array([1 + 2j, -0.5j])), requires_grad=True)
    weft.real(z * weft.conj(z)).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.numpy())
    z.grad = None
    weft.real(z * z * C).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), np.conj(2 * z.numpy() * C))


def test_compiled_functions_have_the_same_gradient():
    def f(x):
        z = x * C
        return (weft.abs(weft.exp(z) * z) + weft.imag(z * z) + weft.real(weft.sign(z + x))).sum()

    x = weft.asarray(draw(5))
    np.testing.assert_allclose(
        weft.grad(weft.compile(f))(x).numpy(), weft.grad(f)(x).numpy(), rtol=1e-12
    )


NORMS = ("backward", "ortho", "forward")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 5, 7, 8, 11])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft"])
def test_transforms_of_real_numbers(name, n, norm):
    transform = getattr(weft.fft, name)
    check(lambda x: weighted(transform(x, n=n, axis=0, norm=norm)), draw(7, 2))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 1, 4, 6, 7, 9, 12])
@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft"])
def test_transforms_of_complex_numbers(name, n, norm):
    transform = getattr(weft.fft, name)
    check(lambda x: weighted(transform(x * (x + C), n=n, axis=-1, norm=norm)), draw(2, 5))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "rfft2", "irfft2"])
def test_transforms_along_several_axes(name):
    transform = getattr(weft.fft, name)
    turn = C if name.startswith(("i", "f")) else 1.0
    check(lambda x: weighted(transform(x * turn)), draw(3, 4, 5)[0 if "2" in name else slice(2)])


def test_transform_filter_and_back():
    signal = draw(2, 9)
    response = weft.asarray(draw(5, seed=8) + 1j * draw(5, seed=9))

    def f(x):
        return (weft.fft.irfft(weft.fft.rfft(x) * response, n=9) ** 3).sum()

    check(f, signal, 1e-6)


def test_transforms_of_float32_keep_their_type():
    x = weft.asarray(draw(6).astype("float32"))
    g = weft.grad(lambda v: weft.abs(weft.fft.rfft(v)).sum())(x)
    assert g.dtype == weft.float32 and g.shape == (6,)
    empty = weft.grad(lambda v: weft.abs(weft.fft.fft(v)).sum())(x.reshape(1, 6)[:0])
    assert empty.shape == (0, 6)


def test_transforms_of_examples():
    x = draw(4, 6)
    f = weft.grad(lambda v: weighted(weft.fft.rfft(v)))
    got = weft.vmap(f)(weft.asarray(x)).numpy()
    for row, want in zip(got, x):
        np.testing.assert_allclose(row, f(weft.asarray(want)).numpy(), rtol=1e-12)


MATRICES = draw(2, 3, 3, seed=4) - 1.1


def test_logarithms_of_determinants():
    check(lambda x: (weft.linalg.slogdet(x).logabsdet ** 2).sum(), MATRICES)
    sign, log = weft.linalg.slogdet(weft.Tensor(weft.asarray(MATRICES), requires_grad=True))
    assert log.requires_grad and not sign.requires_grad
    np.testing.assert_array_equal(sign.numpy(), np.linalg.slogdet(MATRICES)[0])


@pytest.mark.parametrize(
    "f",
    [
        lambda a: weft.linalg.slogdet(a).logabsdet,
        lambda a: weft.linalg.slogdet(a).sign,
        weft.linalg.det,
        weft.linalg.inv,
        lambda a: weft.linalg.solve(a, a * a),
        lambda a: weft.linalg.solve(a, a[..., 0, :, None] * 1j),
    ],
)
def test_complex_matrices(f):
    check(lambda x: weighted(f(x * C + x * x * 1j)), MATRICES, 1e-6)
