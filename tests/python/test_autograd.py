# SPDX-License-Identifier: Apache-2.0
"""Gradients by finite differences, over the operation table and the structured operations."""

import gc
import pathlib
import re

import numpy as np
import pytest

import weft
from weft import _core, nn
from weft._core import Tensor

ROWS = [r for r in _core.elementwise_rows if r["differentiable"]]


def draw(rng, domain, shape):
    x = rng.standard_normal(shape)
    if domain == "nonzero":
        x = np.sign(x) * (np.abs(x) + 0.5)
    elif domain == "positive":
        x = np.abs(x) + 0.5
    elif domain == "unit":
        x = np.tanh(x) * 0.8
    elif domain == "ge1":
        x = np.abs(x) + 1.5
    return x


def numeric(f, xs, k, eps=1e-6):
    g = np.zeros_like(xs[k])
    for i in np.ndindex(xs[k].shape):
        plus, minus = [x.copy() for x in xs], [x.copy() for x in xs]
        plus[k][i] += eps
        minus[k][i] -= eps
        g[i] = (f(*plus) - f(*minus)) / (2 * eps)
    return g


def check(f, *xs, rtol=2e-5, atol=2e-6):
    """Every gradient of sum(w * f(xs)), w fixed, and the gradient of a gradient."""
    w = None

    def value(*arrays):
        nonlocal w
        out = f(*[Tensor(a) for a in arrays])
        if w is None:
            w = np.cos(np.arange(out.size)).reshape(out.shape)
        return float((out.numpy() * w).sum())

    value(*xs)
    tensors = [Tensor(x) for x in xs]
    (f(*tensors) * weft.asarray(w)).sum().backward()
    for k in range(len(xs)):
        expected = numeric(value, list(xs), k)
        got = np.zeros_like(expected) if tensors[k].grad is None else tensors[k].grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=f"argument {k}")


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_every_gradient_of_the_table(rng, row):
    op = _core.operations[row["name"]]
    shapes = [(3, 4)] if row["arity"] == 1 else [(3, 4), (4,)]
    xs = [draw(rng, row["domain"], s) for s in shapes]
    check(op, *xs)
    if row["arity"] == 2:
        check(lambda x: op(x, 2.0), xs[0])
        check(lambda x: op(2.0, x), np.abs(xs[0]) + 0.3)


