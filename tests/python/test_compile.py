# SPDX-License-Identifier: Apache-2.0
"""weft.compile beside the same functions run eagerly: named shapes of work, random chains, gradients, refusals."""

import random

import numpy as np
import pytest

from present import present
import weft

SEED = 20261121


def _rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def _array(rng, *shape, dtype="float32"):
    return weft.asarray(rng.standard_normal(shape).astype(dtype))


def _same(compiled, function, *args, tol=1e-4):
    got, want = compiled(*args), function(*args)
    single = not isinstance(want, (tuple, list))
    for g, w in zip([got] if single else got, [want] if single else want):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=tol, atol=tol)


CASES = {
    "chain": (lambda a, b: weft.tanh(a * 2.0 + b) * weft.exp(-a * a), (100,), (100,), 1),
    "total": (lambda a, b: weft.sum(weft.tanh(a * 2.0 + b)), (100,), (100,), 1),
    "row broadcast": (lambda a, b: (a + b) * a - 1.0, (37, 53), (53,), 1),
    "column broadcast": (lambda a, b: (a + b) * a - 1.0, (37, 53), (37, 1), 1),
    "row sums": (lambda a, b: weft.sum((a + b) * (a - b), axis=1), (37, 53), (53,), 1),
    "column sums": (lambda a, b: weft.sum((a + b) * (a - b), axis=0), (37, 530), (530,), 1),
    "column maxima": (lambda a, b: weft.max(a * b, axis=0, keepdims=True), (37, 53), (53,), 1),
    "middle axis": (lambda a, b: weft.min(a * b, axis=1), (5, 7, 300), (300,), 1),
    "outer axes": (lambda a, b: weft.sum(a * b, axis=(0, 2)), (5, 7, 300), (300,), 1),
    "softmax": (lambda a, b: weft.softmax(a * b + b), (7, 53), (53,), 1),
    "logsumexp": (lambda a, b: weft.logsumexp(a * b + b, axis=1), (7, 53), (53,), 1),
    "where": (lambda a, b: weft.where(a > b, a * 2.0, b - a), (37, 53), (53,), 1),
    "long total": (lambda a, b: weft.mean(a * a + b), (1 << 17,), (1,), 2),
    "two results": (lambda a, b: (a + b * a, weft.sum(a * b, axis=0)), (37, 53), (53,), 1),
    "one row": (lambda a, b: weft.exp(a + b), (1, 5), (5,), 1),
    "scalars": (lambda a, b: weft.exp(a + b), (), (), 1),
}


BRIEF = ("total", "softmax", "logsumexp", "one row", "scalars")


