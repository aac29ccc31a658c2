# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft") in programs as users of an accelerator write them: saving, pinned memory, copies, training with scaled
losses, generators, statistics of memory, processes. The facts are those that PyTorch's tests of an out-of-tree device check."""

import copy
import io
import os
import pickle
import select

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from weft.torch import _version  # noqa: E402

if not _version.DEVICES:
    pytest.skip(f"a device of torch's own needs torch 2.6, this is {torch.__version__}", allow_module_level=True)  # fmt: skip

import weft.torch.device as wd  # noqa: E402

if not wd.is_built():
    pytest.skip("the extension is not built: tools/test_torch2 builds it", allow_module_level=True)

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

wd.load()
W = torch.device("weft:0")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    yield
    torch.weft.set_device(0)


def same(got, want, **how):
    torch.testing.assert_close(got.detach().cpu(), want, **how)


def test_what_is_weft():
    assert torch._C._get_privateuse1_backend_name() == "weft"
    x = torch.ones(2)
    assert not x.is_weft and x.weft().is_weft and x.weft().untyped_storage().is_weft
    assert x.untyped_storage().weft().is_weft and x.weft().storage().is_weft
    assert nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)]).weft().is_weft


def test_devices_that_are_not_there():
    n = torch.weft.device_count() + 3
    for make in (
        lambda: torch.ones(1, device=f"weft:{n}"),
        lambda: torch.ones(1).to(f"weft:{n}"),
        lambda: torch.accelerator.set_device_index(n),
    ):
        with pytest.raises((RuntimeError, weft.Error)):
            make()
    for index in (n, -2):
        with pytest.raises(weft.Error) as refusal:
            torch.weft.set_device(index)
        assert refusal.value.code == "torch.device.index"
    assert torch.weft.current_device() == 0


def test_pinned_memory():
    x = torch.randn(4, 3)
    y = x.pin_memory()
    assert y.is_pinned() and not x.is_pinned() and y[1:].is_pinned() and torch.equal(x, y)
    same(y.to(W, non_blocking=True), x)
    data = torch.utils.data.TensorDataset(torch.randn(10, 3), torch.arange(10))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    batches = list(loader)
    assert all(a.is_pinned() and b.is_pinned() for a, b in batches)
    same(torch.cat([a.to(W) for a, _ in batches]), data.tensors[0])


@pytest.mark.parametrize("zipped", [True, False])
def test_saving_and_loading(zipped):
    x = torch.randn(3, 4)
    there = x.to(W)
    file = io.BytesIO()
    torch.save({"x": there, "part": there.t()[1:]}, file, _use_new_zipfile_serialization=zipped)
    qpu = wd.device("qpu")
    for where, device in (
        (None, W),
        ("cpu", torch.device("cpu")),
        ("weft:1", torch.device("weft:1")),
        ("weft:qpu", qpu),
        (qpu, qpu),
        ({"weft:0": "cpu"}, torch.device("cpu")),
    ):
        file.seek(0)
        found = torch.load(file, map_location=where)
        assert found["x"].device == found["part"].device == device
        same(found["x"], x)
        same(found["part"], x.t()[1:])
        found["x"][0] = 7.0
        assert found["part"].cpu()[0, 0] == 7.0  # the same memory
    plain = io.BytesIO()
    torch.save(x, plain, _use_new_zipfile_serialization=zipped)
    plain.seek(0)
    same(torch.load(plain, map_location="weft"), x)


def test_copies_of_objects():
    x = torch.randn(3, requires_grad=True)
    there = x.detach().to(W).requires_grad_()
    for made in (copy.deepcopy(there), pickle.loads(pickle.dumps(there))):
        assert made.is_weft and made.requires_grad and made.data_ptr() != there.data_ptr()
        same(made, x.detach())
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(W)
    same(copy.deepcopy(model)[0].weight, model[0].weight.detach().cpu())
    row = torch.arange(6.0, device=W)
    first, rest = copy.deepcopy((row[:3], row[2:]))
    first.fill_(9)
    same(rest, torch.tensor([9.0, 3, 4, 5]))  # they still share
    same(row, torch.arange(6.0))


def test_storages():
    x = torch.arange(6.0, device=W)
    torch.empty(0, device=W).set_(x.untyped_storage(), 2, (2, 2), (2, 1)).mul_(10)
    same(x, torch.tensor([0.0, 1, 20, 30, 40, 50]))
    storage = x.untyped_storage()
    at = x.data_ptr()
    x.copy_(torch.ones(6))  # from the host: the address stays
    assert x.data_ptr() == at and storage.clone().nbytes() == 24
    storage.resize_(48)
    same(x, torch.ones(6))
    storage.resize_(0)
    with pytest.raises(weft.Error) as refusal:
        x.cpu()
    assert refusal.value.code == "torch.device.freed"
    storage.resize_(24)
    same(x.fill_(3.0), torch.full((6,), 3.0))


