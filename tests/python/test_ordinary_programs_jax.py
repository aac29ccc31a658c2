# SPDX-License-Identifier: Apache-2.0
"""Programs as users of JAX write them: rules that call their own function, compiled methods, named arguments, constants."""

import functools

import numpy as np
import pytest

import weft


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5, atol=1e-6)


def test_a_forward_rule_calls_its_own_function():
    @weft.custom_vjp
    def f(x, y):
        return weft.sin(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (weft.cos(x), weft.sin(x), y)),
        lambda r, g: (3 * r[0] * g * r[2], r[1] * g),  # three times the true one: the rule is used
    )
    x, y = weft.asarray([0.3, 0.5]), weft.asarray([2.0, 3.0])
    want = 3 * np.cos(x.numpy()) * y.numpy()
    close(weft.grad(lambda a: f(a, y).sum())(x), want)
    close(weft.compile(weft.grad(lambda a: f(a, y).sum()))(x), want)
    close(weft.vmap(weft.grad(lambda a: f(a, 2.0)))(x), 6 * np.cos(x.numpy()))
    close(weft.grad(f, 1)(weft.asarray(0.3), 2.0), np.sin(0.3))


def test_arguments_by_name_and_static_ones():
    @functools.partial(weft.compile, static_argnames=("how",))
    def act(x, how="relu", *, scale=1.0):
        return scale * (weft.maximum(x, 0) if how == "relu" else weft.tanh(x))

    x = weft.asarray([-1.0, 2.0])
    close(act(x), [0, 2])
    close(act(x, how="tanh"), np.tanh([-1, 2]))
    close(act(x, scale=weft.asarray(3.0)), [0, 6])
    power = weft.compile(lambda x, n: x**n, static_argnums=1, donate_argnums=0)
    close(power(x, 3), [-1, 8])

    class Layer:
        def __init__(self, c):
            self.c = c

        @weft.compile
        def apply(self, x):
            return x * self.c

    close(Layer(2.0).apply(x), [-2, 4])
    close(Layer(5.0).apply(x), [-5, 10])


def test_results_that_do_not_depend_on_arguments():
    f = weft.compile(lambda x: (x + 1, {"n": 3, "z": weft.zeros(2)}, None, x.shape[0]))
    x = weft.ones(2)
    first = f(x)
    first[1]["z"][0] = 9  # of this call alone
    again = f(x)
    close(again[0], [2, 2])
    assert again[1]["n"] == 3 and again[1]["z"].tolist() == [0, 0] and again[2:] == (None, 2)
    assert weft.compile(lambda: weft.arange(3) * 2)().tolist() == [0, 2, 4]
    z = weft.asarray([1 + 2j])
    close(weft.compile(lambda z: weft.abs(z) + z.real * z.imag)(z), [np.sqrt(5) + 2])


def test_functions_of_the_library_are_mapped_and_compiled():
    m = weft.eye(3)[None] * weft.arange(1.0, 4)[:, None, None]
    close(weft.vmap(weft.linalg.det)(m), [1, 8, 27])
    close(weft.vmap(weft.linalg.inv)(m)[1], np.eye(3) / 2)
    close(weft.compile(weft.linalg.det)(m[1]), 8)


def test_a_derivative_beside_values_of_the_trace():
    y = weft.asarray([2.0, 3.0])
    u = lambda p, t, x: weft.tanh(p[0] * t + p[1] * x)  # noqa: E731
    pde = lambda p, t, x: weft.grad(u, 1)(p, t, x) - weft.grad(weft.grad(u, 2), 2)(p, t, x)  # noqa: E731
    loss = lambda p: (weft.vmap(pde, (None, 0, 0))(p, y, y) ** 2).mean()  # noqa: E731
    p = weft.asarray([0.3, 0.5])
    close(weft.compile(loss)(p), loss(p))
    close(weft.compile(weft.grad(loss))(p), weft.grad(loss)(p))
    f = lambda p: weft.vjp(lambda t: p * t**2, y)[1](weft.ones(2))[0]  # noqa: E731
    close(weft.compile(f)(p), 2 * p.numpy() * y.numpy())


@pytest.mark.parametrize("how", ["plain", "compile", "vmap", "grad"])
def test_elements_written_by_at(how):
    x = weft.asarray(np.arange(6.0, dtype="float32").reshape(2, 3))
    f = lambda r: r.at[1].set(7.0).at[weft.asarray([0, 0])].add(2.0).at[2].multiply(3.0)  # noqa: E731
    want = np.array([[4, 7, 6], [7, 7, 15]], "float32")
    if how == "plain":
        got = weft.stack([f(r) for r in x])
    elif how == "compile":
        got = weft.stack([weft.compile(f)(r) for r in x])
    elif how == "vmap":
        got = weft.vmap(f)(x)
    else:
        close(weft.grad(lambda r: f(r).sum())(x[0]), [1, 0, 3])
        return
    close(got, want)
    assert x[0, 1].item() == 1.0
    with pytest.raises(weft.ArgumentError) as refusal:
        x[0].at[[1, 1]].multiply(2.0)
    assert refusal.value.code == "array.at.repeated"


def test_extremes_by_position_inside_a_derivative():
    x = weft.asarray([[1.0, 5.0, 2.0], [4.0, 3.0, 0.0]])
    want = np.array([[0, 1, 0], [1, 0, 0]])
    f = lambda x: x.max(1).sum() + (x - x.min(-1, keepdims=True)).sum() * 0  # noqa: E731
    close(weft.grad(f)(x), want)
    close(weft.compile(weft.grad(f))(x), want)
    close(weft.vmap(weft.grad(lambda r: r.max(0)))(x), want)
