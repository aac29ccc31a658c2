# SPDX-License-Identifier: Apache-2.0
"""weft.compile of whole training steps: forward, backward, update and loss scaling; state in, state out."""

import numpy as np
import pytest

import weft
from weft import nn
from weft.nn import functional as F


def close(a, b, **tolerance):
    a, b = (weft.transforms.trees.flatten(t)[0] for t in (a, b))
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x.numpy(), y.numpy(), **{"rtol": 2e-5, "atol": 2e-6, **tolerance})  # fmt: skip


def adam(loss, rate=0.01):
    def step(state, scale, *batch):
        p, m, v, t = state["p"], state["m"], state["v"], state["t"] + 1.0
        value, g = weft.value_and_grad(lambda p: loss(p, *batch) * scale)(p)
        g = {k: x / scale for k, x in g.items()}
        norm = weft.sqrt(sum((x * x).sum() for x in g.values()))
        g = {k: x * weft.minimum(1.0 / norm, 1.0) for k, x in g.items()}
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in m}
        v = {k: 0.99 * v[k] + 0.01 * g[k] * g[k] for k in v}
        a, b = 1.0 - 0.9**t, 1.0 - 0.99**t
        p = {k: p[k] - rate * (m[k] / a) / (weft.sqrt(v[k] / b) + 1e-8) for k in p}
        return {"p": p, "m": m, "v": v, "t": t}, value / scale

    return step


def start(p):
    zeros = lambda: {k: weft.zeros_like(v) for k, v in p.items()}  # noqa: E731
    t = weft.zeros((), dtype="float32", device=next(iter(p.values())).device)
    return {"p": p, "v": zeros(), "t": t, "m": zeros()}


def arrays(rng, device, **shapes):
    return {
        k: weft.asarray(rng.standard_normal(s) * 0.3, dtype="float32", device=device)
        for k, s in shapes.items()
    }


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.targets("opencl")
def test_a_step_of_adam_is_one_trace(rng, device):
    calls = []

    def loss(p, x, y):
        calls.append(1)
        h = weft.tanh(x @ p["w"] + p["b"])
        return -(y * weft.log_softmax(h @ p["v"], axis=-1)).sum() / x.shape[0]

    p = arrays(rng, device, w=(7, 9), b=(9,), v=(9, 3))
    x = arrays(rng, device, x=(5, 7))["x"]
    y = weft.asarray(np.eye(3)[rng.integers(0, 3, 5)], dtype="float32", device=device)
    scale = weft.asarray(1024.0, dtype="float32", device=device)
    eager, compiled = adam(loss), weft.compile(adam(loss))
    a = b = start(p)
    losses = []
    for k in range(6):
        a, la = eager(a, scale, x, y)
        calls.clear()
        b, lb = compiled(b, scale, x, y)
        assert len(calls) == (1 if k == 0 else 0)  # later calls trace nothing
        close((a, la), (b, lb), rtol=2e-4)
        losses.append(float(lb))
    assert compiled.traces == 1 and losses[-1] < losses[0]
    assert all(isinstance(x, weft.NDArray) for x in weft.transforms.trees.flatten(b)[0])


def test_modules_by_functional_call(rng):
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    loss = lambda p, x: (weft.functional_call(model, p, x) ** 2).mean()  # noqa: E731
    p = {k: v.data for k, v in model.named_parameters().items()}
    x = weft.asarray(rng.standard_normal((3, 4)), dtype="float32")
    close(weft.grad(loss)(p, x), weft.compile(weft.grad(loss))(p, x))
    step, scale = adam(loss), weft.asarray(1.0, dtype="float32")
    close(step(start(p), scale, x), weft.compile(step)(start(p), scale, x))


def test_derivatives_inside_and_around(rng):
    x = weft.asarray(rng.standard_normal(5))
    f = lambda x: (weft.sin(x) * x).sum()  # noqa: E731
    close(weft.compile(weft.grad(f))(x), weft.grad(f)(x))
    second = weft.grad(lambda x: weft.grad(f)(x).sum())
    close(weft.compile(second)(x), second(x))
    inner = lambda x: weft.grad(lambda y: (x * y).sum())(x)  # noqa: E731
    close(weft.compile(inner)(x), x)
    c = weft.compile(f)
    close(weft.grad(c)(x), weft.grad(f)(x))
    close(weft.hessian(c)(x), weft.hessian(f)(x))
    close(weft.jvp(c, (x,), (x,)), weft.jvp(f, (x,), (x,)))
    rows = weft.asarray(rng.standard_normal((3, 5)))
    close(weft.vmap(c)(rows), weft.vmap(f)(rows))
    close(weft.compile(weft.vmap(f))(rows), weft.vmap(f)(rows))
    close(weft.compile(lambda x: weft.compile(f)(x) * 2.0)(x), f(x) * 2.0)
    close(weft.compile(lambda x: weft.checkpoint(f)(x))(x), f(x))
    close(weft.compile(weft.grad(lambda x: f(x) + 3.0 * x[0] ** 2))(x), weft.grad(lambda x: f(x) + 3.0 * x[0] ** 2)(x))  # fmt: skip
    close(weft.compile(lambda x: weft.grad(lambda y: (weft.stop_gradient(y) * y).sum())(x))(x), x)
    value, aux = weft.compile(weft.grad(lambda x: (f(x), x * 2.0), has_aux=True))(x)
    close((value, aux), (weft.grad(f)(x), x * 2.0))