def test_printing():
    for x in (torch.tensor([1.5, -2e9]), torch.arange(2000), torch.tensor(True), torch.zeros(0, 3)):
        plain = lambda t: "".join(repr(t).split()).replace(",device='weft:0'", "")  # noqa: E731
        assert plain(x.to(W)) == plain(x) and "weft:0" in repr(x.to(W))
    assert "grad_fn" in repr(torch.ones(2, device=W, requires_grad=True) * 2)


def test_copies_between_devices():
    devices = ["cpu", W, wd.device("qpu"), wd.device("wse")]
    types = [
        (torch.float32, torch.int32),
        (torch.int64, torch.float32),
        (torch.bool, torch.float32),
    ]
    for a in devices:
        for b in devices:
            for source, target in types:
                x = torch.randint(0, 3, (3, 4)).to(source)
                y = torch.empty(4, 3, dtype=target).to(b)
                same(y.copy_(x.to(a).t(), non_blocking=True), x.t().to(target))
    host = torch.zeros(4)
    host[1::2] = torch.ones(4, device=W)[::2]
    same(host, torch.tensor([0.0, 1, 0, 1]))
    x = torch.ones(3, device=W)
    x[torch.tensor([0])] = 5.0  # positions of the host
    x[torch.tensor([False, False, True])] = 6.0
    same(x[torch.tensor([2, 0])], torch.tensor([6.0, 5.0]))


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_in_checkpoints(reentrant):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh()).to(W)
    found = []
    for run in (model, lambda x: torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant)):  # fmt: skip
        x = torch.ones(3, 4, device=W, requires_grad=True)
        torch.weft.manual_seed(1)
        run(x).sum().backward()
        found.append(x.grad.cpu())
    assert torch.equal(*found)


def test_scaled_losses():
    model = nn.Linear(4, 2).to(W)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("weft", init_scale=128.0, growth_interval=2)
    scales = []
    for factor in (1.0, float("inf"), 1.0, 1.0):
        before = model.weight.detach().cpu().clone()
        optimizer.zero_grad()
        with torch.autocast("weft", dtype=torch.float16):
            loss = model(torch.full((1, 4), factor, device=W)).float().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert torch.equal(before, model.weight.detach().cpu()) == (factor != 1.0)
        scales.append(scaler.get_scale())
    same(model.weight.grad, torch.ones(2, 4))
    assert scales == [128.0, 64.0, 64.0, 128.0]


