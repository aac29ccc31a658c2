# SPDX-License-Identifier: Apache-2.0
"""PyTorch's methods of tensors: value, type of result and gradient beside torch's."""

import numpy as np
import pytest

import refusal
import weft

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(21)
M = RNG.standard_normal((4, 5))
V = RNG.standard_normal(5)
C = RNG.standard_normal((3, 4, 5))
INDEX = np.array([[3, 0, 2, 1, 0], [1, 1, 0, 2, 3]])
HOLES = np.where(RNG.random((4, 5)) < 0.3, np.nan, M)
BITS = M > 0.2

# (method, the tensor, arguments; arrays become tensors of either library), keywords
CASES = [
    ("addcmul", M, (M + 1, M - 2), {"value": 0.5}),
    ("addcdiv", M, (M + 1, M * M + 1), {"value": 0.5}),
    (
        "baddbmm",
        C @ C.transpose(0, 2, 1),
        (C, C.transpose(0, 2, 1).copy()),
        {"beta": 2, "alpha": 0.5},
    ),
    ("addbmm", M @ M.T, (C, C.transpose(0, 2, 1).copy()), {"beta": 2, "alpha": 0.5}),
    ("addmv", V[:4].copy(), (M, V), {"alpha": 3}),
    ("addr", M, (V[:4].copy(), V), {"beta": 0.5}),
    ("clamp_min", M, (0.1,), {}),
    ("clamp_max", M, (0.1,), {}),
    ("cumprod", M, (1,), {}),
    ("logcumsumexp", M, (0,), {}),
    ("dist", M, (M * 0.5 + 1,), {}),
    ("dist", M, (M * 0.5 + 1, 3), {}),
    ("lerp", M, (M + 2, 0.3), {}),
    ("lerp", M, (M + 2, M * M), {}),
    ("frac", M * 3, (), {}),
    ("fmod", M * 3, (0.7,), {}),
    ("logit", np.abs(np.tanh(M)), (), {}),
    ("logit", np.abs(np.tanh(M)), (0.3,), {}),
    ("erfc", M, (), {}),
    ("sinc", np.where(BITS, M, 0.0), (), {}),
    ("xlogy", np.where(BITS, M, 0.0), (np.abs(M) + 0.1,), {}),
    ("deg2rad", M, (), {}),
    ("rad2deg", M, (), {}),
    ("nan_to_num", np.where(BITS, np.where(M > 1, np.inf, np.nan), M), (0.5, 7.0), {}),
    ("nansum", HOLES, (), {}),
    ("nansum", HOLES, (1, True), {}),
    ("nanmean", HOLES, (0,), {}),
    ("kthvalue", M, (2, 1), {}),
    ("kthvalue", M, (3, 0, True), {}),
    ("median", M, (), {}),
    ("median", M, (1,), {}),
    ("quantile", M, (0.3,), {}),
    ("quantile", M, (0.77, 1, True), {}),
    ("quantile", M, (1.0, 0), {}),
    ("msort", M, (), {}),
    ("masked_select", M, (BITS,), {}),
    ("index_fill", M, (1, np.array([0, 3]), 9.0), {}),
    ("scatter_add", M, (0, INDEX, M[:2].copy()), {}),
    ("scatter_add", M, (1, INDEX[:, :3].copy(), C[0, :2, :3].copy()), {}),
    ("scatter", M, (1, np.array([[3, 0], [1, 2]]), C[0, :2, :2].copy()), {}),
    ("scatter", M, (1, INDEX, 7.0), {}),
    ("index_add", M, (0, np.array([3, 1, 1]), M[:3].copy()), {"alpha": 2}),
    ("take", M, (INDEX * 3,), {}),
    ("take_along_dim", M, (INDEX, 0), {}),
    ("repeat_interleave", M, (3,), {}),
    ("repeat_interleave", M, (np.array([2, 0, 1, 3]), 0), {}),
    ("diagonal", M, (), {}),
    ("diagonal", C, (1, 2, 0), {}),
    ("diagonal", C, (-1, 1, 2), {}),
    ("diag", M, (1,), {}),
    ("diag", V, (), {}),
    ("diag", V, (-2,), {}),
    ("diag_embed", M, (1,), {}),
    ("trace", M, (), {}),
    ("rot90", M, (), {}),
    ("rot90", C, (3, (0, 2)), {}),
    ("rot90", M, (2,), {}),
    ("fliplr", M, (), {}),
    ("flipud", M, (), {}),
    ("swapaxes", C, (0, 2), {}),
    ("swapdims", C, (1, 2), {}),
    ("ravel", M, (), {}),
    ("unflatten", C, (1, (2, 2)), {}),
    ("unfold", C, (2, 3, 2), {}),
    ("tensor_split", M, (3, 1), {}),
    ("tensor_split", M, ((1, 3), 1), {}),
    ("split_with_sizes", M, ((1, 3),), {}),
    ("cross", M[:3].copy(), (M[1:].copy(), 0), {}),
    ("kron", M, (C[0],), {}),
    ("inner", M, (C,), {}),
    ("sum_to_size", C, (1, 5), {}),
    ("is_floating_point", M, (), {}),
    ("is_complex", M, (), {}),
    ("element_size", M, (), {}),
    ("equal", M, (M.copy(),), {}),
    ("equal", M, (V,), {}),
    ("isclose", HOLES, (HOLES + 1e-9,), {"equal_nan": True}),
    ("argwhere", np.where(BITS, M, 0.0), (), {}),
    ("ndimension", C, (), {}),
    ("neg", M, (), {}),
    ("vdot", V, (V + 1,), {}),
    ("ger", V, (V[:2].copy(),), {}),
    ("tile", M, ((2, 3),), {}),
    ("true_divide", M, (M + 5,), {}),
]


