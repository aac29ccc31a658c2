# SPDX-License-Identifier: Apache-2.0
"""The steps of a recurrent layer as one node: values and gradients of both orders beside the same steps as single operations."""

import numpy as np
import pytest
from present import present

import weft
from weft.nn import recurrences
from weft.nn.recurrences import GatedSteps, LongSteps, PlainSteps

STEPS, BATCH, HIDDEN = 5, 3, 4
KINDS = {
    "tanh": (PlainSteps("tanh"), 1, 1, False), "relu": (PlainSteps("relu"), 1, 1, False), "lstm": (LongSteps(), 4, 2, False),
    "gru": (GatedSteps(), 3, 1, True), "gru without bias": (GatedSteps(), 3, 1, False),
}  # fmt: skip


def operands(kind, dtype, device="cpu"):
    steps, gates, parts, bias = KINDS[kind]
    rng = np.random.default_rng(7)
    draw = lambda *shape: weft.Tensor(rng.standard_normal(shape).astype(dtype), device=device)  # noqa: E731
    given = [draw(STEPS, BATCH, gates * HIDDEN), draw(HIDDEN, gates * HIDDEN)]
    given.append(draw(gates * HIDDEN) if bias else None)
    weights = draw(STEPS + parts - 1, BATCH, HIDDEN).data
    return steps, [*given, *(draw(BATCH, HIDDEN) for _ in range(parts))], weights


def found(function, kind, reverse, dtype, device="cpu"):
    """The value and the gradients of a weighted sum of it."""
    steps, given, weights = operands(kind, dtype, device)
    y = function(steps, reverse, *given)
    (y * weights).sum().backward()
    return [y.numpy(), *(x.grad.numpy() for x in given if x is not None)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["cpu", "opencl:0", "cuda:0"])
def test_one_node_is_the_single_operations(kind, reverse, device):
    if device != "cpu":
        present(device)
    dtype, tolerance = ("float64", 1e-12) if device == "cpu" else ("float32", 2e-5)
    got = found(recurrences.Recurrence.apply, kind, reverse, dtype, device)
    want = found(recurrences.composed, kind, reverse, "float64")
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(kind):
    def second(function):
        steps, given, weights = operands(kind, "float64")
        if kind == "relu":
            given = [None if x is None else weft.Tensor(weft.abs(x.data) + 0.1) for x in given]
        places = [i for i, x in enumerate(given) if x is not None]

        def loss(*values):
            own = list(given)
            for i, v in zip(places, values):
                own[i] = v
            return (function(steps, False, *own) * weights).sum()

        def squared(*values):
            return sum(
                (g * g).sum() for g in weft.grad(loss, argnums=tuple(range(len(places))))(*values)
            )

        return weft.grad(squared, argnums=tuple(range(len(places))))(*(given[i] for i in places))

    for got, want in zip(second(recurrences.Recurrence.apply), second(recurrences.composed)):
        np.testing.assert_allclose(
            np.asarray(got.numpy()), np.asarray(want.numpy()), rtol=1e-10, atol=1e-10
        )


def test_only_what_is_asked_for():
    """A layer whose weights are constant gives the gradient of its input."""
    layer = weft.nn.LSTM(3, 4, num_layers=2, bidirectional=True)
    x = weft.Tensor(np.random.default_rng(1).standard_normal((5, 2, 3)).astype("float32"))
    layer(x)[0].sum().backward()
    whole = x.grad.numpy().copy()
    for p in layer.parameters():
        p.requires_grad = False
    x.grad = None
    layer(x)[0].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), whole)
    with weft.no_grad():
        assert not layer(x)[0].requires_grad


def test_compiled_and_mapped():
    layer = weft.nn.GRU(3, 4)
    x = weft.Tensor(
        np.random.default_rng(1).standard_normal((6, 5, 2, 3)).astype("float32"),
        requires_grad=False,
    )
    want = layer(x[0])[0].numpy()
    np.testing.assert_allclose(
        weft.compile(lambda v: layer(v)[0])(x[0]).numpy(), want, rtol=1e-5, atol=1e-6
    )
    mapped = weft.vmap(lambda v: layer(v)[0])(x)
    np.testing.assert_allclose(mapped.numpy()[0], want, rtol=1e-5, atol=1e-6)
