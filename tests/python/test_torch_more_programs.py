# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of programs that lean on more of torch than layers: parametrizations, hooks, autograd functions, exported
programs, torch.func on both sides of a compiled function, complex modules, views changed in place, sizes that change. Results equal
eager's, with their strides, and nothing in weft fails on the way."""

import collections

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.utils import parametrizations, parametrize  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from watched import run  # noqa: E402


def gradients(*modules):
    return [p.grad.clone() for m in modules for p in m.parameters() if p.grad is not None]


def parametrized_symmetric(c):
    class Sym(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    l = nn.Linear(5, 5)
    parametrize.register_parametrization(l, "weight", Sym())
    f = c(l)
    x = torch.randn(7, 5)
    y = f(x)
    y.square().mean().backward()
    return [y.detach(), *gradients(l)]


def spectral_norm(c):
    l = parametrizations.spectral_norm(nn.Linear(6, 4))
    f = c(l)
    x = torch.randn(3, 6)
    out = []
    for _ in range(3):
        y = f(x)
        y.sum().backward()
        out.append(y.detach())
    return out + gradients(l) + [b.clone() for b in l.buffers()]


def orthogonal(c):
    l = parametrizations.orthogonal(nn.Linear(5, 5, bias=False))
    f = c(l)
    x = torch.randn(3, 5)
    y = f(x)
    y.square().sum().backward()
    return [y.detach()]


def weight_norm_conv(c):
    m = nn.Sequential(
        parametrizations.weight_norm(nn.Conv1d(3, 5, 3)), nn.ELU(), nn.Conv1d(5, 2, 3, dilation=2)
    )
    f = c(m)
    x = torch.randn(2, 3, 17, requires_grad=True)
    y = f(x)
    y.cos().sum().backward()
    return [y.detach(), x.grad, *gradients(m)]


def shared_embeddings(c):
    class LM(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(11, 6, padding_idx=0)
            s.l = nn.Linear(6, 6)
            s.o = nn.Linear(6, 11, bias=False)
            s.o.weight = s.e.weight

        def forward(s, i):
            return s.o(torch.tanh(s.l(s.e(i))))

    m = LM()
    f = c(m)
    i = torch.randint(0, 11, (4, 5))
    opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True)
    out = []
    for _ in range(3):
        opt.zero_grad()
        l = F.cross_entropy(
            f(i).flatten(0, 1), i.flatten().roll(1), ignore_index=0, label_smoothing=0.1
        )
        l.backward()
        opt.step()
        out.append(l.detach())
    return out + [p.detach().clone() for p in m.parameters()]


def two_modules_share(c):
    a = nn.Linear(4, 4)
    b = nn.Sequential(a, nn.Tanh())
    d = nn.Sequential(nn.LayerNorm(4), a)
    f, g = c(b), c(d)
    x = torch.randn(3, 4)
    (f(x).sum() + g(x * 2).square().sum()).backward()
    return gradients(b, d[0])


def full_backward_hooks(c):
    m = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    seen = []
    m[0].register_forward_hook(lambda mod, i, o: o * 2)
    m[2].register_forward_pre_hook(lambda mod, i: (i[0] + 1,))
    m[2].register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,))
    m[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
    f = c(m)
    x = torch.randn(3, 4)
    f(x).square().sum().backward()
    return gradients(m)


def tensor_hooks_inside(c):
    def f(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda g: g * 5)
        return (y.sin() * y).sum()

    x = torch.randn(4, requires_grad=True)
    c(f)(x).backward()
    return [x.grad]


def custom_function(c):
    class STE(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return torch.round(x * k) / k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() < 1), None

    x = torch.randn(5, 3, requires_grad=True)
    y = c(lambda x: STE.apply(x, 8).pow(2))(x)
    y.sum().backward()
    return [y.detach(), x.grad]


def data_dependent_shape(c):
    def f(x):
        k = x[x > 0]
        i = torch.nonzero(x < 0)
        u, n = torch.unique(x.round(), return_counts=True)
        return k.sum() * 2, i, u, n, torch.where(x > 0)[0], x.masked_select(x > 0.5)

    return list(c(f)(torch.randn(4, 5)))


def item_in_graph(c):
    def f(x, n):
        k = int(n.item())
        return x[:k].cumsum(0), x.new_zeros(k + 1)

    x = torch.randn(6, 2)
    return [t for k in (2, 5) for t in c(f)(x, torch.tensor(k))]


def dynamic_batch(c):
    m = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )
    f = c(m, dynamic=True)
    out = []
    for n, s in ((2, 9), (3, 9), (5, 12), (1, 7)):
        y = f(torch.randn(n, 3, s, s))
        y.sum().backward()
        out.append(y.detach())
    return out + gradients(m) + [b.clone() for b in m.buffers()]