INDEX = weft.asarray([[0, 2, 1], [1, 1, 0]])
STRUCTURED = {
    "slices and arrays": (lambda a: a[1:, weft.asarray([[0, 2], [2, 2]]), ::-1], (3, 4, 2)),
    "arrays apart": (lambda a: a[weft.asarray([0, 2]), :, weft.asarray([1, 1])], (3, 4, 2)),
    "a mask": (lambda a: a[:, weft.asarray([True, False, True])], (2, 3)),
    "take": (lambda a: weft.take(a, weft.asarray([1, 0, 1]), axis=1), (3, 2, 2)),
    "take_along_axis": (lambda a: weft.take_along_axis(a, INDEX, axis=1), (2, 3)),
    "sort": (lambda a: weft.sort(a, axis=0, descending=True), (4, 3)),
    "topk": (lambda a: weft.topk(a, 2).values, (3, 4)),
    "cumulative_sum": (lambda a: weft.cumulative_sum(a, axis=1), (2, 4)),
    "scatter": (
        lambda a, v: weft.scatter(a, weft.asarray([2, 0, 2]), v, accumulate=True),
        (3, 2),
        (3, 2),
    ),
    "pad reflect": (lambda a: weft.pad(a, [(1, 2), (2, 0)], mode="reflect"), (3, 4)),
    "pad with a value": (lambda a: weft.pad(a, [(1, 2), (2, 0)], value=3.0), (3, 4)),
    "squeeze": (lambda a: weft.squeeze(weft.expand_dims(a, 1), 1), (3, 4)),
    "moveaxis": (lambda a: weft.moveaxis(a, 0, 2), (2, 3, 4)),
    "min": (lambda a: a.min(axis=1), (3, 4)),
    "prod": (lambda a: weft.prod(a, axis=(0, 2), keepdims=True), (3, 2, 5)),
    "prod at zeros": (lambda a: weft.prod(a * weft.asarray([0.0, 1.0, 1.0])), (3,)),
    "var": (lambda a: weft.var(a, axis=0, correction=1), (3, 4)),
    "std": (lambda a: weft.std(a, axis=1), (3, 4)),
    "logsumexp": (lambda a: weft.logsumexp(a, axis=1), (3, 4)),
    "softmax of the namespace": (lambda a: weft.softmax(a, axis=0), (3, 4)),
    "log_softmax of the namespace": (lambda a: weft.log_softmax(a, axis=1), (3, 4)),
    "layer_norm": (lambda a, s, t: weft.layer_norm(a, s, t), (3, 4), (4,), (4,)),
    "clip": (lambda a: weft.clip(a, -0.5, 0.7), (3, 4)),
    "einsum": (lambda a, b: weft.einsum("bij,jk->ik", a, b), (2, 3, 4), (4, 2)),
    "einsum of a diagonal": (lambda a, b: weft.einsum("iji,j->ij", a, b), (3, 2, 3), (2,)),
    "astype": (
        lambda a: weft.astype(a.astype("complex128") * 2.0, "complex128").astype("float64"),
        (3,),
    ),
    "conv2d in groups": (
        lambda x, w: _core.conv2d(x, w, (2, 1), (1, 2), (1, 2), 2),
        (2, 4, 5, 4),
        (4, 2, 3, 2),
    ),
    "conv_transpose2d": (
        lambda x, w: _core.conv_transpose2d(x, w, (2, 3), (1, 0), (1, 2), 2, (2, 1)),
        (2, 4, 3, 2),
        (4, 1, 2, 3),
    ),
    "conv1d": (lambda x, w: nn.functional.conv1d(x, w, None, 2, 1), (2, 3, 7), (2, 3, 3)),
    "conv_transpose1d": (
        lambda x, w: nn.functional.conv_transpose1d(x, w, None, 2, 1, 1),
        (2, 3, 4),
        (3, 2, 3),
    ),
    "avg_pool2d": (lambda x: nn.functional.avg_pool2d(x, 2), (1, 2, 4, 4)),
    "embedding": (lambda w: nn.functional.embedding(w, weft.asarray([[1, 0], [1, 2]])), (3, 4)),
    "mse": (nn.functional.mse, (3, 4), (3, 4)),
    "matmul": (lambda a, b: a @ b, (3, 4), (4, 2)),
    "batched matmul": (lambda a, b: a @ b, (2, 1, 3, 4), (5, 4, 2)),
    "vector matmul": (lambda a, b: a @ b, (4,), (4, 3)),
    "matmul vector": (lambda a, b: a @ b, (2, 3, 4), (4,)),
    "sum": (lambda a: a.sum((0, 2)), (2, 3, 4)),
    "mean": (lambda a: a.mean(1, True), (2, 3, 4)),
    "max": (lambda a: a.max(axis=1), (2, 3, 4)),
    "reshape": (lambda a: a.reshape(4, 6) * a.reshape(4, 6), (2, 3, 4)),
    "permute": (lambda a: a.permute(2, 0, 1), (2, 3, 4)),
    "broadcast_to": (lambda a: a.broadcast_to((5, 3, 4)), (3, 1)),
    "flip": (lambda a: a.flip(0), (3, 4)),
    "getitem": (lambda a: a[1:, ::-2], (3, 4)),
    "gather": (lambda a: a[weft.asarray([0, 2, 2])], (3, 4)),
    "concat": (lambda a, b: weft.concat([a, b * b], axis=1), (3, 2), (3, 3)),
    "stack": (lambda a, b: weft.stack([a, b], axis=1), (3, 2), (3, 2)),
    "where": (lambda a, b: weft.where(weft.asarray([True, False]), a, b), (3, 2), (3, 2)),
    "pad": (lambda a: a.pad([(1, 0), (2, 1)]), (3, 2)),
    "softmax": (lambda a: a.softmax(-1), (3, 4)),
    "log_softmax": (lambda a: a.log_softmax(0), (3, 4)),
    "windows": (lambda a: a.windows(2, 3, 2), (1, 2, 5, 6)),
    "conv2d": (lambda x, w: _core.conv2d(x, w, 2, 1), (2, 3, 5, 4), (2, 3, 3, 3)),
    "max_pool2d": (lambda x: nn.functional.max_pool2d(x, 2), (1, 2, 4, 4)),
    "attention": (
        lambda q, k, v: nn.functional.attention(q, k, v, causal=True),
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 5),
    ),
    "cross_entropy": (lambda x: nn.functional.cross_entropy(x, weft.asarray([0, 2, 1])), (3, 4)),
    "gelu": (nn.functional.gelu, (3, 4)),
}