@pytest.mark.parametrize(
    "function",
    [
        lambda a: weft.sqrt(a),
        lambda a: a + 2.0,
        lambda a: 1.0 / a,
        lambda a: weft.sum(a),
        lambda a: weft.max(a, axis=0),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_one_operation_alone_is_the_eager_one(function, dtype):
    x = weft.asarray(np.random.default_rng(3).random((70, 901)) + 0.1).astype(dtype)
    compiled = weft.compile(function)
    np.testing.assert_array_equal(
        compiled(x).astype("float64").numpy(), function(x).astype("float64").numpy()
    )
    assert compiled.kernels == 1 and not compiled.source()


def test_operations_on_few_elements_are_called_without_the_function():
    calls = []

    def function(a, b):
        calls.append(1)
        return a - b

    compiled = weft.compile(function)
    a, b = weft.asarray([1.0, 2.0, 4.0]), weft.asarray([[3.0], [5.0]])
    for _ in range(3):
        np.testing.assert_array_equal(compiled(a, b).numpy(), a.numpy() - b.numpy())
        np.testing.assert_array_equal(compiled(b, a).numpy(), b.numpy() - a.numpy())
    assert len(calls) == 2  # one trace for each order of shapes
    product = weft.compile(lambda a: calls.append(1) or a.T @ a)
    both = weft.compile(lambda a: calls.append(1) or weft.max(a) - weft.sum(a, axis=0))
    reduced = weft.compile(lambda a: calls.append(1) or weft.sum(a, axis=0, keepdims=True))
    for _ in range(3):
        np.testing.assert_allclose(product(b).numpy(), b.numpy().T @ b.numpy())
        np.testing.assert_array_equal(reduced(b).numpy(), [[8.0]])
        np.testing.assert_array_equal(both(b).numpy(), [-3.0])
    assert len(calls) == 2 + 3 + 1 + 1  # a view beside a product is the function's own
    # Inside of derivatives the values are the same, and tensors have their gradients.
    t = weft.Tensor(a, requires_grad=True)
    compiled(t, weft.Tensor(b)).sum().backward()
    np.testing.assert_array_equal(t.grad.data.numpy(), [2.0, 2.0, 2.0])
    second = weft.grad(weft.grad(lambda x: (compiled(x * x * x, a[0]) + compiled(a, a)).sum()))
    np.testing.assert_allclose(second(weft.asarray(2.0)).numpy(), 3 * 12.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
def test_variances_take_the_eager_pass_over_memory(axis, dtype):
    x = weft.asarray(np.random.default_rng(8).standard_normal((7, 30, 11)) + 300).astype(dtype)
    for name in ("var", "std"):
        for more in ({}, {"correction": 1}, {"keepdims": True}):
            eager = lambda x: getattr(weft, name)(x, axis=axis, **more)  # noqa: B023, E731
            compiled = weft.compile(eager)
            got, want = compiled(x), eager(x)
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(
                got.astype("float64").numpy(), want.astype("float64").numpy()
            )
            assert {"var": "variance", "std": "deviation"}[name] in compiled.describe()
    if dtype == "bfloat16":
        return
    normal = lambda x: ((x - 300) / (1 + weft.var(x, axis=axis, keepdims=True))).sum()  # noqa: E731
    a, b = weft.Tensor(x, requires_grad=True), weft.Tensor(x, requires_grad=True)
    weft.compile(normal)(a).backward()
    normal(b).backward()
    np.testing.assert_allclose(a.grad.data.numpy(), b.grad.data.numpy(), rtol=2e-3, atol=2e-3)


def test_narrow_sums_are_added_up_in_float32():
    x = weft.ones((3000, 5)).astype("bfloat16")
    total = weft.compile(lambda x: (x * x).sum())(x)
    assert float(total) == 14976.0  # the nearest to 15000; a sum in bfloat16 ends at 256
    rows = weft.compile(lambda x: (x * x).sum(axis=0))(x)
    assert rows.dtype == "bfloat16" and rows.tolist() == [3008.0] * 5


@pytest.mark.parametrize("name", CASES)
def test_same_as_eager_and_kernel_count(name):
    function, first, second, kernels = CASES[name]
    rng = _rng()
    compiled = weft.compile(function)
    _same(compiled, function, _array(rng, *first), _array(rng, *second))
    assert compiled.kernels == kernels, compiled.describe()
    # Up to three operations on few elements run as these operations.
    assert bool(compiled.source()) == (name not in BRIEF)


def test_views_types_and_traces():
    rng = _rng()
    f = lambda a: weft.exp(a) * 2.0
    compiled = weft.compile(f)
    base = _array(rng, 40, 60)
    for view in (base, base[::2, ::-1], base.T, base[3], base[:, 3:4]):
        _same(compiled, f, view)
    _same(compiled, f, _array(rng, 40, 60, dtype="float64"), tol=1e-6)
    assert compiled.traces == 6
    ints = weft.asarray(rng.integers(-5, 6, (33, 47)).astype("int32"))
    g = lambda a: weft.sum(a * a + 1, axis=1)
    _same(weft.compile(g), g, ints)
    h = lambda a: weft.any(a > 4, axis=0)
    _same(weft.compile(h), h, ints)
    empty = weft.zeros((0, 4))
    assert weft.compile(f)(empty).shape == (0, 4)
    assert weft.compile(lambda a: weft.sum(a * 2.0, axis=0))(empty).numpy().tolist() == [0.0] * 4


UNARY = ["exp", "tanh", "sin", "abs", "negative", "square", "sigmoid", "relu"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


def _random_function(choose):
    """A list of steps over a stack of values; the same list runs on arrays and on traced values."""
    steps = [
        (choose.choice(UNARY), choose.random())
        if choose.random() < 0.5
        else (choose.choice(BINARY), choose.random())
        for _ in range(choose.randint(1, 9))
    ]
    reduction = choose.choice([None, "sum", "max", "min"])
    axis = choose.choice([None, 0, 1, (0, 1)])

    def function(a, b, c):
        values = [a, b, c]
        for name, r in steps:
            x = values[int(r * len(values))]
            y = values[-1]
            if name in UNARY:
                values.append(getattr(weft, name)(weft.tanh(x) if name == "exp" else x))
            else:
                values.append(getattr(weft, name)(x, y))
            values[-1] = values[-1] * 0.5
        out = values[-1] + a * 0.25
        return out if reduction is None else getattr(weft, reduction)(out, axis=axis)

    return function


@pytest.mark.parametrize("case", range(24))
def test_random_chains(case):
    choose = random.Random(SEED + case)
    rng = np.random.default_rng(SEED + case)
    print("seed", SEED + case)
    function = _random_function(choose)
    rows, columns = choose.choice([(1, 1), (3, 17), (33, 64), (5, 129)])
    args = _array(rng, rows, columns), _array(rng, columns), _array(rng, rows, 1)
    compiled = weft.compile(function)
    _same(compiled, function, *args, tol=2e-4)
    assert compiled.kernels <= 3
    # Gradients of the same chain.
    eager = [weft.Tensor(a) for a in args]
    fused = [weft.Tensor(a) for a in args]
    y = function(*eager)
    seed = _array(rng, *y.shape)
    y.backward(seed)
    compiled(*fused).backward(seed)
    for e, f in zip(eager, fused):
        if e.grad is None:
            assert f.grad is None or not np.any(f.grad.numpy())
            continue
        np.testing.assert_allclose(f.grad.numpy(), e.grad.numpy(), rtol=2e-3, atol=2e-3)


def test_gradient_through_products_and_captured_tensors():
    rng = _rng()
    x, w, b = (weft.Tensor(_array(rng, *s)) for s in ((17, 5), (5, 9), (9,)))
    compiled = weft.compile(lambda x: weft.sum(weft.relu(x @ w + b)))
    compiled(x).backward()
    want = [t.grad.numpy() for t in (x, w, b)]
    for t in (x, w, b):
        t.grad = None
    weft.sum(weft.relu(x @ w + b)).backward()
    for t, g in zip((x, w, b), want):
        np.testing.assert_allclose(t.grad.numpy(), g, rtol=1e-4, atol=1e-4)
    assert compiled.backward_kernels() >= 1


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda a: a[a > 0], "mask"),
        (lambda a: weft.unique_values(a), "unique_values"),
        (lambda a: a if a else a, "truth"),
        (lambda a: float(a), "number"),
        (lambda a: 3, "returns int"),
        (lambda a: a.nonzero(), "nonzero"),
    ],
)
def test_what_a_trace_cannot_hold_is_refused(function, text):
    with pytest.raises(weft.Error, match=text) as caught:
        weft.compile(function)(weft.ones((3,)))
    assert caught.value.code == "compile.trace.unsupported"


def test_other_refusals():
    compiled = weft.compile(lambda a: weft.exp(a))
    with pytest.raises(weft.Error, match="not called yet") as caught:
        compiled.kernels  # noqa: B018
    assert caught.value.code == "compile.trace.none"
    x = weft.Tensor(weft.ones((3,)))
    with pytest.raises(weft.Error, match="prod has no gradient rule") as caught:
        weft.compile(lambda a: weft.prod(a))(x).backward()
    assert caught.value.code == "compile.gradient.none"
    y = compiled(x).sum()
    y.backward(create_graph=True)
    with pytest.raises(weft.Error, match="has none itself") as caught:
        x.grad.sum().backward()
    assert caught.value.code == "compile.gradient.second"
    with pytest.raises(weft.Error, match="inner|matmul") as caught:
        weft.compile(lambda a, b: a @ b)(weft.ones((2, 3)), weft.ones((2, 3)))
    assert caught.value.code == "array.matmul.inner_extent"


def test_axes_that_are_no_permutation_are_refused_while_tracing():
    twice = weft.compile(lambda a: weft.permute_dims(a, (0, 0)) * 2)
    with pytest.raises(weft.ArgumentError, match="no permutation") as refused:
        twice(weft.ones((2, 3)))
    assert refused.value.code == "array.permute.axes"


def test_rounds_as_eager_unless_contraction_is_asked_for():
    rng = _rng()
    a, b, c = (_array(rng, 100_003) for _ in range(3))

    def chain(a, b, c):
        return weft.exp(a * b + c) * c - weft.tanh(a * a - b) + weft.log(c * c + b * b)

    exact, loose = weft.compile(chain), weft.compile(chain, contract=True)
    want = chain(a, b, c).numpy()
    assert np.array_equal(exact(a, b, c).numpy(), want, equal_nan=True)
    near = loose(a, b, c).numpy()
    np.testing.assert_allclose(near, want, rtol=1e-3, atol=1e-3)
    if "fma" in open("/proc/cpuinfo").read():
        assert not np.array_equal(near, want), "nothing was contracted"
    wide = [weft.asarray(x.numpy().astype("float64")) for x in (a, b, c)]
    product = weft.compile(lambda a, b, c: a * b + c)
    assert np.array_equal(product(*wide).numpy(), (wide[0] * wide[1] + wide[2]).numpy())
    assert weft.compile(product) is product
    assert weft.compile(product, contract=True).contract


def test_values_used_many_times_are_computed_once():
    def chain(x):
        k = x
        for _ in range(40):
            k = weft.sin(x + 0.01 * k) + 0.1 * k
        return k

    x = _array(_rng(), 1003)
    compiled = weft.compile(chain)
    _same(compiled, chain, x, tol=1e-5)
    assert compiled.kernels == 1
    assert compiled.source().count("call float @sinf(") <= 80  # vectors and the rest: once a link


def test_kernels_of_many_arrays_are_cut():
    arrays = [_array(_rng(), 3, 5) for _ in range(40)]
    _same(weft.compile(lambda *xs: sum(xs[1:], xs[0])), lambda *xs: sum(xs[1:], xs[0]), *arrays)
    _same(
        weft.compile(lambda *xs: weft.sum(sum(xs[1:], xs[0]), axis=0)),
        lambda *xs: weft.sum(sum(xs[1:], xs[0]), axis=0),
        *arrays,
    )


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_plans_of_many_arrays_keep_their_kernels_apart(device):
    x = weft.asarray(np.arange(4, dtype="float32"), device=device)
    # 300 = 256 + 44: an eight-bit field of a key would overflow into its neighbour, at odd or even plans.
    for count, factor in ((300, 2.0), (44, 3.0), (2, 5.0), (300, 7.0), (44, 11.0)):
        last = weft.compile(lambda *xs, factor=factor: weft.sum(xs[-1] * factor))
        assert float(last(*[x] * count)) == 6 * factor


EAGER_INSIDE = {
    "remainder": lambda a, b: (a * 3.0) % (b * b + 1.0) + 1.0,
    "floor division": lambda a, b: (a * 3.0) // (b * b + 1.0) + 1.0,
    "integer powers": lambda a, b: weft.abs(a * 4).astype("int32") ** 3 + 1,
    "integer remainders": lambda a, b: (a * 99).astype("int32") % 7 + 1,
    "complex": lambda a, b: weft.abs(a.astype("complex64") * 1j + b) * 2.0,
    "complex sums": lambda a, b: weft.sum(a.astype("complex64") * (b + 1j), axis=-1),
    "complex choice": lambda a, b: weft.where(a > b, a.astype("complex64"), b * 2.0) + 1.0,
}


@pytest.mark.parametrize("name", EAGER_INSIDE)
def test_what_has_no_form_in_a_kernel_runs_between_kernels(name):
    rng = _rng()
    _same(weft.compile(EAGER_INSIDE[name]), EAGER_INSIDE[name], _array(rng, 7, 33), _array(rng, 33))


VECTOR_FORMS = "acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 sin sinh sqrt tan tanh"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", VECTOR_FORMS.split() + ["pow", "atan2", "hypot"])
def test_functions_have_a_vector_form(name, dtype):
    rng = _rng()
    x = rng.uniform(0.02, 0.98, 1003)
    x[:5] = [0.0, np.nan, 0.5, 1.0, np.inf]
    x = weft.asarray((x + 1 if name == "acosh" else x).astype(dtype))
    y = weft.asarray(rng.uniform(0.5, 2, 1003).astype(dtype))
    row = getattr(weft, name)
    function = (lambda x, y: row(x)) if name in VECTOR_FORMS.split() else row
    got, want = weft.compile(function)(x, y).numpy(), function(x, y).numpy()
    tol = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def test_choice_between_numbers():
    x = _array(_rng(), 50)
    _same(weft.compile(lambda x: weft.where(x > 0, 1.0, 0.0) * x), lambda x: weft.relu(x), x)
    _same(weft.compile(lambda x: weft.where(x > 0, 1, 0)), lambda x: weft.where(x > 0, 1, 0), x)


ISLANDS = {
    "running sum": lambda a, b: weft.cumulative_sum(a * 2.0, axis=0) + b,
    "sort": lambda a, b: weft.exp(weft.sort(weft.abs(a) + b)) * 2.0,
    "index": lambda a, b: weft.sum((a * 2.0)[1:, ::2] + 1.0),
    "index array": lambda a, b: (a * b)[weft.asarray([2, 0])] + 1.0,
    "method": lambda a, b: (a + b).cumsum(0) * 2.0,
    "two": lambda a, b: weft.concat([weft.flip(a * b), weft.roll(a - b, 1)]) * 2.0,
    "triangle": lambda a, b: weft.tril(a * 2.0) + b,
    "solve": lambda a, b: weft.linalg.inv(a @ a.T + 9.0 * weft.eye(5)) @ a * 2.0,
    "einsum": lambda a, b: weft.einsum("ij,j->i", a * 2.0, b) + 1.0,
    "variance": lambda a, b: weft.var(a * b, axis=0) + 1.0,
    "argmax": lambda a, b: weft.argmax(a * b, axis=1) + 1,
    "many results": lambda a, b: weft.unstack(a * b, axis=1)[2] + 1.0,
}


@pytest.mark.parametrize("name", ISLANDS)
def test_islands_between_kernels(name):
    rng = _rng()
    compiled = weft.compile(ISLANDS[name])
    for _ in range(2):
        _same(compiled, ISLANDS[name], _array(rng, 5, 7), _array(rng, 7))
    assert compiled.traces == 1


@pytest.mark.parametrize("name", ["running sum", "index", "method", "two", "sort"])
def test_gradients_through_islands(name):
    rng = _rng()
    a, b = (weft.Tensor(_array(rng, *s)) for s in ((5, 7), (7,)))
    grads = []
    for f in (ISLANDS[name], weft.compile(ISLANDS[name])):
        a.grad = b.grad = None
        weft.sum(f(a, b) * 0.5).backward()
        grads.append([None if t.grad is None else t.grad.numpy() for t in (a, b)])
    for got, want in zip(*grads):
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_errors_of_eager_calls_come_through_and_names_are_put_back():
    before = weft.sort
    with pytest.raises(weft.Error) as caught:
        weft.compile(lambda a: weft.sort(a * 2.0, axis=5))(weft.ones((3,)))
    assert caught.value.code == "array.sort.axis" or "axis" in caught.value.code
    assert weft.sort is before


@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 4, 3), (3,)), ((3,), (2, 3, 4))]
)
def test_products_with_vectors(shapes, rng):
    a, b = (rng.standard_normal(s).astype("float32") for s in shapes)
    np.testing.assert_allclose(
        weft.compile(lambda x, y: x @ y)(weft.asarray(a), weft.asarray(b)).numpy(),
        a @ b,
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        weft.compile(lambda y: weft.asarray(a) @ y)(weft.asarray(b)).numpy(),
        a @ b,
        rtol=1e-5,
        atol=1e-6,
    )
    x, y = weft.Tensor(a), weft.Tensor(b)
    weft.compile(lambda x, y: (x @ y).sum())(x, y).backward()
    u, v = weft.Tensor(a), weft.Tensor(b)
    (u @ v).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y.grad.numpy(), v.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["qpu", "wse:2x2", "ref"])
