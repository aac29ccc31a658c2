# SPDX-License-Identifier: Apache-2.0
"""weft.autocast: the type of every function of its table, gradients, transforms and compiled functions, threads; whole models
beside PyTorch's autocast; GradScaler."""

import threading

import numpy as np
import pytest
from refusal import refused

import weft
from weft import nn

F = nn.functional
LOW = weft.bfloat16


def low(rng, *shape):
    return weft.Tensor(rng.standard_normal(shape).astype("float32")).astype(LOW)


def wide(rng, *shape):
    return weft.Tensor(rng.standard_normal(shape).astype("float32"))


# ---- the table

TYPES = {
    "bfloat16": {
        "a @ b": lambda a, b, w: w @ w,
        "matmul": lambda a, b, w: weft.matmul(w, b),
        "x.matmul": lambda a, b, w: w.matmul(w),
        "x.mm": lambda a, b, w: w.mm(w),
        "einsum": lambda a, b, w: weft.einsum("ij,jk->ik", w, w),
        "tensordot": lambda a, b, w: weft.tensordot(w, w, axes=1),
        "linear": lambda a, b, w: F.linear(w, w, w[0]),
        "conv1d": lambda a, b, w: F.conv1d(w.reshape(1, 4, 4), w.reshape(4, 4, 1)),
        "conv2d": lambda a, b, w: F.conv2d(w.reshape(1, 1, 4, 4), w[:3, :3].reshape(1, 1, 3, 3), w[0, :1]),
        "conv_transpose2d": lambda a, b, w: F.conv_transpose2d(w.reshape(1, 1, 4, 4), w.reshape(1, 1, 4, 4)),
        "attention": lambda a, b, w: F.scaled_dot_product_attention(*[w.reshape(1, 1, 4, 4)] * 3),
        "nn.Linear": lambda a, b, w: nn.Linear(4, 3)(w),
        "nn.Conv2d": lambda a, b, w: nn.Conv2d(1, 2, 3)(w.reshape(1, 1, 4, 4)),
        "nn.ConvTranspose2d": lambda a, b, w: nn.ConvTranspose2d(1, 2, 3)(w.reshape(1, 1, 4, 4)),
        "nn.LSTM": lambda a, b, w: nn.LSTM(4, 3)(w.reshape(4, 1, 4))[0],
        "nn.GRUCell": lambda a, b, w: nn.GRUCell(4, 3)(w),
        "nn.RNN": lambda a, b, w: nn.RNN(4, 3)(w.reshape(4, 1, 4))[0],
        "batch_norm": lambda a, b, w: nn.BatchNorm1d(4)(a),
        "instance_norm": lambda a, b, w: nn.InstanceNorm1d(4, affine=True)(a.reshape(1, 4, 4)),
        "relu": lambda a, b, w: F.relu(a),
        "gelu": lambda a, b, w: F.gelu(a),
        "mish": lambda a, b, w: F.mish(a),
        "a + b": lambda a, b, w: a + b,
        "mean": lambda a, b, w: a.mean() + weft.mean(b),
        "var": lambda a, b, w: weft.var(a),
        "concat": lambda a, b, w: weft.concat([a, b]),
        "max_pool2d": lambda a, b, w: F.max_pool2d(a.reshape(1, 1, 4, 4), 2),
        "dropout": lambda a, b, w: F.dropout(a, 0.5),
        "arrays": lambda a, b, w: weft.matmul(w.data, w.data),
    },
    "float32": {
        "exp": lambda a, b, w: weft.exp(a),
        "x.exp": lambda a, b, w: a.exp(),
        "log": lambda a, b, w: weft.log(weft.abs(a) + 1),
        "a ** 2": lambda a, b, w: a**2,
        "pow": lambda a, b, w: weft.pow(weft.abs(a), b),
        "softmax": lambda a, b, w: F.softmax(a, -1) + a.softmax(-1),
        "log_softmax": lambda a, b, w: F.log_softmax(a) + nn.LogSoftmax(-1)(a),
        "logsumexp": lambda a, b, w: weft.logsumexp(a),
        "sum": lambda a, b, w: a.sum() + weft.sum(a),
        "prod": lambda a, b, w: weft.prod(a),
        "cumsum": lambda a, b, w: weft.cumsum(a, 0),
        "norm": lambda a, b, w: a.norm() + weft.linalg.vector_norm(a),
        "layer_norm": lambda a, b, w: nn.LayerNorm(4)(a),
        "rms_norm": lambda a, b, w: nn.RMSNorm(4)(a),
        "group_norm": lambda a, b, w: nn.GroupNorm(2, 4)(a.reshape(1, 4, 4)),
        "softplus": lambda a, b, w: F.softplus(a),
        "cross_entropy": lambda a, b, w: F.cross_entropy(a, weft.asarray([0, 1, 2, 3])),
        "nll_loss": lambda a, b, w: F.nll_loss(a, weft.asarray([0, 1, 2, 3])),
        "mse_loss": lambda a, b, w: F.mse_loss(a, b) + nn.MSELoss()(a, b),
        "l1_loss": lambda a, b, w: F.l1_loss(a, b),
        "smooth_l1_loss": lambda a, b, w: F.smooth_l1_loss(a, b),
        "binary_cross_entropy_with_logits": lambda a, b, w: F.binary_cross_entropy_with_logits(a, weft.sigmoid(b)),
        "kl_div": lambda a, b, w: F.kl_div(a, weft.sigmoid(b)),
        "hinge_embedding_loss": lambda a, b, w: F.hinge_embedding_loss(a, weft.sign(b)),
        "cosine_similarity": lambda a, b, w: F.cosine_similarity(a, b),
        "inv": lambda a, b, w: weft.linalg.inv(a),
        "cholesky": lambda a, b, w: weft.linalg.cholesky(weft.eye(4, dtype=LOW)),
        "mixed": lambda a, b, w: a + w,
        "mixed concat": lambda a, b, w: weft.concat([a, w]),
        "addcmul": lambda a, b, w: weft.addcmul(a, b, w),
        "lerp": lambda a, b, w: weft.lerp(a, w, 0.5),
        "arrays": lambda a, b, w: weft.exp(a.data),
    },
}  # fmt: skip


