# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of programs that combine what torch lets one combine: torch.func over whole models, memory shared between
arguments, results and buffers, sizes and numbers that change, operators of others, effects of Python. Results equal eager's."""

import threading

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vmap  # noqa: E402, E501
from torch.nn import functional as F  # noqa: E402

from watched import run  # noqa: E402


def plain(f, **options):
    return f


def on_weft(f, **options):
    return torch.compile(f, backend="weft", options={"prefer": "weft"}, **options)


def mlp(*widths):
    layers = [m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.GELU())]
    return nn.Sequential(*layers[:-1])


def gradients(module):
    return [p.grad.clone() for p in module.parameters() if p.grad is not None]


def ensembles(c):
    models = [mlp(5, 7, 3) for _ in range(3)]
    parameters, buffers = stack_module_state(models)

    def one(parameters, buffers, x):
        return functional_call(models[0], (parameters, buffers), (x,))

    f = c(lambda parameters, x: vmap(one, (0, 0, None))(parameters, buffers, x))
    out = f(parameters, torch.randn(6, 5))
    return [out.detach(), *torch.autograd.grad(out.square().sum(), list(parameters.values()))]


def gradients_of_each_image(c):
    model = nn.Sequential(
        nn.Conv2d(4, 8, 3, groups=2, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
    )  # fmt: skip
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(model, parameters, (x[None],)), y[None])

    f = c(lambda p, x, y: vmap(grad(loss), (None, 0, 0))(p, x, y))
    return list(f(parameters, torch.randn(5, 4, 6, 6), torch.tensor([0, 1, 2, 0, 1])).values())


def jacobians(c):
    model, x = mlp(4, 6, 3).requires_grad_(False), torch.randn(4)
    found = [c(lambda x, t=t: t(model)(x))(x) for t in (jacrev, jacfwd)]
    return [*found, c(lambda x: hessian(lambda y: model(y).sum())(x))(x)]


def products_with_the_hessian(c):
    model, x = mlp(5, 7, 1), torch.randn(6, 5)
    at = {k: v.detach() for k, v in model.named_parameters()}
    along = {k: torch.randn_like(v) for k, v in at.items()}

    def loss(parameters):
        return functional_call(model, parameters, (x,)).square().mean()

    slope, change = c(lambda p, v: jvp(grad(loss), (p,), (v,)))(at, along)
    return [*slope.values(), *change.values()]


def sizes_that_are_results(c):
    norm = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))

    def f(x, n):
        b, t, _ = x.shape
        y = norm(x + torch.arange(t, dtype=x.dtype)[None, :, None] / t).reshape(b * t, -1)
        y = F.pad(y.view(b, t, -1), (0, 0, 0, n))
        return y.sum(1) / (t + n), y[:, ::2].flip(1), b * t

    g, out = c(f, dynamic=True), []
    for b, t, n in ((2, 3, 1), (4, 7, 2), (1, 5, 0), (3, 1, 3)):
        x = torch.randn(b, t, 6, requires_grad=True)
        mean, turned, rows = g(x, n)
        (slope,) = torch.autograd.grad(mean.square().sum() + turned.sum(), x)
        out += [mean.detach(), turned.detach(), torch.tensor(rows), slope]
    return out


def numbers_that_change(c):
    def f(x, a, n, up):
        return (x * a).roll(n, 0) + (n if up else -n), torch.full((n + 1,), a)

    calls = ((1.5, 1, True), (2.25, 2, False), (0.1, 3, True), (float("inf"), 5, True))
    g = c(f)
    return [t for call in calls for t in g(torch.arange(6.0), *call)]


def arguments_over_one_memory(c):
    def f(a, b):
        a.add_(1)
        b.mul_(2)
        return a + b, a.sum()

    out = []
    for make in (
        lambda x: (x, x),
        lambda x: (x, x.t()),
        lambda x: (x[:2], x[2:]),
        lambda x: (x[::2], x[1::2]),
        lambda x: (x.view(-1)[:8].view(2, 4), x[:2]),
    ):
        x = torch.arange(16.0).reshape(4, 4).clone()
        out += [t.clone() for t in c(f)(*make(x))] + [x]
    return out


def results_over_one_memory(c):
    def f(x):
        z = x * 2
        return x.view(-1), z, z.t(), z[0], x

    g, x, out = c(f), torch.randn(3, 4), []
    for _ in range(2):
        flat, z, turned, row, same = g(x)
        flat[0] = 7
        z.add_(1)
        turned.mul_(2)
        row.zero_()
        out += [t.clone() for t in (flat, z, turned, row, same, x)] + [torch.tensor(same is x)]
    return out


def views_of_arguments_written_to(c):
    def f(x):
        x[:, 0] = 0
        x.t().mul_(2)
        x.diagonal().fill_(9)
        x[x > 5] -= 1
        x[[0, 2]] = x[[2, 0]]
        return x.sum()

    g, x = c(f), torch.randn(4, 5)
    return [g(x), g(x), x]


def buffers_over_one_memory(c):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(6))
            self.register_buffer("b", self.a[2:5])
            self.w, self.norm = nn.Parameter(torch.ones(6)), nn.BatchNorm1d(6, momentum=None)

        def forward(self, x):
            self.a += x.detach().mean(0)
            self.b.mul_(2)
            return self.norm(x * self.w) + self.a

    model, out = Net(), []
    f = c(model)
    for _ in range(3):
        y = f(torch.randn(5, 6))
        y.square().sum().backward()
        out.append(y.detach())
    return [*out, *model.buffers(), *gradients(model)]