def test_every_operation_that_records_itself_has_a_gradient_test(rng):
    """Names in make_tensor calls of the source against the graphs of the functions above."""
    source = pathlib.Path(__file__).resolve().parents[2] / "src/weft"
    made = set()
    for path in source.rglob("*.cpp"):
        made |= set(re.findall(r'make_tensor\(\s*"(\w+)"', path.read_text()))
    seen = set()
    for f, *shapes in STRUCTURED.values():
        xs = [Tensor(rng.standard_normal(s)) for s in shapes]
        out = f(*xs)
        out = (out * out).sum()
        gradients = _core.gradients([out], xs, True)
        for t in (out, *gradients):
            seen |= {n.op for n in _core.topological(t)}
    # On cards the pooling of the largest element is an operation of its own.
    x = Tensor(weft.asarray(rng.standard_normal((1, 2, 5, 6)).astype("float32")).to("opencl:0"))
    out = nn.functional.max_pool2d(x, 2, 1)
    (gradient,) = _core.gradients([(out * out).sum()], [x], True)
    (second,) = _core.gradients([(gradient * gradient).sum()], [x], True)
    for t in (out, gradient, second):
        seen |= {n.op for n in _core.topological(t)}
    q = Tensor(weft.asarray(rng.standard_normal((1, 1, 3, 4)).astype("float32")).to("opencl:0"))
    seen |= {n.op for n in _core.topological(nn.functional.attention(q, q, q))}
    norm = nn.BatchNorm2d(
        2, device="opencl:0"
    )  # tests/python/test_batch_norm_cards.py has its gradients
    seen |= {n.op for n in _core.topological(norm(x))}
    # tests/python/test_mean_pool.py has the gradients of these.
    rows = Tensor(weft.asarray(rng.standard_normal((3, 4)).astype("float32")).to("opencl:0"))
    labels = weft.asarray([0, 3, 1], device="opencl:0")
    wide = Tensor(weft.ones((9, 9), device="opencl:0"))
    linear = nn.functional.linear(wide, wide.T, wide.T[0])  # test_linear_cards.py
    for t in (nn.functional.cross_entropy(rows, labels), rows.mean(1), linear):
        seen |= {n.op for n in _core.topological(t)}
    assert len(made) > 15 and made - seen == set()


