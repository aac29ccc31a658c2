# SPDX-License-Identifier: Apache-2.0
"""Training loops written the way PyTorch users write them, step by step beside torch with the same weights."""

import copy
import math
import pickle

import numpy as np
import pytest
import weft
from weft import nn, optim

torch = pytest.importorskip("torch")
import weft.torch as wt  # noqa: E402

TF = torch.nn.functional
F = nn.functional


def close(a, b, tol=1e-5):
    a, b = (np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (a, b))
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def refused(kind, code, text, f, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        f(*arguments, **keywords)
    assert caught.value.code == code and text in str(caught.value), caught.value


def rows(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


# ---- losses and functions


COMPARED = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]


def both(name, ours, theirs, *rest, **options):
    """Value and gradient of a loss in weft and torch."""
    x, y = weft.Tensor(ours), torch.tensor(theirs, requires_grad=True)
    a = getattr(F, name)(x, *(weft.asarray(r) for r in rest), **options)
    b = getattr(TF, name)(y, *(torch.from_numpy(r) for r in rest), **options)
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction):
    x = rows(1, 7, 5)
    labels = np.array([0, 4, 2, 1, 1, 0, 3])
    both("cross_entropy", x, x, labels, reduction=reduction)
    both("cross_entropy", x, x, labels, reduction=reduction, label_smoothing=0.1)
    both("nll_loss", x, x, labels, reduction=reduction)
    for name in COMPARED:
        target = np.abs(rows(2, 7, 5)) + 0.1
        both(name, x, x, target, reduction=reduction)
    divergence = "batchmean" if reduction == "mean" else reduction
    both("kl_div", x, x, np.abs(rows(2, 7, 5)), reduction=divergence)
    both("smooth_l1_loss", x, x, rows(5, 7, 5), reduction=reduction, beta=0.3)
    both("huber_loss", x, x, rows(5, 7, 5), reduction=reduction, delta=0.7)
    truth = (rows(3, 7, 5) > 0).astype("float32")
    both("binary_cross_entropy_with_logits", 30 * x, 30 * x, truth, reduction=reduction)
    p = 1 / (1 + np.exp(-x))
    both("binary_cross_entropy", p, p, truth, reduction=reduction)


def test_losses_at_the_edges():
    x = rows(1, 6, 5)
    both("cross_entropy", x, x, np.array([0, -100, 2, 1, -100, 0]), ignore_index=-100)
    images = rows(4, 2, 3, 4, 5)
    classes = np.random.default_rng(0).integers(0, 3, (2, 4, 5))
    both("cross_entropy", images, images, classes)
    both("cross_entropy", images, images, classes, reduction="none")
    certain = np.array([0.0, 1.0, 0.5], dtype="float32")
    a = F.binary_cross_entropy(weft.Tensor(certain), weft.asarray(certain), reduction="none")
    close(a, TF.binary_cross_entropy(*(torch.from_numpy(certain),) * 2, reduction="none"))
    t = weft.Tensor(x)
    refused(weft.ArgumentError, "nn.loss.reduction", "'avg'", F.l1_loss, t, x, reduction="avg")
    refused(weft.ShapeError, "nn.loss.shape", "(6, 5) with (6, 1)", F.mse_loss, t, x[:, :1])
    refused(
        weft.ShapeError, "nn.cross_entropy.shape", "need labels of shape (6,)", F.nll_loss, t, x
    )
    refused(weft.IndexError, "nn.cross_entropy.label", "[0, 5)", F.cross_entropy, t, np.full(6, 5))


