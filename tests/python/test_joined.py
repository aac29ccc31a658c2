# SPDX-License-Identifier: Apache-2.0
"""Compositions of maps and reductions in few kernels on devices with a grid: values, gradients and launches."""

import numpy as np
import pytest
from present import present

import weft
from weft import _core

F = weft.nn.functional


@pytest.fixture(scope="module", params=["opencl:0", "cuda:0"])
def grid(request):
    return present(request.param)


def rms(x, w=None, eps=1e-5):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return y if w is None else y * w


CASES = {
    "rms_norm": (lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-5), rms, (True, True)),
    "rms_norm plain": (lambda x: F.rms_norm(x, (x.shape[-1],), None, 1e-5), rms, (True,)),
    "normalize": (
        lambda x: F.normalize(x, axis=-1),
        lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-12),
        (True,),
    ),
}


def draw(shape, operands, seed=5):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape if i == 0 else shape[-1:]) for i in range(len(operands))]


def numeric(f, operands, at, g, step=1e-5):
    """The gradient of sum(f * g) by differences, in float64."""
    out = np.zeros_like(operands[at])
    for i in np.ndindex(out.shape):
        ends = []
        for sign in (1, -1):
            moved = [x.copy() for x in operands]
            moved[at][i] += sign * step
            ends.append((f(*moved) * g).sum())
        out[i] = (ends[0] - ends[1]) / (2 * step)
    return out


@pytest.mark.parametrize("shape", [(3, 7), (200, 33), (2, 5, 64)])
@pytest.mark.parametrize("name", CASES)
def test_values(grid, name, shape):
    ours, numpys, operands = CASES[name]
    host = draw(shape, operands)
    want = numpys(*host)
    for dtype, bound in (("float32", 1e-5), ("bfloat16", 2e-2), ("float16", 3e-3)):
        own = [weft.asarray(x.astype("float32"), device=grid).astype(dtype) for x in host]
        got = ours(*own)
        assert got.dtype == dtype and str(got.device) == str(grid)
        got = got.astype("float32").numpy()
        assert np.abs(got - want).max() <= bound * np.abs(want).max(), dtype


@pytest.mark.parametrize("name", CASES)
def test_gradients(grid, name):
    ours, numpys, operands = CASES[name]
    host = draw((4, 9), operands)
    g = np.random.default_rng(6).standard_normal((4, 9))
    own = [
        weft.Tensor(weft.asarray(x.astype("float32"), device=grid), requires_grad=True)
        for x in host
    ]
    seed = weft.Tensor(weft.asarray(g.astype("float32"), device=grid), requires_grad=False)
    (ours(*own) * seed).sum().backward()
    for i, leaf in enumerate(own):
        want = numeric(numpys, host, i, g)
        assert np.abs(leaf.grad.numpy() - want).max() <= 2e-4 * np.abs(want).max()


def test_gradients_of_gradients_are_those_of_the_host(grid):
    host = draw((4, 9), (True, True))

    def second(device):
        x, w = (weft.asarray(a.astype("float32"), device=device) for a in host)
        loss = lambda x: (
            weft.grad(lambda y: (F.rms_norm(y, (9,), w, 1e-5) ** 3).sum())(x) ** 2
        ).sum()
        return weft.grad(loss)(x).numpy()

    want = second("cpu")
    assert np.abs(second(grid) - want).max() <= 2e-4 * np.abs(want).max()


def test_one_launch(grid):
    if str(grid).startswith("cuda"):
        pytest.skip("a graph counts its nodes")
    x = weft.asarray(np.ones((512, 64), "float32"), device=grid)
    w = weft.ones((64,), device=grid)
    work = lambda: F.rms_norm(x, (64,), w, 1e-5)
    work()
    recording, _ = _core._record(_core.MemoryPool(grid), work)
    assert recording.launches == 1
