# SPDX-License-Identifier: Apache-2.0
"""weft.vmap beside a loop over the examples: every rule, several axes, nesting, gradients, random numbers, refusals."""

import numpy as np
import pytest

import weft
from weft import Tensor, nn
from weft.nn import functional as F

DEVICES = ["cpu", "opencl"]


def parts(tree):
    return [np.asarray(x.numpy()) for x in weft.transforms.trees.flatten(tree)[0]]


# name -> (function of one example, shapes of one example). Under strict=True: by a rule, not by a loop.
A, M, C = (3, 4), (4, 4), (2, 3, 6, 6)
RULED = {
    "arithmetic": (lambda x, y: x * y + 2.0 - x / (y * y + 1.0), [A, A]),
    "ranks": (lambda x, y: x + y, [A, (4,)]),
    "compare": (lambda x, y: (x < y).astype("float64"), [A, A]),
    "functions": (lambda x: weft.tanh(weft.exp(x) - weft.abs(-x)) ** 2, [A]),
    "two": (lambda x, y: weft.maximum(x, y) + weft.atan2(x, y), [A, A]),
    "where": (lambda x, y: weft.where(x > y, x, y * 2.0), [A, (4,)]),
    "clip": (lambda x: weft.clip(x, -0.5, 0.5), [A]),
    "sum": (lambda x: weft.sum(x), [A]),
    "sum1": (lambda x: weft.sum(x, axis=-1), [A]),
    "sum01": (lambda x: x.sum((0, 1), True), [A]),
    "mean": (lambda x: x.mean(dim=0, keepdim=True), [A]),
    "max": (lambda x: weft.max(x, axis=0) - weft.min(x, axis=0), [A]),
    "prod": (lambda x: weft.prod(x, axis=1), [A]),
    "var": (lambda x: weft.var(x, axis=0, correction=1.0) + weft.std(x), [A]),
    "logsumexp": (lambda x: weft.logsumexp(x, axis=1), [A]),
    "scalar": (lambda x: weft.sum(x * 2.0), [()]),
    "argmax": (lambda x: weft.argmax(x, axis=1), [A]),
    "argmin": (lambda x: weft.argmin(x), [A]),
    "softmax": (lambda x: weft.softmax(x, axis=0) + weft.log_softmax(x), [A]),
    "cumulative": (lambda x: weft.cumulative_sum(x, axis=0), [A]),
    "cumprod": (lambda x: weft.cumulative_prod(x, axis=1), [A]),
    "sort": (lambda x: weft.sort(x, axis=0), [A]),
    "argsort": (lambda x: weft.argsort(x, axis=-1), [A]),
    "topk": (lambda x: tuple(weft.topk(x, 2)), [A]),
    "diff": (lambda x: weft.diff(x, axis=0), [A]),
    "reshape": (lambda x: weft.reshape(x, (2, -1)), [A]),
    "views": (lambda x: x.reshape(-1).reshape((3, 4)).squeeze().flatten(), [A]),
    "permute": (lambda x: weft.permute_dims(x, (1, 0)), [A]),
    "transpose": (lambda x: x.T + x.mT, [A]),
    "broadcast": (lambda x: weft.broadcast_to(x, (2, 3, 4)), [A]),
    "expand": (lambda x: weft.expand_dims(x, axis=1), [A]),
    "squeeze": (lambda x: weft.squeeze(x, axis=0), [(1, 4)]),
    "flip": (lambda x: weft.flip(x, axis=0), [A]),
    "roll": (lambda x: weft.roll(x, 1, axis=1) + weft.roll(x, 2), [A]),
    "moveaxis": (lambda x: weft.moveaxis(x, 0, -1), [A]),
    "concat": (lambda x, y: weft.concat([x, y], axis=1), [A, (3, 2)]),
    "stack": (lambda x, y: weft.stack([x, y], axis=1), [A, A]),
    "unstack": (lambda x: weft.unstack(x, axis=1)[2], [A]),
    "tile": (lambda x: weft.tile(x, (2, 1, 2)), [A]),
    "repeat": (lambda x: weft.repeat(x, 3, axis=1), [A]),
    "pad": (lambda x: weft.pad(x, [(1, 0), (0, 2)]), [A]),
    "triangles": (lambda x: weft.tril(x) + weft.triu(x, k=1), [A]),
    "matmul": (lambda x, y: x @ y, [A, M]),
    "matvec": (lambda x, y: x @ y, [A, (4,)]),
    "vecmat": (lambda x, y: x @ y, [(4,), M]),
    "dot": (lambda x, y: weft.matmul(x, y), [(4,), (4,)]),
    "batched": (lambda x, y: x @ y, [(2, 3, 4), (5, 1, 4, 2)]),
    "tensordot": (lambda x, y: weft.tensordot(x, y, axes=1), [A, M]),
    "vecdot": (lambda x, y: weft.vecdot(x, y), [A, (4,)]),
    "outer": (lambda x, y: weft.linalg.outer(x, y), [(3,), (4,)]),
    "einsum": (lambda x, y: weft.einsum("ij,jk->ki", x, y), [A, M]),
    "implicit": (lambda x, y: weft.einsum("ij,jk", x, y), [A, M]),
    "index": (lambda x: x[1] + x[-1, 2] + x[:, 1:3].sum(), [A]),
    "newaxis": (lambda x: x[None, ..., ::2], [A]),
    "arrays": (lambda x: x[weft.asarray([2, 0, 0])], [A]),
    "take": (lambda x: weft.take(x, weft.asarray([1, 3]), axis=1), [A]),
    "along": (lambda x: weft.take_along_axis(x, weft.argsort(x, axis=1), axis=1), [A]),
    "picked": (lambda x: x[weft.argmax(x[:, 0])], [A]),
    "taken": (lambda x: weft.take(x, weft.argsort(x[0])[:2], axis=1), [A]),
    "inv": (lambda x: weft.linalg.inv(x @ x.T + weft.eye(4, dtype="float64") * 3.0), [M]),
    "solve": (lambda x, y: weft.linalg.solve(x + weft.eye(4, dtype="float64") * 9.0, y), [M, M]),
    "det": (lambda x: weft.linalg.det(x), [M]),
    "trace": (lambda x: weft.linalg.trace(x), [M]),
    "likes": (lambda x: weft.ones_like(x) * x, [A]),
    "astype": (lambda x: x.astype("float32").astype("float64"), [A]),
    "gelu": (lambda x: F.gelu(x) + F.silu(x) + F.softplus(x), [A]),
    "layernorm": (lambda x, s, t: F.layer_norm(x, 4, s, t), [A, (4,), (4,)]),
    "conv": (lambda x, w: F.conv2d(x, w, stride=1, padding=1), [C, (4, 3, 3, 3)]),
    "norms": (lambda x: weft.linalg.matrix_norm(x) + weft.linalg.vector_norm(x), [M]),
    "pools": (lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), [C]),
    "pool1": (lambda x: F.max_pool1d(x, 2), [(2, 3, 6)]),
    "attention": (lambda q, k, v: F.attention(q, k, v, True), [A, A, A]),
}  # fmt: skip
# By a loop: right all the same, and counted.
LOOPED = {
    "searchsorted": (lambda x, y: weft.searchsorted(weft.sort(x), y), [(5,), (4,)]),
    "fft": (lambda x: weft.abs(weft.fft.fft(x)), [(5,)]),
    "counts": (lambda x: weft.repeat(x, [1, 2, 0], axis=0), [A]),
}


