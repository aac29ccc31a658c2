# SPDX-License-Identifier: Apache-2.0
"""Products of narrow numbers on processors: instructions that add neighbouring products, and wide copies."""

import numpy as np
import pytest
import weft
from weft import te

TYPES = [
    ("uint8", "int8", "int32"),
    ("int8", "uint8", "int32"),
    ("int8", "int8", "int32"),
    ("uint8", "uint8", "int32"),
    ("int16", "int16", "int32"),
    ("int8", "int16", "int32"),
    ("bfloat16", "bfloat16", "float32"),
    ("float16", "float16", "float32"),
]


def operand(rng, shape, dtype):
    """Values over the whole range of a type, as an array and widened."""
    if dtype == "bfloat16":
        array = weft.asarray(rng.standard_normal(shape).astype("float32")).astype(dtype)
        return array, array.astype("float32").numpy().astype("float64")
    if dtype == "float16":
        data = rng.standard_normal(shape).astype(dtype)
        return weft.asarray(data), data.astype("float64")
    info = np.iinfo(dtype)
    data = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    data.reshape(-1)[:2] = info.min, info.max
    return weft.asarray(data), data.astype("int64")


def same(got, want, dtype):
    if dtype == "int32":
        np.testing.assert_array_equal(got, want.astype("int32"))
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4 * max(1, np.abs(want).max()))


def product(m, n, k, a_type, b_type, sum_type, form="nn"):
    a = te.placeholder((m, k) if form[0] == "n" else (k, m), a_type, name="A")
    b = te.placeholder((k, n) if form[1] == "n" else (n, k), b_type, name="B")
    r = te.reduce_axis((0, k), name="r")

    def value(i, j):
        x = a[i, r] if form[0] == "n" else a[r, i]
        y = b[r, j] if form[1] == "n" else b[j, r]
        return te.sum(x.astype(sum_type) * y.astype(sum_type), axis=r)

    return [a, b], te.compute((m, n), value, name="C")


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("form", ["nn", "nt", "tn", "tt"])
def test_products_of_every_layout_and_odd_sizes(target, types, form):
    rng = np.random.default_rng(len(form + target))
    sizes = ((37, 45, 51), (64, 32, 16), (3, 70, 9))
    for m, n, k in sizes if target == "cpu" else sizes[:1]:
        inputs, c = product(m, n, k, *types, form)
        built = weft.build(te.create_prim_func([*inputs, c]), target=target, tuned=False)
        assert "host_product" in str(built.notes) and "refused" not in str(built.notes)
        x, a = operand(rng, (m, k) if form[0] == "n" else (k, m), types[0])
        y, b = operand(rng, (k, n) if form[1] == "n" else (n, k), types[1])
        out = weft.zeros((m, n), dtype=types[2])
        built["main"](x, y, out)
        want = (a if form[0] == "n" else a.T) @ (b if form[1] == "n" else b.T)
        same(out.numpy(), want, types[2])


@pytest.mark.parametrize("types", TYPES)
def test_every_pass_keeps_the_meaning(types):
    """The reference interpreter runs the scheduled program and what each pass makes of it."""
    inputs, c = product(5, 18, 7, *types)
    built = weft.build(te.create_prim_func([*inputs, c]), target="cpu", tuned=False, validate=True)
    rng = np.random.default_rng(2)
    (x, a), (y, b) = operand(rng, (5, 7), types[0]), operand(rng, (7, 18), types[1])
    out = weft.zeros((5, 18), dtype=types[2])
    built["main"](x, y, out)
    same(out.numpy(), a @ b, types[2])


@pytest.mark.parametrize("types", TYPES[:3] + TYPES[6:])
def test_an_epilogue_reads_what_instructions_sum(types):
    m, n, k = 21, 35, 30
    inputs, c = product(m, n, k, *types)
    bias = te.placeholder((n,), types[2], name="D")
    zero = te.const(0, types[2])
    d = te.compute((m, n), lambda i, j: te.max(c[i, j] + bias[j], zero), name="E")
    built = weft.build(te.create_prim_func([*inputs, bias, d]), target="cpu", tuned=False)
    rng = np.random.default_rng(3)
    (x, a), (y, b) = operand(rng, (m, k), types[0]), operand(rng, (k, n), types[1])
    z = rng.integers(-50, 50, n).astype(types[2])
    out = weft.zeros((m, n), dtype=types[2])
    built["main"](x, y, weft.asarray(z), out)
    sums = (a @ b).astype("int32") if types[2] == "int32" else a @ b
    same(out.numpy(), np.maximum(sums + z, 0), types[2])


