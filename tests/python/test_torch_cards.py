# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") on a card: results of all modes, CUDA graphs, costs that are measured there."""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(f"torch.compile needs torch 2.4, this is {torch.__version__}", allow_module_level=True)  # fmt: skip
if not torch.cuda.is_available():
    pytest.skip("torch has no card here", allow_module_level=True)

from weft.torch import _backend, _graphs  # noqa: E402

F = torch.nn.functional


class Block(torch.nn.Module):
    """Attention, a norm, a product with an epilogue, and a cache that inference writes to."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.norm = heads, torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.drop = torch.nn.Dropout(0.25)
        self.register_buffer("seen", torch.zeros(8, width))

    def forward(self, x, at):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        if not self.training:
            self.seen.index_copy_(0, at, y[:1, 0])
        return x + self.drop(F.gelu(self.out(y), approximate="tanh"))


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, x, at):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(x.mean((2, 3))) + at


CASES = {
    "block": (Block, lambda: torch.randn(2, 17, 64)),
    "images": (Images, lambda: torch.randn(3, 3, 18, 18)),
}


@pytest.fixture(params=sorted(CASES))
def case(request):
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, draw = CASES[request.param]
    return make().cuda(), draw().cuda()


@pytest.fixture
def exact():
    """Properties of modules, which pytest's monkeypatch cannot put back."""
    parts = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [part.allow_tf32 for part in parts]
    for part in parts:
        part.allow_tf32 = False
    yield
    for part, value in zip(parts, before):
        part.allow_tf32 = value


@pytest.fixture
def made(monkeypatch):
    """The programs that become graphs."""
    found = []

    class Noted(_graphs.Graphed):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            found.append(self)

    monkeypatch.setattr(_graphs, "Graphed", Noted)
    return found


def call(model, f, x, at):
    torch.manual_seed(3)
    if not model.training:
        with torch.no_grad():
            return [f(x, at).clone(), *(b.clone() for b in model.buffers())]
    y = f(x, at)
    y.square().sum().backward()
    found = [y.detach().clone(), *(p.grad.clone() for p in model.parameters())]
    model.zero_grad()
    return found


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("options", [{}, {"prefer": "weft"}])
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_as_eager(case, exact, training, options, mode):
    model, x = case[0].train(training), case[1]
    f = torch.compile(model, backend=lambda m, e: _backend.backend(m, e, mode=mode, options=options))  # fmt: skip
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    for i in range(6):  # graphs are recorded in the third call
        at, again = torch.tensor([i], device="cuda"), x + i * 0.01
        model.load_state_dict(weights)
        want = call(model, model, again, at)
        model.load_state_dict(weights)
        for a, b in zip(call(model, f, again, at), want, strict=True):
            torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("training", [False, True])
def test_graphs_are_recorded_and_replayed(case, exact, made, training):
    """Nothing here is a reason to run without a graph."""
    model, x = case[0].train(training), case[1]
    f = torch.compile(model, backend="weft", mode="reduce-overhead")
    at = torch.tensor([2], device="cuda")
    for _ in range(5):
        call(model, f, x, at)
    assert len(made) == (2 if training else 1)
    for program in made:
        assert not program.reason and program.graphs, (program.reason, program.calls)


class Biased(torch.nn.Module):
    """Attention with a bias and dropout, whose random state torch keeps where the forward pass ran."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads, self.qkv = heads, torch.nn.Linear(width, 3 * width)
        self.bias = torch.nn.Parameter(torch.randn(heads, 24, 24))

    def forward(self, x, at):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))  # fmt: skip
        bias = self.bias.expand(len(x), -1, -1, -1)
        return F.scaled_dot_product_attention(q, k, v, bias, dropout_p=0.25).sum(1) + at


@pytest.mark.parametrize("plain", [None, 0, 1])
def test_dropout_of_attention_where_one_pass_is_not_recorded(exact, made, plain):
    """The gradient of a recorded forward pass may be computed by a plain call, and the other way around."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x = Biased().cuda().train(), torch.randn(3, 24, 32, device="cuda")
    at = torch.tensor([2], device="cuda")
    f = torch.compile(model, backend="weft", mode="reduce-overhead")
    for _ in range(6):
        want, got = call(model, model, x, at), call(model, f, x, at)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)
        if plain is not None:
            made[plain].reason = "this pass stays plain"
    assert len(made) == 2 and (plain is not None or all(p.graphs for p in made))


def test_calls_that_the_host_bounds_become_graphs(case, exact, made, monkeypatch):
    model, x = case[0].eval(), case[1]
    monkeypatch.setattr(_graphs, "_HOST_SHARE", 0.0)  # whatever the machine is busy with
    f = torch.compile(model, backend="weft")
    at = torch.tensor([2], device="cuda")
    want = call(model, model, x, at)
    for _ in range(6):
        for a, b in zip(call(model, f, x, at), want, strict=True):
            torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)
    (program,) = made
    assert not program.reason and program.graphs, (program.reason, program.calls)


def test_costs_are_of_the_card(case, exact):
    """Each compared step has the host's and the card's seconds of both sides, all above zero."""
    model, x = case[0].eval(), case[1]
    programs = []
    before = _backend.watch(programs)
    try:
        call(model, torch.compile(model, backend="weft"), x, torch.tensor([1], device="cuda"))
    finally:
        _backend.watch(before)
    compared = [s for s in programs[0].steps if "weft" in s.costs]
    assert compared
    for step in compared:
        for cost in step.costs.values():
            assert 0 < cost.host < 1 and 0 < cost.device < 1