def looped(f, arrays, axes):
    size = next(a.shape[i] for a, i in zip(arrays, axes) if i is not None)
    rows = []
    for n in range(size):
        one = [
            x if i is None else weft.take(x, weft.asarray([n], device=x.device), axis=i).reshape(tuple(m for k, m in enumerate(x.shape) if k != i % x.ndim))
            for x, i in zip(arrays, axes)
        ]  # fmt: skip
        rows.append(parts(f(*one)))
    return [np.stack(c) for c in zip(*rows)]


def drawn(rng, shapes, axes, size, kind, device):
    out = []
    for shape, axis in zip(shapes, axes):
        shape = list(shape)
        if axis is not None:
            shape.insert(axis % (len(shape) + 1), size)
        x = weft.asarray(rng.standard_normal(shape), device=device)
        out.append(x if kind == "array" else Tensor(x))
    return out


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.parametrize("name", [*RULED, *LOOPED])
def test_every_rule(rng, name, kind):
    f, shapes = (RULED | LOOPED)[name]
    choices = [tuple(0 for _ in shapes)]
    choices += [
        tuple(0 if i == k else None for i in range(len(shapes))) for k in range(len(shapes))
    ]
    choices += [tuple(-1 for _ in shapes)]
    if kind == "tensor" and name in ("searchsorted", "fft"):
        return  # without gradients
    if kind == "array" and name in ("pool1", "conv", "pools", "layernorm"):
        return  # tensors only
    for axes in choices:
        for size in (1, 3):
            xs = drawn(rng, shapes, axes, size, kind, "cpu")
            mapped = weft.vmap(f, in_axes=axes, strict=name in RULED)
            got, want = parts(mapped(*xs)), looped(f, xs, axes)
            for g, w in zip(got, want):
                np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12, err_msg=f"{axes} {size}")
    assert bool(mapped.looped) == (name in LOOPED)