def test_functions():
    x, y = rows(1, 6, 5) * 4, rows(2, 6, 5)
    a, b = weft.Tensor(x), torch.from_numpy(x)
    for name in ("silu", "elu", "softplus", "sigmoid", "tanh", "leaky_relu", "gelu", "normalize"):
        close(getattr(F, name)(a), getattr(torch, name, getattr(TF, name, None))(b), 2e-5)
    close(F.log_softmax(a, dim=0), TF.log_softmax(b, dim=0))
    close(F.softmax(a, dim=0), TF.softmax(b, dim=0))
    close(F.cosine_similarity(a, weft.Tensor(y)), TF.cosine_similarity(b, torch.from_numpy(y)))
    close(F.normalize(a, p=3.0), TF.normalize(b, p=3.0))
    hot = F.one_hot(weft.asarray([[0, 2], [1, 1]]), 3)
    assert hot.numpy().tolist() == TF.one_hot(torch.tensor([[0, 2], [1, 1]]), 3).tolist()
    refused(weft.IndexError, "nn.one_hot.index", "[0, 2)", F.one_hot, [0, 2], 2)
    images = -np.abs(rows(3, 2, 3, 8, 6))  # negative: a border of zeros would win
    c, d = weft.Tensor(images), torch.tensor(images, requires_grad=True)
    for ours, theirs in [
        (F.max_pool2d(c, 3, 2, padding=1), TF.max_pool2d(d, 3, 2, padding=1)),
        (F.avg_pool2d(c, 3, 2, padding=1), TF.avg_pool2d(d, 3, 2, padding=1)),
        (F.adaptive_avg_pool2d(c, (4, 2)), TF.adaptive_avg_pool2d(d, (4, 2))),
    ]:
        close(ours, theirs)
        c.grad = d.grad = None
        (ours * ours).sum().backward()
        (theirs * theirs).sum().backward()
        close(c.grad, d.grad)
    refused(weft.ShapeError, "nn.adaptive_pool.shape", "the size 0", F.adaptive_avg_pool2d, c, 0)


def test_attention_with_masks():
    q, k, v = (weft.Tensor(rows(s, 2, 3, n, 4)) for s, n in ((1, 5), (2, 7), (3, 7)))
    allowed = rows(4, 5, 7) > -0.5
    allowed[:, 0] = True
    got = F.scaled_dot_product_attention(q, k, v, attn_mask=weft.asarray(allowed))
    scores = q.numpy() @ k.numpy().swapaxes(-1, -2) / 2
    weights = np.exp(np.where(allowed, scores, -np.inf))
    close(got, weights / weights.sum(-1, keepdims=True) @ v.numpy())
    a = F.scaled_dot_product_attention(q, k[..., :5, :], v[..., :5, :], is_causal=True)
    b = F.scaled_dot_product_attention(
        q, k[..., :5, :], v[..., :5, :], attn_mask=weft.tril(weft.ones((5, 5), dtype="bool"))
    )
    close(a, b.numpy())


# ---- names of parameters, weights of torch


def test_parameters_have_the_names_of_torch():
    ours = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(4)))
    theirs = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.BatchNorm1d(4))
    )
    counters = {k for k in theirs.state_dict() if "num_batches" in k}
    assert set(ours.state_dict()) == set(theirs.state_dict()) - counters
    assert list(ours.named_modules().keys()) == [n for n, _ in theirs.named_modules()]
    lists = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    assert list(lists.named_parameters().keys()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    state = ours.state_dict()
    ours.load_state_dict({f"layers.{k}".replace("1.1", "1.layers.1"): v for k, v in state.items()})
    state["9.weight"] = state.pop("0.weight")
    with pytest.raises(weft.ArgumentError) as caught:
        ours.load_state_dict(state)
    assert caught.value.code == "nn.state.names"
    assert "missing from the state: ['0.weight']" in str(caught.value)
    assert "unknown to the module: ['9.weight']" in str(caught.value)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_take_weights_of_torch(name):
    theirs = getattr(torch.nn, name)(4, 5, num_layers=2, batch_first=True)
    ours = getattr(nn, name)(4, 5, num_layers=2, batch_first=True)
    wt.load_state_dict(ours, theirs)
    x = rows(1, 3, 6, 4)
    a, b = ours(weft.Tensor(x))[0], theirs(torch.from_numpy(x))[0]
    close(a, b)
    (a * a).sum().backward()
    (b * b).sum().backward()
    for k in range(2):
        cell = ours.cells[k]
        close(cell.weight_hh.grad.numpy().T, getattr(theirs, f"weight_hh_l{k}").grad, 1e-4)
        close(cell.bias_ih.grad, getattr(theirs, f"bias_ih_l{k}").grad, 1e-4)


# ---- whole loops


def test_groups_schedule_and_clipping():
    """Weight decay on matrices only, a cosine of rates, clipped gradients: the curve of torch."""
    x, labels = rows(0, 64, 10), np.random.default_rng(0).integers(0, 3, 64)
    ours = nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))
    T = torch.nn
    theirs = T.Sequential(T.Linear(10, 16), T.GELU(), T.LayerNorm(16), T.Linear(16, 3))
    wt.load_state_dict(ours, theirs)

    def groups(parameters):
        parameters = list(parameters)
        return [
            {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0, "lr": 3e-2},
        ]

    a = optim.AdamW(groups(ours.parameters()), lr=1e-2)
    b = torch.optim.AdamW(groups(theirs.parameters()), lr=1e-2)
    rates = optim.lr_scheduler.CosineAnnealingLR(a, 20)
    rates_torch = torch.optim.lr_scheduler.CosineAnnealingLR(b, 20)
    for step in range(20):
        loss = F.cross_entropy(ours(weft.Tensor(x)), weft.asarray(labels))
        loss_torch = TF.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(labels))
        close(loss, loss_torch, 2e-4)
        for opt, value in ((a, loss), (b, loss_torch)):
            opt.zero_grad(set_to_none=True)
            value.backward()
        norm = nn.utils.clip_grad_norm_(ours.parameters(), 0.5)
        close(norm, T.utils.clip_grad_norm_(theirs.parameters(), 0.5), 1e-3)
        for stepped in (a, b, rates, rates_torch):
            stepped.step()
        close([g["lr"] for g in a.param_groups], [g["lr"] for g in b.param_groups])
    assert loss.item() < 1.0


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 7], "gamma": 0.1}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("LinearLR", {"start_factor": 0.25, "total_iters": 4}),
    ("CosineAnnealingLR", {"T_max": 10, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda n: 1 / (1 + n)}),
]