def converted(x, of):
    if isinstance(x, np.ndarray):
        if of is weft:
            return weft.Tensor(x) if x.dtype.kind == "f" else weft.asarray(x)
        return torch.tensor(x, requires_grad=x.dtype.kind == "f")
    return x


def parts(x):
    return list(x) if isinstance(x, (tuple, list)) else [x]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "case", range(len(CASES)), ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_methods_beside_torch(case):
    name, x, args, options = CASES[case]
    ours, theirs = ([converted(v, of) for v in (x, *args)] for of in (weft, torch))
    if name == "ravel":
        a, b = ours[0].ravel(), theirs[0].ravel()
    else:
        a = getattr(ours[0], name)(*ours[1:], **options)
        b = getattr(theirs[0], name)(*theirs[1:], **options)
    total = total_torch = None
    assert len(parts(a)) == len(parts(b))
    for got, want in zip(parts(a), parts(b)):
        if not isinstance(want, torch.Tensor):
            assert got == want and isinstance(got, type(want))
            continue
        assert tuple(got.shape) == tuple(want.shape)
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-9, atol=1e-12)
        if want.requires_grad:
            weight = RNG.standard_normal(want.shape)
            one, two = (got * weft.asarray(weight)).sum(), (want * torch.tensor(weight)).sum()
            total, total_torch = (one, two) if total is None else (total + one, total_torch + two)
    if total is None:
        return
    total.backward()
    total_torch.backward()
    for p, q in zip(ours, theirs):
        if isinstance(p, weft.Tensor) and q.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_new_tensors_and_counts():
    x = weft.Tensor(M)
    assert x.new_full((2, 3), 7).numpy().tolist() == [[7.0] * 3] * 2
    assert x.new_tensor([1, 2]).dtype == weft.float64
    counts = weft.Tensor(np.array([0, 3, 3, 1]), requires_grad=False).bincount(minlength=6)
    assert counts.tolist() == [1, 1, 0, 2, 0, 0]
    low, high = x.aminmax(dim=1)
    assert low.tolist() == M.min(1).tolist() and high.tolist() == M.max(1).tolist()
    wide = x.scatter_add(0, weft.asarray(INDEX), weft.Tensor(M))  # a larger source: its first rows
    close = torch.tensor(M).scatter_add(0, torch.tensor(INDEX), torch.tensor(M))
    np.testing.assert_allclose(wide.numpy(), close.numpy())
    weft.random.seed(3)
    draws = weft.Tensor(np.full(20000, 0.3)).bernoulli()
    assert set(draws.numpy().tolist()) == {0.0, 1.0} and abs(draws.mean().item() - 0.3) < 0.02
    # Of equal positions the last one stands, and only it has a gradient.
    src = weft.Tensor([1.0, 2.0, 3.0])
    out = weft.Tensor([0.0, 0.0]).scatter(0, weft.asarray([1, 1, 0]), src)
    assert out.tolist() == [3.0, 2.0]
    out.sum().backward()
    assert src.grad.tolist() == [0.0, 1.0, 1.0]


def test_methods_refuse():
    x = weft.Tensor(M)
    for kind, code, text, call in [
        (weft.IndexError, "tensor.kthvalue", "legal: 1 to 5", lambda: x.kthvalue(6, 1)),
        (weft.ArgumentError, "tensor.quantile", "quantile 1.5", lambda: x.quantile(1.5)),
        (
            weft.ShapeError,
            "tensor.scatter",
            "indices of shape (5,)",
            lambda: x.scatter_add(0, INDEX[0], x),
        ),
        (weft.IndexError, "tensor.dim", "axis 2", lambda: x.unfold(2, 1, 1)),
    ]:
        assert text in str(refusal.refused(kind, code, call))