LAYERS = {
    "Linear": (lambda: nn.Linear(3, 2), (4, 3)),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3, stride=2, groups=2, padding=1), (2, 2, 4, 4)),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, dilation=2, padding=2), (2, 2, 6)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), (1, 2, 3, 3)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 3, 2), (1, 2, 3)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (5, 3)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((2, 1)), (2, 3, 4, 5)),
    "ELU": (lambda: nn.ELU(0.7), (4, 3)),
    "Softplus": (lambda: nn.Softplus(2.0), (4, 3)),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=0), (4, 3)),
    "GRU": (lambda: nn.GRU(2, 3, num_layers=2), (3, 2, 2)),
    "GRUCell": (lambda: nn.GRUCell(2, 3), (4, 2)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(2), (3, 2, 2, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(5), (3, 5)),
    "RMSNorm": (lambda: nn.RMSNorm(5, eps=1e-3), (3, 5)),
    "Dropout": (lambda: nn.Dropout(0.5).eval(), (3, 4)),
    "ReLU": (nn.ReLU, (3, 4)),
    "GELU": (nn.GELU, (3, 4)),
    "SiLU": (nn.SiLU, (3, 4)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.1), (3, 4)),
    "Sigmoid": (nn.Sigmoid, (3, 4)),
    "Tanh": (nn.Tanh, (3, 4)),
    "Softmax": (nn.Softmax, (3, 4)),
    "Identity": (nn.Identity, (3, 4)),
    "Flatten": (nn.Flatten, (2, 3, 2)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (1, 2, 4, 4)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), (1, 2, 4, 4)),
    "Residual": (lambda: nn.Residual(nn.Linear(3, 3)), (2, 3)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (2, 3)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), (2, 3)),
    "RNN": (lambda: nn.RNN(3, 4, num_layers=2), (3, 2, 3)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 2), (2, 3)),
    "LSTM": (lambda: nn.LSTM(3, 2), (3, 2, 3)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2, causal=True), (2, 3, 4)),
    "TransformerLayer": (lambda: nn.TransformerLayer(4, 2, hidden=5), (1, 3, 4)),
    "PReLU": (nn.PReLU, (3, 4)),
    "GLU": (nn.GLU, (3, 4)),
    "Softmin": (nn.Softmin, (3, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True), (2, 3, 4)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(2), (2, 2, 3, 2)),
    "Upsample": (lambda: nn.Upsample(scale_factor=1.5, mode="bilinear"), (1, 2, 3, 4)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (1, 4, 2, 3)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d(1), (1, 1, 2, 3)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 0, 2, 1), 3.0), (1, 1, 2, 3)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(1), (1, 1, 3, 3)),
    "ReplicationPad2d": (lambda: nn.ReplicationPad2d(2), (1, 1, 2, 3)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), (3, 4)),
    **{
        name: (getattr(nn, name), (3, 4))
        for name in "CELU Hardsigmoid Hardswish Hardtanh LogSigmoid Mish ReLU6 SELU Softsign".split()
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_by_finite_differences(rng, name):
    """With respect to the input and to every parameter."""
    make, shape = LAYERS[name]
    weft.random.seed(11)
    layer = make()
    parameters = layer.parameters()
    values = [rng.standard_normal(p.shape) * 0.5 for p in parameters]

    def f(x, *given):
        for p, v in zip(parameters, given):
            swap(layer, p, v)
        y = layer(x)
        for p, v in zip(parameters, given):
            swap(layer, v, p)
        return y[0] if isinstance(y, tuple) else y

    def swap(value, old, new):
        items = value.__dict__ if isinstance(value, nn.Module) else dict(enumerate(value))
        for k, v in items.items():
            if v is old:
                value.__dict__[k] = new
            elif isinstance(v, (nn.Module, list, tuple)):
                swap(v, old, new)

    check(f, rng.standard_normal(shape), *values, rtol=1e-4, atol=1e-5)


def test_the_table_of_layers_is_whole():
    others = {
        "Module",
        "Parameter",
        "functional",
        "init",
        "utils",
        "Embedding",
        "ModuleList",
        "ModuleDict",
        "ParameterDict",
        "ParameterList",
    }
    others |= {n for n in nn.__all__ if n.endswith("Loss")}  # beside torch: test_training_loops.py
    # Beside torch: test_names_torch.py. Lazy layers become the plain ones of this table.
    others |= {n for n in nn.__all__ if n.startswith(("Lazy", "MaxUnpool", "FractionalMaxPool"))}
    others |= {"CrossMapLRN2d", "DataParallel", "NLLLoss2d", "SyncBatchNorm"}
    others |= {"LPPool3d"}  # beside NumPy: test_torch_module_arguments.py
    # Values beside torch's pad: test_torch_utilities.py.
    others |= {"CircularPad1d", "CircularPad2d", "CircularPad3d", "ZeroPad1d", "ZeroPad3d"}
    # Values and gradients beside torch's; "Name{n}d" stands for one to three axes.
    catalogue = (pathlib.Path(__file__).parent / "test_torch_catalogue.py").read_text()
    for name in nn.__all__:
        many = re.sub("[123]d$", "{n}d", name)
        if re.search(rf"\b{name}\b", catalogue) or f'"{many}"' in catalogue:
            others.add(name)
    assert set(nn.__all__) - others <= set(LAYERS)


def test_state_moves_and_returns(rng):
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 2)
    )
    x = Tensor(rng.standard_normal((4, 2, 4, 4)).astype("float32"))
    model(x)
    state = model.state_dict()
    assert {"1.running_mean", "1.running_var", "3.bias"} < set(state)
    other = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 2)
    )
    other.load_state_dict({k: v.numpy() for k, v in state.items()})
    np.testing.assert_array_equal(other.eval()(x).numpy(), model.eval()(x).numpy())
    state["3.bias"][0] = 99.0  # a copy
    assert model.named_parameters()["3.bias"].data[0].item() != 99.0


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_gradients(rng, name):
    f, *shapes = STRUCTURED[name]
    check(f, *[rng.standard_normal(s) for s in shapes])


