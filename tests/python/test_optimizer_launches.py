# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers and running statistics that are one launch on a card give what several operations give on the host."""

import numpy as np
import pytest
from present import present

import weft
from weft import nn, optim

GRID = "opencl:0"
present(GRID)

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.3),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "dampened": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.4, weight_decay=0.2),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.8, nesterov=True, weight_decay=0.1),
    "maximize": lambda p: optim.SGD(p, lr=0.1, momentum=0.8, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=0.05, eps=1e-3),
    "adam decay": lambda p: optim.Adam(p, lr=0.05, betas=(0.7, 0.9), weight_decay=0.2),
    "adamw": lambda p: optim.AdamW(p, lr=0.05, weight_decay=0.3),
    "amsgrad": lambda p: optim.Adam(p, lr=0.05, amsgrad=True),
    "rms": lambda p: optim.RMSprop(p, lr=0.02, eps=1e-3),
    "rms rolling": lambda p: optim.RMSprop(p, lr=0.02, eps=1e-3, momentum=0.7, weight_decay=0.1),
    "rms centered": lambda p: optim.RMSprop(p, lr=0.02, eps=1e-2, momentum=0.7, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
    "adadelta": lambda p: optim.Adadelta(p, eps=1e-3, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, eps=1e-3, weight_decay=0.1),
    "nadam": lambda p: optim.NAdam(p, eps=1e-3, weight_decay=0.1),
    "radam": lambda p: optim.RAdam(p, eps=1e-3, betas=(0.9, 0.5), weight_decay=0.1),
    "rprop": lambda p: optim.Rprop(p),
    "asgd": lambda p: optim.ASGD(p, t0=1, lambd=0.1, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_equal_the_hosts(name, dtype, rng):
    start = [rng.standard_normal(s).astype(dtype) for s in ((5,), (3, 7), (1,), (0, 4), (33, 65))]
    gradients = [[rng.standard_normal(s.shape).astype(dtype) for s in start] for _ in range(5)]
    ends = []
    for device in ("cpu", GRID):
        params = [weft.Tensor(weft.asarray(s, device=device), requires_grad=True) for s in start]
        opt = OPTIMIZERS[name](params)
        held = [p.data for p in params]  # what somebody holds stays
        for step in gradients:
            for p, g in zip(params, step):
                p.grad = weft.Tensor(weft.asarray(g, device=device), requires_grad=False)
            opt.step()
            opt.lr = opt.lr * 0.9
        assert all(np.array_equal(h.numpy(), s) for h, s in zip(held, start))
        assert all(str(p.data.dtype) == dtype for p in params)
        ends.append([p.data.numpy() for p in params])
    for host, card in zip(*ends):
        np.testing.assert_allclose(
            card, host, rtol=2e-5 if dtype == "float32" else 1e-12, atol=1e-6
        )


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_running_statistics_equal_the_hosts(momentum, rng):
    batches = [rng.standard_normal((6, 5, 3, 4)).astype("float32") * 3 + 1 for _ in range(4)]
    ends = []
    for device in ("cpu", GRID):
        norm = nn.BatchNorm2d(5, momentum=momentum).to(device)
        for x in batches:
            norm(weft.Tensor(weft.asarray(x, device=device)))
        ends.append((norm.running_mean.numpy(), norm.running_var.numpy()))
    for host, card in zip(*ends):
        np.testing.assert_allclose(card, host, rtol=1e-5)


def test_a_formula_is_one_kernel(rng):
    """Of a formula there is one kernel for each type and kind of arguments, and it is what the step uses."""
    from weft import _core
    from weft._fused_step import FusedStep

    calls = []

    def formula(x, m, g, rate, decay):
        calls.append(type(x))
        g = g if decay is None else g + x * decay
        m = m * 0.5 + weft.sqrt(g * g)
        return x - m * rate, m

    step = FusedStep(formula)
    values = [rng.standard_normal((3, 5)) for _ in range(3)]
    for dtype in ("float32", "float64", "float32"):
        for decay in (None, 0.25, 0.75):
            x, m, g = (weft.asarray(v.astype(dtype), device=GRID) for v in values)
            rate = weft.asarray(0.1, dtype="float32", device=GRID) if decay == 0.75 else 0.1
            got = step(x, m, g, rate, decay)
            want = formula(*values, float(rate), decay)
            for a, b in zip(got, want):
                assert str(a.dtype) == dtype
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-6)
    assert len(step._known) == 6 and calls.count(_core.NDArray) == 0
    x = weft.asarray(values[0].astype("int32"), device=GRID)
    assert step(x, x, x, 2, None)[0].shape == (
        3,
        5,
    )  # as it is written: integers have no such kernel
    assert calls[-1] is _core.NDArray


def test_only_arrays_of_one_shape_and_numbers_are_a_step():
    """Other shapes would be repeated, which a step's kernel does not."""
    from weft import _core

    def type_of(*others):
        x = weft.ones((3, 4), device=GRID)
        return _core.FusedMap.step_type([x, *others])

    def ones(shape, dtype="float32", device=GRID):
        return weft.ones(shape, dtype=dtype, device=device)

    assert str(type_of()) == str(type_of(ones((3, 4)), ones(()))) == "float32"
    assert str(type_of(ones((3, 4), "float64"))) == str(type_of(ones((), "float64"))) == "float64"
    for shape in ((4,), (1,), (1, 4), (3, 1), (3, 4, 1), (4, 3)):
        assert type_of(ones(shape)) is None, shape
    assert type_of(ones((3, 4), "int32")) is type_of(ones((3, 4), device="cpu")) is None
    assert _core.FusedMap.step_type([ones((3, 4), device="cpu")] * 2) is None
