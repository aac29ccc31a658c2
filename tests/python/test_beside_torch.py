# SPDX-License-Identifier: Apache-2.0
"""Layers, losses and whole training runs beside torch's on odd shapes: results and every gradient."""

import gc
import os

import numpy as np
import pytest

import weft
from weft import Tensor, nn

torch = pytest.importorskip("torch")
TN = torch.nn


@pytest.fixture
def rng():
    seed = int(os.environ.get("WEFT_SEED", "20261122"))
    print(f"seed {seed}")
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def close(ours, theirs, tolerance=1e-4):
    want = theirs.detach().numpy()
    np.testing.assert_allclose(ours.numpy(), want, rtol=tolerance, atol=tolerance)


def share(ours, theirs, turned=False):
    """One parameter's value for both; torch's linear weights are the transposes of ours."""
    value = theirs.detach().numpy()
    ours.data = np.ascontiguousarray(value.T if turned else value)
    return ours, theirs, turned


def linear(ours, theirs):
    return [share(ours.weight, theirs.weight, True), share(ours.bias, theirs.bias)]


def same(ours, theirs):
    return [share(ours.weight, theirs.weight), share(ours.bias, theirs.bias)]


def recurrent(ours, theirs):
    out = []
    for k, cell in enumerate(ours.cells):
        out += [
            share(cell.weight_ih, getattr(theirs, f"weight_ih_l{k}"), True),
            share(cell.weight_hh, getattr(theirs, f"weight_hh_l{k}"), True),
            share(cell.bias_ih, getattr(theirs, f"bias_ih_l{k}")),
            share(cell.bias_hh, getattr(theirs, f"bias_hh_l{k}")),
        ]
    return out


LAYERS = {
    "Linear": (lambda: nn.Linear(7, 5), lambda: TN.Linear(7, 5), (3, 7), linear),
    "Linear, three axes": (lambda: nn.Linear(7, 5), lambda: TN.Linear(7, 5), (2, 3, 7), linear),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(5), lambda: TN.BatchNorm1d(5), (7, 5), same),
    "BatchNorm1d, length": (lambda: nn.BatchNorm1d(5), lambda: TN.BatchNorm1d(5), (7, 5, 3), same),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(5), lambda: TN.BatchNorm2d(5), (3, 5, 4, 3), same),
    "LayerNorm": (lambda: nn.LayerNorm(9), lambda: TN.LayerNorm(9), (3, 5, 9), same),
    "Conv1d": (
        lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1),
        lambda: TN.Conv1d(3, 4, 3, stride=2, padding=1),
        (2, 3, 11),
        same,
    ),
    "Conv2d": (
        lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda: TN.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        (2, 4, 7, 9),
        same,
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1),
        lambda: TN.ConvTranspose2d(4, 6, 3, stride=2, padding=1),
        (2, 4, 5, 3),
        same,
    ),
    "ReLU": (nn.ReLU, TN.ReLU, (5, 7, 3), None),
    "GELU": (nn.GELU, TN.GELU, (5, 7, 3), None),
    "SiLU": (nn.SiLU, TN.SiLU, (5, 7, 3), None),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.07), lambda: TN.LeakyReLU(0.07), (5, 7, 3), None),
    "Sigmoid": (nn.Sigmoid, TN.Sigmoid, (5, 7, 3), None),
    "Tanh": (nn.Tanh, TN.Tanh, (5, 7, 3), None),
    "Softmax": (nn.Softmax, lambda: TN.Softmax(-1), (5, 7, 3), None),
    "Softmax, first axis": (lambda: nn.Softmax(0), lambda: TN.Softmax(0), (5, 7, 3), None),
    "Flatten": (nn.Flatten, TN.Flatten, (5, 7, 3), None),
    "MaxPool2d": (lambda: nn.MaxPool2d(3, 2), lambda: TN.MaxPool2d(3, 2), (2, 3, 9, 12), None),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2), lambda: TN.AvgPool2d(3, 2), (2, 3, 9, 12), None),
    "RNN": (lambda: nn.RNN(5, 6, 2), lambda: TN.RNN(5, 6, 2), (7, 3, 5), recurrent),
    "RNN, relu": (
        lambda: nn.RNN(5, 6, 1, nonlinearity="relu"),
        lambda: TN.RNN(5, 6, 1, nonlinearity="relu"),
        (7, 3, 5),
        recurrent,
    ),
    "LSTM": (lambda: nn.LSTM(5, 6, 2), lambda: TN.LSTM(5, 6, 2), (7, 3, 5), recurrent),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_gradients(rng, name):
    make, make_torch, shape, pair = LAYERS[name]
    ours, theirs = make(), make_torch()
    pairs = pair(ours, theirs) if pair else []
    assert len(pairs) == len(list(theirs.parameters()))
    x = rng.standard_normal(shape).astype("float32")
    a, b = Tensor(x), torch.tensor(x, requires_grad=True)
    y, z = (v[0] if isinstance(v, tuple) else v for v in (ours(a), theirs(b)))
    close(y, z)
    g = rng.standard_normal(y.shape).astype("float32")
    y.backward(weft.asarray(g))
    z.backward(torch.tensor(g))
    close(a.grad, b.grad)
    for p, q, turned in pairs:
        close(p.grad, q.grad.T if turned else q.grad)
    if "BatchNorm" in name:
        close(ours.running_mean, theirs.running_mean)
        close(ours.running_var, theirs.running_var)
        close(ours.eval()(a), theirs.eval()(b))


