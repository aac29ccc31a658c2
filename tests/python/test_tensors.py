# SPDX-License-Identifier: Apache-2.0
"""Tensors in daily use: truth, comparison, graphs, own operations, layers, optimizers."""

import pickle
import threading

import numpy as np
import pytest
from refusal import refused

import weft


def numeric(f, x, h=1e-6):
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        g[i] = (f(up) - f(down)) / (2 * h)
    return g


def test_the_truth_of_a_tensor_is_its_value():
    assert bool(weft.Tensor(2.0) > 1.0) is True and not weft.Tensor(0.0)
    with pytest.raises(TypeError):
        bool(weft.Tensor([1.0, 2.0]) > 0.0)
    with pytest.raises(TypeError):
        len(weft.Tensor(1.0))
    assert int(weft.Tensor(3.0)) == 3 and f"{weft.Tensor(2.5):.2f}" == "2.50"


def test_tensors_compare_element_by_element():
    x = weft.Tensor([1.0, 2.0, 3.0])
    assert (x == 2.0).tolist() == [False, True, False]
    assert (x != weft.Tensor([1.0, 2.0, 4.0])).tolist() == [False, False, True]
    assert (x >= 2.0).tolist() == [False, True, True] and (x <= 2.0).tolist() == [True, True, False]
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    assert 3.0 in x and 4.0 not in x
    matrix = weft.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert 3.0 in matrix and 3.0 in matrix.data and 5.0 not in matrix.data
    assert len({x, weft.Tensor([1.0])}) == 2  # still hashed by identity
    with pytest.raises(TypeError):
        x < "a"
    assert x[x > 1.5].tolist() == [2.0, 3.0]


def test_a_tensor_without_gradients_is_exported():
    x = weft.Tensor([1.0, 2.0])
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(x)
    assert np.shares_memory(np.from_dlpack(x.detach()), np.from_dlpack(x.data))


def test_remainders_have_gradients():
    x = weft.Tensor([1.25, -2.5])
    (x % 1.0 + (x // 1.0) + (+x)).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_functions_of_the_namespace_keep_the_graph():
    rng = np.random.RandomState(5)
    x = rng.rand(3, 3) + 0.5 * np.eye(3)
    b, w = weft.asarray(rng.rand(3, 2)), weft.asarray(rng.rand(3, 3))
    array = weft.asarray(rng.rand(3, 3))
    for name, f in {
        "concat": lambda t: (weft.concat([array, t], axis=0)[3:] * w).sum(),
        "stack": lambda t: (weft.stack([array, t])[1] * w).sum(),
        "roll": lambda t: (weft.roll(t, 1, axis=1) * w).sum(),
        "meshgrid": lambda t: (weft.meshgrid(t[0], t[1])[0] * w).sum(),
        "cumulative_prod": lambda t: (weft.cumulative_prod(t, axis=1) * w).sum(),
        "cumulative_sum": lambda t: (
            weft.cumulative_sum(t, axis=0, include_initial=True)[1:] * w
        ).sum(),
        "inv": lambda t: (weft.linalg.inv(t) * w).sum(),
        "det": lambda t: weft.linalg.det(t) * 2.0,
        "solve": lambda t: (weft.linalg.solve(t, t[:, :2] + b) * b).sum(),
        "solve vector": lambda t: (weft.linalg.solve(t, t[:, 0]) * b[:, 0]).sum(),
        "matrix_power": lambda t: (weft.linalg.matrix_power(t, 3) * w).sum(),
    }.items():
        t = weft.Tensor(x)
        f(t).backward()
        value = lambda v, f=f: f(weft.Tensor(v, requires_grad=False)).item()  # noqa: E731
        np.testing.assert_allclose(
            t.grad.numpy(), numeric(value, x), rtol=1e-5, atol=1e-6, err_msg=name
        )
    t = weft.Tensor(np.array([[1.0, 0.0, 2.0]]))
    weft.cumulative_prod(t, axis=1).sum().backward()
    assert t.grad.tolist() == [[1.0, 3.0, 0.0]]
    whole = lambda: weft.linalg.qr(weft.Tensor(x[:, :2]), mode="complete")  # noqa: E731
    error = refused(weft.ArgumentError, "array.qr.gradient", whole)
    assert "detach" in error.help
    np.testing.assert_allclose(weft.fft.fft(weft.Tensor(x).detach()).numpy(), np.fft.fft(x))
    assert weft.count_nonzero(weft.Tensor(x) > 0.0).item() == 9


def test_no_graph_is_made_inside_no_grad():
    x = weft.Tensor([1.0, 2.0])
    with weft.no_grad():
        y = x * 3.0
        seen = []
        thread = threading.Thread(target=lambda: seen.append((x * 3.0).requires_grad))
        thread.start()
        thread.join()
    assert not y.requires_grad and y.is_leaf and seen == [True]
    assert (x * 3.0).requires_grad

    @weft.no_grad()
    def evaluate(t):
        return t * 2.0

    assert not evaluate(x).requires_grad and (x * 1.0).requires_grad
    with pytest.raises(ZeroDivisionError), weft.no_grad():
        1 / 0
    assert (x * 1.0).requires_grad


def test_an_operation_of_ones_own():
    class Cube(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * x * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3.0 * ctx.scale * x * x, None

    x = weft.Tensor([1.0, 2.0])
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [2.0, 16.0] and y.op == "Cube"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0] and not x.grad.requires_grad
    second = weft.grad(lambda v: weft.grad(lambda u: Cube.apply(u, 1.0).sum())(v).sum())
    assert second(weft.Tensor([1.0, 2.0])).tolist() == [6.0, 12.0]

    class Few(Cube):
        @staticmethod
        def backward(ctx, g):
            return g

    error = refused(
        weft.ArgumentError, "array.function.gradients", Few.apply(x, 2.0).sum().backward
    )
    assert "2 gradients" in error.message

    class Narrow(Cube):
        @staticmethod
        def backward(ctx, g):
            return g[:1], None

    refused(weft.ShapeError, "array.function.shape", Narrow.apply(x, 2.0).sum().backward)

    class Text(Cube):
        @staticmethod
        def forward(ctx, x, scale):
            return "text"

    refused(weft.ArgumentError, "array.function.result", Text.apply, x, 1.0)


def test_tensors_move_between_devices_with_their_gradients():
    x = weft.Tensor([1.0, 2.0])
    y = x.to("ref")
    assert y.device.name == "ref" and x.to("cpu") is x
    (y * y).sum().backward()
    assert x.grad.device.name == "cpu" and x.grad.tolist() == [2.0, 4.0]


def test_the_gradient_of_a_compiled_function():
    f = weft.compile(lambda v: (weft.exp(v) * 2.0).sum())
    g = weft.grad(f)(weft.Tensor([0.0, 1.0]))
    np.testing.assert_allclose(g.numpy(), 2 * np.exp([0.0, 1.0]), rtol=1e-6)
    second = weft.grad(lambda v: weft.grad(f)(v).sum())(weft.Tensor([0.0, 1.0]))
    np.testing.assert_allclose(second.numpy(), 2 * np.exp([0.0, 1.0]), rtol=1e-6)


def test_modules_are_walked():
    nn = weft.nn
    model = nn.Sequential(
        nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5), nn.ReLU()), nn.Linear(3, 1)
    )
    assert len(model) == 3 and type(model[-1]) is nn.Linear and len(model[:2]) == 2
    assert [type(m).__name__ for m in model] == ["Linear", "Sequential", "Linear"]
    assert list(model.named_children().keys()) == ["0", "1", "2"]
    assert model.children()[1][0] is model.named_modules()["1.0"]
    assert not any(m.training for m in model.train(False).modules())
    assert all(m.training for m in model.train().modules())
    names = []
    assert (
        model.apply(lambda m: names.append(type(m).__name__)) is model and names[-1] == "Sequential"
    )
    model[0].requires_grad_(False)
    model(weft.ones((4, 2))).sum().backward()
    assert model[0].weight.grad is None and model[2].weight.grad is not None
    several = nn.ModuleList([nn.Linear(2, 2)]).append(nn.Linear(2, 1))
    assert len(several) == 2 and len(several.parameters()) == 4 and len(several[1:]) == 1
    assert "legal" in str(refused(weft.ArgumentError, "nn.dropout.p", nn.Dropout, 1.5))