def test_masks_are_combined():
    x, y = weft.Tensor(M), torch.tensor(M, requires_grad=True)
    for f in (
        lambda t: (t > 0) & (t < 1),
        lambda t: (t > 1) | ~(t > 0),
        lambda t: (t > 0) ^ (t > 1),
        lambda t: t.gt(0).logical_and(t.lt(1)) if t is y else (t > 0).logical_and(t < 1),
    ):
        np.testing.assert_array_equal(f(x).numpy(), f(y).numpy())
    picked, theirs = x[(x > 0) & (x < 1)], y[(y > 0) & (y < 1)]
    (picked * picked).sum().backward()
    (theirs * theirs).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())
    assert (True & (x > 0)).numpy().tolist() == (M > 0).tolist()


CHANGES = [
    ("abs_", ()),
    ("sqrt_", ()),
    ("sigmoid_", ()),
    ("masked_fill_", (BITS, 3.0)),
    ("scatter_", (1, INDEX, 7.0)),
    ("scatter_add_", (0, INDEX, M[:2].copy())),
    ("index_add_", (0, np.array([3, 1, 1]), M[:3].copy())),
    ("lerp_", (M + 2, 0.3)),
    ("addcmul_", (M, M + 1)),
    ("tril_", ()),
    ("clip_", (-0.5, 0.5)),
]


@pytest.mark.parametrize("name, args", CHANGES, ids=[c[0] for c in CHANGES])
def test_methods_that_change_the_tensor(name, args):
    x, y = weft.Tensor(M, requires_grad=False), torch.tensor(M)
    assert getattr(x, name)(*[converted(a, weft) for a in args]) is x
    with torch.no_grad():
        getattr(y, name)(*[converted(a, torch) for a in args])
    np.testing.assert_allclose(x.numpy(), y.numpy(), equal_nan=True)
    parameter = weft.Tensor(M)
    call = getattr(parameter, name)
    error = refusal.refused(
        weft.ArgumentError, "tensor.inplace.graph", call, *[converted(a, weft) for a in args]
    )
    assert name in str(error)
    with weft.no_grad():
        call(*[converted(a, weft) for a in args])
    np.testing.assert_allclose(parameter.numpy(), y.numpy(), equal_nan=True)


def test_small_words_of_torch():
    x, y = weft.Tensor(C), torch.tensor(C)
    assert x.stride() == y.stride() and x.stride(1) == 5 and x.is_contiguous()
    assert not x.transpose(0, 1).is_contiguous() and x.type("float32").dtype == weft.float32
    np.testing.assert_array_equal(x.flip(dims=(0, 2)).numpy(), y.flip(dims=(0, 2)).numpy())
    np.testing.assert_array_equal(x.flip(1).numpy(), y.flip(1).numpy())
    np.testing.assert_array_equal(x.flip((0, 1)).numpy(), y.flip((0, 1)).numpy())
    assert weft.zeros(2, 3).shape == weft.ones(2, 3).shape == weft.empty(2, 3).shape == (2, 3)
    for name in ("zeros", "ones", "empty"):
        make = getattr(weft, name)
        assert make(3, "int8").dtype == weft.int8  # as in NumPy
        error = refusal.refused(weft.ArgumentError, f"array.{name}.shape", make, 3, "float31")
        assert "'float31'" in str(error) and "dtype=" in error.help


@pytest.mark.parametrize(
    "name", "sum max argmax softmax sort cumulative_sum flip concat std".split()
)
def test_the_axis_by_position(name):
    x = [weft.asarray(M)] * 2 if name == "concat" else weft.asarray(M)
    f = getattr(weft, name)
    np.testing.assert_array_equal(f(x, 1).numpy(), f(x, axis=1).numpy())
    with pytest.raises(TypeError):
        f(x, 1, 2)


@pytest.mark.parametrize("dim", [-1, -2, 0, 1])
def test_gather_by_fewer_positions_than_entries(dim):
    x = np.arange(20, dtype="float32").reshape(4, 5)
    for shape in ((2, 3), (4, 2), (3, 5), (1, 1)):
        at = np.arange(np.prod(shape)).reshape(shape)[::-1, ::-1] % x.shape[dim]
        want = np.take_along_axis(x[tuple(slice(0, n) if d != dim % 2 else slice(None) for d, n in enumerate(shape))], at, dim)  # fmt: skip
        found = weft.Tensor(weft.asarray(x), requires_grad=False).gather(dim, weft.asarray(at))
        np.testing.assert_array_equal(found.numpy(), want)
