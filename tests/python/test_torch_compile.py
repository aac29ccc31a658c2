# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft"): whole graphs, gradients, mutation, sizes, devices, refusals, explain."""

import math
import random
import time

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch as wt  # noqa: E402
from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from weft.torch import _backend, opinfo  # noqa: E402
from weft.torch.graph import HandedBack  # noqa: E402

WEFT = {"prefer": "weft"}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def programs():
    """The programs that the test's compilations make."""
    found = []
    before = _backend.watch(found)
    yield found
    _backend.watch(before)


def compiled(f, **options):
    return torch.compile(f, backend="weft", options=options or WEFT)


def same(got, want):
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, equal_nan=True, check_stride=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "shape, options",
    [
        ((2, 3, 17, 19), ((5, 4), (2, 3), (2, 1))),  # more taps than one kernel reads
        ((2, 3, 21, 19), (3, 2, 1, 2, True)),
        ((3, 16, 16), (2, 2)),
        ((2, 3, 9, 8, 11), (3, 2, 1)),
    ],
    ids=str,
)
def test_max_pools_give_the_places_of_the_largest(shape, options, dtype):
    """Of equals the first, of windows of minus infinity the first element inside, NaN before all."""
    x = torch.randn(shape).mul(4).round().to(dtype)
    x[0, ..., :6] = -math.inf
    x[1, ..., 3, 3] = math.nan
    pool = torch.nn.functional.max_pool3d if len(shape) == 5 else torch.nn.functional.max_pool2d
    f = lambda x: pool(x, *options, return_indices=True)  # noqa: E731
    same(compiled(f)(x), f(x))


@pytest.mark.parametrize("size", [(4, 5), (2, 1)], ids=str)
def test_adaptive_max_pools_of_windows_of_several_lengths(size, programs):
    x = torch.randn(2, 3, 13, 11).mul(4).round()
    f = lambda x: torch.nn.functional.adaptive_max_pool2d(x, size, return_indices=True)  # noqa: E731
    same(compiled(f)(x), f(x))
    assert all(step.where != "torch" for p in programs for step in p.steps)


class Images(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.wide = torch.nn.Conv2d(8, 8, 3, stride=2, groups=2, bias=False)
        self.groups = torch.nn.GroupNorm(2, 8)
        self.out = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 3, 2, 1)
        x = torch.nn.functional.hardswish(self.groups(self.wide(x)))
        x = torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.out(x).log_softmax(-1)


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(11, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 4, 32, 0.0, "gelu", batch_first=True)
        self.out = torch.nn.Linear(16, 11)

    def forward(self, ids):
        x = self.table(ids)
        causal = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.out(self.layer(x, src_mask=causal))


CASES = [
    (Images, lambda: torch.randn(4, 3, 11, 13)),
    (Words, lambda: torch.randint(0, 11, (3, 7))),
]


def step(model, f, x, weights):
    """Results, gradients and buffers of one training step, or the results in evaluation."""
    model.load_state_dict(weights)
    model.zero_grad()
    if not model.training:
        with torch.no_grad():
            return [f(x)]
    out = f(x)
    out.square().mean().backward()
    return [
        out.detach(),
        *(p.grad.clone() for p in model.parameters()),
        *(b.clone() for b in model.buffers()),
    ]


