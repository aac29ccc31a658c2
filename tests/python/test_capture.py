# SPDX-License-Identifier: Apache-2.0
"""weft.capture and weft.compile(capture=True): what is replayed equals what would have been launched."""

import gc
import threading
import weakref

import numpy as np
import pytest

import weft
from weft import nn, optim
from weft.nn import functional as F

DEVICES = ["opencl:0", "cuda:0"]


@pytest.fixture(params=DEVICES)
def device(request):
    found = weft.device(request.param)
    if not found.available:
        pytest.skip(f"{request.param}: {found.reason}")
    return request.param


def array(rng, device, *shape):
    return weft.asarray(rng.standard_normal(shape) * 0.3, dtype="float32", device=device)


def parameters(rng, device):
    return {"w": array(rng, device, 8, 16), "b": array(rng, device, 16), "v": array(rng, device, 16, 4)}  # fmt: skip


def loss(p, x, y):
    h = weft.tanh(x @ p["w"] + p["b"])
    return ((h @ p["v"] - y) ** 2).mean()


def step(p, x, y):
    value, g = weft.value_and_grad(loss)(p, x, y)
    return {k: p[k] - 0.1 * g[k] for k in p}, value


@pytest.mark.parametrize("donate", [(), (0,)])
def test_steps_of_a_compiled_function(device, rng, donate):
    plain, captured = weft.compile(step), weft.compile(step, capture=True, donate=donate)
    p = parameters(rng, device)
    q = {k: v.copy() for k, v in p.items()}
    for _ in range(6):
        x, y = array(rng, device, 32, 8), array(rng, device, 32, 4)
        p, a = plain(p, x, y)
        q, b = captured(q, x, y)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
        for k in p:
            np.testing.assert_array_equal(p[k].numpy(), q[k].numpy())
    assert len(captured.launches) >= 1 and captured.launches[-1] > 5
    assert captured.traces == 1


def test_results_stay_when_the_next_call_runs(device, rng):
    f = weft.compile(lambda x: (x + 1.0, x), capture=True)
    kept = []
    for i in range(6):
        x = weft.full((5,), float(i), dtype="float32", device=device)
        kept.append(f(x))
    for i, (a, b) in enumerate(kept):
        assert a.numpy().tolist() == [i + 1.0] * 5
        assert b.numpy().tolist() == [float(i)] * 5


def test_arguments_that_alternate_and_views(device, rng):
    f = weft.compile(lambda x, y: x * 2.0 + y, capture=True)
    arrays = [array(rng, device, 6, 6) for _ in range(3)]
    for i in range(12):
        x, y = arrays[i % 3], arrays[(i + 1) % 3]
        x, y = (x, y) if i % 4 else (x.T, y[::-1])
        np.testing.assert_allclose(f(x, y).numpy(), x.numpy() * 2 + y.numpy(), rtol=1e-6)


def test_donated_arguments_that_change_places(device, rng):
    f = weft.compile(lambda a, b: (b + 1.0, a + 2.0), capture=True, donate=(0, 1))
    a = b = None
    x, y = array(rng, device, 7), array(rng, device, 7)
    a, b = x.copy(), y.copy()
    m, n = x.numpy(), y.numpy()
    for i in range(7):
        a, b = f(b, a) if i % 2 else f(a, b)
        m, n = (m + 1, n + 2) if i % 2 else (n + 1, m + 2)
        np.testing.assert_allclose(a.numpy(), m, rtol=1e-6)
        np.testing.assert_allclose(b.numpy(), n, rtol=1e-6)


def test_several_shapes(device, rng):
    f = weft.compile(lambda x: weft.exp(x).sum(0), capture=True)
    for n in (3, 4, 3, 4, 3, 4, 3, 0, 0, 0, 1, 1, 1):
        x = array(rng, device, n, 5)
        np.testing.assert_allclose(f(x).numpy(), np.exp(x.numpy()).sum(0), rtol=1e-5)


def network(device):
    weft.random.seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, bias=False, device=device),
        nn.BatchNorm2d(4, device=device),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 5, device=device),
    )


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
}


