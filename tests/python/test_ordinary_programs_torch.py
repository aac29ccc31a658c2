# SPDX-License-Identifier: Apache-2.0
"""Training programs as users of PyTorch write them: pairs of max, loops over names, hooks, functions of several results, files."""

import collections
import io

import numpy as np
import pytest
import torch

import weft
from weft import nn
from weft.nn import functional as F

RNG = np.random.default_rng(11)


def reals(*shape):
    return RNG.standard_normal(shape).astype("float32")


def close(got, want, loose=1e-6):
    got = got.numpy() if hasattr(got, "numpy") else np.asarray(got)
    want = want.detach().numpy() if hasattr(want, "detach") else np.asarray(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=loose)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_along_a_dimension(name):
    data, other = reals(5, 7), reals(5, 7)
    x, t = weft.Tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
    for args, named in (((1,), {}), ((0, True), {}), ((), {"dim": -1})):
        got, want = getattr(x, name)(*args, **named), getattr(t, name)(*args, **named)
        close(got.values, want.values)
        close(got[1], want.indices)
    values, places = getattr(weft, name)(x, 1)
    close(places, getattr(torch, name)(t, 1)[1])
    close(getattr(weft, name)(x, weft.Tensor(other)), getattr(torch, name)(t, torch.tensor(other)))
    (getattr(x, name)(1)[0] * weft.arange(5.0)).sum().backward()
    (getattr(t, name)(1)[0] * torch.arange(5.0)).sum().backward()
    close(x.grad, t.grad)
    assert getattr(x, name)(axis=1).shape == (5,)  # the array API's words give values alone
    step = weft.compile(lambda v: getattr(v, name)(1)[0] * 2)
    close(step(x), getattr(t, name)(1)[0] * 2)


def test_loops_over_names():
    net = nn.Sequential(
        collections.OrderedDict([("first", nn.Linear(3, 4)), ("norm", nn.BatchNorm1d(4))])
    )
    names = ["first.weight", "first.bias", "norm.weight", "norm.bias"]
    assert [n for n, p in net.named_parameters() if p.requires_grad] == names
    assert (
        list(net.named_parameters().keys()) == names and list(dict(net.named_parameters())) == names
    )
    assert "first.bias" in net.named_parameters() and net.first.out_features == 4
    assert [n for n, _ in net.named_modules(prefix="net")] == ["net", "net.first", "net.norm"]
    assert [n for n, _ in net.named_buffers()] == ["norm.running_mean", "norm.running_var"]
    assert [n for n, _ in net.named_children()] == ["first", "norm"]
    net[1] = nn.Tanh()
    net.append(nn.Linear(4, 1))
    assert [n for n, _ in net.named_children()] == ["first", "norm", "2"] and len(net) == 3
    assert net(weft.ones((2, 3))).shape == (2, 1)
    net.register_buffer("seen", weft.zeros(1), persistent=False)
    assert "seen" in net.named_buffers() and "seen" not in net.state_dict()
    found = net.load_state_dict({"first.bias": weft.ones(4)}, strict=False)
    assert found.missing_keys and found.unexpected_keys == []


def test_hooks_and_kept_gradients():
    data = reals(4)
    seen = []
    got = []
    for lib, x in ((weft, weft.Tensor(data, requires_grad=True)), (torch, torch.tensor(data, requires_grad=True))):  # fmt: skip
        leaf = x.register_hook(lambda g: g * 2)
        y = x * 3
        y.retain_grad()
        y.register_hook(lambda g: seen.append(float(g.sum())))
        (y**2).sum().backward()
        leaf.remove()
        (x * 5).sum().backward()
        got.append((x.grad, y.grad))
    close(got[0][0], got[1][0])
    close(got[0][1], got[1][1])
    assert seen[0] == pytest.approx(seen[1], rel=1e-5)
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.Tensor(data, requires_grad=False).register_hook(print)
    assert refusal.value.code == "array.backward.hook.constant"


def test_a_function_of_two_results():
    class Both(weft.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            ctx.set_materialize_grads(True)
            return a * b, (a + b).sum()

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, True)
            return g * b + h, g * a + h

    a, b = (weft.Tensor(reals(3), requires_grad=True) for _ in range(2))
    product, total = Both.apply(a, b)
    assert product.shape == (3,) and total.shape == ()
    (product.sum() + 2 * total).backward()
    close(a.grad, b.numpy() + 2)
    close(b.grad, a.numpy() + 2)
    (g,) = weft.autograd.grad(outputs=(a * a).sum(), inputs=a, only_inputs=True)
    close(g, 2 * a.numpy())


