# SPDX-License-Identifier: Apache-2.0
"""How many kernels functions and their gradients launch on a device with a grid, and that results and gradients are those of PyTorch in
float64, on the grid and on the host: odd sizes, broadcasting, no elements, steps between elements, second derivatives."""

import numpy as np
import pytest
from present import present

import weft
from weft import Tensor, _core
from weft._functions.common import plain
from weft._pointwise import composed

torch = pytest.importorskip("torch")

F, G = weft.nn.functional, torch.nn.functional
WHERE = ["cpu", "opencl:0"]


@pytest.fixture(params=WHERE)
def where(request):
    return present(request.param)


@pytest.fixture
def grid():
    return present("opencl:0")


#: Name: (function of tensors of both libraries, how many operands, launches forward, launches of a backward pass beside that of the
#: sum at the end, which is a view). The libraries' own names differ in `m` alone.
ROWS = {
    "abs": (lambda m, f, x: abs(x), 1, 1, 1),
    "relu": (lambda m, f, x: f.relu(x), 1, 1, 1),
    "sigmoid": (lambda m, f, x: x.sigmoid(), 1, 1, 1),
    "tanh": (lambda m, f, x: x.tanh(), 1, 1, 1),
    "silu": (lambda m, f, x: f.silu(x), 1, 1, 1),
    "gelu": (lambda m, f, x: f.gelu(x), 1, 1, 1),
    "elu": (lambda m, f, x: f.elu(x), 1, 1, 1),
    "leaky_relu": (lambda m, f, x: f.leaky_relu(x, 0.1), 1, 1, 1),
    "softplus": (lambda m, f, x: f.softplus(x), 1, 1, 1),
    "mish": (lambda m, f, x: f.mish(x), 1, 1, 1),
    "erf": (lambda m, f, x: x.erf(), 1, 1, 1),
    "square": (lambda m, f, x: x**2, 1, 1, 1),
    "cube": (lambda m, f, x: x**3, 1, 1, 1),
    "power": (lambda m, f, x: abs(x) ** 2.5, 1, 2, 2),
    "half": (lambda m, f, x: x * 0.5, 1, 1, 1),
    "quotient": (lambda m, f, x: x / 3.0, 1, 1, 1),
    "reciprocal": (lambda m, f, x: 2.0 / (abs(x) + 1.0), 1, 3, 2),
    "product": (lambda m, f, x, y: x * y, 2, 1, 1),
    "divide": (lambda m, f, x, y: x / (abs(y) + 1.0), 2, 3, 2),
    "atan2": (lambda m, f, x, y: m.atan2(x, y), 2, 1, 1),
    "hypot": (lambda m, f, x, y: m.hypot(x, y), 2, 1, 1),
    "maximum": (lambda m, f, x, y: m.maximum(x, y), 2, 1, 1),
    "erfc": (lambda m, f, x: m.special.erfc(x), 1, 1, 1),
    "lgamma": (lambda m, f, x: (x * x + 0.3).lgamma(), 1, 3, 3),
    "digamma": (lambda m, f, x: (x * x + 0.3).digamma(), 1, 3, 3),
    "sinc": (lambda m, f, x: (abs(x) + 0.2).sinc(), 1, 3, 2),
    "logit": (lambda m, f, x: x.sigmoid().logit(), 1, 2, 2),
    "frac": (lambda m, f, x: x.frac(), 1, 1, 1),
    "i0e": (lambda m, f, x: m.special.i0e(x), 1, 1, 1),
    "log_ndtr": (lambda m, f, x: m.special.log_ndtr(x), 1, 1, 1),
    "entr": (lambda m, f, x: m.special.entr(abs(x)), 1, 2, 2),
    "lerp": (lambda m, f, x, y: x.lerp(y, 0.3), 2, 1, 1),
    "xlogy": (lambda m, f, x, y: x.xlogy(abs(y)), 2, 2, 2),
    "fmod": (lambda m, f, x, y: x.fmod(y), 2, 1, 1),
    "addcmul": (lambda m, f, x, y, z: x.addcmul(y, z, value=0.5), 3, 1, 1),
    "addcdiv": (lambda m, f, x, y, z: x.addcdiv(y, abs(z) + 1.0, value=0.5), 3, 3, 2),
    "mse_loss": (lambda m, f, x, y: f.mse_loss(x, y), 2, 1, 1),
    "l1_loss": (lambda m, f, x, y: f.l1_loss(x, y), 2, 1, 1),
    "smooth_l1_loss": (lambda m, f, x, y: f.smooth_l1_loss(x, y), 2, 2, 2),
    "huber_loss": (lambda m, f, x, y: f.huber_loss(x, y), 2, 1, 1),
    "cross entropy of probabilities": (
        lambda m, f, x, y: f.binary_cross_entropy(x.sigmoid(), y.sigmoid()), 2, 3, 3,
    ),
    "cross entropy of logits": (
        lambda m, f, x, y: f.binary_cross_entropy_with_logits(x, y.sigmoid()), 2, 2, 2,
    ),
    # The second gradient is zeros.
    "soft_margin_loss": (lambda m, f, x, y: f.soft_margin_loss(x, y.detach()), 2, 1, 2),
    "poisson_nll_loss": (lambda m, f, x, y: f.poisson_nll_loss(x, y), 2, 1, 1),
    "margin_ranking_loss": (lambda m, f, x, y, z: f.margin_ranking_loss(x, y, z, 0.3), 3, 1, 1),
    "layer_norm": (lambda m, f, x: f.layer_norm(x, x.shape[-1:]), 1, 1, 1),
    "rms_norm": (
        lambda m, f, x: f.rms_norm(x, x.shape[-1:], None, 1e-5)
        if hasattr(f, "rms_norm") else x * ((x * x).mean(-1, True) + 1e-5).rsqrt(), 1, 1, 1,
    ),
    "softmax": (lambda m, f, x: x.softmax(-1), 1, 1, 1),
    "log_softmax": (lambda m, f, x: x.log_softmax(-1), 1, 1, 1),
    "normalize": (lambda m, f, x: f.normalize(x), 1, 1, 1),
    # Two launches are the numbers of rows and columns, which other calls than recorded ones find made.
    "tril": (lambda m, f, x: m.tril(x), 1, 3, 3),
    "triu": (lambda m, f, x: m.triu(x, 1), 1, 3, 3),
}  # fmt: skip
#: Second derivatives that PyTorch has none of, or only at points.
ONCE = {"fmod", "maximum", "soft_margin_loss"}
#: Those that combine elements of a row.
BY_ROWS = {"layer_norm", "rms_norm", "softmax", "log_softmax", "normalize", "tril", "triu"}


