# SPDX-License-Identifier: Apache-2.0
"""What processors make of reducers of a program's own, windows without products, and computed places."""

import numpy as np
import pytest
import weft
from weft import te


def built(tensors, rule):
    module = weft.build(te.create_prim_func(tensors), target="cpu", tuned=False)
    assert f": {rule}" in str(module.notes) and "refused" not in str(module.notes)
    return module["main"]


@pytest.mark.parametrize("shape, axis, rule", [((5, 133), 1, "host_rows"), ((77, 35), 0, "host_tile")])  # fmt: skip
def test_a_reducer_of_the_programs_own_has_vectors(shape, axis, rule):
    x = te.placeholder(shape, "int32", name="X")
    r = te.reduce_axis((0, shape[axis]), name="r")
    join = te.comm_reducer(lambda a, b: a + b + a * b, lambda t: te.const(0, t), name="join")
    at = (lambda i: x[i, r]) if axis else (lambda i: x[r, i])
    y = te.compute((shape[1 - axis],), lambda i: join(at(i), axis=r), name="Y")
    main = built([x, y], rule)
    data = np.random.default_rng(0).integers(-3, 4, shape).astype("int32")
    out = weft.zeros((shape[1 - axis],), dtype="int32")
    main(weft.asarray(data), out)
    want = np.prod(data.astype("int32") + 1, axis=axis, dtype="int32") - 1  # (1 + a)(1 + b) - 1
    np.testing.assert_array_equal(out.numpy(), want)


def test_the_first_of_the_largest():
    n, m = 19, 83
    x, r = te.placeholder((n, m), name="X"), te.reduce_axis((0, m), name="r")

    def join(a, b):
        left = te.any(a[1] > b[1], te.all(a[1] == b[1], a[0] < b[0]))
        return te.if_then_else(left, a[0], b[0]), te.if_then_else(a[1] >= b[1], a[1], b[1])

    first = te.comm_reducer(join, lambda i, v: (te.const(2**30, i), te.min_value(v)), name="first")
    index, value = te.compute((n,), lambda i: first((r, x[i, r]), axis=r), name="Y")
    main = built([x, value, index], "host_rows")
    data = np.random.default_rng(1).integers(-4, 5, (n, m)).astype("float32")  # with ties
    outs = weft.zeros((n,)), weft.zeros((n,), dtype=str(index.dtype))
    main(weft.asarray(data), *outs)
    np.testing.assert_array_equal(outs[1].numpy(), data.argmax(1))
    np.testing.assert_array_equal(outs[0].numpy(), data.max(1))


@pytest.mark.parametrize("size, window, step, pad", [((23, 29), 3, 2, 1), ((17, 59), 3, 1, 1), ((9, 16), 2, 2, 0), ((31, 7), 5, 3, 2)])  # fmt: skip
@pytest.mark.parametrize("kind", ["max", "sum"])
def test_padded_windows(size, window, step, pad, kind):
    h, w = size
    x = te.placeholder((3, h, w), name="X")
    edge = te.min_value("float32") if kind == "max" else te.const(0.0, "float32")
    inside = lambda i, j: te.all(i >= pad, i < h + pad, j >= pad, j < w + pad)
    wide = te.compute(
        (3, h + 2 * pad, w + 2 * pad),
        lambda b, i, j: te.if_then_else(inside(i, j), x[b, i - pad, j - pad], edge),
        name="wide",
    )
    p, q = te.reduce_axis((0, window), name="p"), te.reduce_axis((0, window), name="q")
    rows, columns = (h + 2 * pad - window) // step + 1, (w + 2 * pad - window) // step + 1
    join = te.max if kind == "max" else te.sum
    y = te.compute(
        (3, rows, columns),
        lambda b, i, j: join(wide[b, i * step + p, j * step + q], axis=[p, q]),
        name="Y",
    )
    module = weft.build(te.create_prim_func([x, y]), target="cpu", tuned=False)
    data = np.random.default_rng(2).integers(-9, 10, (3, h, w)).astype("float32")
    out = weft.zeros((3, rows, columns))
    module["main"](weft.asarray(data), out)
    border = np.finfo("float32").min if kind == "max" else 0
    padded = np.pad(data, ((0, 0), (pad, pad), (pad, pad)), constant_values=border)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), axis=(1, 2))
    windows = windows[:, ::step, ::step]
    want = windows.max((-1, -2)) if kind == "max" else windows.sum((-1, -2))
    np.testing.assert_array_equal(out.numpy(), want)


def test_places_that_are_computed_are_gathered():
    n, m, width = 7, 40, 53
    x = te.placeholder((n, m), name="X")
    y = te.compute(
        (n, width), lambda i, j: x[i, (j.astype("float32") * 0.7).astype("int32")] * 2.0, name="Y"
    )
    main = built([x, y], "host_map")
    data = np.random.default_rng(3).standard_normal((n, m)).astype("float32")
    out = weft.zeros((n, width))
    main(weft.asarray(data), out)
    at = (np.arange(width, dtype="float32") * np.float32(0.7)).astype(int)
    np.testing.assert_array_equal(out.numpy(), data[:, at] * np.float32(2))