def test_optimizers_say_what_they_take_and_go_on_from_a_state():
    optim = weft.optim
    p = weft.nn.Parameter([1.0, -2.0])
    error = refused(weft.DTypeError, "optim.params.type", optim.SGD, [p, {"params": [p]}])
    assert "dict" in error.message
    refused(weft.ArgumentError, "optim.lr", optim.SGD, [p], lr=-1.0)

    def run(make, steps, state=None, start=(1.0, -2.0)):
        q = weft.nn.Parameter(list(start), dtype="float64")
        o = make([q])
        if state is not None:
            o.load_state_dict(state)
        for _ in range(steps):
            o.zero_grad()
            (q * q * q * q).sum().backward()
            o.step()
        return q.tolist(), o.state_dict()

    import torch

    for make, twin in [
        (lambda ps: optim.SGD(ps, lr=0.01, momentum=0.9, nesterov=True), lambda ps: torch.optim.SGD(ps, lr=0.01, momentum=0.9, nesterov=True)),
        (lambda ps: optim.Adam(ps, lr=0.1, betas=(0.8, 0.9)), lambda ps: torch.optim.Adam(ps, lr=0.1, betas=(0.8, 0.9))),
        (lambda ps: optim.AdamW(ps, lr=0.1, weight_decay=0.1), lambda ps: torch.optim.AdamW(ps, lr=0.1, weight_decay=0.1)),
    ]:  # fmt: skip
        t = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
        o = twin([t])
        for _ in range(6):
            o.zero_grad()
            (t * t * t * t).sum().backward()
            o.step()
        whole, _ = run(make, 6)
        np.testing.assert_allclose(whole, t.detach().numpy(), rtol=1e-6)
        half, state = run(make, 3)
        state = pickle.loads(pickle.dumps(state))
        np.testing.assert_allclose(run(make, 3, state, half)[0], whole, rtol=1e-12)
    refused(weft.ArgumentError, "optim.state.names", optim.SGD([p]).load_state_dict, {})