def operands(count, shape=(7, 143), seed=41):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) * 1.5 + 0.01 for _ in range(count)]


def tensors(arrays, dtype, where):
    return [
        Tensor(weft.asarray(a.astype("float32"), device=where).astype(dtype), requires_grad=True)
        for a in arrays
    ]


def numbers(x):
    x = getattr(x, "data", x)
    return x.to("cpu").astype("float64").numpy()


def reference(f, arrays, dtype):
    """The result and the gradients of float64 at the operands as the type has them."""
    like = getattr(torch, dtype)
    leaves = [
        torch.from_numpy(a.astype("float32")).to(like).double().requires_grad_() for a in arrays
    ]
    out = f(torch, G, *leaves)
    g = torch.autograd.grad(out.sum(), leaves, allow_unused=True, create_graph=True)
    return leaves, out, g


def close(got, want, dtype, loose=1.0):
    tolerance = loose * {"float32": 3e-5, "float64": 1e-5, "bfloat16": 3e-2, "float16": 4e-3}[dtype]
    np.testing.assert_allclose(numbers(got), want.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", ROWS)
def test_results_and_gradients(where, name, dtype):
    f, count, *_ = ROWS[name]
    arrays = operands(count)
    _, want, gradients = reference(f, arrays, dtype)
    xs = tensors(arrays, dtype, where)
    out = f(weft, F, *xs)
    single = "float32" if dtype == "float32" else dtype
    # Functions around others round between them.
    loose = 1.0 if dtype == "float32" else 4.0
    close(out, want, single, loose)
    out.sum().backward()
    for x, g in zip(xs, gradients):
        if g is None and x.grad is None:
            continue
        assert str(x.grad.dtype) == dtype
        close(x.grad, torch.zeros(x.shape) if g is None else g, single, loose * 2)


@pytest.mark.parametrize("name", [n for n in ROWS if n not in ONCE])
def test_second_derivatives(where, name):
    f, count, *_ = ROWS[name]
    arrays = operands(count, (3, 37), 42)
    leaves, _, first = reference(f, arrays, "float32")
    mixed = sum((g * g.cos()).sum() for g in first if g is not None and g.requires_grad)
    if isinstance(mixed, int):  # the gradient is constant
        return
    want = torch.autograd.grad(mixed, leaves, allow_unused=True)
    xs = tensors(arrays, "float32", where)
    got = _core.gradients([f(weft, F, *xs).sum()], xs, True)
    total = None
    for g, h in zip(got, first):
        if g is None or h is None or not h.requires_grad:
            continue
        part = (g * weft.cos(g)).sum()
        total = part if total is None else total + part
    if not total.requires_grad:  # zero almost everywhere
        assert all(h is None or not (h + torch.zeros(h.shape)).any() for h in want)
        return
    for x, found, h in zip(xs, _core.gradients([total], xs, False), want):
        h = torch.zeros(x.shape) + (0 if h is None else h)
        found = weft.zeros(x.shape) if found is None else found
        close(found, h, "float32", 40.0 if name in ("lgamma", "digamma", "log_ndtr") else 8.0)


@pytest.mark.parametrize("name", ["product", "divide", "lerp", "addcmul", "xlogy", "fmod", "atan2"])
def test_operands_that_broadcast(where, name):
    f, count, *_ = ROWS[name]
    shapes = [(5, 1, 33), (4, 33), (1,)][:count]
    arrays = [operands(1, s, 50 + k)[0] for k, s in enumerate(shapes)]
    _, want, gradients = reference(f, arrays, "float32")
    xs = tensors(arrays, "float32", where)
    out = f(weft, F, *xs)
    assert tuple(out.shape) == tuple(want.shape)
    close(out, want, "float32")
    out.sum().backward()
    for x, g in zip(xs, gradients):
        close(x.grad, g, "float32", 20.0)


@pytest.mark.parametrize("name", ROWS)
def test_steps_between_elements_and_no_elements(where, name):
    f, count, *_ = ROWS[name]
    wide = operands(count, (22, 37), 60)
    views = [a.T[:, ::2] for a in wide]
    _, want, gradients = reference(f, views, "float32")
    whole = tensors(wide, "float32", where)
    xs = [Tensor(x.data.T[:, ::2], requires_grad=True) for x in whole]
    out = f(weft, F, *xs)
    close(out, want, "float32")
    out.sum().backward()
    for x, g in zip(xs, gradients):
        if g is not None:
            close(x.grad, g, "float32", 4.0)
    if "norm" in name or "softmax" in name:
        return
    empty = tensors(operands(count, (0, 5)), "float32", where)
    f(weft, F, *empty).sum().backward()
    assert all(x.grad is None or tuple(x.grad.shape) == (0, 5) for x in empty)


def recorded(grid, work):
    for _ in range(2):  # numbers that are seen once are not traced
        work()
    return _core._record(_core.MemoryPool(grid), work)[0].launches


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ROWS)
def test_launches(grid, name, dtype):
    f, count, forward, backward = ROWS[name]
    arrays = [x.data for x in tensors(operands(count), dtype, grid)]
    plain = [Tensor(a, requires_grad=False) for a in arrays]
    assert recorded(grid, lambda: f(weft, F, *plain)) == forward
    leaves = [Tensor(a, requires_grad=True) for a in arrays]
    seed = Tensor(
        weft.ones(f(weft, F, *plain).shape, dtype=dtype, device=grid), requires_grad=False
    )

    def both():
        _core.gradients([f(weft, F, *leaves)], leaves, False, [seed])

    assert recorded(grid, both) <= forward + backward


