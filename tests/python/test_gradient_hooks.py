# SPDX-License-Identifier: Apache-2.0
"""Tensor.register_hook and retain_grad: what hooks see, change and refuse. The numbers are PyTorch's where it is there."""

import gc
import weakref

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(3, 5)), RNG.normal(size=(5, 2))


def graph(library, hook=None):
    """(leaf, value on the way, result) of a small graph in which the value has two users."""
    x = library.tensor(X, requires_grad=True)
    y = library.tanh(x * 2.0)
    if hook is not None:
        y.register_hook(hook)
    return x, y, (y * y).sum() + (y @ library.tensor(W)).sum()


def test_a_hook_sees_the_whole_gradient_and_replaces_it():
    seen = []
    x, y, out = graph(weft, lambda g: seen.append(g) or g * 3.0)
    out.backward()
    want = 2 * np.tanh(2 * X) + W.sum(1)  # of both users, once
    assert len(seen) == 1
    np.testing.assert_allclose(seen[0].numpy(), want, rtol=1e-9)
    np.testing.assert_allclose(x.grad.numpy(), 3 * want * (1 - np.tanh(2 * X) ** 2) * 2, rtol=1e-9)


def test_as_pytorch():
    torch = pytest.importorskip("torch")
    found = {}
    for library in (weft, torch):
        order = []
        x, y, out = graph(library)
        y.register_hook(lambda g, order=order: order.append("first") or g.clip(-1.0, 1.0))
        y.register_hook(lambda g, order=order: order.append("second"))
        x.register_hook(lambda g, order=order: order.append("leaf") or g * 0.5)
        y.retain_grad()
        out.backward(retain_graph=True)
        out.backward()  # gradients add up, hooks run again
        found[library] = order, np.asarray(x.grad), np.asarray(y.grad)
    assert found[weft][0] == found[torch][0] == ["first", "second", "leaf"] * 2
    for mine, theirs in zip(found[weft][1:], found[torch][1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


def test_handles():
    calls = []
    x = weft.tensor(X, requires_grad=True)
    kept, gone = (x.register_hook(lambda g, n=n: calls.append(n)) for n in ("kept", "gone"))
    gone.remove()
    gone.remove()  # again: nothing happens
    with x.register_hook(lambda g: calls.append("inside")):
        (x * x).sum().backward()
    (x * x).sum().backward()
    kept.remove()
    (x * x).sum().backward()
    assert calls == ["kept", "inside", "kept"]
    once = x.register_hook(lambda g: once.remove() or calls.append("once"))
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert calls[3:] == ["once"]


def test_second_derivatives_go_through_hooks():
    x = weft.tensor(np.array([1.5, -2.0]), requires_grad=True)
    y = x * x * x
    y.register_hook(lambda g: g * x)
    (first,) = weft.autograd.grad(y.sum(), [x], create_graph=True)
    np.testing.assert_allclose(first.numpy(), 3 * np.array([1.5, -2.0]) ** 3)
    (second,) = weft.autograd.grad(first.sum(), [x])
    np.testing.assert_allclose(second.numpy(), 9 * np.array([1.5, -2.0]) ** 2)


def test_a_hook_runs_only_where_a_gradient_passes():
    calls = []
    x, z = (weft.tensor(X, requires_grad=True) for _ in range(2))
    y = z * 2.0
    y.register_hook(lambda g: calls.append("aside"))
    weft.autograd.grad((x * y).sum(), [x])
    assert calls == []
    weft.autograd.grad((x * y).sum(), [z])
    assert calls == ["aside"]


def test_grad_of_some_leaves_and_of_values_leaves_the_others_alone():
    x, z = (weft.tensor(X, requires_grad=True) for _ in range(2))
    y = x * z
    found = weft.autograd.grad((y * y).sum(), [x, y])
    np.testing.assert_allclose(found[0].numpy(), 2 * X**3, rtol=1e-9)
    np.testing.assert_allclose(found[1].numpy(), 2 * X**2, rtol=1e-9)
    assert x.grad is None and z.grad is None
    (g,) = weft.autograd.grad(y, [x], grad_outputs=weft.full(X.shape, 2.0, dtype="float64"))
    np.testing.assert_allclose(g.numpy(), 2 * X, rtol=1e-9)


def test_types_and_refusals():
    x = weft.tensor(X.astype("float32"), requires_grad=True)
    x.register_hook(lambda g: weft.asarray(np.full(X.shape, 2.0)))  # an array of another type
    x.sum().backward()
    assert str(x.grad.dtype) == "float32" and (x.grad.numpy() == 2).all()
    with pytest.raises(weft.Error) as caught:
        weft.tensor(X).register_hook(print)
    assert caught.value.code == "array.backward.hook.constant" and "requires_grad_" in str(
        caught.value
    )
    y = weft.tensor(X, requires_grad=True)
    y.register_hook(lambda g: g[0])
    with pytest.raises(weft.ShapeError) as caught:
        (y * y).sum().backward()
    assert caught.value.code == "array.backward.hook.shape" and "(5)" in str(caught.value).replace(
        ",", ""
    )
    z = weft.tensor(X, requires_grad=True)
    z.register_hook(lambda g: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        z.sum().backward()


def test_hooks_are_released_with_the_tensor():
    class Seen:
        def __call__(self, g):
            return None

    seen = Seen()
    gone = weakref.ref(seen)
    y = weft.tensor(X, requires_grad=True) * 2.0
    y.register_hook(seen)
    y.sum().backward()
    del y, seen
    gc.collect()
    assert gone() is None
