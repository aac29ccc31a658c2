# SPDX-License-Identifier: Apache-2.0
"""grad, vjp, jvp, jacobian, hessian, checkpoint and custom rules: beside finite differences and beside each other."""

import numpy as np
import pytest
from test_autograd import draw, numeric

import weft
from weft import Tensor, _core, nn
from weft.nn import functional as F
from weft.transforms import trees

ROWS = [r for r in _core.elementwise_rows if r["differentiable"]]


def values(tree):
    return [np.asarray(x.numpy()) for x in trees.flatten(tree)[0]]


SMOOTH = "tanh sin cos sigmoid atan asinh erf".split()


def program(rng):
    """A random smooth function of a matrix and a vector, as a list of steps."""
    steps = []
    for _ in range(rng.integers(2, 7)):
        kind = rng.choice(["unary", "scale", "rowadd", "matmul", "softmax", "norm", "cumsum", "roll", "slice", "where", "layernorm"])  # fmt: skip
        steps.append((kind, rng.choice(SMOOTH), float(rng.uniform(0.5, 1.5)), int(rng.integers(0, 3))))  # fmt: skip
    last = rng.choice(["sum", "square", "logsumexp", "prod"])

    def f(x, v):
        for kind, name, number, k in steps:
            if kind == "unary":
                x = getattr(weft, name)(x) * number
            elif kind == "scale":
                x = x * number + x / (v * v + 2.0)
            elif kind == "rowadd":
                x = x + v * number
            elif kind == "matmul":
                x = x @ (x.mT @ x) * 0.1 + x
            elif kind == "softmax":
                x = weft.softmax(x, axis=k % 2) * number
            elif kind == "norm":
                x = x / weft.sqrt((x * x).sum(0, True) + 1.0)
            elif kind == "cumsum":
                x = weft.cumulative_sum(x, axis=k % 2) * 0.5
            elif kind == "roll":
                x = weft.concat([x[1:], x[:1]], axis=0) * number
            elif kind == "slice":
                x = x + weft.take(x, weft.asarray([0, 0, 1]), axis=0)
            elif kind == "where":
                x = weft.where(weft.asarray([[True], [False], [True]]), x, x * x)
            else:
                centred = x - x.mean(1, True)
                x = centred / weft.sqrt((centred * centred).mean(1, True) + 0.1)
        if last == "sum":
            return (x * v).sum()
        if last == "square":
            return (x**2).mean()
        if last == "logsumexp":
            return weft.logsumexp(x)
        return weft.prod(1.0 + 0.1 * x)

    return f


@pytest.mark.parametrize("seed", range(200))
def test_random_functions(seed):
    rng = np.random.default_rng([seed, 17])
    f = program(rng)
    x, v = rng.standard_normal((3, 4)), rng.standard_normal(4)
    wx, wv = weft.asarray(x), weft.asarray(v)
    number = lambda a, b: float(f(weft.asarray(a), weft.asarray(b)))  # noqa: E731
    value, (gx, gv) = weft.value_and_grad(f, argnums=(0, 1))(wx, wv)
    assert float(value) == pytest.approx(number(x, v), rel=1e-12)
    np.testing.assert_allclose(gx.numpy(), numeric(number, [x, v], 0), rtol=2e-5, atol=2e-7)
    np.testing.assert_allclose(gv.numpy(), numeric(number, [x, v], 1), rtol=2e-5, atol=2e-7)
    tx, tv = rng.standard_normal((3, 4)), rng.standard_normal(4)
    tangents = weft.asarray(tx), weft.asarray(tv)
    out, push = weft.jvp(f, (wx, wv), tangents)
    want = (gx.numpy() * tx).sum() + (gv.numpy() * tv).sum()
    assert float(push) == pytest.approx(want, rel=1e-9, abs=1e-11)
    assert float(out) == pytest.approx(float(value), rel=1e-12)
    (h, _), (_, _) = weft.hessian(f, argnums=(0, 1))(wx, wv)
    h = h.numpy().reshape(12, 12)
    np.testing.assert_allclose(h, h.T, rtol=1e-7, atol=1e-9)
    # A column of it by differences of gradients.
    eps = 1e-6
    step = lambda s: weft.grad(f)(weft.asarray(x + s * eps * tx), wv).numpy().ravel()  # noqa: E731
    np.testing.assert_allclose(h @ tx.ravel(), (step(1) - step(-1)) / (2 * eps), rtol=5e-4, atol=5e-6)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_every_row_has_gradients_of_gradients(rng, row):
    """Each gradient rule of the table is itself differentiable, and right."""
    f = _core.operations[row["name"]]
    xs = [draw(rng, row["domain"], (2, 3)) for _ in range(row["arity"])]
    if row["name"] == "pow":
        xs[0] = np.abs(xs[0]) + 0.5
    number = lambda *a: (f(*a) * weft.asarray([[1.0], [2.0]])).sum()  # noqa: E731
    every = tuple(range(len(xs)))
    first = weft.grad(lambda *a: sum((g * (k + 1.5)).sum() for k, g in enumerate(weft.grad(number, every)(*a))), every)  # fmt: skip
    got = first(*map(weft.asarray, xs))

    def eager(*a):
        return sum((g.numpy() * (k + 1.5)).sum() for k, g in enumerate(weft.grad(number, every)(*map(weft.asarray, a))))  # fmt: skip

    for k in every:
        np.testing.assert_allclose(got[k].numpy(), numeric(eager, xs, k), rtol=1e-4, atol=2e-5)