@pytest.mark.parametrize("name", [n for n in ROWS if n not in BY_ROWS])
def test_operands_that_lie_transposed(grid, name):
    """Work goes along memory, forward and backward: as many launches as compact operands take."""
    f, count, forward, backward = ROWS[name]
    arrays = operands(count)
    leaves = [Tensor(x.data.T, requires_grad=True) for x in tensors(arrays, "float32", grid)]
    plain = [Tensor(x.data, requires_grad=False) for x in leaves]
    _, want, gradients = reference(f, [a.T for a in arrays], "float32")
    out = f(weft, F, *plain)
    close(out, want, "float32")
    assert recorded(grid, lambda: f(weft, F, *plain)) == forward
    ones = (
        weft.ones(tuple(reversed(out.shape)), device=grid).T
        if out.ndim
        else weft.ones((), device=grid)
    )
    seed = Tensor(ones, requires_grad=False)
    both = lambda: _core.gradients([f(weft, F, *leaves)], leaves, False, [seed])  # noqa: E731
    for x, g in zip(both(), gradients):
        if g is not None:
            close(x, g, "float32", 4.0)
    assert recorded(grid, both) <= forward + backward


#: Name: (function of tensors of both libraries, shapes of operands, most launches forward, with a backward pass)
MOVED = {
    "cross": (lambda m, x, y: m.linalg.cross(x, y, dim=0) if m is torch else m.linalg.cross(x, y, axis=0), ((3, 9), (3, 9)), 2, 6),
    "cross, broadcast": (lambda m, x, y: m.linalg.cross(x, y), ((4, 1, 3), (1, 5, 3)), 2, 8),
    "diagonal": (lambda m, x: x.diagonal(-2, 1, 2), ((2, 6, 5),), 0, 2),
    "diagonal of one": (lambda m, x: x.diagonal(4, 1, 2), ((2, 6, 5),), 0, 2),
    "diag_embed": (lambda m, x: m.diag_embed(x, -3), ((2, 7),), 2, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_launches_of_moved_elements(grid, name):
    f, shapes, forward, both = MOVED[name]
    arrays = [operands(1, s, 90 + k)[0] for k, s in enumerate(shapes)]
    leaves = [torch.from_numpy(a.astype("float32")).double().requires_grad_() for a in arrays]
    want = f(torch, *leaves)
    weights = operands(1, tuple(want.shape), 95)[0]
    gradients = torch.autograd.grad(want, leaves, torch.from_numpy(weights))
    xs = tensors(arrays, "float32", grid)
    plain = [Tensor(x.data, requires_grad=False) for x in xs]
    close(f(weft, *plain), want, "float32")
    assert recorded(grid, lambda: f(weft, *plain)) <= forward
    seed = Tensor(weft.asarray(weights.astype("float32"), device=grid), requires_grad=False)
    step = lambda: _core.gradients([f(weft, *xs)], xs, False, [seed])  # noqa: E731
    for x, g in zip(step(), gradients):
        close(x, g, "float32", 4.0)
    assert recorded(grid, step) <= both


def test_results_in_arrays_that_exist(where):
    """`out=` and `where=` write the array that is given, in place and beside it."""
    rng = np.random.default_rng(71)
    for dtype in ("float32", "int32", "complex64", "complex128"):
        a, b, o = (rng.integers(-9, 9, (7, 12)).astype(dtype) for _ in range(3))
        mask = rng.random((7, 12)) < 0.5
        x, y, m = (weft.asarray(v, device=where) for v in (a, b, mask))
        for make in (lambda v: v.copy(), lambda v: v.T.copy().T):
            out = weft.asarray(make(o), device=where)
            assert weft.add(x, y, out=out) is out
            np.testing.assert_array_equal(out.to("cpu").numpy(), a + b)
            weft.multiply(out, 3, out=out)
            np.testing.assert_array_equal(out.to("cpu").numpy(), (a + b) * 3)
            weft.negative(x, out=out)
            np.testing.assert_array_equal(out.to("cpu").numpy(), -a)
            weft.subtract(x, y, out=out, where=m)
            np.testing.assert_array_equal(out.to("cpu").numpy(), np.where(mask, a - b, -a))
        square = weft.asarray(a[:, :7].copy(), device=where)
        weft.negative(square.T, out=square)  # reads what it writes, in another order
        np.testing.assert_array_equal(square.to("cpu").numpy(), -a[:, :7].T)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
def test_launches_of_results_in_arrays_that_exist(grid, dtype):
    x, y, out = (weft.asarray(np.ones((5, 9), dtype), device=grid) for _ in range(3))
    mask = weft.asarray(np.eye(5, 9) > 0, device=grid)
    assert recorded(grid, lambda: weft.add(x, y, out=out)) == 1
    assert recorded(grid, lambda: weft.negative(x, out=x)) == 1
    assert recorded(grid, lambda: weft.multiply(x, y, out=out, where=mask)) == 2


#: Name: (function of arrays, kinds of its operands, launches)
OTHER_TYPES = {
    "fmod of int32": (lambda x, y: x.fmod(y), ("int32", "int32"), 1),
    "fmod of int64 by a number": (lambda x: x.fmod(7), ("int64",), 1),
    "fmod of mixed types": (lambda x, y: x.fmod(y), ("float32", "float64"), 1),
    "addcmul of int32": (lambda x, y, z: x.addcmul(y, z, value=3), ("int32",) * 3, 1),
    "addcmul of mixed types": (lambda x, y, z: x.addcmul(y, z), ("float32", "int32", "int16"), 1),
    "xlogy of mixed types": (lambda x, y: x.xlogy(y), ("int32", "float32"), 1),
    "lerp of mixed types": (lambda x, y: x.lerp(y, 0.25), ("bfloat16", "float32"), 1),
    "isclose of int32": (lambda x, y: x.isclose(y), ("int32", "int32"), 1),
    "isclose of float32": (lambda x, y: x.isclose(y), ("float32", "float32"), 1),
    "sinc of int32": (lambda x: weft.sinc(x), ("int32",), 1),
    "modf": (lambda x: weft.modf(x), ("float32",), 1),
    "frexp": (lambda x: weft.frexp(x), ("float32",), 1),
    "clip of int64": (lambda x: weft.clip(x, 3, 11), ("int64",), 1),
    "clip of transposed float32": (lambda x: weft.clip(x.T, 3, 11.5), ("float32",), 1),
    "heaviside": (lambda x: weft.heaviside(x, 0.5), ("float32",), 1),
    "bitwise_count": (lambda x: weft.bitwise_count(x), ("uint32",), 1),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_integers_and_mixed_types(grid, name):
    f, kinds, launches = OTHER_TYPES[name]
    rng = np.random.default_rng(70)
    host = [
        weft.asarray(rng.integers(1, 50, (9, 31)).astype("float32") - 9).astype(k) for k in kinds
    ]
    host = [weft.where(a == 0, weft.ones_like(a), a) for a in host]
    want = f(*host)
    there = [a.to(grid) for a in host]
    got = f(*there)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want))):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=2e-6)
    assert recorded(grid, lambda: f(*there)) == launches