def test_normalisation_refuses_other_ranks_and_features():
    for layer, shape in [
        (nn.BatchNorm1d(3), (2, 3, 4, 4)),
        (nn.BatchNorm1d(3), (2, 4)),
        (nn.BatchNorm2d(3), (2, 3)),
    ]:
        with pytest.raises(weft.ShapeError, match="of 3 features got shape") as info:
            layer(Tensor(np.zeros(shape, "float32")))
        assert info.value.code == "nn.batch_norm.shape"


@pytest.mark.parametrize("causal", [False, True])
def test_attention(rng, causal):
    ours, theirs = nn.MultiHeadAttention(12, 3, causal=causal), TN.MultiheadAttention(12, 3)
    theirs.batch_first = True
    theirs.in_proj_bias.data = torch.tensor(rng.standard_normal(36).astype("float32"))
    for k, part in enumerate((ours.query, ours.key, ours.value)):
        rows = slice(12 * k, 12 * k + 12)
        part.weight.data = np.ascontiguousarray(theirs.in_proj_weight.detach().numpy()[rows].T)
        part.bias.data = theirs.in_proj_bias.detach().numpy()[rows].copy()
    linear(ours.out, theirs.out_proj)
    x = rng.standard_normal((2, 5, 12)).astype("float32")
    a, b = Tensor(x), torch.tensor(x, requires_grad=True)
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1) if causal else None
    y, z = ours(a), theirs(b, b, b, attn_mask=mask)[0]
    close(y, z)
    (y * y).sum().backward()
    (z * z).sum().backward()
    close(a.grad, b.grad)
    close(ours.query.weight.grad, theirs.in_proj_weight.grad[:12].T)


def test_losses_and_embeddings(rng):
    x = rng.standard_normal((9, 7)).astype("float32")
    labels, other = rng.integers(0, 7, 9), rng.standard_normal((9, 7)).astype("float32")
    for ours, theirs in [
        (
            lambda t: nn.CrossEntropyLoss()(t, weft.asarray(labels)),
            lambda t: TN.CrossEntropyLoss()(t, torch.tensor(labels)),
        ),
        (
            lambda t: nn.MSELoss()(t, Tensor(other)),
            lambda t: TN.MSELoss()(t, torch.tensor(other)),
        ),
    ]:
        a, b = Tensor(x), torch.tensor(x, requires_grad=True)
        y, z = ours(a), theirs(b)
        close(y, z, 1e-6)
        y.backward()
        z.backward()
        close(a.grad, b.grad, 1e-6)
    ours, theirs = nn.Embedding(11, 5), TN.Embedding(11, 5)
    share(ours.weight, theirs.weight)
    index = rng.integers(0, 11, (3, 4))
    y, z = ours(weft.asarray(index)), theirs(torch.tensor(index))
    close(y, z, 1e-7)
    (y * y).sum().backward()
    (z * z).sum().backward()
    close(ours.weight.grad, theirs.weight.grad, 1e-6)