def test_gradients_of_gradients(rng):
    x = rng.standard_normal((3, 3))

    def first(t):  # gradient of sum(tanh(t @ t) * exp(t)) as a function of t
        return weft.grad(lambda u: (weft.tanh(u @ u) * weft.exp(u)).sum())(t)

    check(first, x)
    second = weft.grad(weft.grad(lambda t: t * t * t))(Tensor(2.0))
    assert second.item() == 12.0
    conv = lambda t: weft.grad(lambda u: (_core.conv2d(u, u[:, :, :2, :2], 1, 0) ** 2).sum())(t)  # noqa: E731
    check(conv, rng.standard_normal((1, 1, 4, 4)))


@pytest.mark.parametrize(
    "power, slopes", [(0, [0, 0, 0]), (0.0, [0, 0, 0]), (1, [1, 1, 1]), (2, [0, 4, -6])]
)
def test_powers_of_zero_have_a_slope(power, slopes):
    x = weft.Tensor([0.0, 2.0, -3.0], requires_grad=True)
    weft.sum(x**power).backward()
    assert x.grad.tolist() == slopes
    # The same, the power an array, in a compiled kernel too.
    bases, powers = [0.0, 2.0, 0.0, 0.0, -3.0], [0.0, 0.0, 1.0, 2.0, 2.0]
    for f in (lambda x, y: weft.sum(x**y), weft.compile(lambda x, y: weft.sum((x * 1.0) ** y))):
        x, y = (weft.Tensor(v, requires_grad=True) for v in (bases, powers))
        f(x, y).backward()
        assert x.grad.tolist() == [0, 0, 1, 0, -6]
        assert y.grad.tolist()[0] == y.grad.tolist()[2] == y.grad.tolist()[3] == 0


def test_graph_is_visible_and_topological():
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    c = a * b
    d = weft.exp(c) + a
    assert (
        d.op == "add"
        and [t.op for t in d.inputs] == ["exp", ""]
        and [hash(t) for t in c.inputs] == [hash(a), hash(b)]
    )
    order = _core.topological(d)
    place = {hash(t): i for i, t in enumerate(order)}  # a hash is the node's, == is elementwise
    assert all(place[hash(i)] < place[hash(t)] for t in order for i in t.inputs)
    assert hash(order[-1]) == hash(d)
    assert d.detach().op == "" and not d.detach().requires_grad