@pytest.mark.parametrize("make,draw", CASES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("prefer", ["weft", "fastest"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_models_as_eager(make, draw, training, prefer, dtype):
    model, x = make().train(training).to(dtype), draw()
    x = x.to(dtype) if x.is_floating_point() else x
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    want = step(model, model, x, weights)
    f = compiled(model, prefer=prefer)
    for _ in range(3):  # the trying call, then the generated code
        same(step(model, f, x, weights), want)


def test_explain_counts_and_reasons():
    model, x = Images(), torch.randn(2, 3, 9, 9)
    report = wt.explain(model, x, options=WEFT)
    assert (
        report.graphs == 2 and report.share == 1.0 and report.taken == report.able == report.nodes
    )
    assert all(p.grad is None for p in model.parameters())
    assert "weft can compute" in str(report)
    report = wt.explain(
        lambda x: torch.special.airy_ai(x) + torch.randn_like(x), torch.eye(3), options=WEFT
    )
    reasons = {name: reason for name, reason in report.reasons()}
    assert reasons["aten.special_airy_ai.default"] == "weft has no rule for this operator"
    assert reasons["aten.randn_like.default"] == "random numbers are torch's"
    assert report.able < report.nodes
    report = wt.explain(torch.nn.Linear(64, 64), torch.randn(64, 64))
    measured = report.seconds()
    assert 0 < measured["chosen"] <= min(measured["weft"], measured["torch"])


def mutate(x, y):
    x.add_(1)
    z = x.view(-1)
    z.mul_(2)
    y[0] = 5
    return z, x.t(), y + x, x.clone(), x


def test_mutated_inputs_and_views():
    f = compiled(mutate)
    x, y = torch.ones(2, 3), torch.zeros(2, 3)
    a, b = x.clone(), y.clone()
    for _ in range(3):
        got, want = f(x, y), mutate(a, b)
        same([*got, x, y], [*want, a, b])
        assert got[0].data_ptr() == x.data_ptr() and got[3].data_ptr() != x.data_ptr()


class Bank(torch.nn.Module):
    """Buffers whose parts are replaced: written in place, no other element is read or copied."""

    def __init__(self, columns, dtype):
        super().__init__()
        whole = torch.arange(9 * 2 * columns).reshape(9, 2 * columns).to(dtype)
        self.register_buffer(
            "rows", whole[1:, ::2]
        )  # neither compact nor at the start of its memory
        self.register_buffer("seen", torch.zeros(8, dtype=torch.bool))
        self.register_buffer("turned", torch.zeros(columns, 8, dtype=dtype).t())
        self.register_buffer("chosen", torch.zeros(8, columns, dtype=dtype))

    def forward(self, at, x):
        self.rows[at] = x
        self.seen[at] = True
        self.turned.scatter_(0, at[:, None].expand(-1, x.shape[1]), x)
        self.chosen.index_put_((at,), x, accumulate=True)
        return self.rows.sum(1), self.seen.sum()


@pytest.mark.parametrize("options", [{}, {"prefer": "weft"}, {"device": "ref"}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_parts_of_buffers_are_replaced(programs, options, dtype):
    bank, theirs = Bank(5, dtype), Bank(5, dtype)
    addresses = [b.data_ptr() for b in bank.buffers()]
    f = torch.compile(bank, backend="weft", options=options)
    with torch.no_grad():
        for i in range(3):
            at, x = torch.tensor([i, 7, (3 * i + 2) % 7]), torch.randint(-9, 9, (3, 5)).to(dtype)
            same([*f(at, x), *bank.buffers()], [*theirs(at, x), *theirs.buffers()])
    assert addresses == [b.data_ptr() for b in bank.buffers()]
    if options == {"prefer": "weft"}:
        where = {
            (op.name, s.where, s.reason) for p in programs for s in p.steps for op in s.unit.ops
        }
        assert ("aten.index_put_.default", "weft", "") in where
        others = {
            (name, why) for name, w, why in where if w == "torch" and name != "aten.copy_.default"
        }
        assert others == {("aten.index_put_.default", "numbers added in place")}


def test_aliased_and_overlapping_inputs():
    f = compiled(lambda a, b: (a.mul_(2), b + 1))
    t = torch.ones(3)
    _, more = f(t, t)
    assert torch.equal(t, torch.full((3,), 2.0)) and torch.equal(more, t + 1)
    base, other = torch.arange(6.0), torch.arange(6.0)
    f = compiled(lambda a, b: (a.add_(1), b * 2)[1])
    assert torch.equal(f(base[:4], base[2:]), (other[:4].add_(1), other[2:] * 2)[1])
    assert torch.equal(base, other)


def test_a_result_never_shares_memory_unless_torch_shares_it():
    f = compiled(lambda x: (x.clone(), x.contiguous() * 1, torch.zeros(3), x.reshape(3)))
    x = torch.ones(3)
    for _ in range(3):
        copy, product, zeros, view = f(x)
        zeros.add_(1)
        assert len({t.data_ptr() for t in (copy, product, zeros, x)}) == 4
        assert view.data_ptr() == x.data_ptr()
    assert torch.equal(f(x)[2], torch.zeros(3))


def test_graph_breaks_and_sizes_that_the_data_decides():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return (y + 1)[y > 0]
        return torch.nonzero(y - 1)

    g = compiled(f)
    for x in (torch.tensor([1.0, -2.0, 3.0]), -torch.ones(4)):
        assert torch.equal(g(x), f(x))


def test_explain_names_graph_breaks():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    report = wt.explain(f, torch.ones(3))
    assert report.graphs == 2 and sum(report.breaks().values()) == 1
    assert "torch ended a graph (1): " in str(report)
    assert not wt.explain(lambda x: x + 1, torch.ones(3)).breaks()


def test_random_numbers_are_those_of_eager():
    def f(x):
        return torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5, True) + torch.randn(4)

    torch.manual_seed(3)
    want = f(torch.ones(4)), f(torch.ones(4))
    g = compiled(f)
    torch.manual_seed(3)
    same((g(torch.ones(4)), g(torch.ones(4))), want)


INPUTS = [
    torch.zeros(0, 3),
    torch.tensor(2.0),
    torch.tensor([float("nan"), float("inf"), -1.0, -0.0]),
    torch.ones(1),
    torch.randn(6, 4)[::2, 1:].t(),
    torch.randn(3).expand(2, 3),
    torch.randn(2, 4, 4, 3).permute(0, 3, 1, 2),
    torch.randn(5).to(torch.float16),
    torch.randn(5).to(torch.bfloat16),
    torch.ones(3, dtype=torch.complex64),
]


@pytest.mark.parametrize("x", INPUTS, ids=lambda x: f"{x.dtype}{tuple(x.shape)}")
def test_odd_inputs(x):
    def f(x):
        return (x * 2 + 1).sum(), x.exp() - x, (x.abs() + 1).log(), x.mean()

    g = compiled(f)
    for _ in range(2):
        same(g(x), f(x))


def test_sizes_that_change(programs, monkeypatch):
    def f(x, w):
        return torch.softmax(x @ w, -1) * x.shape[0]

    g = torch.compile(f, backend="weft", dynamic=True, options=WEFT)
    w = torch.randn(4, 5, requires_grad=True)

    def both(f, n):
        y = f(torch.arange(n * 4.0).reshape(n, 4).sin(), w)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), w)]

    for n in (3, 7, 1, 9, 0, 3, 7):
        same(both(g, n), both(f, n))
    monkeypatch.setattr(_backend, "_MOST_SIZES", 4)
    for n in (10, 11, 12, 13, 14):
        same(both(g, n), both(f, n))
    assert any(
        "combinations of sizes" in p.reason for p in programs if isinstance(p, _backend.HandedOver)
    )


@pytest.mark.parametrize("name", ["ref", "qpu", "opencl:0"])
def test_named_devices(name):
    device = weft.device(name)
    if not device.available:
        pytest.skip(f"{name}: {device.reason}")
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    x = torch.randn(5, 6)
    report = wt.explain(model, x, options={"device": name})
    assert report.share == 1.0, str(report)
    f = compiled(model, device=name)
    for _ in range(2):
        torch.testing.assert_close(f(x), model(x))
        f(
            x
        ).cos().sum().backward()  # the sum of squares of normalised rows has no gradient but rounding
        got = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        model(x).cos().sum().backward()
        for g, p in zip(got, model.parameters()):
            torch.testing.assert_close(g, p.grad)
        model.zero_grad()


def test_a_device_without_float32_leaves_the_work_to_torch():
    x = torch.randn(16, 16)
    report = wt.explain(lambda x: torch.relu(x @ x), x, options={"device": "vta"})
    assert report.able == 0 and all("target.dtype" in reason for _, reason in report.reasons())
    torch.testing.assert_close(
        compiled(lambda x: torch.relu(x @ x), device="vta")(x), torch.relu(x @ x)
    )


@pytest.mark.parametrize(
    "arguments,slug,text",
    [
        ({"options": {"devices": "cpu"}}, "torch.compile.option", "no option is called 'devices'"),
        ({"options": {"prefer": "mine"}}, "torch.compile.prefer", "prefer is 'mine'"),
        ({"options": {"device": "metal"}}, "torch.compile.device", "device metal is not there"),
        ({"options": {"device": "warp"}}, "target.unknown", 'no target "warp"'),
        ({"mode": "overhead"}, "torch.compile.mode", "mode 'overhead'"),
    ],
)
def test_refused_options(arguments, slug, text):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=text) as info:
        torch.compile(lambda x: x + 1, backend="weft", **arguments)(torch.ones(3))
    assert isinstance(info.value.inner_exception, weft.Error)
    assert info.value.inner_exception.code == slug