@pytest.mark.parametrize("shape", [(2, 40), (3, 7), (2, 3, 16), (1, 5, 32)])
def test_compiled_functions_on_machines(device, shape, rng):
    """Element-wise chains and reductions of rows, columns and everything, as on the host."""
    x = rng.standard_normal(shape).astype("float32")
    functions = {
        "chain": lambda u: u * 2 + u * u - 1,
        "rows": lambda u: (u * 2).sum(-1),
        "columns": lambda u: (u * u).sum(0),
        "all": lambda u: (u + 1).max(),
        "softmax": lambda u: u.softmax(-1) + 1,
        "spread": lambda u: u - u.max(axis=-1, keepdims=True),
        "turned": lambda u: u.transpose(-1, -2) * 3,
    }
    for name, f in functions.items():
        want = weft.compile(f)(weft.Tensor(x, requires_grad=False)).numpy()
        got = weft.compile(f)(weft.Tensor(x, requires_grad=False, device=device)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("where", ["cpu", "opencl:0"])
def test_rows_keep_their_kernels_and_gradients(where):
    device = present(where)
    rng = _rng()
    x, g = (rng.standard_normal((50, 70)).astype("float32") for _ in range(2))
    scale, shift = (rng.standard_normal(70).astype("float32") for _ in range(2))
    cases = {
        "softmax": lambda x, s, b: x.softmax(-1) * s,
        "log_softmax": lambda x, s, b: x.log_softmax(-1) + b,
        "logsumexp": lambda x, s, b: x.logsumexp(1, True) * x,
        "layer_norm": lambda x, s, b: x.layer_norm(s, b) * 2.0,
        "another axis": lambda x, s, b: x.softmax(0),
    }
    for name, f in cases.items():
        compiled = weft.compile(f)
        sides = []
        for call in (compiled, f):
            leaves = [
                weft.Tensor(weft.asarray(a, device=device), requires_grad=True)
                for a in (x, scale, shift)
            ]
            out = call(*leaves)
            (out * weft.Tensor(weft.asarray(g, device=device))).sum().backward()
            sides.append([out.numpy()] + [t.grad.numpy() for t in leaves if t.grad is not None])
        for got, want in zip(*sides):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=name)
        assert (f"eager {name}" in compiled.describe()) == (name != "another axis")