def test_long_chains_need_no_stack():
    x = Tensor(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    y.backward()
    assert x.grad.item() == 1.0
    del y
    gc.collect()


def test_gradients_accumulate_and_reset():
    x = Tensor([1.0, 2.0])
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(weft.ArgumentError) as info:
        Tensor([1.0], requires_grad=False).backward()
    assert info.value.code == "array.backward.constant"
    with pytest.raises(weft.ArgumentError, match="integers and truth values have none") as info:
        Tensor(weft.asarray([1, 2]), requires_grad=True).sum().backward()
    assert info.value.code == "array.backward.constant" and 'astype("float32")' in info.value.help
    with pytest.raises(weft.ShapeError, match="backward") as info:
        (x * 2.0).backward(weft.ones((3,)))
    assert info.value.code == "array.backward.seed"


def torch_close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


def test_layers_against_torch(rng):
    torch = pytest.importorskip("torch")
    x = rng.standard_normal((6, 3, 8, 8)).astype("float32")
    t = torch.tensor(x)
    ours, theirs = (
        nn.Conv2d(3, 5, 3, stride=2, padding=1),
        torch.nn.Conv2d(3, 5, 3, stride=2, padding=1),
    )
    ours.weight.data, ours.bias.data = theirs.weight.detach().numpy(), theirs.bias.detach().numpy()
    torch_close(ours(Tensor(x)), theirs(t))
    bn, tbn = nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    torch_close(bn(Tensor(x)), tbn(t))
    torch_close(bn.running_var, tbn.running_var)
    torch_close(bn.eval()(Tensor(x)), tbn.eval()(t))
    torch_close(nn.LayerNorm(8)(Tensor(x)), torch.nn.LayerNorm(8)(t))
    torch_close(nn.functional.max_pool2d(Tensor(x), 2), torch.nn.functional.max_pool2d(t, 2))
    torch_close(nn.GELU()(Tensor(x)), torch.nn.GELU()(t))
    s = rng.standard_normal((7, 4, 5)).astype("float32")
    lstm, tl = nn.LSTM(5, 6, num_layers=2), torch.nn.LSTM(5, 6, num_layers=2)
    for k, cell in enumerate(lstm.cells):
        cell.weight_ih.data = getattr(tl, f"weight_ih_l{k}").detach().numpy().T
        cell.weight_hh.data = getattr(tl, f"weight_hh_l{k}").detach().numpy().T
        cell.bias_ih.data = getattr(tl, f"bias_ih_l{k}").detach().numpy()
        cell.bias_hh.data = getattr(tl, f"bias_hh_l{k}").detach().numpy()
    torch_close(lstm(Tensor(s))[0], tl(torch.tensor(s))[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda p: weft.optim.SGD(p, 0.1),
        lambda p: weft.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
        lambda p: weft.optim.Adam(p, 0.01, weight_decay=0.1),
        lambda p: weft.optim.AdamW(p, 0.01, weight_decay=0.1),
    ],
)
def test_optimizers_against_torch(rng, make):
    torch = pytest.importorskip("torch")
    x = rng.standard_normal((4, 3))
    p, t = nn.Parameter(x), torch.nn.Parameter(torch.tensor(x))
    ours = make([p])
    theirs = {
        "SGD": lambda: torch.optim.SGD(
            [t], 0.1, momentum=getattr(ours, "momentum", 0), weight_decay=ours.weight_decay
        ),
        "Adam": lambda: torch.optim.Adam([t], 0.01, weight_decay=0.1),
        "AdamW": lambda: torch.optim.AdamW([t], 0.01, weight_decay=0.1),
    }[type(ours).__name__]()
    for _ in range(5):
        ours.zero_grad()
        theirs.zero_grad()
        (p * p * p).sum().backward()
        (t**3).sum().backward()
        ours.step()
        theirs.step()
    torch_close(p, t, 1e-10)


def test_a_transformer_and_an_mlp_learn():
    weft.random.seed(1)
    data = weft.data.synthetic_images(256, classes=4, shape=(8, 8), noise=0.3, seed=3)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Residual(nn.Linear(32, 32)),
        nn.LayerNorm(32),
        nn.Linear(32, 4),
    )
    opt = weft.optim.Adam(model.parameters(), 0.01)
    losses = []
    for epoch in range(4):
        for x, y in weft.data.DataLoader(data, 32, shuffle=True):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    assert losses[-1] < 0.2 < losses[0]
    layer = nn.TransformerLayer(16, 4, causal=True)
    opt = weft.optim.AdamW(layer.parameters(), 0.01)
    x = Tensor(weft.random.normal((2, 5, 16), key=weft.random.Key(5)), requires_grad=False)
    first = last = None
    for _ in range(30):
        opt.zero_grad()
        loss = nn.functional.mse(layer(x), x * 0.5)
        loss.backward()
        opt.step()
        first, last = (loss.item() if first is None else first), loss.item()
    assert last < first * 0.2
    # Causal: what comes later does not change what came before.
    y = x.data.copy()
    y[:, 4] = 9.0
    np.testing.assert_array_equal(layer(x).numpy()[:, :4], layer(Tensor(y)).numpy()[:, :4])


