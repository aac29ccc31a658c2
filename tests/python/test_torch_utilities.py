# SPDX-License-Identifier: Apache-2.0
"""What PyTorch has beside models: gradcheck, autograd.functional, averaged models; names of special functions in the main namespace."""

import numpy as np
import pytest
from refusal import refused

import weft
import weft.autograd.functional as ours_of
from weft.optim.lr_scheduler import StepLR
from weft.optim.swa_utils import SWALR, AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, update_bn

torch = pytest.importorskip("torch")
import torch.optim.swa_utils as theirs_swa  # noqa: E402

import weft.torch as wt  # noqa: E402

theirs_of = torch.autograd.functional


class Wrong(weft.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 3.0 * ctx.saved_tensors[0]


def test_gradients_beside_differences(rng):
    check, second = weft.autograd.gradcheck, weft.autograd.gradgradcheck
    x = weft.tensor(rng.standard_normal((3, 3)), requires_grad=True)
    y = weft.tensor(rng.standard_normal(3), requires_grad=True)
    z = weft.tensor(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)), requires_grad=True)  # fmt: skip
    assert check(lambda x, y: (x @ y, weft.tanh(x)), (x, y)) and second(lambda x, y: weft.tanh(x) @ y, (x, y))  # fmt: skip
    assert check(weft.linalg.inv, z) and second(weft.linalg.inv, z)
    assert check(lambda x, k: x * k, (x, 3))
    error = refused(weft.autograd.GradcheckError, "autograd.gradcheck", check, Wrong.apply, (x,))
    assert "result 0 at (0, 0) for input 0 at (0, 0)" in str(error)
    assert check(Wrong.apply, (x,), raise_exception=False) is False
    assert check(lambda x: x.detach() * 0.0 + x * 0.0, (x,))
    assert check(lambda x: x.detach() * x, (x,), raise_exception=False) is False
    refused(weft.ArgumentError, "autograd.gradcheck.inputs", check, lambda x: x, (x.detach(),))
    refused(weft.DTypeError, "autograd.gradcheck.dtype", check, lambda x: x, (weft.tensor([1.0], dtype="float32", requires_grad=True),))  # fmt: skip


def test_functional_derivatives(rng):
    a, v = rng.standard_normal(4), rng.standard_normal(4)
    f, g = lambda x: (x**3).sum(), lambda x, y: x * y
    near = lambda p, q: np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-9, atol=1e-12)  # noqa: E731
    for name in ("jacobian", "hessian"):
        near(getattr(ours_of, name)(f, weft.Tensor(a)), getattr(theirs_of, name)(f, torch.tensor(a)))
    near(ours_of.jacobian(f, weft.Tensor(a), strategy="forward-mode"), theirs_of.jacobian(f, torch.tensor(a)))  # fmt: skip
    for name in ("hvp", "vhp", "jvp"):
        for p, q in zip(
            getattr(ours_of, name)(f, weft.Tensor(a), weft.Tensor(v)),
            getattr(theirs_of, name)(f, torch.tensor(a), torch.tensor(v)),
        ):
            near(p, q)
    ours, theirs = (weft.Tensor(a), weft.Tensor(v)), (torch.tensor(a), torch.tensor(v))
    for p, q in zip(ours_of.vjp(g, ours, ours[0])[1], theirs_of.vjp(g, theirs, theirs[0])[1]):
        near(p, q)
    for p, q in zip(ours_of.jacobian(g, ours), theirs_of.jacobian(g, theirs)):
        near(p, q)
    x = weft.tensor(a, requires_grad=True)
    (ours_of.jacobian(f, x, create_graph=True) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 36 * a**3, rtol=1e-9)
    x.grad = None
    weft.autograd.backward([x.sum(), x * x], [None, weft.Tensor(v)])
    np.testing.assert_allclose(x.grad.numpy(), 1 + 2 * a * v, rtol=1e-9)
    refused(weft.ArgumentError, "autograd.backward.count", weft.autograd.backward, [x], [None, None])
    with weft.autograd.detect_anomaly():
        x.sum().backward()


