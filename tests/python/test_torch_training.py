# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers, optimizers and schedules of rates with every option, step by step beside torch's."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest

import weft
import refusal
from weft import nn, optim

torch = pytest.importorskip("torch")
import weft.torch as wt  # noqa: E402

RATES, THEIRS = optim.lr_scheduler, torch.optim.lr_scheduler


def close(got, expected, tolerance=1e-5):
    got, expected = (
        x.detach().numpy() if hasattr(x, "detach") else np.asarray(x) for x in (got, expected)
    )
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def refused(kind, code, text, f, *arguments):
    assert text in str(refusal.refused(kind, code, f, *arguments))


# ---- recurrent layers


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("batched", [True, False])
def test_recurrent_layers_in_both_directions(rng, name, batched):
    for layers, both, first, bias in itertools.product((1, 2, 3), *[(False, True)] * 3):
        options = {"num_layers": layers, "bidirectional": both, "batch_first": first, "bias": bias}
        theirs, ours = getattr(torch.nn, name)(4, 5, **options), getattr(nn, name)(4, 5, **options)
        wt.load_state_dict(ours, theirs)
        for k, v in wt.state_dict(ours).items():
            assert torch.equal(v, theirs.state_dict()[k])
        shape = (layers * (1 + both), 3 if first else 6, 5) if batched else (layers * (1 + both), 5)
        x, h, c = (
            rng.standard_normal(s).astype("float32")
            for s in ((3, 6, 4) if batched else (6, 4), shape, shape)
        )
        a, b = weft.Tensor(x), torch.tensor(x, requires_grad=True)
        start = weft.Tensor(h), weft.Tensor(c)
        start_torch = torch.tensor(h), torch.tensor(c)
        if name != "LSTM":
            start, start_torch = start[0], start_torch[0]
        y, last = ours(a, start)
        z, last_torch = theirs(b, start_torch)
        close(y, z)
        pairs = zip(last, last_torch) if name == "LSTM" else [(last, last_torch)]
        total, total_torch = (y * y).sum(), (z * z).sum()
        for s, t in pairs:
            close(s, t)
            total, total_torch = total + (s * s * s).sum(), total_torch + (t**3).sum()
        total.backward()
        total_torch.backward()
        close(a.grad, b.grad, 1e-4)
        close(
            ours.cells[-1].weight_ih.grad.numpy().T,
            list(theirs.parameters())[-4 if bias else -2].grad,
            1e-4,
        )


def test_states_of_the_cells_as_a_list(rng):
    x, h = rng.standard_normal((4, 2, 3)), rng.standard_normal((2, 2, 5))
    for layer, make in [
        (nn.GRU, lambda k: weft.Tensor(h[k])),
        (nn.LSTM, lambda k: (weft.Tensor(h[k]),) * 2),
    ]:
        rnn = layer(3, 5, num_layers=2, dtype="float64")
        stacked = weft.Tensor(h) if layer is nn.GRU else (weft.Tensor(h), weft.Tensor(h))
        a = rnn(weft.Tensor(x), [make(0), make(1)])[0]
        close(a, rnn(weft.Tensor(x), stacked)[0], 1e-12)


def test_dropout_between_recurrent_layers(rng):
    """With everything dropped the second layer sees zeros; nothing is dropped behind the last or in eval."""
    x = weft.Tensor(rng.standard_normal((6, 3, 4)).astype("float32"))
    rnn = nn.LSTM(4, 5, num_layers=2, dropout=1.0, bidirectional=True)
    dropped, plain = rnn(x)[0].numpy(), rnn.eval()(x)[0].numpy()
    other = rnn.train()(x + 1.0)[0].numpy()
    np.testing.assert_array_equal(dropped, other)
    assert np.abs(dropped).max() > 0 and np.abs(dropped - plain).max() > 1e-4
    zeros = weft.zeros((6, 3, 10))
    s = [[None, None], []]
    for d in (0, 1):
        for _ in range(6):
            s[0][d] = rnn.cells[2 + d](weft.Tensor(zeros[0]), s[0][d])
        s[1].append(s[0][d][0].numpy())
    np.testing.assert_allclose(dropped[-1, :, :5], s[1][0], atol=1e-6)
    np.testing.assert_allclose(dropped[0, :, 5:], s[1][1], atol=1e-6)