def test_arrays_and_tensors_of_one_shape_take_turns():
    """A call of arrays alone goes straight to its plan; a tensor of the same shape still gets its gradient."""
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal((3, 17)).astype("float32") for _ in range(2))
    compiled = weft.compile(lambda x, y: weft.exp(x * 0.5) * y + x)
    want = np.exp(a * 0.5) * b + a
    for _ in range(3):
        x, y = weft.asarray(a), weft.asarray(b)
        got = compiled(x, y)
        assert type(got) is weft.NDArray
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5)
        t = weft.Tensor(weft.asarray(a), requires_grad=True)
        result = compiled(t, y)
        np.testing.assert_allclose(result.data.numpy(), want, rtol=1e-5)
        result.sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), 0.5 * np.exp(a * 0.5) * b + 1, rtol=1e-4)
    assert compiled.traces == 1


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_reductions_take_a_type(dtype):
    x = weft.asarray(np.arange(6).reshape(2, 3).astype(dtype))
    functions = (
        lambda a: a.sum(axis=1, dtype=weft.float64),
        lambda a: weft.sum(a, dtype=weft.float64),
        lambda a: weft.prod(a, axis=0, dtype=weft.float64),
        lambda a: a.mean(dtype=weft.float64),
    )
    given = [x] if dtype != "float32" else [x, weft.Tensor(x, requires_grad=True)]
    for f in functions:
        for a in given:
            eager, compiled = f(a), weft.compile(f)(a)
            assert eager.dtype == compiled.dtype == weft.float64
            np.testing.assert_array_equal(
                eager.detach().numpy() if isinstance(a, weft.Tensor) else eager.numpy(),
                compiled.detach().numpy() if isinstance(a, weft.Tensor) else compiled.numpy(),
            )


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a.sum(other=1),
        lambda a: a.permute("a"),
        lambda a: a.broadcast_to(None),
        lambda a: a.transpose(5, "x"),
    ],
)
def test_methods_of_traced_values_raise_wefts_errors(f):
    with pytest.raises(weft.Error, match="does not take these arguments"):
        weft.compile(f)(weft.ones((2, 3)))


