# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of programs as users write them: training loops, state, caches, hooks, transforms.

Each program runs eagerly and compiled from the same numbers. Its results must be equal by torch.testing's tolerances. Where a
value has no digits that eager is sure of (a gradient that is zero but for rounding, divided by its own size in Adam), results
must be no further from the same program in float64 than eager's are, but for a factor.
"""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import watched  # noqa: E402

_FURTHER = 4  # times as far from float64 as eager


class Run:
    """How a program runs: its type, and what compiles its functions."""

    def __init__(self, dtype, compiled, autocast=True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.dtype, self.compiled, self.autocast = dtype, compiled, autocast

    def draw(self, *shape):
        return torch.randn(*shape).to(self.dtype)

    def model(self, module):
        return module.to(self.dtype)

    def compile(self, f, **options):
        return torch.compile(f, backend="weft", options={"prefer": "weft"}, **options) if self.compiled else f  # fmt: skip


def gradients(*modules):
    return [p.grad.clone() for m in modules for p in m.parameters() if p.grad is not None]


def state(*modules):
    return [v.detach().clone() for m in modules for v in (*m.parameters(), *m.buffers())]


def counters_and_histories(run):
    """Buffers that a call writes to, one of them at a place that another one says."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("history", torch.zeros(8, 4))

        def forward(self, x):
            y = self.layer(x)
            with torch.no_grad():
                self.count += 1
                self.mean.lerp_(y.mean(0), 0.1)
                self.history[self.count % 8] = y[0]
            return y - self.mean

    model = run.model(Net())
    f, out = run.compile(model), []
    for _ in range(4):
        y = f(run.draw(5, 4))
        y.square().sum().backward()
        out.append(y.detach())
    return out + gradients(model) + state(model)


def packed_sequences(run):
    """Rows of different lengths through a bidirectional LSTM, with padding in the table."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 6, padding_idx=0)
            self.cells = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
            self.out = nn.Linear(10, 3)

        def forward(self, x, lengths):
            rows = nn.utils.rnn.pack_padded_sequence(
                self.table(x), lengths, batch_first=True, enforce_sorted=False
            )
            y, (h, _) = self.cells(rows)
            return self.out(nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]), h

    model, lengths = run.model(Net()), torch.tensor([7, 3, 5, 1])
    x = torch.randint(1, 20, (4, 7)) * (torch.arange(7) < lengths[:, None])
    y, h = run.compile(model)(x, lengths)
    (y.square().mean() + h.sum()).backward()
    return [y.detach(), h.detach(), *gradients(model)]


def whole_steps(run):
    """Loss, backward, clipped gradients and a momentum step as one compiled function, under a scheduler."""
    model = run.model(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    def step(x, target):
        loss = F.smooth_l1_loss(model(x), target)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach(), norm

    f, out = run.compile(step), []
    for _ in range(4):
        out += f(run.draw(5, 6), run.draw(5, 2))
        schedule.step()
    return out + state(model)


def averaged_weights(run):
    """AdamW with moving averages of weights and statistics. The convolution's bias is taken out by the norm behind it."""
    model = run.model(nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten(), nn.Linear(288, 3)))  # fmt: skip
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True
    )
    f, losses = run.compile(model), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.1)
    for _ in range(3):
        x, target = run.draw(6, 2, 8, 9), torch.randint(0, 3, (6,))
        loss = F.cross_entropy(f(x), target, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        losses.append(loss.detach())
    return losses + state(average)


def a_transformer_after_adam(run):
    """The bias of attention's keys has no influence (softmax), so its gradient is rounding and Adam's step has its sign."""
    model = run.model(nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True))
    f, losses = run.compile(model), []
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(3):
        loss = (f(run.draw(3, 6, 16)) - run.draw(3, 6, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses + state(model)


def hooks(run):
    """On modules, on a parameter, on a result."""
    model, seen = run.model(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))), []
    model[0].register_forward_hook(lambda module, given, result: result * 1.5)
    model[2].register_full_backward_hook(lambda module, inner, outer: (inner[0] * 2,))
    model[0].weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
    x = run.draw(3, 4).requires_grad_()
    y = run.compile(model)(x)
    y.register_hook(lambda g: seen.append(g.clone()))
    y.square().sum().backward()
    return [y.detach(), x.grad, *seen, *gradients(model)]