def convolution(shape, results, window, step, layout, groups, types):
    n, c, h, w = shape
    part, rows, columns = c // groups, (h - window) // step + 1, (w - window) // step + 1
    each = results // groups
    r, p, q = (te.reduce_axis((0, e), name=s) for e, s in ((part, "r"), (window, "p"), (window, "q")))  # fmt: skip
    wide = types[2]
    if layout == "nchw":
        x = te.placeholder((n, c, h, w), types[0], name="X")
        k = te.placeholder((results, part, window, window), types[1], name="W")

        def value(b, f, i, j):
            channel = f // each * part + r if groups > 1 else r
            return te.sum(x[b, channel, i * step + p, j * step + q].astype(wide) * k[f, r, p, q].astype(wide), axis=[r, p, q])  # fmt: skip

        return [x, k, te.compute((n, results, rows, columns), value, name="Y")]
    x = te.placeholder((n, h, w, c), types[0], name="X")
    k = te.placeholder((window, window, part, results), types[1], name="W")

    def value(b, i, j, f):
        channel = f // each * part + r if groups > 1 else r
        return te.sum(x[b, i * step + p, j * step + q, channel].astype(wide) * k[p, q, r, f].astype(wide), axis=[p, q, r])  # fmt: skip

    return [x, k, te.compute((n, rows, columns, results), value, name="Y")]


@pytest.mark.parametrize("types", TYPES[:3] + TYPES[6:])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    "case",
    [
        ((1, 16, 9, 9), 16, 3, 1, 1),
        ((2, 13, 11, 9), 17, 3, 2, 1),
        ((1, 8, 7, 7), 33, 1, 1, 1),
        ((2, 10, 8, 9), 14, 3, 1, 2),
    ],
)
def test_convolutions_of_any_channels(types, layout, case):
    _, results, window, step, groups = case
    tensors = convolution(*case[:4], layout, groups, types)
    built = weft.build(te.create_prim_func(tensors), target="cpu", tuned=False)
    assert "refused" not in str(built.notes)
    rng = np.random.default_rng(5)
    (x, a), (k, b) = (operand(rng, tuple(int(e) for e in t.shape), d) for t, d in zip(tensors[:2], types))  # fmt: skip
    out = weft.zeros(tuple(int(e) for e in tensors[2].shape), dtype=types[2])
    built["main"](x, k, out)
    if layout == "nhwc":
        a, b = a.transpose(0, 3, 1, 2), b.transpose(3, 2, 0, 1)
    windows = np.lib.stride_tricks.sliding_window_view(a, (window, window), axis=(2, 3))
    windows = windows[:, :, ::step, ::step]
    part, each = a.shape[1] // groups, results // groups
    want = np.concatenate(
        [
            np.einsum(
                "bcijpq,ocpq->boij",
                windows[:, g * part : (g + 1) * part],
                b[g * each : (g + 1) * each],
            )
            for g in range(groups)
        ],
        1,
    )
    same(out.numpy(), want if layout == "nchw" else want.transpose(0, 2, 3, 1), types[2])


def test_longer_terms_count_nothing_whatever_the_operands_hold_there():
    """The operands have more columns than the sum has terms; what an instruction reads beyond is not theirs to add."""
    m, n, k = 18, 33, 6
    a = te.placeholder((m, k + 5), "uint8", name="A")
    b = te.placeholder((k + 5, n), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), name="C")  # fmt: skip
    built = weft.build(te.create_prim_func([a, b, c]), target="cpu", tuned=False)
    rng = np.random.default_rng(6)
    (x, p), (y, q) = operand(rng, (m, k + 5), "uint8"), operand(rng, (k + 5, n), "int8")
    out = weft.zeros((m, n), dtype="int32")
    built["main"](x, y, out)
    np.testing.assert_array_equal(out.numpy(), p[:, :k] @ q[:k])


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_sums_beside_loops_of_one_iteration(target):
    """A factor that is made unsigned needs the other one's sums, over loops of which some have one iteration."""
    rng = np.random.default_rng(5)
    x = te.placeholder((1, 2, 9, 8, 32), "int8", name="X")
    w = te.placeholder((3, 2, 1, 1, 32, 32), "int8", name="W")
    axes = c, p, q, k = [
        te.reduce_axis((0, n), name=name) for name, n in zip("cpqk", (2, 1, 1, 32))
    ]

    def value(b, o, y, z, m):
        terms = x[b, c, y + p, z + q, k].astype("int32") * w[o, c, p, q, m, k].astype("int32")
        return te.sum(terms, axis=axes)

    f = te.create_prim_func([x, w, te.compute((1, 3, 9, 8, 32), value, name="Y")])
    (given, a), (weights, b) = (operand(rng, t.shape, "int8") for t in (x, w))
    out = weft.asarray(np.zeros((1, 3, 9, 8, 32), "int32"))
    weft.build(f, target=target)["main"](given, weights, out)
    np.testing.assert_array_equal(out.numpy(), np.einsum("bcyzk,ocpqmk->boyzm", a, b))