def test_calls_that_do_not_fit_are_refused_and_remembered_calls_follow_types_and_shapes():
    compiled = weft.compile(lambda x: weft.exp(x) * x + 1)
    x = weft.asarray(np.linspace(-1, 1, 12, dtype="float32"))
    for value in (x, x, x.reshape(3, 4), x.astype("float64"), x[::2], x, x.reshape(3, 4).T):
        want = np.exp(value.numpy()) * value.numpy() + 1
        np.testing.assert_allclose(compiled(value).numpy(), want, rtol=3e-7)
        assert compiled(value).dtype == value.dtype
    assert compiled.traces == 5
    for args, named in (((), {}), ((x, x), {}), ((x,), {"y": x})):
        with pytest.raises(weft.DTypeError, match="Compiled"):
            compiled(*args, **named)
    np.testing.assert_allclose(compiled(x=x).numpy(), compiled(x).numpy())


def test_a_trace_is_of_one_device_and_of_the_values_that_are_no_arrays():
    """What a trace may not be used for again: another device, 1.0 for 1 or True, a dict with other names."""
    x = weft.asarray([1, 2, 3], dtype="int32")

    def scaled(x, by):
        return x * 2 + x * by

    compiled = weft.compile(scaled)
    for by in (1, 1.0, True, 1, 2):
        got, want = compiled(x, by), scaled(x, by)
        assert got.dtype == want.dtype and got.tolist() == want.tolist(), by
    assert compiled.traces == 4
    here = weft.compile(lambda x: weft.exp(x) * 2 + 1)
    for name in ("cpu", "ref", "cpu"):
        value = weft.asarray([0.5, 1.0], device=name)
        assert here(value).device == value.device
    assert here.traces == 2

    def named(d):
        return d["a"] * 2 - d["b"] if "a" in d else d["b"] * 3 - d["c"]

    compiled, y = weft.compile(named), weft.asarray([5, 7, 9], dtype="int32")
    for d in ({"a": x, "b": y}, {"b": x, "c": y}, {"a": y, "b": x}):
        assert compiled(d).tolist() == named(d).tolist()


