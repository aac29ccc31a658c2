# SPDX-License-Identifier: Apache-2.0
"""Structured operations on every device that has them: indexing by arrays, sorting, running sums, borders, convolutions."""

import numpy as np
import pytest

import weft
from weft import _core, nn
from weft._core import Tensor

DEVICES = [n for n in ("cpu", "ref", "opencl:0", "cuda:0") if weft.device(n).available]


@pytest.fixture(params=DEVICES)
def device(request):
    return weft.device(request.param)


def same(got, want, **tolerance):
    got = got.to("cpu").numpy() if isinstance(got, weft.NDArray) else got
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, **(tolerance or {"rtol": 1e-6, "atol": 1e-6}))


def test_indexing_by_arrays(rng, device):
    a = rng.standard_normal((5, 4)).astype("float32")
    x = weft.asarray(a).to(device)
    i, j = np.array([4, 0, -1, 2]), np.array([[1], [3]])
    wi, wj = weft.asarray(i).to(device), weft.asarray(j).to(device)
    same(weft.take(x, wi, axis=0), a[i])
    same(x[wi, wj], a[i, j])
    same(x.T[:, wi], a.T[:, i])
    order = np.argsort(a, axis=0, kind="stable")
    same(weft.take_along_axis(x, weft.asarray(order).to(device), axis=0), np.sort(a, axis=0))
    same(x[x > 0], a[a > 0])
    for got, want in zip(weft.nonzero(x > 0), np.nonzero(a > 0)):
        same(got, want)
    same(weft.where(x > 0, x, 2.0), np.where(a > 0, a, np.float32(2)))
    with pytest.raises(weft.IndexError, match="index 5 is outside axis 0") as info:
        weft.take(x, weft.asarray([0, 5]).to(device), axis=0).numpy()  # on cards the copy finds it
    assert info.value.code == "array.index.range"
    with pytest.raises(weft.IndexError, match="index -6"):
        x[weft.asarray([-6, 0]).to(device)].numpy()


