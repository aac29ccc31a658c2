# SPDX-License-Identifier: Apache-2.0
"""Gradients of gradients, batched gradients and copies of functions that torch.compile(backend="weft") made: as eager's."""

import gc
import io
import weakref

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from torch.autograd.functional import hessian, hvp, jacobian  # noqa: E402
from torch.nn import functional as F  # noqa: E402


def on_weft(f, **options):
    return torch.compile(f, backend="weft", options={"prefer": "weft"}, **options)


def randn(*shape, **options):
    return torch.randn(*shape, dtype=torch.float64, **options)


def gradients(*modules):
    return [p.grad.clone() for m in modules for p in m.parameters() if p.grad is not None]


def slope(y, x):
    (found,) = torch.autograd.grad(y, x, create_graph=True)
    return found


def penalties_of_a_critic(c):
    critic = nn.Sequential(nn.Conv2d(2, 4, 3), nn.Softplus(), nn.Flatten(), nn.Linear(16, 1)).double()  # fmt: skip
    optimizer, f, out = torch.optim.Adam(critic.parameters(), 1e-2), c(critic), []
    for _ in range(3):
        x = randn(3, 2, 4, 4, requires_grad=True)
        y = f(x)
        loss = F.softplus(-y).mean() + slope(y.sum(), x).square().sum()
        optimizer.zero_grad()
        loss.backward()
        out += [loss.detach(), *gradients(critic)]
        optimizer.step()
    return out


def penalty_inside(c):
    critic = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    x = randn(4, 5, requires_grad=True)
    f = c(lambda x: ((slope(critic(x).sum(), x).norm(dim=1) - 1) ** 2).mean())
    loss = f(x)
    loss.backward()
    return [loss.detach(), x.grad, *gradients(critic)]


def norms_that_train(c):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh()).double()
    x = randn(5, 3, requires_grad=True)
    y = c(model)(x)
    slope(y.square().sum(), x).square().sum().backward()
    return [y.detach(), x.grad, *gradients(model), *(b.clone() for b in model.buffers())]


def dropout(c):
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.Linear(8, 1)).double()
    x = randn(4, 6, requires_grad=True)
    y = c(model)(x)
    slope(y.sum(), x).square().sum().backward()
    return [y.detach(), x.grad, *gradients(model), torch.rand(3)]


def arguments_made_of_each_other(c):
    x = randn(4, requires_grad=True)
    y = x.exp()
    z = c(lambda x, y: (x * y).sin() * y.sum())(x, y)
    first = slope(z.sum(), x)
    return [first.detach(), torch.autograd.grad(first.pow(2).sum(), x)[0]]


def several_results(c):
    x, w = randn(4, requires_grad=True), randn(4, requires_grad=True)
    a, b, count = c(lambda x, w: (x * w**2, x.sin(), (x > 0).sum()))(x, w)
    first = slope(a.sum() * b.prod(), x)
    return [first.detach(), count, *torch.autograd.grad(first.sum(), (x, w))]


def third(c):
    x = randn(3, requires_grad=True)
    first = slope(c(lambda x: (x.sin() * x**3).sum())(x), x)
    second = slope(first.sum(), x)
    return [first.detach(), second.detach(), torch.autograd.grad(second.sum(), x)[0]]


def derivatives_of_functions(c):
    f, x, v = c(lambda x: (x**3).sum() * x.sin().sum()), randn(4), randn(4)
    return [hessian(f, x), jacobian(f, x), hvp(f, x, v)[1], torch.func.hessian(f)(x)]


def many_gradients_at_once(c):
    f, x = c(lambda x: x.sin() * x.sum()), randn(3, requires_grad=True)
    (found,) = torch.autograd.grad(f(x), x, torch.eye(3, dtype=x.dtype), is_grads_batched=True)
    return [found, jacobian(f, x.detach(), vectorize=True)]