def test_methods_that_other_libraries_have(rng):
    a = rng.random((2, 1, 3)) + 0.5
    x = weft.Tensor(a)
    for name in "abs cos exp log relu rsqrt sigmoid sin sqrt square tanh".split():
        want = getattr(weft, name)(x)
        assert np.array_equal(getattr(x, name)().numpy(), want.numpy()), name
    assert x.view(3, 2).shape == (3, 2) and x.unsqueeze(-1).shape == (2, 1, 3, 1)
    assert x.squeeze().shape == x.squeeze(1).shape == (2, 3)
    assert x.flatten().shape == (6,) and x.flatten(1).shape == x.flatten(-2).shape == (2, 3)
    assert np.allclose(x.var(2, correction=1.0).numpy(), a.var(2, ddof=1))
    assert np.allclose(x.std().numpy(), a.std()) and np.allclose(
        x.clip(0.7, 0.9).numpy(), a.clip(0.7, 0.9)
    )
    assert np.array_equal(x.argmax(2).numpy(), a.argmax(2)) and x.argmin() == a.argmin()
    (x.exp().flatten() * 2.0).sum().backward()
    assert np.allclose(x.grad.numpy(), 2 * np.exp(a))


def test_a_model_says_what_it_is_made_of():
    net = weft.nn.Sequential(weft.nn.Linear(2, 3), weft.nn.Residual(weft.nn.ReLU()))
    text = repr(net)
    assert "0: Linear(weight: (2, 3), bias: (3,))" in text and "ReLU()" in text
    net(weft.Tensor(np.ones((1, 2), "float32"))).sum().backward()
    assert net.parameters()[0].grad is not None
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_elements_are_assigned_outside_of_graphs_only():
    w = weft.Tensor([1.0, 2.0, 3.0])
    with pytest.raises(weft.ArgumentError, match="no_grad") as e:
        w[0] = 5.0
    assert e.value.code == "array.tensor.assign" and w.numpy().tolist() == [1, 2, 3]
    with weft.no_grad():
        w[0] = 5.0
        w[1:] = weft.Tensor([7.0, 8.0])
    assert w.numpy().tolist() == [5, 7, 8] and w.requires_grad
    y = w * 2
    with pytest.raises(weft.ArgumentError, match="result of multiply") as e, weft.no_grad():
        y[0] = 1.0
    assert e.value.code == "array.tensor.assign"
    plain = weft.Tensor([[1, 2], [3, 4]], requires_grad=False)
    plain[weft.asarray([True, False])] = 9
    plain[1, 0] = weft.asarray(6)
    assert plain.numpy().tolist() == [[9, 9], [6, 4]]
    with pytest.raises(weft.Error):
        plain[5] = 0


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_extremes_share_the_gradient(name):
    x = weft.Tensor([[1.0, 1.0, 0.5], [2.0, 2.0, 2.0], [0.0, 1.0, 2.0]], requires_grad=True)
    (getattr(x, name)(axis=1) * weft.asarray([1.0, 6.0, 10.0])).sum().backward()
    wanted = {
        "max": [[0.5, 0.5, 0], [2, 2, 2], [0, 0, 10]],
        "min": [[0, 0, 1], [2, 2, 2], [10, 0, 0]],
    }
    np.testing.assert_array_equal(x.grad.numpy(), np.array(wanted[name], np.float32))