def mark_dynamic_ops(c):
    def f(x, y):
        n = x.shape[0]
        return (
            (x.view(n // 2, 2, -1).transpose(0, 1).reshape(n, -1) @ y.T)[: n - 1],
            torch.arange(n) * 2,
            x.flip(0).unfold(0, 2, 1).amax(-1),
        )

    g = c(f, dynamic=True)
    return [t for n in (4, 6, 10) for t in g(torch.randn(n, 3), torch.randn(5, 3))]


def in_place_on_views(c):
    def f(x):
        y = x.clone()
        v = y.view(2, -1)
        v[0].mul_(2)
        y.t()[1:3].add_(v.sum())
        y.diagonal().zero_()
        v[:, ::2].clamp_(min=-0.5)
        w = y.unbind(0)[1]
        w += 1
        return y, v, w.exp_()

    x = torch.randn(4, 4, requires_grad=True)

    def g(x):
        y = x * 1
        y[1:].mul_(3)
        y.narrow(1, 0, 2).mul_(2)
        return y

    z = c(g)(x)
    z.sum().backward()
    return [*c(f)(torch.randn(4, 4)), z.detach(), x.grad]


def mutated_arguments(c):
    def f(a, b, d):
        a.add_(b)
        b[0] = a.sum()
        d.append(a * b)
        a.t_()
        return a @ b

    a, b, d = torch.randn(3, 3), torch.randn(3, 3), []
    r = c(f)(a, b, d)
    return [a, b, r, d[0]]


def random_ops(c):
    def f(x):
        a = torch.rand_like(x)
        b = torch.randn(3, 4)
        d = F.dropout(x, 0.3)
        e = torch.bernoulli(x.sigmoid())
        g = torch.randint(0, 9, (5,))
        h = torch.randperm(7)
        n = torch.normal(x, 1.0)
        u = x.clone().uniform_(-1, 1)
        m = torch.multinomial(x.softmax(-1), 2)
        k = F.gumbel_softmax(x, hard=True)
        r = F.rrelu(x, training=True)
        return (
            a,
            b,
            d,
            e,
            g,
            h,
            n,
            u,
            m,
            k,
            r,
            F.alpha_dropout(x, 0.2, True),
            F.feature_dropout if False else x.clone().exponential_(),
        )

    g = c(f)
    x = torch.randn(3, 4)
    return [t for _ in range(3) for t in g(x)]


def func_over_compiled(c):
    f = c(lambda w, x: torch.tanh(x @ w).square().sum())
    w, x = torch.randn(4, 3), torch.randn(5, 4)
    return [
        grad(f)(w, x),
        vmap(grad(f), (None, 0))(w, x[:, None]),
        jacrev(lambda w: c(torch.sin)(w))(w),
    ]


def compiled_over_func(c):
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    p = dict(m.named_parameters())
    u = lambda x: functional_call(m, p, (x[None],)).squeeze()
    lap = c(lambda xs: vmap(lambda x: hessian(u)(x).diagonal().sum())(xs))
    j = c(lambda x, t: jvp(lambda x: torch.linalg.norm(x.sin(), dim=-1), (x,), (t,)))
    a, b = j(torch.randn(4, 3), torch.randn(4, 3))
    return [lap(torch.randn(6, 3)).detach(), a, b]


def exported(c):
    m = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2),
        nn.BatchNorm2d(4),
        nn.Hardswish(),
        nn.Flatten(),
        nn.LazyLinear(3),
    )
    m(torch.randn(2, 1, 9, 9))
    m.eval()
    b = torch.export.Dim("b", min=2, max=16)
    e = torch.export.export(m, (torch.randn(2, 1, 9, 9),), dynamic_shapes=({0: b},))
    f = c(e.module())
    x = [torch.randn(n, 1, 9, 9) for n in (2, 5)]
    d = c(e.run_decompositions().module())
    with torch.no_grad():
        return [g(x) for x in x for g in (f, d)]