def test_results_that_do_not_depend_on_arguments_are_the_callers():
    constant = weft.asarray([1.0, 2.0])
    compiled = weft.compile(lambda x: (x * 2 + 1, constant))
    for _ in range(2):
        _, got = compiled(weft.ones(2))
        assert got.tolist() == [1, 2]
        got += 5
    assert constant.tolist() == [1, 2]


def test_what_runs_between_two_pieces_is_described():
    compiled = weft.compile(lambda x: weft.cumsum(weft.sort(x * 2 + 1), axis=0) * 3 + x)
    compiled(weft.ones(5))
    lines = compiled.describe().splitlines()
    first, second = (next(k for k, line in enumerate(lines) if word in line) for word in ("eager sort, between", "eager cumulative_sum, between"))  # fmt: skip
    assert any("multiply, add" in line for line in lines[:first]) and first < second
    assert any("multiply, add" in line for line in lines[second:])
    assert compiled.kernels == 2
    plain = weft.compile(lambda x: weft.sort(x))
    plain(weft.ones(5))
    assert plain.describe().startswith(
        "no kernel joins operations: calls run the function as it is\n"
    )
    joined = weft.compile(lambda x: x * 2 + 1)
    joined(weft.ones(5))
    assert "no kernel" not in joined.describe() and "between" not in joined.describe()
