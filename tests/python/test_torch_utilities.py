# SPDX-License-Identifier: Apache-2.0
"""What PyTorch has beside models: gradcheck, autograd.functional, averaged models; names of special functions in the main namespace."""

import numpy as np
import pytest
from refusal import refused

import weft
import weft.autograd.functional as ours_of
from weft.optim.lr_scheduler import StepLR
from weft.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    update_bn,
)

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
        near(
            getattr(ours_of, name)(f, weft.Tensor(a)), getattr(theirs_of, name)(f, torch.tensor(a))
        )
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
    refused(
        weft.ArgumentError, "autograd.backward.count", weft.autograd.backward, [x], [None, None]
    )
    with weft.autograd.detect_anomaly():
        x.sum().backward()


@pytest.mark.parametrize("exponential", [False, True])
def test_averaged_models(rng, exponential):
    torch.manual_seed(0)
    make = lambda lib: lib.nn.Sequential(
        lib.nn.Linear(4, 5), lib.nn.BatchNorm1d(5), lib.nn.Linear(5, 2)
    )  # noqa: E731
    theirs, ours = make(torch), make(weft)
    wt.load_state_dict(ours, theirs)
    others = {"avg_fn": lambda a, c, n: a * 0.9 + c * 0.1} if exponential else {}
    a = theirs_swa.AveragedModel(theirs, **others)
    b = AveragedModel(ours, **({"multi_avg_fn": get_ema_multi_avg_fn(0.9)} if exponential else {}))
    x = rng.standard_normal((32, 4)).astype("float32")
    optimizers = (
        torch.optim.SGD(theirs.parameters(), lr=0.1),
        weft.optim.SGD(ours.parameters(), lr=0.1),
    )
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
    refused(
        weft.ArgumentError, "optim.swa.strategy", lambda: SWALR(opt, 0.1, anneal_strategy="step")
    )
    refused(weft.ArgumentError, "optim.swa.epochs", lambda: SWALR(opt, 0.1, anneal_epochs=-1))
    refused(weft.ArgumentError, "optim.swa.rates", lambda: SWALR(opt, [0.1, 0.2]))


def test_special_functions_in_the_main_namespace(rng):
    x, a = rng.uniform(0.5, 3, 5), rng.uniform(0.5, 3, 5)
    for name, args in (
        ("i0", (x,)),
        ("polygamma", (2, x)),
        ("igamma", (a, x)),
        ("igammac", (a, x)),
    ):
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