def test_rarer_arguments_and_files():
    data = reals(2, 3, 8, 8)
    x, t = weft.Tensor(data), torch.tensor(data)
    for scale, corners in ((2.0, False), (0.5, True), (1.7, False)):
        close(
            F.interpolate(x, scale_factor=scale, mode="bicubic", align_corners=corners),
            torch.nn.functional.interpolate(
                t, scale_factor=scale, mode="bicubic", align_corners=corners
            ),
            1e-5,
        )
    got, want = (
        nn.MaxPool2d(2, return_indices=True)(x),
        torch.nn.MaxPool2d(2, return_indices=True)(t),
    )
    close(got[0], want[0])
    close(got[1], want[1])
    close(nn.Softplus(2, 10)(x), torch.nn.Softplus(2, 10)(t))
    n = weft.tensor([1, 2, 3])
    assert (
        (n << 2).tolist() == [4, 8, 12]
        and (1 << n).tolist() == [2, 4, 8]
        and (n >> 1).tolist() == [0, 1, 1]
    )
    assert x.size() == (2, 3, 8, 8) and x.size(0) == 2 and x.size(-1) == 8 and x.size == 384
    assert weft.eye(2, 3).repeat(4, 1, 1).shape == (4, 2, 3) and x.to(n).dtype == n.dtype
    close(nn.init.constant_(weft.empty((2,)), 3.0), [3, 3])
    file = io.BytesIO()
    weft.save({"model": nn.Linear(2, 2).state_dict(), "epoch": 3}, file)
    file.seek(0)
    assert weft.load(file, map_location="cpu")["epoch"] == 3
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.save(nn.Linear(2, 2), io.BytesIO())
    assert refusal.value.code == "io.save.module"


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("both, first", [(False, False), (True, True)])
def test_sequences_of_different_lengths(kind, both, first):
    import weft.torch

    options = dict(num_layers=2, bidirectional=both, batch_first=first)
    theirs = getattr(torch.nn, kind)(3, 4, **options)
    ours = getattr(nn, kind)(3, 4, **options)
    weft.torch.load_state_dict(ours, theirs)
    data, lengths = [reals(n, 3) for n in (2, 5, 3, 5)], [2, 5, 3, 5]
    got, want = [], []
    for lib, layer, out in ((weft, ours, got), (torch, theirs, want)):
        rnn = lib.nn.utils.rnn
        padded = rnn.pad_sequence(
            [lib.tensor(x) for x in data], batch_first=first, padding_value=9.0
        )
        packed = rnn.pack_padded_sequence(
            padded, lib.tensor(lengths), batch_first=first, enforce_sorted=False
        )
        y, state = layer(packed)
        y, n = rnn.pad_packed_sequence(y, batch_first=first)
        out += [padded, y, n, *(state if kind == "LSTM" else [state])]
    for a, b in zip(got, want, strict=True):
        close(a, b)
    with pytest.raises(weft.ArgumentError) as refusal:
        nn.utils.rnn.pack_padded_sequence(weft.ones((5, 2, 3)), [2, 5])
    assert refusal.value.code == "nn.pack.lengths"


def test_distributions():
    a, b, p = reals(4), np.exp(reals(4)), 1 / (1 + np.exp(-reals(4)))
    logits, other = reals(3, 5), reals(3, 5)
    found = []
    for lib in (weft, torch):
        d, t = lib.distributions, lambda x, lib=lib: lib.tensor(x, requires_grad=True)
        loc, scale = t(a), t(b)
        normal, more = d.Normal(loc, scale), d.Normal(t(a + 1), t(b * 2))
        cat, bern = d.Categorical(logits=t(logits)), d.Bernoulli(t(p))
        out = [
            normal.log_prob(t(a + 0.5)), normal.entropy(), normal.cdf(t(a + 0.1)), d.kl_divergence(normal, more),
            cat.log_prob(lib.tensor([0, 4, 2])), cat.entropy(), cat.probs, d.kl_divergence(cat, d.Categorical(logits=t(other))),
            bern.log_prob(lib.tensor([1.0, 0.0, 1.0, 1.0])), bern.entropy(), d.Bernoulli(logits=t(a)).probs, bern.variance,
            d.kl_divergence(bern, d.Bernoulli(t(p[::-1].copy()))), d.Uniform(t(a), t(a + b)).log_prob(t(a + b / 2)),
            d.Exponential(scale).log_prob(t(b)), d.kl_divergence(d.Exponential(scale), d.Exponential(t(b + 1))),
            d.Categorical(probs=t(b)).log_prob(lib.tensor(1)),
        ]  # fmt: skip
        normal.log_prob(t(a + 0.5)).sum().backward()
        out += [loc.grad, scale.grad]
        assert tuple(cat.sample((7,)).shape) == (7, 3) and tuple(normal.rsample((2,)).shape) == (
            2,
            4,
        )
        found.append(out)
    for got, want in zip(*found, strict=True):
        close(got, want)
    weft.random.seed(1)
    draws = weft.distributions.Categorical(probs=weft.asarray([0.5, 0.2, 0.3])).sample((20000,))
    np.testing.assert_allclose(np.bincount(draws.numpy()) / 20000, [0.5, 0.2, 0.3], atol=0.02)
    for make, code in (
        (lambda: weft.distributions.Bernoulli(), "distributions.parameter"),
        (lambda: weft.distributions.Bernoulli(0.5).rsample(), "distributions.rsample"),
        (lambda: weft.distributions.kl_divergence(normal, cat), "distributions.kl"),
    ):
        with pytest.raises(weft.ArgumentError) as refusal:
            make()
        assert refusal.value.code == code