@pytest.mark.parametrize("wanted, name", [(t, n) for t, names in TYPES.items() for n in names])
def test_types_of_results(rng, wanted, name):
    f = TYPES[wanted][name]
    with weft.autocast("cpu"):
        assert f(low(rng, 4, 4), low(rng, 4, 4), wide(rng, 4, 4)).dtype == wanted


@pytest.mark.parametrize("name", ["fft", "rfft"])
def test_transforms_of_fourier(rng, name):
    with weft.autocast("cpu"):
        assert getattr(weft.fft, name)(low(rng, 4, 4)).dtype == "complex64"


def test_values_are_those_of_converted_arguments(rng):
    a, b = wide(rng, 5, 7), wide(rng, 7, 3)
    with weft.autocast("cpu"):
        got = a @ b
    want = a.astype(LOW) @ b.astype(LOW)
    np.testing.assert_array_equal(got.astype("float32").numpy(), want.astype("float32").numpy())
    c = low(rng, 4, 4)
    with weft.autocast("cpu"):
        got = weft.exp(c)
    np.testing.assert_array_equal(got.numpy(), weft.exp(c.astype("float32")).numpy())


def test_float64_and_integers_stay(rng):
    with weft.autocast():
        assert (weft.ones((2, 2), dtype="float64") @ weft.ones((2, 2), dtype="float64")).dtype == "float64"  # fmt: skip
        assert (
            weft.ones((2, 2), dtype="int32") @ weft.ones((2, 2), dtype="int32")
        ).dtype == "int32"
        assert weft.exp(weft.ones(3, dtype="float64")).dtype == "float64"
        assert weft.sum(weft.ones(3, dtype="int32")).dtype == "int64"


