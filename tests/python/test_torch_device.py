# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft"): tensors, operators, gradients, random numbers, streams, models on simulated machines, refusals."""

import io
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from present import torch_device  # noqa: E402
from weft.torch import _version  # noqa: E402

wd = torch_device()

MACHINES = ["cpu", "qpu", "wse"]


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def close(got, want, **how):
    assert got.device.type == "weft"
    torch.testing.assert_close(got.cpu(), want, **how)


@pytest.mark.parametrize("name", MACHINES)
def test_the_demonstration(name):
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    x = a.to(f"weft:{name}")
    assert x.device == wd.device(name) == torch.device("weft", wd.names().index(name))
    close(x @ b.to(x.device), a @ b)
    close(x.weft(name) + 1, a + 1)


def test_kernels_are_found_beside_the_compiler():
    import weft.torch.layouts  # noqa: F401 - has a rule for a step of weft's own
    from weft.torch.device._kernels import _ruled

    assert {t.name().partition("::")[0] for t in _ruled()} == {"aten"}


def test_names_and_indices():
    assert wd.names()[:5] == ("cpu", "opencl", "qpu", "vta", "wse")
    assert wd.device("weft:2") == wd.device(2) == wd.device("qpu") == torch.device("weft:2")
    more = wd.device("wse:2x2")
    assert wd.names()[more.index] == "wse:2x2" == torch.weft.get_device_name(more)
    close(torch.ones(3).to(more) * 2, torch.full((3,), 2.0))
    with pytest.raises(weft.Error) as refusal:
        wd.device("warp")
    assert refusal.value.code == "target.unknown"


def test_a_machine_of_integers():
    a = torch.randint(-5, 5, (8, 8), dtype=torch.int8)
    x = a.to("weft:vta")
    assert torch.equal(x.t()[1:].cpu(), a.t()[1:])
    with pytest.raises(weft.Error) as refusal:
        torch.ones(4).to("weft:vta") * 2
    assert refusal.value.code == "target.dtype"
    close(x + x, a + a)
    close(x.t() * 2 - x, a.t() * 2 - a)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool, torch.uint8])
def test_copies_of_every_layout(name, dtype):
    base = torch.arange(24).reshape(4, 6).to(dtype)
    for view in (base, base.t(), base[1::2, 2:5], base[0], base[:0], torch.tensor(3).to(dtype)):
        x = view.to(f"weft:{name}")
        assert x.dtype == dtype and x.shape == view.shape
        assert torch.equal(x.cpu(), view)
        assert torch.equal(x.clone().cpu(), view)
    x = base.to(f"weft:{name}")
    assert torch.equal(x.t()[1:, ::3].cpu(), base.t()[1:, ::3])
    assert x.t().untyped_storage()._cdata == x.untyped_storage()._cdata


@pytest.mark.parametrize("name", MACHINES)
def test_views_write_to_their_base(name):
    x, want = torch.zeros(4, 6).to(f"weft:{name}"), torch.zeros(4, 6)
    for t in (x, want):
        t[1] = 3.0
        t[:, 2:4].add_(1)
        t.t()[5].fill_(7)
        t.mul_(2).sub_(t[0].clone())
    close(x, want)
    y = torch.empty(2, 2, device=x.device)
    torch.add(x[:2, :2], 1, out=y)
    close(y, want[:2, :2] + 1)


UNARY = "exp neg abs sigmoid tanh relu sqrt square floor"
BINARY = "add sub mul div maximum minimum"
REDUCTIONS = [
    lambda t: t.sum(),
    lambda t: t.mean(0),
    lambda t: t.amax(1, keepdim=True),
    lambda t: t.var(1),
]


@pytest.mark.parametrize("name", MACHINES)
def test_operators_as_on_the_host(name):
    a, b = torch.rand(3, 5) + 0.5, torch.rand(5) + 0.5
    x, y = a.to(f"weft:{name}"), b.to(f"weft:{name}")
    for op in UNARY.split():
        close(getattr(torch, op)(x), getattr(torch, op)(a), rtol=1e-4, atol=1e-5)
    for op in BINARY.split():
        close(getattr(torch, op)(x, y), getattr(torch, op)(a, b), rtol=1e-4, atol=1e-5)
    for f in (
        *REDUCTIONS,
        lambda t: t * 1.5,
        lambda t: 2 - t,
        lambda t: t.t() @ t,
        lambda t: t + torch.tensor(3),
    ):
        close(f(x), f(a), rtol=1e-4, atol=1e-5)