def chains_in_place(c):
    def f(x):
        y = x.clone()
        y[0].add_(1)
        y[1:].view(-1).add_(0.5)
        windows = y.unfold(0, 2, 1)
        y.mul_(2)
        total = windows.sum()
        y.index_fill_(0, torch.tensor([0]), 3.0)
        y.masked_fill_(y > 1, -1)
        y[:, :3].neg_()
        return y, total, y[:, 3:] + 1

    x = torch.randn(4, 6, requires_grad=True)
    out = c(f)(x)
    return [*(t.detach() for t in out), *torch.autograd.grad(sum(t.square().sum() for t in out), x)]


@torch.library.custom_op("weft_strangers::twist", mutates_args=())
def twist(x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.roll(x, n, 0) * 2


twist.register_fake(lambda x, n: torch.empty_like(x))
twist.register_autograd(
    lambda ctx, g: (torch.roll(g, -ctx.n, 0) * 2, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]),
)


@torch.library.custom_op("weft_strangers::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


def operators_of_others(c):
    def f(x, s):
        y = twist(x.sin(), 1)
        bump(s)
        z = s * 2
        bump(z)
        return y.exp().sum(), z

    g, x, s = c(f), torch.randn(5, 4, requires_grad=True), torch.zeros(3)
    loss, z = g(x, s)
    loss.backward()
    return [loss.detach(), x.grad, s, z, g(x, s)[1]]


def effects_of_python(c):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls, self.seen = nn.Linear(3, 3), 0, []

        def forward(self, x, *, scale=1.0, extra=None):
            self.calls += 1
            self.seen.append(self.calls)
            y = self.layer(x) * scale
            return {"y": y, "extra": None if extra is None else extra + 1, "t": (y.sum(), 3)}

    model = Net()
    f = c(model)
    a = f(torch.randn(2, 3))
    b = f(torch.randn(2, 3), scale=2.5, extra=torch.ones(2))
    d = f(torch.randn(2, 3), scale=0.5)
    return [a["y"], b["y"], b["extra"], d["t"][0], torch.tensor([model.calls, len(model.seen)])]


def parameters_frozen_and_replaced(c):
    model, x = mlp(4, 6, 2), torch.randn(3, 4)
    f, out = c(model), []
    model[0].weight.requires_grad_(False)
    f(x).sum().backward()
    out += gradients(model)
    model[0].weight.data = torch.randn(6, 4)
    out.append(f(x).detach())
    model[2].weight = nn.Parameter(torch.randn(2, 6))
    f(x).sum().backward()
    out += gradients(model)
    model.double()
    return [*out, f(x.double()).detach()]


def branches_inside_graphs(c):
    f = c(lambda x: torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,)))
    return [f(torch.ones(3, 4)), f(-torch.ones(3, 4))]


def empty_tensors(c):
    def f(x, y):
        return (x @ y).relu(), x.sum(), torch.cat([x, x + 1]), x.softmax(-1), y.mean(0)

    g, out = c(f), []
    for a, b, d in ((0, 3, 2), (2, 3, 0), (3, 1, 1)):
        x = torch.randn(a, b, requires_grad=True)
        found = g(x, torch.randn(b, d))
        out += [t.detach() for t in found]
        out += torch.autograd.grad(sum(t.sum() for t in found), x)
    return out


def ragged(c):
    g, out = c(lambda x: (x.sin() * 2).relu()), []
    for n in (3, 4, 6):
        x = torch.nested.nested_tensor([torch.randn(n, 4), torch.randn(2, 4)], layout=torch.jagged)
        out.append(g(x).values())
    return out


PROGRAMS = [
    ragged, ensembles, gradients_of_each_image, jacobians, products_with_the_hessian, sizes_that_are_results, numbers_that_change,
    arguments_over_one_memory, results_over_one_memory, views_of_arguments_written_to, buffers_over_one_memory, chains_in_place,
    operators_of_others, effects_of_python, parameters_frozen_and_replaced, branches_inside_graphs, empty_tensors,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(program):
    want, _ = run(program, plain)
    got, made = run(program, on_weft)
    assert made
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, equal_nan=True)


def test_threads_share_a_compiled_model():
    torch._dynamo.reset()
    model = mlp(4, 6, 2)
    f, xs = on_weft(model), [torch.randn(n % 3 + 2, 4) for n in range(6)]
    out, failed = [None] * len(xs), []

    def work(i):
        try:
            for _ in range(3):
                out[i] = f(xs[i]).detach()
        except Exception as problem:
            failed.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(xs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed
    for x, y in zip(xs, out):
        torch.testing.assert_close(y, model(x).detach())


def test_operators_of_inductor_and_dynamo():
    """Conversions that dynamo writes for numbers that change, and products that decompositions join with a sum."""
    import torch._inductor.inductor_prims  # noqa: F401

    def f(x, y, z):
        return torch.ops.prims.fma(x, y, z), torch.ops.prims.convert_element_type(x, torch.int32)

    given = [torch.randn(3, 5) * 4 for _ in range(3)]
    got, made = run(lambda c: c(f)(*given), on_weft)
    for g, w in zip(got, f(*given), strict=True):
        torch.testing.assert_close(g, w)
    assert all(step.able for p in made for step in p.steps)