def test_nesting_devices_and_the_state_after_errors(rng):
    w = wide(rng, 3, 3)
    kind = lambda: str((w @ w).dtype)  # noqa: E731
    assert kind() == "float32" and not weft.is_autocast_enabled()
    with weft.autocast("cpu") as outer:
        assert kind() == "bfloat16" and weft.is_autocast_enabled("cpu")
        with weft.autocast("cpu", enabled=False):
            assert kind() == "float32" and not weft.is_autocast_enabled("cpu")
            with weft.autocast(dtype="float16"):
                assert kind() == "float16" and weft.get_autocast_dtype("cpu") == "float16"
            assert kind() == "float32"
        with outer:
            assert kind() == "bfloat16"
        with weft.autocast("cuda"):
            assert kind() == "bfloat16" and weft.get_autocast_dtype("cuda") == "float16"
        assert kind() == "bfloat16"
        with pytest.raises(weft.ShapeError):
            w @ weft.ones((2, 2))
        assert kind() == "bfloat16"
    with weft.autocast("cuda"):
        assert kind() == "float32"
    with pytest.raises(ZeroDivisionError), weft.autocast():
        1 / 0
    assert kind() == "float32" and weft.get_autocast_dtype("cpu") == "bfloat16"
    assert type(weft.Tensor.__matmul__).__name__ == "wrapper_descriptor"
    f = weft.autocast("cpu")(lambda: kind())
    assert f() == "bfloat16" and kind() == "float32"
    error = refused(weft.ArgumentError, "autocast.dtype", weft.autocast, "cpu", "float32")
    assert "enabled=False" in error.help
    refused(weft.ArgumentError, "autocast.device", weft.autocast, "tpu")
    assert weft.is_autocast_available("cuda") and not weft.is_autocast_available("tpu")


def test_threads_are_apart(rng):
    w, seen, go, done = wide(rng, 3, 3), {}, threading.Event(), threading.Event()

    def other():
        go.wait()
        seen["other"] = str((w @ w).dtype), str(weft.exp(w.astype(LOW)).dtype)
        with weft.autocast(dtype="float16"):
            seen["own"] = str((w @ w).dtype)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with weft.autocast():
        go.set()
        done.wait()
        seen["here"] = str((w @ w).dtype)
    thread.join()
    assert seen == {"other": ("float32", "bfloat16"), "own": "float16", "here": "bfloat16"}
    assert (w @ w).dtype == "float32"


def test_functions_imported_before(rng):
    from weft import exp, matmul
    from weft.nn.functional import conv2d, cross_entropy

    x = wide(rng, 1, 1, 4, 4)
    with weft.autocast():
        assert conv2d(x, x).dtype == matmul(x, x).dtype == "bfloat16"
        assert exp(x.astype(LOW)).dtype == "float32"
        assert (
            cross_entropy(x.reshape(4, 4).astype(LOW), weft.asarray([0, 1, 2, 3])).dtype
            == "float32"
        )


# ---- gradients, transforms, compiled functions


def test_gradients_have_the_types_of_their_tensors(rng):
    x, w, scale = wide(rng, 6, 5), wide(rng, 5, 4), low(rng, 4).detach()
    scale.requires_grad_()
    with weft.autocast("cpu"):
        loss = ((x @ w) * scale).astype("float32").sum()
    loss.backward()
    assert [str(t.grad.dtype) for t in (x, w, scale)] == ["float32", "float32", "bfloat16"]
    want = np.ones((6, 4)) * scale.astype("float32").numpy()
    np.testing.assert_allclose(w.grad.numpy(), x.numpy().T @ want, rtol=0.05, atol=0.05)
    inside = weft.Tensor(x.numpy())
    with weft.autocast("cpu"):  # a gradient taken inside converts nothing itself
        y = ((inside @ w) * scale).astype("float32").sum()
        y.backward()
    np.testing.assert_array_equal(inside.grad.numpy(), x.grad.numpy())