@pytest.mark.parametrize("zero_first", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_steps_of_a_module(device, rng, name, zero_first):
    models = [network(device) for _ in range(2)]
    optimizers = [OPTIMIZERS[name](m.parameters()) for m in models]

    def step_of(model, optimizer):
        def step(x, y):
            if zero_first:
                optimizer.zero_grad()
            value = F.cross_entropy(model(x), y)
            value.backward()
            optimizer.step()
            if not zero_first:
                optimizer.zero_grad()
            return value

        return step

    plain = step_of(models[0], optimizers[0])
    captured = weft.capture(step_of(models[1], optimizers[1]), state=(models[1], optimizers[1]))
    for i in range(8):
        x = weft.Tensor(array(rng, device, 6, 3, 4, 4), requires_grad=False)
        y = weft.asarray(rng.integers(0, 5, 6), device=device)
        if i == 5:  # options are looked at in every call
            for o in optimizers:
                o.lr = 0.002
        np.testing.assert_allclose(captured(x, y).numpy(), plain(x, y).numpy(), rtol=2e-5)
    assert captured.launches
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=2e-5, atol=2e-6)
    norms = [m.modules[1] if hasattr(m, "modules") and isinstance(m.modules, (list, tuple)) else None for m in models]  # fmt: skip
    if norms[0] is not None:
        np.testing.assert_allclose(norms[1].running_mean.numpy(), norms[0].running_mean.numpy(), rtol=1e-5)  # fmt: skip
    a, b = (o.state_dict() for o in optimizers)
    assert a["steps"] == b["steps"]


def test_parameters_replaced_between_calls(device, rng):
    layer = nn.Linear(4, 3, device=device)
    opt = optim.SGD(layer.parameters(), lr=0.1)

    def step(x):
        value = (layer(x) ** 2).sum()
        value.backward()
        opt.step()
        opt.zero_grad()
        return value

    captured = weft.capture(step, state=[layer, opt])
    for i in range(6):
        if i == 4:
            layer.weight.data = array(rng, device, 4, 3)
        x = weft.Tensor(array(rng, device, 5, 4), requires_grad=False)
        w, b = layer.weight.numpy(), layer.bias.numpy()
        y = x.numpy() @ w + b
        np.testing.assert_allclose(captured(x).numpy(), (y * y).sum(), rtol=1e-5)
        np.testing.assert_allclose(layer.weight.numpy(), w - 0.1 * x.numpy().T @ (2 * y), rtol=1e-4, atol=1e-5)  # fmt: skip


def test_gradients_that_accumulate(device, rng):
    layer = nn.Linear(4, 3, device=device)

    def step(x):
        value = layer(x).sum()
        value.backward()
        return value

    captured = weft.capture(step, state=layer)
    want = np.zeros(4, "float32")
    for _ in range(6):
        x = weft.Tensor(array(rng, device, 5, 4), requires_grad=False)
        captured(x)
        want = want + x.numpy().sum(0)
        np.testing.assert_allclose(layer.weight.grad.numpy(), want[:, None].repeat(3, 1), rtol=1e-5, atol=1e-6)  # fmt: skip


def twice(f, *args):
    for _ in range(3):
        f(*args)


def test_positions_outside_are_told(device, rng):
    table = array(rng, device, 5, 3)
    f = weft.capture(lambda t, i: weft.take(t, i, axis=0) * 2.0)
    inside, outside = (weft.asarray(v, device=device) for v in ([0, 4, 2], [0, 7, 2]))
    for _ in range(4):
        np.testing.assert_allclose(
            f(table, inside).numpy(), table.numpy()[[0, 4, 2]] * 2, rtol=1e-6
        )
    with pytest.raises(IndexError, match="outside its array") as refused:
        for _ in range(70):
            f(table, outside)
    assert refused.value.code == "capture.index"
    for _ in range(70):
        f(table, inside)


def test_captured_functions_inside_of_others(device, rng):
    inner = weft.compile(lambda x: weft.exp(x) * 2.0, capture=True)
    outer = weft.capture(lambda x: inner(x) + inner(x + 1.0))
    for _ in range(4):
        x = array(rng, device, 9)
        want = 2 * np.exp(x.numpy()) + 2 * np.exp(x.numpy() + 1)
        np.testing.assert_allclose(outer(x).numpy(), want, rtol=1e-5)
        np.testing.assert_allclose(inner(x).numpy(), 2 * np.exp(x.numpy()), rtol=1e-5)


def test_threads_share_a_captured_function(device, rng):
    f = weft.compile(lambda x: (x * 2.0).sum(1), capture=True)
    arrays = [array(rng, device, 40, 30) for _ in range(8)]
    wrong = []

    def work(x):
        want = x.numpy().sum(1) * 2
        for _ in range(10):
            if not np.allclose(f(x).numpy(), want, rtol=1e-4, atol=1e-4):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


