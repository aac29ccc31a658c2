# SPDX-License-Identifier: Apache-2.0
"""Hooks of modules and PyTorch's names of arguments: understood, or refused with the name that holds here."""

import numpy as np
import pytest

import refusal
import weft
from weft import nn

torch = pytest.importorskip("torch")


def test_hooks_before_and_behind():
    x = np.random.default_rng(1).standard_normal((3, 4)).astype("float32")
    layer, theirs = nn.Tanh(), torch.nn.Tanh()
    seen = {"ours": [], "theirs": []}

    def hook(name):
        def note(module, inputs, outputs):
            seen[name].append([np.asarray(g.detach().numpy()) for g in (*inputs, *outputs)])
            return (inputs[0] * 2,)

        return note

    handles = []
    for module, name in ((layer, "ours"), (theirs, "theirs")):
        handles.append(module.register_forward_pre_hook(lambda m, args: (args[0] * 3,)))
        handles.append(module.register_full_backward_hook(hook(name)))
    a, b = weft.Tensor(x), torch.tensor(x, requires_grad=True)
    y, z = layer(a * 2), theirs(b * 2)
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol=1e-6)
    (y * y).sum().backward()
    (z * z).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    assert len(seen["ours"]) == len(seen["theirs"]) == 1
    for ours, theirs_ in zip(seen["ours"][0], seen["theirs"][0]):
        np.testing.assert_allclose(ours, theirs_, rtol=1e-4, atol=1e-5)
    handles[0].remove()
    handles[1].remove()
    np.testing.assert_allclose(layer(a).numpy(), np.tanh(x), rtol=1e-6)
    assert len(seen["ours"]) == 1


def test_backward_hooks_of_a_first_layer_and_of_several_arguments():
    layer, seen = nn.Linear(4, 2), []
    layer.register_full_backward_hook(lambda m, inputs, outputs: seen.append((inputs, outputs)))
    layer(weft.Tensor(np.ones((3, 4), "float32"), requires_grad=False)).sum().backward()
    assert len(seen) == 1 and seen[0][0] == (None,)
    assert seen[0][1][0].numpy().tolist() == [[1, 1]] * 3
    both = nn.CosineSimilarity()
    both.register_full_backward_hook(lambda *a: None)
    x = weft.Tensor(np.ones((3, 4), "float32"))
    error = refusal.refused(weft.ArgumentError, "nn.module.backward_hook", both, x, x * 2)
    assert "2 arguments that require gradients" in str(error)


def test_names_inside_modules():
    class Scaled(nn.Linear):
        def extra_repr(self):
            return "twice"

    net = nn.Sequential(nn.BatchNorm1d(3), Scaled(3, 2)).bfloat16()
    assert "1: Scaled(twice, weight: (3, 2), bias: (2,))" in repr(net)
    assert net.get_buffer("0.running_mean") is net[0].running_mean
    assert net.get_buffer("0.running_var").dtype == weft.bfloat16
    assert net.type("float64")[1].weight.dtype == weft.float64
    error = refusal.refused(weft.ArgumentError, "nn.module.name", net.get_buffer, "0.mean")
    assert "no buffer '0.mean'" in str(error) and "0.running_mean" in str(error)


X = np.random.default_rng(4).standard_normal((3, 4, 5)).astype("float32")


@pytest.mark.parametrize("of", ["tensor", "array"])
@pytest.mark.parametrize(
    "name", "sum mean prod all any max min argmax argmin var std logsumexp count_nonzero".split()
)
def test_dim_and_keepdim_of_reductions(name, of):
    x = weft.Tensor(X) if of == "tensor" else weft.asarray(X)
    function = getattr(weft, name)
    if name == "count_nonzero":
        x = weft.asarray(X)
    expected = function(x, axis=1, keepdims=True).numpy()
    if of == "tensor" and name in ("max", "min"):  # dim= is PyTorch's, which gives positions, too
        values, places = function(x, dim=1, keepdim=True)
        np.testing.assert_array_equal(values.numpy(), expected)
        np.testing.assert_array_equal(
            places.numpy(),
            getattr(weft, f"arg{name}")(weft.asarray(X), axis=1, keepdims=True).numpy(),
        )
        return
    np.testing.assert_array_equal(function(x, dim=1, keepdim=True).numpy(), expected)
    np.testing.assert_array_equal(function(x, dim=-2).numpy(), expected[:, 0])
    if not hasattr(type(x), name) or (of == "array" and name == "count_nonzero"):
        return
    method = getattr(x, name)
    np.testing.assert_array_equal(method(dim=1, keepdim=True).numpy(), expected)
    np.testing.assert_array_equal(method(dim=1).numpy(), expected[:, 0])


def test_dim_of_what_moves_entries():
    for x in (weft.Tensor(X), weft.asarray(X)):
        same = lambda a, b: np.testing.assert_array_equal(a.numpy(), b.numpy())  # noqa: E731
        for name in ("concat", "stack"):
            f = getattr(weft, name)
            same(f([x, x], dim=1), f([x, x], axis=1))
        for name in ("softmax", "log_softmax", "cumulative_sum", "squeeze", "expand_dims", "flip"):
            f = getattr(weft, name)
            y = x[:, :1] if name == "squeeze" else x
            same(f(y, dim=1), f(y, axis=1))
        same(weft.flip(x, dims=(0, 2)), weft.flip(x, axis=(0, 2)))
        same(weft.roll(x, 1, dims=1), weft.roll(x, 1, axis=1))
        index = weft.asarray([2, 0])
        same(weft.take(x, index, dim=1), weft.take(x, index, axis=1))
        same(weft.unstack(x, dim=1)[2], x[:, 2])
    x = weft.asarray(X)
    for name in ("sort", "argsort", "diff"):
        f = getattr(weft, name)
        np.testing.assert_array_equal(f(x, dim=0).numpy(), f(x, axis=0).numpy())
    np.testing.assert_array_equal(
        weft.var(x, dim=1, unbiased=True).numpy(), weft.var(x, axis=1, correction=1).numpy()
    )


def test_an_axis_under_two_names_is_refused():
    for call in (
        lambda: weft.sum(weft.asarray(X), axis=0, dim=1),
        lambda: weft.concat([weft.asarray(X)] * 2, axis=1, dim=0),
        lambda: weft.var(weft.asarray(X), keepdims=True, keepdim=True),
    ):
        error = refusal.refused(weft.ArgumentError, "array.axis.twice", call)
        assert "under two names" in str(error) and "one of the two" in error.help
    with pytest.raises(TypeError, match="unexpected keyword argument 'rows'"):
        weft.sum(weft.asarray(X), rows=1)


def test_none_makes_an_axis_of_a_tensor():
    x = weft.Tensor(X)
    assert x[None].shape == (1, 3, 4, 5) and x[:, None, ..., None].shape == (3, 1, 4, 5, 1)
    (x[None] * 2.0).sum().backward()
    assert x.grad.shape == X.shape and x.grad.numpy().min() == 2
    with weft.no_grad():
        x[None] = 1.0
        assert x.numpy().min() == 1