def test_second_derivatives(rng):
    x = rng.standard_normal((2, 3, 5, 5))
    w = rng.standard_normal((4, 3, 3, 3))
    a, b = Tensor(x), Tensor(w)
    first = weft.grad(
        lambda t: (weft.tanh(nn.functional.conv2d(t, b, stride=2, padding=1)) ** 2).sum()
    )(a)
    (first * first).sum().backward()
    ta, tb = (torch.tensor(v, requires_grad=True) for v in (x, w))
    y = (torch.tanh(TN.functional.conv2d(ta, tb, stride=2, padding=1)) ** 2).sum()
    (g,) = torch.autograd.grad(y, ta, create_graph=True)
    close(first, g, 1e-10)
    (g * g).sum().backward()
    close(a.grad, ta.grad, 1e-9)
    close(b.grad, tb.grad, 1e-9)


OPTIMIZERS = {
    "SGD": (lambda p: weft.optim.SGD(p, 0.05), lambda p: torch.optim.SGD(p, 0.05)),
    "SGD, momentum, decay": (
        lambda p: weft.optim.SGD(p, 0.02, momentum=0.9, weight_decay=0.01),
        lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=0.01),
    ),
    "Adam": (
        lambda p: weft.optim.Adam(p, 0.01, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
    ),
    "Adam, other constants": (
        lambda p: weft.optim.Adam(p, 0.01, 0.8, 0.95, 1e-5),
        lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.95), 1e-5),
    ),
    "AdamW": (
        lambda p: weft.optim.AdamW(p, 0.01, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fifty_steps_of_training(rng, name):
    """A convolution, normalisation and a linear layer in float64: every loss and parameter."""
    make, make_torch = OPTIMIZERS[name]
    ours = nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2, padding=1, dtype="float64"),
        nn.BatchNorm2d(3, dtype="float64"),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(27, 4, dtype="float64"),
    )
    theirs = TN.Sequential(
        TN.Conv2d(2, 3, 3, stride=2, padding=1),
        TN.BatchNorm2d(3),
        TN.ReLU(),
        TN.Flatten(),
        TN.Linear(27, 4),
    ).double()
    a, b = ours.layers, theirs
    pairs = same(a[0], b[0]) + same(a[1], b[1]) + linear(a[4], b[4])
    x, labels = rng.standard_normal((13, 2, 5, 6)), rng.integers(0, 4, 13)
    opt, opt_torch = make(ours.parameters()), make_torch(theirs.parameters())
    losses = []
    for _ in range(50):
        opt.zero_grad()
        opt_torch.zero_grad()
        y = nn.functional.cross_entropy(ours(Tensor(x, requires_grad=False)), weft.asarray(labels))
        z = TN.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(labels))
        y.backward()
        z.backward()
        opt.step()
        opt_torch.step()
        losses.append((y.item(), z.item()))
    np.testing.assert_allclose(*zip(*losses), rtol=1e-7, atol=1e-9)
    assert losses[-1][0] < 0.8 * losses[0][0]
    for p, q, turned in pairs:
        close(p.data, q.T if turned else q, 1e-6)


def test_the_graph_of_a_step_is_gone_after_it(rng):
    device = weft.device("cpu")
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding="same"), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 5)
    )
    opt = weft.optim.SGD(net.parameters(), 0.1)
    x = Tensor(rng.standard_normal((4, 3, 8, 8)).astype("float32"), requires_grad=False)
    live = []
    for _ in range(4):
        opt.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        opt.step()
        del loss
        gc.collect()
        live.append(device.stats()["bytes.live"])
    assert live[1] == live[2] == live[3]


def test_deep_and_wide_graphs_need_no_stack():
    """100,000 nodes deep, as a chain of products, and a sum of 100,000 terms that share a leaf."""
    x = Tensor(np.array([1.0, 2.0]))
    y = x
    for _ in range(50_000):
        y = y * 1.0 + 0.0
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])
    y.inputs  # the graph is still there
    del y
    x.grad = None
    total = x
    for _ in range(50_000):
        total = total + x * x
    total.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 + 2 * 50_000 * x.numpy(), rtol=1e-12)


def test_only_arrays_become_tensors():
    for given in (3, "a", None, np.ones(3), np.uint64(2**64 - 1), [weft.ones(2)]):
        with pytest.raises(weft.DTypeError) as caught:
            weft.torch.to_torch(given)
        assert caught.value.code == "torch.array.type" and type(given).__name__ in str(caught.value)
        assert "weft.asarray" in caught.value.help