@pytest.mark.parametrize("name", [*RULED, "counts"])
def test_nested_and_differentiated(rng, name):
    f, shapes = (RULED | LOOPED)[name]
    xs = [Tensor(rng.standard_normal((2, 3, *s))) for s in shapes]
    got = parts(weft.vmap(weft.vmap(f))(*xs))
    want = [looped(f, [x[i] for x in xs], (0,) * len(xs)) for i in range(2)]
    for g, *w in zip(got, *want):
        np.testing.assert_allclose(g, np.stack(w), rtol=1e-9, atol=1e-12)

    def number(*args):
        out = weft.transforms.trees.flatten(f(*args))[0]
        return sum((o.astype("float64") ** 2).sum() for o in out if o.dtype.kind == "f") + args[0].sum()  # fmt: skip

    every = tuple(range(len(xs)))
    mapped = weft.vmap(weft.vmap(weft.grad(number, every)))(*xs)
    total = weft.grad(lambda *a: weft.vmap(weft.vmap(number))(*a).sum(), every)(*xs)
    for a, b in zip(parts(mapped), parts(total)):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    for i in range(2):
        for j in range(3):
            one = weft.grad(number, every)(*[x[i, j] for x in xs])
            for a, b in zip(parts(mapped), parts(one)):
                np.testing.assert_allclose(a[i, j], b, rtol=1e-8, atol=1e-10)


@pytest.mark.targets("opencl")
def test_on_a_second_device(rng):
    for name in ("arithmetic", "matmul", "sum1", "softmax", "where", "concat", "picked", "sort"):
        f, shapes = RULED[name]
        xs = [
            weft.asarray(rng.standard_normal((3, *s)), dtype="float32", device="opencl:0")
            for s in shapes
        ]
        got, want = parts(weft.vmap(f)(*xs)), parts(weft.vmap(f)(*[x.to("cpu") for x in xs]))
        for g, w in zip(got, want):
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-5)


def test_axes_of_trees(rng):
    x = {"a": weft.asarray(rng.standard_normal((4, 3))), "b": [weft.asarray(rng.standard_normal((3, 4)))]}  # fmt: skip
    f = lambda t, y: {"s": t["a"] * y, "n": t["b"][0].sum()}  # noqa: E731
    got = weft.vmap(f, in_axes=({"a": 0, "b": 1}, None), out_axes={"s": -1, "n": 0})(x, 2.0)
    np.testing.assert_allclose(got["s"].numpy(), x["a"].numpy().T * 2)
    np.testing.assert_allclose(got["n"].numpy(), x["b"][0].numpy().sum(0))
    assert weft.vmap(lambda x: 1.0)(weft.ones((3, 2))).tolist() == [1.0, 1.0, 1.0]
    assert weft.vmap(lambda x: 1.0, out_axes=None)(weft.ones((3, 2))) == 1.0
    got = weft.vmap(lambda x, k: x * k)(weft.ones((3, 2)), k=weft.asarray([1.0, 2.0, 3.0]))
    assert got[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert weft.vmap(lambda: weft.ones(2), axis_size=3)().shape == (3, 2)
    assert weft.vmap(lambda x: x * 2 + 1)(weft.ones((0, 2))).shape == (0, 2)


def test_gradients_of_single_examples_and_ensembles(rng):
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.LayerNorm(7), nn.Linear(7, 2))
    x = weft.asarray(rng.standard_normal((6, 5)), dtype="float32")
    y = weft.asarray(rng.standard_normal((6, 2)), dtype="float32")
    loss = lambda model, x, y: ((model(x) - y) ** 2).sum()  # noqa: E731
    mapped = weft.vmap(weft.grad(loss), in_axes=(None, 0, 0))(model, x, y)
    assert set(mapped) == set(model.named_parameters().keys())
    for i in range(6):
        one = weft.grad(loss)(model, x[i], y[i])
        for name in mapped:
            np.testing.assert_allclose(mapped[name][i].numpy(), one[name].numpy(), rtol=2e-4, atol=2e-5)  # fmt: skip
    several = [nn.Linear(5, 2) for _ in range(3)]
    stacked = {
        n: weft.stack([m.named_parameters()[n] for m in several])
        for n in several[0].named_parameters().keys()
    }
    call = lambda p, x: weft.functional_call(several[0], p, x)  # noqa: E731
    got = weft.vmap(call, in_axes=(0, None))(stacked, x)
    for i, m in enumerate(several):
        np.testing.assert_allclose(got[i].numpy(), m(x).numpy(), rtol=1e-5, atol=1e-6)