def test_recurrent_layers_refuse(rng):
    rnn = nn.LSTM(4, 5, bidirectional=True)
    x = weft.Tensor(np.zeros((6, 3, 4), "float32"))
    h = weft.Tensor(np.zeros((1, 3, 5), "float32"))
    refused(weft.ShapeError, "nn.rnn.shape", "of 4 features got shape (6, 3, 3)", rnn, x[:, :, :3])
    refused(weft.ShapeError, "nn.rnn.state", "needed is (2, 3, 5)", rnn, x, (h, h))
    refused(weft.ArgumentError, "nn.rnn.layers", "0 layers", nn.GRU, 4, 5, 0)
    refused(weft.ArgumentError, "nn.rnn.layers", "dropout 1.5", lambda: nn.GRU(4, 5, dropout=1.5))


# ---- optimizers

OPTIONS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True, "lr": 0.001}),
    ("Adam", {"amsgrad": True}),
    ("Adam", {"weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("RAdam", {"betas": (0.8, 0.9)}),
    ("Rprop", {"etas": (0.4, 1.3)}),
    ("ASGD", {"t0": 5, "lambd": 0.1}),
]


@pytest.mark.parametrize(
    "name, options", OPTIONS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(OPTIONS)]
)
def test_optimizers_step_as_torch_does(rng, name, options):
    """Twelve steps, one parameter joining at the seventh; the state goes through pickle in the middle."""
    x, scale = rng.standard_normal((2, 5, 3)).astype("float32")
    options = {"lr": 0.05, **options}
    p, late = weft.Tensor(x), weft.Tensor(x[0])
    q, late_torch = (torch.tensor(v, requires_grad=True) for v in (x, x[0]))
    opt = getattr(optim, name)([p, late], **options)
    opt_torch = getattr(torch.optim, name)([q, late_torch], **options)
    for step in range(12):

        def closure():
            opt.zero_grad()
            loss = ((p * weft.asarray(scale)) ** 2).sum() + weft.cos(p).sum()
            loss = loss + (late**4).sum() if step > 5 else loss
            loss.backward()
            return loss

        def closure_torch():
            opt_torch.zero_grad()
            loss = ((q * torch.tensor(scale)) ** 2).sum() + torch.cos(q).sum()
            loss = loss + (late_torch**4).sum() if step > 5 else loss
            loss.backward()
            return loss

        with weft.no_grad():  # a closure records its graph all the same
            loss = opt.step(closure)
        close(loss, opt_torch.step(closure_torch), 1e-4)
        close(p, q, 1e-5)
        close(late, late_torch, 1e-5)
        if step == 8:
            state = pickle.loads(pickle.dumps(opt.state_dict()))
            opt = getattr(optim, name)([p, late], lr=7.0)
            opt.load_state_dict(state)
    if name == "ASGD":
        close(opt.averages[0], opt_torch.state[q]["ax"])


def test_nadam_by_its_formula(rng):
    """torch before 2.0 multiplies one factor twice, so the formula of the paper stands here."""
    x = rng.standard_normal(7)
    p, y, m, v, product = weft.Tensor(x), x.copy(), 0.0, 0.0, 1.0
    opt = optim.NAdam([p], lr=0.05, betas=(0.8, 0.9), weight_decay=0.1, momentum_decay=0.02)
    for t in range(1, 9):
        opt.zero_grad()
        (p**4).sum().backward()
        opt.step()
        g = 4 * y**3 + 0.1 * y
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        mu, ahead = (0.8 * (1 - 0.5 * 0.96 ** (n * 0.02)) for n in (t, t + 1))
        product *= mu
        mean = ahead * m / (1 - product * ahead) + (1 - mu) * g / (1 - product)
        y = y - 0.05 * mean / (np.sqrt(v / (1 - 0.9**t)) + 1e-8)
        close(p, y, 1e-10)


def test_optimizers_refuse():
    p = weft.Tensor([1.0])
    refused(
        weft.ArgumentError,
        "optim.sgd.nesterov",
        "momentum 0.0",
        lambda: optim.SGD([p], 0.1, nesterov=True),
    )
    adam = optim.Adam([p], 0.1, (0.5, 0.75))
    assert (adam.beta1, adam.beta2, adam.t) == (0.5, 0.75, 0)


# ---- schedules of rates