def test_writing_by_arrays(rng, device):
    a = rng.standard_normal((6, 3)).astype("float32")
    x = weft.asarray(a).to(device)
    i = np.array([1, 4, 1, -1])
    v = rng.standard_normal((4, 3)).astype("float32")
    wi, wv = weft.asarray(i).to(device), weft.asarray(v).to(device)
    want = a.copy()
    np.add.at(want, i, v)
    same(weft.scatter(x, wi, wv, accumulate=True), want)
    want = a.copy()
    for k, row in zip(i, v):  # of equal positions the last value stands
        want[k] = row
    same(weft.scatter(x, wi, wv), want)
    y = x.copy()
    y[y < 0] = 0.0
    same(y, np.maximum(a, 0))
    y[::2, :][wi[:2] // 4, wi[:2] % 3] = 7.0  # through a view
    b = np.maximum(a, 0)
    b[::2][i[:2] // 4, i[:2] % 3] = 7
    same(y, b)
    same(x, a)
    with pytest.raises(weft.IndexError) as info:
        weft.scatter(x, (wi, wi, wi), wv)
    assert info.value.code == "array.scatter.rank"
    with pytest.raises(weft.DTypeError) as info:
        weft.scatter(x > 0, wi, wv > 0, accumulate=True)
    assert info.value.code == "array.scatter.dtype"


@pytest.mark.parametrize("n", [1, 2, 5, 16, 37])
def test_sorting_and_searching(rng, device, n):
    if device.name == "opencl:0" and n not in (5, 16):
        pytest.skip("each length is a set of programs; two of them show what there is")
    a = np.round(rng.standard_normal((3, n)) * 2).astype("float32")
    if n > 4:
        a[0, 2] = np.nan
    x = weft.asarray(a).to(device)
    same(weft.sort(x, axis=1), np.sort(a, axis=1))
    same(weft.argsort(x, axis=1), np.argsort(a, axis=1, kind="stable"))
    descending = weft.sort(x.T, axis=0, descending=True).to("cpu").numpy().T
    for row, line in zip(descending, a):  # NaN last in both directions, equal elements in place
        np.testing.assert_array_equal(row, [*sorted(line[line == line])[::-1], *line[line != line]])
    same(weft.argmax(x, axis=1), np.argmax(a, axis=1))
    same(weft.argmin(x, axis=0), np.argmin(a, axis=0))
    line = np.sort(a[-1])
    for side in ("left", "right"):
        got = weft.searchsorted(weft.asarray(line).to(device), x[-1] + 0.5 * (x[-1] > 0), side=side)
        same(got, np.searchsorted(line, a[-1] + 0.5 * (a[-1] > 0), side=side))
    k = min(3, n)
    best = weft.topk(x[-1:], k)
    same(best.values, -np.sort(-a[-1:], axis=1)[:, :k])


def test_running_sums(rng, device):
    a = rng.standard_normal((4, 9)).astype("float32")
    x = weft.asarray(a).to(device)
    same(weft.cumulative_sum(x, axis=1), np.cumsum(a, axis=1), rtol=1e-5, atol=1e-5)
    same(weft.cumulative_prod(x.T, axis=0), np.cumprod(a.T, axis=0), rtol=1e-5, atol=1e-5)
    whole = weft.asarray(np.arange(9, dtype="int32")).to(device)
    same(weft.cumulative_sum(whole, include_initial=True), [0, *np.cumsum(np.arange(9))])


def test_what_is_normalised_by_a_sum(rng, device):
    a = rng.standard_normal((4, 9)).astype("float32")
    x = weft.asarray(a).to(device)
    e = np.exp(a - a.max(1, keepdims=True))
    same(weft.softmax(x, axis=1), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)
    same(weft.logsumexp(x, axis=0), np.log(np.exp(a).sum(0)), rtol=1e-5, atol=1e-5)
    same(weft.var(x, axis=1, correction=1), a.var(1, ddof=1), rtol=1e-5, atol=1e-5)
    t = Tensor(x).log_softmax(-1)
    same(t.data, np.log(e / e.sum(1, keepdims=True)), rtol=1e-5, atol=1e-5)


# Few columns beside each other, which cards cut along the terms, and so many that a thread has one.
@pytest.mark.parametrize("shape", [(4403, 2003), (301, 30011), (70, 140003)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_of_many_elements(rng, shape, dtype):
    a = rng.integers(-(2**20), 2**20, shape).astype(dtype)
    a[rng.integers(0, shape[0], 5), rng.integers(0, shape[1], 5)] = np.nan
    for name in DEVICES:
        if name == "ref":
            continue
        x = weft.asarray(a).to(weft.device(name))
        same(weft.argmax(x, axis=0), np.argmax(a, axis=0))
        same(weft.max(x, axis=0), a.max(axis=0))
        same(weft.sum(x, axis=0), a.astype("float64").sum(axis=0), rtol=1e-5, atol=64.0)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_borders(rng, device, mode):
    a = rng.standard_normal((3, 4)).astype("float32")
    x = weft.asarray(a).to(device)
    for widths in ([(1, 2), (0, 3)], [(0, 0), (5, 9)]):
        same(weft.pad(x, widths, mode=mode), np.pad(a, widths, mode=mode))
        same(weft.pad(Tensor(x), widths, mode=mode).data, np.pad(a, widths, mode=mode))
    same(
        weft.pad(x[:, :1], [(0, 0), (2, 2)], mode=mode),
        np.pad(a[:, :1], [(0, 0), (2, 2)], mode=mode),
    )


def test_borders_refuse():
    x = weft.ones((2, 3))
    for call, kind, code, text in (
        (lambda: weft.pad(x, [(1, 1)]), weft.ShapeError, "array.pad.rank", "1 pairs"),
        (lambda: weft.pad(x, [(1, 1), (0, -1)]), weft.ArgumentError, "array.pad.width", "-1"),
        (
            lambda: weft.pad(x, 1, "edge", stat_length=2),
            weft.ArgumentError,
            "array.pad.option",
            "stat_length",
        ),
        (
            lambda: weft.pad(x, 1, "reflect", reflect_type="strange"),
            weft.ArgumentError,
            "array.pad.option",
            "strange",
        ),
        (
            lambda: weft.pad(x, 1, "mean", stat_length=0),
            weft.ArgumentError,
            "array.pad.option",
            "0",
        ),
        (
            lambda: weft.take(x, weft.asarray([0]), mode="strange"),
            weft.ArgumentError,
            "array.take.mode",
            "strange",
        ),
        (
            lambda: weft.cov(x, fweights=[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            weft.ArgumentError,
            "array.cov.weights",
            "fweights",
        ),
        (
            lambda: weft.pad(x, [(1, 1), (0, 0)], mode="x"),
            weft.ArgumentError,
            "array.pad.mode",
            "'edge'",
        ),
        (
            lambda: weft.pad(x[:, :0], [(0, 0), (1, 1)], mode="edge"),
            weft.ShapeError,
            "array.pad.empty",
            "nothing",
        ),
        (lambda: weft.topk(x, 4), weft.ArgumentError, "array.topk.count", "topk of 4"),
        (
            lambda: weft.scatter(Tensor(x), weft.asarray([0]), x[0]),
            weft.ArgumentError,
            "array.scatter.gradient",
            "accumulate=True",
        ),
    ):
        with pytest.raises(kind, match=text) as info:
            call()
        assert info.value.code == code


CONVOLUTIONS = [  # x, weight of conv2d, stride, padding, dilation, groups
    ((2, 3, 7, 6), (4, 3, 3, 2), 1, 0, 1, 1),
    ((1, 4, 8, 9), (6, 2, 3, 3), (2, 3), (1, 0), (1, 2), 2),
    ((2, 2, 5, 5), (2, 1, 1, 5), 1, (0, 2), 1, 2),
]
TRANSPOSED = [  # x, weight, stride, padding, output_padding, groups, dilation
    ((2, 3, 4, 5), (3, 4, 3, 2), 1, 0, 0, 1, 1),
    ((1, 4, 3, 4), (4, 3, 3, 3), (2, 3), (1, 0), (1, 2), 2, (1, 2)),
    ((2, 2, 1, 6), (2, 1, 1, 4), 2, (0, 1), (0, 1), 1, 1),
]


@pytest.mark.parametrize("case", range(3))
def test_convolutions_against_torch(rng, device, case):
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    xs, ws, stride, padding, dilation, groups = CONVOLUTIONS[case]
    x, w = rng.standard_normal(xs).astype("float32"), rng.standard_normal(ws).astype("float32")
    for transposed in (False, True):
        if transposed:
            xs, ws, stride, padding, output_padding, groups, dilation = TRANSPOSED[case]
            x, w = (
                rng.standard_normal(xs).astype("float32"),
                rng.standard_normal(ws).astype("float32"),
            )
        a, b = (Tensor(weft.asarray(v).to(device)) for v in (x, w))
        ta, tb = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
        if transposed:
            y = _core.conv_transpose2d(a, b, stride, padding, output_padding, groups, dilation)
            t = F.conv_transpose2d(ta, tb, None, stride, padding, output_padding, groups, dilation)
        else:
            y = _core.conv2d(a, b, stride, padding, dilation, groups)
            t = F.conv2d(ta, tb, None, stride, padding, dilation, groups)
        same(y.data, t.detach().numpy(), rtol=1e-4, atol=1e-4)
        if device.name == "opencl:0" and case:
            continue  # the gradients are the same programs again
        weights = np.cos(np.arange(y.size)).reshape(y.shape).astype("float32")
        (y * Tensor(weft.asarray(weights).to(device), requires_grad=False)).sum().backward()
        (t * torch.tensor(weights)).sum().backward()
        same(a.grad.data, ta.grad.numpy(), rtol=1e-4, atol=1e-4)
        same(b.grad.data, tb.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_one_dimensional_convolutions(rng):
    torch = pytest.importorskip("torch")
    F, f = torch.nn.functional, nn.functional
    x, w = rng.standard_normal((2, 4, 11)), rng.standard_normal((6, 2, 3))
    got = f.conv1d(Tensor(x), Tensor(w), None, 2, 1, 2, 2)
    same(got.data, F.conv1d(torch.tensor(x), torch.tensor(w), None, 2, 1, 2, 2).numpy())
    w = rng.standard_normal((4, 3, 3))
    got = f.conv_transpose1d(Tensor(x), Tensor(w), None, 3, 1, 2, 2, 2)
    same(
        got.data, F.conv_transpose1d(torch.tensor(x), torch.tensor(w), None, 3, 1, 2, 2, 2).numpy()
    )
    with pytest.raises(weft.ShapeError) as info:
        f.conv1d(Tensor(x), Tensor(x[0]))
    assert info.value.code == "nn.conv1d.shape"


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
def test_convolutions_take_torch_s_arguments_by_position(rng, name, axes):
    torch = pytest.importorskip("torch")
    x, w = rng.standard_normal((2, 4, *[6] * axes)), rng.standard_normal((4, 4, *[3] * axes))
    b = rng.standard_normal(4)
    function = getattr(nn.functional, f"{name}{axes}d")
    mine = [Tensor(v) for v in (x, w, b)]
    theirs = [torch.tensor(v, requires_grad=True) for v in (x, w, b)]
    got, want = (
        function(*mine, 2, 1),
        getattr(torch.nn.functional, f"{name}{axes}d")(*theirs, 2, 1),
    )
    same(got.data, want.detach().numpy())
    got.sum().backward(), want.sum().backward()
    for a, t in zip(mine, theirs):
        same(a.grad.data, t.grad.numpy(), rtol=1e-6, atol=1e-8)
    for bias, error in ((2, weft.DTypeError), (Tensor(weft.ones(3)), weft.ShapeError)):
        with pytest.raises(error) as info:
            function(*mine[:2], bias)
        assert info.value.code == f"nn.{name}{axes}d.bias"


def test_convolutions_refuse_what_does_not_fit():
    x, w = Tensor(weft.ones((1, 2, 4, 4))), Tensor(weft.ones((2, 2, 3, 3)))
    for call, code in (
        (lambda: _core.conv2d(x, Tensor(weft.ones((2, 3, 3, 3)))), "array.conv2d.shape"),
        (lambda: _core.conv2d(x, Tensor(weft.ones((2, 2, 5, 5)))), "array.conv2d.shape"),
        (lambda: nn.functional.conv2d(x, w, 2), "nn.conv2d.bias"),
        (lambda: _core.conv2d(x, w, 0), "array.conv2d.option"),
        (lambda: _core.conv2d(x, w, (1, 2, 3)), "array.conv2d.pair"),
        (lambda: _core.conv_transpose2d(x, w, 1, 3), "array.conv_transpose2d.shape"),
        (lambda: _core.conv_transpose2d(x, w, 1, 0, 1), "array.conv_transpose2d.option"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "nn.conv.groups"),
    ):
        with pytest.raises(weft.Error) as info:
            call()
        assert info.value.code == code


@pytest.mark.parametrize("left", ["int8", "int64", "float32", "uint8", "bool"])
@pytest.mark.parametrize("right", ["int8", "int64", "float32", "uint8", "bool"])
def test_isin(left, right):
    rng = np.random.default_rng(11)
    for shape in ((), (0,), (7,), (3, 4)):
        for among in ((), (0,), (9,), (2, 3)):
            x, y = rng.integers(0, 6, shape).astype(left), rng.integers(0, 6, among).astype(right)
            for invert in (False, True):
                got = weft.isin(weft.asarray(x), weft.asarray(y), invert=invert)
                np.testing.assert_array_equal(got.numpy(), np.isin(x, y, invert=invert))
            assert bool(weft.isin(3, weft.asarray(y))) == bool(np.isin(3, y))
            np.testing.assert_array_equal(weft.isin(weft.asarray(x), 3).numpy(), x == 3)