def test_operators_with_booleans_and_positions():
    a, b = torch.rand(3, 5) + 0.5, torch.rand(5) + 0.5
    x, y = a.to("weft:cpu"), b.to("weft:cpu")
    for op in "eq lt ge pow atan2 logical_and".split():
        close(getattr(torch, op)(x, y), getattr(torch, op)(a, b), rtol=1e-4, atol=1e-5)
    for f in (
        lambda t: t.softmax(-1),
        lambda t: t.argmax(1),
        lambda t: torch.cat([t, t], 1),
        lambda t: torch.where(t > 1, t, 0.0),
        lambda t: t.clamp(0.6, 1.2),
        lambda t: t[t > 1],
        lambda t: (t > 1).nonzero(),
        lambda t: t.cumsum(1),
    ):
        close(f(x), f(a), rtol=1e-4, atol=1e-5)


def test_empty_one_element_nan_and_mixed():
    for t in (
        torch.zeros(0, 3),
        torch.tensor(2.0),
        torch.tensor([float("nan"), -0.0, float("inf")]),
    ):
        x = t.to("weft")
        close(x * 2 + 1, t * 2 + 1, equal_nan=True)
        close(x.sum(), t.sum(), equal_nan=True)
    with pytest.raises(weft.Error) as refusal:
        torch.ones(3, device="weft:0") + torch.ones(3, device="weft:2")
    assert refusal.value.code == "torch.device.mixed"
    assert "weft:0 and weft:2" in str(refusal.value)


@pytest.mark.parametrize("name", MACHINES)
def test_gradients(name):
    a, b = torch.randn(4, 3, requires_grad=True), torch.randn(3, 4)
    x = a.detach().to(f"weft:{name}").requires_grad_()
    (torch.tanh(x @ b.to(x.device)) * 0.5).square().sum().backward()
    (torch.tanh(a @ b) * 0.5).square().sum().backward()
    close(x.grad, a.grad, rtol=1e-4, atol=1e-5)


def test_random_numbers():
    torch.weft.manual_seed(3)
    x = (
        torch.randn(5, device="weft"),
        torch.rand(2, 2, device="weft"),
        torch.nn.functional.dropout(torch.ones(9, device="weft")),
    )
    torch.weft.manual_seed(3)
    y = (
        torch.randn(5, device="weft"),
        torch.rand(2, 2, device="weft"),
        torch.nn.functional.dropout(torch.ones(9, device="weft")),
    )
    for a, b in zip(x, y):
        assert torch.equal(a.cpu(), b.cpu())
    torch.manual_seed(3)
    host = torch.randn(5)
    close(x[0], host)
    g = torch.Generator(device="weft:2")
    g.manual_seed(3)
    close(torch.randn(5, device="weft:2", generator=g), host)


def test_streams_events_and_the_current_device():
    assert torch.accelerator.current_accelerator().type == "weft"
    assert torch.weft.device_count() == len(wd.names())
    with torch.weft.device(2):
        assert torch.weft.current_device() == 2
        assert torch.empty(1, device="weft").device.index == 2
    assert torch.weft.current_device() == 0
    first, last = (torch.Event(device="weft", enable_timing=True) for _ in range(2))
    s = torch.Stream(device="weft:0")
    first.record(s)
    torch.ones(64, 64, device="weft") @ torch.ones(64, 64, device="weft")
    last.record(s)
    last.synchronize()
    assert first.elapsed_time(last) > 0 and s.query() and first.query()
    torch.weft.synchronize()


