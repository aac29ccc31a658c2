# SPDX-License-Identifier: Apache-2.0
"""Operators that are one program for every device (src/weft/operators/plain), beside NumPy in float64 at odd sizes."""

import numpy as np
import pytest
from present import present

import weft

DEVICES = ["cpu", "opencl:0", "qpu", "wse:4x4"]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
rng = np.random.default_rng(15)


def distances(x, y):
    difference = x[..., :, None, :].astype("float64") - y[..., None, :, :]
    return np.sqrt((difference**2).sum(-1))


def gradients(x, y, g):
    difference = x[..., :, None, :].astype("float64") - y[..., None, :, :]
    d = distances(x, y)
    share = np.where(d > 0, g / np.where(d > 0, d, 1), 0)[..., None]
    return (share * difference).sum(-2), -(share * difference).sum(-3)


def arrays(device, dtype, *values):
    """On the device, and what it holds as float64."""
    on = [weft.asarray(v, dtype=dtype).to(device) for v in values]
    return on, [weft.asarray(a, device="cpu").astype("float64").numpy() for a in on]


SHAPES = [((1, 1), (1, 1)), ((3, 5), (7, 5)), ((17, 3), (2, 3)), ((2, 5, 4), (2, 3, 4))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_values_and_gradients(device, shapes):
    on = present(device)
    (x, y), (a, b) = arrays(on, "float32", *(rng.uniform(-2, 2, s) for s in shapes))
    want = distances(a, b)
    assert np.abs(weft.cdist(x, y).numpy() - want).max() <= 2e-5 * (1 + want.max())
    tx, ty = weft.Tensor(x, requires_grad=True), weft.Tensor(y, requires_grad=True)
    out = weft.cdist(tx, ty)
    (g,), (gd,) = arrays(on, "float32", rng.uniform(-1, 1, want.shape))
    out.backward(weft.Tensor(g))
    for got, wanted in zip((tx.grad, ty.grad), gradients(a, b, gd)):
        assert np.abs(got.numpy() - wanted).max() <= 1e-4 * (1 + np.abs(wanted).max())


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_types(device, dtype):
    (x, y), (a, b) = arrays(
        present(device), dtype, rng.uniform(-2, 2, (37, 19)), rng.uniform(-2, 2, (41, 19))
    )
    got = weft.cdist(x, y)
    assert str(got.dtype) == dtype
    want = distances(a, b)
    host = weft.asarray(got, device="cpu").astype("float64").numpy()
    assert np.abs(host - want).max() <= TOLERANCE[dtype] * want.max()


def test_equal_rows_have_no_gradient():
    x = weft.Tensor(weft.asarray(np.ones((2, 3), "float32")), requires_grad=True)
    weft.cdist(x, x.detach()).sum().backward()
    assert (x.grad.numpy() == 0).all()


def test_views_mixed_types_and_whole_numbers():
    x, y = rng.uniform(-2, 2, (6, 10)), rng.integers(-3, 3, (4, 5))
    got = weft.cdist(weft.asarray(x)[::2, ::-2], weft.asarray(y))
    assert np.allclose(got.numpy(), distances(x[::2, ::-2], y))


def test_nothing():
    assert weft.cdist(weft.zeros((0, 3)), weft.zeros((2, 3))).shape == (0, 2)
    assert (weft.cdist(weft.zeros((2, 0)), weft.zeros((3, 0))).numpy() == 0).all()


def test_under_transforms():
    x, y = rng.uniform(-2, 2, (5, 3, 4)), rng.uniform(-2, 2, (5, 2, 4))
    got = weft.vmap(weft.cdist)(weft.asarray(x), weft.asarray(y))
    assert np.allclose(got.numpy(), distances(x, y))
    assert np.allclose(
        weft.compile(weft.cdist)(weft.asarray(x[0]), weft.asarray(y[0])).numpy(),
        distances(x[0], y[0]),
    )


def test_batches_are_broadcast_and_complex_rows_are_composed():
    x, y = rng.uniform(-2, 2, (2, 1, 3, 5)), rng.uniform(-2, 2, (4, 7, 5))
    assert np.allclose(weft.cdist(weft.asarray(x), weft.asarray(y)).numpy(), distances(x, y))
    z = x[0, 0] + 1j * y[0, :3]
    want = np.linalg.norm(z[:, None] - y[0], axis=-1)
    assert np.allclose(weft.cdist(weft.asarray(z), weft.asarray(y[0])).numpy(), want)


def test_refusals():
    x = weft.Tensor(weft.zeros((3, 4)))

    def refusal(*operands):
        with pytest.raises(weft.Error) as caught:
            weft._core._plain_operator("cdist", operands)
        return caught.value

    wrong = refusal(x, weft.Tensor(weft.zeros((3, 5))))
    assert wrong.code == "array.cdist.shape" and "cdist of x of shape" in str(wrong)
    assert "(..., m, k)" in str(wrong)
    assert refusal(weft.Tensor(weft.zeros((2, 3, 4))), x).code == "array.cdist.shape"
    wrong = refusal(x.astype("complex64"), x)
    assert wrong.code == "array.cdist.type" and "one floating type" in str(wrong)


def test_a_gradient_of_the_gradient_is_refused():
    x = weft.Tensor(weft.asarray(rng.uniform(-1, 1, (3, 4))), requires_grad=True)
    y = weft.asarray(rng.uniform(-1, 1, (2, 4)))
    weft.cdist(x, y).sum().backward(create_graph=True)
    with pytest.raises(weft.Error, match="the gradient of cdist has no gradient") as caught:
        x.grad.sum().backward()
    assert caught.value.code == "array.cdist.gradient"


def test_a_machine_of_integers_refuses_it():
    device = present("vta")
    x = weft.zeros((2, 3), dtype="float32", device=device)
    with pytest.raises(weft.Error, match="vta"):
        weft.cdist(x, x)