REFUSALS = {
    "capture.gradient": lambda d, x: twice(weft.capture(lambda t: t * 2.0), weft.Tensor(x)),
    "capture.nothing": lambda d, x: twice(weft.capture(lambda: x)),
    "capture.donate.argument": lambda d, x: twice(weft.capture(lambda t: t, donate=3), x),
    "capture.donate.unused": lambda d, x: twice(weft.capture(lambda t: t.sum(), donate=0), x),
    "capture.result": lambda d, x: twice(weft.capture(lambda t: 3.0), x),
    "capture.state": lambda d, x: weft.capture(lambda t: t, state=[3]),
    "random.capture": lambda d, x: twice(
        weft.capture(lambda t: t + weft.random.normal((5,), device=d)), x
    ),  # fmt: skip
    "device.record.host": lambda d, x: twice(weft.capture(lambda t: t * float(t[0])), x),
}


@pytest.mark.parametrize("slug", REFUSALS)
def test_refusals(device, slug):
    x = weft.full((5,), 2.0, dtype="float32", device=device)
    with pytest.raises(weft.Error) as refused:
        REFUSALS[slug](device, x)
    assert refused.value.code == slug
    # The device works on after a recording that was given up.
    assert (x + 1.0).numpy().tolist() == [3.0] * 5


def test_optimizers_whose_rate_counts_steps(device):
    layer = nn.Linear(2, 2, device=device)
    opt = optim.NAdam(layer.parameters())

    def step(x):
        layer(x).sum().backward()
        opt.step()
        return x

    with pytest.raises(weft.Error, match="depends on the number of steps") as refused:
        weft.capture(step, state=[layer, opt])(
            weft.Tensor(weft.ones((1, 2), dtype="float32", device=device), requires_grad=False)
        )
    assert refused.value.code == "optim.capture"


def test_numbers_of_the_state_that_change(device):
    layer = nn.Linear(2, 2, device=device)
    layer.scale = 1.5

    def step(x):
        layer.scale = layer.scale * 0.5
        return x * layer.scale

    x = weft.ones((2,), dtype="float32", device=device)
    with pytest.raises(weft.Error, match="keep numbers that change in arrays") as refused:
        weft.capture(step, state=layer)(x)
    assert refused.value.code == "capture.number"


def test_the_host_records_nothing():
    f = weft.compile(lambda x: x + 1.0, capture=True)
    x = weft.ones((3,), device="cpu")
    f(x)
    with pytest.raises(weft.Error, match="legal: cuda and opencl devices") as refused:
        f(x)
    assert refused.value.code == "device.record.unsupported"


def test_another_stream_of_a_device_with_one_queue():
    from weft import _core

    if not weft.device("opencl:0").available:
        pytest.skip(weft.device("opencl:0").reason)
    with pytest.raises(weft.Error, match="has one queue") as refused:
        _core.Lane(_core.MemoryPool("opencl:0"), 17).__enter__()
    assert refused.value.code == "opencl.stream"


def test_a_module_that_holds_its_captured_step_is_freed(device):
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4, device=device)
            self.step = weft.capture(lambda x: self.linear(x).sum().detach(), state=self.linear)

    held = Held()
    x = weft.Tensor(weft.asarray(np.ones((2, 4), "float32"), device=device), requires_grad=False)
    for _ in range(4):
        held.step(x)
    gone = weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None


def test_a_recording_keeps_the_memory_that_it_reads(device):
    """Arrays that came before the recording and are gone when it is replayed."""
    from weft import _core

    def work():
        return given[0] * 2 + given[1]

    shape = (3000,)
    given = [weft.full(shape, 1.5, device=device), weft.full(shape, 4.0, device=device)]
    work()  # its kernels are built
    recording, out = _core._record(_core.MemoryPool(device), work)
    given.clear()
    gc.collect()
    # Memory that nobody holds goes to these.
    others = [weft.full(shape, 100.0 + k, device=device) for k in range(60)]
    for other in others:
        other.numpy()
    recording.replay()
    assert (out.numpy() == 7).all() and not recording.faulty()


def test_donated_arguments_behind_nested_ones():
    """Leaves are counted over all arguments before; attributes are those of the compiled function, if there is one."""
    from weft._capture import donated_leaves

    a = weft.ones(3)
    nested = ([a, [a, a]], a, {"x": a, "y": (a, a)}, a)
    assert donated_leaves(nested, {1}) == [3] and donated_leaves(nested, {0, 2}) == [
        0,
        1,
        2,
        4,
        5,
        6,
    ]
    assert donated_leaves(nested, {3}) == [7] and donated_leaves((3, a, "b", a), {3}) == [1]
    joined = weft.compile(lambda x: weft.exp(x * 2 + 1), capture=True)
    with pytest.raises(AttributeError, match="_absent"):
        joined._absent
    assert joined.traces == 0
    plain = weft.capture(lambda x: x + 1)
    with pytest.raises(AttributeError, match="traces"):
        plain.traces