def test_transforms_see_it(rng):
    x, w = wide(rng, 6, 5).data, wide(rng, 5, 4).data
    f = lambda w: weft.mean(weft.tanh(x @ w).astype("float32"))  # noqa: E731
    outside = weft.grad(f)(w).numpy()
    with weft.autocast():
        inside = weft.grad(f)(w)
        assert weft.vmap(lambda row: row @ w)(x).dtype == "bfloat16"
        assert weft.vmap(lambda row: weft.exp(row))(x.astype(LOW)).dtype == "float32"
        _, along = weft.jvp(f, (w,), (w,))
    assert inside.dtype == "float32" and (inside.numpy() != outside).any()
    np.testing.assert_allclose(inside.numpy(), outside, rtol=0.1, atol=0.01)
    np.testing.assert_allclose(along.item(), (outside * w.numpy()).sum(), rtol=0.1, atol=0.02)


def test_checkpoint_computes_again_as_before(rng):
    w = wide(rng, 5, 5)
    seen = []

    def f(x):
        y = x @ w
        seen.append(str(y.dtype))
        return weft.tanh(y)

    x = wide(rng, 3, 5)
    with weft.autocast():
        y = weft.checkpoint(f)(x)
    y.astype("float32").sum().backward()
    assert seen == ["bfloat16", "bfloat16"]
    with weft.autocast():
        z = f(weft.Tensor(x.numpy()))
    z.astype("float32").sum().backward()
    assert (w @ w).dtype == "float32"


def test_compiled_functions_have_a_trace_for_each_state(rng):
    x, w = wide(rng, 6, 5).data, wide(rng, 5, 4).data
    f = weft.compile(lambda x, w: weft.exp(weft.tanh(x @ w)) * 2.0)
    plain = f(x, w)
    for _ in range(3):
        assert f(x, w).dtype == "float32"
        with weft.autocast():
            eager = weft.exp(weft.tanh(x @ w)) * 2.0
            assert f(x, w).dtype == eager.dtype == "float32"
            np.testing.assert_allclose(f(x, w).numpy(), eager.numpy(), rtol=1e-6)
            assert (f(x, w).numpy() != plain.numpy()).any()
        with weft.autocast(dtype="float16"):
            assert (f(x, w).numpy() != plain.numpy()).any()
        np.testing.assert_array_equal(f(x, w).numpy(), plain.numpy())
    assert f.traces == 3
    inner = weft.compile(lambda x, w: x @ w)
    for _ in range(2):
        assert inner(x, w).dtype == "float32"
        with weft.autocast():
            assert inner(x, w).dtype == "bfloat16"
    within = weft.compile(weft.autocast("cpu")(lambda x, w: (x @ w) + 0.0))
    assert within(x, w).dtype == within(x, w).dtype == "bfloat16"


def test_compiled_types_are_the_eager_ones(rng):
    """Methods of traced values follow the same table."""
    x = low(rng, 4, 4).data
    for f in (
        lambda x: x.sum(0) * 1.0, lambda x: x.mean(0) * 1.0, lambda x: x.softmax(-1) * 1.0, lambda x: x**2.0 + x, lambda x: weft.var(x, axis=0) + 0.0,
        lambda x: F.softplus(x) + x, lambda x: F.gelu(x) + x, lambda x: F.layer_norm(x, 4) + 1.0,
    ):  # fmt: skip
        with weft.autocast():
            assert weft.compile(f)(x).dtype == f(x).dtype


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_compiled_steps_that_enter_it(rng, device):
    """Pieces that kernels cannot hold run as the function has them where they stand, on any thread."""
    from present import present

    present(device)
    x, y = weft.asarray(rng.standard_normal((16, 6)).astype("float32"), device=device), weft.asarray(rng.integers(0, 3, 16), device=device)  # fmt: skip
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3)).to(
        device
    )

    def loss(p, x, y):
        with weft.autocast():
            return F.cross_entropy(weft.functional_call(model, p, x), y)

    def step(p, x, y):
        value, g = weft.value_and_grad(loss)(p, x, y)
        return value, {k: p[k] - 0.1 * g[k] for k in p}

    start = {k: p.data for k, p in model.named_parameters()}
    compiled = weft.compile(step)

    def losses(step):
        p, out = start, []
        for _ in range(4):
            value, p = step(p, x, y)
            out.append(float(value))
        return out

    want = losses(step)
    np.testing.assert_allclose(losses(compiled), want, rtol=3e-3)
    found = []
    threads = [threading.Thread(target=lambda: found.append(losses(compiled))) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 3
    for row in found:
        np.testing.assert_allclose(row, want, rtol=3e-3)
    assert not weft.is_autocast_enabled()


def test_capture_has_a_recording_for_each_state(rng):
    from present import present

    present("opencl:0")
    x = weft.asarray(rng.standard_normal((6, 6)).astype("float32"), device="opencl:0")
    f = weft.capture(lambda x: (x @ x) * 1.0)
    for _ in range(3):
        assert f(x).dtype == "float32"
        with weft.autocast("opencl"):
            assert f(x).dtype == "bfloat16"


def test_functions_of_ones_own(rng):
    class Square(weft.autograd.Function):
        @staticmethod
        @weft.amp.custom_fwd(device_type="cpu", cast_inputs=weft.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @weft.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            return g * 2.0 * ctx.saved_tensors[0]

    x = wide(rng, 3, 3)
    with weft.autocast():
        y = Square.apply(x)
        assert y.dtype == "float32"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), rtol=1e-6)