def test_random_numbers():
    weft.random.seed(5)
    x = weft.zeros((4, 3))
    noisy = lambda x: x + weft.random.normal(x.shape)  # noqa: E731
    with pytest.raises(weft.ArgumentError, match="randomness") as e:
        weft.vmap(noisy)(x)
    assert e.value.code == "vmap.random"
    same = weft.vmap(noisy, randomness="same")(x).numpy()
    assert (same == same[0]).all()
    other = weft.vmap(noisy, randomness="different")(x).numpy()
    assert len(np.unique(other)) == 12
    nested = weft.vmap(weft.vmap(noisy, randomness="different"), randomness="same")(
        weft.zeros((2, 3, 4))
    ).numpy()
    assert (nested[0] == nested[1]).all() and len(np.unique(nested[0])) == 12
    keyed = weft.vmap(lambda x: x + weft.random.normal(3, key=weft.random.key(1)))(x).numpy()
    assert (keyed == keyed[0]).all()
    drop = weft.vmap(lambda x: F.dropout(x, 0.5), randomness="different")(Tensor(weft.ones((64, 9))))  # fmt: skip
    rows = drop.numpy()
    assert set(np.unique(rows)) == {0.0, 2.0} and not (rows == rows[0]).all()
    drop = weft.vmap(lambda x: F.dropout(x, 0.5), randomness="same")(Tensor(weft.ones((9, 64))))
    assert (drop.numpy() == drop.numpy()[0]).all()


def branch(x):
    return x if x.sum() > 0 else -x


