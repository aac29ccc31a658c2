# SPDX-License-Identifier: Apache-2.0
"""Tiles in registers of convolutions whose extents no tile divides, as a tuner begins with them, and traces of schedules with
open decisions."""

import random

import numpy as np
import pytest
from present import present
from weft.tuning.machines import replayed
from weft.tuning.search import _propose
from weft.tuning.sketches import sketches_for

import weft
from weft import _core, te


def convolution(n, channels, results, size, window, step=1):
    wide = (size - 1) * step + window
    x = te.placeholder((n, channels, wide, wide), "float32", name="X")
    w = te.placeholder((results, channels, window, window), "float32", name="W")
    c, p, q = (te.reduce_axis((0, e)) for e in (channels, window, window))
    y = te.compute(
        (n, results, size, size),
        lambda b, o, i, j: te.sum(
            x[b, c, i * step + p, j * step + q] * w[o, c, p, q], axis=[c, p, q]
        ),
        name="Y",
    )
    return te.create_prim_func([x, w, y])


def reference(x, w, size, step):
    out, window = 0, w.shape[-1]
    for i, j in np.ndindex(window, window):
        part = x[:, :, i : i + (size - 1) * step + 1 : step, j : j + (size - 1) * step + 1 : step]
        out = out + np.einsum("bchw,oc->bohw", part.astype("float64"), w[:, :, i, j])
    return out


@pytest.mark.parametrize("where", ["opencl:0", "cuda:0"])
@pytest.mark.parametrize("sizes", [(1, 8, 16, 20, 5), (1, 3, 8, 30, 7), (1, 2, 40, 18, 9)])
def test_ragged_convolutions_take_tiles_in_registers(where, sizes):
    device = present(where)
    n, channels, results, size, window, step = (*sizes, 1)[:6]
    target, schedule, asked = where.partition(":")[0], weft.Schedule(convolution(*sizes)), {}

    def first(name, options):
        asked[name] = options[0]
        return options[0]

    schedule._core = _core.open_schedule(schedule.func._core, target, first)
    assert asked["b0.rule"] == "gemm_registers"
    module = weft.build(schedule, target=target, tuned=False)
    rng, wide = np.random.default_rng(sum(sizes)), (size - 1) * step + window
    x = rng.standard_normal((n, channels, wide, wide)).astype("float32")
    w = rng.standard_normal((results, channels, window, window)).astype("float32")
    out = weft.zeros((n, results, size, size), dtype="float32", device=device)
    module["main"](weft.asarray(x, device=device), weft.asarray(w, device=device), out)
    want = reference(x, w, size, step)
    assert np.linalg.norm(out.numpy() - want) <= 1e-5 * np.linalg.norm(want)


def softmax(n, m):
    x, r, s = (
        te.placeholder((n, m), "float32", name="X"),
        te.reduce_axis((0, m)),
        te.reduce_axis((0, m)),
    )
    top = te.compute((n,), lambda i: te.max(x[i, r], axis=r), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, s], axis=s), name="total")
    return te.create_prim_func([x, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="Y")])


def test_schedules_of_any_answers_can_be_repeated():
    """Reductions in parts with a block that finishes them use loops that the trace must know."""
    program, made, target = softmax(8192, 1000), 0, "cuda"
    start = weft.Schedule(program)
    for seed in range(40):
        try:
            _, schedule = _propose(random.Random(seed), start, sketches_for(target), [])
        except weft.Error:
            continue  # a refused step
        made += 1
        again = replayed(program, target, str(schedule.trace.as_json()))
        assert str(again.func) == str(schedule.func)
    assert made > 20
