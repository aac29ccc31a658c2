# SPDX-License-Identifier: Apache-2.0
"""Forms of calls beside the usual ones: narrow and wide types, middle axes, strided and reversed views, operands with a step of 0,
`out=` and `where=`, masks of several axes, work in place, several index arrays, rarer contractions and distributions."""

import numpy as np
from case import Case, draw, varied

NARROW = ("int8", "int16", "uint8", "int64", "float16")
#: Types that PyTorch computes little with, so that NumPy alone is the rival of most rows.
UNSIGNED = ("uint16", "uint32", "uint64")
FLAT = ("4", "1e3", "1e5", "1e7")
MATRICES = ("mid2d", "matrix", "odd")


def form(kind, name, ours, torch=None, numpy=None, **options):
    """A case of one call that rivals have too, or have as the ones given."""
    return Case(kind, name, ours, numpy or ours, torch or ours, **options)


def types():
    every = (*NARROW, *UNSIGNED, "complex128")
    reals = (*NARROW, *UNSIGNED)
    whole = tuple(t for t in reals if t != "float16")

    def case(name, *calls, dtypes=every, layouts=FLAT, **options):
        return form("types", name, *calls, layouts=layouts, dtypes=dtypes, **options)

    return [
        case("x + y", lambda m, x, y: x + y, inputs=2),
        case("x * y", lambda m, x, y: x * y, inputs=2),
        case("x / y", lambda m, x, y: x / y, inputs=2, tolerance="float16"),
        case("-x", lambda m, x: -x, dtypes=("int8", "int16", "int64", "float16", "complex128")),
        case("abs", lambda m, x: m.abs(x), dtypes=("int8", "int16", "int64", "float16", "complex128")),
        case("x + 2", lambda m, x: x + 2),
        case("x == y", lambda m, x, y: x == y, inputs=2),
        case("x < y", lambda m, x, y: x < y, inputs=2, dtypes=reals),
        case("maximum", lambda m, x, y: m.maximum(x, y), inputs=2, dtypes=reals),
        case("clip", lambda m, x: m.clip(x, 10, 50), dtypes=reals),
        case("where", lambda m, x, y: m.where(x > y, x, y), inputs=2, dtypes=reals),
        case("x // y", lambda m, x, y: x // y, inputs=2, dtypes=reals),
        case("x % y", lambda m, x, y: x % y, inputs=2, dtypes=reals),
        case("x // 7", lambda m, x: x // 7, dtypes=reals),
        case("x & y", lambda m, x, y: x & y, inputs=2, dtypes=whole),
        case("x >> 2", lambda m, x: x >> 2, dtypes=whole),
        case("x ** 2", lambda m, x: x**2, tolerance="float16"),
        case("sqrt", lambda m, x: m.sqrt(x), dtypes=("int64", "float16", "complex128"), tolerance="float16"),
        case("exp", lambda m, x: m.exp(x), dtypes=("float16", "complex128"), tolerance="float16"),
        case("sin", lambda m, x: m.sin(x), dtypes=("float16", "complex128"), tolerance="float16"),
        case("to float32", lambda m, x: x.astype(m.float32), lambda m, x: x.to(m.float32), lambda m, x: x.astype("float32"), dtypes=reals),
        case("to int32", lambda m, x: x.astype(m.int32), lambda m, x: x.to(m.int32), lambda m, x: x.astype("int32"), dtypes=reals),
        case("to uint8", lambda m, x: x.astype(m.uint8), lambda m, x: x.to(m.uint8), lambda m, x: x.astype("uint8"), dtypes=("int8", "int16", "int64", "uint16")),
        case("sum", lambda m, x: m.sum(x), tolerance="float16"),
        case("sum axis 0", lambda m, x: m.sum(x, axis=0), torch=lambda m, x: m.sum(x, 0), layouts=MATRICES, tolerance="float16"),
        case("sum axis -1", lambda m, x: m.sum(x, axis=-1), torch=lambda m, x: m.sum(x, -1), layouts=MATRICES, tolerance="float16"),
        case("max", lambda m, x: m.max(x), dtypes=reals),
        case("max axis 0", lambda m, x: m.max(x, axis=0), torch=lambda m, x: m.amax(x, 0), dtypes=reals, layouts=MATRICES),
        case("max axis -1", lambda m, x: m.max(x, axis=-1), torch=lambda m, x: m.amax(x, -1), dtypes=reals, layouts=MATRICES),
        case("argmax", lambda m, x: m.argmax(x), dtypes=reals),
        case("argmin axis -1", lambda m, x: m.argmin(x, axis=-1), torch=lambda m, x: m.argmin(x, -1), dtypes=reals, layouts=MATRICES),
        case("mean", lambda m, x: m.mean(x), torch=lambda m, x: m.mean(x if x.is_floating_point() or x.is_complex() else x.double()), tolerance="float16", dtypes=("float16", "complex128")),
        case("cumulative_sum", lambda m, x: m.cumulative_sum(x, axis=0), lambda m, x: m.cumsum(x, 0), lambda m, x: m.cumsum(x, 0),
             dtypes=tuple(t for t in every if t != "float16")),
        case("sort", lambda m, x: m.sort(x), torch=lambda m, x: m.sort(x)[0], dtypes=reals),
        case("argsort", lambda m, x: m.argsort(x), lambda m, x: m.argsort(x, stable=True), lambda m, x: m.argsort(x, kind="stable"), dtypes=reals),
        case("unique", lambda m, x: m.unique_values(x), lambda m, x: m.unique(x), lambda m, x: m.unique(x), dtypes=whole),
        case("x[x > 1]", lambda m, x: x[x > 1], dtypes=reals),
        case("any", lambda m, x: m.any(x), dtypes=reals),
        case("a @ b", lambda m, a, b: a @ b, layouts=("products",), inputs=lambda rng, t: [draw(rng, s, t) for s in PRODUCTS], dtypes=("int8", "int16", "uint8", "int64", "float16", "complex128"), tolerance="float16"),
        case("x.T copied", lambda m, x: x.T.copy(), torch=lambda m, x: x.T.contiguous(), layouts=MATRICES),
    ]  # fmt: skip


PRODUCTS = varied((100, 120), (120, 90))


def views():
    t = ("float32", "float64", "int32")
    three, two = ("mid3d", "cube", "batched"), MATRICES

    def case(name, *calls, layouts=FLAT, dtypes=t, **options):
        return form("strided", name, *calls, layouts=layouts, dtypes=dtypes, **options)

    return [
        case("exp of x[::2]", lambda m, x: m.exp(x[::2]), dtypes=("float32", "float64")),
        case("x[::2] + y[::2]", lambda m, x, y: x[::2] + y[::2], inputs=2),
        case("x[::2] + y[1::2]", lambda m, x, y: x[:x.shape[0] // 2 * 2:2] + y[1::2], inputs=2),
        case("x[::-1] + y", lambda m, x, y: x[::-1] + y, lambda m, x, y: m.flip(x, (0,)) + y, inputs=2),
        case("x[::-1] copied", lambda m, x: x[::-1].copy(), lambda m, x: m.flip(x, (0,))),
        case("sum of x[::2]", lambda m, x: m.sum(x[::2]), tolerance="float32"),
        case("sum of x[::-1]", lambda m, x: m.sum(x[::-1]), lambda m, x: m.sum(x), tolerance="float32"),
        case("x[:, ::-1] copied", lambda m, x: x[:, ::-1].copy(), lambda m, x: m.flip(x, (1,)), layouts=two),
        case("x[:, ::2] * 2", lambda m, x: x[:, ::2] * 2, layouts=two),
        case("x[::3, 1::2] copied", lambda m, x: x[::3, 1::2].copy(), lambda m, x: x[::3, 1::2].clone(), layouts=two),
        case("x[:, 1:] - x[:, :-1]", lambda m, x: x[:, 1:] - x[:, :-1], layouts=two),
        case("x[1:] - x[:-1]", lambda m, x: x[1:] - x[:-1], layouts=(*FLAT, *two)),
        case("x[:, 0]", lambda m, x: x[:, 0] + 1, layouts=two),
        case("sum of x.T axis 0", lambda m, x: m.sum(x.T, axis=0), lambda m, x: m.sum(x.T, 0), layouts=two, tolerance="float32"),
        case("sum middle axis", lambda m, x: m.sum(x, axis=1), lambda m, x: m.sum(x, 1), layouts=three, tolerance="float32"),
        case("max middle axis", lambda m, x: m.max(x, axis=1), lambda m, x: m.amax(x, 1), layouts=three),
        case("argmax middle axis", lambda m, x: m.argmax(x, axis=1), lambda m, x: m.argmax(x, 1), layouts=three),
        case("mean axes 0, 2", lambda m, x: m.mean(x, axis=(0, 2)), lambda m, x: m.mean(x, (0, 2)), layouts=three, dtypes=("float32", "float64"), tolerance="float32"),
        case("std middle axis", lambda m, x: m.std(x, axis=1), lambda m, x: m.std(x, 1, correction=0), layouts=three, dtypes=("float32", "float64"), tolerance="float32"),
        case("cumsum middle axis", lambda m, x: m.cumsum(x, axis=1), lambda m, x: m.cumsum(x, 1), layouts=three, tolerance="float32"),
        case("sort middle axis", lambda m, x: m.sort(x, axis=1), lambda m, x: m.sort(x, 1)[0], layouts=three),
        case("any middle axis", lambda m, x: m.any(x > 1.9, axis=1), lambda m, x: m.any(x > 1.9, 1), layouts=three, dtypes=t[:1]),
        case("softmax middle axis", lambda m, x: m.nn.functional.softmax(x, axis=1), lambda m, x: m.softmax(x, 1),
             numpy=lambda m, x: (e := m.exp(x - m.max(x, axis=1, keepdims=True))) / m.sum(e, axis=1, keepdims=True), layouts=three, dtypes=t[:2]),
        case("x - mean of the middle axis", lambda m, x: x - m.mean(x, axis=1, keepdims=True), lambda m, x: x - m.mean(x, 1, True), layouts=three, dtypes=t[:2], tolerance="float32"),
        case("x[:, None] + x", lambda m, x: x[:, None, :200] + x[None, :200, :200], layouts=("mid2d",)),
        case("column + row", lambda m, x: x[:, :1] + x[:1], layouts=two),
        case("repeated + y", lambda m, x, y: m.broadcast_to(x[:1], x.shape) + y, inputs=2, layouts=two),
        case("repeated column * y", lambda m, x, y: m.broadcast_to(x[:, :1], x.shape) * y, inputs=2, layouts=two),
        case("repeated copied", lambda m, x: m.broadcast_to(x[:1], x.shape).copy(), lambda m, x: m.broadcast_to(x[:1], x.shape).contiguous(), layouts=two),
        case("middle axis of 1", lambda m, x: x * x[:, :1], layouts=three),
        case("moveaxis copied", lambda m, x: m.moveaxis(x, 0, 1).copy(), lambda m, x: m.moveaxis(x, 0, 1).contiguous(), layouts=three),
        case("x + x turned", lambda m, x: x[:10, :10] + m.permute_dims(x[:10, :10], (1, 0, 2)), lambda m, x: x[:10, :10] + x[:10, :10].permute(1, 0, 2),
             numpy=lambda m, x: x[:10, :10] + m.transpose(x[:10, :10], (1, 0, 2)), layouts=three),
        case("concat axis 1", lambda m, x, y: m.concat([x, y], axis=1), lambda m, x, y: m.cat([x, y], 1), numpy=lambda m, x, y: m.concatenate([x, y], 1), inputs=2, layouts=(*two, *three)),
        case("flip both", lambda m, x: m.flip(x).copy(), lambda m, x: m.flip(x, (0, 1)), layouts=two),
        case("roll axis 1", lambda m, x: m.roll(x, 2, axis=1), lambda m, x: m.roll(x, 2, 1), layouts=two),
        case("rot90", lambda m, x: m.rot90(x).copy(), lambda m, x: m.rot90(x), layouts=two),
    ]  # fmt: skip


def into(name, f, torch=None, inputs=2, dtypes=("float32", "float64", "int32"), layouts=FLAT):
    """f(m, out, operands...): writes into an array that is made once."""

    def written(f):
        def call(m, *operands):
            raise NotImplementedError

        def prepare(m, *operands):
            out = m.zeros_like(operands[0])
            return lambda: f(m, out, *operands)

        call.prepare = prepare
        return call

    return Case("written", name, written(f), written(f), written(torch or f), layouts=layouts, dtypes=dtypes, inputs=inputs)  # fmt: skip


def set_to(x, place, value):
    x[place] = value
    return x


def written():
    def add(m, o, x, y):
        o += x
        o -= x
        return o

    def scaled(m, o, x, y):
        o[:] = x
        o *= 2
        return o

    two = MATRICES
    fancy = ("float32", "int32")
    return [
        into("add out=", lambda m, o, x, y: m.add(x, y, out=o)),
        into("multiply out=", lambda m, o, x, y: m.multiply(x, y, out=o), lambda m, o, x, y: m.mul(x, y, out=o)),
        into("sqrt out=", lambda m, o, x: m.sqrt(x, out=o), inputs=1, dtypes=("float32", "float64")),
        into("exp out=x", lambda m, o, x: m.exp(o, out=o) * 0, lambda m, o, x: m.exp(o, out=o) * 0, inputs=1, dtypes=("float32",), layouts=FLAT[:2]),
        into("x += y, x -= y", add),
        into("x[:] = y, x *= 2", scaled),
        into("x += 1.5", lambda m, o, x: iadd(o, 0.0), inputs=1, dtypes=("float32", "float64")),
        into("x[::2] += y[::2]", lambda m, o, x, y: iadd(o[::2], x[::2] * 0)),
        into("x[1:-1] = y[2:]", lambda m, o, x, y: set_to(o, slice(1, -1), x[2:])),
        into("x[:, 0] = y[:, 0]", lambda m, o, x, y: set_to(o, (slice(None), 0), x[:, 0]), layouts=two),
        into("x[:, ::2] = 1", lambda m, o, x, y: set_to(o, (slice(None), slice(None, None, 2)), 1), layouts=two),
        into("x[1:-1, 1:-1] = average", lambda m, o, x, y: set_to(o, (slice(1, -1), slice(1, -1)), (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]) * 0.25),
             dtypes=("float32", "float64"), layouts=two),
        into("x[...] = 0", lambda m, o, x: set_to(o, Ellipsis, 0), inputs=1),
        into("x[mask] = y[mask]", lambda m, o, x, y: set_to(o, x > 1, y[x > 1]), dtypes=fancy),
        into("x[mask] = 1", lambda m, o, x, y: set_to(o, x > 1, 1), dtypes=fancy, layouts=(*FLAT, *two)),
        into("x[x > 1] += 1", lambda m, o, x, y: iadd_at(o, x > 1), dtypes=fancy),
        into("x[i] = x", lambda m, o, x, y: set_to(o, order(m, x), x), dtypes=fancy),
        into("x[i] += 1", lambda m, o, x, y: iadd_at(o, order(m, x)), dtypes=fancy),
        into("copyto", lambda m, o, x, y: (m.copyto(o, x), o)[1], lambda m, o, x, y: o.copy_(x)),
        Case("written", "where(mask, x, 0)", *3 * [lambda m, x: m.where(x > 1, x, 0.0)], dtypes=("float32", "float64"), layouts=(*FLAT, *two)),
        Case("written", "sum where=", *2 * [lambda m, x: m.sum(x, where=x > 1)], lambda m, x: m.sum(x * (x > 1)), dtypes=("float32", "float64"), layouts=FLAT, tolerance="float32"),
        Case("written", "add where=", lambda m, x, y: m.add(x, y, out=x * 1, where=x > 1), lambda m, x, y: m.add(x, y, out=x * 1, where=x > 1),
             lambda m, x, y: m.where(x > 1, x + y, x), inputs=2, dtypes=("float32", "float64"), layouts=FLAT),
    ]  # fmt: skip


def iadd(x, y):
    x += y
    return x


def iadd_at(x, place):
    x[place] += 0
    return x


_orders = {}


def order(m, x):
    """Positions in a random order, drawn once for a library and a length."""
    key = m.__name__, x.shape[0]
    if key not in _orders:
        at = np.random.default_rng(3).permutation(x.shape[0])
        _orders[key] = m.from_numpy(at) if m.__name__ == "torch" else m.asarray(at)
    return _orders[key]


def positions(*shape):
    """Operands: an array and as many index arrays of 1000 positions as it has axes."""
    (shape,) = varied(shape)

    def inputs(rng, dtype):
        return [draw(rng, shape, dtype), *(rng.integers(0, n, 1000) for n in shape)]

    return inputs


def indexed():
    t = ("float32", "int32")

    def case(name, ours, shape):
        return form("indexed", name, ours, layouts=("index",), dtypes=t, inputs=positions(*shape))

    def masked(name, *calls, layouts=(*MATRICES, "cube")):
        return form("indexed", name, *calls, layouts=layouts, dtypes=t)

    return [
        case("x[i, j]", lambda m, x, i, j: x[i, j], (300, 400)),
        case("x[i[:, None], j]", lambda m, x, i, j: x[i[:100, None], j[None, :90]], (300, 400)),
        case("x[i, :, k]", lambda m, x, i, j, k: x[i, :, k], (30, 20, 40)),
        case("x[i, j, k]", lambda m, x, i, j, k: x[i, j, k], (30, 20, 40)),
        case("x[i, j] rows", lambda m, x, i, j, k: x[i, j], (30, 20, 40)),
        case("x[:, j]", lambda m, x, i, j, k: x[:, j], (30, 20, 40)),
        case("x[..., k]", lambda m, x, i, j, k: x[..., k], (30, 20, 40)),
        case("x[i, 3]", lambda m, x, i, j: x[i, 3], (300, 400)),
        case("x[i, 1:5]", lambda m, x, i, j: x[i, 1:5], (300, 400)),
        case("x[i][:, j]", lambda m, x, i, j: x[i[:100]][:, j[:50]], (300, 400)),
        case("x[i, j] = 1", lambda m, x, i, j: set_to(x, (i, j), 1), (300, 400)),
        case("x[i, j] = x[j % n, i]", lambda m, x, i, j: set_to(x, (i, j), x[i, j]), (300, 400)),
        case("x[i, j] += 1", lambda m, x, i, j: iadd_at(x, (i, j)), (300, 400)),
        case("x[:, j] = 0", lambda m, x, i, j: set_to(x, (slice(None), j), 0), (300, 400)),
        case("x[i] = 0 rows", lambda m, x, i, j: set_to(x, i, 0), (300, 400)),
        case("few of x[i, j]", lambda m, x, i, j: x[i[:4], j[:4]], (300, 400)),
        case("few of x[i]", lambda m, x, i, j: x[i[:4]], (300, 400)),
        masked("x[mask] of all axes", lambda m, x: x[x > 1]),
        masked("x[mask of rows]", lambda m, x: x[x[:, 0] > 1] if x.ndim == 2 else x[x[:, 0, 0] > 1]),
        masked("x[:, mask]", lambda m, x: x[:, x[0] > 1] if x.ndim == 2 else x[:, x[0, :, 0] > 1]),
        masked("nonzero of all axes", lambda m, x: m.nonzero(x > 1)[-1], lambda m, x: m.nonzero(x > 1, as_tuple=True)[-1]),
        masked("count_nonzero axis 0", lambda m, x: m.count_nonzero(x, axis=0), lambda m, x: m.count_nonzero(x, 0)),
        Case("indexed", "[x[i] for i]", *3 * [lambda m, x: [x[i] for i in range(50)][-1]], layouts=("mid2d", "1e3"), dtypes=t),
        Case("indexed", "a loop of x[i] = x[i - 1] + 1", *3 * [loop], layouts=("1e3",), dtypes=("float64",)),
        Case("indexed", "float(x[i])", *3 * [lambda m, x: [float(x[i]) for i in range(50)][-1]], layouts=("1e3",), dtypes=("float64",)),
        Case("indexed", "a loop over rows", *3 * [lambda m, x: sum(float(r[0]) for r in x[:50])], layouts=("mid2d",), dtypes=("float64",)),
    ]  # fmt: skip


def loop(m, x):
    for i in range(1, 50):
        x[i] = x[i - 1] * 0.5 + 1
    return x


CONTRACTIONS = {
    "ijk,kl->ijl": ((20, 30, 40), (40, 50)), "abc,cd,de->abe": ((10, 12, 20), (20, 30), (30, 15)), "ii->": ((300, 300),),
    "ij->j": ((300, 400),), "ijk->kji": ((30, 40, 50),), "ijk,ijk->": ((30, 40, 50), (30, 40, 50)),
    "bi,bj->bij": ((100, 30), (100, 40)), "i,i->": ((1000,), (1000,)), "i,i->i": ((1000,), (1000,)),
    "ij,j->i": ((300, 400), (400,)), "ij,i->j": ((300, 400), (300,)), "bij,bj->bi": ((50, 30, 40), (50, 40)),
    "bij,bij->b": ((100, 30, 10), (100, 30, 10)), "ij,ij->j": ((300, 40), (300, 40)), "ij,kj->ik": ((60, 70), (80, 70)),
    "i,ij,j->": ((60,), (60, 70), (70,)), "ijkl,klmn->ijmn": ((6, 7, 8, 9), (8, 9, 5, 4)), "bthd,bshd->bhts": ((2, 50, 4, 16), (2, 60, 4, 16)),
    "nchw,c->nhw": ((2, 16, 20, 20), (16,)), "ij,jk,kl->il": ((30, 40), (40, 50), (50, 20)), "ijj->i": ((40, 30, 30),),
}  # fmt: skip


def contracted():
    out = []
    for text, shapes in CONTRACTIONS.items():
        shapes = varied(*shapes)

        def inputs(rng, dtype, shapes=shapes):
            return [draw(rng, s, dtype, -1, 1) for s in shapes]

        out.append(
            Case("contracted", text, *3 * [lambda m, *a, text=text: m.einsum(text, *a)],
                 layouts=("einsum",), dtypes=("float32", "float64"), inputs=inputs)
        )  # fmt: skip
    pair = lambda *shapes: lambda rng, t, s=varied(*shapes): [draw(rng, x, t, -1, 1) for x in s]  # noqa: E731
    t = {"layouts": ("einsum",), "dtypes": ("float32", "float64")}
    return out + [
        Case("contracted", "tensordot 2", *2 * [lambda m, a, b: m.tensordot(a, b, axes=2)], lambda m, a, b: m.tensordot(a, b, 2), inputs=pair((20, 30, 40), (30, 40, 10)), **t),
        Case("contracted", "outer", *3 * [lambda m, a, b: m.outer(a, b)], inputs=pair((300,), (400,)), **t),
        Case("contracted", "kron", *3 * [lambda m, a, b: m.kron(a, b)], inputs=pair((10, 12), (20, 15)), **t),
        Case("contracted", "inner", *3 * [lambda m, a, b: m.inner(a, b)], inputs=pair((60, 70), (80, 70)), **t),
        Case("contracted", "cross", *2 * [lambda m, a, b: m.cross(a, b)], lambda m, a, b: m.linalg.cross(a, b), inputs=pair((1000, 3), (1000, 3)), **t),
        Case("contracted", "A @ x", *3 * [lambda m, a, b: a @ b], inputs=pair((300, 400), (400,)), **t),
        Case("contracted", "x @ A", *3 * [lambda m, a, b: a @ b], inputs=pair((300,), (300, 400)), **t),
        Case("contracted", "matrix_power 5", *3 * [lambda m, a: m.linalg.matrix_power(a, 5)], inputs=pair((30, 30)), **t),
        Case("contracted", "multi_dot", *3 * [lambda m, a, b, c: m.linalg.multi_dot([a, b, c])], inputs=pair((30, 40), (40, 50), (50, 20)), **t),
    ]  # fmt: skip


def drawn():
    generator = np.random.default_rng(1)
    out = []

    def case(name, ours, numpy, torch=None, sizes=(4, 1000, 100_000)):
        for n in sizes:
            label = {4: "4", 1000: "1e3"}.get(n, "1e5")
            make = lambda f, n=n: f and (lambda m: f(m, n))  # noqa: E731
            out.append(
                Case("drawn", name, make(ours), make(numpy), make(torch), layouts=(label,), dtypes=("float64",),
                     inputs=lambda rng, t: [], check=False)
            )  # fmt: skip

    g = generator
    r = lambda m: m.random  # noqa: E731
    case(
        "exponential",
        lambda m, n: r(m).exponential(2.0, (n,)),
        lambda m, n: g.exponential(2.0, n),
        lambda m, n: m.empty(n).exponential_(0.5),
    )
    case(
        "gamma",
        lambda m, n: r(m).gamma(2.5, 1.0, (n,)),
        lambda m, n: g.gamma(2.5, 1.0, n),
        lambda m, n: m._standard_gamma(m.full((n,), 2.5)),
    )
    case("beta", lambda m, n: r(m).beta(2.0, 3.0, (n,)), lambda m, n: g.beta(2.0, 3.0, n))
    case(
        "poisson",
        lambda m, n: r(m).poisson(4.0, (n,)),
        lambda m, n: g.poisson(4.0, n),
        lambda m, n: m.poisson(m.full((n,), 4.0)),
    )
    case("binomial", lambda m, n: r(m).binomial(20, 0.3, (n,)), lambda m, n: g.binomial(20, 0.3, n))
    case(
        "geometric",
        lambda m, n: r(m).geometric(0.3, (n,)),
        lambda m, n: g.geometric(0.3, n),
        lambda m, n: m.empty(n).geometric_(0.3),
    )
    case("laplace", lambda m, n: r(m).laplace(0.0, 1.0, (n,)), lambda m, n: g.laplace(0.0, 1.0, n))
    case("gumbel", lambda m, n: r(m).gumbel(0.0, 1.0, (n,)), lambda m, n: g.gumbel(0.0, 1.0, n))
    case(
        "logistic", lambda m, n: r(m).logistic(0.0, 1.0, (n,)), lambda m, n: g.logistic(0.0, 1.0, n)
    )
    case(
        "lognormal",
        lambda m, n: r(m).lognormal(0.0, 1.0, (n,)),
        lambda m, n: g.lognormal(0.0, 1.0, n),
        lambda m, n: m.empty(n).log_normal_(),
    )
    case("chisquare", lambda m, n: r(m).chisquare(5.0, (n,)), lambda m, n: g.chisquare(5.0, n))
    case("standard_t", lambda m, n: r(m).standard_t(5.0, (n,)), lambda m, n: g.standard_t(5.0, n))
    case("weibull", lambda m, n: r(m).weibull(1.5, (n,)), lambda m, n: g.weibull(1.5, n))
    case(
        "triangular",
        lambda m, n: r(m).triangular(0.0, 0.5, 1.0, (n,)),
        lambda m, n: g.triangular(0.0, 0.5, 1.0, n),
    )
    case(
        "vonmises", lambda m, n: r(m).vonmises(0.0, 2.0, (n,)), lambda m, n: g.vonmises(0.0, 2.0, n)
    )
    case("zipf", lambda m, n: r(m).zipf(2.5, (n,)), lambda m, n: g.zipf(2.5, n))
    case("rayleigh", lambda m, n: r(m).rayleigh(1.0, (n,)), lambda m, n: g.rayleigh(1.0, n))
    case(
        "integers",
        lambda m, n: r(m).integers(0, 100, (n,)),
        lambda m, n: g.integers(0, 100, n),
        lambda m, n: m.randint(0, 100, (n,)),
    )
    case(
        "bernoulli",
        lambda m, n: r(m).bernoulli(0.3, (n,)),
        lambda m, n: g.random(n) < 0.3,
        lambda m, n: m.empty(n).bernoulli_(0.3),
    )
    case(
        "permutation",
        lambda m, n: r(m).permutation(n),
        lambda m, n: g.permutation(n),
        lambda m, n: m.randperm(n),
    )
    case("choice", lambda m, n: r(m).choice(1000, (n,)), lambda m, n: g.choice(1000, n))
    case(
        "choice without repeats",
        lambda m, n: r(m).choice(2 * n, (n,), replace=False),
        lambda m, n: g.choice(2 * n, n, replace=False),
    )
    case(
        "multinomial",
        lambda m, n: r(m).multinomial(20, [0.2, 0.3, 0.5], (n,)),
        lambda m, n: g.multinomial(20, [0.2, 0.3, 0.5], n),
    )
    case(
        "dirichlet",
        lambda m, n: r(m).dirichlet([1.0, 2.0, 3.0], (n,)),
        lambda m, n: g.dirichlet([1.0, 2.0, 3.0], n),
    )
    case(
        "float64 normal",
        lambda m, n: r(m).normal((n,), dtype=m.float64),
        lambda m, n: g.standard_normal(n),
        lambda m, n: m.randn(n, dtype=m.float64),
    )
    case(
        "float64 uniform",
        lambda m, n: r(m).uniform((n,), dtype=m.float64),
        lambda m, n: g.random(n),
        lambda m, n: m.rand(n, dtype=m.float64),
    )
    return out


def cases():
    return [*types(), *views(), *written(), *indexed(), *contracted(), *drawn()]
