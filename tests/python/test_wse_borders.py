# SPDX-License-Identifier: Apache-2.0
"""Stencils of values on the wafer: reads beyond the buffer, conditions around them, borders from the neighbours."""

import numpy as np
import pytest

import weft
from weft import te

DIAGONAL = [(-1, -1), (1, 1), (0, 0), (-1, 1)]
STAR = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]


def stencil(shape, offsets, otherwise=0.0, within=None, weights=None, added=0):
    """Two stages: 2 X + `added`, then the sum of its elements at `offsets`; `otherwise` where `within` (default: the buffer)
    does not hold. Returns the tensors and the function of NumPy."""
    rows, cols = shape
    weights = weights or [0.25 * (k + 1) for k in range(len(offsets))]
    X = te.placeholder(shape, name="X")
    S = te.compute(
        shape, lambda i, j: X[i, j] * te.const(2, "float32") + te.const(added, "float32"), name="S"
    )
    low, high = within or (0, 0)  # the condition is that much narrower than the buffer

    def value(i, j):
        e = te.const(0, "float32")
        for (di, dj), w in zip(offsets, weights):
            conditions = [
                test
                for x, d, n in ((i, di, rows), (j, dj, cols))
                if d or within
                for test in (x + d >= low, x + d < n - high)
            ]
            read = S[i + di, j + dj]
            for c in conditions:
                read = te.if_then_else(c, read, te.const(otherwise, "float32"))
            e = e + read * te.const(w, "float32")
        return e

    Y = te.compute(shape, value, name="Y")

    def numpy(x):
        s, y = x.astype("f8") * 2 + added, np.zeros(shape)
        for i in range(rows):
            for j in range(cols):
                for (di, dj), w in zip(offsets, weights):
                    a, b = i + di, j + dj
                    tested = [(a, rows)] * bool(di or within) + [(b, cols)] * bool(dj or within)
                    inside = all(low <= v < n - high for v, n in tested)
                    y[i, j] += w * (s[a, b] if inside else otherwise)
        return y

    return [X, Y], numpy


CASES = {
    "star": ((8, 8), STAR, {}),
    "corners": ((8, 8), DIAGONAL, {}),
    "the last corner": ((8, 8), [(0, 0), (1, 1)], {}),
    "a corner of each kind": ((8, 8), [(0, 0), (1, -1)], {}),
    "one side": ((8, 8), [(0, 0), (-1, 0), (0, 1)], {}),
    "two away": ((8, 12), [(0, 0), (-2, 0), (2, 0), (0, -2), (0, 2)], {}),
    "uneven parts": ((7, 9), STAR, {}),
    "uneven corners": ((9, 7), DIAGONAL, {}),
    "uneven parts of a value that is nowhere zero": ((7, 9), STAR, {"added": 1}),
    "another value outside": ((8, 8), STAR, {"otherwise": 1.5}),
    "minus zero outside": ((8, 8), STAR, {"otherwise": -0.0}),
    "a narrower condition": ((8, 8), STAR, {"within": (1, 2)}),
    "one element a PE": ((4, 4), STAR, {}),
}


@pytest.mark.parametrize("machine", ["4x4", "4x1", "1x4", "1x1"])
@pytest.mark.parametrize("arch", ["wse2", "wse3"])
@pytest.mark.parametrize("name", CASES)
def test_stencils_of_values_on_the_wafer(name, arch, machine):
    shape, offsets, more = CASES[name]
    tensors, numpy = stencil(shape, offsets, **more)
    module = weft.build(te.create_prim_func(tensors), target=f"wse:{machine},arch={arch}")
    device = weft.device(f"wse:{machine},arch={arch}")
    rng = np.random.default_rng(3)
    for _ in range(2):  # what a call leaves on the PEs must not show in the next one
        x = rng.standard_normal(shape, np.float32)
        out = weft.zeros(shape, dtype="float32", device=device)
        module["main"](weft.asarray(x, device=device), out)
        np.testing.assert_allclose(out.numpy(), numpy(x), rtol=1e-5, atol=1e-5)


def test_infinity_and_nan_stay_where_they_are():
    tensors, numpy = stencil((8, 8), STAR)
    target = "wse:4x4"
    module = weft.build(te.create_prim_func(tensors), target=target)
    device = weft.device(target)
    x = np.ones((8, 8), np.float32)
    x[0, 0], x[7, 3] = np.nan, np.inf
    out = weft.zeros((8, 8), dtype="float32", device=device)
    module["main"](weft.asarray(x, device=device), out)
    np.testing.assert_allclose(out.numpy(), numpy(x), rtol=1e-5)


def test_edges_of_a_star_cost_no_extra_operations():
    """One operation an offset on every PE, whatever its place."""
    tensors, _ = stencil((16, 16), STAR)
    module = weft.build(te.create_prim_func(tensors), target="wse:4x4")
    text = module.source()
    stage = text[text.index("fn stage1()") :]
    assert "within(" not in stage
    assert stage.count("@fmuls") + stage.count("@fmacs") == len(STAR), stage