def test_autocast():
    a = torch.randn(4, 4, device="weft")
    with torch.autocast("weft", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        assert torch.exp((a @ a)).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


def test_saved_files_and_printed_tensors():
    x = torch.arange(6.0).reshape(2, 3).to("weft:qpu")
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    y = torch.load(file)
    assert y.device == x.device and torch.equal(y.cpu(), x.cpu())
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu"), x.cpu())
    assert "device='weft:2'" in repr(x) and "5." in repr(x)


def test_fallback_is_off_unless_asked_for_and_counted():
    x = torch.randn(4, 4, device="weft")
    with pytest.raises(weft.Error) as refusal:
        torch.linalg.eigvals(x)
    assert refusal.value.code == "torch.device.operator"
    assert "set_fallback(True)" in str(refusal.value)
    before, was = wd.fallbacks(), wd.set_fallback(True)
    try:
        torch.testing.assert_close(torch.special.airy_ai(x).cpu(), torch.special.airy_ai(x.cpu()))
    finally:
        wd.set_fallback(was)
    assert sum(wd.fallbacks().values()) > sum(before.values())


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (torch.nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(2))
        self.na, self.nb = torch.nn.BatchNorm2d(4), torch.nn.BatchNorm2d(4)
        self.out = torch.nn.Linear(4, 3)

    def forward(self, x):
        y = self.nb(self.b(torch.relu(self.na(self.a(x)))))
        return self.out(torch.nn.functional.adaptive_avg_pool2d(torch.relu(x + y), 1).flatten(1))


def gpt2():
    hf = pytest.importorskip(
        "transformers", reason="transformers is not installed: tools/test_torch2 installs it"
    )
    config = hf.GPT2Config(vocab_size=17, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
                           resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)  # fmt: skip
    model = hf.GPT2LMHeadModel(config)
    model.forward_logits = lambda ids: model(ids, use_cache=False).logits
    return model


MODELS = {
    "mlp": (
        lambda: torch.nn.Sequential(
            torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3)
        ),
        lambda: torch.randn(5, 6),
    ),
    "resnet block": (Block, lambda: torch.randn(2, 4, 5, 5)),
    "gpt2": (gpt2, lambda: torch.randint(0, 17, (2, 5))),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("which", MODELS)
def test_models_train(which, name):
    make, draw = MODELS[which]
    torch.manual_seed(0)
    model, x = make(), draw()
    weights = {k: v.clone() for k, v in model.state_dict().items()}

    def steps(device):
        model.load_state_dict(weights)
        model.to(device)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        losses = []
        for _ in range(2):
            out = getattr(model, "forward_logits", model)(x.to(device))
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach().cpu())
        state = {k: v.cpu().clone() for k, v in model.state_dict().items()}
        model.to("cpu")
        return losses, state

    want = steps("cpu")
    before, was = wd.fallbacks(), wd.set_fallback(name != "cpu")
    try:
        got = steps(f"weft:{name}")
    finally:
        wd.set_fallback(was)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
    # Machines without booleans and 64-bit integers leave those to the host; products are theirs.
    helped = {op for op, n in wd.fallbacks().items() if n > before.get(op, 0)}
    assert not helped & {"aten.mm.default", "aten.addmm.default", "aten.bmm.default"}, helped


def test_a_type_that_the_machine_lacks_is_refused():
    with pytest.raises(weft.Error) as refusal:
        torch.arange(3.0, dtype=torch.float64).to("weft:qpu") + 1
    assert refusal.value.code == "qpu.accepts.dtype"
    with pytest.raises(weft.Error) as refusal:
        torch.tensor([2**31]).to("weft:qpu") + 1
    assert refusal.value.code == "array.int64.range"


class Decoder(torch.nn.Module):
    """A language model of one block: positions, a mask of truth values, 64-bit tokens."""

    def __init__(self, tokens=40, width=16, heads=2, length=12):
        super().__init__()
        nn = torch.nn
        self.heads = heads
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.tokens(ids) + self.places(torch.arange(length, device=ids.device))
        parts = self.qkv(self.first(x)).split(x.shape[-1], 2)
        q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
        seen = torch.ones(length, length, device=ids.device).tril().bool()
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~seen, -1e9)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        x = x + self.down(torch.nn.functional.gelu(self.up(self.second(x)), approximate="tanh"))
        return x @ self.tokens.weight.T


@pytest.mark.parametrize("name", ["qpu", "wse"])
def test_a_language_model_needs_no_help_from_the_host(name):
    model, ids = Decoder(), torch.randint(0, 40, (2, 7))
    loss = torch.nn.functional.cross_entropy
    want = model(ids)
    loss(want.flatten(0, 1), ids.flatten()).backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    device = wd.device(name)
    model.to(device)
    before = dict(wd.fallbacks())
    got = model(ids.to(device))
    close(got, want, rtol=1e-4, atol=1e-4)
    loss(got.flatten(0, 1), ids.to(device).flatten()).backward()
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        close(parameter.grad, gradient, rtol=1e-3, atol=1e-4)
    assert torch.equal(got.argmax(-1).cpu(), want.argmax(-1))
    assert dict(wd.fallbacks()) == before