CASES = [
    (lambda: weft.vmap(3), weft.DTypeError, "transform.function", "vmap takes a function, got a int"),
    (lambda: weft.vmap(branch)(weft.ones((2, 3))), weft.DTypeError, "vmap.value", "another one for each of 2 examples"),
    (lambda: weft.vmap(lambda x: x, in_axes=(0, 1))(weft.ones(3)), weft.ArgumentError, "vmap.axes", "in_axes"),
    (lambda: weft.vmap(lambda x: x, in_axes=("a",))(weft.ones(3)), weft.ArgumentError, "vmap.axes", "'a'"),
    (lambda: weft.vmap(lambda x: x, in_axes=2)(weft.ones(3)), weft.IndexError, "vmap.axis", "legal: -1 to 0"),
    (lambda: weft.vmap(lambda x: x)(3.0), weft.ArgumentError, "vmap.argument", "axis 0 of a float"),
    (lambda: weft.vmap(lambda x, y: x)(weft.ones(3), weft.ones(4)), weft.ShapeError, "vmap.size", "3 .leaf 0.*4 .leaf 1"),
    (lambda: weft.vmap(lambda x: x, in_axes=None)(weft.ones(3)), weft.ArgumentError, "vmap.size", "axis_size"),
    (lambda: weft.vmap(lambda x: x, out_axes=None)(weft.ones(3)), weft.ArgumentError, "vmap.out_axes", "differs"),
    (lambda: weft.vmap(lambda x: x, out_axes=2)(weft.ones(3)), weft.IndexError, "vmap.axis", "out_axes=2"),
    (lambda: weft.vmap(lambda x: x, randomness="no")(weft.ones(3)), weft.ArgumentError, "vmap.randomness", "'no'"),
    (lambda: weft.vmap(lambda x: weft.fft.fft(x), strict=True)(weft.ones((2, 4))), weft.ArgumentError, "vmap.rule", "fft has no batching rule"),
    (lambda: weft.vmap(lambda x: weft.fft.fft(x))(weft.ones((0, 4))), weft.ShapeError, "vmap.empty", "no example"),
    (lambda: weft.vmap(lambda x: x[x > 0])(weft.asarray([[1.0, -1.0], [1.0, 1.0]])), weft.ShapeError, "vmap.shape", r"\(1,\), \(2,\)"),
    (lambda: weft.vmap(lambda x: x.__setitem__(0, 1.0))(weft.ones((2, 3))), weft.ArgumentError, "vmap.assign", "weft.where"),
    (lambda: weft.vmap(lambda m, x: m(x))(nn.Linear(2, 2), weft.ones((2, 2))), weft.ArgumentError, "vmap.module", "functional_call"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_refusals(case):
    f, kind, code, text = CASES[case]
    with pytest.raises(kind, match=text) as e:
        f()
    assert e.value.code == code
    # Nothing is left of the transform.
    assert not weft.transforms.batched.frames() and not hasattr(weft.sum, "__weft_public__")


# As `from weft import argmax` binds them, long before a transform.
EARLY = {
    name: getattr(weft, name)
    for name in "argmax argmin argsort sort count_nonzero squeeze asarray exp nansum".split()
} | {"slogdet": weft.linalg.slogdet, "svdvals": weft.linalg.svdvals, "softmax": F.softmax}


@pytest.mark.parametrize("transform", [weft.vmap, weft.compile])
@pytest.mark.parametrize("name", EARLY)
def test_names_from_before_the_transform(rng, name, transform):
    f, x = EARLY[name], weft.asarray(rng.standard_normal((3, 4, 4)))
    whole = f if name in ("slogdet", "svdvals", "softmax") else lambda x: f(x) + 1
    options = (-1,) if name == "softmax" else ()
    got = transform(lambda x: whole(x, *options))(x)
    if transform is weft.vmap:
        want = [parts(whole(one, *options)) for one in x]
        want = [np.stack(column) for column in zip(*want)]
    else:
        want = parts(whole(x, *options))
    for a, b in zip(parts(got), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_names_from_before_the_transform_keep_rules_and_refusals(rng):
    x = weft.asarray(rng.standard_normal((3, 4)))
    argsort, argmax, unique = EARLY["argsort"], EARLY["argmax"], weft.unique_values
    nested = weft.vmap(weft.vmap(lambda x: argsort(x), strict=True), strict=True)
    np.testing.assert_array_equal(
        nested(x.reshape((3, 2, 2))).numpy(), np.argsort(x.numpy().reshape(3, 2, 2))
    )
    with pytest.raises(weft.IndexError):
        weft.vmap(lambda x: argmax(x, axis=3))(x)
    with pytest.raises(weft.ArgumentError, match="unique_values has no batching rule") as e:
        weft.vmap(lambda x: unique(x), strict=True)(x)
    assert e.value.code == "vmap.rule"
    looped = weft.vmap(lambda x: unique(x))
    np.testing.assert_array_equal(looped(x).numpy(), np.sort(x.numpy()))
    assert "unique_values" in looped.looped
    assert int(argmax(x[0])) == int(np.argmax(x[0].numpy()))


def test_values_that_left_their_vmap():
    kept = []
    weft.vmap(lambda x: kept.append(x) or x)(weft.ones((2, 3)))
    weft.vmap(lambda x: x)(weft.ones(2))
    with pytest.raises(weft.ArgumentError, match="left its vmap") as e:
        weft.vmap(lambda x: weft.sum(kept[0]) + x)(weft.ones(2))
    assert e.value.code == "vmap.escaped"


def test_a_layer_that_keeps_statistics_is_refused():
    norm = nn.BatchNorm1d(3)
    with pytest.raises(weft.Error) as e:
        weft.vmap(lambda m, x: m(x), in_axes=(None, 0))(norm, weft.ones((2, 4, 3)))
    assert e.value.code == "vmap.state"


def test_threads(rng):
    import threading

    x = weft.asarray(rng.standard_normal((8, 5)))
    want, wrong = weft.vmap(lambda x: weft.sort(x) * 2)(x).numpy(), []

    def work():
        for _ in range(30):
            got = weft.vmap(lambda x: weft.sort(x) * 2)(x).numpy()
            if not (got == want).all() or weft.sort(x).shape != (8, 5):
                wrong.append(got)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong
