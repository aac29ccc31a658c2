# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft", mode="reduce-overhead"): when calls are replays, and what they give.

A card records and replays in the driver. Here the recording is a stand-in that computes into the memory of the recorded
results, so that everything around it is tested on the host: which inputs are copied, results that somebody holds,
gradients, changed addresses.
"""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from weft.torch import _graphs  # noqa: E402


class Recorder:
    def __init__(self):
        self.recorded = self.replayed = 0

    def __call__(self, run, args, home):
        self.recorded += 1
        before = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        results = [r.clone() if isinstance(r, torch.Tensor) and not any(r is a for a in args) else r for r in run(list(args))]  # fmt: skip
        own = [r.detach() if isinstance(r, torch.Tensor) else r for r in results]
        given = [a.detach() if isinstance(a, torch.Tensor) else a for a in args]
        # The graph of a card knows addresses, not tensors: views that count as no use of the storage.
        given = [_same_memory(a) if isinstance(a, torch.Tensor) else a for a in given]
        for a, b in zip(args, before):  # recording runs nothing
            if isinstance(a, torch.Tensor):
                a.detach().copy_(b)
        kept = [i for i, r in enumerate(results) if not any(r is a for a in args)]

        def replay():
            self.replayed += 1
            for i, r in enumerate(run(list(given))):
                if i in kept and isinstance(r, torch.Tensor):
                    own[i].copy_(r)

        return replay, results


def _same_memory(t):
    """A tensor over the same addresses that keeps nothing alive."""
    import ctypes

    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1 if t.numel() else 0
    if not reach:
        return t
    raw = (ctypes.c_byte * (reach * t.element_size())).from_address(t.data_ptr())
    flat = torch.frombuffer(raw, dtype=t.dtype)
    return flat.as_strided(t.shape, t.stride())


@pytest.fixture
def recorder(monkeypatch):
    torch._dynamo.reset()
    torch.manual_seed(0)
    found = Recorder()
    monkeypatch.setattr(_graphs, "supported", lambda home: True)
    monkeypatch.setattr(_graphs, "record_on_card", found)
    # Whether the host bounds calls is measured on a card; here it is said (`bound`).
    monkeypatch.setattr(_graphs.WhereSlow, "_timed", lambda self, args: (self.program(args), False))
    return found


def compiled(f):
    return torch.compile(f, backend="weft", mode="reduce-overhead")


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(7, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))


def test_inference_is_replayed(recorder):
    model = mlp()
    f = compiled(model)
    with torch.no_grad():
        for _ in range(8):
            x = torch.randn(5, 7)
            torch.testing.assert_close(f(x), model(x))
    assert recorder.recorded >= 1 and recorder.replayed >= 4


def test_results_that_are_held_stay_as_they_are(recorder):
    model = mlp()
    f = compiled(model)
    with torch.no_grad():
        pairs = []
        for _ in range(12):
            x = torch.randn(5, 7)
            pairs.append((f(x), model(x)))
        for got, want in pairs:
            torch.testing.assert_close(got, want)
        views = [f(x)[1:], f(x)[:1]]
        torch.testing.assert_close(views[0], model(x)[1:])
        torch.testing.assert_close(views[1], model(x)[:1])
    assert recorder.replayed >= 3


def test_large_results_that_are_held_get_a_second_graph(recorder, monkeypatch):
    monkeypatch.setattr(_graphs, "_SMALL", 8)
    model = mlp()
    f = compiled(model)
    with torch.no_grad():
        last = None
        for _ in range(10):
            x = torch.randn(5, 7)
            y = f(x)
            if last is not None:
                torch.testing.assert_close(last[0], last[1])
            last = y, model(x)
    assert recorder.recorded == 2 and recorder.replayed >= 6


def test_training_steps_equal_eager(recorder):
    model, twin = mlp(), mlp()
    twin.load_state_dict(model.state_dict())
    f = compiled(model)
    mine, theirs = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, twin))
    losses = []
    for _ in range(12):
        x, y = torch.randn(5, 7), torch.randn(5, 3)
        for g, o in ((f, mine), (twin, theirs)):
            o.zero_grad()
            loss = (g(x) - y).square().mean()
            loss.backward()
            o.step()
            losses.append(loss)
    for a, b in zip(losses[::2], losses[1::2]):
        torch.testing.assert_close(a, b)
    for p, q in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(p, q)
    assert recorder.recorded >= 2 and recorder.replayed >= 8  # forward and backward


@pytest.mark.parametrize("steps", [1, 3])
def test_gradients_accumulate(recorder, steps):
    model, twin = mlp(), mlp()
    twin.load_state_dict(model.state_dict())
    f = compiled(model)
    for _ in range(6):
        for m in (model, twin):
            m.zero_grad()
        batches = [torch.randn(5, 7) for _ in range(steps)]
        for x in batches:
            f(x).square().sum().backward()
            twin(x).square().sum().backward()
        for p, q in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(p.grad, q.grad)


def test_two_forward_passes_before_a_backward_pass(recorder):
    model, twin = mlp(), mlp()
    twin.load_state_dict(model.state_dict())
    f = compiled(model)
    for _ in range(8):
        x, y = torch.randn(5, 7), torch.randn(5, 7)
        for m in (model, twin):
            m.zero_grad()
        (f(x).square().sum() + f(y).square().sum()).backward()
        (twin(x).square().sum() + twin(y).square().sum()).backward()
        for p, q in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(p.grad, q.grad)


def test_parameters_that_move(recorder):
    model = mlp()
    f = compiled(model)
    with torch.no_grad():
        for i in range(12):
            if i in (5, 6, 9):
                for p in model.parameters():
                    p.data = torch.randn_like(p)
            x = torch.randn(5, 7)
            torch.testing.assert_close(f(x), model(x))
    assert recorder.replayed >= 4


def test_results_that_are_inputs_or_views_of_them(recorder):
    def views(x, w):
        return x, x[1:], w.T, x * w, (x + 1)[0]

    f = compiled(views)
    w = torch.randn(3)
    for _ in range(6):
        x = torch.randn(4, 3)
        for got, want in zip(f(x, w), views(x, w)):
            torch.testing.assert_close(got, want, check_stride=True)


def test_batch_norm_changes_its_buffers(recorder):
    model, twin = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)
    f = compiled(model)
    for _ in range(7):
        x = torch.randn(6, 4)
        torch.testing.assert_close(f(x), twin(x))
        torch.testing.assert_close(model.running_mean, twin.running_mean)
        torch.testing.assert_close(model.running_var, twin.running_var)


def test_what_cannot_be_recorded_says_why(recorder, monkeypatch):
    def refuse(run, args, home):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(_graphs, "record_on_card", refuse)
    found = []
    make = _graphs.Graphed.__init__
    monkeypatch.setattr(_graphs.Graphed, "__init__", lambda self, *a: (make(self, *a), found.append(self))[0])  # fmt: skip
    model = mlp()
    f = compiled(model)
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(5, 7)
            torch.testing.assert_close(f(x), model(x))
    assert "not permitted" in found[0].reason


def test_sizes_that_change(recorder):
    model = mlp()
    f = torch.compile(model, backend="weft", mode="reduce-overhead", dynamic=True)
    with torch.no_grad():
        for n in (3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5):
            x = torch.randn(n, 7)
            torch.testing.assert_close(f(x), model(x))
    assert recorder.replayed >= 3


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(6, 4))

    def forward(self, x, at):
        self.rows.index_copy_(0, at, x)
        return (self.rows * 2).sum(0)


@pytest.mark.parametrize("graphs", [True, False])
def test_caches_are_written_in_place(recorder, graphs):
    model, twin = Cache(), Cache()
    f = compiled(model) if graphs else torch.compile(model, backend="weft")
    where = model.rows.data_ptr()
    with torch.no_grad():
        for i in range(10):
            x, at = torch.randn(1, 4), torch.tensor([i % 6])
            torch.testing.assert_close(f(x, at), twin(x, at))
            torch.testing.assert_close(model.rows, twin.rows)
            if i == 6:
                model.rows = model.rows.clone()
                where = model.rows.data_ptr()
    assert model.rows.data_ptr() == where
    assert bool(recorder.replayed) == graphs


def test_an_argument_that_is_read_after_its_change_is_copied_back():
    def f(x, y):
        old = x * 1.0
        x[1] = y
        return old + x

    g = torch.compile(f, backend="weft", options={"prefer": "weft"})
    with torch.no_grad():
        for _ in range(3):
            x, y = torch.randn(3, 4), torch.randn(4)
            z = x.clone()
            torch.testing.assert_close(g(x, y), f(z, y))
            torch.testing.assert_close(x, z)


@pytest.fixture
def bound(monkeypatch):
    said = {"bound": True}
    monkeypatch.setattr(
        _graphs.WhereSlow, "_timed", lambda self, args: (self.program(args), said["bound"])
    )
    monkeypatch.setattr(_graphs, "_free", lambda home: said.get("free", 1 << 40))
    return said


@pytest.mark.parametrize("training", [False, True])
def test_calls_that_the_host_bounds_are_replayed(recorder, bound, training):
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU())
    twin = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU())
    twin.load_state_dict(model.state_dict())
    f = torch.compile(model.train(training), backend="weft")
    twin.train(training)
    for _ in range(8):
        x = torch.randn(6, 7)
        for g, m in ((f, model), (twin, twin)):
            m.zero_grad()
            y = g(x)
            if training:
                y.square().sum().backward()
        torch.testing.assert_close(y, f(x)) if not training else None
        for p, q in zip(model.parameters(), twin.parameters()):
            assert (p.grad is None) == (q.grad is None)
            if p.grad is not None:
                torch.testing.assert_close(p.grad, q.grad)
        for p, q in zip(model.buffers(), twin.buffers()):
            torch.testing.assert_close(p, q)
    assert recorder.recorded and recorder.replayed >= 4


@pytest.mark.parametrize("why", ["bound", "free", "copies", "graphs", "mode"])
def test_calls_that_are_not_replayed(recorder, bound, monkeypatch, why):
    """The card bounds them, memory is short, much would be copied, or it was said."""
    if why == "copies":
        monkeypatch.setattr(_graphs, "_COPIED", 100)
    if why == "bound":
        bound["bound"] = False
    if why == "free":
        bound["free"] = 100
    given = {"options": {"graphs": False}} if why == "graphs" else {"mode": "max-autotune-no-cudagraphs"} if why == "mode" else {}  # fmt: skip
    model = mlp()
    f = torch.compile(model, backend="weft", **given)
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(5, 7)
            torch.testing.assert_close(f(x), model(x))
    assert not recorder.recorded


def test_graphs_option_is_checked(recorder):
    import weft

    with pytest.raises(weft.Error) as caught:
        from weft.torch import _backend

        _backend.Options(graphs="often")
    assert caught.value.code == "torch.compile.graphs"
    assert "True" in str(caught.value)