STEPS = [
    (torch.optim.Adam, {"fused": True, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"fused": True}),
    (torch.optim.SGD, {"fused": True, "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (torch.optim.Adagrad, {"fused": True, "lr_decay": 0.1}),
    (torch.optim.Adam, {"foreach": True}),
    (torch.optim.LBFGS, {"max_iter": 3}),
    (torch.optim.Rprop, {}),
]  # fmt: skip


@pytest.mark.parametrize("make, options", STEPS)
def test_optimizers(make, options):
    found, weights, x = [], nn.Linear(4, 3).state_dict(), torch.randn(5, 4)
    for device in ("cpu", W):
        model = nn.Linear(4, 3)
        model.load_state_dict(weights)
        model.to(device)
        try:
            optimizer = make(model.parameters(), **options)
        except RuntimeError:  # this torch has the fused step for other devices only
            optimizer = make(model.parameters(), **{**options, "fused": False})

        def closure(model=model, optimizer=optimizer, device=device):
            optimizer.zero_grad()
            loss = model(x.to(device)).square().mean()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        found.append(model.weight.detach().cpu())
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(make):
    model, x = make(4, 5, 2, batch_first=True, bidirectional=True), torch.randn(3, 6, 4)
    want = model(x)[0]
    want.square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    got = model.to(W)(x.to(W))[0]
    same(got, want.detach(), rtol=1e-4, atol=1e-5)
    got.square().sum().backward()
    for p, g in zip(model.parameters(), gradients, strict=True):
        same(p.grad, g, rtol=1e-3, atol=1e-4)


DRAWS = dict(
    randint=lambda d: torch.randint(5, (3,), device=d),
    permutation=lambda d: torch.randperm(9, device=d),
    multinomial=lambda d: torch.multinomial(torch.arange(4.0, device=d), 2),
    poisson=lambda d: torch.poisson(torch.full((3,), 4.0, device=d)),
    normal=lambda d: torch.normal(torch.zeros(3, device=d), torch.ones(3, device=d)),
    gamma=lambda d: torch.distributions.Gamma(
        torch.ones(2, device=d), torch.ones(2, device=d)
    ).sample(),  # fmt: skip
    rrelu=lambda d: F.rrelu(torch.tensor([-1.0, 2.0, -3.0], device=d), training=True),
    dropout=lambda d: F.dropout2d(torch.ones(1, 4, 2, 2, device=d)),
)


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_are_those_of_the_host(name):
    draw = DRAWS[name]
    torch.manual_seed(2)
    want = draw("cpu")
    torch.manual_seed(2)
    same(draw(W), want)


def test_generators_in_programs():
    before = torch.weft.get_rng_state()
    with torch.random.fork_rng([0], device_type="weft"):
        torch.rand(7, device=W)
    assert torch.equal(torch.weft.get_rng_state(), before)
    a, b = torch.Generator(W), torch.Generator(W)
    a.manual_seed(3)
    b.set_state(a.get_state())
    draw = lambda g: torch.randperm(9, device=W, generator=g)  # noqa: E731
    same(draw(a), draw(b).cpu())


@pytest.mark.skipif(not hasattr(torch.accelerator, "memory_allocated"), reason="torch.accelerator counts memory from 2.9 on")  # fmt: skip
def test_statistics_of_memory():
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.weft.memory_allocated()
    x = torch.ones(1000, device=W)
    assert torch.weft.memory_allocated() == before + 4000
    del x
    assert torch.weft.memory_allocated() == before
    assert torch.weft.max_memory_allocated() == before + 4000


def test_streams_in_programs():
    stream = torch.Stream(device="weft:0")
    with torch.weft.stream(stream):
        x = torch.ones(3, device=W) * 2
    x.record_stream(stream)
    torch.weft.current_stream().wait_stream(stream)
    assert torch.weft.default_stream().stream_id == 0
    same(x, torch.full((3,), 2.0))


def test_arrays_of_weft():
    x = torch.arange(4.0, device=W)
    array = weft.torch.from_torch(x)
    array[1] = 7.0
    same(x, torch.tensor([0.0, 7, 2, 3]))


def test_a_forked_process_computes():
    x = torch.ones(3, device=W) * 2
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str((x + 1).cpu().tolist()).encode())
        finally:
            os._exit(0)
    os.close(write)
    try:
        assert select.select([read], [], [], 60)[0], "the child hangs"
        assert os.read(read, 100) == b"[3.0, 3.0, 3.0]"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


DATA = dict(
    unique=lambda x: (x * 2).int().unique(return_inverse=True, return_counts=True),
    unique_booleans=lambda x: (x > 0).unique(),
    runs=lambda x: torch.unique_consecutive((x > 0).int(), return_counts=True, return_inverse=True),
    rows=lambda x: torch.unique_consecutive((x > 9).int(), dim=0),
    bincount=lambda x: torch.bincount((x.abs() * 3).long().view(-1), minlength=3),
    histogram=lambda x: torch.histc(x, 4),
    repeated=lambda x: x.repeat_interleave(torch.tensor([1, 0, 2, 1], device=x.device), 0),
    equal=lambda x: torch.tensor([torch.equal(x, x.clone()), torch.equal(x, x + 1)]),
    median=lambda x: x.median(1),
    nan=lambda x: torch.where(x > 0.5, torch.nan, x).median(1).values,
    nanmedian=lambda x: torch.where(x > 0.5, torch.nan, x).nanmedian(),
    cummax=lambda x: x.round().cummax(1),
    cummin=lambda x: x.cummin(0),
    several_rows=lambda x: torch.searchsorted(x.sort().values, x),
    copysign=lambda x: x.copysign(torch.tensor(-1.0)),
    eigenvalues=lambda x: torch.linalg.eigvalsh(x @ x.T),
    singular_values=lambda x: torch.linalg.svdvals(x),
    number=lambda x: x[0, 0].sort(),
    nothing=lambda x: x[:0].index_select(0, torch.zeros(0, dtype=torch.int64, device=x.device)),
)  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_sizes_and_orders_that_the_data_decides(name):
    x = torch.randn(4, 5)
    want, got = (torch.utils._pytree.tree_leaves(DATA[name](v)) for v in (x, x.to(W)))
    for g, w in zip(got, want, strict=True):
        same(g, w, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_numbers_that_cannot_be_counted():
    with pytest.raises(weft.Error) as refusal:
        torch.bincount(torch.tensor([1, -2], device=W))
    assert refusal.value.code == "torch.device.bincount" and "-2" in str(refusal.value)


def test_gradients_of_one_argument():
    """Where the places need no gradient, torch's operator has one result fewer than its shapes say."""
    x, grid = torch.randn(2, 3, 5, 6), torch.randn(2, 4, 7, 2).tanh()
    for needs in ((True, False), (False, True), (True, True)):
        found = []
        for device in ("cpu", W):
            given = [t.detach().clone().to(device).requires_grad_(n) for t, n in zip((x, grid), needs)]  # fmt: skip
            F.grid_sample(*given, align_corners=False).square().sum().backward()
            found.append([t.grad for t in given if t.requires_grad])
        for got, want in zip(found[1], found[0], strict=True):
            same(got, want)


def test_forward_derivatives():
    from torch.func import hessian, jacfwd

    w, x = torch.randn(4, 4), torch.randn(3, 4)
    for transform in (hessian, jacfwd):
        want = transform(lambda t: (t @ w).tanh().sum())(x)
        same(transform(lambda t: (t @ w.to(W)).tanh().sum())(x.to(W)), want)