def test_one_kernel_serves_all_shapes(grid):
    """Shapes are arguments: other extents build nothing."""
    f = ROWS["lgamma"][0]

    def step(n):
        (x,) = tensors(operands(1, (n, 64)), "float32", grid)
        f(weft, F, x).sum().backward()

    for n in (3, 5):
        step(n)
    # Sums have programs for orders of size.
    built = lambda: [p[3] for p in _core.built_programs() if p[0].startswith("fused")]  # noqa: E731
    before = built()
    assert before
    for n in (6, 9, 11):
        step(n)
    assert built() == before


def test_steps_of_optimizers_join_small_parameters(where):
    """As many launches as a step of a few parameters has, and PyTorch's values."""
    shapes = [(7,), (5, 3), (1,), (33, 9), (0,), (2, 2, 2)] * 6
    rng = np.random.default_rng(80)
    values = [rng.standard_normal(s).astype("float32") for s in shapes]
    grads = [rng.standard_normal(s).astype("float32") for s in shapes]
    for name, options in (("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {}), ("RMSprop", {})):
        own = [Tensor(weft.asarray(v, device=where), requires_grad=True) for v in values]
        other = [torch.from_numpy(v.copy()).requires_grad_() for v in values]
        steps = [
            getattr(weft.optim, name)(own, lr=0.05, **options),
            getattr(torch.optim, name)(other, lr=0.05, **options),
        ]
        for _ in range(3):
            for x, y, g in zip(own, other, grads):
                x.grad = Tensor(weft.asarray(g, device=where), requires_grad=False)
                y.grad = torch.from_numpy(g.copy())
            for s in steps:
                s.step()
        for x, y in zip(own, other):
            np.testing.assert_allclose(numbers(x), y.detach().numpy(), rtol=2e-5, atol=2e-6)
        if where != "cpu":
            assert recorded(where, steps[0].step) <= 5, name


def test_gradients_do_not_pass_what_is_plain(where):
    """A trace holds what a composition takes without the graph, as the composition itself does."""
    f = composed(lambda x: x * plain(x) + plain(x), long=True)
    values = np.asarray([[-2.0, 0.5, 3.0]], "float32")
    for _ in range(2):
        x = Tensor(weft.asarray(values, device=where), requires_grad=True)
        f(x).sum().backward()
        np.testing.assert_array_equal(numbers(x.grad), values)