A, M = (3, 4), (4, 4)
STRUCTURED = {
    "sum": (lambda x: x.sum(0), [A]), "mean": (lambda x: x.mean(1), [A]), "max": (lambda x: weft.max(x, axis=1), [A]),
    "min": (lambda x: weft.min(x), [A]), "prod": (lambda x: weft.prod(x, axis=0), [A]), "var": (lambda x: weft.var(x, axis=0), [A]),
    "std": (lambda x: weft.std(x), [A]), "cumsum": (lambda x: weft.cumulative_sum(x, axis=1), [A]),
    "cumprod": (lambda x: weft.cumulative_prod(x, axis=1), [A]), "softmax": (lambda x: weft.softmax(x), [A]),
    "log_softmax": (lambda x: weft.log_softmax(x, axis=0), [A]), "logsumexp": (lambda x: weft.logsumexp(x, axis=0), [A]),
    "layer_norm": (lambda x, s, t: weft.layer_norm(x, s, t), [A, (4,), (4,)]), "matmul": (lambda x, y: x @ y, [A, M]),
    "matvec": (lambda x, y: x @ y, [A, (4,)]), "einsum": (lambda x, y: weft.einsum("ij,jk->k", x, y), [A, M]),
    "sort": (lambda x: weft.sort(x), [A]), "topk": (lambda x: weft.topk(x, 2).values, [A]), "take": (lambda x: weft.take(x, weft.asarray([0, 2, 2]), axis=0), [A]),
    "along": (lambda x: weft.take_along_axis(x, weft.argsort(x), axis=1), [A]), "index": (lambda x: x[1:, ::2], [A]),
    "arrays": (lambda x: x[weft.asarray([0, 1, 0]), 1:], [A]), "mask": (lambda x: x[weft.asarray([True, False, True])], [A]),
    "scatter": (lambda x, y: weft.scatter(x, weft.asarray([0, 0]), y, accumulate=True), [A, (2, 4)]),
    "pad": (lambda x: weft.pad(x, [(1, 1), (0, 2)]), [A]), "edge": (lambda x: weft.pad(x, [(1, 1), (0, 2)], mode="edge"), [A]),
    "concat": (lambda x, y: weft.concat([x, y]), [A, (1, 4)]), "where": (lambda x, y: weft.where(x.data > 0, x, y), [A, A]),
    "roll": (lambda x: weft.roll(x, 1, axis=0), [A]), "tile": (lambda x: weft.tile(x, (2, 1)), [A]), "repeat": (lambda x: weft.repeat(x, 2, axis=0), [A]),
    "tril": (lambda x: weft.tril(x), [A]), "diff": (lambda x: weft.diff(x), [A]), "clip": (lambda x: weft.clip(x, -0.3, 0.4), [A]),
    "inv": (lambda x: weft.linalg.inv(x + weft.eye(4, dtype="float64") * 4.0), [M]),
    "solve": (lambda x, y: weft.linalg.solve(x + weft.eye(4, dtype="float64") * 4.0, y), [M, M]),
    "det": (lambda x: weft.linalg.det(x), [M]), "trace": (lambda x: weft.linalg.trace(x), [M]), "diagonal": (lambda x: weft.linalg.diagonal(x), [M]),
    "matrix_power": (lambda x: weft.linalg.matrix_power(x, 3), [M]), "vector_norm": (lambda x: weft.linalg.vector_norm(x, axis=0), [A]),
    "conv2d": (lambda x, w: F.conv2d(x, w, stride=2, padding=1), [(1, 2, 5, 5), (3, 2, 3, 3)]), "conv1d": (lambda x, w: F.conv1d(x, w), [(1, 2, 5), (3, 2, 3)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w), [(1, 2, 4, 4), (2, 3, 2, 2)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [(1, 2, 4, 4)]), "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [(1, 2, 4, 4)]),
    "embedding": (lambda w: F.embedding(w, weft.asarray([1, 0, 1])), [A]), "gelu": (lambda x: F.gelu(x), [A]), "elu": (lambda x: F.elu(x), [A]),
    "attention": (lambda q, k, v: F.attention(q, k, v, True), [A, A, A]), "cross_entropy": (lambda x: F.cross_entropy(x, weft.asarray([0, 3, 1])), [A]),
    "mse": (lambda x, y: F.mse_loss(x, y), [A, A]), "smooth_l1": (lambda x, y: F.smooth_l1_loss(x, y), [A, A]), "kl": (lambda x, y: F.kl_div(x, y), [A, A]),
    "group_norm": (lambda x: F.group_norm(x, 2), [(2, 4, 3)]), "interpolate": (lambda x: F.interpolate(x, scale_factor=2), [(1, 2, 3, 3)]),
    "meshgrid": (lambda x: weft.meshgrid(x, x)[0], [(3,)]), "tensordot": (lambda x, y: weft.tensordot(x, y, axes=1), [A, M]),
    "cross": (lambda x, y: weft.linalg.cross(x, y), [(2, 3), (2, 3)]), "outer": (lambda x, y: weft.linalg.outer(x, y), [(3,), (2,)]),
    "flip": (lambda x: weft.flip(x), [A]), "stack": (lambda x, y: weft.stack([x, y]), [A, A]), "squeeze": (lambda x: weft.squeeze(weft.expand_dims(x, axis=0), axis=0), [A]),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURED)
def test_every_function_has_gradients_of_gradients(rng, name):
    f, shapes = STRUCTURED[name]
    xs = [rng.standard_normal(s) for s in shapes]
    if name == "kl":
        xs[1] = np.abs(xs[1]) + 0.1
    weights = {}

    def number(*a):
        y = f(*a)
        w = weights.setdefault("w", weft.asarray(rng.standard_normal(y.shape)))
        return (weft.tanh(y) * w).sum()

    every = tuple(range(len(xs)))
    ts = [weft.asarray(rng.standard_normal(s)) for s in shapes]
    directed = lambda *a: sum((g * t).sum() for g, t in zip(weft.grad(number, every)(*a), ts))  # noqa: E731
    got = weft.grad(directed, every)(*map(weft.asarray, xs))
    for k in every:
        np.testing.assert_allclose(
            got[k].numpy(),
            numeric(lambda *a: float(directed(*map(weft.asarray, a))), xs, k),
            rtol=2e-4,
            atol=2e-5,
        )
    # The forward derivative along the tangents is the same number as the gradients give.
    _, along = weft.jvp(number, tuple(map(weft.asarray, xs)), tuple(ts))
    assert float(along) == pytest.approx(float(directed(*map(weft.asarray, xs))), rel=1e-9, abs=1e-11)  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.targets("opencl")
def test_trees_argnums_and_aux(device):
    p = {"w": weft.asarray([1.0, 2.0], device=device), "b": (weft.asarray(3.0, device=device), [])}
    f = lambda p, k: ((p["w"] * p["w"]).sum() * k + p["b"][0], {"seen": p["w"] * 2})  # noqa: E731
    (value, aux), g = weft.value_and_grad(f, has_aux=True)(p, 2.0)
    assert float(value) == 13.0 and aux["seen"].numpy().tolist() == [2.0, 4.0]
    assert g["w"].numpy().tolist() == [4.0, 8.0] and float(g["b"][0]) == 1.0 and g["b"][1] == []
    assert not value.requires_grad and not aux["seen"].requires_grad and not g["w"].requires_grad
    g, aux = weft.grad(lambda *a: f(*a), argnums=(0, -1), has_aux=True)(p, 2.0)
    assert float(g[1]) == 5.0
    assert str(g[0]["w"].device).startswith(device[:3])


def test_modules_and_captured_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    x = weft.random.normal((5, 3))
    loss = lambda m: (m(x) ** 2).mean()  # noqa: E731
    g = weft.grad(loss)(model)
    loss(model).backward()
    for name, p in model.named_parameters().items():
        np.testing.assert_allclose(g[name].numpy(), p.grad.numpy(), rtol=1e-5, atol=1e-7)
        assert isinstance(p, nn.Parameter)
    w = Tensor([2.0, 3.0])
    out = weft.grad(lambda x: (w * x * x).sum())(weft.asarray([1.0, 2.0]))
    assert out.requires_grad  # w wants its gradient of the gradient
    out.sum().backward()
    assert w.grad.numpy().tolist() == [2.0, 4.0]


def test_nested_derivatives_do_not_mix():
    f = weft.grad(lambda x: weft.grad(lambda y: x * y)(x))
    assert float(f(2.0)) == 1.0 and float(f(Tensor(2.0))) == 1.0
    assert float(weft.grad(lambda x: x * weft.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    assert float(weft.grad(lambda x: weft.jvp(lambda y: x * y * y, (x,), (1.0,))[1])(3.0)) == 12.0
    assert float(weft.jvp(weft.grad(lambda x: x**4), (2.0,), (1.0,))[1]) == 48.0
    assert float(weft.jvp(lambda x: weft.jvp(lambda y: x * y, (x,), (1.0,))[1], (2.0,), (1.0,))[1]) == 1.0  # fmt: skip
    x = weft.asarray([1.0, 2.0, 3.0])
    third = weft.vmap(weft.grad(weft.grad(weft.grad(lambda t: t**4))))(x)
    assert third.numpy().tolist() == [24.0, 48.0, 72.0]
    with weft.no_grad():
        assert float(weft.grad(lambda x: x * x)(3.0)) == 6.0
    stopped = weft.grad(lambda x: (weft.stop_gradient(x) * x).sum())(x)
    assert stopped.numpy().tolist() == [1.0, 2.0, 3.0]
    # A gradient in a loop of its own steps keeps no history.
    p = weft.asarray([1.0])
    for _ in range(3):
        p = p - 0.1 * weft.grad(lambda q: (q * q).sum())(p)
    assert not p.requires_grad


def test_vjp_jvp_linearize_and_jacobians(rng):
    x, v = weft.asarray(rng.standard_normal(3)), weft.asarray(rng.standard_normal((2, 3)))
    f = lambda x, v: {"a": weft.sin(v @ x), "b": (x * x).sum()}  # noqa: E731
    out, pull = weft.vjp(f, x, v)
    seed = {"a": weft.asarray(rng.standard_normal(2)), "b": weft.asarray(0.5)}
    gx, gv = pull(seed)
    tx, tv = weft.asarray(rng.standard_normal(3)), weft.asarray(rng.standard_normal((2, 3)))
    again, push = weft.linearize(f, x, v)
    t = push(tx, tv)
    left = float((t["a"] * seed["a"]).sum() + t["b"] * seed["b"])
    assert left == pytest.approx(float((gx * tx).sum() + (gv * tv).sum()), rel=1e-12)
    assert float(push(tx * 2.0, tv * 2.0)["b"]) == pytest.approx(2 * float(t["b"]))
    for jacobian in (weft.jacrev, weft.jacfwd, weft.jacobian):
        j = jacobian(f, argnums=(0, 1))(x, v)
        assert j["a"][0].shape == (2, 3) and j["a"][1].shape == (2, 2, 3) and j["b"][1].shape == (2, 3)  # fmt: skip
        c = np.cos((v.numpy() @ x.numpy()))
        np.testing.assert_allclose(j["a"][0].numpy(), c[:, None] * v.numpy(), rtol=1e-12)
        np.testing.assert_allclose(j["b"][0].numpy(), 2 * x.numpy())
    j, aux = weft.jacfwd(lambda x: (x * x, x.sum()), has_aux=True)(x)
    np.testing.assert_allclose(j.numpy(), np.diag(2 * x.numpy()))
    assert float(aux) == pytest.approx(x.numpy().sum())
    batched = weft.vmap(weft.hessian(lambda x: (x**3).sum()))(v)
    np.testing.assert_allclose(batched.numpy(), [np.diag(6 * r) for r in v.numpy()])
    # Constant results and unused arguments have zeros.
    assert weft.grad(lambda x, y: (y * 1.0).sum())(x, v).numpy().tolist() == [0.0] * 3
    assert weft.jacrev(lambda x: weft.ones(2))(x).numpy().tolist() == [[0.0] * 3] * 2
    assert weft.jvp(lambda x: weft.ones(2), (x,), (x,))[1].numpy().tolist() == [0.0] * 2


def test_checkpoint(rng):
    w = nn.Parameter(rng.standard_normal((4, 4)))
    calls = []

    def block(x):
        calls.append(1)
        return weft.tanh(x @ w), weft.sin(x).sum()

    def total(f):
        def g(x):
            y, s = f(x)
            return (y * y).sum() * s

        return g

    x = weft.asarray(rng.standard_normal((3, 4)))
    plain, saved = total(block), total(weft.checkpoint(block))
    a, b = weft.grad(plain)(x), weft.grad(saved)(x)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)
    for f in (plain, saved):
        w.grad = None
        f(Tensor(x)).backward()
        np.testing.assert_allclose(w.grad.numpy(), weft.grad(lambda p: plain_with(p, x))(w.data).numpy(), rtol=1e-10)  # fmt: skip
    np.testing.assert_allclose(weft.hessian(saved)(x).numpy(), weft.hessian(plain)(x).numpy(), rtol=1e-9, atol=1e-9)  # fmt: skip
    rows = lambda f: weft.vmap(weft.grad(f))(weft.stack([x, x * 2])).numpy()  # noqa: E731
    np.testing.assert_allclose(rows(saved), rows(plain), rtol=1e-10)
    through = lambda f: weft.grad(lambda x: weft.vmap(f)(x).sum())(weft.stack([x, x * 2])).numpy()  # noqa: E731
    np.testing.assert_allclose(through(saved), through(plain), rtol=1e-10)
    # Arguments of outer derivatives that it captures, and the same random numbers.
    outer = lambda c: weft.grad(lambda v: weft.checkpoint(lambda x: (x * v * v).sum())(c))(c).sum()  # noqa: E731
    assert float(weft.grad(outer)(weft.asarray(3.0))) == 12.0
    noisy = weft.checkpoint(lambda x: (x * weft.random.normal(3)).sum())
    weft.random.seed(3)
    value, g = weft.value_and_grad(noisy)(weft.ones(3))
    assert float(g.sum()) == pytest.approx(float(value), rel=1e-6)


def plain_with(w, x):
    y, s = weft.tanh(x @ w), weft.sin(x).sum()
    return (y * y).sum() * s


def clipped():
    @weft.custom_vjp
    def f(x, k):
        return x * k

    f.defvjp(lambda x, k: (x * k, (x, k)), lambda res, g: (weft.clip(g, -1.0, 1.0) * res[1], None))
    return f


def test_custom_vjp(rng):
    f = clipped()
    x = weft.asarray([1.0, 2.0])
    assert weft.grad(lambda x: (f(x, 3.0) * 5.0).sum())(x).numpy().tolist() == [3.0, 3.0]
    assert weft.vmap(weft.grad(lambda x: f(x, 3.0) * 5.0))(x).numpy().tolist() == [3.0, 3.0]
    assert weft.grad(lambda x: weft.vmap(lambda v: f(v, 3.0) * 5.0)(x).sum())(x).numpy().tolist() == [3.0, 3.0]  # fmt: skip

    @weft.custom_vjp
    def softplus(x):
        return weft.log(1.0 + weft.exp(x))

    softplus.defvjp(lambda x: (softplus.f(x), x), lambda x, g: (g * weft.sigmoid(x),))
    v = weft.asarray(rng.standard_normal(4))
    want = weft.sigmoid(v).numpy()
    np.testing.assert_allclose(weft.grad(lambda x: softplus(x).sum())(v).numpy(), want)
    h = weft.hessian(lambda x: softplus(x).sum())(v).numpy()
    np.testing.assert_allclose(h, np.diag(want * (1 - want)), rtol=1e-9, atol=1e-12)
    assert weft.jvp(softplus, (v,), (v,))[1].shape == (4,)

    @weft.custom_vjp
    def pair(x, y):
        return {"s": x + y, "p": x * y}

    pair.defvjp(
        lambda x, y: (pair.f(x, y), (x, y)),
        lambda r, g: (g["s"] + g["p"] * r[1], g["s"] + g["p"] * r[0]),
    )
    both = lambda x, y: (lambda o: o["s"] * 2.0 + o["p"] * 3.0)(pair(x, y))  # noqa: E731
    assert [float(g) for g in weft.grad(both, (0, 1))(2.0, 5.0)] == [17.0, 8.0]
    apply = weft.custom_vjp(lambda f, x: f(x), nondiff_argnums=0)
    apply.defvjp(lambda f, x: (f(x), x), lambda f, x, g: (g * 10.0,))
    assert float(weft.grad(lambda x: apply(weft.sin, x))(1.0)) == 10.0


def test_custom_jvp(rng):
    @weft.custom_jvp
    def f(x, y):
        return weft.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (a, b) = primals, tangents
        return f(x, y), weft.cos(x) * a * y + weft.sin(x) * b

    g = lambda x, y: weft.sin(x) * y  # noqa: E731
    for number in (0.3, -1.2):
        for d in (weft.grad, weft.jacfwd, lambda f, n: weft.grad(weft.grad(f, n), n)):
            assert float(d(f, 0)(number, 2.0)) == pytest.approx(float(d(g, 0)(number, 2.0)), rel=1e-6)  # fmt: skip
    x = weft.asarray(rng.standard_normal(4))
    np.testing.assert_allclose(
        weft.vmap(weft.grad(f), in_axes=(0, None))(x, 2.0).numpy(), 2 * np.cos(x.numpy())
    )


def test_functions_of_ones_own_under_vmap(rng):
    class Cube(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3.0 * x * x

    x = weft.asarray(rng.standard_normal(3))
    got = weft.vmap(weft.grad(Cube.apply))(x)
    np.testing.assert_allclose(got.numpy(), 3 * x.numpy() ** 2)


one = weft.asarray([1.0, 2.0])


def unset():
    return weft.custom_vjp(lambda x: x)(one)


def ruled(forward, backward):
    f = weft.custom_vjp(lambda x: x)
    f.defvjp(forward, backward)
    return weft.grad(lambda x: f(x).sum())(one)


def ruled_jvp(rule):
    f = weft.custom_jvp(lambda x: x)
    f.defjvp(rule)
    return weft.grad(lambda x: f(x).sum())(one)


def endless():
    t = []
    t.append(t)
    return weft.grad(lambda t: 1.0)(t)


class InTuple(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = (nn.Parameter([1.0, 2.0]),)


kept = []


def escaped():
    weft.vmap(lambda x: kept.append(weft.vjp(weft.sin, x)[1]) or x)(one)
    return kept[0](one)


CASES = [
    (lambda: weft.grad(3), weft.DTypeError, "array.grad.function", "grad takes a function, got a int"),
    (lambda: weft.grad(lambda x: x)(one), weft.ArgumentError, "array.grad.scalar", r"\(2,\)"),
    (lambda: weft.grad(lambda x: x.sum())(weft.asarray([1, 2])), weft.DTypeError, "transform.integer", "int64"),
    (lambda: weft.grad(lambda x: x)(3), weft.DTypeError, "transform.integer", "type int"),
    (lambda: weft.grad(lambda x: x)(True), weft.DTypeError, "transform.integer", "type bool"),
    (lambda: weft.vjp(lambda x: x, weft.asarray([1j])), weft.DTypeError, "transform.complex", "holomorphic"),
    (lambda: weft.jvp(lambda x: x, (1j,), (1j,)), weft.DTypeError, "transform.complex", "jvp"),
    (lambda: weft.grad(lambda x: x, argnums=1)(1.0), weft.ArgumentError, "transform.argnums", "legal: numbers from -1 to 0"),
    (lambda: weft.grad(lambda x: x, argnums="x")(1.0), weft.ArgumentError, "transform.argnums", "'x'"),
    (lambda: weft.grad(lambda x: x, has_aux=True)(1.0), weft.ArgumentError, "transform.aux", "has_aux"),
    (lambda: weft.jvp(lambda x: x, one, one), weft.ArgumentError, "transform.jvp.tuple", "primals as a tuple"),
    (lambda: weft.jvp(lambda x: x, (one,), (one, one)), weft.ArgumentError, "transform.tree.structure", "tangents"),
    (lambda: weft.jvp(lambda x: x, (one,), (weft.ones(3),)), weft.ShapeError, "transform.shape", r"\(3,\).*\(2,\)"),
    (lambda: weft.vjp(lambda x: x, one)[1]((one,)), weft.ArgumentError, "transform.tree.structure", "pull"),
    (lambda: weft.vjp(lambda x: x, one)[1](weft.ones(())), weft.ShapeError, "transform.shape", "pull"),
    (unset, weft.ArgumentError, "transform.custom.unset", "without a rule"),
    (lambda: ruled(lambda x: x, lambda r, g: g), weft.ArgumentError, "transform.custom.forward", "residuals"),
    (lambda: ruled(lambda x: (x, x), lambda r, g: (g, g)), weft.ArgumentError, "transform.custom.backward", "return 1 gradients"),
    (lambda: ruled(lambda x: (x, x), lambda r, g: (g[:1],)), weft.ShapeError, "transform.shape", "backward rule"),
    (lambda: ruled_jvp(lambda p, t: p[0]), weft.ArgumentError, "transform.custom.jvp", "result, tangent"),
    (lambda: weft.custom_vjp(lambda x: x, nondiff_argnums=3).__call__(one), weft.ArgumentError, "transform.custom.unset", "rule"),
    (endless, weft.ArgumentError, "transform.tree.depth", "200"),
    (escaped, weft.ArgumentError, "vmap.escaped", "ended"),
    (lambda: weft.grad(lambda m: (m.pair[0] * 2.0).sum())(InTuple()), weft.ArgumentError, "nn.functional_call.tuple", "kept in a tuple"),
    (lambda: weft.functional_call(nn.Linear(2, 2), {"no": one}, one), weft.ArgumentError, "nn.functional_call.names", "weight"),
]  # fmt: skip


def test_places_of_constant_arguments():
    f = weft.custom_vjp(lambda x: x, nondiff_argnums=3)
    f.defvjp(lambda x: (x, x), lambda r, g: (g,))
    with pytest.raises(weft.ArgumentError, match="1 arguments") as e:
        f(one)
    assert e.value.code == "transform.nondiff"


@pytest.mark.parametrize("case", range(len(CASES)))
def test_refusals(case):
    f, kind, code, text = CASES[case]
    with pytest.raises(kind, match=text) as e:
        f()
    assert e.value.code == code


def test_a_cotangent_that_depends_on_the_result():
    """pull(y) where y is the result itself: the pull is linear in y, and y depends on the same argument."""
    x = np.random.default_rng(3).standard_normal((3, 4))

    def f(x):
        y, pull = weft.vjp(lambda x: weft.sin(x), x)
        return pull(y * 2.0)[0]  # 2 sin x cos x = sin 2x

    x = weft.asarray(x)
    value, pull = weft.vjp(f, x)
    np.testing.assert_allclose(values(value)[0], np.sin(2 * x.numpy()))
    np.testing.assert_allclose(values(pull(weft.ones_like(x)))[0], 2 * np.cos(2 * x.numpy()))
    got = weft.vmap(lambda r: weft.vjp(f, r)[1](weft.ones_like(r))[0])(x)
    np.testing.assert_allclose(values(got)[0], 2 * np.cos(2 * x.numpy()))


def test_a_running_logarithm_far_apart():
    x = weft.Tensor(np.array([-1e3, 0.0, 1e3, -1e3]))
    y = x.logcumsumexp(0)
    np.testing.assert_allclose(y.numpy(), [-1e3, 0.0, 1e3, 1e3])
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1.0, 1.0, 2.0, 0.0])


COMPILED = {
    "jvp": lambda f: lambda x: weft.jvp(f, (x,), (x + 1.0,)),
    "vjp": lambda f: lambda x: (lambda y, pull: pull(y * 2.0))(*weft.vjp(f, x)),
    "jacrev": lambda f: weft.jacrev(f),
    "jacfwd": lambda f: weft.jacfwd(f),
    "hessian": lambda f: weft.hessian(lambda x: (f(x) ** 2).sum()),
    "vmap of grad": lambda f: weft.vmap(weft.grad(lambda r: (f(r) ** 2).sum())),
    "vmap of hessian": lambda f: weft.vmap(weft.hessian(lambda r: (f(r) ** 2).sum())),
    "vmap of jvp": lambda f: weft.vmap(lambda r: weft.jvp(f, (r,), (r * r,))[1]),
    "grad of jvp": lambda f: weft.grad(lambda x: weft.jvp(f, (x,), (x * x,))[1].sum()),
    "grad of checkpoint": lambda f: weft.vmap(weft.grad(lambda r: weft.checkpoint(f)(r).sum())),
}


@pytest.mark.parametrize("body", ["kernels", "islands"])
@pytest.mark.parametrize("name", COMPILED)
def test_derivatives_inside_a_compiled_function(name, body):
    """Beside the same derivative outside; "islands": with a sort, which kernels cannot hold."""
    f = (lambda x: weft.tanh(x) * x) if body == "kernels" else (lambda x: weft.sort(weft.tanh(x) * x))  # fmt: skip
    x = weft.asarray(np.random.default_rng(4).standard_normal((3, 4)))
    derived = COMPILED[name](f)
    compiled = weft.compile(derived)
    for _ in range(2):
        got, want = values(compiled(x)), values(derived(x))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-9)


def test_trees_have_a_depth_a_text_and_one_structure():
    nested = weft.ones(2)
    for _ in range(200):
        nested = [nested]
    assert len(trees.flatten(nested)[0]) == 1
    with pytest.raises(weft.ArgumentError) as caught:
        trees.flatten([nested])
    assert caught.value.code == "transform.tree.depth"
    assert repr(trees.flatten({"a": 1, "b": [2, (3,)]})[1]) == "{'a': *, 'b': [*, (*)]}"
    assert weft.transforms.tree_map(lambda a, b: a + b, [1, {"x": 2}], [10, {"x": 20}]) == [11, {"x": 22}]  # fmt: skip
    for other in ([10, 20], [10, {"y": 20}], (10, {"x": 20})):
        with pytest.raises(weft.ArgumentError) as caught:
            weft.transforms.tree_map(lambda a, b: a, [1, {"x": 2}], other)
        assert caught.value.code == "transform.tree.structure"


def test_numbers_beside_arrays_take_the_first_type_of_floats():
    integers, floats = weft.ones(2, dtype="int32"), weft.ones(2, dtype="float64")
    found = trees.as_arrays([1, integers, floats, 2.5])
    assert [str(x.dtype) for x in found] == ["float64", "int32", "float64", "float64"]
    assert [str(x.dtype) for x in trees.as_arrays([1.5, integers])] == ["float32", "int32"]