def test_what_kernels_cannot_hold_runs_eagerly(rng):
    labels = weft.asarray([0, 2, 1])
    loss = lambda p, x: F.cross_entropy(x @ p["w"], labels)  # noqa: E731
    p = arrays(rng, "cpu", w=(4, 3))
    x = arrays(rng, "cpu", x=(3, 4))["x"]
    step, scale = adam(loss), weft.asarray(2.0, dtype="float32")
    compiled = weft.compile(step)
    a = b = start(p)
    for _ in range(3):
        a, la = step(a, scale, x)
        b, lb = compiled(b, scale, x)
        close((a, la), (b, lb), rtol=2e-4)


ROWS = {
    "softmax": lambda x: weft.sin(x.softmax(-1) * 3.0),
    "softmax twice": lambda x: x.softmax(-1) ** 2,
    "log_softmax": lambda x: weft.sin(x.log_softmax(-1)),
    "logsumexp": lambda x: weft.sin(weft.logsumexp(x) * x),
    "layer_norm": lambda x: weft.sin(F.layer_norm(x, (5,), x * 0.0 + 1.3, x * 0.0 + 0.2)),
}


@pytest.mark.parametrize("name", ROWS)
def test_second_derivatives_of_rows(rng, name):
    f = lambda x: ROWS[name](x).sum()  # noqa: E731
    x = weft.asarray(rng.standard_normal(5))
    for second in (
        lambda x: weft.jvp(weft.grad(f), (x,), (x,))[1],
        lambda x: weft.grad(lambda y: (weft.grad(f)(y) * y).sum())(x),
        lambda x: weft.vjp(lambda y: ROWS[name](y).softmax(-1), x)[1](ROWS[name](x))[0],
        weft.hessian(f),
    ):
        close(weft.compile(second)(x), second(x), rtol=1e-9, atol=1e-9)


def doubled():
    """x sin x with 1.5 times its cosine term as derivative, as custom_vjp and as custom_jvp."""
    pull = weft.custom_vjp(lambda x: weft.sin(x) * x)
    pull.defvjp(
        lambda x: (weft.sin(x) * x, {"x": x}),
        lambda kept, g: (g * (weft.cos(kept["x"]) * kept["x"] * 1.5 + weft.sin(kept["x"])),),
    )
    push = weft.custom_jvp(lambda x: weft.sin(x) * x)
    push.defjvp(lambda p, v: (push(*p), v[0] * (weft.cos(p[0]) * p[0] * 1.5 + weft.sin(p[0]))))
    return pull, push


@pytest.mark.parametrize("kind", range(2))
def test_rules_of_ones_own(rng, kind):
    own = doubled()[kind]
    x, rows = weft.asarray(rng.standard_normal(3)), weft.asarray(rng.standard_normal((4, 3)))
    f = lambda x: own(weft.exp(x * 0.5)) * x  # noqa: E731
    total = lambda x: f(x).sum()  # noqa: E731
    for g, at in (
        (f, x),
        (weft.grad(total), x),
        (weft.value_and_grad(total), x),
        (weft.hessian(total), x),
        (weft.jacfwd(f), x),
        (lambda x: weft.jvp(f, (x,), (x,)), x),
        (weft.vmap(f), rows),
        (weft.vmap(weft.grad(total)), rows),
        (weft.vmap(weft.hessian(total)), rows),
        (lambda x: weft.vmap(lambda s: f(x * s))(x), x),
        (weft.grad(lambda x: weft.vmap(total)(x[None] * x[:, None]).sum()), x),
        (weft.grad(weft.checkpoint(total)), x),
    ):
        want = g(at)
        compiled = weft.compile(g)
        for _ in range(2):
            close(compiled(at), want, rtol=1e-9, atol=1e-9)
    c = weft.compile(total)
    close(weft.grad(c)(x), weft.grad(total)(x))
    close(weft.vmap(weft.grad(c))(rows), weft.vmap(weft.grad(total))(rows))
    step = weft.compile(lambda p: p - 0.1 * weft.grad(total)(p))
    assert step(step(x)).shape == (3,) and step.traces == 1