def complex_module(c):
    class C(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(torch.randn(5, 4, dtype=torch.cfloat))
            s.b = nn.Parameter(torch.randn(5, dtype=torch.cfloat))

        def forward(s, x):
            y = F.linear(x, s.w, s.b)
            return torch.fft.ifft(
                torch.polar(y.abs().relu(), y.angle()) * torch.exp(1j * y.imag)
            ).abs()

    m = C()
    f = c(m)
    x = torch.randn(3, 4, dtype=torch.cfloat)
    y = f(x)
    y.square().sum().backward()
    return [y.detach(), *gradients(m)]


def complex_views(c):
    def f(x):
        r = torch.view_as_real(x).clone()
        r[..., 0].mul_(2)
        z = torch.view_as_complex(r)
        q = x.conj().mT @ x
        return (
            z,
            q,
            q.real,
            torch.linalg.solve(q + torch.eye(4), x.mT[:, :3].conj().contiguous()[:4]),
            x.imag.sum(),
            torch.angle(z),
            torch.stft(x.real.flatten(), 8, return_complex=True, window=torch.hann_window(8)),
        )

    return list(c(f)(torch.randn(4, 4, dtype=torch.cdouble)))


def lstm_packed(c):
    m = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)
    h = nn.Linear(10, 2)

    def f(x):
        y, (a, b) = m(x)
        return h(y.max(1).values), a, b

    x = torch.randn(3, 6, 4)
    y, a, b = c(f)(x)
    (y.sum() + a.sum()).backward()
    return [y.detach(), a.detach(), b.detach(), *gradients(m, h)]


def gru_cell_loop(c):
    cell = nn.GRUCell(3, 4)

    def f(xs, h):
        out = []
        for x in xs:
            h = cell(x, h)
            out.append(h)
        return torch.stack(out)

    y = c(f)(torch.randn(5, 2, 3), torch.zeros(2, 4))
    y.square().sum().backward()
    return [y.detach(), *gradients(cell)]


def checkpointed(c):
    b = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.2), nn.SiLU()) for _ in range(3))

    def f(x):
        for m in b:
            x = checkpoint(m, x, use_reentrant=False) + x
        return x

    x = torch.randn(4, 6, requires_grad=True)
    y = c(f)(x)
    y.sum().backward()
    return [y.detach(), x.grad, *gradients(b)]


def clip_accumulate(c):
    m = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    f = c(lambda x, y: F.huber_loss(m(x), y))
    out = []
    for k in range(3):
        (f(torch.randn(5, 4), torch.randn(5, 1)) / 3).backward()
    n = c(lambda: nn.utils.clip_grad_norm_(m.parameters(), 0.01))()
    return [n, *gradients(m)]


def moe_routing(c):
    ex = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
    gate = nn.Linear(6, 4)

    def f(x):
        w, i = gate(x).softmax(-1).topk(2)
        out = torch.zeros_like(x)
        for k, e in enumerate(ex):
            r, s = torch.where(i == k)
            out.index_add_(0, r, e(x[r]) * w[r, s, None])
        return out

    x = torch.randn(9, 6)
    y = c(f)(x)
    y.square().sum().backward()
    return [y.detach(), *gradients(ex, gate)]