@pytest.mark.parametrize("name, options", SCHEDULES, ids=[s[0] for s in SCHEDULES])
def test_schedules_of_rates(name, options):
    a = optim.SGD([weft.Tensor([1.0])], lr=0.5)
    b = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
    ours = getattr(optim.lr_scheduler, name)(a, **options)
    theirs = getattr(torch.optim.lr_scheduler, name)(b, **options)
    for n in range(10):
        close(ours.get_last_lr(), theirs.get_last_lr())
        assert a.lr == ours.get_last_lr()[0]
        if n == 5:  # taken up elsewhere
            state = pickle.loads(pickle.dumps(ours.state_dict()))
            a = optim.SGD([weft.Tensor([1.0])], lr=7.0)
            ours = getattr(optim.lr_scheduler, name)(a, **options)
            ours.load_state_dict(state)
        b.step()
        ours.step()
        theirs.step()


def test_a_plateau_lowers_the_rate():
    a = optim.SGD([weft.Tensor([1.0])], lr=1.0)
    b = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    ours = optim.lr_scheduler.ReduceLROnPlateau(a, patience=2, factor=0.5)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(b, patience=2, factor=0.5)
    for loss in [3, 2, 2, 2, 2, 1.9999, 2, 2, 1, 1, 1, 1, 1]:
        ours.step(weft.Tensor(float(loss)))
        theirs.step(loss)
        assert a.lr == b.param_groups[0]["lr"]
    assert a.lr < 0.5


def test_rmsprop_beside_torch():
    x = rows(0, 4, 3)
    for options in ({}, {"momentum": 0.9, "weight_decay": 0.01}, {"alpha": 0.5, "eps": 1e-3}):
        p, q = weft.Tensor(x), torch.tensor(x, requires_grad=True)
        a, b = (
            optim.RMSprop([p], lr=0.05, **options),
            torch.optim.RMSprop([q], lr=0.05, **options),
        )
        for _ in range(8):
            for opt, value in ((a, (p**4).sum()), (b, (q**4).sum())):
                opt.zero_grad()
                value.backward()
                opt.step()
        close(p, q)