def test_a_rule_of_several_results_and_arguments(rng):
    scaled = weft.custom_vjp(lambda k, p, n: ({"s": p["a"] * k, "t": p["b"].sum()}, n), nondiff_argnums=(0,))  # fmt: skip
    scaled.defvjp(
        lambda k, p, n: (({"s": p["a"] * k, "t": p["b"].sum()}, n), p),
        lambda k, p, g: ({"a": g[0]["s"] * k * 10.0, "b": p["b"] * g[0]["t"]}, None),
    )
    n = weft.asarray([1, 2])

    def f(a, b):
        out, count = scaled(3.0, {"a": a, "b": b}, n)
        return (out["s"] * count.sum()).sum() + out["t"] ** 2

    a, b = weft.asarray(rng.standard_normal(4)), weft.asarray(rng.standard_normal(2))
    g = weft.grad(f, argnums=(0, 1))
    close(weft.compile(g)(a, b), g(a, b))


def test_values_of_a_trace_times_values_of_a_vmap(rng):
    x = weft.asarray(rng.standard_normal(3))
    m = weft.asarray(rng.standard_normal((3, 3)))
    for g in (
        lambda x: weft.vmap(lambda s: x * s - x / (s + 9.0) + (x > s))(x),
        lambda x: weft.vmap(lambda row: (x * 1.0) @ row + row @ (x * 1.0))(m * x),
    ):
        close(weft.compile(g)(x), g(x))


own_of_a_module = weft.custom_vjp(lambda module, x: module(x))
own_of_a_module.defvjp(lambda module, x: (module(x), None), lambda kept, g: (None, g))
CASES = [
    (lambda x: own_of_a_module(nn.Linear(3, 3), x), "transform.compiled", "rule of its own"),
    (weft.grad(lambda x: x * 2.0), "array.grad.scalar", r"\(3,\)"),
    (lambda x: weft.grad(lambda y: y.sum())(x > 0), "transform.integer", "bool"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_refusals(case):
    f, code, text = CASES[case]
    with pytest.raises(weft.Error, match=text) as e:
        weft.compile(f)(weft.ones(3))
    assert e.value.code == code


def seen(compiled, *args):
    """The result of a call, and whether it was known without Python looking at the arguments."""
    asked = []
    look = compiled._call
    type(compiled)._call, before = lambda self, *a, **k: asked.append(1) or look(*a, **k), type(compiled)._call  # fmt: skip
    try:
        return compiled(*args), not asked
    finally:
        type(compiled)._call = before


def test_nested_arguments_are_known_again():
    f = weft.compile(lambda p, x, scale: {"y": p["a"] * x[0] - p["b"] * x[1] + scale, "n": [x[1]]})
    a, b = weft.asarray([1.0, 2.0, 3.0]), weft.asarray([5.0, 7.0, 11.0])
    for again in (False, True):
        out, known = seen(f, {"b": b, "a": a}, (a, b), 2)
        assert known == again and out["y"].tolist() == [-22.0, -43.0, -110.0]
    out, known = seen(f, {"a": a, "b": b}, (a, b), 2)  # the same dict in another order
    assert not known and out["y"].tolist() == [-22.0, -43.0, -110.0] and f.traces == 1
    for other in (3, 2.5, True, -0.0):
        for again in (False, True):
            out, known = seen(f, {"b": b, "a": a}, (a, b), other)
            assert known == again and out["y"].tolist() == [
                v + other for v in (-24.0, -45.0, -112.0)
            ]
    short = weft.asarray([2.0])
    out, known = seen(f, {"b": short, "a": short}, (short, short), 2)
    assert not known and out["y"].tolist() == [2.0]
    out, known = seen(f, {"b": b, "a": a}, [a, b], 2)  # a list is no tuple
    assert not known and out["n"][0].tolist() == b.tolist()


def test_arguments_beyond_what_is_read_at_once_are_still_right():
    f = weft.compile(lambda p, how: p["x"] * 2.0 if how == frozenset({1}) else p["x"] * 3.0)
    x = weft.asarray([1.0, 2.0])
    for _ in range(2):
        assert f({"x": x}, frozenset({1})).tolist() == [2.0, 4.0]
        assert f({"x": x}, frozenset()).tolist() == [3.0, 6.0]
        assert f({"x": x}, 1 << 80).tolist() == [3.0, 6.0]


def test_gradients_that_nobody_asks_for_are_not_computed():
    f = weft.compile(lambda w, x, b: weft.tanh(x @ w + b).sum())
    w = weft.Tensor(weft.asarray([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]]))
    x, b = weft.asarray([[1.0, 2.0], [3.0, -1.0]]), weft.asarray([0.1, 0.2, 0.3])
    fixed = [weft.Tensor(v, requires_grad=False) for v in (x, b)]
    f(w, *fixed).backward()
    piece = f._last.last
    assert [sorted(k) for k in piece._backward] == [[0]] and piece._backward[(0,)][1] == [0]
    want = x.mT @ (1.0 - weft.tanh(x @ w.data + b) ** 2)
    assert weft.max(weft.abs(w.grad.data - want)) < 1e-6
    moving = weft.Tensor(b)
    f(w, fixed[0], moving).backward()
    assert sorted(piece._backward) == [(0,), (0, 2)]
    want = weft.sum(1.0 - weft.tanh(x @ w.data + b) ** 2, axis=0)
    assert weft.max(weft.abs(moving.grad.data - want)) < 1e-6