def flex_masks(c):
    q = torch.randn(2, 2, 9, 8, requires_grad=True)
    k, v = torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 5)

    def f(q, k, v):
        m = torch.ones(9, 7, dtype=torch.bool).tril(1)
        b = torch.randn(1, 2, 9, 7)
        return F.scaled_dot_product_attention(q, k, v, m) + F.scaled_dot_product_attention(
            q, k, v, b, scale=0.3
        ), F.scaled_dot_product_attention(q, q, q, is_causal=True)

    a, b = c(f)(q, k, v)
    (a.sum() + b.square().sum()).backward()
    return [a.detach(), b.detach(), q.grad]


def unets(c):
    class U(nn.Module):
        def __init__(s):
            super().__init__()
            s.d = nn.Conv2d(2, 6, 3, 2, 1)
            s.m = nn.Conv2d(6, 6, 3, padding="same", padding_mode="reflect")
            s.u = nn.ConvTranspose2d(6, 2, 4, 2, 1)
            s.n = nn.InstanceNorm2d(6, affine=True)
            s.p = nn.PixelShuffle(2)

        def forward(s, x):
            y = F.leaky_relu(s.n(s.d(x)), 0.2)
            z = s.u(F.silu(s.m(y)) + y)
            i = F.interpolate(z, scale_factor=1.5, mode="bilinear", align_corners=False)
            return (
                torch.cat([x, z], 1),
                i,
                F.grid_sample(
                    z,
                    F.affine_grid(torch.eye(2, 3).expand(len(x), 2, 3), z.shape, False),
                    padding_mode="border",
                ),
            )

    m = U()
    f = c(m)
    o = f(torch.randn(2, 2, 10, 10))
    sum(t.square().mean() for t in o).backward()
    return [t.detach() for t in o] + gradients(m)


def channels_last(c):
    m = nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU6(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.AvgPool2d(2, ceil_mode=True),
    ).to(memory_format=torch.channels_last)
    f = c(m)
    x = torch.randn(2, 3, 14, 15).to(memory_format=torch.channels_last)
    y = f(x)
    assert_strides = torch.tensor(y.stride())
    y.sin().sum().backward()
    return [y.detach(), assert_strides, *gradients(m)]


def nested_outputs(c):
    T = collections.namedtuple("T", "a b")

    def f(d, *, k=2.0, s=None):
        x = d["x"]
        return {
            "t": T(x * k, None),
            "l": [x, (x.sum(), 3, "s")],
            "s": None if s is None else s + 1,
            "same": x,
        }

    x = torch.randn(3)
    r = c(f)({"x": x}, k=3.5)
    r2 = c(f)({"x": x}, s=torch.ones(2))
    return [
        r["t"].a,
        r["l"][0],
        r["l"][1][0],
        torch.tensor(r["same"] is x),
        r2["s"],
        torch.tensor(r["t"].b is None),
    ]


def integer_math(c):
    def f(a, b):
        return (
            a // b,
            a % b,
            torch.div(a, b, rounding_mode="trunc"),
            torch.fmod(a, b),
            a & b,
            a ^ b,
            ~a,
            a << (b.abs() % 4),
            a >> 1,
            torch.gcd(a, b),
            a.bool() | b.bool(),
            (a.float() / b).floor(),
            a.to(torch.uint8),
            a.to(torch.int8) * 3,
            a.pow(2),
            a**0.5,
            a.true_divide(b),
            torch.bitwise_left_shift(a, 2),
            a.sum(dtype=torch.int32),
            a.prod(0),
            a.float().long(),
            a.remainder(-3),
            torch.lcm(a, b),
        )

    a = torch.randint(-99, 99, (5, 6))
    b = torch.randint(1, 9, (5, 6)) * (torch.randint(0, 2, (5, 6)) * 2 - 1)
    return list(c(f)(a, b))


def bn_momentum_none_sync(c):
    m = nn.Sequential(
        nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False)
    )
    f = c(m)
    out = []
    for _ in range(3):
        out.append(f(torch.randn(6, 4)).detach())
    m.eval()
    out.append(f(torch.randn(2, 4)).detach())
    return out + [b.clone() for b in m.buffers()]


