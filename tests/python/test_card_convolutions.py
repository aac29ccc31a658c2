# SPDX-License-Identifier: Apache-2.0
"""Convolutions with every option on a device with blocks and threads, beside the host's in float64."""

import os

import numpy as np
import pytest
from cover import cover
from present import present

import weft
from weft import Tensor
from weft.nn import functional as F

CASES = {
    "plain": dict(n=3, c=4, o=13, image=(9, 11), kernel=(3, 3)),
    "one by one": dict(n=3, c=5, o=17, image=(6, 5), kernel=(1, 1)),
    "7 x 7, step 2": dict(
        n=2, c=3, o=10, image=(23, 21), kernel=(7, 7), stride=(2, 2), padding=(3, 3)
    ),
    "padding beyond the kernel": dict(n=1, c=2, o=11, image=(3, 2), kernel=(2, 3), padding=(4, 5)),
    "strides and dilation": dict(
        n=2,
        c=9,
        o=10,
        image=(13, 17),
        kernel=(3, 2),
        stride=(2, 3),
        padding=(2, 1),
        dilation=(2, 3),
    ),
    "a stride beyond the window": dict(n=2, c=3, o=9, image=(11, 8), kernel=(2, 1), stride=(5, 3)),
    "strides and dilation share a factor": dict(
        n=1, c=2, o=3, image=(20, 19), kernel=(3, 4), stride=(4, 6), padding=(3, 2), dilation=(2, 4)
    ),
    "groups": dict(n=2, c=20, o=30, image=(7, 7), kernel=(3, 3), padding=(1, 1), groups=2),
    "groups of few": dict(
        n=2, c=6, o=9, image=(7, 8), kernel=(3, 3), stride=(2, 1), padding=(1, 1), groups=3
    ),
    "each channel": dict(n=2, c=5, o=5, image=(8, 6), kernel=(3, 3), padding=(1, 1), groups=5),
    "each channel, step 2": dict(
        n=3, c=7, o=7, image=(9, 10), kernel=(5, 5), stride=(2, 2), padding=(2, 2), groups=7
    ),
    "two results of each channel, dilation": dict(
        n=1, c=3, o=6, image=(9, 9), kernel=(3, 3), padding=(2, 2), dilation=(2, 2), groups=3
    ),
    # Sums that are cut into parts: of equal ones, with a rest, of groups.
    "many channels to three": dict(n=1, c=40, o=3, image=(9, 11), kernel=(3, 3), padding=(1, 1)),
    "a prime number of channels to five": dict(
        n=1, c=37, o=5, image=(6, 7), kernel=(3, 2), stride=(2, 1), padding=(0, 1)
    ),
    "three to many channels": dict(n=1, c=3, o=43, image=(7, 9), kernel=(7, 5), padding=(1, 3)),
    "groups of many channels to two": dict(
        n=1, c=72, o=6, image=(8, 5), kernel=(3, 3), stride=(1, 2), padding=(1, 0), groups=3
    ),
    "windows side by side, with margins": dict(
        n=2, c=11, o=13, image=(8, 9), kernel=(3, 2), stride=(3, 2), padding=(1, 1)
    ),
    "windows side by side in groups": dict(
        n=2, c=10, o=14, image=(9, 13), kernel=(2, 3), stride=(2, 3), groups=2
    ),
    "wide windows of each channel": dict(
        n=1, c=2, o=2, image=(3, 70), kernel=(1, 40), padding=(0, 3), groups=2
    ),
    "an image to many results": dict(
        n=2, c=3, o=19, image=(17, 12), kernel=(3, 3), stride=(2, 1), padding=(1, 1)
    ),
    "long windows of an image": dict(
        n=2,
        c=3,
        o=12,
        image=(33, 35),
        kernel=(9, 9),
        stride=(4, 3),
        padding=(2, 5),
        dilation=(1, 2),
    ),
    "patches of an image": dict(n=2, c=3, o=10, image=(48, 32), kernel=(16, 16), stride=(16, 16)),
    "long windows, a common factor": dict(
        n=1, c=2, o=9, image=(40, 41), kernel=(9, 8), stride=(6, 4), padding=(3, 2), dilation=(4, 6)
    ),
    "many channels": dict(n=3, c=64, o=50, image=(13, 15), kernel=(3, 3), padding=(1, 1)),
    "many channels, no padding": dict(n=2, c=65, o=64, image=(10, 8), kernel=(3, 3)),
    "many channels, wide padding": dict(
        n=1, c=64, o=66, image=(7, 6), kernel=(3, 3), padding=(3, 4)
    ),
    "no image": dict(n=0, c=2, o=3, image=(4, 4), kernel=(3, 3)),
}
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 1.5e-2, "float16": 3e-3}