# ---- GradScaler


def test_scaled_steps(rng):
    w = weft.Tensor(np.array([1.0, 2.0], "float32"))
    opt, scaler = weft.optim.SGD([w], lr=0.5), weft.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)  # fmt: skip
    scaler.scale((w * w).sum()).backward()
    np.testing.assert_allclose(w.grad.numpy(), [16.0, 32.0])
    scaler.unscale_(opt)
    np.testing.assert_allclose(w.grad.numpy(), [2.0, 4.0])
    refused(weft.ArgumentError, "amp.scaler.order", scaler.unscale_, opt)
    scaler.step(opt)
    refused(weft.ArgumentError, "amp.scaler.order", scaler.step, opt)
    scaler.update()
    np.testing.assert_allclose(w.numpy(), [0.0, 0.0])
    assert scaler.get_scale() == 8.0
    opt.zero_grad()
    scaler.scale((w - 1.0).sum()).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 16.0  # two good steps
    before = w.numpy().copy()
    w.grad = weft.Tensor(np.array([np.inf, 1.0], "float32"))
    assert scaler.step(opt) is None
    scaler.update()
    np.testing.assert_array_equal(w.numpy(), before)
    assert scaler.get_scale() == 8.0
    state = scaler.state_dict()
    other = weft.amp.GradScaler()
    other.load_state_dict(state)
    assert other.state_dict() == state
    refused(weft.ArgumentError, "amp.scaler.order", other.update)
    refused(weft.ArgumentError, "amp.scaler.factor", weft.amp.GradScaler, growth_factor=1.0)
    refused(weft.ArgumentError, "amp.scaler.state", other.load_state_dict, {})
    refused(weft.ArgumentError, "amp.scaler.closure", scaler.step, opt, lambda: None)
    off = weft.amp.GradScaler(enabled=False)
    assert off.scale(w) is w and off.get_scale() == 1.0 and off.state_dict() == {}


# ---- whole models beside PyTorch


def attended(lib, q, k, v):
    """Causal attention; of old versions of PyTorch by products."""
    whole = getattr(lib.nn.functional, "scaled_dot_product_attention", None)
    if whole is not None:
        return whole(q, k, v, is_causal=True)
    n = q.shape[-2]
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return scores.masked_fill(lib.ones(n, n).tril() == 0, -float("inf")).softmax(-1) @ v