def strided_and_overlapping(c):
    def f(x):
        return (
            x.as_strided((3, 3), (2, 1)).sum(0),
            x.unfold(0, 4, 2) @ torch.ones(4),
            torch.as_strided(x, (2, 5), (0, 1), 3).clone(),
            x.expand(3, -1).contiguous(),
            x.view(torch.int32),
            x[None].expand(2, -1).T,
        )

    return list(c(f)(torch.randn(12)))


def no_grad_and_detach(c):
    m = nn.Linear(3, 3)

    def f(x):
        y = m(x)
        with torch.no_grad():
            k = y.max() * 2
        return (y * k).sum() + y.detach().sum() + (m.weight.detach() * x[0]).sum()

    x = torch.randn(2, 3, requires_grad=True)
    c(f)(x).backward()
    return [x.grad, *gradients(m)]


def ema_swa(c):
    from torch.optim.swa_utils import AveragedModel

    m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    a = AveragedModel(
        m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    f = c(m)
    out = []
    for _ in range(3):
        f(torch.randn(4, 3)).sum().backward()
        a.update_parameters(m)
    return [t.detach().clone().float() for t in (*a.parameters(), *a.buffers())]


def beam_search(c):
    e = nn.Embedding(9, 5)
    o = nn.Linear(5, 9)

    def step(seq, score):
        l = o(e(seq[:, -1])).log_softmax(-1) + score[:, None]
        s, i = l.flatten().topk(3)
        return torch.cat([seq[i // 9], (i % 9)[:, None]], 1), s

    g = c(step)
    seq, s = torch.zeros(3, 1, dtype=torch.long), torch.tensor([0.0, -9, -9])
    with torch.no_grad():
        for _ in range(5):
            seq, s = g(seq, s)
    return [seq, s]


def linalg_mix(c):
    def f(a, b):
        s = a @ a.mT + torch.eye(4)
        L = torch.linalg.cholesky(s)
        return (
            L,
            torch.linalg.solve_triangular(L, b, upper=False),
            torch.linalg.inv(s),
            torch.linalg.det(a),
            torch.linalg.slogdet(s),
            torch.linalg.matrix_norm(a),
            torch.linalg.vector_norm(a, 3, -1),
            torch.linalg.eigvalsh(s),
            torch.linalg.lstsq(a, b).solution,
            torch.linalg.pinv(a),
            torch.linalg.matrix_exp(a),
            torch.einsum("bij,bjk,bi->bk", a, b, a[..., 0]),
            torch.cdist(a, a),
            torch.kron(a[0], b[0]),
            torch.linalg.matrix_power(a, 3),
            torch.cross(a[..., :3], b[..., :3], dim=-1),
        )

    a, b = torch.randn(2, 4, 4, dtype=torch.double), torch.randn(2, 4, 4, dtype=torch.double)
    r = c(f)(a, b)
    return [t for x in r for t in (x if isinstance(x, tuple) else (x,))]


def eagerly(f, **options):
    return f


def on_weft(f, **options):
    return torch.compile(f, backend="weft", options={"prefer": "weft"}, **options)


PROGRAMS = [parametrized_symmetric, spectral_norm, orthogonal, weight_norm_conv, shared_embeddings, two_modules_share, full_backward_hooks, tensor_hooks_inside, custom_function, data_dependent_shape, item_in_graph, dynamic_batch, mark_dynamic_ops, in_place_on_views, mutated_arguments, random_ops, func_over_compiled, compiled_over_func, exported, complex_module, complex_views, lstm_packed, gru_cell_loop, checkpointed, clip_accumulate, moe_routing, flex_masks, unets, channels_last, nested_outputs, integer_math, bn_momentum_none_sync, strided_and_overlapping, no_grad_and_detach, ema_swa, beam_search, linalg_mix]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(program):
    want, _ = run(program, eagerly)
    got, made = run(program, on_weft)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, equal_nan=True)
        for n, a, b in zip(w.shape, g.stride(), w.stride()):
            assert n <= 1 or w.numel() == 0 or a == b, (g.stride(), w.stride())
    for program in made:
        assert not getattr(program, "faults", ())
        assert not [s.reason for s in program.steps if s.reason.startswith("fault")]