def transforms(run):
    """Gradients of single examples, and second derivatives, by torch.func."""
    model = run.model(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)))
    weights = {k: v.detach() for k, v in model.named_parameters()}

    def loss(weights, x, target):
        y = torch.func.functional_call(model, weights, (x,)).squeeze(-1)
        return (y - target).square().mean()

    each = run.compile(lambda w, x, t: torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(w, x, t))  # fmt: skip
    bend = run.compile(lambda x: torch.func.hessian(lambda x: x.pow(3).sin().sum())(x))
    return [*each(weights, run.draw(7, 4), run.draw(7)).values(), bend(run.draw(4))]


def tables(run):
    """Rows kept short, padding, sums of bags."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Embedding(12, 5, padding_idx=3, max_norm=1.0)
            self.bags = nn.EmbeddingBag(12, 5, mode="sum", padding_idx=0)

        def forward(self, at, offsets):
            return self.rows(at).sum(1) * self.bags(at.flatten(), offsets)

    model = run.model(Net())
    f, out = run.compile(model), []
    for _ in range(2):
        y = f(torch.randint(0, 12, (4, 6)), torch.arange(0, 24, 6))
        y.square().sum().backward()
        out.append(y.detach())
    return out + gradients(model) + state(model)


def norms_of_weights(run):
    """Weight norm, old and new, and spectral norm, whose iterations are state."""
    new = nn.utils.parametrizations
    model = run.model(nn.Sequential(
        new.weight_norm(nn.Conv1d(3, 6, 3, padding=2, dilation=2)), nn.ELU(), nn.Flatten(1),
        new.spectral_norm(nn.Linear(72, 8), n_power_iterations=2), nn.utils.weight_norm(nn.Linear(8, 4)),
    ))  # fmt: skip
    f, out = run.compile(model), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for _ in range(3):
        y = f(run.draw(2, 3, 12))
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()
        out.append(y.detach())
    return out + gradients(model) + state(model)


def attention_over_a_graph(run):
    """Nodes that sum over edges: largest, sums and gathers by position."""
    project, score = run.model(nn.Linear(5, 6)), run.model(nn.Linear(12, 1))

    def attend(x, edges):
        h, (source, target) = project(x), edges
        k = F.leaky_relu(score(torch.cat([h[source], h[target]], -1)).squeeze(-1), 0.2)
        top = torch.full((7,), -1e9, dtype=k.dtype).scatter_reduce(0, target, k, "amax")
        k = (k - top[target]).exp()
        total = torch.zeros(7, dtype=k.dtype).index_add(0, target, k)
        share = (k / total[target].clamp_min(1e-9)).unsqueeze(-1)
        return torch.zeros_like(h).index_add(0, target, h[source] * share)

    x = run.draw(7, 5).requires_grad_()
    y = run.compile(attend)(x, torch.randint(0, 7, (2, 20)))
    y.square().sum().backward()
    return [y.detach(), x.grad, *gradients(project, score)]


def decoding_with_a_cache(run):
    """Keys and values written into memory of the caller at a place that the call gets."""
    project, out = run.model(nn.Linear(8, 24)), run.model(nn.Linear(8, 8))

    def step(x, keys, values, at):
        q, k, v = project(x).chunk(3, -1)
        keys.index_copy_(1, at, k[:, None])
        values.index_copy_(1, at, v[:, None])
        live = torch.arange(keys.shape[1]) <= at
        found = F.scaled_dot_product_attention(
            q[:, None, None], keys[:, None], values[:, None], attn_mask=live[None, None, None]
        )
        return out(found.reshape(x.shape))

    f, x, found = run.compile(step), run.draw(2, 8), []
    keys, values = (torch.zeros(2, 6, 8, dtype=run.dtype) for _ in range(2))
    with torch.no_grad():
        for i in range(6):
            x = f(x, keys, values, torch.tensor([i]))
            found.append(x)
    return [*found, keys, values]


def spectrograms(run):
    """Sizes, phases where there is something, and the signal back."""
    window = torch.hann_window(64).to(run.dtype)

    def transform(x):
        z = torch.stft(x, 64, 16, window=window, return_complex=True)
        size = z.abs()
        # The first frame is its own mirror image: its parts have no imaginary part but rounding.
        phase = torch.where(size > 1, torch.angle(z), 0.0)[..., 1:-1]
        return size, phase.sin(), phase.cos(), torch.istft(z, 64, 16, window=window)

    return list(run.compile(transform)(run.draw(2, 640)))


def densities(run):
    """torch.distributions with gradients."""

    def f(x):
        normal = torch.distributions.Normal(x, x.exp())
        plain = torch.distributions.Normal(torch.zeros_like(x), torch.ones_like(x))
        return (
            torch.distributions.kl_divergence(normal, plain).sum(-1),
            torch.distributions.Dirichlet(x.exp()).log_prob(x.softmax(-1)),
            torch.distributions.Categorical(logits=x).entropy(),
            torch.distributions.Gamma(x.exp(), x.exp() + 1).log_prob(x.exp()),
        )

    x = run.draw(4, 5).requires_grad_()
    found = run.compile(f)(x)
    sum(v.sum() for v in found).backward()
    return [*(v.detach() for v in found), x.grad]


PROGRAMS = [
    counters_and_histories, packed_sequences, whole_steps, averaged_weights, a_transformer_after_adam, hooks,
    transforms, tables, norms_of_weights, attention_over_a_graph, decoding_with_a_cache, spectrograms, densities,
]  # fmt: skip
NOISE = {averaged_weights, a_transformer_after_adam}  # the programs that are judged by float64


def compiled(program):
    """(results, the weft programs that were made)."""
    return watched.run(program, Run(torch.float32, True))


def no_further(got, want, exact):
    mine, theirs = ((x.double() - exact).abs().max() for x in (got, want))
    assert mine <= _FURTHER * theirs, (mine, theirs)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_eager(program):
    want = program(Run(torch.float32, False))
    got, made = compiled(program)
    assert sum(step.able for p in made for step in p.steps) > 0
    exact = program(Run(torch.float64, False)) if program in NOISE else want
    for g, w, e in zip(got, want, exact, strict=True):
        if program in NOISE and not torch.allclose(g, w, rtol=1.3e-6, atol=1e-5):
            no_further(g, w, e)
        else:
            torch.testing.assert_close(g, w, equal_nan=True)


def test_dropout_in_checkpoints_is_that_of_eager():
    from torch.utils.checkpoint import checkpoint

    def program(run):
        block = run.model(nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Dropout(0.2)))
        f = run.compile(lambda x: x + checkpoint(block, x, use_reentrant=False))
        x = run.draw(5, 6).requires_grad_()
        torch.manual_seed(5)
        y = f(x)
        y.square().mean().backward()
        return [y.detach(), x.grad, *gradients(block)]

    got, made = compiled(program)
    torch.testing.assert_close(got, program(Run(torch.float32, False)))
    reasons = {step.reason for p in made for step in p.steps if not step.able}
    assert reasons <= {"random numbers are torch's"}


def test_sparse_gradients_are_handed_back():
    def program(run):
        table, out = run.model(nn.Embedding(15, 4, sparse=True)), run.model(nn.Linear(4, 2))
        optimizer, f = torch.optim.SparseAdam(table.parameters(), 1e-2), run.compile(lambda i: out(table(i).mean(1)))  # fmt: skip
        for _ in range(2):
            f(torch.randint(0, 15, (3, 5))).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return state(table) + gradients(out)

    got, made = compiled(program)
    torch.testing.assert_close(got, program(Run(torch.float32, False)))
    assert any("sparse_coo" in getattr(p, "reason", "") for p in made)


def test_bfloat16_under_autocast():
    """As near to float64 as eager."""

    def program(run):
        model = run.model(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4)))  # fmt: skip
        f, x = run.compile(model), run.draw(8, 16)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=run.autocast):
            y = f(x)
        F.cross_entropy(y.to(run.dtype), torch.arange(8) % 4).backward()
        return [y.detach(), *gradients(model)]

    got, _ = compiled(program)
    want = program(Run(torch.float32, False))
    assert got[0].dtype == want[0].dtype == torch.bfloat16
    exact = program(Run(torch.float64, False, autocast=False))
    for g, w, e in zip(got, want, exact, strict=True):
        no_further(g, w, e)


def test_gradients_of_attention_that_cancel():
    """Where one key has nearly all of the weight, the gradient is a difference of nearly equal numbers."""

    def program(run):
        torch.manual_seed(1)
        given = [(torch.rand(4, n, 8) * 18 - 9).to(run.dtype).requires_grad_() for n in (3, 6, 6)]
        f = run.compile(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
        out = f(*given)
        out.backward(torch.cos(torch.arange(out.numel()).to(run.dtype)).reshape(out.shape))
        return [x.grad for x in given]

    got, _ = compiled(program)
    want, exact = (program(Run(t, False)) for t in (torch.float32, torch.float64))
    for g, w, e in zip(got, want, exact, strict=True):
        mine, theirs = ((x.double() - e).abs().mean() for x in (g, w))
        assert mine <= 1.5 * theirs, (mine, theirs)