class Gpt:
    """A small GPT in either library."""

    def __init__(self, lib):
        nn = lib.nn

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
                self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
                self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

            def forward(self, x):
                n, t, c = x.shape
                parts = self.qkv(self.first(x)).reshape(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
                y = attended(lib, parts[0], parts[1], parts[2])
                x = x + self.out(y.permute(0, 2, 1, 3).reshape(n, t, c))
                return x + self.down(nn.functional.gelu(self.up(self.second(x))))

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokens, self.blocks = nn.Embedding(40, 32), nn.Sequential(Block(), Block())
                self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 40)

            def forward(self, x):
                return self.head(self.norm(self.blocks(self.tokens(x))))

        self.model = Model()

    @staticmethod
    def data(rng):
        x = rng.integers(0, 40, (4, 12))
        return x, (x * 7 + 3) % 40

    @staticmethod
    def loss(lib, model, x, y):
        return lib.nn.functional.cross_entropy(model(x).reshape(-1, 40), y.reshape(-1))


class ResNet:
    """Convolutions, batch norms and a shortcut in either library."""

    def __init__(self, lib):
        nn = lib.nn

        class Block(nn.Module):
            def __init__(self, a, b, stride):
                super().__init__()
                self.one, self.two = nn.Conv2d(a, b, 3, stride=stride, padding=1, bias=False), nn.Conv2d(b, b, 3, padding=1)  # fmt: skip
                self.norm, self.other = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
                self.short = nn.Conv2d(a, b, 1, stride=stride)

            def forward(self, x):
                y = nn.functional.relu(self.norm(self.one(x)))
                return nn.functional.relu(self.other(self.two(y)) + self.short(x))

        self.model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
        )  # fmt: skip

    @staticmethod
    def data(rng):
        return rng.standard_normal((8, 3, 12, 12)).astype("float32"), rng.integers(0, 5, (8,))

    @staticmethod
    def loss(lib, model, x, y):
        return lib.nn.functional.cross_entropy(model(x), y)


class Lstm:
    """Two recurrent layers and a linear one in either library."""

    def __init__(self, lib):
        nn = lib.nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.head = nn.LSTM(6, 16, num_layers=2), nn.Linear(16, 3)

            def forward(self, x):
                return self.head(self.rnn(x)[0][-1])

        self.model = Model()

    @staticmethod
    def data(rng):
        x = rng.standard_normal((9, 8, 6)).astype("float32")
        return x, x.sum(0)[:, :3].astype("float32")

    @staticmethod
    def loss(lib, model, x, y):
        return lib.nn.functional.mse_loss(model(x), y)


def losses(lib, kind, model, x, y, casting, steps=8):
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=lib.bfloat16, enabled=casting):
            loss = kind.loss(lib, model, x, y)
        loss.backward()
        assert all(str(p.grad.dtype).endswith("float32") for p in model.parameters())
        optimizer.step()
        out.append(loss.item())
    return np.array(out)


@pytest.mark.parametrize("kind", [Gpt, ResNet, Lstm])
def test_training_beside_pytorch(rng, kind):
    """The losses differ from PyTorch's under its autocast by no more than bfloat16 does from float32 there, or by a hundredth."""
    torch = pytest.importorskip("torch")
    import weft.torch as wt

    torch.manual_seed(0)
    theirs = kind(torch).model
    start = {k: v.clone() for k, v in theirs.state_dict().items()}
    x, y = kind.data(rng)
    found = {}
    for casting in (True, False):
        theirs.load_state_dict(start)
        ours = kind(weft).model
        wt.load_state_dict(ours, theirs)
        tensors = [weft.Tensor(a, requires_grad=False) if a.dtype.kind == "f" else weft.asarray(a) for a in (x, y)]  # fmt: skip
        found["weft", casting] = losses(weft, kind, ours, *tensors, casting)
        found["torch", casting] = losses(torch, kind, theirs, torch.tensor(x), torch.tensor(y), casting)  # fmt: skip
    np.testing.assert_allclose(found["weft", False], found["torch", False], rtol=1e-3)
    noise = np.abs(found["torch", True] - found["torch", False])
    bound = 2 * noise.max() + 0.01 * found["torch", False]
    assert (np.abs(found["weft", True] - found["torch", True]) <= bound).all(), found
    assert (found["weft", True] != found["weft", False]).any()
    assert found["weft", True][-1] < found["weft", True][0]