def test_a_fault_in_a_rule_is_a_reason_and_not_an_exception(monkeypatch):
    from weft.torch import rules

    rules.load()
    monkeypatch.setitem(rules.FUSED, "aten.sinh.default", lambda c, x: 1 // 0)
    monkeypatch.setitem(rules.FUSED, "aten.cosh.default", rules.FUSED["aten.isnan.default"])
    monkeypatch.setitem(rules.ARRAYS, "aten.mm.default", lambda c, a, b: a.sum())
    f, x = (lambda x: (x.sinh() + x.cosh()) @ x), torch.randn(3, 3)
    report = wt.explain(f, x, options=WEFT)
    reasons = dict(report.reasons())
    assert [name for name, reason in reasons if reason.startswith("fault in")] == [
        name for name, _ in reasons
    ]
    assert len(reasons) == 3 and report.nodes - report.able == 3
    torch.testing.assert_close(compiled(f)(x), f(x))


def chain(seed):
    """A random function of 30 operators, with products between them that split groups."""
    draw = random.Random(seed)
    picks = [(draw.randrange(4), draw.random(), draw.random()) for _ in range(30)]

    def f(x, y):
        values = [x, y]
        for kind, a, b in picks:
            u, v = values[int(a * len(values))], values[int(b * len(values))]
            made = [
                lambda: u * 0.5 + v,
                lambda: (u @ v).tanh(),
                lambda: u.softmax(-1),
                lambda: v.t() - u,
            ]
            values.append(made[kind]())
        return sum(values[-4:]), values[10]

    return f


@pytest.mark.parametrize("seed", range(12))
def test_groups_never_need_each_other(seed):
    """Whatever is grouped, every value is made before it is read."""
    f, x, y = (
        chain(seed),
        torch.randn(5, 5, dtype=torch.float64),
        torch.randn(5, 5, dtype=torch.float64),
    )
    g = compiled(f)
    for _ in range(2):
        same(g(x, y), f(x, y))


def test_groups_that_read_many_arrays_are_halved():
    inputs = [torch.randn(4) for _ in range(40)]
    f = lambda *xs: sum(x * i for i, x in enumerate(xs))  # noqa: E731
    g = compiled(f)
    for _ in range(2):
        same([g(*inputs)], [f(*inputs)])


def test_tensors_of_two_devices_are_handed_back():
    module = torch.fx.symbolic_trace(lambda a, b: a + b)
    for node, device in zip(module.graph.nodes, ("cpu", "meta")):
        node.meta["val"] = torch.empty(2, device=device)
    with pytest.raises(HandedBack, match="tensors on cpu and meta"):
        _backend._device_of(module)


SAMPLED = (
    "add sub mul div addmm bmm mm cat gather index_select where clamp pow remainder floor_divide sum mean amax var "
    "prod softmax log_softmax logsumexp cumsum argmax nn.functional.conv2d nn.functional.conv1d "
    "nn.functional.conv_transpose2d nn.functional.layer_norm nn.functional.group_norm nn.functional.batch_norm "
    "nn.functional.gelu nn.functional.silu nn.functional.hardswish nn.functional.softplus nn.functional.elu "
    "nn.functional.max_pool2d nn.functional.avg_pool2d nn.functional.embedding "
    "nn.functional.scaled_dot_product_attention nn.functional.pad nn.functional.cross_entropy tril flip roll "
    "logcumsumexp index_reduce scatter_reduce scatter round dist narrow_copy permute_copy unbind_copy searchsorted "
    "angle cdist nn.functional.pdist median nanmedian cummax cummin sort topk repeat addbmm special.ndtri"
)


WHOLE = (
    "logcumsumexp",
    "dist",
    "narrow_copy",
    "unbind_copy",
    "angle",
    "cdist",
    "special.ndtri",
)  # every operator by weft
SAMPLES = {
    "argmax": 8,
    "nn.functional.avg_pool2d": 6,
    "searchsorted": 40,
}  # the first ones are numbers, have no batch or no elements


@pytest.mark.parametrize("name", SAMPLED.split())
def test_samples_of_torch(name):
    if not opinfo.operators([name]):
        pytest.skip(f"torch {torch.__version__} has no samples of {name}")
    tally = opinfo.run([name], ("float32", "int64"), samples=SAMPLES.get(name, 3), gradients=True)
    assert not tally.failures and not tally.faults, (tally.failures, tally.faults)
    assert tally.total > 0 and tally.with_weft > 0
    if name in WHOLE:
        assert tally.able == tally.nodes, tally.reasons


def test_operators_in_processes_of_their_own(monkeypatch):
    """What does not end is named; the others are counted."""
    run = opinfo.run

    def slow(ops, *given):
        if ops[0].name == "sin":
            time.sleep(60)
        return run(ops, *given)

    monkeypatch.setattr(opinfo, "run", slow)
    tally = opinfo.run_apart(["sin", "neg"], 20, ("float32",), 1, False)
    assert tally.unended == ["sin"] and tally.passed == tally.total == 1


@pytest.mark.parametrize(
    "name,shapes",
    [
        ("add", ((3, 4), (4,))),
        ("mul", ((3, 1), (4,))),
        ("mv", ((3, 4), (4,))),
        ("matmul", ((2, 3, 4), (4, 5))),
    ],
)
def test_opcheck(name, shapes):
    a, b = (torch.randn(s, requires_grad=True) for s in shapes)
    torch.library.opcheck(getattr(torch.ops.weft, name).default, (a, b, None))


def _operators(programs):
    return [op.name for p in programs for step in p.steps for op in step.unit.ops]


@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7), (2, 0, 7), (1, 1, 7)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefer", ["weft", "fastest"])
def test_a_linear_layer_is_one_operator(programs, shape, bias, prefer):
    layer = torch.nn.Linear(7, 3, bias=bias)
    x = torch.randn(shape)
    f = compiled(layer, prefer=prefer)
    with torch.no_grad():
        for _ in range(3):
            same([f(x)], [layer(x)])
    # Nothing computes results without elements.
    assert _operators(programs) == (["aten.linear.default"] if x.numel() else [])


def test_products_that_are_nearly_linear_layers(programs):
    def f(x, w, b):
        flat = x.reshape(-1, 4)
        y = flat @ w.T
        z = torch.addmm(b, flat, w.T)  # a bias of two axes
        u = torch.addmm(b[0], flat, w.T, beta=2)
        return y.reshape(3, 2, 5), y + 1, z, u, flat.sum(0), flat @ w.T.contiguous()

    x, w, b = torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(6, 5)
    for _ in range(3):
        same(compiled(f)(x, w, b), f(x, w, b))
    x, w, b = (t.requires_grad_() for t in (x, w, b))
    outs = [sum(t.square().sum() for t in g(x, w, b)) for g in (compiled(f), f)]
    same(*(torch.autograd.grad(o, (x, w, b)) for o in outs))