@pytest.fixture(scope="module")
def device():
    return present("opencl:0")


@pytest.fixture
def rng():
    seed = int(os.environ.get("WEFT_SEED", "20261122"))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def close(got, want, dtype, what):
    got, want = got.data.astype("float64").numpy(), want.data.numpy()
    assert got.shape == want.shape, what
    if want.size:
        error = np.linalg.norm(got - want) / max(1e-30, np.linalg.norm(want))
        assert error <= TOLERANCE[dtype], (what, error)


def both(rng, device, dtype, *shapes):
    """The same numbers on the device in `dtype` and on the host in float64."""
    out = []
    for shape in shapes:
        values = weft.asarray(rng.standard_normal(shape)).astype(dtype)
        there = Tensor(values.to(device), requires_grad=True)
        out.append((there, Tensor(values.astype("float64"), requires_grad=True)))
    return out


def options(case):
    names = ("stride", "padding", "dilation")
    return {name: case.get(name, (1, 1) if name != "padding" else (0, 0)) for name in names} | {
        "groups": case.get("groups", 1)
    }


def compare(rng, device, dtype, function, inputs, names):
    (x, hx), (w, hw) = inputs
    y, hy = function(x, w), function(hx, hw)
    close(y, hy, dtype, "forward")
    (g, hg), *_ = both(rng, device, dtype, tuple(hy.shape))
    y.backward(g.detach())
    hy.backward(hg.detach())
    close(x.grad, hx.grad, dtype, names[0])
    close(w.grad, hw.grad, dtype, names[1])


@cover("name", [*CASES][::-1], "dtype", ["float32", "bfloat16"], times=8)
def test_convolutions_and_their_gradients(rng, device, name, dtype):
    case = CASES[name]
    shapes = (
        (case["n"], case["c"], *case["image"]),
        (case["o"], case["c"] // case.get("groups", 1), *case["kernel"]),
    )
    inputs = both(rng, device, dtype, *shapes)
    function = lambda x, w: F.conv2d(x, w, **options(case))  # noqa: E731
    compare(rng, device, dtype, function, inputs, ("input", "weight"))


@pytest.mark.parametrize("name", ["strides and dilation", "groups of few", "each channel, step 2"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_transposed_convolutions(rng, device, name, dtype):
    case = CASES[name]
    groups = case.get("groups", 1)
    shapes = (
        (case["n"], case["c"], *case["image"]),
        (case["c"], case["o"] // groups, *case["kernel"]),
    )
    inputs = both(rng, device, dtype, *shapes)
    function = lambda x, w: F.conv_transpose2d(x, w, **options(case))  # noqa: E731
    compare(rng, device, dtype, function, inputs, ("input", "weight"))


def test_views_and_second_derivatives(rng, device):
    (x, hx), (w, hw) = both(rng, device, "float64", (2, 9, 6, 4), (4, 4, 3, 3))
    turn = lambda t: weft.permute_dims(t, (0, 3, 2, 1))  # noqa: E731
    function = lambda a, b: F.conv2d(turn(a), b, stride=2, padding=1)  # noqa: E731
    compare(rng, device, "float64", function, ((x, hx), (w, hw)), ("input", "weight"))


def test_rows_and_volumes(rng, device):
    for function, image, kernel in [(F.conv1d, (19,), (4,)), (F.conv3d, (5, 6, 7), (2, 3, 2))]:
        inputs = both(rng, device, "float32", (2, 4, *image), (6, 2, *kernel))
        call = lambda a, b: function(a, b, stride=2, padding=1, groups=2)  # noqa: B023, E731
        compare(rng, device, "float32", call, inputs, ("input", "weight"))


def test_nan_beside_an_image_is_not_read(device):
    wide = weft.full((1, 2, 6, 12), float("nan"), dtype="float32", device=device)
    wide[:, :, 1:5, 3:9] = 1.0
    part = Tensor(wide[:, :, 1:5, 3:9], requires_grad=False)
    ones = lambda *shape: Tensor(weft.ones(shape, dtype="float32", device=device))  # noqa: E731
    for weights, groups in [(ones(9, 2, 3, 3), 1), (ones(2, 1, 3, 3), 2)]:
        out = F.conv2d(part, weights, padding=1, groups=groups).data.numpy()
        assert np.isfinite(out).all() and out.max() == 9 * 2 / groups