def test_functions_of_matrices_in_their_words(rng):
    m = rng.standard_normal((4, 3))
    near = lambda a, b: np.testing.assert_allclose(np.asarray(a.numpy()), b, rtol=1e-9, atol=1e-12)  # noqa: E731
    L, TL, x, t = weft.linalg, torch.linalg, weft.asarray(m), torch.tensor(m)
    near(L.vector_norm(x, 1), TL.vector_norm(t, 1).numpy())
    near(L.vector_norm(x, 1, 1), TL.vector_norm(t, 1, 1).numpy())
    near(L.vector_norm(x, ord=3, dim=0, keepdim=True), TL.vector_norm(t, ord=3, dim=0, keepdim=True).numpy())  # fmt: skip
    near(L.matrix_norm(x, "nuc"), TL.matrix_norm(t, "nuc").numpy())
    cube = rng.standard_normal((2, 3, 4))
    near(L.matrix_norm(weft.asarray(cube), 1, (2, 0), True), TL.matrix_norm(torch.tensor(cube), 1, (2, 0), True).numpy())  # fmt: skip
    near(L.svd(x, False)[1], TL.svd(t, False)[1].numpy())
    near(L.svd(x, compute_uv=False), np.linalg.svd(m, compute_uv=False))
    near(weft.abs(L.qr(x, "complete")[0]), np.abs(np.linalg.qr(m, "complete")[0]))
    near(weft.abs(L.qr(x, mode="r")), np.abs(np.linalg.qr(m, "r")))
    q, r = L.qr(weft.Tensor(m), "r")
    assert q.size == 0 and r.shape == (3, 3)
    square = m.T @ m
    near(L.eigvalsh(weft.asarray(np.triu(square)), UPLO="U"), np.linalg.eigvalsh(square))
    near(L.eigh(weft.asarray(np.triu(square)), "U")[0], np.linalg.eigvalsh(square))
    near(L.pinv(x, 1e-3), np.linalg.pinv(m, 1e-3))
    near(L.pinv(x, atol=0.9, hermitian=False), TL.pinv(t, atol=0.9).numpy())
    assert int(L.matrix_rank(x, tol=1.0)) == np.linalg.matrix_rank(m, tol=1.0)
    assert int(L.matrix_rank(x, atol=1.0, rtol=0.0)) == int(TL.matrix_rank(t, atol=1.0, rtol=0.0))
    a, b = square + np.eye(3), rng.standard_normal((2, 3))
    near(L.solve(weft.asarray(a), weft.asarray(b), left=False), np.linalg.solve(a.T, b.T).T)
    refused(weft.DTypeError, "python.arguments", lambda: L.svd(x, some=True))
    refused(weft.DTypeError, "python.arguments", lambda: L.vector_norm(x, 2, 0, True, None, None))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_systems_of_factors(rng, dtype):
    a, b = rng.standard_normal((2, 5, 5)), rng.standard_normal((2, 5, 3))
    if dtype == "complex128":
        a, b = a + 1j * rng.standard_normal(a.shape), b + 1j
    lu, pivots = weft.linalg.lu_factor(weft.asarray(a))
    h = lambda x: np.conj(np.swapaxes(x, -1, -2))  # noqa: E731
    for adjoint in (False, True):
        m = h(a) if adjoint else a
        got = weft.linalg.lu_solve(lu, pivots, weft.asarray(b), adjoint=adjoint)
        np.testing.assert_allclose(got.numpy(), np.linalg.solve(m, b), rtol=1e-9)
        got = weft.linalg.lu_solve(lu, pivots, weft.asarray(h(b)), left=False, adjoint=adjoint)
        np.testing.assert_allclose(got.numpy() @ m, h(b), rtol=1e-9)
    ex = weft.linalg.solve_ex(weft.asarray(a), weft.asarray(h(b)), left=False).result
    np.testing.assert_allclose(ex.numpy() @ a, h(b), rtol=1e-9)
    for f in (weft.linalg.lu, weft.linalg.lu_factor):
        refused(weft.ArgumentError, "array.lu.pivot", lambda: f(weft.asarray(a), pivot=False))
    t = weft.Tensor(a)
    x = weft.linalg.lu_solve(*weft.linalg.lu_factor(t), weft.asarray(b))
    weft.real(x * weft.conj(x)).sum().backward()
    s = weft.Tensor(a)
    y = weft.linalg.solve(s, weft.asarray(b))
    weft.real(y * weft.conj(y)).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), s.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_calls_in_their_words(rng):
    x = rng.standard_normal((3, 5)).astype("float32")
    ours, theirs = weft.tensor(x), torch.tensor(x)
    for pair in (weft.sort(ours, descending=True), weft.sort(ours, dim=-1, descending=True)):
        for a, b in zip(pair, torch.sort(theirs, descending=True)):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert weft.sort(weft.asarray(x), descending=True).shape == (3, 5)  # of arrays the standard's
    assert weft.sort(ours, axis=0, descending=True).shape == (3, 5)
    compiled = weft.compile(lambda x: weft.sort(x, descending=True))
    assert compiled(weft.asarray(x)).shape == (3, 5) and len(compiled(ours)) == 2
    g = weft.grad(lambda x: (weft.sort(x, descending=True)[:, 0]).sum())(weft.asarray(x))
    assert g.numpy().sum() == 3.0
    for mode in (None, "floor", "trunc"):
        near = np.testing.assert_allclose
        near(weft.div(ours, 0.7, rounding_mode=mode).numpy(), torch.div(theirs, 0.7, rounding_mode=mode).numpy(), rtol=1e-6)  # fmt: skip
        k = np.array([-7, 7, -6, 5])
        got, want = weft.asarray(k).div(3, rounding_mode=mode), torch.tensor(k).div(3, rounding_mode=mode)  # fmt: skip
        near(got.numpy(), want.numpy(), rtol=1e-6)
        got = weft.tensor(x).div_(0.7, rounding_mode=mode)
        near(got.numpy(), torch.tensor(x).div_(0.7, rounding_mode=mode).numpy(), rtol=1e-6)
    assert weft.divide(weft.asarray(k), 3, rounding_mode="trunc").tolist() == [-2, 2, -2, 1]
    error = refused(weft.ArgumentError, "array.div.rounding", lambda: ours.div(2.0, rounding_mode="up"))  # fmt: skip
    assert "'up'" in str(error)
    np.testing.assert_array_equal(weft.roll(ours, shifts=(1, -2), dims=(0, 1)).numpy(), torch.roll(theirs, (1, -2), (0, 1)).numpy())  # fmt: skip
    assert weft.linspace(0, 1, steps=5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    model = weft.nn.Sequential(weft.nn.Linear(2, 3), weft.nn.ReLU())
    assert (
        next(model.parameters()).shape == (2, 3) and next(model.named_parameters())[0] == "0.weight"
    )
    assert next(model.children()) is model[0] and next(model.modules()) is model
    out = weft.functional_call(model, dict(model.named_parameters()), (weft.ones((4, 2)),))
    np.testing.assert_array_equal(out.numpy(), model(weft.ones((4, 2))).numpy())
    gradient, value_of = weft.func.grad_and_value(lambda x: (x * x).sum())(weft.asarray([1.0, 2.0]))
    assert gradient.tolist() == [2.0, 4.0] and float(value_of) == 5.0


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_images_without_aliases(rng, mode, align):
    x = rng.standard_normal((2, 3, 21, 17)).astype("float32")
    for size in ((8, 9), (30, 11), (1, 1)):
        options = {"size": size, "mode": mode, "align_corners": align, "antialias": True}
        got = weft.nn.functional.interpolate(weft.Tensor(x), **options)
        want = torch.nn.functional.interpolate(torch.tensor(x), **options)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=2e-5)
    error = refused(weft.ArgumentError, "nn.interpolate.antialias", lambda: weft.nn.functional.interpolate(weft.Tensor(x), size=(3, 3), antialias=True))  # fmt: skip
    assert "'nearest'" in str(error)


