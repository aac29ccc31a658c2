# SPDX-License-Identifier: Apache-2.0
"""The host's sketch for products: whatever is drawn, the results are NumPy's."""

import random

import numpy as np
import pytest

import weft
from weft import te
from weft.tuning import sketches


def product(m, n, k, batch, turned, dtype):
    lead = (batch,) if batch else ()
    a = te.placeholder((*lead, m, k), dtype, name="A")
    b = te.placeholder((*lead, *((n, k) if turned else (k, n))), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def value(*at):
        *z, i, j = at
        return te.sum(a[(*z, i, r)] * b[(*z, j, r) if turned else (*z, r, j)], axis=r)

    return te.create_prim_func([a, b, te.compute((*lead, m, n), value, name="C")])


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize(
    "size",
    [
        (16, 32, 8, 0, False),
        (13, 37, 11, 0, False),
        (9, 17, 1, 0, True),
        (1, 1, 5, 0, False),
        (5, 33, 7, 3, False),
        (8, 15, 6, 2, True),
    ],
)
def test_products_of_any_size(size, dtype):
    m, n, k, batch, turned = size
    rng = random.Random(str(size))
    numbers = np.random.default_rng(m)
    lead = (batch,) if batch else ()
    a = numbers.integers(-4, 5, (*lead, m, k)).astype(dtype)
    b = numbers.integers(-4, 5, (*lead, *((n, k) if turned else (k, n)))).astype(dtype)
    want = a @ (np.swapaxes(b, -1, -2) if turned else b)
    for _ in range(3):
        sch = weft.Schedule(product(*size, dtype))
        made = {}

        def draw(name, choices):
            made[name] = rng.choice(choices)
            return made[name]

        sketches.host_packed(draw, sch, sketches.blocks_of(sch)[0], "b0")
        out = weft.asarray(np.zeros(want.shape, dtype))
        weft.build(sch, target="cpu", tuned=False)(weft.asarray(a), weft.asarray(b), out)
        np.testing.assert_array_equal(out.numpy(), want, err_msg=str(made))


def test_a_convolution_is_a_candidate_or_refused():
    x = te.placeholder((1, 8, 8, 4), "float32", name="X")
    w = te.placeholder((3, 3, 4, 16), "float32", name="W")
    r, s, c = (te.reduce_axis((0, n), name=t) for n, t in ((3, "r"), (3, "s"), (4, "c")))
    y = te.compute(
        (1, 6, 6, 16),
        lambda n, i, j, o: te.sum(x[n, i + r, j + s, c] * w[r, s, c, o], axis=[r, s, c]),
        name="Y",
    )
    sch = weft.Schedule(te.create_prim_func([x, w, y]))
    sketches.host_packed(lambda name, choices: choices[0], sch, sketches.blocks_of(sch)[0], "b0")
    numbers = np.random.default_rng(0)
    a, b = (
        numbers.integers(-4, 5, shape).astype("float32") for shape in ((1, 8, 8, 4), (3, 3, 4, 16))
    )
    out = weft.asarray(np.zeros((1, 6, 6, 16), "float32"))
    weft.build(sch, target="cpu", tuned=False)(weft.asarray(a), weft.asarray(b), out)
    want = sum(
        np.einsum("nijc,co->nijo", a[:, p : p + 6, q : q + 6], b[p, q])
        for p in range(3)
        for q in range(3)
    )
    np.testing.assert_array_equal(out.numpy(), want)