def test_groups_are_checked_and_saved():
    p, q = weft.Tensor([1.0, 2.0]), weft.Tensor([3.0])
    make = lambda: optim.SGD([{"params": p, "lr": 0.5}, {"params": [q]}], lr=0.1, momentum=0.9)  # noqa: E731
    opt = make()
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1] and opt.momentum == 0.9
    (p.sum() + q.sum()).backward()
    opt.step()
    state = pickle.loads(pickle.dumps(opt.state_dict()))
    assert state["lr"] == [0.5, 0.1]
    opt.lr = 0.25
    assert [g["lr"] for g in opt.param_groups] == [0.25, 0.25]
    opt.load_state_dict(state)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    other = optim.SGD([{"params": [p]}, {"params": [q]}, {"params": []}])
    refused(weft.ArgumentError, "optim.state.groups", "2 groups", other.load_state_dict, state)
    group = optim.SGD, [{"params": [p], "speed": 1}]
    refused(weft.ArgumentError, "optim.params.group", "'speed'", *group)
    refused(weft.ArgumentError, "optim.params.group", "['lr']", optim.SGD, [{"lr": 1}])
    refused(weft.DTypeError, "optim.params.type", "got a int", optim.SGD, [{"params": [1]}])
    twice = [{"params": [p]}, {"params": [p]}]
    refused(weft.ArgumentError, "optim.params.twice", "shape (2,)", optim.SGD, twice)
    opt.zero_grad(set_to_none=False)
    assert p.grad.numpy().tolist() == [0, 0]


def test_clipping_and_vectors():
    p, q = weft.Tensor([3.0, 4.0]), weft.Tensor([[12.0]])
    (p * p * 0.5).sum().backward()
    (q * q * 0.5).sum().backward()
    assert nn.utils.clip_grad_norm_([p, q], 1.0, norm_type=math.inf) == 12
    p.grad, q.grad = p.data.copy(), q.data.copy()
    assert nn.utils.clip_grad_norm_([p, q], 6.5) == 13
    close(p.grad, [1.5, 2.0])
    nn.utils.clip_grad_value_([p, q], 1.75)
    close(p.grad, [1.5, 1.75])
    row = nn.utils.parameters_to_vector([p, q])
    nn.utils.vector_to_parameters(row * 2, [p, q])
    assert p.tolist() == [6, 8] and q.tolist() == [[24]]
    refused(
        weft.ShapeError,
        "nn.utils.vector",
        "3 elements",
        nn.utils.vector_to_parameters,
        row[:2],
        [p, q],
    )


def test_training_goes_on_from_a_checkpoint():
    x, y = rows(1, 16, 4), rows(2, 16, 1)

    def go(net, opt, rates, steps):
        out = []
        for _ in range(steps):
            loss = F.mse_loss(net(weft.Tensor(x)), weft.asarray(y))
            opt.zero_grad()
            loss.backward()
            opt.step()
            rates.step()
            out.append(loss.item())
        return out

    def make():
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
        opt = optim.Adam(net.parameters(), lr=0.1)
        return net, opt, optim.lr_scheduler.StepLR(opt, 2)

    first = make()
    go(*first, 3)
    saved = pickle.dumps([part.state_dict() for part in first])
    second = make()
    for part, state in zip(second, pickle.loads(saved)):
        part.load_state_dict(state)
    assert go(*first, 4) == go(*second, 4)


# ---- tensors and loaders