def test_borders_and_norms(rng):
    x = rng.standard_normal((2, 3, 5, 6, 7)).astype("float32")
    for n in (1, 2, 3):
        part = x[(0,) * (3 - n)]
        for name, mode in (("Circular", "circular"), ("Zero", "constant")):
            a, b = weft.Tensor(part), torch.tensor(part, requires_grad=True)
            got = getattr(weft.nn, f"{name}Pad{n}d")(2)(a)
            want = torch.nn.functional.pad(b, (2,) * 2 * n, mode=mode)
            np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
            (got**3).sum().backward()
            (want**3).sum().backward()
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)
    w = weft.Tensor(x[0, 0, 0])
    (w * w).sum().backward()
    total = weft.nn.utils.get_total_norm([w.grad])
    assert float(total) == pytest.approx(np.linalg.norm(2 * x[0, 0, 0]), rel=1e-5)
    weft.nn.utils.clip_grads_with_norm_([w], 1.0, total)
    assert np.linalg.norm(w.grad.numpy()) == pytest.approx(1.0, rel=1e-4)
    w.grad = weft.Tensor(np.full(w.shape, np.inf, "float32"))
    refused(weft.ArgumentError, "nn.utils.norm", lambda: weft.nn.utils.get_total_norm([w.grad], error_if_nonfinite=True))  # fmt: skip


def test_questions_about_cards():
    found = [d for d in weft.devices() if d.name.startswith("cuda") and d.available]
    assert weft.cuda.device_count() == len(found) and weft.cuda.is_available() == bool(found)
    weft.cuda.manual_seed_all(3)
    first = weft.rand(3).tolist()
    weft.random.seed(3)
    assert weft.rand(3).tolist() == first
    assert weft.cuda.get_device_name(0) == "cuda:0" and weft.cuda.amp.autocast is weft.autocast
    if not found:
        refused(weft.DeviceError, "cuda.absent", weft.cuda.synchronize)


def test_paths_of_imports():
    from weft.nn.parameter import Parameter
    from weft.nn.utils.rnn import pad_sequence

    import weft.nn.init as init

    assert Parameter is weft.nn.Parameter and init is weft.init and callable(pad_sequence)