SCHEDULES = {
    "restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 4, 2, eta_min=0.01),
    "constant": lambda m, o: m.ConstantLR(o, 0.25, 4),
    "polynomial": lambda m, o: m.PolynomialLR(o, 7, 2.0),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda n: 0.9 + 0.01 * (n % 3)),
    "lambdas": lambda m, o: m.LambdaLR(o, [lambda n: 0.9**n]),
    "one after another": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1, 2), m.ExponentialLR(o, 0.9), m.StepLR(o, 3)], [5, 20]
    ),
    "several": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 6), m.ExponentialLR(o, 0.9)]),
    "triangles": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 5, 8),
    "half triangles": lambda m, o: m.CyclicLR(o, 0.01, 0.2, 5, mode="triangular2"),
    "shrinking triangles": lambda m, o: m.CyclicLR(
        o, 0.01, 0.2, 5, 8, mode="exp_range", gamma=0.97
    ),
    "one cycle": lambda m, o: m.OneCycleLR(o, 0.3, total_steps=43),
    "one cycle, straight": lambda m, o: m.OneCycleLR(
        o, 0.3, epochs=9, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "three phases": lambda m, o: m.OneCycleLR(o, 0.3, total_steps=41, three_phase=True),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_and_momentum(name):
    def make(lr=0.5):
        a = optim.SGD([weft.Tensor([1.0])], lr=lr, momentum=0.9)
        return a, SCHEDULES[name](RATES, a)

    a, ours = make()
    b = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5, momentum=0.9)
    theirs = SCHEDULES[name](THEIRS, b)
    for n in range(40):
        group = b.param_groups[0]
        close([a.lr, a.momentum], [group["lr"], group["momentum"]], 1e-12)
        if n == 17:  # taken up elsewhere
            state = pickle.loads(pickle.dumps(ours.state_dict()))
            a, ours = make(7.0)
            ours.load_state_dict(state)
        b.step()
        ours.step()
        theirs.step()


@pytest.mark.parametrize("name", ["Adam", "Adamax"])
def test_one_cycle_moves_betas(name):
    a = getattr(optim, name)([weft.Tensor([1.0])], lr=0.5)
    b = getattr(torch.optim, name)([torch.ones(1, requires_grad=True)], lr=0.5)
    ours, theirs = (
        RATES.OneCycleLR(a, 0.3, total_steps=12),
        THEIRS.OneCycleLR(b, 0.3, total_steps=12),
    )
    for _ in range(12):
        b.step()
        ours.step()
        theirs.step()
        beta = a.beta1 if name == "Adam" else a.betas[0]
        close([a.lr, beta], [b.param_groups[0]["lr"], b.param_groups[0]["betas"][0]], 1e-12)
    refused(weft.ArgumentError, "optim.scheduler.steps", "over 12 steps", ours.step)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateaus(mode, threshold_mode):
    options = {"threshold": 0.05, "threshold_mode": threshold_mode, "cooldown": 2, "min_lr": 1e-4}
    a = optim.SGD([weft.Tensor([1.0])], lr=0.1)
    b = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    ours = RATES.ReduceLROnPlateau(a, mode, 0.5, 3, **options)
    theirs = THEIRS.ReduceLROnPlateau(b, mode, 0.5, 3, **options)
    values = random.Random(3)
    for n in range(60):
        metric = values.random()
        ours.step(metric)
        theirs.step(metric)
        assert a.lr == b.param_groups[0]["lr"] == ours.get_last_lr()[0]
        if n == 20:
            state = pickle.loads(pickle.dumps(ours.state_dict()))
            ours = RATES.ReduceLROnPlateau(a, mode, 0.5, 3, **options)
            ours.load_state_dict(state)
    assert a.lr < 0.02


def test_schedules_refuse():
    opt = optim.SGD([weft.Tensor([1.0])], momentum=0.5)
    for code, text, make in [
        (
            "optim.scheduler.lambdas",
            "2 functions for 1 groups",
            lambda: RATES.LambdaLR(opt, [abs, abs]),
        ),
        ("optim.scheduler.restarts", "T_0 is 0", lambda: RATES.CosineAnnealingWarmRestarts(opt, 0)),
        ("optim.scheduler.mode", "'square'", lambda: RATES.CyclicLR(opt, 0.1, 0.2, mode="square")),
        (
            "optim.scheduler.mode",
            "'exp'",
            lambda: RATES.OneCycleLR(opt, 0.1, 9, anneal_strategy="exp"),
        ),
        ("optim.scheduler.steps", "epochs None", lambda: RATES.OneCycleLR(opt, 0.1)),
        (
            "optim.scheduler.momentum",
            "Adagrad",
            lambda: RATES.CyclicLR(optim.Adagrad(opt.params), 0.1, 0.2),
        ),
        (
            "optim.scheduler.milestones",
            "1 schedules with 1",
            lambda: RATES.SequentialLR(opt, [RATES.StepLR(opt, 3)], [5]),
        ),
        ("optim.scheduler.plateau", "factor 2", lambda: RATES.ReduceLROnPlateau(opt, factor=2)),
        ("optim.scheduler.plateau", "mode 0.5", lambda: RATES.ReduceLROnPlateau(opt, 0.5)),
    ]:
        refused(weft.ArgumentError, code, text, make)
    assert math.isclose(opt.lr, 0.01)