def test_methods_of_tensors():
    x = rows(1, 4, 6)
    a, b = weft.Tensor(x), torch.tensor(x, requires_grad=True)
    mask = x > 0
    for name, ours, theirs in [
        ("split", a.split(4, dim=1)[1], b.split(4, dim=1)[1]),
        ("sizes", a.split([1, 5], 1)[1], b.split([1, 5], 1)[1]),
        ("chunk", a.chunk(3)[1], b.chunk(3)[1]),
        ("unbind", a.unbind(1)[2], b.unbind(1)[2]),
        ("narrow", a.narrow(1, 2, 3), b.narrow(1, 2, 3)),
        (
            "masked_fill",
            a.masked_fill(weft.asarray(mask), 3.0),
            b.masked_fill(torch.from_numpy(mask), 3.0),
        ),
        ("expand", a[:, :1].expand(-1, 5), b[:, :1].expand(-1, 5)),
        ("norm", a.norm(dim=1), b.norm(dim=1)),
        ("norm 3", a.norm(3), b.norm(3)),
        ("index_select", a.index_select(1, [2, 0]), b.index_select(1, torch.tensor([2, 0]))),
        (
            "gather",
            a.gather(1, [[0], [1], [2], [5]]),
            b.gather(1, torch.tensor([[0], [1], [2], [5]])),
        ),
        ("t", a.t(), b.t()),
        ("cumsum", a.cumsum(1), b.cumsum(1)),
        ("clamp", a.clamp(min=-0.5, max=0.5), b.clamp(min=-0.5, max=0.5)),
        ("sum", a.sum(dim=1, keepdim=True), b.sum(dim=1, keepdim=True)),
        ("mean", a.mean(dim=(0, 1)), b.mean(dim=(0, 1))),
        ("softmax", a.softmax(dim=0), b.softmax(dim=0)),
        ("log_softmax", a.log_softmax(dim=0), b.log_softmax(dim=0)),
        ("log1p", a.abs().log1p(), b.abs().log1p()),
        ("tril", a.tril(), b.tril()),
        ("roll", a.roll(shifts=2, dims=1), b.roll(shifts=2, dims=1)),
        ("double", a.double(), b.double()),
    ]:
        close(ours, theirs), name
        a.grad = b.grad = None
        (ours * ours).sum().backward()
        (theirs * theirs).sum().backward()
        close(a.grad, b.grad, 1e-4)
    assert a.argmax(dim=1, keepdim=True).shape == (4, 1)
    assert a.gt(0).numpy().tolist() == mask.tolist() and a.long().dtype == "int64"
    refused(weft.IndexError, "tensor.dim", "axis 2", a.split, 2, 2)
    refused(weft.ShapeError, "tensor.split", "add up to 3", a.split, [1, 2])
    refused(weft.ArgumentError, "tensor.split", "parts of 0", a.split, 0)
    refused(weft.ShapeError, "tensor.t", "(1, 4, 6)", a.unsqueeze(0).t)


def test_loaders():
    x = np.arange(10)
    data = weft.data.ArrayDataset(x, x * x)
    loader = weft.data.DataLoader(data, batch_size=4, drop_last=True)
    assert len(loader) == 2 and [b[0].shape for b in loader] == [(4,), (4,)]
    order = lambda loader: [n for b in loader for n in b[0].tolist()]  # noqa: E731
    make = lambda: weft.data.DataLoader(data, 3, shuffle=True, key=weft.random.key(3))  # noqa: E731
    once, again = make(), make()
    first, second = order(once), order(once)
    assert first != second and sorted(first) == sorted(second) == list(range(10))
    assert [order(again), order(again)] == [first, second]
    refused(weft.ShapeError, "data.arrays.length", "(10,), (9,)", weft.data.ArrayDataset, x, x[:9])
    refused(weft.ArgumentError, "data.batch_size", "0 samples", weft.data.DataLoader, data, 0)


def test_modules_keep_buffers():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    net[0].register_buffer("scale", [2.0])
    assert list(net.named_buffers().keys()) == ["0.scale", "1.running_mean", "1.running_var"]
    assert len(net.buffers()) == 3 and "0.scale" in net.cpu().state_dict()
    assert copy.deepcopy(net)[0].scale.tolist() == [2.0]


def test_parameters_without_a_gradient_do_not_move_by_the_largest_rule():
    x = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
    p = weft.nn.Parameter(weft.asarray(x))
    optimizer = weft.optim.Adamax([p], lr=0.1, betas=(0.9, 0.99), eps=1e-8)
    m, v, want = np.zeros(4), np.zeros(4), x.astype(np.float64)
    for step, g in enumerate(([0, 0.5, -2, 0], [0, 0, 1e-3, 4], [0, -1, 0, 0]), 1):
        p.grad = weft.Tensor(weft.asarray(np.array(g, np.float32)))
        optimizer.step()
        g = np.array(g)
        m, v = 0.9 * m + 0.1 * g, np.maximum(0.99 * v, np.abs(g) + 1e-8)
        want = want - 0.1 / (1 - 0.9**step) * m / v
        np.testing.assert_allclose(p.numpy(), want, rtol=1e-5)
    assert p.numpy()[0] == 1.0