@pytest.mark.parametrize("exponential", [False, True])
def test_averaged_models(rng, exponential):
    torch.manual_seed(0)
    make = lambda lib: lib.nn.Sequential(lib.nn.Linear(4, 5), lib.nn.BatchNorm1d(5), lib.nn.Linear(5, 2))  # noqa: E731
    theirs, ours = make(torch), make(weft)
    wt.load_state_dict(ours, theirs)
    others = {"avg_fn": lambda a, c, n: a * 0.9 + c * 0.1} if exponential else {}
    a = theirs_swa.AveragedModel(theirs, **others)
    b = AveragedModel(ours, **({"multi_avg_fn": get_ema_multi_avg_fn(0.9)} if exponential else {}))
    x = rng.standard_normal((32, 4)).astype("float32")
    optimizers = torch.optim.SGD(theirs.parameters(), lr=0.1), weft.optim.SGD(ours.parameters(), lr=0.1)
    early = torch.optim.lr_scheduler.StepLR(optimizers[0], 1, 0.9), StepLR(optimizers[1], 1, 0.9)
    late = theirs_swa.SWALR(optimizers[0], swa_lr=0.02, anneal_epochs=3), SWALR(optimizers[1], swa_lr=0.02, anneal_epochs=3)  # fmt: skip
    for k in range(7):
        for lib, model, opt, data in ((torch, theirs, optimizers[0], torch.tensor(x)), (weft, ours, optimizers[1], weft.Tensor(x))):  # fmt: skip
            opt.zero_grad()
            ((model(data) ** 2).sum() * 0.01).backward()
            opt.step()
        a.update_parameters(theirs)
        b.update_parameters(ours)
        for schedule in early if k < 2 else late:
            schedule.step()
        assert optimizers[1].param_groups[0]["lr"] == pytest.approx(optimizers[0].param_groups[0]["lr"], rel=1e-6)  # fmt: skip
    theirs_swa.update_bn([torch.tensor(x[:16]), torch.tensor(x[16:] * 2)], a)
    update_bn([weft.Tensor(x[:16]), (weft.Tensor(x[16:] * 2),)], b)
    want = a.eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(b.eval()(weft.Tensor(x)).numpy(), want, rtol=1e-4, atol=1e-5)
    assert b.n_averaged == 7 and all(not p.requires_grad for p in b.parameters())
    again = AveragedModel(make(weft))
    again.load_state_dict(b.state_dict())
    assert again.n_averaged == 7
    np.testing.assert_allclose(again.eval()(weft.Tensor(x)).numpy(), want, rtol=1e-4, atol=1e-5)


def test_refusals_of_averages():
    model = weft.nn.Linear(2, 2)
    opt = weft.optim.SGD(model.parameters(), lr=0.1)
    refused(weft.ArgumentError, "optim.swa.decay", get_ema_avg_fn, 1.5)
    refused(weft.ArgumentError, "optim.swa.functions", lambda: AveragedModel(model, avg_fn=min, multi_avg_fn=min))  # fmt: skip
    refused(weft.ArgumentError, "optim.swa.strategy", lambda: SWALR(opt, 0.1, anneal_strategy="step"))
    refused(weft.ArgumentError, "optim.swa.epochs", lambda: SWALR(opt, 0.1, anneal_epochs=-1))
    refused(weft.ArgumentError, "optim.swa.rates", lambda: SWALR(opt, [0.1, 0.2]))


def test_special_functions_in_the_main_namespace(rng):
    x, a = rng.uniform(0.5, 3, 5), rng.uniform(0.5, 3, 5)
    for name, args in (("i0", (x,)), ("polygamma", (2, x)), ("igamma", (a, x)), ("igammac", (a, x))):
        ours = [weft.asarray(v) if isinstance(v, np.ndarray) else v for v in args]
        theirs = [torch.tensor(v) if isinstance(v, np.ndarray) else v for v in args]
        np.testing.assert_allclose(getattr(weft, name)(*ours).numpy(), getattr(torch, name)(*theirs).numpy(), rtol=1e-9)  # fmt: skip
    drawn = weft.binomial(weft.asarray(np.full(4000, 10.0)), weft.asarray(np.full(4000, 0.3)))
    assert drawn.dtype == "float64" and abs(float(weft.mean(drawn)) - 3.0) < 0.15
    assert weft.binomial(weft.asarray([0.0, 4.0]), weft.asarray([0.5, 1.0])).tolist() == [0.0, 4.0]
    refused(weft.ArgumentError, "random.binomial.range", weft.binomial, weft.asarray([1.5]), weft.asarray([0.5]))  # fmt: skip
    rows = weft.asarray(rng.standard_normal((3, 4)))
    np.testing.assert_allclose(weft.rms_norm(rows, (4,)).numpy(), weft.nn.functional.rms_norm(rows, (4,)).numpy())  # fmt: skip
    assert weft.get_default_device().name == "cpu"