def meta_learning(c):
    model = nn.Linear(3, 1).double()
    f = c(lambda w, b, x, y: F.mse_loss(F.linear(x, w, b), y))
    w, b = model.weight, model.bias
    for _ in range(2):
        dw, db = torch.autograd.grad(f(w, b, randn(6, 3), randn(6, 1)), (w, b), create_graph=True)
        w, b = w - 0.1 * dw, b - 0.1 * db
    f(w, b, randn(6, 3), randn(6, 1)).backward()
    return gradients(model)


def autocast(c):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x = torch.randn(5, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        y = c(model)(x)
    first = slope(y.float().sum(), x)
    first.square().sum().backward()
    return [first.detach().bfloat16(), *(g.bfloat16() for g in gradients(model))]


PROGRAMS = [
    penalties_of_a_critic, penalty_inside, norms_that_train, dropout, arguments_made_of_each_other, several_results,
    third, derivatives_of_functions, many_gradients_at_once, meta_learning, autocast,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program):
    found = []
    for compiled in (lambda f: f, on_weft):
        torch._dynamo.reset()
        torch.manual_seed(0)
        found.append(program(compiled))
    want, got = found
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)


def test_what_a_function_changes_and_reads_is_left_to_torchs_refusal():
    torch._dynamo.reset()

    def f(x, state):
        state.mul_(2)
        return (x * state).sin().sum()

    x = randn(3, requires_grad=True)
    first = slope(on_weft(f)(x, randn(3)), x)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        first.sum().backward()


def test_arguments_that_changed_since_are_left_to_torchs_refusal():
    torch._dynamo.reset()
    x, w = randn(3, requires_grad=True), randn(3)
    y = on_weft(lambda x, w: ((x + w) * 2).sum() + x.sum())(x, w)
    w.add_(1)
    first = slope(y, x)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        first.sum().backward()


def test_arguments_are_released_with_the_gradient():
    torch._dynamo.reset()
    f, w = on_weft(lambda x, w: (x + w).sum()), randn(3, requires_grad=True)
    x = randn(3)
    gone, loss = weakref.ref(x.untyped_storage()), f(x, w)
    storage = weakref.ref(x)
    del x
    loss.backward()
    gc.collect()
    assert storage() is None and gone() is None
    assert loss.grad_fn is not None


def test_compiled_modules_are_pickled():
    torch._dynamo.reset()
    model, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).double(), randn(5, 3)
    want, file = on_weft(model)(x), io.BytesIO()
    torch.save(on_weft(model), file)
    file.seek(0)
    torch.testing.assert_close(torch.load(file, weights_only=False)(x), want)


def test_a_transformers_layers_in_inference():
    import weft.torch as wt

    for options in ({}, {"norm_first": True, "activation": "gelu"}):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options).double().eval()
        attention, x = (
            nn.MultiheadAttention(16, 4, batch_first=True).double().eval(),
            randn(3, 6, 16),
        )
        mask = torch.zeros(6, 6, dtype=torch.bool).triu_(1)
        model = lambda x: (layer(x), layer(x, src_mask=mask), *attention(x, x, x))  # noqa: E731, B023
        with torch.no_grad():
            report = wt.explain(model, x, options={"prefer": "weft"})
            assert report.able == report.nodes, str(report)
            for got, want in zip(on_weft(model)(x), model(x), strict=True):
                torch.testing.assert_close(got, want)


@pytest.mark.parametrize("axes", [0, 1, (0, 2), None])
def test_reductions_of_a_number_everywhere(axes):
    def f(x):
        ones = torch.ones_like(x)
        return (
            ones.sum(axes), (ones * 3).mean(axes), torch.full_like(x, 2.0).amax(() if axes is None else axes),
            torch.zeros_like(x).exp().sum(axes), torch.full_like(x, 0.5).sin().sum(axes, keepdim=True),
        )  # fmt: skip

    for x in (randn(2, 7, 3), torch.randn(2, 7, 3), torch.randn(5, 40, 30)):
        torch._dynamo.reset()
        for got, want in zip(on_weft(f)(x), f(x), strict=True):
            torch.testing.assert_close(got, want)
