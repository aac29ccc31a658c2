# SPDX-License-Identifier: Apache-2.0
"""A kernel that was built for one shape serves others: extents and strides are arguments of a card's kernels.

What decides tiles, vectors and unrolling stays in the program as a class: whole vectors or not, orders of size, positions of 32 bits.
"""

import numpy as np
import pytest
from present import present
import weft
from weft import _core

F = weft.nn.functional
GRID = present("opencl:0")


def _values(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _convolution(x, w, stride, padding):
    """Sums of windows in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w.astype(np.float64))


def _softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# name: (function, the same by NumPy, shapes of the arguments of several calls, of one class)
CALLS = {
    "map": (lambda x, y: weft.sin(x) * y + 1, lambda x, y: np.sin(x) * y + 1, [[(33, 47)] * 2, [(35, 61)] * 2, [(7, 5, 3)] * 2]),
    "broadcast": (lambda x, y: x + y, np.add, [[(33, 48), (48,)], [(61, 52), (52,)], [(5, 100), (100,)]]),
    "transposed": (lambda x, y: x.mT * y, lambda x, y: x.T * y, [[(33, 47), (47, 33)], [(35, 61), (61, 35)], [(50, 45), (45, 50)]]),
    "sums of planes": (lambda x: weft.sum(x, axis=(0, 2)), lambda x: x.sum((0, 2)), [[(3, 20, 100)], [(4, 21, 112)], [(3, 30, 108)]]),
    "sums of columns": (lambda x: weft.sum(x, axis=0), lambda x: x.sum(0), [[(300, 100)], [(400, 112)], [(510, 84)]]),
    "softmax": (lambda x: F.softmax(x, dim=-1), _softmax, [[(40, 129)], [(77, 131)], [(9, 133)]]),
    "convolution by strips": (lambda x, w: F.conv2d(x, w, padding=1), lambda x, w: _convolution(x, w, 1, 1), [[(2, 3, 17, 19), (6, 3, 3, 3)], [(3, 3, 23, 21), (6, 3, 3, 3)]]),
    "convolution by tiles": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), lambda x, w: _convolution(x, w, 2, 1), [[(2, 16, 17, 19), (32, 16, 3, 3)], [(3, 16, 23, 21), (32, 16, 3, 3)]]),
}  # fmt: skip


@pytest.fixture
def texts():
    """How many different kernels array operations have built."""
    return lambda: len({source for *_, source in _core.built_programs()})


@pytest.mark.parametrize("name", CALLS)
def test_the_next_shape_builds_nothing(name, texts):
    ours, theirs, shapes = CALLS[name]
    built = []
    for each in shapes:
        arrays = [_values(*s) for s in each]
        before = texts()
        got = ours(*(weft.asarray(a, device=GRID) for a in arrays))
        np.testing.assert_allclose(got.numpy(), theirs(*arrays), rtol=1e-4, atol=1e-4)
        built.append(texts() - before)
    assert built[1:] == [0] * (len(shapes) - 1)


def test_fused_rows_of_another_number_and_length_build_nothing(texts):
    def f(x, y):
        z = x * y
        return (z - weft.mean(z, axis=-1, keepdims=True)) * weft.max(x, axis=-1, keepdims=True)

    built = []
    for rows, columns in ((70, 129), (90, 131), (65, 133)):
        x, y = _values(rows, columns), _values(columns, rows).T.copy()
        before = texts()
        got = weft.compile(f)(*(weft.asarray(a, device=GRID) for a in (x, y)))
        z = x.astype(np.float64) * y
        want = (z - z.mean(-1, keepdims=True)) * x.max(-1, keepdims=True)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
        built.append(texts() - before)
    assert built[0] and built[1:] == [0, 0]


def test_kernels_that_are_built_together_are_found_afterwards(texts):
    """What torch's back end does with each step: the work runs, its errors pass, and later calls build nothing."""
    x = weft.asarray(_values(6, 77), device=GRID)
    work = lambda: weft.sqrt(weft.abs(weft.cos(x) - 0.125)).numpy()  # noqa: E731
    seen = []
    _core._build_together(x, lambda: seen.append(work()))
    before = texts()
    np.testing.assert_array_equal(work(), seen[0])
    assert texts() == before
    with pytest.raises(ZeroDivisionError):
        _core._build_together(x, lambda: 1 // 0)
