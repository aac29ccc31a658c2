# SPDX-License-Identifier: Apache-2.0
"""Batch norm by its own kernels on devices with a grid, beside the formula in float64."""

import numpy as np
import pytest

from cover import cover
import weft
from weft import nn


@pytest.fixture(params=["opencl:0", "cuda:0"])
def device(request):
    found = weft.device(request.param)
    if not found.available:
        pytest.skip(f"{request.param}: {found.reason}")
    return request.param


LAYERS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
SHAPES = [(8, 3), (2, 1), (5, 4, 7), (4, 3, 5, 6), (1, 2, 1, 3), (33, 16, 9, 7), (64, 130, 1, 1), (2, 3, 2, 3, 4)]  # fmt: skip


def reference(x, w, b, g, eps):
    axes, shape = tuple(i for i in range(x.ndim) if i != 1), [1, -1] + [1] * (x.ndim - 2)
    m, v = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    normal = (x - m) / np.sqrt(v + eps)
    gw = g * w.reshape(shape)
    mean = lambda t: t.mean(axes, keepdims=True)  # noqa: E731
    dx = (gw - mean(gw) - normal * mean(gw * normal)) / np.sqrt(v + eps)
    return normal * w.reshape(shape) + b.reshape(shape), dx, (g * normal).sum(axes), g.sum(axes)


@cover(
    "shape, layout", [(s, layout) for s in SHAPES for layout in ("compact", "turned")],
    "dtype", ["float32", "float64", "float16", "bfloat16"], times=3,
)  # fmt: skip
def test_values_and_gradients(device, rng, shape, dtype, layout):
    given = (rng.standard_normal(shape) * 2 + 1).astype("float32")
    x = weft.asarray(given, device=device).astype(dtype)
    if layout == "turned":
        x = weft.permute_dims(weft.permute_dims(x, tuple(range(len(shape)))[::-1]).copy(), tuple(range(len(shape)))[::-1])  # fmt: skip
    layer = LAYERS[len(shape)](shape[1], device=device, dtype=dtype)
    for p in layer.parameters():
        p.data = weft.asarray(rng.standard_normal(shape[1]).astype("float32"), device=device).astype(dtype)  # fmt: skip
    t = weft.Tensor(x, requires_grad=True)
    y = layer(t)
    g = weft.asarray(rng.standard_normal(shape).astype("float32"), device=device).astype(dtype)
    y.backward(weft.Tensor(g))
    wide = lambda a: a.astype("float32").numpy().astype("float64")  # noqa: E731
    want = reference(wide(x), wide(layer.weight.data), wide(layer.bias.data), wide(g), 1e-5)
    got = y.data, t.grad.data, layer.weight.grad.data, layer.bias.grad.data
    tolerance = {"float32": 2e-5, "float64": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    for a, b in zip(got, want):
        assert str(a.dtype) == dtype
        np.testing.assert_allclose(wide(a), b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max()))  # fmt: skip
    count = x.size // shape[1]
    axes = tuple(i for i in range(len(shape)) if i != 1)
    var = wide(x).var(axes) * count / max(count - 1, 1)
    np.testing.assert_allclose(wide(layer.running_mean), 0.1 * wide(x).mean(axes), rtol=tolerance, atol=tolerance)  # fmt: skip
    np.testing.assert_allclose(wide(layer.running_var), 0.9 + 0.1 * var, rtol=tolerance, atol=tolerance)  # fmt: skip


def test_the_gradient_of_the_gradient(device, rng):
    given = rng.standard_normal((6, 3, 4, 2)).astype("float32")

    def second(d):
        layer = nn.BatchNorm2d(3, device=d)
        x = weft.Tensor(weft.asarray(given, device=d), requires_grad=True)
        (layer(x) ** 3).sum().backward(create_graph=True)
        (x.grad**2).sum().backward()
        return x.grad.numpy(), layer.weight.grad.numpy()

    for a, b in zip(second(device), second("cpu")):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def test_no_number_in_one_channel(device, rng):
    x = rng.standard_normal((4, 3, 2, 2)).astype("float32")
    x[1, 1, 0, 1] = np.nan
    y = nn.BatchNorm2d(3, device=device)(weft.Tensor(weft.asarray(x, device=device))).numpy()
    assert np.isnan(y[:, 1]).all() and np.isfinite(y[:, [0, 2]]).all()


def test_statistics_that_count_batches_are_not_captured(device):
    layer = nn.BatchNorm2d(3, momentum=None, device=device)
    x = weft.Tensor(weft.ones((2, 3, 4, 4), dtype="float32", device=device), requires_grad=False)
    with pytest.raises(weft.ArgumentError, match="give a momentum") as refused:
        weft.capture(layer, state=layer)(x)
    assert refused.value.code == "nn.batch_norm.capture"