@pytest.mark.parametrize("name", ["cpu", "qpu", "wse:2x2"])
def test_inference_of_batch_norm(name):
    """Nothing goes to the host: results of the running statistics, with and without scale and shift."""
    for affine in (True, False):
        model = torch.nn.BatchNorm2d(3, affine=affine)
        model(torch.randn(4, 3, 5, 5))  # running statistics that are not 0 and 1
        model.eval()
        x = torch.randn(2, 3, 4, 5)
        want = model(x).detach()
        with torch.no_grad():
            close(model.to(wd.device(name))(x.to(wd.device(name))), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformer_layers_in_inference(norm_first, batch_first):
    """Torch calls operators of its own for them; masks of each kind."""
    layer = torch.nn.TransformerEncoderLayer(
        16, 4, 24, batch_first=batch_first, norm_first=norm_first, activation="gelu"
    ).eval()
    x = torch.randn(3, 5, 16)
    n, t = (3, 5) if batch_first else (5, 3)
    padded = torch.zeros(n, t, dtype=torch.bool)
    padded[1, t - 2 :] = True
    later = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
    for options in ({}, {"src_key_padding_mask": padded}, {"src_mask": later},
                    {"src_mask": later, "src_key_padding_mask": padded}):  # fmt: skip
        with torch.no_grad():
            want = layer.to("cpu")(x, **options)
            there = {k: v.to("weft:0") for k, v in options.items()}
            close(layer.to("weft:0")(x.to("weft:0"), **there), want, rtol=1e-5, atol=1e-5)
    model = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    for options in ({}, {"average_attn_weights": False}, {"need_weights": False}):
        with torch.no_grad():
            want = model.to("cpu")(x, x, x, **options)
            y = x.to("weft:0")
            got = model.to("weft:0")(y, y, y, **options)
        for g, w in zip(got, want):
            assert (g is None) == (w is None)
            if w is not None:
                close(g, w, rtol=1e-5, atol=1e-5)


def vision(name):
    models = pytest.importorskip(
        "torchvision", reason="torchvision is not installed: tools/test_torch2 installs it"
    ).models
    if name == "vit":
        model = models.VisionTransformer(32, 16, 2, 2, 32, 64, num_classes=5)
        torch.nn.init.normal_(model.heads.head.weight)  # zeros at the beginning
        return model
    return getattr(models, name)(num_classes=5)


@pytest.mark.parametrize(
    "which, name",
    [("resnet18", "opencl"), ("mobilenet_v3_small", "qpu"), ("vit", "qpu"), ("vit", "cpu"), ("resnet18", "cpu")],
)  # fmt: skip
def test_vision_models_infer(which, name):
    """Whole models with no operator on the host."""
    model, x = vision(which).eval(), torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        want = model(x)
        got = model.to(wd.device(name))(x.to(wd.device(name)))
    scale = float(want.abs().max())
    close(got / scale, want / scale, rtol=1e-4, atol=1e-5)


def refused(code, text, function):
    with pytest.raises(weft.Error) as refusal:
        function()
    assert refusal.value.code == code and text in str(refusal.value)


def test_refusals(monkeypatch):
    from weft.torch.device import _build, _names

    refused(
        "torch.device.absent",
        "is metal, which is not there",
        lambda: torch.ones(2).to("weft:metal"),
    )
    monkeypatch.setattr(_names, "_MOST", len(wd.names()))
    refused("torch.device.count", "legal:", lambda: wd.device("wse:3x5"))
    x = torch.empty(2, dtype=torch.uint32, device="weft")
    refused("torch.device.dtype", "a tensor of torch.uint32 on weft:0", x.cpu)
    refused("torch.device.operator", "elements of type uint32", lambda: x + x)

    def fails(*_args, **_kwargs):
        raise RuntimeError("Ninja is required")

    monkeypatch.setattr("torch.utils.cpp_extension.load", fails)
    monkeypatch.setattr(_build, "folder", lambda: pathlib.Path(tempfile.mkdtemp()))
    refused("torch.device.build", "does not compile: Ninja is required", _build.build)


PROGRAM = """
import sys, weft
import weft.torch.device as wd
try:
    wd.load()
except weft.Error as refusal:
    print(refusal.code, "python -m weft.torch.build" in str(refusal))
"""


def test_without_the_extension(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "WEFT_CACHE_DIR": str(tmp_path)},
    )
    assert found.stdout.split() == ["torch.device.unbuilt", "True"], found.stderr


def test_a_torch_that_lacks_an_interface(monkeypatch):
    monkeypatch.delattr(torch.utils, "rename_privateuse1_backend")
    with pytest.raises(weft.Error) as refusal:
        _version.need_device()
    assert refusal.value.code == "torch.version.device"
    assert "rename_privateuse1_backend" in str(refusal.value)


AUTOLOAD = """
import torch, weft._torch_autoload
weft._torch_autoload.autoload()
print(hasattr(torch, "weft"))
"""


@pytest.mark.parametrize("built", [True, False])
def test_the_entry_point(tmp_path, built):
    env = dict(os.environ) if built else {**os.environ, "WEFT_CACHE_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", AUTOLOAD], capture_output=True, check=False, text=True, env=env
    )
    assert found.stdout.strip() == str(built), found.stderr
